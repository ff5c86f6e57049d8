/*
 * Owns the connection: how it is opened, brought up to date and how its errors read. A database
 * is recognised by its application_id; PRAGMA user_version tells how many steps of the schema it
 * has. Each step runs in a transaction of its own that reads the version again first, so any
 * number of workers may start on a new or an old database at once.
 */
#include "store/db.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "store/schema.h"

#define APPLICATION_ID  0x53504258 /* "SPBX"; in bytes 68..71 of the file, for file(1) */
#define BUSY_TIMEOUT_MS 5000       /* beyond any transaction of ours; below a client's patience */
#define WAL_RETRY_MS    5          /* the change to WAL does not always use the busy timeout */
#define WAL_BYTES_MAX   (8 << 20)  /* twice of where SQLite itself takes the log over */
#define FREE_PAGES_MIN  256        /* 1 MB: kept for what comes next */
#define FREE_SLICE      32         /* pages in one transaction: some 5 ms */
#define FREE_REST_MS    15         /* between two of them: who waits must find the lock free */

struct cached {
	const char *sql; /* a literal: its address is the key */
	sqlite3_stmt *stmt;
};

struct db {
	sqlite3 *handle;
	struct cached *cache;
	size_t cache_count;
};

/* Sets err from the last failed call on the connection. */
static bool fail(const struct db *db, const char *doing, struct err *err)
{
	int rc = sqlite3_extended_errcode(db->handle);
	int sys = sqlite3_system_errno(db->handle);
	switch (rc & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_PROTOCOL: /* gave up after its own retries on the WAL index */
		err_set(err, ERR_BUSY,
			"the server's state was locked by others for %d s; nothing was changed",
			BUSY_TIMEOUT_MS / 1000);
		break;
	case SQLITE_FULL:
		err_set(err, ERR_QUOTA, "the server's disk is full; nothing was changed");
		break;
	case SQLITE_NOTADB:
	case SQLITE_CORRUPT:
		err_set(err, ERR_UNAVAILABLE,
			"the state database (SMCP_STATE_DB) is damaged or no database; nothing was "
			"changed");
		err_hint(err,
			 "Its operator should stop the server and put back a backup of the file, "
			 "without the -wal and -shm beside it. Without a backup: move all three "
			 "away; "
			 "the next start says how to begin anew with the files of the sandboxes.");
		break;
	case SQLITE_READONLY:
	case SQLITE_PERM:
		err_set(err, ERR_UNAVAILABLE,
			"the state database (SMCP_STATE_DB) cannot be written; nothing was "
			"changed");
		err_hint(
			err,
			"Its operator should let the user whom Spoolbox runs as write the file and "
			"its directory, and see that their disk is not mounted read-only.");
		break;
	case SQLITE_CANTOPEN:
		err_set(err, ERR_UNAVAILABLE,
			"the state database (SMCP_STATE_DB) cannot be opened%s%s; nothing was "
			"changed",
			sys != 0 ? ": " : "", sys != 0 ? strerror(sys) : "");
		err_hint(err, "Its operator should let the user whom Spoolbox runs as read and "
			      "write the file and its directory.");
		break;
	case SQLITE_CONSTRAINT:
	case SQLITE_MISUSE:
	case SQLITE_RANGE:
	case SQLITE_ERROR:
		err_set(err, ERR_INTERNAL, "database");
		break;
	default:
		err_set(err, ERR_IO, "database");
		break;
	}
	err->sys = (rc & 0xff) == SQLITE_IOERR || (rc & 0xff) == SQLITE_CANTOPEN ? sys : 0;
	return err_in(err, "%s: sqlite %d: %s", doing, rc, sqlite3_errmsg(db->handle));
}

/* Runs a text of ours that returns nothing of interest. */
static bool run_text(struct db *db, const char *sql, struct err *err)
{
	return sqlite3_exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK || fail(db, sql, err);
}

static bool read_int(struct db *db, const char *sql, int64_t *out, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	bool ok = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL) == SQLITE_OK &&
		  sqlite3_step(stmt) == SQLITE_ROW;
	if (ok)
		*out = sqlite3_column_int64(stmt, 0);
	else
		fail(db, sql, err);
	sqlite3_finalize(stmt);
	return ok;
}

/* --- opening ------------------------------------------------------------------------------- */

/* Makes the file with mode 0600 before SQLite would make it with the umask's; SQLite gives its
 * side files the mode of the database. An existing file is only looked at: closing a descriptor
 * of it would drop the locks of another connection in this process. */
