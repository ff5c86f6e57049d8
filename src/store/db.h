/*
 * SQLite. One connection per process, opened after any fork. WAL, foreign keys, busy_timeout
 * and synchronous=FULL on each connection: what was acknowledged survives a power cut. Every
 * transaction that may write is BEGIN IMMEDIATE, short, and never held across I/O to a client
 * or a sandbox. Statements live in the row_*.c files, one array each, prepared once.
 */
#ifndef SPOOLBOX_STORE_DB_H
#define SPOOLBOX_STORE_DB_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "base/util.h"

struct db;

/* Opens (making it, mode 0600) and migrates. NULL with err set; a database that is newer than
 * the program or belongs to another program is refused. */
struct db *db_open(const char *path, struct err *err);
/* The same for a spool that had a database: one that is missing or has nothing in it yet is refused
 * and left as it is. */
struct db *db_open_known(const char *path, struct err *err);
void db_close(struct db *db);

/* The prepared form of a text that is a string literal (cached by its address), reset and
 * with its bindings cleared when the AUTO_STMT goes out of scope. NULL with err. */
sqlite3_stmt *db_prepare(struct db *db, const char *sql, struct err *err);
void db_release(sqlite3_stmt **stmt);
#define AUTO_STMT __attribute__((cleanup(db_release))) sqlite3_stmt

/* Binding by name (":id"); NULL text binds NULL. Text is bound by reference: it must live until
 * the statement is released. */
void db_bind_text(sqlite3_stmt *stmt, const char *name, const char *value);
void db_bind_int(sqlite3_stmt *stmt, const char *name, int64_t value);
void db_bind_null(sqlite3_stmt *stmt, const char *name);

/* One step. 1: a row; 0: done; -1: err set (a lock held too long is ERR_BUSY). */
int db_step(struct db *db, sqlite3_stmt *stmt, struct err *err);
/* Runs a statement that returns no row. changes (may be NULL) receives the rows changed. */
bool db_run(struct db *db, sqlite3_stmt *stmt, int *changes, struct err *err) MUST_USE;

/* Runs a statement that changes one row or none: 1, 0, or -1 with err. */
int db_change(struct db *db, sqlite3_stmt *stmt, struct err *err);
/* Runs a statement that changes any number of rows: that number, or -1 with err. */
int db_changes(struct db *db, sqlite3_stmt *stmt, struct err *err);

/* Column as xstrdup'ed text; NULL for NULL. */
char *db_column_dup(sqlite3_stmt *stmt, int column);
/* Column that holds an id; empty for NULL and for what is longer than one. */
void db_column_id(sqlite3_stmt *stmt, int column, char id[static ID_LEN + 1]);

/* Appends the ids in the first column of all rows of a bound SELECT, each with its NUL. What is no
 * id is left out: ids become names of directories. Their number, or -1 with err. */
int64_t db_read_ids(struct db *db, sqlite3_stmt *stmt, struct buf *ids, struct err *err);

/* A write transaction: begins at db_begin, is rolled back when the AUTO_TX goes out of scope
 * unless db_commit succeeded. */
struct db_tx {
	struct db *db;
};
bool db_begin(struct db *db, struct db_tx *tx, struct err *err) MUST_USE;
bool db_commit(struct db_tx *tx, struct err *err) MUST_USE;
void db_rollback(struct db_tx *tx);
#define AUTO_TX __attribute__((cleanup(db_rollback))) struct db_tx
#define TX_INIT \
	{ \
		NULL \
	}

/* What a tidying came to. */
struct db_tidied {
	int64_t wal_bytes;   /* size of the log before */
	bool truncated;      /* it is empty now */
	int64_t freed_pages; /* given back to the file system */
	int64_t free_pages;  /* left in the file */
};
/* Keeps the files small: takes the log over into the database, gives free pages back in short
 * transactions until until_ms (monotonic), and lets SQLite renew its statistics. Makes nobody wait
 * for more than DB_TIDY_WAIT_MS; what others hinder is left to the next time, without an error. */
#define DB_TIDY_WAIT_MS 50
bool db_tidy(struct db *db, int64_t until_ms, struct db_tidied *tidied, struct err *err) MUST_USE;

/* Version of an open database's schema: how many of the steps in store/schema.h it has. */
int db_schema_version(struct db *db);

#endif
