/*
 * Statements of table task. A row leaves "running" once: every change of the state asks for it.
 */
#include "store/row_task.h"

#include <assert.h>
#include <string.h>

static const char *const state_names[TASK_STATE__MAX] = {
	[TASK_NONE] = "none",       [TASK_RUNNING] = "running",     [TASK_SUCCEEDED] = "succeeded",
	[TASK_FAILED] = "failed",   [TASK_CANCELLED] = "cancelled", [TASK_TIMED_OUT] = "timed_out",
	[TASK_UNKNOWN] = "unknown",
};

static const char *const origin_names[TASK_ORIGIN__MAX] = {
	[TASK_ORIGIN_NONE] = "none",
	[TASK_ORIGIN_JOB] = "job",
	[TASK_ORIGIN_TASK] = "task",
	[TASK_ORIGIN_EXEC] = "exec",
};

/* In the order in which read_row takes them. */
#define COLUMNS \
	"id, sandbox_id, principal, request_id, origin, command, timeout_ms, state, exit_code, " \
	"signal, reason, cpu_ms, max_rss_kib, survivors, created_at, started_at, finished_at"

enum statement {
	BY_ID,
	BY_REQUEST,
	INSERT,
	FINISH,
	STARTED,
	DELETE,
	COUNT,
	COUNT_RUNNING,
	EACH,
	EACH_OF_SANDBOX,
	EACH_RUNNING,
	IDS_OF_LOGS,
	IDS_OF_SANDBOX,
	COUNT_LOGS,
	LOG_GONE,
	HAS_EARLY_LOGS,
	RESET_LOGS
};

#define NEWEST_FIRST " ORDER BY created_at DESC, id DESC LIMIT :limit"

static const char *const sql[] = {
	[BY_ID] = "SELECT " COLUMNS " FROM task WHERE id = :id AND principal = :principal",
	[BY_REQUEST] = "SELECT " COLUMNS " FROM task WHERE principal = :principal"
		       " AND sandbox_id = :sandbox_id AND request_id = :request_id",
	/* Only a request id that is taken is forgiven; any other conflict is a fault of ours. */
	[INSERT] = "INSERT INTO task (" COLUMNS ")"
		   " VALUES (:id, :sandbox_id, :principal, :request_id, :origin, :command,"
		   " :timeout_ms, :state, :exit_code, :signal, :reason, :cpu_ms, :max_rss_kib,"
		   " :survivors, :created_at, :started_at, :finished_at)"
		   " ON CONFLICT (principal, sandbox_id, request_id)"
		   " WHERE request_id IS NOT NULL DO NOTHING",
	[FINISH] = "UPDATE task SET state = :state, exit_code = :exit_code, signal = :signal,"
		   " reason = :reason, cpu_ms = :cpu_ms, max_rss_kib = :max_rss_kib,"
		   " survivors = :survivors, finished_at = :finished_at,"
		   " log_since = :finished_at,"
		   " started_at = CASE WHEN :started_at > 0 THEN :started_at ELSE started_at END"
		   " WHERE id = :id AND state = 'running'",
	[STARTED] = "UPDATE task SET started_at = :started_at WHERE id = :id AND state = 'running'",
	[DELETE] = "DELETE FROM task WHERE id = :id",
	[COUNT] = "SELECT count(*) FROM task WHERE sandbox_id = :sandbox_id",
	[COUNT_RUNNING] = "SELECT count(*) FROM task"
			  " WHERE sandbox_id = :sandbox_id AND state = 'running'",
	[EACH] = "SELECT " COLUMNS " FROM task WHERE principal = :principal" NEWEST_FIRST,
	[EACH_OF_SANDBOX] = "SELECT " COLUMNS " FROM task"
			    " WHERE sandbox_id = :sandbox_id"
			    " AND principal = :principal" NEWEST_FIRST,
	/* Few of many run: in the order of the ids it would look at all. */
	[EACH_RUNNING] = "SELECT " COLUMNS " FROM task INDEXED BY task_running"
			 " WHERE state = 'running' AND id > :beyond ORDER BY id LIMIT :limit",
	[IDS_OF_LOGS] = "SELECT id FROM task WHERE log_since > 0 AND log_since <= :until"
			" AND state <> 'running' ORDER BY log_since LIMIT :limit",
	[IDS_OF_SANDBOX] = "SELECT id FROM task WHERE sandbox_id = :sandbox_id LIMIT :limit",
	[COUNT_LOGS] = "SELECT count(*) FROM task WHERE log_since > 0 AND log_since <= :until"
		       " AND state <> 'running'",
	[LOG_GONE] = "UPDATE task SET log_since = 0 WHERE id = :id AND log_since > 0",
	[HAS_EARLY_LOGS] = "SELECT 1 FROM task WHERE log_since > 0 AND log_since > :latest LIMIT 1",
	[RESET_LOGS] = "UPDATE task SET log_since = :now WHERE rowid IN (SELECT rowid FROM task"
		       " WHERE log_since > 0 AND log_since > :latest LIMIT :limit)",
};

