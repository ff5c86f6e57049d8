/*
 * Foreground commands: what is checked, what the command's environment is, and starting over when
 * the sandbox went down before the command began.
 */
#include "box/exec.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "box/secrets.h"
#include "run/kernel.h"
#include "run/wire.h"

#define START_ATTEMPTS 3 /* an idle stop or a crash can come between start and command */
#define WORKSPACE      "/workspace"
#define CWD_MAX        4096 /* PATH_MAX */

/* What every command sees; the sandbox's env and then the call's come on top. Output that is not
 * buffered is still there when a command is ended by its timeout. */
static const char *const base_env[] = {
	"HOME=/workspace",
	"USER=user",
	"LOGNAME=user",
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	"LANG=C.UTF-8",
	"TERM=dumb",
	"PYTHONUNBUFFERED=1",
	/* So that scripts draw the letters that execute_python draws; see src/python/fonts.py. */
	("MATPLOTLIBRC=" KERNEL_FONTS_INSIDE "/matplotlibrc"),
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

static bool check_but_timeout(const struct exec_options *options, struct err *err)
{
	if (!check_command(options, err) || !check_cwd(options->cwd, err) ||
	    !sandbox_check_texts("env", options->env, true, err))
		return false;
	size_t env_size = 0;
	if (options->env != NULL)
		json_text(options->env, &env_size);
	return check_size(strlen(options->command) + base_size(options->cwd) + env_size, err);
}

bool exec_check(const struct app *app, const struct exec_options *options, struct err *err)
{
	(void)app;
	return check_but_timeout(options, err) && check_timeout(options->timeout_ms, err);
}

/* --- environment --------------------------------------------------------------------------- */

static void environment_finish(struct exec_environment *env)
{
	for (size_t i = 0; i < env->count; i++)
		free(env->items[i]);
	free(env->items);
}

/* Sets a variable, taking item over; a later one replaces an earlier one of the same name. */
static void environment_set(struct exec_environment *env, char *item)
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

static void environment_add(struct exec_environment *env, struct json_object *object)
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
static bool environment_make(struct exec_environment *env, const struct sandbox_row *row,
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

/* The command line goes to the shell as one argument: after "--" one that starts with a dash is no
 * option. */
static void fill_command(struct exec_command *command, const struct conf *conf,
			 const struct exec_options *options)
{
	const char *const argv[] = {shell(), "-c", "--", options->command, NULL};
	_Static_assert(sizeof(argv) == sizeof(command->argv), "words of a command");
	memcpy(command->argv, argv, sizeof(argv));
	command->run = (struct runtime_command){
		.argv = command->argv,
		.env = (const char *const *)command->env.items,
		.cwd = command->cwd,
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
}

bool exec_command_make(struct exec_command *command, const struct app *app,
		       const struct sandbox_row *row, const struct exec_options *options,
		       struct err *err)
{
	*command = (struct exec_command){.cwd = NULL};
	if (!check_but_timeout(options, err))
		return false;
	command->cwd = resolve_cwd(options->cwd);
	if (!environment_make(&command->env, row, options->env, err) ||
	    !check_size(strlen(options->command) + strlen(command->cwd) + command->env.size, err))
		return false;
	fill_command(command, app->conf, options);
	return true;
}

void exec_command_finish(struct exec_command *command)
{
	environment_finish(&command->env);
	free(command->cwd);
	*command = (struct exec_command){.cwd = NULL};
}

bool exec_start(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
		exec_begin *begin, void *ctx, struct err *err)
{
	struct err lost = ERR_INIT;
	for (int i = 0; i < START_ATTEMPTS; i++) {
		if (!sandbox_start(app, row, use, err))
			return false;
		if (begin(ctx, &use->box, &lost))
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

/* A foreground command. */
struct foreground {
	struct app *app;
	const struct sandbox_row *row;
	const struct exec_options *options;
	struct session *session;
	struct runtime_command *command;
};

static bool begin_foreground(void *ctx, const struct runtime_box *box, struct err *err)
{
	const struct foreground *f = ctx;
	return session_start(f->session, f->app->runtime, box, f->command, f->options->stdin_data,
			     f->options->stdin_len, err);
}

static struct mask *foreground_mask(void *ctx, struct err *err)
{
	const struct foreground *f = ctx;
	return secrets_mask(f->app, f->row, f->options->env, err);
}

bool exec_run(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
	      const struct exec_options *options, struct session *session, struct err *err)
{
	bool ended;
	return exec_run_for(app, row, use, options, EXEC_WAIT_TO_THE_END, NULL, NULL, session,
			    &ended, err);
}

bool exec_run_for(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
		  const struct exec_options *options, int64_t wait_ms, session_tick *tick,
		  void *ctx, struct session *session, bool *ended, struct err *err)
{
	int64_t until_ms = wait_ms == EXEC_WAIT_TO_THE_END ? wait_ms : clock_mono_ms() + wait_ms;
	AUTO_EXEC_COMMAND command = {.cwd = NULL};
	if (!check_timeout(options->timeout_ms, err) ||
	    !exec_command_make(&command, app, row, options, err))
		return false;
	struct foreground foreground = {app, row, options, session, &command.run};
	if (command.run.timeout_ms > wait_ms)
		session_keep_output(session, foreground_mask, &foreground);
	if (!exec_start(app, row, use, begin_foreground, &foreground, err))
		return false;
	*ended = session_wait(session, until_ms, tick, ctx);
	if (*ended)
		sandbox_touch(app, row);
	return true;
}
