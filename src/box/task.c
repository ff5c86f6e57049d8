/*
 * The verbs. A row is made first, since rows are what a task is found by; then comes the directory,
 * then the supervisor (task_launch.c). Whoever finds a row brings it up to date (task_settle.c), so
 * a process that is killed anywhere in here leaves nothing that reads "running" for ever.
 *
 * Destroying a sandbox needs nothing from here: its end closes the supervisor's connection, and the
 * task becomes unknown with that reason; a start that is under way then fails to enter the sandbox.
 */
#include "box/task.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "box/task_launch.h"
#include "box/task_reserve.h"
#include "box/task_settle.h"
#include "run/record.h"
#include "store/task_dir.h"

#define REQUEST_ID_MAX 128
#define START_ATTEMPTS 3 /* the task of a request id may be taken back while it is looked at */
#define PAUSE_MIN_MS   5 /* between two looks at a task; doubles up to the second */
#define PAUSE_MAX_MS   100
#define TICK_MS        500

/* --- checks -------------------------------------------------------------------------------- */

static bool check_request_id(const char *id, struct err *err)
{
	if (id == NULL)
		return true;
	size_t len = strlen(id);
	if (len < 1 || len > REQUEST_ID_MAX) {
		err_set(err, ERR_INVALID, "request_id has %zu characters; allowed are 1 to %d", len,
			REQUEST_ID_MAX);
		return err_hint(err, "Use a new short word for each task, and the same one only to "
				     "repeat a call whose answer was lost.");
	}
	for (const char *c = id; *c != '\0'; c++)
		if (*c < ' ' || *c > '~')
			return err_set(err, ERR_INVALID,
				       "request_id holds a character that is not printable ASCII");
	return true;
}

/* The operator may allow jobs more than the tools do. */
static int64_t timeout_max_ms(const struct app *app, enum task_origin origin)
{
	int64_t seconds = TASK_TIMEOUT_MAX;
	if (origin == TASK_ORIGIN_JOB && app->conf->job_timeout > seconds)
		seconds = app->conf->job_timeout;
	return seconds * 1000;
}

static bool check_timeout(const struct app *app, const struct task_options *options,
			  struct err *err)
{
	int64_t timeout_ms = options->exec.timeout_ms;
	int64_t max_ms = timeout_max_ms(app, options->origin);
	if (timeout_ms > 0 && timeout_ms <= max_ms)
		return true;
	err_set(err, ERR_INVALID,
		"timeout is %lld ms; a background task may take 1 to %lld seconds",
		(long long)timeout_ms, (long long)(max_ms / 1000));
	return err_hint(err, "Split longer work into several tasks. Nothing was started.");
}

bool task_check(const struct app *app, const struct task_options *options, struct err *err)
{
	struct exec_options exec = options->exec;
	exec.timeout_ms = 0; /* its limit is another one */
	return exec_check(app, &exec, err) && check_timeout(app, options, err) &&
	       check_request_id(options->request_id, err);
}

/* --- start --------------------------------------------------------------------------------- */

static void replace_row(struct task_row *row, struct task_row *by)
{
	task_row_finish(row);
	*row = *by;
	*by = (struct task_row){.id = ""};
}

static void set_unconfirmed(struct task_row *row)
{
	row->state = TASK_UNKNOWN;
	free(row->reason);
	row->reason = xstrdup("its start is not confirmed yet");
}

static bool launch_row(struct app *app, const struct task_options *options, struct task_row *row,
		       struct err *err)
{
	switch (task_launch(app, row, &options->exec, NULL, err)) {
	case TASK_LAUNCH_NONE:
		return false;
	case TASK_LAUNCH_READY:
		return task_settle(app, row, err);
	case TASK_LAUNCH_DIED:
		return task_settle_unstarted(
			app, row,
			"what was to look after it was killed while it started; if the command had "
			"begun, it was ended",
			err);
	case TASK_LAUNCH_LATE:
		set_unconfirmed(row);
		return true;
	}
	return err_set(err, ERR_INTERNAL, "a launch without a result");
}

static bool same_command(const struct task_options *options, const struct task_row *row,
			 struct err *err)
{
	if (strcmp(options->exec.command, row->command) == 0)
		return true;
	err_set(err, ERR_CONFLICT,
		"request_id %s belongs to task %s in this sandbox, which has another command",
		row->request_id, row->id);
	return err_hint(err, "Use a new request_id for a new task. Nothing was started.");
}

/* Somebody else's start with the same request id: waits until it is one. 1: it is, or takes long;
 * 0: it was taken back; -1. */
