/*
 * Statements of table sandbox. The states are kept as words in the database; the index
 * sandbox_name makes sure that one name has at most one incarnation that is live or kept.
 */
#include "store/row_sandbox.h"

#include <assert.h>
#include <string.h>

static const char *const state_names[SANDBOX_STATE__MAX] = {
	[SANDBOX_NONE] = "none",
	[SANDBOX_LIVE] = "live",
	[SANDBOX_KEPT] = "kept",
	[SANDBOX_GONE] = "gone",
};

/* In the order in which read_row takes them. */
#define COLUMNS \
	"id, files_id, principal, name, state, template, network, env, labels, " \
	"created_at, last_used_at, ttl_ms, expires_at, ended_at, explicit, session_id, " \
	"ends_with_session, is_reserve, gives_way"
/* A stamp from the future (the clock was set back) is due as well. */
#define STAMP_IS_DUE "(last_used_at > :now OR last_used_at <= :now - :every_ms)"
/* A task's stamp left the end of the lifetime behind. */
#define END_IS_DUE "(ttl_ms > 0 AND expires_at < last_used_at + ttl_ms)"

enum statement {
	BY_ID,
	BY_NAME,
	ANY,
	INSERT,
	MOVE,
	END,
	IS_DUE,
	TOUCH,
	STAMP_DUE,
	STAMP,
	COUNT_LIVE,
	EACH,
	OVER,
	UNUSED,
	USED_SINCE,
	GIVING_WAY,
	KEPT,
	FUTURE,
	UNFUTURE,
	RETAIN,
	STAY,
	END_WITH_SESSION,
	SETTLED,
	OF_SESSION
};

static const char *const sql[] = {
	[BY_ID] = "SELECT " COLUMNS " FROM sandbox WHERE id = :id AND principal = :principal",
	[BY_NAME] = "SELECT " COLUMNS " FROM sandbox"
		    " WHERE principal = :principal AND name = :name AND state <> 'gone'"
		    " AND is_reserve = 0",
	[ANY] = "SELECT " COLUMNS " FROM sandbox WHERE id = :id",
	/* Only a name that is taken is forgiven; any other conflict is a fault of ours. */
	[INSERT] = "INSERT INTO sandbox (" COLUMNS ")"
		   " VALUES (:id, :files_id, :principal, :name, :state, :template, :network, :env,"
		   " :labels, :created_at, :last_used_at, :ttl_ms, :expires_at, :ended_at,"
		   " :explicit, :session_id, :ends_with_session, :is_reserve, :gives_way)"
		   " ON CONFLICT (principal, name) WHERE state <> 'gone' DO NOTHING",
	/* What was moved by somebody is nothing for the end of its session any more. */
	[MOVE] = "UPDATE sandbox SET state = :to, ends_with_session = 0,"
		 " ended_at = CASE WHEN state = 'live' THEN :now ELSE ended_at END"
		 " WHERE id = :id AND state = :from",
	/* A use meanwhile has stamped it. */
	[END] = "UPDATE sandbox SET state = 'gone', ends_with_session = 0, ended_at = :now"
		" WHERE id = :id AND state = 'live' AND last_used_at = :last_used_at"
		" AND expires_at = :expires_at",
	[IS_DUE] = "SELECT 1 FROM sandbox WHERE id = :id AND state = 'live'"
		   " AND (" STAMP_IS_DUE " OR " END_IS_DUE ")",
	[TOUCH] = "UPDATE sandbox SET last_used_at = :now,"
		  " expires_at = CASE WHEN ttl_ms > 0 THEN :now + ttl_ms ELSE 0 END"
		  " WHERE id = :id AND state = 'live' AND (" STAMP_IS_DUE " OR " END_IS_DUE ")",
	[STAMP_DUE] = "SELECT 1 FROM sandbox WHERE id = :id AND state = 'live' AND " STAMP_IS_DUE,
	[STAMP] = "UPDATE sandbox SET last_used_at = :now"
		  " WHERE id = :id AND state = 'live' AND " STAMP_IS_DUE,
	[COUNT_LIVE] = "SELECT count(*) FROM sandbox WHERE state = 'live'",
	[EACH] = "SELECT " COLUMNS " FROM sandbox"
		 " WHERE principal = :principal AND state <> 'gone' AND is_reserve = 0"
		 " ORDER BY name",
	[OVER] = "SELECT " COLUMNS " FROM sandbox"
		 " WHERE state = 'live' AND expires_at > 0 AND expires_at <= :now"
		 " ORDER BY expires_at",
	[UNUSED] = "SELECT " COLUMNS " FROM sandbox"
		   " WHERE state = 'live' AND last_used_at <= :until ORDER BY last_used_at",
	[USED_SINCE] = "SELECT " COLUMNS " FROM sandbox"
		       " WHERE state = 'live' AND last_used_at >= :since",
	[GIVING_WAY] = "SELECT " COLUMNS " FROM sandbox"
		       " WHERE state = 'live' AND gives_way = 1 AND last_used_at <= :until"
		       " ORDER BY last_used_at",
	[KEPT] = "SELECT " COLUMNS " FROM sandbox"
		 " WHERE state = 'kept' AND (ended_at IS NULL OR ended_at <= :until)",
	[FUTURE] = "SELECT " COLUMNS " FROM sandbox"
		   " WHERE (state = 'live' AND (last_used_at > :limit"
		   "  OR (ttl_ms > 0 AND expires_at > :limit + ttl_ms)))"
		   " OR (state <> 'live' AND ended_at > :limit)",
	[UNFUTURE] = "UPDATE sandbox SET last_used_at = min(last_used_at, :now),"
		     " expires_at = CASE WHEN ttl_ms > 0 THEN min(expires_at, :now + ttl_ms)"
		     "  ELSE expires_at END,"
		     " ended_at = min(ended_at, :now)"
		     " WHERE id = :id AND last_used_at = :last_used_at"
		     " AND expires_at = :expires_at",
	[RETAIN] = "UPDATE sandbox SET ends_with_session = 0"
		   " WHERE id = :id AND state = 'live' AND ends_with_session = 1",
	[STAY] = "UPDATE sandbox SET gives_way = 0"
		 " WHERE id = :id AND state = 'live' AND gives_way = 1",
	[END_WITH_SESSION] = "UPDATE sandbox SET state = 'gone', ended_at = :now"
			     " WHERE id = :id AND state = 'live' AND ends_with_session = 1",
	[SETTLED] = "UPDATE sandbox SET ends_with_session = 0"
		    " WHERE id = :id AND state = 'gone' AND ends_with_session = 1",
	[OF_SESSION] = "SELECT " COLUMNS " FROM sandbox"
		       " WHERE session_id = :session_id AND ends_with_session = 1",
};