/* --- words --------------------------------------------------------------------------------- */

/* Place of a word among names[1..count-1], or 0. */
static int find_name(const char *name, const char *const *names, int count)
{
	for (int i = 1; name != NULL && i < count; i++)
		if (strcmp(name, names[i]) == 0)
			return i;
	return 0;
}

const char *task_state_name(enum task_state state)
{
	return state_names[state];
}

bool task_state_parse(const char *name, enum task_state *state)
{
	int found = find_name(name, state_names, TASK_STATE__MAX);
	if (found > 0)
		*state = (enum task_state)found;
	return found > 0;
}

const char *task_origin_name(enum task_origin origin)
{
	return origin_names[origin];
}

bool task_origin_parse(const char *name, enum task_origin *origin)
{
	int found = find_name(name, origin_names, TASK_ORIGIN__MAX);
	if (found > 0)
		*origin = (enum task_origin)found;
	return found > 0;
}

/* --- rows ---------------------------------------------------------------------------------- */

void task_row_finish(struct task_row *row)
{
	free(row->principal);
	free(row->request_id);
	free(row->command);
	free(row->reason);
	memset(row, 0, sizeof(*row));
}

static const char *read_word(sqlite3_stmt *stmt, int column)
{
	return (const char *)sqlite3_column_text(stmt, column);
}

static void read_row(sqlite3_stmt *stmt, struct task_row *row)
{
	int column = 0;
	db_column_id(stmt, column++, row->id);
	db_column_id(stmt, column++, row->sandbox_id);
	row->principal = db_column_dup(stmt, column++);
	row->request_id = db_column_dup(stmt, column++);
	task_origin_parse(read_word(stmt, column++), &row->origin);
	row->command = db_column_dup(stmt, column++);
	row->timeout_ms = sqlite3_column_int64(stmt, column++);
	task_state_parse(read_word(stmt, column++), &row->state);
	row->has_exit_code = sqlite3_column_type(stmt, column) != SQLITE_NULL;
	row->exit_code = sqlite3_column_int(stmt, column++);
	row->signal = sqlite3_column_int(stmt, column++);
	row->reason = db_column_dup(stmt, column++);
	row->cpu_ms = sqlite3_column_int64(stmt, column++);
	row->max_rss_kib = sqlite3_column_int64(stmt, column++);
	row->survivors = sqlite3_column_int(stmt, column++);
	row->created_at = sqlite3_column_int64(stmt, column++);
	row->started_at = sqlite3_column_int64(stmt, column++);
	row->finished_at = sqlite3_column_int64(stmt, column);
}

/* Steps a bound SELECT once. */
static int read_one(struct db *db, sqlite3_stmt *stmt, struct task_row *row, struct err *err)
{
	int rc = db_step(db, stmt, err);
	if (rc == 1)
		read_row(stmt, row);
	return rc;
}