static bool make_private(const char *path, struct err *err)
{
	AUTO_FD fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 && (errno == ENOSPC || errno == EDQUOT))
		return err_sys(err, "create the state database");
	if (fd < 0 && errno != EEXIST) {
		err_set(err, ERR_UNAVAILABLE,
			"the state database (SMCP_STATE_DB) cannot be created: %s",
			strerror(errno));
		return err_hint(err,
				"Name a file in an existing directory that Spoolbox may write.");
	}
	struct stat st;
	if (stat(path, &st) != 0)
		return err_sys(err, "stat the state database");
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
		err_set(err, ERR_UNAVAILABLE,
			"the state database (SMCP_STATE_DB) is no regular file of user %d, whom "
			"Spoolbox "
			"runs as",
			(int)geteuid());
		return err_hint(err, "Give it to that user with chown, or name another file in "
				     "SMCP_STATE_DB.");
	}
	if ((st.st_mode & 07777) != 0600 && chmod(path, 0600) != 0)
		return err_sys(err, "chmod the state database");
	return true;
}

/* Reads what the database is, as of one instant; inside or outside of a transaction. A database
 * without tables counts as ours at version 0. */
static bool identify(struct db *db, int64_t *version, struct err *err)
{
	int64_t application, tables;
	bool own = sqlite3_get_autocommit(db->handle) != 0;
	if (own && !run_text(db, "BEGIN", err))
		return false;
	bool ok = read_int(db, "PRAGMA application_id", &application, err) &&
		  read_int(db, "PRAGMA user_version", version, err) &&
		  read_int(db, "SELECT count(*) FROM sqlite_schema", &tables, err);
	if (own)
		sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
	if (!ok)
		return false;
	if (application != APPLICATION_ID && (application != 0 || *version != 0 || tables != 0)) {
		err_set(err, ERR_UNAVAILABLE,
			"the state database (SMCP_STATE_DB) belongs to another program");
		return err_hint(err,
				"Name another file in SMCP_STATE_DB; this one was not changed.");
	}
	if (*version > schema_step_count) {
		err_set(err, ERR_UNAVAILABLE,
			"the state database has schema version %lld; this program knows versions "
			"up to %d",
			(long long)*version, schema_step_count);
		return err_hint(err,
				"Install the newer Spoolbox that made it, or name another file in "
				"SMCP_STATE_DB; this one was not changed.");
	}
	return true;
}

/* Takes the database one step further unless somebody else did. */
static bool migrate_step(struct db *db, int64_t *version, struct err *err)
{
	AUTO_TX tx = TX_INIT;
	if (!db_begin(db, &tx, err) || !identify(db, version, err))
		return false;
	if (*version >= schema_step_count)
		return true;
	char stamp[96];
	snprintf(stamp, sizeof(stamp), "PRAGMA application_id = %d; PRAGMA user_version = %d",
		 APPLICATION_ID, (int)*version + 1);
	if (!run_text(db, schema_steps[*version], err) || !run_text(db, stamp, err))
		return err_in(err, "schema step %d", (int)*version + 1);
	if (!db_commit(&tx, err))
		return false;
	++*version;
	return true;
}

/* Two connections that change a new database to WAL at once can meet a lock that SQLite does not
 * wait for, so the wait is here. */
static bool use_wal(struct db *db, struct err *err)
{
	int64_t deadline = clock_mono_ms() + BUSY_TIMEOUT_MS;
	while (!run_text(db, "PRAGMA journal_mode = WAL", err)) {
		if (err->code != ERR_BUSY || clock_mono_ms() >= deadline)
			return false;
		clock_sleep_ms(WAL_RETRY_MS);
	}
	return true;
}

/* For a spool that had a database before. */
static bool refuse_new(struct err *err)
{
	err_set(err, ERR_UNAVAILABLE,
		"the state database (SMCP_STATE_DB) of this spool is missing or empty; nothing was "
		"changed");
	return err_hint(err, "Stop the server and put the right state.db back, or correct "
			     "SMCP_STATE_DB. Only to begin anew, and let the files in the data "
			     "directory be adopted: remove the file spool.id of both SMCP_SPOOL "
			     "and SMCP_DATA_DIR (by default data/ in SMCP_SPOOL).");
}

static bool prepare_connection(struct db *db, bool may_be_new, struct err *err)
{
	int64_t version;
	struct err waited = ERR_INIT;
	sqlite3_extended_result_codes(db->handle, 1);
	sqlite3_busy_timeout(db->handle, BUSY_TIMEOUT_MS);
	/* Look before anything is written: a foreign database stays as it is. */
	if (!identify(db, &version, err))
		return false;
	if (version == 0 && !may_be_new)
		return refuse_new(err);
	/* Counts for a database that has nothing yet. */
	if (version == 0 && !run_text(db, "PRAGMA auto_vacuum = INCREMENTAL", err))
		return false;
	if (!use_wal(db, &waited)) {
		*err = waited;
		return false;
	}
	if (!run_text(db, "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON", err))
		return false;
	while (version < schema_step_count) {
		if (!migrate_step(db, &version, err))
			return false;
	}
	return true;
}

