/* Statements of table python_session. */
#include "store/row_python.h"

#include <assert.h>
#include <string.h>

#include "base/buf.h"

static const char *const why_names[PYTHON_WHY__MAX] = {
	[PYTHON_WHY_NONE] = NULL,         [PYTHON_WHY_IDLE] = "idle",
	[PYTHON_WHY_KILLED] = "killed",   [PYTHON_WHY_EXITED] = "exited",
	[PYTHON_WHY_CRASHED] = "crashed", [PYTHON_WHY_LOST] = "lost",
};

#define COLUMNS "id, sandbox_id, created_at, last_used_at, ended_at, why"
/* In two parts, as each has an index. */
#define OLD \
	"((ended_at > 0 AND ended_at <= :until) OR sandbox_id IN" \
	" (SELECT id FROM sandbox WHERE state <> 'live' AND state = 'gone'))"

enum statement {
	INSERT,
	BY_ID,
	TOUCH,
	END,
	END_IDLE,
	LAST_USED,
	UNUSED,
	HAS_EARLY,
	RESET,
	COUNT_OLD,
	FORGET
};

static const char *const sql[] = {
	[INSERT] = "INSERT INTO python_session (" COLUMNS ", principal)"
		   " SELECT :id, :sandbox_id, :created_at, :last_used_at, 0, NULL, :principal"
		   " WHERE EXISTS (SELECT 1 FROM sandbox"
		   "  WHERE sandbox.id = :sandbox_id AND sandbox.state = 'live')",
	[BY_ID] = "SELECT " COLUMNS " FROM python_session"
		  " WHERE id = :id AND principal = :principal",
	[TOUCH] = "UPDATE python_session SET last_used_at = :now WHERE id = :id AND ended_at = 0",
	[END] = "UPDATE python_session SET ended_at = :now, why = :why"
		" WHERE id = :id AND ended_at = 0",
	[END_IDLE] = "UPDATE python_session SET ended_at = :now, why = 'idle'"
		     " WHERE id = :id AND ended_at = 0 AND last_used_at = :last_used_at",
	[LAST_USED] = "SELECT coalesce(max(last_used_at), 0) FROM python_session"
		      " WHERE sandbox_id = :sandbox_id AND ended_at = 0",
	[UNUSED] = "SELECT " COLUMNS " FROM python_session"
		   " WHERE ended_at = 0 AND last_used_at <= :until ORDER BY last_used_at",
	[HAS_EARLY] = "SELECT 1 FROM python_session"
		      " WHERE (ended_at = 0 AND last_used_at > :latest)"
		      " OR (ended_at > 0 AND ended_at > :latest) LIMIT 1",
	[RESET] = "UPDATE python_session SET last_used_at = min(last_used_at, :now),"
		  " ended_at = min(ended_at, :now)"
		  " WHERE (ended_at = 0 AND last_used_at > :latest)"
		  " OR (ended_at > 0 AND ended_at > :latest)",
	[COUNT_OLD] = "SELECT count(*) FROM python_session WHERE " OLD,
	[FORGET] = "DELETE FROM python_session WHERE rowid IN"
		   " (SELECT rowid FROM python_session WHERE " OLD " LIMIT :limit)",
};

static void read_row(sqlite3_stmt *stmt, struct python_row *row)
{
	*row = (struct python_row){.why = PYTHON_WHY_NONE};
	db_column_id(stmt, 0, row->id);
	db_column_id(stmt, 1, row->sandbox_id);
	row->created_at = sqlite3_column_int64(stmt, 2);
	row->last_used_at = sqlite3_column_int64(stmt, 3);
	row->ended_at = sqlite3_column_int64(stmt, 4);
	const char *why = (const char *)sqlite3_column_text(stmt, 5);
	for (int i = PYTHON_WHY_IDLE; why != NULL && i < PYTHON_WHY__MAX; i++)
		if (strcmp(why, why_names[i]) == 0)
			row->why = (enum python_why)i;
}

/* Ids become names of files. */
static bool is_sound(const struct python_row *row)
{
	return id_is_valid(row->id) && id_is_valid(row->sandbox_id);
}

