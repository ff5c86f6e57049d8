/*
 * Tasks for the tests of tools: everything that box/task.h promises, with rows and records as they
 * are, but nobody who runs anything: a test says what a task prints and how it ends. A program with
 * this kit never links the real ones.
 */
#ifndef SPOOLBOX_TASK_KIT_H
#define SPOOLBOX_TASK_KIT_H

#include "box/task.h"
#include "run/record.h"
#include "tool_kit.h"

static struct {
	/* What it was given. */
	int starts, adopts, cancels, waits;
	char command[256], cwd[256], request_id[256], env[256];
	int64_t timeout_ms, wait_ms, stdout_offset, stderr_offset;
	enum task_origin origin;
	/* What it does. */
	enum err_code check_fails, adopt_fails; /* ERR_NONE: succeeds */
	enum task_state start_state;            /* TASK_NONE: running */
	enum task_state cancel_state;           /* TASK_NONE: stays as it is */
	enum err_code log_fails;
	void (*during_wait)(const struct task_row *row);
	bool client_is_gone; /* what keep_waiting said last */
	char last_id[ID_LEN + 1];
} played;

static inline int played_dir(const char *id, bool make)
{
	AUTO_FREE char *path = xasprintf("%s/task-%s", kit.dir, id);
	if (make)
		ck_assert_int_eq(mkdir(path, 0700), 0);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The task prints something. */
static inline void played_print(const char *id, enum record_stream stream, const char *data,
				size_t len)
{
	struct err err = ERR_INIT;
	AUTO_FD dir = played_dir(id, false);
	AUTO_RECORD record = RECORD_INIT;
	ck_ok(record_resume(&record, dir, &err), err);
	ck_ok(record_add(&record, stream, data, len, &err), err);
}

/* The task ends. */
static inline void played_end(const char *id, enum task_state state, int code, int number)
{
	struct err err = ERR_INIT;
	struct task_row row = {
		.state = state,
		.has_exit_code = number == 0 && (state == TASK_SUCCEEDED || state == TASK_FAILED),
		.exit_code = code,
		.signal = number,
		.reason = state == TASK_UNKNOWN ? xstrdup("its supervisor was killed") : NULL,
		.cpu_ms = 7,
		.max_rss_kib = 2048,
		.survivors = 1,
		.finished_at = clock_wall_ms()};
	memcpy(row.id, id, sizeof(row.id));
	ck_assert_int_eq(row_task_finish(kit.app.db, &row, &err), 1);
	task_row_finish(&row);
}

static inline bool played_insert(struct app *app, const struct sandbox_row *sandbox,
				 const struct exec_options *options, enum task_origin origin,
				 const char *request_id, struct task_row *row, struct err *err)
{
	*row = (struct task_row){.principal = xstrdup(sandbox->principal),
				 .request_id = request_id == NULL ? NULL : xstrdup(request_id),
				 .origin = origin,
				 .command = xstrdup(options->command),
				 .timeout_ms = options->timeout_ms,
				 .state = TASK_RUNNING,
				 .created_at = clock_wall_ms(),
				 .started_at = clock_wall_ms()};
	id_make(row->id);
	memcpy(row->sandbox_id, sandbox->id, sizeof(row->sandbox_id));
	memcpy(played.last_id, row->id, sizeof(played.last_id));
	AUTO_TX tx = TX_INIT;
	ck_ok(db_begin(app->db, &tx, err), *err);
	ck_assert_int_eq(row_task_insert(app->db, row, err), 1);
	ck_ok(db_commit(&tx, err), *err);
	AUTO_FD dir = played_dir(row->id, true);
	AUTO_RECORD record = RECORD_INIT;
	return record_create(&record, dir, err);
}

/* --- box/task.h ---------------------------------------------------------------------------- */

bool task_check(const struct app *app, const struct task_options *options, struct err *err)
{
	struct exec_options exec = options->exec;
	exec.timeout_ms = 0;
	if (played.check_fails != ERR_NONE)
		return err_set(err, played.check_fails, "played: not allowed");
	return exec_check(app, &exec, err);
}

bool task_start(struct app *app, const struct sandbox_row *sandbox, struct sandbox_use *use,
		const struct task_options *options, struct task_row *row, bool *existing,
		struct err *err)
{
	ck_assert_int_ge(use->use_fd, 0);
	played.starts++;
	snprintf(played.command, sizeof played.command, "%s", options->exec.command);
	snprintf(played.cwd, sizeof played.cwd, "%s",
		 options->exec.cwd == NULL ? "" : options->exec.cwd);
	snprintf(played.request_id, sizeof played.request_id, "%s",
		 options->request_id == NULL ? "" : options->request_id);
	snprintf(played.env, sizeof played.env, "%s",
		 options->exec.env == NULL ? "" : json_text(options->exec.env, NULL));
	played.timeout_ms = options->exec.timeout_ms;
	played.origin = options->origin;
	*existing = options->request_id != NULL &&
		    row_task_by_request(app->db, sandbox->principal, sandbox->id,
					options->request_id, row, err) == 1;
	if (!*existing && !played_insert(app, sandbox, &options->exec, options->origin,
					 options->request_id, row, err))
		return false;
	if (played.start_state != TASK_NONE)
		row->state = played.start_state;
	return true;
}

bool task_outlives_sandbox(const struct sandbox_row *sandbox, int64_t timeout_ms)
{
	return sandbox->expires_at != 0 && clock_wall_ms() + timeout_ms > sandbox->expires_at;
}

bool task_find(struct app *app, const char *principal, const char *id, const char *sandbox_id,
	       struct task_row *row, struct err *err)
{
	AUTO_TASK_ROW found = {0};
	if (row_task_by_id(app->db, principal, id, &found, err) != 1 ||
	    (sandbox_id != NULL && strcmp(found.sandbox_id, sandbox_id) != 0))
		return err_set(err, ERR_NOT_FOUND, "there is no task %s", id);
	*row = found;
	found = (struct task_row){.id = ""};
	return true;
}

static inline bool played_refresh(struct app *app, struct task_row *row, struct err *err)
{
	AUTO_FREE char *principal = xstrdup(row->principal);
	char id[ID_LEN + 1];
	memcpy(id, row->id, sizeof(id));
	task_row_finish(row);
	*row = (struct task_row){.id = ""};
	return row_task_by_id(app->db, principal, id, row, err) == 1;
}

bool task_wait(struct app *app, struct task_row *row, int64_t wait_ms, int64_t stdout_offset,
	       int64_t stderr_offset, task_tick *keep_waiting, void *ctx, struct err *err)
{
	played.waits++;
	played.wait_ms = wait_ms;
	played.stdout_offset = stdout_offset;
	played.stderr_offset = stderr_offset;
	played.client_is_gone = !keep_waiting(ctx);
	if (played.during_wait != NULL)
		played.during_wait(row);
	return played_refresh(app, row, err);
}

bool task_cancel(struct app *app, struct task_row *row, struct err *err)
{
	played.cancels++;
	if (row->state == TASK_RUNNING && played.cancel_state != TASK_NONE)
		played_end(row->id, played.cancel_state, 0,
			   played.cancel_state == TASK_CANCELLED ? 15 : 0);
	return played_refresh(app, row, err);
}

int task_log(struct app *app, const struct task_row *row, struct err *err)
{
	(void)app;
	if (played.log_fails == ERR_NONE)
		return played_dir(row->id, false);
	err_set(err, played.log_fails, "played: no log");
	return -1;
}

bool task_adopt(struct app *app, const struct sandbox_row *sandbox, struct session *session,
		const struct exec_options *options, struct task_row *row, struct err *err)
{
	played.adopts++;
	if (played.adopt_fails != ERR_NONE)
		return err_set(err, played.adopt_fails, "played: not handed over");
	if (!played_insert(app, sandbox, options, TASK_ORIGIN_EXEC, NULL, row, err))
		return false;
	AUTO_BUF out = BUF_INIT, errors = BUF_INIT;
	capture_text(&session->out, &out);
	capture_text(&session->err, &errors);
	played_print(row->id, RECORD_STDOUT, buf_str(&out), out.len);
	played_print(row->id, RECORD_STDERR, buf_str(&errors), errors.len);
	session_let_go(session);
	return true;
}

/* --- calls --------------------------------------------------------------------------------- */

/* Starts a job in sandbox "work" and leaves its id in played.last_id. */
#define played_job() kit_ok(&tool_run_background, "{'sandbox':'work','command':'make all'}")

/* A time that passed since a test began. */
#define played_is_recent(seconds) \
	((seconds) <= clock_wall_ms() / 1000 && (seconds) >= clock_wall_ms() / 1000 - 60)

#endif
