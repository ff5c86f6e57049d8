/* Statements of table sandbox about rows in state "gone", see row_gone.h. */
#include "store/row_gone.h"

#include "base/buf.h"

enum statement { EACH, FILES_IN_USE, FORGET };

static const char *const sql[] = {
	/* "<> 'live'" is the condition of the index. */
	[EACH] = "SELECT id, files_id, ended_at, (SELECT count(*) FROM task"
		 "  WHERE task.sandbox_id = sandbox.id AND task.state = 'running')"
		 " FROM sandbox INDEXED BY sandbox_ended"
		 " WHERE state <> 'live' AND state = 'gone' AND ends_with_session = 0"
		 " AND ended_at > 0 AND ended_at <= :until AND (ended_at, id) > (:after, :id)"
		 " ORDER BY ended_at, id LIMIT :limit",
	[FILES_IN_USE] = "SELECT 1 FROM sandbox WHERE files_id = :files_id AND state <> 'gone'"
			 " LIMIT 1",
	[FORGET] = "DELETE FROM sandbox WHERE id = :id AND state = 'gone'"
		   " AND ends_with_session = 0",
};

/* Appends the rows of the bound SELECT. */
static bool read_all(struct db *db, sqlite3_stmt *stmt, struct buf *rows, struct err *err)
{
	int rc;
	while ((rc = db_step(db, stmt, err)) == 1) {
		struct gone_row row;
		db_column_id(stmt, 0, row.id);
		db_column_id(stmt, 1, row.files_id);
		row.ended_at = sqlite3_column_int64(stmt, 2);
		row.running = sqlite3_column_int64(stmt, 3);
		buf_append(rows, &row, sizeof(row));
	}
	return rc == 0;
}

bool row_gone_each(struct db *db, int64_t until, const struct gone_row *beyond, int64_t limit,
		   row_gone_visit *visit, void *ctx, struct err *err)
{
	AUTO_BUF rows = BUF_INIT;
	AUTO_STMT *stmt = db_prepare(db, sql[EACH], err);
	if (stmt == NULL)
		return false;
	db_bind_int(stmt, ":until", until);
	db_bind_int(stmt, ":after", beyond->ended_at);
	db_bind_text(stmt, ":id", beyond->id);
	db_bind_int(stmt, ":limit", limit);
	bool ok = read_all(db, stmt, &rows, err);
	db_release(&stmt);
	const struct gone_row *row = (const struct gone_row *)(const void *)rows.data;
	size_t count = rows.len / sizeof(*row);
	for (size_t i = 0; ok && i < count && visit(ctx, &row[i]); i++)
		;
	return ok;
}

int row_gone_files_in_use(struct db *db, const char *files_id, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[FILES_IN_USE], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":files_id", files_id);
	return db_step(db, stmt, err);
}

int row_gone_forget(struct db *db, const char *id, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[FORGET], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", id);
	return db_change(db, stmt, err);
}
