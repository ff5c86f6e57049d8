/* See task_reserve.h. */
#include "box/task_reserve.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "box/task_settle.h"
#include "store/task_dir.h"

#define FRESH_MS       60000           /* finished less than that ago: not read yet, perhaps */
#define TASKS_KEPT_MAX (4 * TASKS_MAX) /* with fresh ones; up to 3 MiB of disk each */
#define RETIRE_MAX     8               /* by one start */

void task_row_make(const struct sandbox_row *sandbox, const struct exec_options *options,
		   enum task_origin origin, const char *request_id, struct task_row *row)
{
	*row = (struct task_row){
		.principal = xstrdup(sandbox->principal),
		.request_id = request_id == NULL ? NULL : xstrdup(request_id),
		.origin = origin,
		.command = xstrdup(options->command),
		.timeout_ms = options->timeout_ms,
		.state = TASK_RUNNING,
		.created_at = clock_wall_ms(),
	};
	id_make(row->id);
	memcpy(row->sandbox_id, sandbox->id, sizeof(row->sandbox_id));
}

struct finished {
	char id[ID_LEN + 1];
	int64_t at;
};

static bool note_finished(void *ctx, const struct task_row *row)
{
	struct buf *list = ctx;
	struct finished finished = {.at = row->finished_at};
	memcpy(finished.id, row->id, sizeof(finished.id));
	if (row->state != TASK_RUNNING)
		buf_append(list, &finished, sizeof(finished));
	return true;
}

static int compare_finished(const void *a, const void *b)
{
	const struct finished *x = a, *y = b;
	return (x->at > y->at) - (x->at < y->at);
}

static bool too_many(int64_t running, struct err *err)
{
	err_set(err, ERR_QUOTA,
		"%lld background tasks run in this sandbox; the limit is %d, so nothing was "
		"started",
		(long long)running, TASKS_MAX);
	return err_hint(err,
			"Wait until some have ended, or end some with stop_job or cancel_task; "
			"list_jobs shows them.");
}

/* Takes the rows away of finished tasks that there are too many of. victims: their ids. */
static bool retire_rows(struct app *app, const struct sandbox_row *sandbox, int64_t count,
			struct buf *victims, struct err *err)
{
	AUTO_BUF list = BUF_INIT;
	int64_t now = clock_wall_ms();
	if (!row_task_each(app->db, sandbox->principal, sandbox->id, INT64_MAX, note_finished,
			   &list, err))
		return false;
	size_t number = list.len / sizeof(struct finished);
	struct finished *finished = (struct finished *)(void *)list.data;
	if (number > 0)
		qsort(finished, number, sizeof(*finished), compare_finished);
	for (size_t i = 0; i < number && i < RETIRE_MAX && count >= TASKS_MAX; i++, count--) {
		/* Whoever started it may be about to ask for it. */
		if (count < TASKS_KEPT_MAX && finished[i].at > now - FRESH_MS)
			break;
		if (row_task_delete(app->db, finished[i].id, err) < 0)
			return false;
		buf_append(victims, finished[i].id, sizeof(finished[i].id));
	}
	return true;
}

/* Makes room for one row, inside the transaction. */
static bool make_room(struct app *app, const struct sandbox_row *sandbox, struct buf *victims,
		      struct err *err)
{
	int64_t count = row_task_count(app->db, sandbox->id, err);
	if (count < TASKS_MAX)
		return count >= 0;
	int64_t running = row_task_count_running(app->db, sandbox->id, err);
	if (running < 0)
		return false;
	if (running >= TASKS_MAX)
		return too_many(running, err);
	return retire_rows(app, sandbox, count, victims, err);
}

/* 1: row is in the database; 0: the request id is that of another task, which row is now; -1. */
static int insert_row(struct app *app, const struct sandbox_row *sandbox, struct task_row *row,
		      struct buf *victims, struct err *err)
{
	AUTO_TX tx = TX_INIT;
	AUTO_TASK_ROW existing = {0};
	int rc = 0;
	if (!db_begin(app->db, &tx, err))
		return -1;
	if (row->request_id != NULL)
		rc = row_task_by_request(app->db, sandbox->principal, sandbox->id, row->request_id,
					 &existing, err);
	if (rc == 1) {
		task_row_finish(row);
		*row = existing;
		existing = (struct task_row){.id = ""};
	}
	if (rc != 0)
		return rc == 1 ? 0 : -1;
	if (!make_room(app, sandbox, victims, err))
		return -1;
	/* Together with the row: from here on the end of a session leaves the sandbox alone. */
	if (row_sandbox_retain(app->db, sandbox->id, err) < 0)
		return -1;
	rc = row_task_insert(app->db, row, err);
	if (rc == 0) /* it was looked for in this transaction */
		err_set(err, ERR_INTERNAL, "a request id is taken by nobody");
	return rc == 1 && db_commit(&tx, err) ? 1 : -1;
}

/* Ids of the tasks that read as running. */
static bool note_running(void *ctx, const struct task_row *row)
{
	struct buf *ids = ctx;
	if (row->state == TASK_RUNNING)
		buf_append(ids, row->id, sizeof(row->id));
	return true;
}

/* Some may have lost their supervisors without anybody having looked. */
static void settle_all(struct app *app, const struct sandbox_row *sandbox)
{
	struct err err = ERR_INIT;
	AUTO_BUF ids = BUF_INIT;
	if (!row_task_each(app->db, sandbox->principal, sandbox->id, INT64_MAX, note_running, &ids,
			   &err))
		log_err(LOG_WARN, "task_settle", &err);
	for (size_t i = 0; i < ids.len; i += ID_LEN + 1) {
		AUTO_TASK_ROW row = {0};
		err = (struct err)ERR_INIT;
		int rc = row_task_by_id(app->db, sandbox->principal, ids.data + i, &row, &err);
		if (rc < 0 || (rc == 1 && !task_settle(app, &row, &err)))
			log_err(LOG_WARN, "task_settle", &err);
	}
}

static void discard_all(struct app *app, const struct buf *ids)
{
	for (size_t i = 0; i < ids->len; i += ID_LEN + 1) {
		struct err err = ERR_INIT;
		if (!task_dir_discard(&app->spool, ids->data + i, &err))
			log_err(LOG_WARN, "task_retire", &err);
	}
}

/* Directories go after their rows: one that is left over is found by nobody. */
int task_reserve(struct app *app, const struct sandbox_row *sandbox, struct task_row *row,
		 struct err *err)
{
	AUTO_BUF victims = BUF_INIT;
	struct err full = ERR_INIT;
	int rc = insert_row(app, sandbox, row, &victims, &full);
	if (rc < 0 && full.code == ERR_QUOTA) {
		settle_all(app, sandbox);
		full = (struct err)ERR_INIT;
		rc = insert_row(app, sandbox, row, &victims, &full);
	}
	if (rc == 1)
		discard_all(app, &victims);
	if (rc < 0)
		*err = full;
	return rc;
}
