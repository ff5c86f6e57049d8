#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "store/task_dir.h"

static char *dir;
static struct conf conf;
static struct spool spool;

static void setup(void)
{
	struct err err = ERR_INIT;
	dir = unit_tempdir();
	conf = (struct conf){.spool = xasprintf("%s/spool", dir),
			     .data_dir = xasprintf("%s/spool/data", dir)};
	ck_ok(spool_open(&spool, &conf, &err), err);
}

static void teardown(void)
{
	spool_close(&spool);
	free(conf.spool);
	free(conf.data_dir);
	unit_tempdir_remove(dir);
}

static int make(char id[static ID_LEN + 1])
{
	struct err err = ERR_INIT;
	id_make(id);
	AUTO_JSON *spec = json_literal("{\"command\":\"echo \\u0001 ü\",\"timeout_ms\":5}");
	int fd = task_dir_make(&spool, id, spec, &err);
	ck_ok(fd >= 0, err);
	return fd;
}

static bool exists(const char *prefix, const char *id)
{
	AUTO_FREE char *path = xasprintf("%s/spool/tasks/%s%s", dir, prefix, id);
	return access(path, F_OK) == 0;
}

static struct task_row outcome(enum task_state state, int exit_code)
{
	return (struct task_row){.state = state,
				 .has_exit_code = true,
				 .exit_code = exit_code,
				 .cpu_ms = 1,
				 .max_rss_kib = 2,
				 .survivors = 3,
				 .started_at = 10,
				 .finished_at = 20};
}

static void write_result(int fd, const struct task_row *row)
{
	struct err err = ERR_INIT;
	ck_ok(task_dir_write_result(fd, row, &err), err);
}

static enum task_verdict look(int fd, struct task_row *row)
{
	struct err err = ERR_INIT;
	enum task_verdict verdict = task_dir_verdict(fd, row, &err);
	ck_ok(verdict != TASK_VERDICT_NONE, err);
	return verdict;
}

TEST(a_new_directory_is_not_visible_before_it_is_published)
{
	setup();
	struct err err = ERR_INIT;
	char id[ID_LEN + 1];
	AUTO_FD fd = make(id);
	ck_assert_int_ge(fd, 0);
	ck_assert(exists(".new-", id));
	ck_assert(!exists("", id));
	ck_assert_int_eq(task_dir_open(&spool, id, &err), -1);
	ck_assert_int_eq(err.code, ERR_NOT_FOUND);
	AUTO_FD new_fd = task_dir_open_new(&spool, id, &err);
	ck_ok(new_fd >= 0, err);
	ck_ok(task_dir_publish(&spool, id, &err), err);
	ck_assert(!exists(".new-", id));
	AUTO_FD visible = task_dir_open(&spool, id, &err);
	ck_ok(visible >= 0, err);
	AUTO_JSON *spec = task_dir_spec(visible, &err);
	ck_ok(spec != NULL, err);
	ck_assert_str_eq(json_get_str(spec, "command"), "echo \001 ü");
	struct stat st;
	ck_assert_int_eq(fstat(visible, &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0700);
	teardown();
}
TEST_END

TEST(what_was_published_or_not_can_be_discarded_again_and_again)
{
	setup();
	struct err err = ERR_INIT;
	char first[ID_LEN + 1], second[ID_LEN + 1];
	AUTO_FD one = make(first);
	AUTO_FD two = make(second);
	ck_assert(one >= 0 && two >= 0);
	ck_ok(task_dir_publish(&spool, second, &err), err);
	for (int i = 0; i < 2; i++) {
		ck_ok(task_dir_discard(&spool, first, &err), err);
		ck_ok(task_dir_discard(&spool, second, &err), err);
	}
	ck_assert(!exists(".new-", first));
	ck_assert(!exists("", second));
	ck_assert(spool_sweep(&spool, 1000));
	AUTO_FREE char *trash = xasprintf("%s/spool/tasks/.trash", dir);
	ck_assert_int_eq(rmdir(trash), 0); /* so it is empty */
	teardown();
}
TEST_END

TEST(a_spec_that_is_damaged_is_an_error)
{
	setup();
	static const char *const bad[] = {"", "[1]", "{\"a\":", "null"};
	char id[ID_LEN + 1];
	AUTO_FD fd = make(id);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err err = ERR_INIT;
		AUTO_FD spec = openat(fd, "spec", O_WRONLY | O_TRUNC | O_CLOEXEC);
		ck_assert_int_eq(write(spec, bad[i], strlen(bad[i])), (ssize_t)strlen(bad[i]));
		ck_assert_ptr_null(task_dir_spec(fd, &err));
		ck_assert_int_eq(err.code, ERR_INTERNAL);
	}
	struct err err = ERR_INIT;
	ck_assert_int_eq(unlinkat(fd, "spec", 0), 0);
	ck_assert_ptr_null(task_dir_spec(fd, &err));
	ck_assert_int_eq(err.code, ERR_INTERNAL);
	teardown();
}
TEST_END

