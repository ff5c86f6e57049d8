#include "unit.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include "store/db.h"
#include "store/schema.h"

static char *dir, *path;

static void setup(void)
{
	dir = unit_tempdir();
	path = xasprintf("%s/state.db", dir);
}

static void teardown(void)
{
	free(path);
	unit_tempdir_remove(dir);
}

static struct db *open_ok(void)
{
	struct err err = ERR_INIT;
	struct db *db = db_open(path, &err);
	ck_ok(db != NULL, err);
	return db;
}

/* Runs SQL on the file behind the module's back. */
static void raw(const char *sql)
{
	sqlite3 *handle;
	ck_assert_int_eq(sqlite3_open(path, &handle), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(handle);
}

static int64_t ask(struct db *db, const char *sql)
{
	struct err err = ERR_INIT;
	AUTO_STMT *stmt = db_prepare(db, sql, &err);
	ck_ok(stmt != NULL, err);
	ck_assert_int_eq(db_step(db, stmt, &err), 1);
	return sqlite3_column_int64(stmt, 0);
}

static bool do_sql(struct db *db, const char *sql, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql, err);
	return stmt != NULL && db_run(db, stmt, NULL, err);
}

TEST(a_new_database_has_the_newest_schema_and_our_application_id)
{
	setup();
	struct db *db = open_ok();
	ck_assert_int_eq(db_schema_version(db), schema_step_count);
	ck_assert_int_ge(schema_step_count, 1);
	ck_assert_int_eq(ask(db, "PRAGMA application_id"), 0x53504258);
	ck_assert_int_eq(ask(db, "SELECT count(*) FROM sandbox"), 0);
	ck_assert_int_eq(ask(db, "SELECT count(*) FROM link"), 0);
	db_close(db);
	db = open_ok();
	ck_assert_int_eq(db_schema_version(db), schema_step_count);
	db_close(db);
	teardown();
}
TEST_END

TEST(the_connection_is_durable_and_checks_foreign_keys)
{
	setup();
	struct db *db = open_ok();
	struct err err = ERR_INIT;
	AUTO_STMT *mode = db_prepare(db, "PRAGMA journal_mode", &err);
	ck_assert_int_eq(db_step(db, mode, &err), 1);
	ck_assert_str_eq((const char *)sqlite3_column_text(mode, 0), "wal");
	db_release(&mode);
	ck_assert_int_eq(ask(db, "PRAGMA synchronous"), 2);
	ck_assert_int_eq(ask(db, "PRAGMA foreign_keys"), 1);
	ck_assert_int_eq(ask(db, "PRAGMA busy_timeout"), 5000);
	db_close(db);
	teardown();
}
TEST_END

TEST(the_files_are_private_whatever_the_umask)
{
	setup();
	static const mode_t masks[] = {0, 022, 0777};
	for (size_t i = 0; i < ARRAY_LEN(masks); i++) {
		mode_t old = umask(masks[i]);
		struct db *db = open_ok();
		umask(old);
		struct err err = ERR_INIT;
		ck_ok(do_sql(db, "CREATE TABLE extra (a)", &err), err);
		struct stat st;
		ck_assert_int_eq(stat(path, &st), 0);
		ck_assert_int_eq(st.st_mode & 07777, 0600);
		AUTO_FREE char *wal = xasprintf("%s-wal", path);
		ck_assert_int_eq(stat(wal, &st), 0);
		ck_assert_int_eq(st.st_mode & 07777, 0600);
		db_close(db);
		unlink(path);
	}
	/* One that was left open to others is closed. */
	raw("CREATE TABLE t (a); DROP TABLE t");
	chmod(path, 0666);
	db_close(open_ok());
	struct stat st;
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0600);
	teardown();
}
TEST_END

static void refused(enum err_code code, const char *part)
{
	struct err err = ERR_INIT;
	ck_assert_ptr_null(db_open(path, &err));
	ck_assert_msg(err.code == code, "%s: %s [%s]", err_name(err.code), err.msg, err.trace);
	ck_assert_msg(strstr(err.msg, part) != NULL, "%s", err.msg);
	ck_assert_ptr_null(strstr(err.msg, dir));
	ck_assert_ptr_null(strstr(err.hint, dir));
}

TEST(a_newer_database_is_refused_and_left_alone)
{
	setup();
	db_close(open_ok());
	raw("PRAGMA user_version = 99");
	refused(ERR_UNAVAILABLE, "version 99");
	raw("CREATE TABLE still_writable (a)");
	teardown();
}
TEST_END

TEST(a_database_of_another_program_is_refused_and_left_alone)
{
	setup();
	raw("CREATE TABLE theirs (a); PRAGMA application_id = 7; PRAGMA journal_mode = DELETE");
	refused(ERR_UNAVAILABLE, "another program");
	sqlite3 *handle;
	ck_assert_int_eq(sqlite3_open(path, &handle), SQLITE_OK);
	sqlite3_stmt *stmt;
	sqlite3_prepare_v2(handle, "PRAGMA journal_mode", -1, &stmt, NULL);
	ck_assert_int_eq(sqlite3_step(stmt), SQLITE_ROW);
	ck_assert_str_eq((const char *)sqlite3_column_text(stmt, 0), "delete");
	sqlite3_finalize(stmt);
	sqlite3_close(handle);
	unlink(path);
	raw("CREATE TABLE without_an_id (a)");
	refused(ERR_UNAVAILABLE, "another program");
	teardown();
}
TEST_END

