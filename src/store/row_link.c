/*
 * Statements of table link. Whether a link's sandbox is live is asked inside the statement that
 * depends on it, so a destroy between two statements cannot slip through.
 */
#include "store/row_link.h"

#include <string.h>

static const char *const op_names[] = {
	[LINK_NONE] = "none",
	[LINK_PUT] = "put",
	[LINK_GET] = "get",
};

#define COLUMNS "id, sandbox_id, principal, op, path, max_bytes, size, created_at, expires_at"
#define SANDBOX_IS_LIVE(id) \
	"EXISTS (SELECT 1 FROM sandbox WHERE sandbox.id = " id " AND sandbox.state = 'live')"

/* In two parts, as each has an index or is a plain look at all: what is expired may be much. */
#define EXPIRED "expires_at <= :now AND (created_at > :exact_from OR created_at <= :made_until)"
#define STALE   "(used_at <= :used_until OR (" EXPIRED "))"

enum statement {
	INSERT,
	GET,
	CLAIM,
	UNCLAIM,
	IDS_STALE,
	COUNT_STALE,
	DELETE_STALE,
	DELETE_OF_SANDBOX,
	HAS_EARLY,
	RESET
};

static const char *const sql[] = {
	[INSERT] =
		"INSERT INTO link (" COLUMNS ")"
		" SELECT :id, :sandbox_id, :principal, :op, :path, :max_bytes, :size, :created_at,"
		" :expires_at WHERE " SANDBOX_IS_LIVE(":sandbox_id"),
	[GET] = "SELECT " COLUMNS ", used_at FROM link WHERE id = :id",
	[CLAIM] = "UPDATE link SET used_at = :now WHERE id = :id AND used_at IS NULL"
		  " AND " SANDBOX_IS_LIVE("link.sandbox_id"),
	[UNCLAIM] = "UPDATE link SET used_at = NULL WHERE id = :id AND used_at = :claimed_at",
	[IDS_STALE] = "SELECT id FROM link WHERE " STALE " LIMIT :limit",
	[COUNT_STALE] = "SELECT count(*) FROM link WHERE " STALE,
	[DELETE_STALE] = "DELETE FROM link WHERE id = :id"
			 " AND (used_at IS NOT NULL OR expires_at <= :now)",
	[DELETE_OF_SANDBOX] =
		"DELETE FROM link WHERE rowid IN"
		" (SELECT rowid FROM link WHERE sandbox_id = :sandbox_id LIMIT :limit)",
	/* Whoever was made later expires later. */
	[HAS_EARLY] =
		"SELECT 1 FROM link WHERE expires_at > :latest AND created_at > :latest LIMIT 1",
	[RESET] = "UPDATE link SET created_at = :now, expires_at = :now + expires_at - created_at"
		  " WHERE rowid IN (SELECT rowid FROM link"
		  " WHERE expires_at > :latest AND created_at > :latest LIMIT :limit)",
};

void link_row_finish(struct link_row *row)
{
	free(row->principal);
	free(row->path);
	memset(row, 0, sizeof(*row));
}

int row_link_insert(struct db *db, const struct link_row *row, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[INSERT], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", row->id);
	db_bind_text(stmt, ":sandbox_id", row->sandbox_id);
	db_bind_text(stmt, ":principal", row->principal);
	db_bind_text(stmt, ":op", op_names[row->op]);
	db_bind_text(stmt, ":path", row->path);
	db_bind_int(stmt, ":max_bytes", row->max_bytes);
	db_bind_int(stmt, ":size", row->size);
	db_bind_int(stmt, ":created_at", row->created_at);
	db_bind_int(stmt, ":expires_at", row->expires_at);
	return db_change(db, stmt, err);
}

static enum link_op read_op(sqlite3_stmt *stmt, int column)
{
	const char *text = (const char *)sqlite3_column_text(stmt, column);
	for (size_t op = LINK_PUT; text != NULL && op < ARRAY_LEN(op_names); op++) {
		if (strcmp(text, op_names[op]) == 0)
			return (enum link_op)op;
	}
	return LINK_NONE;
}