int row_python_insert(struct db *db, const struct python_row *row, const char *principal,
		      struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[INSERT], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", row->id);
	db_bind_text(stmt, ":sandbox_id", row->sandbox_id);
	db_bind_int(stmt, ":created_at", row->created_at);
	db_bind_int(stmt, ":last_used_at", row->last_used_at);
	db_bind_text(stmt, ":principal", principal);
	return db_change(db, stmt, err);
}

int row_python_by_id(struct db *db, const char *principal, const char *id, struct python_row *row,
		     struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[BY_ID], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", id);
	db_bind_text(stmt, ":principal", principal);
	int rc = db_step(db, stmt, err);
	if (rc == 1)
		read_row(stmt, row);
	return rc == 1 && !is_sound(row) ? 0 : rc;
}

int row_python_touch(struct db *db, const char *id, int64_t now, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[TOUCH], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", id);
	db_bind_int(stmt, ":now", now);
	return db_change(db, stmt, err);
}

int row_python_end(struct db *db, const char *id, enum python_why why, int64_t now, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[END], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", id);
	db_bind_text(stmt, ":why", why_names[why]);
	db_bind_int(stmt, ":now", now);
	return db_change(db, stmt, err);
}

int row_python_end_idle(struct db *db, const struct python_row *seen, int64_t now, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[END_IDLE], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", seen->id);
	db_bind_int(stmt, ":last_used_at", seen->last_used_at);
	db_bind_int(stmt, ":now", now);
	return db_change(db, stmt, err);
}

/* The one number that a bound SELECT gives; -1 with err. */
static int64_t read_number(struct db *db, sqlite3_stmt *stmt, struct err *err)
{
	int rc = db_step(db, stmt, err);
	assert(rc != 0);
	return rc < 0 ? -1 : sqlite3_column_int64(stmt, 0);
}

int64_t row_python_last_used(struct db *db, const char *sandbox_id, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[LAST_USED], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":sandbox_id", sandbox_id);
	return read_number(db, stmt, err);
}

static bool read_all(struct db *db, sqlite3_stmt *stmt, struct buf *rows, struct err *err)
{
	int rc;
	while ((rc = db_step(db, stmt, err)) == 1) {
		struct python_row row;
		read_row(stmt, &row);
		if (is_sound(&row))
			buf_append(rows, &row, sizeof(row));
	}
	return rc == 0;
}

bool row_python_each_unused(struct db *db, int64_t until, row_python_visit *visit, void *ctx,
			    struct err *err)
{
	AUTO_BUF rows = BUF_INIT;
	AUTO_STMT *stmt = db_prepare(db, sql[UNUSED], err);
	if (stmt == NULL)
		return false;
	db_bind_int(stmt, ":until", until);
	bool ok = read_all(db, stmt, &rows, err);
	db_release(&stmt);
	const struct python_row *row = (const struct python_row *)(const void *)rows.data;
	size_t count = rows.len / sizeof(*row);
	for (size_t i = 0; ok && i < count && visit(ctx, &row[i]); i++)
		;
	return ok;
}

/* Looked for first: an UPDATE takes the write lock even when no row matches. */
int row_python_reset(struct db *db, int64_t latest, int64_t now, struct err *err)
{
	AUTO_STMT *look = db_prepare(db, sql[HAS_EARLY], err);
	if (look == NULL)
		return -1;
	db_bind_int(look, ":latest", latest);
	int has = db_step(db, look, err);
	db_release(&look);
	if (has != 1)
		return has;
	AUTO_STMT *stmt = db_prepare(db, sql[RESET], err);
	if (stmt == NULL)
		return -1;
	db_bind_int(stmt, ":latest", latest);
	db_bind_int(stmt, ":now", now);
	return db_changes(db, stmt, err);
}

int64_t row_python_count_old(struct db *db, int64_t until, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[COUNT_OLD], err);
	if (stmt == NULL)
		return -1;
	db_bind_int(stmt, ":until", until);
	return read_number(db, stmt, err);
}

int64_t row_python_forget(struct db *db, int64_t until, int64_t limit, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[FORGET], err);
	if (stmt == NULL)
		return -1;
	db_bind_int(stmt, ":until", until);
	db_bind_int(stmt, ":limit", limit);
	return db_changes(db, stmt, err);
}