TEST(a_file_that_is_no_database_is_refused)
{
	setup();
	FILE *file = fopen(path, "w");
	for (int i = 0; i < 1000; i++)
		fputs("this is not a database\n", file);
	fclose(file);
	refused(ERR_UNAVAILABLE, "damaged");
	unlink(path);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	refused(ERR_UNAVAILABLE, "no regular file");
	rmdir(path);
	free(path);
	path = xasprintf("%s/missing/state.db", dir);
	refused(ERR_UNAVAILABLE, "cannot be created");
	teardown();
}
TEST_END

TEST(many_processes_open_a_new_database_at_once)
{
	setup();
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 16; i++) {
			if (fork() != 0)
				continue;
			struct err err = ERR_INIT;
			struct db *db = db_open(path, &err);
			if (db == NULL)
				fprintf(stderr, "# %s: %s [%s]\n", err_name(err.code), err.msg,
					err.trace);
			bool ok = db != NULL && db_schema_version(db) == schema_step_count;
			db_close(db);
			_exit(ok ? 0 : 1);
		}
		int status, failed = 0;
		while (wait(&status) > 0)
			failed += status != 0;
		ck_assert_int_eq(failed, 0);
		AUTO_FREE char *wal = xasprintf("%s-wal", path);
		AUTO_FREE char *shm = xasprintf("%s-shm", path);
		unlink(path);
		unlink(wal);
		unlink(shm);
	}
	teardown();
}
TEST_END

TEST(statements_are_prepared_once_and_come_back_clean)
{
	setup();
	static const char text[] = "SELECT :a";
	struct db *db = open_ok();
	struct err err = ERR_INIT;
	sqlite3_stmt *first;
	{
		AUTO_STMT *stmt = db_prepare(db, text, &err);
		first = stmt;
		db_bind_text(stmt, ":a", "x");
		ck_assert_int_eq(db_step(db, stmt, &err), 1);
		AUTO_FREE char *copy = db_column_dup(stmt, 0);
		ck_assert_str_eq(copy, "x");
	}
	AUTO_STMT *stmt = db_prepare(db, text, &err);
	ck_assert_ptr_eq(stmt, first);
	ck_assert_int_eq(db_step(db, stmt, &err), 1);
	ck_assert_ptr_null(db_column_dup(stmt, 0));
	db_release(&stmt);
	db_close(db);
	teardown();
}
TEST_END

TEST(a_transaction_that_is_not_committed_leaves_nothing)
{
	setup();
	struct db *db = open_ok();
	struct err err = ERR_INIT;
	ck_ok(do_sql(db, "CREATE TABLE t (a)", &err), err);
	{
		AUTO_TX tx = TX_INIT;
		ck_ok(db_begin(db, &tx, &err), err);
		ck_ok(do_sql(db, "INSERT INTO t VALUES (1)", &err), err);
	}
	ck_assert_int_eq(ask(db, "SELECT count(*) FROM t"), 0);
	{
		AUTO_TX tx = TX_INIT;
		ck_ok(db_begin(db, &tx, &err), err);
		ck_ok(do_sql(db, "INSERT INTO t VALUES (2)", &err), err);
		ck_ok(db_commit(&tx, &err), err);
	}
	ck_assert_int_eq(ask(db, "SELECT count(*) FROM t"), 1);
	db_close(db);
	teardown();
}
TEST_END

TEST(a_lock_that_is_held_too_long_is_busy_and_retryable)
{
	setup();
	struct db *holder = open_ok();
	struct err err = ERR_INIT;
	AUTO_TX tx = TX_INIT;
	ck_ok(db_begin(holder, &tx, &err), err);
	pid_t pid = fork();
	if (pid == 0) {
		struct db *db = db_open(path, &err);
		AUTO_TX other = TX_INIT;
		bool began = db != NULL && db_begin(db, &other, &err);
		db_close(db);
		_exit(!began && err.code == ERR_BUSY && err_retryable(err.code) ? 0 : 1);
	}
	int status;
	waitpid(pid, &status, 0);
	ck_assert_int_eq(status, 0);
	db_rollback(&tx);
	db_close(holder);
	teardown();
}
TEST_END

TEST(a_full_disk_is_quota_and_changes_nothing)
{
	setup();
	struct db *db = open_ok();
	struct err err = ERR_INIT;
	ck_ok(do_sql(db, "CREATE TABLE t (a)", &err), err);
	int64_t pages = ask(db, "PRAGMA page_count");
	AUTO_FREE char *limit = xasprintf("PRAGMA max_page_count = %lld", (long long)pages);
	ask(db, limit);
	{
		AUTO_TX tx = TX_INIT;
		ck_ok(db_begin(db, &tx, &err), err);
		ck_ok(do_sql(db, "INSERT INTO t VALUES (1)", &err), err);
		ck_assert(!do_sql(db, "INSERT INTO t VALUES (zeroblob(1000000))", &err));
		ck_assert_int_eq(err.code, ERR_QUOTA);
	}
	ck_assert_int_eq(ask(db, "SELECT count(*) FROM t"), 0);
	AUTO_TX tx = TX_INIT;
	ck_ok(db_begin(db, &tx, &err), err);
	db_rollback(&tx);
	db_close(db);
	teardown();
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		a_new_database_has_the_newest_schema_and_our_application_id,
		the_connection_is_durable_and_checks_foreign_keys,
		the_files_are_private_whatever_the_umask,
		a_newer_database_is_refused_and_left_alone,
		a_database_of_another_program_is_refused_and_left_alone,
		a_file_that_is_no_database_is_refused,
		many_processes_open_a_new_database_at_once,
		statements_are_prepared_once_and_come_back_clean,
		a_transaction_that_is_not_committed_leaves_nothing,
		a_lock_that_is_held_too_long_is_busy_and_retryable,
		a_full_disk_is_quota_and_changes_nothing,
	};
	return unit_run("db", unit_tests, ARRAY_LEN(unit_tests));
}