void sandbox_row_finish(struct sandbox_row *row)
{
	free(row->principal);
	free(row->name);
	free(row->template);
	free(row->network);
	free(row->env);
	free(row->labels);
	memset(row, 0, sizeof(*row));
}

static enum sandbox_state read_state(sqlite3_stmt *stmt, int column)
{
	const char *text = (const char *)sqlite3_column_text(stmt, column);
	for (int state = SANDBOX_LIVE; text != NULL && state < SANDBOX_STATE__MAX; state++) {
		if (strcmp(text, state_names[state]) == 0)
			return (enum sandbox_state)state;
	}
	return SANDBOX_NONE;
}

static void read_row(sqlite3_stmt *stmt, struct sandbox_row *row)
{
	int column = 0;
	db_column_id(stmt, column++, row->id);
	db_column_id(stmt, column++, row->files_id);
	row->principal = db_column_dup(stmt, column++);
	row->name = db_column_dup(stmt, column++);
	/* Ids become names of directories: a row without is none to work with. */
	row->state = read_state(stmt, column++);
	if (!id_is_valid(row->id) || !id_is_valid(row->files_id))
		row->state = SANDBOX_NONE;
	row->template = db_column_dup(stmt, column++);
	row->network = db_column_dup(stmt, column++);
	row->env = db_column_dup(stmt, column++);
	row->labels = db_column_dup(stmt, column++);
	row->created_at = sqlite3_column_int64(stmt, column++);
	row->last_used_at = sqlite3_column_int64(stmt, column++);
	row->ttl_ms = sqlite3_column_int64(stmt, column++);
	row->expires_at = sqlite3_column_int64(stmt, column++);
	row->ended_at = sqlite3_column_int64(stmt, column++);
	row->is_explicit = sqlite3_column_int(stmt, column++) != 0;
	db_column_id(stmt, column++, row->session_id);
	row->ends_with_session = sqlite3_column_int(stmt, column++) != 0;
	row->is_reserve = sqlite3_column_int(stmt, column++) != 0;
	row->gives_way = sqlite3_column_int(stmt, column) != 0;
}

/* Steps a bound SELECT once. */
static int read_one(struct db *db, sqlite3_stmt *stmt, struct sandbox_row *row, struct err *err)
{
	int rc = db_step(db, stmt, err);
	if (rc == 1)
		read_row(stmt, row);
	return rc;
}

int row_sandbox_by_id(struct db *db, const char *principal, const char *id, struct sandbox_row *row,
		      struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[BY_ID], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":principal", principal);
	db_bind_text(stmt, ":id", id);
	return read_one(db, stmt, row, err);
}

