/* Statements of table sandbox about reserves, see row_reserve.h. */
#include "store/row_reserve.h"

#include <assert.h>

/* The condition of the index. */
#define IS_RESERVE "state = 'live' AND is_reserve = 1"

enum statement { COUNT, OLDEST, TAKE, END };

static const char *const sql[] = {
	[COUNT] = "SELECT count(*) FROM sandbox WHERE " IS_RESERVE,
	[OLDEST] = "SELECT id FROM sandbox WHERE " IS_RESERVE
		   " AND principal = coalesce(:principal, principal)"
		   " AND (expires_at = 0 OR expires_at > :now) ORDER BY created_at, id LIMIT 1",
	[TAKE] = "UPDATE sandbox SET is_reserve = 0, gives_way = 1, created_at = :now,"
		 " last_used_at = :now,"
		 " ttl_ms = :ttl_ms,"
		 " expires_at = CASE WHEN :ttl_ms > 0 THEN :now + :ttl_ms ELSE 0 END,"
		 " session_id = :session_id, ends_with_session = :ends_with_session"
		 " WHERE id = :id AND " IS_RESERVE,
	[END] = "UPDATE sandbox SET state = 'gone', ended_at = :now WHERE id = :id AND " IS_RESERVE,
};

int64_t row_reserve_count(struct db *db, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[COUNT], err);
	if (stmt == NULL)
		return -1;
	int rc = db_step(db, stmt, err);
	assert(rc != 0);
	return rc < 0 ? -1 : sqlite3_column_int64(stmt, 0);
}

int row_reserve_oldest(struct db *db, const char *principal, int64_t now, struct sandbox_row *row,
		       struct err *err)
{
	char id[ID_LEN + 1];
	AUTO_STMT *stmt = db_prepare(db, sql[OLDEST], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":principal", principal);
	db_bind_int(stmt, ":now", now);
	int rc = db_step(db, stmt, err);
	if (rc != 1)
		return rc;
	db_column_id(stmt, 0, id);
	db_release(&stmt);
	return row_sandbox_any(db, id, row, err);
}

int row_reserve_take(struct db *db, struct sandbox_row *row, int64_t ttl_ms, int64_t now,
		     struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[TAKE], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", row->id);
	db_bind_int(stmt, ":now", now);
	db_bind_int(stmt, ":ttl_ms", ttl_ms);
	db_bind_text(stmt, ":session_id", row->session_id[0] == '\0' ? NULL : row->session_id);
	db_bind_int(stmt, ":ends_with_session", row->ends_with_session);
	int rc = db_change(db, stmt, err);
	if (rc != 1)
		return rc;
	row->is_reserve = false;
	row->gives_way = true;
	row->created_at = row->last_used_at = now;
	row->ttl_ms = ttl_ms;
	row->expires_at = ttl_ms > 0 ? now + ttl_ms : 0;
	return 1;
}

int row_reserve_end(struct db *db, const char *id, int64_t now, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[END], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", id);
	db_bind_int(stmt, ":now", now);
	return db_change(db, stmt, err);
}