int row_link_get(struct db *db, const char *id, struct link_row *row, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[GET], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", id);
	int rc = db_step(db, stmt, err);
	if (rc != 1)
		return rc;
	int column = 0;
	db_column_id(stmt, column++, row->id);
	db_column_id(stmt, column++, row->sandbox_id);
	row->principal = db_column_dup(stmt, column++);
	row->op = read_op(stmt, column++);
	row->path = db_column_dup(stmt, column++);
	row->max_bytes = sqlite3_column_int64(stmt, column++);
	row->size = sqlite3_column_int64(stmt, column++);
	row->created_at = sqlite3_column_int64(stmt, column++);
	row->expires_at = sqlite3_column_int64(stmt, column++);
	row->used = sqlite3_column_type(stmt, column) != SQLITE_NULL;
	row->used_at = sqlite3_column_int64(stmt, column);
	return 1;
}

int row_link_claim(struct db *db, const char *id, int64_t now, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[CLAIM], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", id);
	db_bind_int(stmt, ":now", now);
	return db_change(db, stmt, err);
}

int row_link_unclaim(struct db *db, const char *id, int64_t claimed_at, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[UNCLAIM], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", id);
	db_bind_int(stmt, ":claimed_at", claimed_at);
	return db_change(db, stmt, err);
}

/* --- for the reaper ------------------------------------------------------------------------ */

static sqlite3_stmt *prepare_stale(struct db *db, enum statement which,
				   const struct link_stale *stale, struct err *err)
{
	sqlite3_stmt *stmt = db_prepare(db, sql[which], err);
	if (stmt != NULL) {
		db_bind_int(stmt, ":used_until", stale->used_until);
		db_bind_int(stmt, ":now", stale->now);
		db_bind_int(stmt, ":exact_from", stale->exact_from);
		db_bind_int(stmt, ":made_until", stale->made_until);
	}
	return stmt;
}

int64_t row_link_ids_stale(struct db *db, const struct link_stale *stale, int64_t limit,
			   struct buf *ids, struct err *err)
{
	AUTO_STMT *stmt = prepare_stale(db, IDS_STALE, stale, err);
	if (stmt == NULL)
		return -1;
	db_bind_int(stmt, ":limit", limit);
	return db_read_ids(db, stmt, ids, err);
}

int64_t row_link_count_stale(struct db *db, const struct link_stale *stale, struct err *err)
{
	AUTO_STMT *stmt = prepare_stale(db, COUNT_STALE, stale, err);
	return stmt != NULL && db_step(db, stmt, err) == 1 ? sqlite3_column_int64(stmt, 0) : -1;
}

int row_link_delete_stale(struct db *db, const char *id, int64_t now, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[DELETE_STALE], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", id);
	db_bind_int(stmt, ":now", now);
	return db_change(db, stmt, err);
}

int row_link_delete_of_sandbox(struct db *db, const char *sandbox_id, int64_t limit,
			       struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[DELETE_OF_SANDBOX], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":sandbox_id", sandbox_id);
	db_bind_int(stmt, ":limit", limit);
	return db_changes(db, stmt, err);
}

int row_link_reset(struct db *db, int64_t latest, int64_t now, int64_t limit, struct err *err)
{
	AUTO_STMT *look = db_prepare(db, sql[HAS_EARLY], err);
	if (look == NULL)
		return -1;
	db_bind_int(look, ":latest", latest);
	int rc = db_step(db, look, err);
	db_release(&look);
	if (rc != 1)
		return rc;
	AUTO_STMT *stmt = db_prepare(db, sql[RESET], err);
	if (stmt == NULL)
		return -1;
	db_bind_int(stmt, ":latest", latest);
	db_bind_int(stmt, ":now", now);
	db_bind_int(stmt, ":limit", limit);
	return db_changes(db, stmt, err);
}
