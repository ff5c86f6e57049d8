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

/* Hash of a file's content, to see that it was left alone. */
static uint64_t content(const char *name)
{
	FILE *file = fopen(name, "r");
	ck_assert_ptr_nonnull(file);
	uint64_t hash = 1469598103934665603ULL; /* FNV-1a */
	for (int c; (c = fgetc(file)) != EOF;)
		hash = (hash ^ (uint64_t)c) * 1099511628211ULL;
	fclose(file);
	return hash;
}

TEST(a_truncated_database_is_refused_and_left_alone)
{
	setup();
	db_close(open_ok());
	struct stat st;
	ck_assert_int_eq(stat(path, &st), 0);
	/* A cut within the last page is not to be seen until that page is read, and to SQLite a
	 * file of one byte is empty. */
	for (off_t size = st.st_size - 4096; size > 1; size = size * 2 / 3) {
		ck_assert_int_eq(truncate(path, size), 0);
		uint64_t before = content(path);
		refused(ERR_UNAVAILABLE, "damaged");
		ck_assert_uint_eq(content(path), before);
	}
	teardown();
}
TEST_END

TEST(a_damaged_page_is_told_when_it_is_met)
{
	setup();
	struct db *db = open_ok();
	int64_t page = ask(db, "SELECT rootpage FROM sqlite_schema WHERE name = 'sandbox'");
	int64_t page_size = ask(db, "PRAGMA page_size");
	db_close(db);
	FILE *file = fopen(path, "r+");
	fseek(file, (long)((page - 1) * page_size), SEEK_SET);
	for (int64_t i = 0; i < page_size; i++)
		fputc('x', file);
	fclose(file);
	db = open_ok();
	struct err err = ERR_INIT;
	AUTO_STMT *stmt = db_prepare(db, "SELECT * FROM sandbox", &err);
	ck_assert_int_eq(db_step(db, stmt, &err), -1);
	ck_assert_int_eq(err.code, ERR_UNAVAILABLE);
	ck_assert_ptr_nonnull(strstr(err.msg, "damaged"));
	ck_assert_ptr_nonnull(strstr(err.hint, "backup"));
	ck_assert_int_eq(err.hint[strlen(err.hint) - 1], '.');
	db_release(&stmt);
	db_close(db);
	teardown();
}
TEST_END

TEST(a_database_that_cannot_be_written_is_refused_and_left_alone)
{
	setup();
	db_close(open_ok());
	uint64_t before = content(path);
	pid_t pid = fork();
	if (pid == 0) {
		/* Root could write it all the same. */
		if (geteuid() == 0 &&
		    (chown(path, 65534, 65534) != 0 || chown(dir, 65534, 65534) != 0 ||
		     setresuid(65534, 65534, 65534) != 0))
			_exit(2);
		if (chmod(dir, 0500) != 0)
			_exit(2);
		struct err err = ERR_INIT;
		struct db *db = db_open(path, &err);
		bool ok = db == NULL && err.code == ERR_UNAVAILABLE &&
			  strstr(err.msg, "nothing was changed") != NULL &&
			  strstr(err.hint, "directory") != NULL;
		if (!ok)
			fprintf(stderr, "# %s: %s [%s]\n", err_name(err.code), err.msg, err.trace);
		chmod(dir, 0700);
		_exit(ok ? 0 : 1);
	}
	int status;
	waitpid(pid, &status, 0);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(content(path), before);
	teardown();
}
TEST_END

TEST(a_known_database_is_not_made_anew)
{
	setup();
	struct err err = ERR_INIT;
	ck_assert_ptr_null(db_open_known(path, &err));
	ck_assert_int_eq(err.code, ERR_UNAVAILABLE);
	ck_assert_ptr_nonnull(strstr(err.msg, "missing or empty"));
	ck_assert_int_eq(access(path, F_OK), -1);
	fclose(fopen(path, "w"));
	ck_assert_ptr_null(db_open_known(path, &err));
	struct stat st;
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_size, 0);
	db_close(open_ok());
	struct db *db = db_open_known(path, &err);
	ck_assert_ptr_nonnull(db);
	db_close(db);
	teardown();
}
TEST_END

