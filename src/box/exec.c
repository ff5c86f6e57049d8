/*
 * Foreground commands: what is checked, what the command's environment is, and starting over when
 * the sandbox went down before the command began.
 */
#include "box/exec.h"

#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "run/wire.h"

#define START_ATTEMPTS 3 /* an idle stop or a crash can come between start and command */
#define WORKSPACE      "/workspace"
#define CWD_MAX        4096 /* PATH_MAX */

/* What every command sees; the sandbox's env and then the call's come on top. Output that is not
 * buffered is still there when a command is ended by its timeout. */
static const char *const base_env[] = {
	"HOME=/workspace",    "USER=user",
	"LOGNAME=user",       "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	"LANG=C.UTF-8",       "TERM=dumb",
	"PYTHONUNBUFFERED=1",
};

/* Base with SHELL, the sandbox's, the call's, and four words of argv. */
_Static_assert(ARRAY_LEN(base_env) + 1 + 2 * SANDBOX_ENV_MAX + 4 <= WIRE_WORDS_MAX,
	       "every environment that passes the checks can be sent");

/* --- checks -------------------------------------------------------------------------------- */

static bool check_command(const struct exec_options *options, struct err *err)
{
	const char *command = options->command;
	if (command == NULL || *command == '\0') {
		err_set(err, ERR_INVALID, "command is empty");
		return err_hint(err, "Give the shell command to run, e.g. {\"sandbox\": \"work\", "
				     "\"command\": \"ls -l\"}.");
	}
	size_t len = options->command_len == 0 ? strlen(command) : options->command_len;
	if (memchr(command, '\0', len) != NULL) {
		err_set(err, ERR_INVALID, "command holds a NUL character at byte %zu",
			strlen(command));
		return err_hint(
			err, "Write the data to a file with write_text or upload_file, or print it "
			     "with printf '\\0' in the command.");
	}
	if (!text_is_utf8(command, len))
		return err_set(err, ERR_INVALID, "command is not UTF-8 text");
	size_t count = text_count(command, len);
	if (count <= EXEC_COMMAND_MAX)
		return true;
	err_set(err, ERR_TOO_LARGE, "command has %zu characters; the limit is %d", count,
		EXEC_COMMAND_MAX);
	return err_hint(err, "Write the script to a file with write_text and run that file.");
}

static bool check_cwd(const char *cwd, struct err *err)
{
	if (cwd == NULL || strlen(cwd) < CWD_MAX)
		return true;
	return err_set(err, ERR_INVALID, "cwd has %zu bytes; the limit is %d", strlen(cwd),
		       CWD_MAX - 1);
}

static bool check_timeout(int64_t timeout_ms, struct err *err)
{
	if (timeout_ms >= 0 && timeout_ms <= EXEC_TIMEOUT_MAX * 1000LL)
		return true;
	err_set(err, ERR_INVALID, "timeout is %lld ms; a command may take up to %d seconds",
		(long long)timeout_ms, EXEC_TIMEOUT_MAX);
	return err_hint(err,
			"Start long work in the background with nohup and '&', and look at its "
			"output file with later calls.");
}

static bool check_size(size_t size, struct err *err)
{
	if (size <= EXEC_REQUEST_MAX)
		return true;
	err_set(err, ERR_TOO_LARGE,
		"command, cwd and environment together have %zu bytes; the limit is %d", size,
		EXEC_REQUEST_MAX);
	return err_hint(err,
			"Write the script or the data to a file with write_text and use that file. "
			"The command did not run.");
}

/* What cwd and the environment that every command gets can come to, so that nothing passes here
 * which is refused when the sandbox is there. */
static size_t base_size(const char *cwd)
{
	size_t size = sizeof(WORKSPACE "/") + (cwd == NULL ? 0 : strlen(cwd));
	size += sizeof("SHELL=/bin/bash");
	for (size_t i = 0; i < ARRAY_LEN(base_env); i++)
		size += strlen(base_env[i]) + 1;
	return size;
}

bool exec_check(const struct app *app, const struct exec_options *options, struct err *err)
{
	(void)app;
	if (!check_command(options, err) || !check_cwd(options->cwd, err) ||
	    !check_timeout(options->timeout_ms, err) ||
	    !sandbox_check_texts("env", options->env, true, err))
		return false;
	size_t env_size = 0;
	if (options->env != NULL)
		json_text(options->env, &env_size);
	return check_size(strlen(options->command) + base_size(options->cwd) + env_size, err);
}

/* --- environment --------------------------------------------------------------------------- */

