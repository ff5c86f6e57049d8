/* Keeps the file and its log small, without letting anybody wait. */
#include <stdio.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "store/db_part.h"

#define WAL_BYTES_MAX  (8 << 20) /* twice of where SQLite itself takes the log over */
#define FREE_PAGES_MIN 256       /* 1 MB: kept for what comes next */
#define FREE_SLICE     32        /* pages in one transaction: some 5 ms */
#define FREE_REST_MS   15        /* between two of them: who waits must find the lock free */

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
	       db_fail(db, "checkpoint", err);
}

/* Each slice is a transaction of its own. */
static bool give_back_pages(struct db *db, int64_t until_ms, struct db_tidied *tidied,
			    struct err *err)
{
	char slice[48];
	int64_t before, left;
	snprintf(slice, sizeof(slice), "PRAGMA incremental_vacuum(%d)", FREE_SLICE);
	if (!db_read_int(db, "PRAGMA freelist_count", &left, err))
		return false;
	do {
		before = left;
		tidied->free_pages = left;
		if (before <= FREE_PAGES_MIN || clock_mono_ms() >= until_ms)
			break;
		if (!db_run_text(db, slice, err) ||
		    !db_read_int(db, "PRAGMA freelist_count", &left, err))
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
		  db_run_text(db, "PRAGMA analysis_limit = 400; PRAGMA optimize", &busy);
	if (ok || busy.code == ERR_BUSY)
		ok = take_log_over(db, tidied, &busy);
	sqlite3_busy_timeout(db->handle, DB_BUSY_TIMEOUT_MS);
	if (ok || busy.code == ERR_BUSY)
		return true;
	*err = busy;
	return false;
}