static struct db *open_database(const char *path, bool may_be_new, struct err *err)
{
	if (!make_private(path, err))
		return NULL;
	struct db *db = xcalloc(1, sizeof(*db));
	int rc = sqlite3_open_v2(path, &db->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
				 NULL);
	if (db->handle == NULL)
		abort(); /* out of memory, as in xmalloc */
	if (rc != SQLITE_OK)
		fail(db, "open", err);
	else if (prepare_connection(db, may_be_new, err))
		return db;
	db_close(db);
	return NULL;
}

struct db *db_open(const char *path, struct err *err)
{
	return open_database(path, true, err);
}

struct db *db_open_known(const char *path, struct err *err)
{
	/* Looked at before SQLite does: it would delete the log of an empty file. */
	struct stat st;
	if (stat(path, &st) == 0 ? st.st_size == 0 : errno == ENOENT) {
		refuse_new(err);
		return NULL;
	}
	return open_database(path, false, err);
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

int db_schema_version(struct db *db)
{
	struct err err = ERR_INIT;
	int64_t version;
	return read_int(db, "PRAGMA user_version", &version, &err) ? (int)version : -1;
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
		fail(db, "prepare", err);
		return NULL;
	}
	db->cache = xrealloc(db->cache, (db->cache_count + 1) * sizeof(*db->cache));
	db->cache[db->cache_count++] = (struct cached){sql, stmt};
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
		fail(db, "step", err);
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

int db_change(struct db *db, sqlite3_stmt *stmt, struct err *err)
{
	int changes = 0;
	if (!db_run(db, stmt, &changes, err))
		return -1;
	return changes > 0;
}

void db_column_id(sqlite3_stmt *stmt, int column, char id[static ID_LEN + 1])
{
	const char *text = (const char *)sqlite3_column_text(stmt, column);
	id[0] = '\0';
	if (text != NULL)
		strncat(id, text, ID_LEN);
}

int64_t db_read_ids(struct db *db, sqlite3_stmt *stmt, struct buf *ids, struct err *err)
{
	int64_t number = 0;
	int rc;
	for (; (rc = db_step(db, stmt, err)) == 1; number++) {
		char id[ID_LEN + 1];
		db_column_id(stmt, 0, id);
		buf_append(ids, id, sizeof(id));
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

/* --- tidying ------------------------------------------------------------------------------- */

/* The file keeps the size of its largest time. */
static int64_t wal_bytes(const struct db *db)
{
	struct stat st;
	const char *path = sqlite3_db_filename(db->handle, NULL);
	path = path == NULL ? NULL : sqlite3_filename_wal(path);
	return path != NULL && stat(path, &st) == 0 ? (int64_t)st.st_size : 0;
}

/* A passive checkpoint neither waits nor lets wait. Truncating the log keeps writers out while it
 * waits for readers, so it has little time, and comes only when all of the log was taken over. */
static bool take_log_over(struct db *db, struct db_tidied *tidied, struct err *err)
{
	int pages = 0, done = 0;
	int rc = sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages,
					   &done);
	tidied->wal_bytes = wal_bytes(db);
	if (rc == SQLITE_OK && done == pages && tidied->wal_bytes >= WAL_BYTES_MAX) {
		rc = sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
					       NULL);
		tidied->truncated = rc == SQLITE_OK;
	}
	return rc == SQLITE_OK || (rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED ||
	       fail(db, "checkpoint", err);
}

/* Each slice is a transaction of its own. */
static bool give_back_pages(struct db *db, int64_t until_ms, struct db_tidied *tidied,
			    struct err *err)
{
	char slice[48];
	int64_t before, left;
	snprintf(slice, sizeof(slice), "PRAGMA incremental_vacuum(%d)", FREE_SLICE);
	if (!read_int(db, "PRAGMA freelist_count", &left, err))
		return false;
	do {
		before = left;
		tidied->free_pages = left;
		if (before <= FREE_PAGES_MIN || clock_mono_ms() >= until_ms)
			break;
		if (!run_text(db, slice, err) || !read_int(db, "PRAGMA freelist_count", &left, err))
			return false;
		tidied->freed_pages += before > left ? before - left : 0;
		clock_sleep_ms(FREE_REST_MS);
	} while (left < before);
	return true;
}

bool db_tidy(struct db *db, int64_t until_ms, struct db_tidied *tidied, struct err *err)
{
	struct err busy = ERR_INIT;
	*tidied = (struct db_tidied){0};
	sqlite3_busy_timeout(db->handle, DB_TIDY_WAIT_MS);
	bool ok = give_back_pages(db, until_ms, tidied, &busy) &&
		  run_text(db, "PRAGMA analysis_limit = 400; PRAGMA optimize", &busy);
	if (ok || busy.code == ERR_BUSY)
		ok = take_log_over(db, tidied, &busy);
	sqlite3_busy_timeout(db->handle, BUSY_TIMEOUT_MS);
	if (ok || busy.code == ERR_BUSY)
		return true;
	*err = busy;
	return false;
}
