/*
 * How a connection is opened and its database brought up to date. A database is recognised by its
 * application_id; PRAGMA user_version tells how many steps of the schema it has. Each step runs in
 * a transaction of its own that reads the version again first, so any number of workers may start
 * on a new or an old database at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "store/db_part.h"
#include "store/schema.h"

#define APPLICATION_ID 0x53504258 /* "SPBX"; in bytes 68..71 of the file, for file(1) */
#define WAL_RETRY_MS   5          /* the change to WAL does not always use the busy timeout */

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
	if (own && !db_run_text(db, "BEGIN", err))
		return false;
	bool ok = db_read_int(db, "PRAGMA application_id", &application, err) &&
		  db_read_int(db, "PRAGMA user_version", version, err) &&
		  db_read_int(db, "SELECT count(*) FROM sqlite_schema", &tables, err);
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
	if (!db_run_text(db, schema_steps[*version], err) || !db_run_text(db, stamp, err))
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
	int64_t deadline = clock_mono_ms() + DB_BUSY_TIMEOUT_MS;
	while (!db_run_text(db, "PRAGMA journal_mode = WAL", err)) {
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
	sqlite3_busy_timeout(db->handle, DB_BUSY_TIMEOUT_MS);
	/* Look before anything is written: a foreign database stays as it is. */
	if (!identify(db, &version, err))
		return false;
	if (version == 0 && !may_be_new)
		return refuse_new(err);
	/* Counts for a database that has nothing yet. */
	if (version == 0 && !db_run_text(db, "PRAGMA auto_vacuum = INCREMENTAL", err))
		return false;
	if (!use_wal(db, &waited)) {
		*err = waited;
		return false;
	}
	if (!db_run_text(db, "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON", err))
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
		db_fail(db, "open", err);
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

int db_schema_version(struct db *db)
{
	struct err err = ERR_INIT;
	int64_t version;
	return db_read_int(db, "PRAGMA user_version", &version, &err) ? (int)version : -1;
}