int row_sandbox_any(struct db *db, const char *id, struct sandbox_row *row, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[ANY], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", id);
	return read_one(db, stmt, row, err);
}

int row_sandbox_by_name(struct db *db, const char *principal, const char *name,
			struct sandbox_row *row, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[BY_NAME], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":principal", principal);
	db_bind_text(stmt, ":name", name);
	return read_one(db, stmt, row, err);
}

int row_sandbox_insert(struct db *db, const struct sandbox_row *row, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[INSERT], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", row->id);
	db_bind_text(stmt, ":files_id", row->files_id);
	db_bind_text(stmt, ":principal", row->principal);
	db_bind_text(stmt, ":name", row->name);
	db_bind_text(stmt, ":state", state_names[row->state]);
	db_bind_text(stmt, ":template", row->template);
	db_bind_text(stmt, ":network", row->network);
	db_bind_text(stmt, ":env", row->env);
	db_bind_text(stmt, ":labels", row->labels);
	db_bind_int(stmt, ":created_at", row->created_at);
	db_bind_int(stmt, ":last_used_at", row->last_used_at);
	db_bind_int(stmt, ":ttl_ms", row->ttl_ms);
	db_bind_int(stmt, ":expires_at", row->expires_at);
	if (row->ended_at > 0)
		db_bind_int(stmt, ":ended_at", row->ended_at);
	db_bind_int(stmt, ":explicit", row->is_explicit);
	db_bind_text(stmt, ":session_id", row->session_id[0] == '\0' ? NULL : row->session_id);
	db_bind_int(stmt, ":ends_with_session", row->ends_with_session);
	db_bind_int(stmt, ":is_reserve", row->is_reserve);
	db_bind_int(stmt, ":gives_way", row->gives_way);
	return db_change(db, stmt, err);
}

int row_sandbox_move(struct db *db, const char *id, enum sandbox_state from, enum sandbox_state to,
		     int64_t now, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[MOVE], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", id);
	db_bind_text(stmt, ":from", state_names[from]);
	db_bind_text(stmt, ":to", state_names[to]);
	db_bind_int(stmt, ":now", now);
	return db_change(db, stmt, err);
}

/* Runs one of the changes that hold only as long as nobody stamped the row since it was read. */
static int change_as_seen(struct db *db, enum statement which, const struct sandbox_row *seen,
			  int64_t now, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[which], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", seen->id);
	db_bind_int(stmt, ":last_used_at", seen->last_used_at);
	db_bind_int(stmt, ":expires_at", seen->expires_at);
	db_bind_int(stmt, ":now", now);
	return db_change(db, stmt, err);
}

int row_sandbox_end(struct db *db, const struct sandbox_row *seen, int64_t now, struct err *err)
{
	return change_as_seen(db, END, seen, now, err);
}

int row_sandbox_unfuture(struct db *db, const struct sandbox_row *seen, int64_t now,
			 struct err *err)
{
	return change_as_seen(db, UNFUTURE, seen, now, err);
}

/* Binds one of the statements about the activity. */
static sqlite3_stmt *prepare_touch(struct db *db, enum statement which, const char *id, int64_t now,
				   int64_t every_ms, struct err *err)
{
	sqlite3_stmt *stmt = db_prepare(db, sql[which], err);
	if (stmt != NULL) {
		db_bind_text(stmt, ":id", id);
		db_bind_int(stmt, ":now", now);
		db_bind_int(stmt, ":every_ms", every_ms);
	}
	return stmt;
}

/* An UPDATE takes the write lock even when no row matches, so look first; the UPDATE asks again, as
 * another process may have been quicker. */
static int touch(struct db *db, enum statement due, enum statement update, const char *id,
		 int64_t now, int64_t every_ms, struct err *err)
{
	AUTO_STMT *look = prepare_touch(db, due, id, now, every_ms, err);
	if (look == NULL)
		return -1;
	int is_due = db_step(db, look, err);
	db_release(&look);
	if (is_due != 1)
		return is_due;
	AUTO_STMT *stamp = prepare_touch(db, update, id, now, every_ms, err);
	return stamp == NULL ? -1 : db_change(db, stamp, err);
}

int row_sandbox_touch(struct db *db, const char *id, int64_t now, int64_t every_ms, struct err *err)
{
	return touch(db, IS_DUE, TOUCH, id, now, every_ms, err);
}

int row_sandbox_stamp(struct db *db, const char *id, int64_t now, int64_t every_ms, struct err *err)
{
	return touch(db, STAMP_DUE, STAMP, id, now, every_ms, err);
}

int64_t row_sandbox_count_live(struct db *db, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[COUNT_LIVE], err);
	if (stmt == NULL)
		return -1;
	int rc = db_step(db, stmt, err);
	assert(rc != 0);
	return rc < 0 ? -1 : sqlite3_column_int64(stmt, 0);
}

