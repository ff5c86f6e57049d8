#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fs.h"
#include "store/identity.h"

#define OTHER "0123456789abcdef0123456789abcdef"

static char *dir;
static struct conf conf;
static struct spool spool;
static struct db *db;

static void open_spool(void)
{
	struct err err = ERR_INIT;
	ck_ok(spool_open(&spool, &conf, &err), err);
}

/* SMCP_DATA_DIR is a directory of its own here: it could be a disk. */
static void setup(void)
{
	dir = unit_tempdir();
	conf = (struct conf){
		.spool = xasprintf("%s/spool", dir),
		.data_dir = xasprintf("%s/disk", dir),
		.state_db = xasprintf("%s/spool/state.db", dir),
	};
	open_spool();
}

static void close_db(void)
{
	db_close(db);
	db = NULL;
}

static void teardown(void)
{
	close_db();
	spool_close(&spool);
	free(conf.spool);
	free(conf.data_dir);
	free(conf.state_db);
	unit_tempdir_remove(dir);
}

/* As app_open_db does it. */
static bool check(struct err *err)
{
	close_db();
	*err = (struct err)ERR_INIT;
	int rc = identity_is_known(&spool, err);
	if (rc < 0)
		return false;
	db = rc ? db_open_known(conf.state_db, err) : db_open(conf.state_db, err);
	return db != NULL && identity_check(&spool, db, err);
}

static void check_ok(void)
{
	struct err err;
	ck_ok(check(&err), err);
}

/* Runs SQL on the file behind the module's back. */
static void raw(const char *sql)
{
	sqlite3 *handle;
	ck_assert_int_eq(sqlite3_open(conf.state_db, &handle), SQLITE_OK);
	ck_assert_msg(sqlite3_exec(handle, sql, NULL, NULL, NULL) == SQLITE_OK, "%s",
		      sqlite3_errmsg(handle));
	sqlite3_close(handle);
}

static void copy_db(const char *from, const char *to)
{
	AUTO_FREE char *command = xasprintf("cd '%s/spool' && rm -f %s-wal %s-shm && cp %s %s", dir,
					    to, to, from, to);
	ck_assert_int_eq(system(command), 0);
}

static void write_id(int dirfd, const char *text)
{
	struct err err = ERR_INIT;
	ck_ok(fs_write_atomic(dirfd, "spool.id", text, strlen(text), 0600, &err), err);
}

/* The text of a file, or "" when there is none. */
static const char *id_in(int dirfd, char text[static 64])
{
	memset(text, 0, 64);
	AUTO_FD fd = openat(dirfd, "spool.id", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, text, 63) < 0)
		abort();
	return text;
}