static int await_start(struct app *app, struct task_row *row, struct err *err)
{
	int64_t until_ms = clock_mono_ms() + TASK_READY_MS;
	for (;;) {
		struct err gone = ERR_INIT;
		if (!task_settle(app, row, &gone)) {
			if (gone.code == ERR_NOT_FOUND)
				return 0;
			*err = gone;
			return -1;
		}
		if (row->started_at != 0 || row->state != TASK_RUNNING ||
		    clock_mono_ms() >= until_ms)
			return 1;
		clock_sleep_ms(PAUSE_MIN_MS);
	}
}

/* 1 done, 0 again, -1 with err. */
static int try_start(struct app *app, const struct sandbox_row *sandbox,
		     const struct task_options *options, struct task_row *row, bool *existing,
		     struct err *err)
{
	AUTO_TASK_ROW fresh = {0};
	task_row_make(sandbox, &options->exec, options->origin, options->request_id, &fresh);
	int rc = task_reserve(app, sandbox, &fresh, err);
	if (rc < 0)
		return -1;
	*existing = rc == 0;
	if (*existing) {
		if (!same_command(options, &fresh, err))
			return -1;
		rc = await_start(app, &fresh, err);
	} else {
		rc = launch_row(app, options, &fresh, err) ? 1 : -1;
	}
	if (rc == 1)
		replace_row(row, &fresh);
	return rc;
}

bool task_start(struct app *app, const struct sandbox_row *sandbox, struct sandbox_use *use,
		const struct task_options *options, struct task_row *row, bool *existing,
		struct err *err)
{
	/* A sandbox that is down may take a while to come up; that is not a part of what a
	 * supervisor has time for. */
	if (!task_check(app, options, err) || !sandbox_start(app, sandbox, use, err))
		return false;
	for (int i = 0; i < START_ATTEMPTS; i++) {
		int rc = try_start(app, sandbox, options, row, existing, err);
		if (rc != 0)
			return rc == 1;
	}
	return err_set(err, ERR_BUSY,
		       "other calls with the same request_id failed to start the task");
}

bool task_adopt(struct app *app, const struct sandbox_row *sandbox, struct session *session,
		const struct exec_options *options, struct task_row *row, struct err *err)
{
	struct exec_options resolved = *options;
	AUTO_TASK_ROW fresh = {0};
	if (resolved.timeout_ms == 0)
		resolved.timeout_ms = app->conf->exec_timeout * 1000;
	task_row_make(sandbox, &resolved, TASK_ORIGIN_EXEC, NULL, &fresh);
	fresh.started_at = fresh.created_at - (clock_mono_ms() - session->start_ms);
	if (task_reserve(app, sandbox, &fresh, err) != 1 ||
	    task_launch(app, &fresh, &resolved, session, err) != TASK_LAUNCH_READY)
		return false;
	replace_row(row, &fresh);
	return true;
}

bool task_outlives_sandbox(const struct sandbox_row *sandbox, int64_t timeout_ms)
{
	return sandbox->expires_at != 0 && clock_wall_ms() + timeout_ms > sandbox->expires_at;
}

/* --- find ---------------------------------------------------------------------------------- */

static bool check_id(const char *id, struct err *err)
{
	if (id != NULL && id_is_valid(id))
		return true;
	AUTO_BUF shown = BUF_INIT;
	text_quote(&shown, id == NULL ? "" : id, id == NULL ? 0 : strlen(id), 64);
	err_set(err, ERR_INVALID, "\"%s\" is no task id", buf_str(&shown));
	return err_hint(err, "An id has 32 characters, 0 to 9 and a to f, as start_task and "
			     "run_background return it (job_id and task_id are the same).");
}

bool task_find(struct app *app, const char *principal, const char *id, const char *sandbox_id,
	       struct task_row *row, struct err *err)
{
	AUTO_TASK_ROW found = {0};
	if (!check_id(id, err))
		return false;
	int rc = row_task_by_id(app->db, principal, id, &found, err);
	if (rc < 0)
		return false;
	if (rc == 0 || (sandbox_id != NULL && strcmp(found.sandbox_id, sandbox_id) != 0)) {
		err_set(err, ERR_NOT_FOUND, "there is no task %s%s", id,
			sandbox_id != NULL ? " in this sandbox" : "");
		return err_hint(err, "list_jobs shows the tasks that there are. A finished one is "
				     "forgotten when its sandbox needs room for others.");
	}
	if (!task_settle(app, &found, err))
		return false;
	replace_row(row, &found);
	return true;
}

