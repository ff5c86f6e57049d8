/* Private to db*.c: the connection, and what its files share. */
#ifndef SPOOLBOX_STORE_DB_PART_H
#define SPOOLBOX_STORE_DB_PART_H

#include "store/db.h"

#define DB_BUSY_TIMEOUT_S  5 /* beyond any transaction of ours; below a client's patience */
#define DB_BUSY_TIMEOUT_MS (DB_BUSY_TIMEOUT_S * 1000)

struct db_cached {
	const char *sql; /* a literal: its address is the key */
	sqlite3_stmt *stmt;
};

struct db {
	sqlite3 *handle;
	struct db_cached *cache;
	size_t cache_count;
};

/* Sets err from the last failed call on the connection. Always false. */
bool db_fail(const struct db *db, const char *doing, struct err *err);
/* Runs a text of ours that returns nothing of interest. */
bool db_run_text(struct db *db, const char *sql, struct err *err) MUST_USE;
/* The first column of the first row of a text of ours. */
bool db_read_int(struct db *db, const char *sql, int64_t *out, struct err *err) MUST_USE;

#endif
