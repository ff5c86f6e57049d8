/*
 * For the tests of tools: a program context in a fresh spool, a runtime that holds no process
 * and plays what a test tells it to, and a call as the protocol core makes it. Each result is
 * held against the tool's output schema, and each of its members must be declared there.
 */
#ifndef SPOOLBOX_TOOL_KIT_H
#define SPOOLBOX_TOOL_KIT_H

#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/json.h"
#include "box/app.h"
#include "mcp/schema.h"
#include "mcp/toolset.h"
#include "store/row_sandbox.h"
#include "unit.h"

/* --- the played runtime -------------------------------------------------------------------- */

struct play {
	struct runtime_status status; /* how the command ends */
	const char *out, *err;        /* what it writes */
	void (*during)(void);         /* runs while the command runs */
	int *runs_on;                 /* where to put what ends the command by being closed */
	/* What it was given. */
	bool is_up;
	int execs;
	int64_t timeout_ms;
	char cwd[256], command[256], input[256], env[4096];
};

/* One program, one test, one process: Check forks for each. */
static struct play play;

static bool play_probe(struct err *err)
{
	(void)err;
	return true;
}

static bool play_start(const struct runtime_box *box, struct err *err)
{
	(void)box;
	(void)err;
	play.is_up = true;
	return true;
}

static bool play_stop(const struct runtime_box *box, struct err *err)
{
	(void)box;
	(void)err;
	play.is_up = false;
	return true;
}

static int play_alive(const struct runtime_box *box, struct err *err)
{
	(void)box;
	(void)err;
	return play.is_up;
}

static void play_note(const struct runtime_command *command)
{
	size_t argc = 0;
	while (command->argv[argc] != NULL)
		argc++;
	snprintf(play.command, sizeof play.command, "%s", command->argv[argc - 1]);
	snprintf(play.cwd, sizeof play.cwd, "%s", command->cwd);
	play.timeout_ms = command->timeout_ms;
	ssize_t len = read(command->stdin_fd, play.input, sizeof play.input - 1);
	play.input[len < 0 ? 0 : len] = '\0';
	size_t used = 0;
	for (const char *const *e = command->env; *e != NULL && used < sizeof play.env; e++)
		used += (size_t)snprintf(play.env + used, sizeof play.env - used, "%s\n", *e);
}

static bool play_exec(const struct runtime_box *box, const struct runtime_command *command,
		      struct runtime_exec *exec, struct err *err)
{
	(void)box;
	if (!play.is_up)
		return err_set(err, ERR_LOST, "the sandbox is down");
	play.execs++;
	play_note(command);
	const char *out = play.out == NULL ? "" : play.out,
		   *text = play.err == NULL ? "" : play.err;
	ck_assert_int_eq(write(command->stdout_fd, out, strlen(out)), (ssize_t)strlen(out));
	ck_assert_int_eq(write(command->stderr_fd, text, strlen(text)), (ssize_t)strlen(text));
	if (play.during != NULL)
		play.during();
	if (play.runs_on != NULL) {
		int ends[2];
		ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
		exec->fd = ends[0];
		*play.runs_on = ends[1];
		return true;
	}
	exec->fd = open("/dev/null", O_RDONLY | O_CLOEXEC); /* readable at once: it has ended */
	return true;
}

static void play_cancel(struct runtime_exec *exec)
{
	(void)exec;
}

static void play_finish(struct runtime_exec *exec, struct runtime_status *status)
{
	close(exec->fd);
	exec->fd = -1;
	*status = play.status;
}

static struct json_object *play_describe(const struct runtime_box *box)
{
	(void)box;
	struct json_object *text = json_object_new_object();
	json_add_str(text, "runtime", "play");
	return text;
}

static const struct runtime play_runtime = {
	"play",    play_probe,  play_start,  play_stop,     play_alive,
	play_exec, play_cancel, play_finish, play_describe,
};

/* --- the context --------------------------------------------------------------------------- */

static struct {
	char *dir;
	struct conf conf;
	struct app app;
	/* Of the last call. */
	struct tool_call call;
	struct err err;
	struct json_object *arguments;
} kit;

static inline void kit_open(void)
{
	kit.dir = unit_tempdir();
	char *spool = xasprintf("%s/spool", kit.dir);
	setenv("SMCP_SPOOL", spool, 1);
	setenv("SMCP_ENV_FILE", "/dev/null", 1);
	setenv("SMCP_PUBLIC_BASE_URL", "https://box.example", 1);
	free(spool);
	struct err err = ERR_INIT;
	ck_ok(conf_load(&kit.conf, &err), err);
	ck_ok(app_open(&kit.app, &kit.conf, &err), err);
	kit.app.runtime = &play_runtime;
	play = (struct play){.status = {.end = RUNTIME_END_EXIT}};
}

static inline void kit_clear(void)
{
	json_object_put(kit.call.structured);
	json_object_put(kit.call.content);
	json_object_put(kit.arguments);
	kit.call = (struct tool_call){0};
	kit.arguments = NULL;
	kit.err = (struct err)ERR_INIT;
}