int row_task_by_id(struct db *db, const char *principal, const char *id, struct task_row *row,
		   struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[BY_ID], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":principal", principal);
	db_bind_text(stmt, ":id", id);
	return read_one(db, stmt, row, err);
}

int row_task_by_request(struct db *db, const char *principal, const char *sandbox_id,
			const char *request_id, struct task_row *row, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[BY_REQUEST], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":principal", principal);
	db_bind_text(stmt, ":sandbox_id", sandbox_id);
	db_bind_text(stmt, ":request_id", request_id);
	return read_one(db, stmt, row, err);
}

/* --- changes ------------------------------------------------------------------------------- */

/* How it stands: what INSERT and FINISH have in common. */
static void bind_outcome(sqlite3_stmt *stmt, const struct task_row *row)
{
	db_bind_text(stmt, ":id", row->id);
	db_bind_text(stmt, ":state", state_names[row->state]);
	if (row->has_exit_code)
		db_bind_int(stmt, ":exit_code", row->exit_code);
	else
		db_bind_null(stmt, ":exit_code");
	if (row->signal != 0)
		db_bind_int(stmt, ":signal", row->signal);
	else
		db_bind_null(stmt, ":signal");
	db_bind_text(stmt, ":reason", row->reason);
	db_bind_int(stmt, ":cpu_ms", row->cpu_ms);
	db_bind_int(stmt, ":max_rss_kib", row->max_rss_kib);
	db_bind_int(stmt, ":survivors", row->survivors);
	db_bind_int(stmt, ":started_at", row->started_at);
	db_bind_int(stmt, ":finished_at", row->finished_at);
}

int row_task_insert(struct db *db, const struct task_row *row, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[INSERT], err);
	if (stmt == NULL)
		return -1;
	bind_outcome(stmt, row);
	db_bind_text(stmt, ":sandbox_id", row->sandbox_id);
	db_bind_text(stmt, ":principal", row->principal);
	db_bind_text(stmt, ":request_id", row->request_id);
	db_bind_text(stmt, ":origin", origin_names[row->origin]);
	db_bind_text(stmt, ":command", row->command);
	db_bind_int(stmt, ":timeout_ms", row->timeout_ms);
	db_bind_int(stmt, ":created_at", row->created_at);
	return db_change(db, stmt, err);
}

int row_task_finish(struct db *db, const struct task_row *row, struct err *err)
{
	assert(row->state > TASK_RUNNING);
	AUTO_STMT *stmt = db_prepare(db, sql[FINISH], err);
	if (stmt == NULL)
		return -1;
	bind_outcome(stmt, row);
	return db_change(db, stmt, err);
}

int row_task_started(struct db *db, const char *id, int64_t started_at, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[STARTED], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", id);
	db_bind_int(stmt, ":started_at", started_at);
	return db_change(db, stmt, err);
}

int row_task_delete(struct db *db, const char *id, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[DELETE], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", id);
	return db_change(db, stmt, err);
}

/* --- sets ---------------------------------------------------------------------------------- */

static int64_t count(struct db *db, enum statement which, const char *sandbox_id, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[which], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":sandbox_id", sandbox_id);
	int rc = db_step(db, stmt, err);
	assert(rc != 0);
	return rc < 0 ? -1 : sqlite3_column_int64(stmt, 0);
}

int64_t row_task_count(struct db *db, const char *sandbox_id, struct err *err)
{
	return count(db, COUNT, sandbox_id, err);
}

int64_t row_task_count_running(struct db *db, const char *sandbox_id, struct err *err)
{
	return count(db, COUNT_RUNNING, sandbox_id, err);
}