TEST(the_verdict_follows_lock_and_result)
{
	setup();
	struct err err = ERR_INIT;
	char id[ID_LEN + 1];
	AUTO_TASK_ROW row = {.state = TASK_RUNNING};
	AUTO_FD fd = make(id);
	ck_assert_int_eq(look(fd, &row), TASK_VERDICT_LOST);
	AUTO_FD lock = task_dir_take_lock(fd, &err);
	ck_ok(lock >= 0, err);
	ck_assert_int_eq(look(fd, &row), TASK_VERDICT_RUNNING);
	ck_assert_int_eq(task_dir_take_lock(fd, &err), -1);
	ck_assert_int_eq(err.code, ERR_BUSY);
	ck_assert_int_eq(row.state, TASK_RUNNING);
	struct task_row result = outcome(TASK_FAILED, 7);
	result.reason = (char *)"because \"of\" ü";
	write_result(fd, &result);
	ck_assert_int_eq(look(fd, &row), TASK_VERDICT_FINAL);
	util_close(&lock);
	ck_assert_int_eq(look(fd, &row), TASK_VERDICT_FINAL);
	ck_assert_int_eq(row.state, TASK_FAILED);
	ck_assert(row.has_exit_code);
	ck_assert_int_eq(row.exit_code, 7);
	ck_assert_int_eq(row.signal, 0);
	ck_assert_str_eq(row.reason, "because \"of\" ü");
	ck_assert_int_eq(row.cpu_ms, 1);
	ck_assert_int_eq(row.max_rss_kib, 2);
	ck_assert_int_eq(row.survivors, 3);
	ck_assert_int_eq(row.started_at, 10);
	ck_assert_int_eq(row.finished_at, 20);
	teardown();
}
TEST_END

TEST(the_first_result_stays)
{
	setup();
	char id[ID_LEN + 1];
	AUTO_TASK_ROW row = {.state = TASK_RUNNING};
	AUTO_FD fd = make(id);
	struct task_row first = outcome(TASK_UNKNOWN, 0), second = outcome(TASK_SUCCEEDED, 0);
	first.has_exit_code = false;
	first.signal = 15;
	write_result(fd, &first);
	write_result(fd, &second);
	ck_assert_int_eq(look(fd, &row), TASK_VERDICT_FINAL);
	ck_assert_int_eq(row.state, TASK_UNKNOWN);
	ck_assert(!row.has_exit_code);
	ck_assert_int_eq(row.signal, 15);
	/* No temporary file is left. */
	ck_assert_int_eq(unlinkat(fd, "result", 0) | unlinkat(fd, "spec", 0) |
				 unlinkat(fd, "alive", 0) | unlinkat(fd, "ctl", 0),
			 0);
	AUTO_FREE char *path = xasprintf("%s/spool/tasks/.new-%s", dir, id);
	ck_assert_int_eq(rmdir(path), 0);
	teardown();
}
TEST_END

TEST(a_damaged_result_is_an_end_that_is_not_known)
{
	setup();
	static const char *const bad[] = {"",
					  "{\"state\":\"succ",
					  "{\"state\":\"running\"}",
					  "{\"state\":\"none\"}",
					  "{\"state\":1}",
					  "[]",
					  "{\"state\":\"succeeded\"}",
					  "{\"state\":\"succeeded\",\"exit_code\":1}",
					  "{\"state\":\"failed\",\"exit_code\":4294967296}",
					  "{\"state\":\"failed\",\"exit_code\":\"1\"}",
					  "{\"state\":\"failed\",\"signal\":-9}",
					  "{\"state\":\"failed\",\"cpu_ms\":1e300}",
					  "{\"state\":\"failed\",\"finished_at\":null}",
					  "\0\0\0"};
	char id[ID_LEN + 1];
	AUTO_FD fd = make(id);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		AUTO_TASK_ROW row = {.state = TASK_RUNNING, .has_exit_code = true, .started_at = 7};
		AUTO_FD result =
			openat(fd, "result", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		size_t len = bad[i][0] == '\0' && i > 0 ? 3 : strlen(bad[i]);
		ck_assert_int_eq(write(result, bad[i], len), (ssize_t)len);
		ck_assert_int_eq(look(fd, &row), TASK_VERDICT_FINAL);
		ck_assert_int_eq(row.state, TASK_UNKNOWN);
		ck_assert(!row.has_exit_code && row.signal == 0 && row.cpu_ms == 0);
		ck_assert_int_eq(row.started_at, 7);
		ck_assert_ptr_nonnull(strstr(row.reason, "damaged"));
	}
	teardown();
}
TEST_END