/* What version 2 of the schema left, with a row of each kind. */
static void make_version_2(void)
{
	ck_assert_int_ge(schema_step_count, 3);
	raw(schema_steps[0]);
	raw(schema_steps[1]);
	raw("PRAGMA application_id = 0x53504258; PRAGMA user_version = 2");
	raw("INSERT INTO sandbox (id, files_id, principal, name, state, template, network,"
	    " created_at, last_used_at, ended_at) VALUES"
	    " ('s1', 's1', 'p', 'one', 'live', 'base', 'none', 10, 20, NULL),"
	    " ('s2', 's2', 'p', 'two', 'gone', 'base', 'none', 10, 20, 30)");
	raw("INSERT INTO link (id, sandbox_id, principal, op, path, max_bytes, created_at,"
	    " expires_at) VALUES ('l1', 's1', 'p', 'get', 'f', 1, 1, 2)");
	raw("INSERT INTO task (id, sandbox_id, principal, origin, command, timeout_ms, state,"
	    " created_at, started_at, finished_at) VALUES"
	    " ('t1', 's1', 'p', 'job', 'true', 1, 'succeeded', 1, 2, 1234),"
	    " ('t2', 's1', 'p', 'job', 'true', 1, 'unknown', 7, 0, 0),"
	    " ('t3', 's1', 'p', 'job', 'true', 1, 'running', 1, 2, 0)");
}

TEST(a_database_of_version_2_keeps_its_rows_and_learns_when_logs_were_finished)
{
	setup();
	make_version_2();
	struct db *db = open_ok();
	ck_assert_int_eq(db_schema_version(db), schema_step_count);
	ck_assert_int_eq(ask(db, "SELECT count(*) FROM sandbox"), 2);
	ck_assert_int_eq(ask(db, "SELECT last_used_at FROM sandbox WHERE id = 's1'"), 20);
	ck_assert_int_eq(ask(db, "SELECT ended_at FROM sandbox WHERE id = 's2'"), 30);
	ck_assert_int_eq(ask(db, "SELECT count(*) FROM link"), 1);
	ck_assert_int_eq(ask(db, "SELECT log_since FROM task WHERE id = 't1'"), 1234);
	ck_assert_int_eq(ask(db, "SELECT log_since FROM task WHERE id = 't2'"), 7);
	ck_assert_int_eq(ask(db, "SELECT log_since FROM task WHERE id = 't3'"), 0);
	ck_assert_int_eq(ask(db, "SELECT count(*) FROM spool"), 0);
	ck_assert_int_eq(ask(db, "SELECT count(*) FROM clock_reading"), 0);
	db_close(db);
	teardown();
}
TEST_END

TEST(a_database_of_version_3_keeps_its_sandboxes_and_none_is_a_reserve)
{
	setup();
	ck_assert_int_ge(schema_step_count, 4);
	for (int i = 0; i < 3; i++)
		raw(schema_steps[i]);
	raw("PRAGMA application_id = 0x53504258; PRAGMA user_version = 3");
	raw("INSERT INTO sandbox (id, files_id, principal, name, state, template, network,"
	    " created_at, last_used_at) VALUES ('s1', 's1', 'p', 'one', 'live', 'base', 'none', 10,"
	    " 20)");
	struct db *db = open_ok();
	ck_assert_int_eq(db_schema_version(db), schema_step_count);
	ck_assert_int_eq(ask(db, "SELECT is_reserve FROM sandbox WHERE id = 's1'"), 0);
	ck_assert_int_eq(ask(db, "SELECT count(*) FROM python_session"), 0);
	db_close(db);
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
		a_truncated_database_is_refused_and_left_alone,
		a_damaged_page_is_told_when_it_is_met,
		a_database_that_cannot_be_written_is_refused_and_left_alone,
		a_known_database_is_not_made_anew,
		a_database_of_version_2_keeps_its_rows_and_learns_when_logs_were_finished,
		a_database_of_version_3_keeps_its_sandboxes_and_none_is_a_reserve,
		many_processes_open_a_new_database_at_once,
		statements_are_prepared_once_and_come_back_clean,
		a_transaction_that_is_not_committed_leaves_nothing,
		a_lock_that_is_held_too_long_is_busy_and_retryable,
		a_full_disk_is_quota_and_changes_nothing,
	};
	return unit_run("db", unit_tests, ARRAY_LEN(unit_tests));
}