/* All rows of the bound SELECT; false with err and what was read so far. */
static bool read_all(struct db *db, sqlite3_stmt *stmt, struct task_row **rows, size_t *number,
		     struct err *err)
{
	size_t room = 0;
	int rc;
	while ((rc = db_step(db, stmt, err)) == 1) {
		if (*number == room) {
			room = room == 0 ? 16 : room * 2;
			*rows = xrealloc(*rows, room * sizeof(**rows));
		}
		memset(&(*rows)[*number], 0, sizeof(**rows));
		read_row(stmt, &(*rows)[(*number)++]);
	}
	return rc == 0;
}

/* Releases the bound SELECT. Everything is read before the first visit, as in row_sandbox_each. */
static bool visit_all(struct db *db, sqlite3_stmt **stmt, row_task_visit *visit, void *ctx,
		      struct err *err)
{
	struct task_row *rows = NULL;
	size_t number = 0;
	bool ok = read_all(db, *stmt, &rows, &number, err);
	db_release(stmt);
	for (size_t i = 0; ok && i < number && visit(ctx, &rows[i]); i++)
		;
	for (size_t i = 0; i < number; i++)
		task_row_finish(&rows[i]);
	free(rows);
	return ok;
}

bool row_task_each(struct db *db, const char *principal, const char *sandbox_id, int64_t limit,
		   row_task_visit *visit, void *ctx, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[sandbox_id == NULL ? EACH : EACH_OF_SANDBOX], err);
	if (stmt == NULL)
		return false;
	db_bind_text(stmt, ":principal", principal);
	if (sandbox_id != NULL)
		db_bind_text(stmt, ":sandbox_id", sandbox_id);
	db_bind_int(stmt, ":limit", limit < 0 ? 0 : limit);
	return visit_all(db, &stmt, visit, ctx, err);
}

/* --- for the reaper ------------------------------------------------------------------------ */

bool row_task_each_running(struct db *db, const char *beyond, int64_t limit, row_task_visit *visit,
			   void *ctx, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[EACH_RUNNING], err);
	if (stmt == NULL)
		return false;
	db_bind_text(stmt, ":beyond", beyond);
	db_bind_int(stmt, ":limit", limit);
	return visit_all(db, &stmt, visit, ctx, err);
}

int64_t row_task_ids_of_logs(struct db *db, int64_t until, int64_t limit, struct buf *ids,
			     struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[IDS_OF_LOGS], err);
	if (stmt == NULL)
		return -1;
	db_bind_int(stmt, ":until", until);
	db_bind_int(stmt, ":limit", limit);
	return db_read_ids(db, stmt, ids, err);
}

int64_t row_task_ids_of_sandbox(struct db *db, const char *sandbox_id, int64_t limit,
				struct buf *ids, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[IDS_OF_SANDBOX], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":sandbox_id", sandbox_id);
	db_bind_int(stmt, ":limit", limit);
	return db_read_ids(db, stmt, ids, err);
}

int64_t row_task_count_logs(struct db *db, int64_t until, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[COUNT_LOGS], err);
	if (stmt == NULL)
		return -1;
	db_bind_int(stmt, ":until", until);
	return db_step(db, stmt, err) == 1 ? sqlite3_column_int64(stmt, 0) : -1;
}

int row_task_log_gone(struct db *db, const char *id, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[LOG_GONE], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", id);
	return db_change(db, stmt, err);
}

int row_task_reset_logs(struct db *db, int64_t latest, int64_t now, int64_t limit, struct err *err)
{
	AUTO_STMT *look = db_prepare(db, sql[HAS_EARLY_LOGS], err);
	if (look == NULL)
		return -1;
	db_bind_int(look, ":latest", latest);
	int rc = db_step(db, look, err);
	db_release(&look);
	if (rc != 1)
		return rc;
	AUTO_STMT *stmt = db_prepare(db, sql[RESET_LOGS], err);
	if (stmt == NULL)
		return -1;
	db_bind_int(stmt, ":latest", latest);
	db_bind_int(stmt, ":now", now);
	db_bind_int(stmt, ":limit", limit);
	return db_changes(db, stmt, err);
}