static bool has(int dirfd, const char *name)
{
	return faccessat(dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* All entries of the two directories, their sizes and times of change: what must not change. The
 * database's side files come and go with each look at it. */
static char *snapshot(void)
{
	AUTO_FREE char *command = xasprintf(
		"cd '%s' && { find . ! -name '*-wal' ! -name '*-shm' ! -path ./spool -printf "
		"'%%p %%s %%m %%T@\\n' | sort; md5sum spool/state.db; } 2>&1",
		dir);
	FILE *out = popen(command, "r");
	struct buf text = BUF_INIT;
	char chunk[4096];
	for (size_t n; (n = fread(chunk, 1, sizeof(chunk), out)) > 0;)
		buf_append(&text, chunk, n);
	pclose(out);
	return text.data; /* handed over */
}

/* Refused with this text, twice, and without a trace. */
static void refused(const char *part, const char *hint)
{
	close_db();
	AUTO_FREE char *before = snapshot();
	for (int i = 0; i < 2; i++) {
		struct err err;
		ck_assert(!check(&err));
		ck_assert_int_eq(err.code, ERR_UNAVAILABLE);
		ck_assert_msg(strstr(err.msg, part) != NULL, "%s", err.msg);
		ck_assert_msg(strstr(err.hint, hint) != NULL, "%s", err.hint);
		ck_assert_ptr_null(strstr(err.msg, dir));
		ck_assert_ptr_null(strstr(err.hint, dir));
		/* Whole: none was cut. */
		ck_assert_int_eq(err.msg[strlen(err.msg) - 1] == '.', 0);
		ck_assert_int_eq(err.hint[strlen(err.hint) - 1], '.');
		close_db();
	}
	AUTO_FREE char *after = snapshot();
	ck_assert_str_eq(after, before);
}

TEST(a_first_start_makes_one_id_and_later_ones_find_it)
{
	setup();
	check_ok();
	char root[64], data[64];
	ck_assert_uint_eq(strlen(id_in(spool.root_fd, root)), ID_LEN + 1);
	ck_assert_str_eq(root, id_in(spool.data_fd, data));
	struct stat st;
	ck_assert_int_eq(fstatat(spool.data_fd, "spool.id", &st, 0), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0600);
	ck_assert_int_eq(st.st_nlink, 1);
	for (int i = 0; i < 3; i++)
		check_ok();
	ck_assert_str_eq(root, id_in(spool.root_fd, data));
	teardown();
}
TEST_END

TEST(one_directory_for_both_has_one_file)
{
	setup();
	spool_close(&spool);
	free(conf.data_dir);
	conf.data_dir = xstrdup(conf.spool);
	open_spool();
	check_ok();
	check_ok();
	teardown();
}
TEST_END

TEST(a_database_of_an_earlier_version_gets_an_id)
{
	setup();
	check_ok();
	close_db();
	/* Version 2 had sandboxes, but no id anywhere. */
	raw("DELETE FROM spool; INSERT INTO sandbox (id, files_id, principal, name, state, "
	    "template, network, created_at, last_used_at) VALUES ('a', 'a', 'p', 'n', 'live', "
	    "'base', 'none', 1, 1)");
	unlinkat(spool.root_fd, "spool.id", 0);
	unlinkat(spool.data_fd, "spool.id", 0);
	check_ok();
	check_ok();
	teardown();
}
TEST_END

TEST(a_lost_database_is_refused_and_no_new_one_is_made)
{
	setup();
	check_ok();
	close_db();
	ck_assert_int_eq(mkdirat(spool.data_fd, OTHER, 0700), 0);
	unlink(conf.state_db);
	refused("missing or empty", "remove the file spool.id of both");
	ck_assert(!has(spool.root_fd, "state.db"));
	/* Also when only one of the files is left. */
	unlinkat(spool.root_fd, "spool.id", 0);
	refused("missing or empty", "put the right state.db back");
	/* What the hint says, works. */
	unlinkat(spool.data_fd, "spool.id", 0);
	check_ok();
	check_ok();
	ck_assert(has(spool.data_fd, OTHER));
	teardown();
}
TEST_END

TEST(an_empty_database_and_one_whose_log_was_lost_are_refused_and_left_alone)
{
	setup();
	check_ok();
	/* A copy of the file alone while its content is still in the log. */
	copy_db("state.db", "half.db");
	close_db();
	copy_db("half.db", "state.db");
	refused("missing or empty", "spool.id");
	ck_assert_int_eq(truncate(conf.state_db, 0), 0);
	refused("missing or empty", "spool.id");
	teardown();
}
TEST_END

TEST(a_new_database_beside_an_old_spool_is_refused)
{
	setup();
	check_ok();
	close_db();
	raw("DELETE FROM spool");
	refused("it is new, or older", "put the right state.db back");
	unlinkat(spool.root_fd, "spool.id", 0);
	refused("it is new, or older", "remove the file spool.id of both");
	teardown();
}
TEST_END

TEST(the_database_of_another_spool_is_refused_and_the_right_one_taken_back)
{
	setup();
	check_ok();
	close_db();
	copy_db("state.db", "right.db");
	raw("UPDATE spool SET id = '" OTHER "'");
	refused("belongs to another one", "Put the right state.db back");
	copy_db("right.db", "state.db");
	check_ok();
	teardown();
}
TEST_END

TEST(a_data_directory_that_is_not_mounted_is_refused_until_it_is)
{
	setup();
	check_ok();
	AUTO_FREE char *away = xasprintf("%s/unmounted", dir);
	ck_assert_int_eq(rename(conf.data_dir, away), 0);
	ck_assert_int_eq(mkdir(conf.data_dir, 0700), 0); /* the mount point */
	spool_close(&spool);
	open_spool();
	refused("not mounted", "Mount it");
	write_id(spool.data_fd, OTHER "\n");
	refused("belongs to another spool", "SMCP_DATA_DIR");
	unlinkat(spool.data_fd, "spool.id", 0);
	rmdir(conf.data_dir);
	AUTO_FREE char *command = xasprintf("rm -rf '%s'", conf.data_dir);
	ck_assert_int_eq(system(command), 0);
	ck_assert_int_eq(rename(away, conf.data_dir), 0);
	spool_close(&spool);
	open_spool();
	check_ok();
	teardown();
}
TEST_END

TEST(each_file_that_is_missing_or_differs_has_its_own_text_and_way_on)
{
	setup();
	check_ok();
	char id[64];
	id_in(spool.root_fd, id);
	unlinkat(spool.root_fd, "spool.id", 0);
	refused("the spool directory (SMCP_SPOOL) lacks", "copy the spool.id of the data");
	write_id(spool.root_fd, OTHER "\n");
	refused("the spool directory (SMCP_SPOOL) is not the one", "SMCP_SPOOL");
	write_id(spool.data_fd, OTHER "\n");
	refused("belongs to another one", "state.db");
	unlinkat(spool.root_fd, "spool.id", 0);
	unlinkat(spool.data_fd, "spool.id", 0);
	refused("both lack the file", "move the state database away");
	write_id(spool.root_fd, id);
	write_id(spool.data_fd, id);
	check_ok();
	teardown();
}
TEST_END

TEST(a_file_that_holds_no_id_is_refused)
{
	setup();
	check_ok();
	static const char *const bad[] = {
		"", "\n", OTHER, OTHER "x", OTHER "\n\n", "0123456789ABCDEF0123456789ABCDEF\n"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		write_id(spool.data_fd, bad[i]);
		refused("spool.id in the data directory is damaged", "copy the spool.id");
	}
	unlinkat(spool.data_fd, "spool.id", 0);
	ck_assert_int_eq(mkfifoat(spool.data_fd, "spool.id", 0600), 0);
	refused("damaged", "copy");
	unlinkat(spool.data_fd, "spool.id", 0);
	ck_assert_int_eq(symlinkat("/etc/passwd", spool.data_fd, "spool.id"), 0);
	struct err err;
	ck_assert(!check(&err));
	teardown();
}
TEST_END

/* --- a first start that dies ---------------------------------------------------------------- */

/* What a process leaves that was killed after so many of its steps. */
static void leave(bool temp_in_data, bool data, bool temp_in_root, bool root)
{
	char id[64], temp[64];
	check_ok();
	close_db();
	id_in(spool.root_fd, id);
	snprintf(temp, sizeof(temp), ".new-%.32s", id);
	raw("UPDATE spool SET is_whole = 0");
	if (temp_in_data)
		ck_assert_int_eq(linkat(spool.data_fd, "spool.id", spool.data_fd, temp, 0), 0);
	if (temp_in_root)
		ck_assert_int_eq(linkat(spool.root_fd, "spool.id", spool.root_fd, temp, 0), 0);
	if (!data)
		unlinkat(spool.data_fd, "spool.id", 0);
	if (!root)
		unlinkat(spool.root_fd, "spool.id", 0);
}

TEST(a_first_start_that_died_at_any_step_is_brought_to_its_end_by_the_next)
{
	static const struct {
		bool temp_in_data, data, temp_in_root, root;
	} left[] = {
		{false, false, false, false}, {true, false, false, false},
		{true, true, false, false},   {false, true, false, false},
		{false, true, true, false},   {false, true, true, true},
		{false, true, false, true},
	};
	for (size_t i = 0; i < ARRAY_LEN(left); i++) {
		setup();
		leave(left[i].temp_in_data, left[i].data, left[i].temp_in_root, left[i].root);
		check_ok();
		char root[64], data[64], temp[64];
		ck_assert_uint_eq(strlen(id_in(spool.root_fd, root)), ID_LEN + 1);
		ck_assert_str_eq(root, id_in(spool.data_fd, data));
		snprintf(temp, sizeof(temp), ".new-%.32s", root);
		ck_assert(!has(spool.root_fd, temp) && !has(spool.data_fd, temp));
		close_db();
		/* It is whole now: what is missing from here on was lost. */
		unlinkat(spool.root_fd, "spool.id", 0);
		refused("lacks", "copy");
		teardown();
	}
}
TEST_END

TEST(a_first_start_that_died_does_not_excuse_what_it_cannot_have_left)
{
	setup();
	leave(false, false, false, true);
	refused("not mounted", "Mount");
	write_id(spool.data_fd, OTHER "\n");
	refused("another spool", "SMCP_DATA_DIR");
	unlinkat(spool.root_fd, "spool.id", 0);
	refused("belongs to another one", "state.db");
	ck_assert(!has(spool.root_fd, "spool.id"));
	unlink(conf.state_db);
	refused("missing or empty", "spool.id");
	teardown();
}
TEST_END

/* As a worker's start, over and over; killed from outside. */
static _Noreturn void start_over(void)
{
	struct err err;
	db = NULL;
	spool = (struct spool)SPOOL_INIT;
	open_spool();
	check(&err);
	raise(SIGKILL);
	abort();
}

TEST(first_starts_that_are_killed_at_any_time_heal)
{
	for (int round = 0; round < 150; round++) {
		setup();
		spool_close(&spool);
		pid_t pid = fork();
		if (pid == 0)
			start_over();
		/* A whole first start takes a few milliseconds to tens of them. */
		usleep((useconds_t)(round % 50) * 400);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		open_spool();
		check_ok();
		check_ok();
		teardown();
	}
}
TEST_END

TEST(many_first_starts_at_once_agree)
{
	for (int round = 0; round < 5; round++) {
		setup();
		for (int i = 0; i < 12; i++) {
			if (fork() != 0)
				continue;
			struct err err;
			bool ok = check(&err);
			if (!ok)
				fprintf(stderr, "# %s: %s [%s]\n", err_name(err.code), err.msg,
					err.trace);
			close_db();
			_exit(ok ? 0 : 1);
		}
		int status, failed = 0;
		while (wait(&status) > 0)
			failed += status != 0;
		ck_assert_int_eq(failed, 0);
		check_ok();
		teardown();
	}
}
TEST_END

TEST(of_two_databases_that_claim_a_new_spool_at_once_one_gets_it)
{
	for (int round = 0; round < 20; round++) {
		setup();
		for (int i = 0; i < 2; i++) {
			if (fork() != 0)
				continue;
			struct err err;
			char *path = xasprintf("%s/%d.db", dir, i);
			bool ok = (db = db_open(path, &err)) != NULL;
			free(path);
			ok = ok && identity_check(&spool, db, &err);
			_exit(ok ? 0 : 1);
		}
		int status, failed = 0;
		while (wait(&status) > 0)
			failed += status != 0;
		char root[64], data[64];
		ck_assert_int_eq(failed, 1);
		ck_assert_str_eq(id_in(spool.root_fd, root), id_in(spool.data_fd, data));
		teardown();
	}
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		a_first_start_makes_one_id_and_later_ones_find_it,
		one_directory_for_both_has_one_file,
		a_database_of_an_earlier_version_gets_an_id,
		a_lost_database_is_refused_and_no_new_one_is_made,
		an_empty_database_and_one_whose_log_was_lost_are_refused_and_left_alone,
		a_new_database_beside_an_old_spool_is_refused,
		the_database_of_another_spool_is_refused_and_the_right_one_taken_back,
		a_data_directory_that_is_not_mounted_is_refused_until_it_is,
		each_file_that_is_missing_or_differs_has_its_own_text_and_way_on,
		a_file_that_holds_no_id_is_refused,
		a_first_start_that_died_at_any_step_is_brought_to_its_end_by_the_next,
		a_first_start_that_died_does_not_excuse_what_it_cannot_have_left,
		first_starts_that_are_killed_at_any_time_heal,
		many_first_starts_at_once_agree,
		of_two_databases_that_claim_a_new_spool_at_once_one_gets_it,
	};
	return unit_run("identity", unit_tests, ARRAY_LEN(unit_tests));
}