/* All rows of the bound SELECT; false with err and what was read so far. */
static bool read_all(struct db *db, sqlite3_stmt *stmt, struct sandbox_row **rows, size_t *count,
		     struct err *err)
{
	size_t room = 0;
	int rc;
	while ((rc = db_step(db, stmt, err)) == 1) {
		if (*count == room) {
			room = room == 0 ? 16 : room * 2;
			*rows = xrealloc(*rows, room * sizeof(**rows));
		}
		memset(&(*rows)[*count], 0, sizeof(**rows));
		read_row(stmt, &(*rows)[(*count)++]);
	}
	return rc == 0;
}

/* Releases the bound SELECT. Everything is read before the first visit: what a visitor does (it may
 * write, or talk to a sandbox) must not happen inside a read transaction. */
static bool visit_all(struct db *db, sqlite3_stmt **stmt, row_sandbox_visit *visit, void *ctx,
		      struct err *err)
{
	struct sandbox_row *rows = NULL;
	size_t count = 0;
	bool ok = read_all(db, *stmt, &rows, &count, err);
	db_release(stmt);
	for (size_t i = 0; ok && i < count; i++)
		if (rows[i].state != SANDBOX_NONE && !visit(ctx, &rows[i]))
			break;
	for (size_t i = 0; i < count; i++)
		sandbox_row_finish(&rows[i]);
	free(rows);
	return ok;
}

bool row_sandbox_each(struct db *db, const char *principal, row_sandbox_visit *visit, void *ctx,
		      struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[EACH], err);
	if (stmt == NULL)
		return false;
	db_bind_text(stmt, ":principal", principal);
	return visit_all(db, &stmt, visit, ctx, err);
}

bool row_sandbox_each_of_session(struct db *db, const char *session_id, row_sandbox_visit *visit,
				 void *ctx, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[OF_SESSION], err);
	if (stmt == NULL)
		return false;
	db_bind_text(stmt, ":session_id", session_id);
	return visit_all(db, &stmt, visit, ctx, err);
}

/* Runs one of the statements that have nothing but an id to go by. */
static int change_by_id(struct db *db, enum statement which, const char *id, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[which], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", id);
	return db_change(db, stmt, err);
}

int row_sandbox_retain(struct db *db, const char *id, struct err *err)
{
	return change_by_id(db, RETAIN, id, err);
}

int row_sandbox_stay(struct db *db, const char *id, struct err *err)
{
	return change_by_id(db, STAY, id, err);
}

int row_sandbox_settled(struct db *db, const char *id, struct err *err)
{
	return change_by_id(db, SETTLED, id, err);
}

int row_sandbox_end_with_session(struct db *db, const char *id, int64_t now, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[END_WITH_SESSION], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", id);
	db_bind_int(stmt, ":now", now);
	return db_change(db, stmt, err);
}

/* --- what is due --------------------------------------------------------------------------- */

static bool visit_by_time(struct db *db, enum statement which, const char *parameter, int64_t at,
			  row_sandbox_visit *visit, void *ctx, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[which], err);
	if (stmt == NULL)
		return false;
	db_bind_int(stmt, parameter, at);
	return visit_all(db, &stmt, visit, ctx, err);
}

bool row_sandbox_each_over(struct db *db, int64_t now, row_sandbox_visit *visit, void *ctx,
			   struct err *err)
{
	return visit_by_time(db, OVER, ":now", now, visit, ctx, err);
}

bool row_sandbox_each_unused(struct db *db, int64_t until, row_sandbox_visit *visit, void *ctx,
			     struct err *err)
{
	return visit_by_time(db, UNUSED, ":until", until, visit, ctx, err);
}

bool row_sandbox_each_used(struct db *db, int64_t since, row_sandbox_visit *visit, void *ctx,
			   struct err *err)
{
	return visit_by_time(db, USED_SINCE, ":since", since, visit, ctx, err);
}

bool row_sandbox_each_giving_way(struct db *db, int64_t until, row_sandbox_visit *visit, void *ctx,
				 struct err *err)
{
	return visit_by_time(db, GIVING_WAY, ":until", until, visit, ctx, err);
}

bool row_sandbox_each_kept(struct db *db, int64_t until, row_sandbox_visit *visit, void *ctx,
			   struct err *err)
{
	return visit_by_time(db, KEPT, ":until", until, visit, ctx, err);
}

bool row_sandbox_each_future(struct db *db, int64_t limit, row_sandbox_visit *visit, void *ctx,
			     struct err *err)
{
	return visit_by_time(db, FUTURE, ":limit", limit, visit, ctx, err);
}
