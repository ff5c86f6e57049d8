/* Errors, statements and transactions of a connection; db_open.c opens it, db_tidy.c tidies it. */
#include <assert.h>
#include <string.h>

#include "store/db_part.h"

#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)

#define LOCKED  "the server's state was locked by others for " TEXT(DB_BUSY_TIMEOUT_S) " s"
#define DAMAGED "the state database (SMCP_STATE_DB) is damaged or no database"
#define DAMAGED_HINT \
	"Its operator should stop the server and put back a backup of the file, without the -wal " \
	"and -shm beside it. Without a backup: move all three away; the next start says how to " \
	"begin anew with the files of the sandboxes."
#define CLOSED "the state database (SMCP_STATE_DB) cannot be written"
#define CLOSED_HINT \
	"Its operator should let the user whom Spoolbox runs as write the file and its " \
	"directory, and see that their disk is not mounted read-only."

/* By SQLite's primary code, so that extended ones need no line of their own. What is not here is a
 * fault of the disk. */
static const struct failure {
	int rc;
	enum err_code code;
	const char *what, *hint; /* what: NULL where it says nothing to a caller */
} failures[] = {
	{SQLITE_BUSY, ERR_BUSY, LOCKED, NULL},
	{SQLITE_LOCKED, ERR_BUSY, LOCKED, NULL},
	{SQLITE_PROTOCOL, ERR_BUSY, LOCKED, NULL}, /* after its own retries on the WAL index */
	{SQLITE_FULL, ERR_QUOTA, "the server's disk is full", NULL},
	{SQLITE_NOTADB, ERR_UNAVAILABLE, DAMAGED, DAMAGED_HINT},
	{SQLITE_CORRUPT, ERR_UNAVAILABLE, DAMAGED, DAMAGED_HINT},
	{SQLITE_READONLY, ERR_UNAVAILABLE, CLOSED, CLOSED_HINT},
	{SQLITE_PERM, ERR_UNAVAILABLE, CLOSED, CLOSED_HINT},
	{SQLITE_CANTOPEN, ERR_UNAVAILABLE, "the state database (SMCP_STATE_DB) cannot be opened",
	 "Its operator should let the user whom Spoolbox runs as read and write the file and its "
	 "directory."},
	{SQLITE_CONSTRAINT, ERR_INTERNAL, NULL, NULL},
	{SQLITE_MISUSE, ERR_INTERNAL, NULL, NULL},
	{SQLITE_RANGE, ERR_INTERNAL, NULL, NULL},
	{SQLITE_ERROR, ERR_INTERNAL, NULL, NULL},
};

static const struct failure *find_failure(int rc)
{
	static const struct failure unknown = {.code = ERR_IO};
	for (size_t i = 0; i < ARRAY_LEN(failures); i++)
		if (failures[i].rc == (rc & 0xff))
			return &failures[i];
	return &unknown;
}

bool db_fail(const struct db *db, const char *doing, struct err *err)
{
	int rc = sqlite3_extended_errcode(db->handle);
	int sys = sqlite3_system_errno(db->handle);
	const struct failure *failure = find_failure(rc);
	bool is_file = (rc & 0xff) == SQLITE_CANTOPEN || (rc & 0xff) == SQLITE_IOERR;
	bool tells = failure->rc == SQLITE_CANTOPEN && sys != 0;
	if (failure->what == NULL)
		err_set(err, failure->code, "database");
	else
		err_set(err, failure->code, "%s%s%s; nothing was changed", failure->what,
			tells ? ": " : "", tells ? strerror(sys) : "");
	if (failure->hint != NULL)
		err_hint(err, "%s", failure->hint);
	err->sys = is_file ? sys : 0;
	return err_in(err, "%s: sqlite %d: %s", doing, rc, sqlite3_errmsg(db->handle));
}

bool db_run_text(struct db *db, const char *sql, struct err *err)
{
	return sqlite3_exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK ||
	       db_fail(db, sql, err);
}

bool db_read_int(struct db *db, const char *sql, int64_t *out, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	bool ok = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL) == SQLITE_OK &&
		  sqlite3_step(stmt) == SQLITE_ROW;
	if (ok)
		*out = sqlite3_column_int64(stmt, 0);
	else
		db_fail(db, sql, err);
	sqlite3_finalize(stmt);
	return ok;
}

void db_close(struct db *db)
{
	if (db == NULL)
		return;
	for (size_t i = 0; i < db->cache_count; i++)
		sqlite3_finalize(db->cache[i].stmt);
	free(db->cache);
	sqlite3_close(db->handle);
	free(db);
}

/* --- statements ---------------------------------------------------------------------------- */