struct environment {
	char **items; /* NULL-terminated "NAME=value" */
	size_t count;
	size_t size; /* bytes, with the NULs */
};

static void environment_finish(struct environment *env)
{
	for (size_t i = 0; i < env->count; i++)
		free(env->items[i]);
	free(env->items);
}
#define AUTO_ENVIRONMENT __attribute__((cleanup(environment_finish))) struct environment

/* Sets a variable, taking item over; a later one replaces an earlier one of the same name. */
static void environment_set(struct environment *env, char *item)
{
	size_t name_len = strcspn(item, "=") + 1;
	env->size += strlen(item) + 1;
	for (size_t i = 0; i < env->count; i++) {
		if (strncmp(env->items[i], item, name_len) == 0) {
			env->size -= strlen(env->items[i]) + 1;
			free(env->items[i]);
			env->items[i] = item;
			return;
		}
	}
	env->items = xrealloc(env->items, (env->count + 2) * sizeof(*env->items));
	env->items[env->count++] = item;
	env->items[env->count] = NULL;
}

static void environment_add(struct environment *env, struct json_object *object)
{
	if (object == NULL)
		return;
	json_object_object_foreach(object, name, value)
		environment_set(env, xasprintf("%s=%s", name, json_str(value)));
}

/* The base template is the host's /usr. */
static const char *shell(void)
{
	return access("/usr/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
}

/* Base, then the sandbox's, then the call's. */
static bool environment_make(struct environment *env, const struct sandbox_row *row,
			     struct json_object *call_env, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(base_env); i++)
		environment_set(env, xstrdup(base_env[i]));
	environment_set(env, xasprintf("SHELL=%s", shell()));
	if (row->env != NULL) {
		AUTO_JSON *object = json_parse(row->env, strlen(row->env), err);
		/* It was checked when it was stored. */
		if (object == NULL || !sandbox_check_texts("env", object, true, err)) {
			err_set(err, ERR_INTERNAL, "the stored env is damaged");
			return err_in(err, "env of sandbox %s", row->id);
		}
		environment_add(env, object);
	}
	environment_add(env, call_env);
	return true;
}

/* --- run ----------------------------------------------------------------------------------- */

static char *resolve_cwd(const char *cwd)
{
	if (cwd == NULL || *cwd == '\0')
		return xstrdup(WORKSPACE);
	return *cwd == '/' ? xstrdup(cwd) : xasprintf(WORKSPACE "/%s", cwd);
}

/* session_run with a running sandbox. ERR_LOST means that the command did not begin. */
static bool start_and_run(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
			  struct runtime_command *command, const struct exec_options *options,
			  struct session *session, struct err *err)
{
	struct err lost = ERR_INIT;
	for (int i = 0; i < START_ATTEMPTS; i++) {
		if (!sandbox_start(app, row, use, err))
			return false;
		if (session_run(session, app->runtime, &use->box, command, options->stdin_data,
				options->stdin_len, &lost))
			return true;
		if (lost.code != ERR_LOST)
			break;
	}
	*err = lost;
	if (lost.code != ERR_LOST)
		return false;
	err_set(err, ERR_LOST, "sandbox %s went down %d times before the command could begin",
		row->name, START_ATTEMPTS);
	return err_hint(
		err, "The command did not run. Try again; if it stays, destroy_sandbox (the files "
		     "can be kept) and create it anew.");
}

bool exec_run(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
	      const struct exec_options *options, struct session *session, struct err *err)
{
	if (!exec_check(app, options, err))
		return false;
	AUTO_ENVIRONMENT env = {0};
	AUTO_FREE char *cwd = resolve_cwd(options->cwd);
	if (!environment_make(&env, row, options->env, err) ||
	    !check_size(strlen(options->command) + strlen(cwd) + env.size, err))
		return false;
	const struct conf *conf = app->conf;
	/* After "--" a command that starts with a dash is no option. */
	const char *const argv[] = {shell(), "-c", "--", options->command, NULL};
	struct runtime_command command = {
		.argv = argv,
		.env = (const char *const *)env.items,
		.cwd = cwd,
		.stdin_fd = -1,
		.stdout_fd = -1,
		.stderr_fd = -1,
		.timeout_ms =
			options->timeout_ms > 0 ? options->timeout_ms : conf->exec_timeout * 1000,
		.limits = {.processes = conf->pids_limit,
			   .open_files = conf->open_files,
			   .file_bytes = conf->file_size,
			   .data_bytes = conf->mem_limit},
	};
	if (!start_and_run(app, row, use, &command, options, session, err))
		return false;
	sandbox_touch(app, row);
	return true;
}