TEST(orders_arrive_and_without_a_reader_they_are_refused)
{
	setup();
	struct err err = ERR_INIT;
	char id[ID_LEN + 1], got[8];
	AUTO_FD fd = make(id);
	ck_assert(!task_dir_order(fd, TASK_ORDER_CANCEL, &err));
	ck_assert_int_eq(err.code, ERR_CONFLICT);
	AUTO_FD orders = task_dir_open_orders(fd, &err);
	ck_ok(orders >= 0, err);
	ck_assert_int_eq(read(orders, got, sizeof(got)), -1);
	ck_assert_int_eq(errno, EAGAIN);
	ck_ok(task_dir_order(fd, TASK_ORDER_CANCEL, &err), err);
	ck_ok(task_dir_order(fd, TASK_ORDER_CANCEL, &err), err);
	ck_assert_int_eq(read(orders, got, sizeof(got)), 2);
	ck_assert_int_eq(got[0], 'c');
	/* A supervisor that does not look any more does not block who orders. */
	for (int i = 0; i < 70000; i++)
		ck_ok(task_dir_order(fd, TASK_ORDER_CANCEL, &err), err);
	util_close(&orders);
	err = (struct err)ERR_INIT;
	ck_assert(!task_dir_order(fd, TASK_ORDER_CANCEL, &err));
	ck_assert_int_eq(err.code, ERR_CONFLICT);
	teardown();
}
TEST_END

/* The life of a supervisor in short. Its end may come at any line. */
static void live(const char *id)
{
	struct err err = ERR_INIT;
	struct task_row row = outcome(TASK_SUCCEEDED, 0);
	int fd = task_dir_open_new(&spool, id, &err);
	if (fd < 0 || task_dir_take_lock(fd, &err) < 0 || !task_dir_publish(&spool, id, &err))
		_exit(1);
	clock_sleep_ms(1);
	if (!task_dir_write_result(fd, &row, &err))
		_exit(1);
	_exit(0);
}

static int64_t kill_at_us;

static int64_t clock_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Looks without a pause until the end, as a reader does that was told the id. */
static void watch(const char *id, pid_t pid)
{
	int status = 0;
	bool was_final = false, dead = false;
	for (;;) {
		if (!dead && clock_us() >= kill_at_us)
			kill(pid, SIGKILL); /* not reaped yet, so the number is its own */
		struct err err = ERR_INIT;
		AUTO_TASK_ROW row = {.state = TASK_RUNNING};
		dead = dead || waitpid(pid, &status, WNOHANG) == pid;
		AUTO_FD fd = task_dir_open(&spool, id, &err);
		enum task_verdict verdict =
			fd < 0 ? TASK_VERDICT_RUNNING : task_dir_verdict(fd, &row, &err);
		if (verdict == TASK_VERDICT_FINAL)
			ck_assert_int_eq(row.state, TASK_SUCCEEDED);
		ck_assert_msg(!was_final || verdict == TASK_VERDICT_FINAL, "taken back");
		was_final = was_final || verdict == TASK_VERDICT_FINAL;
		ck_assert_int_ne(verdict, TASK_VERDICT_NONE);
		if (verdict == TASK_VERDICT_LOST) {
			if (!dead)
				ck_assert_int_eq(waitpid(pid, &status, 0), pid);
			ck_assert_msg(WIFSIGNALED(status), "lost, but it ended by itself");
			return;
		}
		if (dead) {
			ck_assert(fd < 0 || verdict == TASK_VERDICT_FINAL);
			return;
		}
	}
}

TEST(no_look_at_any_moment_is_wrong)
{
	setup();
	unsigned seed = (unsigned)getpid();
	for (int i = 0; i < 300; i++) {
		char id[ID_LEN + 1];
		AUTO_FD fd = make(id);
		pid_t pid = fork();
		ck_assert(fd >= 0 && pid >= 0);
		if (pid == 0)
			live(id);
		kill_at_us = i % 3 == 0 ? clock_us() + rand_r(&seed) % 6000 : INT64_MAX;
		watch(id, pid);
	}
	teardown();
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		a_new_directory_is_not_visible_before_it_is_published,
		what_was_published_or_not_can_be_discarded_again_and_again,
		a_spec_that_is_damaged_is_an_error,
		the_verdict_follows_lock_and_result,
		the_first_result_stays,
		a_damaged_result_is_an_end_that_is_not_known,
		orders_arrive_and_without_a_reader_they_are_refused,
		no_look_at_any_moment_is_wrong,
	};
	return unit_run("task_dir", unit_tests, ARRAY_LEN(unit_tests));
}