sqlite3_stmt *db_prepare(struct db *db, const char *sql, struct err *err)
{
	for (size_t i = 0; i < db->cache_count; i++) {
		if (db->cache[i].sql == sql) {
			assert(!sqlite3_stmt_busy(db->cache[i].stmt));
			return db->cache[i].stmt;
		}
	}
	sqlite3_stmt *stmt = NULL;
	if (sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL) !=
	    SQLITE_OK) {
		db_fail(db, "prepare", err);
		return NULL;
	}
	db->cache = xrealloc(db->cache, (db->cache_count + 1) * sizeof(*db->cache));
	db->cache[db->cache_count++] = (struct db_cached){sql, stmt};
	return stmt;
}

void db_release(sqlite3_stmt **stmt)
{
	if (*stmt == NULL)
		return;
	sqlite3_reset(*stmt);
	sqlite3_clear_bindings(*stmt);
	*stmt = NULL;
}

static int parameter(sqlite3_stmt *stmt, const char *name)
{
	int index = sqlite3_bind_parameter_index(stmt, name);
	assert(index > 0);
	return index;
}

/* Binding fails only for a wrong index, which parameter() rules out, and for texts beyond
 * SQLite's limit of 1 GB. */
void db_bind_text(sqlite3_stmt *stmt, const char *name, const char *value)
{
	int rc = value == NULL
			 ? sqlite3_bind_null(stmt, parameter(stmt, name))
			 : sqlite3_bind_text(stmt, parameter(stmt, name), value, -1, SQLITE_STATIC);
	assert(rc == SQLITE_OK);
}

void db_bind_int(sqlite3_stmt *stmt, const char *name, int64_t value)
{
	int rc = sqlite3_bind_int64(stmt, parameter(stmt, name), value);
	assert(rc == SQLITE_OK);
}

void db_bind_null(sqlite3_stmt *stmt, const char *name)
{
	int rc = sqlite3_bind_null(stmt, parameter(stmt, name));
	assert(rc == SQLITE_OK);
}

int db_step(struct db *db, sqlite3_stmt *stmt, struct err *err)
{
	switch (sqlite3_step(stmt)) {
	case SQLITE_ROW:
		return 1;
	case SQLITE_DONE:
		return 0;
	default:
		db_fail(db, "step", err);
		return -1;
	}
}

bool db_run(struct db *db, sqlite3_stmt *stmt, int *changes, struct err *err)
{
	int rc = db_step(db, stmt, err);
	assert(rc != 1);
	if (rc < 0)
		return false;
	if (changes != NULL)
		*changes = sqlite3_changes(db->handle);
	return true;
}

int db_changes(struct db *db, sqlite3_stmt *stmt, struct err *err)
{
	int changes = 0;
	return db_run(db, stmt, &changes, err) ? changes : -1;
}

int db_change(struct db *db, sqlite3_stmt *stmt, struct err *err)
{
	int changes = db_changes(db, stmt, err);
	return changes > 0 ? 1 : changes;
}

void db_column_id(sqlite3_stmt *stmt, int column, char id[static ID_LEN + 1])
{
	const char *text = (const char *)sqlite3_column_text(stmt, column);
	memset(id, 0,
	       ID_LEN + 1); /* ids are compared whole, damaged ones that are shorter as well */
	if (text != NULL && strlen(text) <= ID_LEN)
		memcpy(id, text, strlen(text) + 1);
}

int64_t db_read_ids(struct db *db, sqlite3_stmt *stmt, struct buf *ids, struct err *err)
{
	int64_t number = 0;
	int rc;
	while ((rc = db_step(db, stmt, err)) == 1) {
		char id[ID_LEN + 1];
		db_column_id(stmt, 0, id);
		if (!id_is_valid(id))
			continue;
		buf_append(ids, id, sizeof(id));
		number++;
	}
	return rc == 0 ? number : -1;
}

char *db_column_dup(sqlite3_stmt *stmt, int column)
{
	const char *text = (const char *)sqlite3_column_text(stmt, column);
	return text == NULL ? NULL : xstrdup(text);
}

/* --- transactions -------------------------------------------------------------------------- */

bool db_begin(struct db *db, struct db_tx *tx, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, "BEGIN IMMEDIATE", err);
	if (stmt == NULL || !db_run(db, stmt, NULL, err))
		return false;
	tx->db = db;
	return true;
}

bool db_commit(struct db_tx *tx, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(tx->db, "COMMIT", err);
	if (stmt == NULL || !db_run(tx->db, stmt, NULL, err))
		return false;
	tx->db = NULL;
	return true;
}

void db_rollback(struct db_tx *tx)
{
	/* A failed statement may have ended the transaction already (disk full, I/O error). */
	if (tx->db != NULL && sqlite3_get_autocommit(tx->db->handle) == 0)
		sqlite3_exec(tx->db->handle, "ROLLBACK", NULL, NULL, NULL);
	tx->db = NULL;
}