static inline void kit_close(void)
{
	kit_clear();
	app_close(&kit.app);
	conf_finish(&kit.conf);
	unit_tempdir_remove(kit.dir);
}

/* --- a call -------------------------------------------------------------------------------- */

static inline void kit_conforms(const char *schema_text, struct json_object *value,
				const char *what)
{
	struct err err = ERR_INIT;
	AUTO_JSON *json = json_literal(schema_text);
	struct schema *schema = schema_compile(json, &err);
	ck_ok(schema != NULL, err);
	struct schema_faults faults = SCHEMA_FAULTS_INIT;
	bool ok = schema_validate(schema, value, what, &faults);
	ck_assert_msg(ok, "%s", buf_str(&faults.lines));
	schema_faults_finish(&faults);
	schema_free(schema);
	json_object_object_foreach(value, key, member)
	{
		(void)member;
		ck_assert_msg(json_has(json_get(json, "properties"), key), "%s.%s is not declared",
			      what, key);
	}
}

/* Calls a tool with arguments as JSON text in which ' stands for ". */
__attribute__((format(printf, 2, 3))) static inline bool kit_call(const struct tool *tool,
								  const char *fmt, ...)
{
	kit_clear();
	va_list ap;
	va_start(ap, fmt);
	char *text = NULL;
	ck_assert_int_ge(vasprintf(&text, fmt, ap), 0);
	va_end(ap);
	for (char *p = text; *p != '\0'; p++)
		if (*p == '\'')
			*p = '"';
	kit.arguments = json_literal(text);
	free(text);
	kit_conforms(tool->input_schema, kit.arguments, "arguments");
	kit.call.app = &kit.app;
	kit.call.principal = "me";
	kit.call.arguments = kit.arguments;
	bool ok = tool->call(&kit.call, &kit.err);
	ck_assert_int_eq(ok, kit.err.code == ERR_NONE);
	if (ok && !kit.call.is_error)
		kit_conforms(tool->output_schema, kit.call.structured, "result");
	return ok;
}

#define kit_ok(...) ck_assert_msg(kit_call(__VA_ARGS__), "%s (%s)", kit.err.msg, kit.err.trace)
#define kit_fails(code_, ...) \
	do { \
		ck_assert(!kit_call(__VA_ARGS__)); \
		ck_assert_str_eq(err_name(kit.err.code), err_name(code_)); \
	} while (0)
#define kit_message_has(part) \
	ck_assert_msg(strstr(err_message(&kit.err), part) != NULL, "%s", err_message(&kit.err))

/* As if nobody had named the sandbox yet. */
static inline void kit_let_give_way(const char *id)
{
	sqlite3 *handle;
	char *sql = xasprintf("UPDATE sandbox SET gives_way = 1 WHERE id = '%s'", id);
	ck_assert_int_eq(sqlite3_open(kit.conf.state_db, &handle), SQLITE_OK);
	sqlite3_busy_timeout(handle, 5000);
	ck_assert_int_eq(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
	ck_assert_int_eq(sqlite3_changes(handle), 1);
	sqlite3_close(handle);
	free(sql);
}

static inline const char *kit_str(const char *key)
{
	const char *text = json_get_str(kit.call.structured, key);
	ck_assert_msg(text != NULL, "no member %s", key);
	return text;
}

static inline int64_t kit_int(const char *key)
{
	ck_assert_msg(json_has(kit.call.structured, key), "no member %s", key);
	return json_get_int(kit.call.structured, key, -1);
}

static inline bool kit_true(const char *key)
{
	ck_assert_msg(json_has(kit.call.structured, key), "no member %s", key);
	return json_get_bool(kit.call.structured, key, false);
}

static inline bool kit_has(const char *key)
{
	return json_has(kit.call.structured, key);
}

/* --- files behind the tools' back ---------------------------------------------------------- */

/* Descriptor of a sandbox's workspace. */
static inline int kit_workspace(const char *name)
{
	struct sandbox_row row = {0};
	struct err err = ERR_INIT;
	ck_assert_int_eq(row_sandbox_by_name(kit.app.db, "me", name, &row, &err), 1);
	int fd = spool_workspace(&kit.app.spool, row.files_id, &err);
	ck_ok(fd >= 0, err);
	sandbox_row_finish(&row);
	return fd;
}

static inline void kit_put(const char *name, const char *file, const void *data, size_t len)
{
	AUTO_FD dir = kit_workspace(name);
	AUTO_FD fd = openat(dir, file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, data, len), (ssize_t)len);
}

/* Whole content of a small file; the caller frees it. */
static inline char *kit_get(const char *name, const char *file)
{
	AUTO_FD dir = kit_workspace(name);
	AUTO_FD fd = openat(dir, file, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	char *text = xcalloc(1, 65536);
	ck_assert_int_ge(read(fd, text, 65535), 0);
	return text;
}

/* How many sandboxes there are. */
static inline int64_t kit_count(void)
{
	struct err err = ERR_INIT;
	return row_sandbox_count_live(kit.app.db, &err);
}

#endif