int task_log(struct app *app, const struct task_row *row, struct err *err)
{
	struct err missing = ERR_INIT;
	int fd = task_dir_open(&app->spool, row->id, &missing);
	if (fd >= 0 || missing.code != ERR_NOT_FOUND) {
		*err = missing;
		return fd;
	}
	if (row->state == TASK_RUNNING) {
		err_set(err, ERR_BUSY, "task %s is just being started; it has no output yet",
			row->id);
	} else {
		err_set(err, ERR_GONE,
			"task %s has no output on the server any more; it is kept for %lld s after "
			"the end",
			row->id, (long long)app->conf->job_log_retention);
		err_hint(err, "What it wrote to files is still in /workspace, unless the sandbox "
			      "was destroyed.");
	}
	return -1;
}

/* --- wait and cancel ----------------------------------------------------------------------- */

struct pace {
	int64_t until_ms, tick_at_ms, pause_ms;
};

static struct pace pace_begin(int64_t wait_ms)
{
	int64_t now_ms = clock_mono_ms();
	return (struct pace){now_ms + wait_ms, now_ms + TICK_MS, PAUSE_MIN_MS};
}

/* Sleeps until the next look; false when the time is over. */
static bool pace_sleep(struct pace *pace)
{
	int64_t left_ms = pace->until_ms - clock_mono_ms();
	if (left_ms <= 0)
		return false;
	clock_sleep_ms(left_ms < pace->pause_ms ? left_ms : pace->pause_ms);
	pace->pause_ms = pace->pause_ms * 2 < PAUSE_MAX_MS ? pace->pause_ms * 2 : PAUSE_MAX_MS;
	return true;
}

/* What arrives beyond the cap cannot be read by offset, so nobody waits for it. */
static bool is_beyond(int64_t seen, int64_t offset)
{
	return offset >= 0 && (seen < RECORD_KEPT_MAX ? seen : RECORD_KEPT_MAX) > offset;
}

/* 1: there is output beyond an offset; 0: not yet; -1 with err. */
static int has_output(struct app *app, const struct task_row *row, int64_t stdout_offset,
		      int64_t stderr_offset, struct err *err)
{
	struct err missing = ERR_INIT;
	int64_t seen[RECORD_STREAMS];
	if (stdout_offset < 0 && stderr_offset < 0)
		return 0;
	AUTO_FD dirfd = task_dir_open(&app->spool, row->id, &missing);
	if (dirfd < 0 && missing.code == ERR_NOT_FOUND)
		return 0;
	if (dirfd < 0 || !record_seen(dirfd, seen, &missing)) {
		*err = missing;
		return -1;
	}
	return is_beyond(seen[RECORD_STDOUT], stdout_offset) ||
	       is_beyond(seen[RECORD_STDERR], stderr_offset);
}

bool task_wait(struct app *app, struct task_row *row, int64_t wait_ms, int64_t stdout_offset,
	       int64_t stderr_offset, task_tick *keep_waiting, void *ctx, struct err *err)
{
	struct pace pace = pace_begin(wait_ms);
	for (;;) {
		if (!task_settle(app, row, err))
			return false;
		int rc = row->state == TASK_RUNNING
				 ? has_output(app, row, stdout_offset, stderr_offset, err)
				 : 1;
		if (rc != 0)
			return rc == 1;
		int64_t now_ms = clock_mono_ms();
		if (keep_waiting != NULL && now_ms >= pace.tick_at_ms) {
			pace.tick_at_ms = now_ms + TICK_MS;
			if (!keep_waiting(ctx))
				return true;
		}
		if (!pace_sleep(&pace))
			return true;
	}
}

/* True when the order was given: a task that is being started gets it as soon as it is visible, and
 * one that nobody looks after any more is for the next look. */
static bool order_cancel(struct app *app, const struct task_row *row)
{
	struct err err = ERR_INIT;
	AUTO_FD dirfd = task_dir_open(&app->spool, row->id, &err);
	if (dirfd >= 0 && task_dir_order(dirfd, TASK_ORDER_CANCEL, &err))
		return true;
	if (err.code != ERR_NOT_FOUND && err.code != ERR_CONFLICT)
		log_err(LOG_WARN, "task_cancel", &err);
	return false;
}

bool task_cancel(struct app *app, struct task_row *row, struct err *err)
{
	struct pace pace = pace_begin(TASK_CANCEL_WAIT_MS);
	bool ordered = false;
	for (;;) {
		if (!task_settle(app, row, err))
			return false;
		if (row->state != TASK_RUNNING)
			return true;
		if (!ordered)
			ordered = order_cancel(app, row);
		if (!pace_sleep(&pace))
			return true;
	}
}
