/* Python in real sandboxes: starting it, runs, sessions, and what is left when something dies. */
#include "box_kit.h"

#include <sys/socket.h>
#include <time.h>

#include "base/lock.h"
#include "run/kernel.h"

static struct kit kit;
static struct err err;
static struct kernel_run run;

static const char *const env[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/workspace",
				  "LANG=C.UTF-8", "PYTHONUNBUFFERED=1", NULL};

static bool start_with(const char *line)
{
	const char *const argv[] = {"/bin/bash", "-c", line, NULL};
	struct runtime_command command = {
		.argv = argv, .env = env, .cwd = "/workspace", .limits = kit.limits};
	err = (struct err)ERR_INIT;
	return kernel_start(kit.runtime, &kit.box, &command, &err);
}

static bool start_kernel(void)
{
	AUTO_BUF line = BUF_INIT;
	kernel_command(&line, 60000, false);
	return start_with(buf_str(&line));
}

static void begin(void)
{
	kit_start(&kit);
	ck_ok(start_kernel(), err);
	kernel_run_init(&run, 10000, 10000);
}

static void end(void)
{
	kernel_run_finish(&run);
	kit_end(&kit);
}

static struct kernel_request request = {
	.cwd = "/workspace",
	.save_dir = "/workspace/.python/save",
	.timeout_ms = 20000,
	.image_bytes = 1 << 20,
	.idle_ms = 60000,
};

/* Runs over a connection, which is used up; run has what came of it. */
static bool run_on(int fd, const char *code, const char *new_session_id, kernel_tick *tick)
{
	kernel_run_finish(&run);
	kernel_run_init(&run, 10000, 10000);
	request.code = code;
	request.code_len = strlen(code);
	ck_assert_msg(fd >= 0, "%s: %s", err_name(err.code), err.msg);
	bool ok = kernel_run(fd, &kit.box, &request, new_session_id, tick, NULL, &run, &err);
	close(fd);
	return ok;
}

static void run_code(const char *code)
{
	ck_ok(run_on(kernel_connect(&kit.box, &err), code, NULL, NULL), err);
}

static const char *text_of(const struct capture *capture)
{
	static struct buf text;
	buf_clear(&text);
	capture_text(capture, &text);
	return buf_str(&text);
}

static void expect(const char *code, enum kernel_end wanted, const char *output)
{
	run_code(code);
	ck_assert_msg(run.end == wanted, "end %d, code %d, signal %d: %s%s", run.end, run.code,
		      run.signal, text_of(&run.err), run.error ? json_text(run.error, NULL) : "");
	ck_assert_str_eq(text_of(&run.out), output);
}

/* Processes of the sandbox that came out of the kernel. */
static int count_inside(void)
{
	return atoi(kit_shell(&kit, "grep -l '[k]ernel[.]py' /proc/[0-9]*/cmdline | wc -l").out);
}

static int settle_inside(int wanted)
{
	int count = count_inside();
	for (int i = 0; i < 100 && count != wanted; i++) {
		clock_sleep_ms(20);
		count = count_inside();
	}
	return count;
}

TEST(code_prints_and_has_a_value)
{
	begin();
	expect("import sys\nprint(1)\nprint(2, file=sys.stderr)\n6 * 7", KERNEL_END_DONE, "1\n");
	ck_assert_str_eq(text_of(&run.err), "2\n");
	ck_assert_str_eq(json_get_str(run.value, "text"), "42");
	ck_assert_str_eq(json_get_str(run.value, "type"), "int");
	ck_assert(run.started && !run.left_out && !run.timed_out && !run.cancelled);
	ck_assert_int_eq(run.state, KERNEL_STATE_NONE);
	ck_assert_int_gt(run.max_rss_kib, 1000);
	/* Nothing of it is left for the next one. */
	run_code("x = 1");
	run_code("x");
	ck_assert_int_eq(run.end, KERNEL_END_EXCEPTION);
	ck_assert_str_eq(json_get_str(run.error, "type"), "NameError");
	ck_assert_ptr_null(strstr(json_get_str(run.error, "traceback"), ".python"));
	end();
}
TEST_END

TEST(each_end_is_told_for_what_it_is)
{
	begin();
	expect("print('a'); raise SystemExit(3)", KERNEL_END_EXIT, "a\n");
	ck_assert_int_eq(run.code, 3);
	expect("import os; print('b', flush=True); os._exit(4)", KERNEL_END_EXIT, "b\n");
	ck_assert_int_eq(run.code, 4);
	expect("import os; print('c', flush=True); os.abort()", KERNEL_END_SIGNAL, "c\n");
	ck_assert_int_eq(run.signal, SIGABRT);
	end();
}
TEST_END

TEST(code_that_kills_its_watcher_was_run_and_its_end_was_not_seen)
{
	begin();
	for (int i = 0; i < 10; i++) {
		/* At the first chance that it has. */
		run_code("import os; os.kill(os.getppid(), 9); import time; time.sleep(1000)");
		ck_assert_int_eq(run.end, KERNEL_END_LOST);
		ck_assert(run.started);
	}
	ck_assert_int_eq(settle_inside(1), 1);
	end();
}
TEST_END

TEST(an_image_arrives_whole)
{
	begin();
	run_code("class Picture:\n"
		 "    def _repr_png_(self):\n"
		 "        import struct, zlib\n"
		 "        def chunk(kind, data):\n"
		 "            check = struct.pack('>I', zlib.crc32(kind + data))\n"
		 "            return struct.pack('>I', len(data)) + kind + data + check\n"
		 "        rows = b''.join(b'\\0' + bytes([y]) * 100 for y in range(50))\n"
		 "        return (b'\\x89PNG\\r\\n\\x1a\\n'\n"
		 "            + chunk(b'IHDR', struct.pack('>IIBBBBB', 100, 50, 8, 0, 0, 0, 0))\n"
		 "            + chunk(b'IDAT', zlib.compress(rows, 0)) + chunk(b'IEND', b''))\n"
		 "Picture()\n");
	ck_assert_int_eq(run.end, KERNEL_END_DONE);
	ck_assert_uint_eq(run.image_count, 1);
	ck_assert_str_eq(run.images[0].mime, "image/png");
	ck_assert_int_eq(run.images[0].width, 100);
	ck_assert_int_eq(run.images[0].height, 50);
	ck_assert_uint_gt(run.images[0].data.len, 5000);
	ck_assert_int_eq(memcmp(run.images[0].data.data + run.images[0].data.len - 8, "IEND", 4),
			 0);
	end();
}
TEST_END

TEST(a_timeout_interrupts_and_then_kills)
{
	begin();
	request.timeout_ms = 500;
	run_code("print('before', flush=True)\nwhile True: pass");
	ck_assert(run.timed_out && !run.cancelled);
	ck_assert_str_eq(text_of(&run.out), "before\n");
	ck_assert_int_ge(run.duration_ms, 450);
	ck_assert_int_lt(run.duration_ms, 500 + RUNTIME_GRACE_MS);
	/* Not "while True: pass": before Python 3.12 an interrupt in that passes by the handler. */
	run_code("import time\n"
		 "while True:\n    try:\n        time.sleep(1000)\n"
		 "    except KeyboardInterrupt:\n        print('no', flush=True)\n");
	ck_assert(run.timed_out);
	ck_assert_str_eq(text_of(&run.out), "no\n");
	ck_assert_int_eq(run.end, KERNEL_END_SIGNAL);
	ck_assert_int_eq(run.signal, SIGKILL);
	ck_assert_int_ge(run.duration_ms, 450 + RUNTIME_GRACE_MS);
	ck_assert_int_eq(settle_inside(1), 1);
	end();
}
TEST_END

static bool refuse(void *ctx)
{
	(void)ctx;
	return false;
}

TEST(a_caller_who_goes_away_ends_the_run)
{
	begin();
	ck_ok(run_on(kernel_connect(&kit.box, &err), "while True: pass", NULL, refuse), err);
	ck_assert(run.cancelled && run.started);
	ck_assert_int_ne(run.end, KERNEL_END_DONE);
	ck_assert_int_lt(run.duration_ms, 500 + RUNTIME_GRACE_MS + 1000);
	/* One that dies says nothing any more. */
	pid_t pid = fork();
	if (pid == 0) {
		run_code("import time; time.sleep(1000)");
		_exit(0);
	}
	for (int i = 0; i < 100 && count_inside() < 3; i++)
		clock_sleep_ms(20);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	clock_sleep_ms(RUNTIME_GRACE_MS);
	ck_assert_int_eq(settle_inside(1), 1);
	end();
}
TEST_END

TEST(of_many_starts_at_once_one_starts)
{
	kit_start(&kit);
	pid_t pids[8];
	for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			kernel_run_init(&run, 1000, 1000);
			ck_ok(start_kernel(), err);
			run_code("print('here')");
			_exit(strcmp(text_of(&run.out), "here\n") == 0 ? 0 : 1);
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
		int status = -1;
		waitpid(pids[i], &status, 0);
		ck_assert_int_eq(status, 0);
	}
	ck_assert_int_eq(settle_inside(1), 1);
	/* And a start changes nothing when it is there. */
	ck_ok(start_with("exit 1"), err);
	end();
}
TEST_END

#define SESSION "0123456789abcdef0123456789abcdef"

static void run_in_session(const char *code)
{
	ck_ok(run_on(kernel_connect_session(&kit.box, SESSION, &err), code, NULL, NULL), err);
}

TEST(a_session_keeps_its_variables_from_one_connection_to_the_next)
{
	begin();
	ck_ok(run_on(kernel_connect(&kit.box, &err), "x = 20", SESSION, NULL), err);
	ck_assert_int_eq(run.end, KERNEL_END_DONE);
	ck_assert_int_eq(run.state, KERNEL_STATE_KEPT);
	ck_assert_int_eq(run.runs, 1);
	run_in_session("x += 1\nprint(x)");
	ck_assert_str_eq(text_of(&run.out), "21\n");
	ck_assert_int_eq(run.runs, 2);
	/* An interrupt leaves them where they are. */
	request.timeout_ms = 300;
	run_in_session("x += 1\nwhile True: pass");
	ck_assert(run.timed_out);
	ck_assert_int_eq(run.state, KERNEL_STATE_KEPT);
	request.timeout_ms = 20000;
	run_in_session("print(x)");
	ck_assert_str_eq(text_of(&run.out), "22\n");
	/* Others do not see them. */
	run_code("x");
	ck_assert_int_eq(run.end, KERNEL_END_EXCEPTION);
	end();
}
TEST_END

TEST(a_session_that_is_ended_leaves_nothing)
{
	begin();
	ck_ok(run_on(kernel_connect(&kit.box, &err), "x = 1", SESSION, NULL), err);
	ck_assert_int_eq(faccessat(kit.box.run_dir_fd, "py-" SESSION ".sock", F_OK, 0), 0);
	ck_assert_int_gt(count_inside(), 1);
	kernel_end_session(&kit.box, SESSION);
	ck_assert_int_eq(settle_inside(1), 1);
	ck_assert_int_lt(faccessat(kit.box.run_dir_fd, "py-" SESSION ".sock", F_OK, 0), 0);
	ck_assert_int_eq(kernel_connect_session(&kit.box, SESSION, &err), -1);
	ck_assert_int_eq(err.code, ERR_LOST);
	kernel_end_session(&kit.box, SESSION);
	end();
}
TEST_END

TEST(a_session_that_dies_is_lost_and_says_so)
{
	begin();
	ck_ok(run_on(kernel_connect(&kit.box, &err), "x = 1", SESSION, NULL), err);
	run_in_session("import os; os._exit(5)");
	ck_assert_int_eq(run.end, KERNEL_END_EXIT);
	ck_assert_int_eq(run.code, 5);
	ck_assert_int_eq(run.state, KERNEL_STATE_LOST);
	ck_assert_int_eq(settle_inside(1), 1);
	int fd = kernel_connect_session(&kit.box, SESSION, &err);
	ck_assert_int_eq(fd, -1);
	ck_assert_int_eq(err.code, ERR_LOST);
	/* One whose first run ends it was none. */
	ck_ok(run_on(kernel_connect(&kit.box, &err), "import os; os._exit(5)", "other", NULL), err);
	ck_assert_int_eq(run.state, KERNEL_STATE_LOST);
	ck_assert_int_lt(faccessat(kit.box.run_dir_fd, "py-other.sock", F_OK, 0), 0);
	end();
}
TEST_END

TEST(a_kernel_that_was_killed_is_started_again)
{
	begin();
	for (int i = 0; i < 3; i++) {
		kit_shell(&kit, "kill -9 $(grep -l '[k]ernel[.]py' /proc/[0-9]*/cmdline | "
				"cut -d / -f 3)");
		ck_assert_int_eq(settle_inside(0), 0);
		ck_assert_int_eq(kernel_connect(&kit.box, &err), -1);
		ck_assert_int_eq(err.code, ERR_LOST);
		ck_ok(start_kernel(), err);
		expect("print('again')", KERNEL_END_DONE, "again\n");
	}
	end();
}
TEST_END

TEST(a_sandbox_that_goes_down_loses_the_run_and_then_python_has_to_be_started)
{
	begin();
	pid_t pid = fork();
	if (pid == 0) {
		run_code("print('so far', flush=True)\nimport time; time.sleep(1000)");
		bool ok = run.end == KERNEL_END_LOST && run.started && !run.timed_out;
		_exit(ok && strcmp(text_of(&run.out), "so far\n") == 0 ? 0 : 1);
	}
	clock_sleep_ms(700);
	ck_ok(kit.runtime->stop(&kit.box, &err), err);
	int status = -1;
	waitpid(pid, &status, 0);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(kernel_connect(&kit.box, &err), -1);
	ck_assert_int_eq(err.code, ERR_LOST);
	ck_assert(!start_kernel());
	ck_assert_int_eq(err.code, ERR_LOST);
	ck_ok(kit.runtime->start(&kit.box, &err), err);
	ck_ok(start_kernel(), err);
	expect("print('again')", KERNEL_END_DONE, "again\n");
	end();
}
TEST_END

TEST(without_python_it_is_said_who_can_help)
{
	kit_start(&kit);
	static const struct {
		const char *line, *msg, *hint;
	} cases[] = {
		{"exit 127", "there is no python3 in this sandbox", "apt-get install python3"},
		{"exit 126", "own part of Python is missing", "install Spoolbox again"},
		{"echo first >&2; printf 'too \"old\"\\e[1m\\n' >&2; exit 3",
		 "It said: too \\\"old\\\"", ""},
		{"exit 0", "It said: nothing", ""},
		{"kill -SEGV $$", "It said: nothing", ""},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		ck_assert(!start_with(cases[i].line));
		ck_assert_int_eq(err.code, ERR_UNAVAILABLE);
		ck_assert_msg(strstr(err.msg, cases[i].msg), "%s", err.msg);
		ck_assert_msg(strstr(err_next(&err), cases[i].hint), "%s", err_next(&err));
		ck_assert_ptr_nonnull(strstr(err.msg, "the code was not run"));
	}
	kernel_run_init(&run, 1, 1);
	end();
}
TEST_END

/* A runtime whose commands have ended already. */
static enum runtime_end ended_with;

static bool end_exec(const struct runtime_box *box, const struct runtime_command *command,
		     struct runtime_exec *exec, struct err *e)
{
	int ends[2];
	(void)box;
	(void)command;
	(void)e;
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	exec->fd = ends[0];
	close(ends[1]);
	return true;
}

static void end_finish(struct runtime_exec *exec, struct runtime_status *status)
{
	*status = (struct runtime_status){.end = ended_with};
	util_close(&exec->fd);
}

TEST(a_start_that_hangs_or_is_lost_is_told_for_what_it_is)
{
	static const struct runtime ends = {.exec = end_exec, .finish = end_finish};
	static const struct {
		enum runtime_end end;
		enum err_code code;
		const char *msg;
	} cases[] = {
		{RUNTIME_END_TIMEOUT, ERR_UNAVAILABLE, "was not ready within 15 seconds"},
		{RUNTIME_END_LOST, ERR_LOST, "the sandbox went down while Python was started"},
	};
	kit_make(&kit);
	kit.runtime = &ends;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		ended_with = cases[i].end;
		ck_assert(!start_with(""));
		ck_assert_int_eq(err.code, cases[i].code);
		ck_assert_msg(strstr(err.msg, cases[i].msg), "%s", err.msg);
	}
	kit.runtime = runtime_find("bwrap");
	kit_end(&kit);
}
TEST_END

/* A clock that is a thousand times as fast. */
static int64_t fast_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return 1000 * (now.tv_sec * 1000 + now.tv_nsec / 1000000);
}

TEST(a_start_of_somebody_else_is_not_waited_for_for_ever)
{
	static const struct clock_source fast_clock = {
		.wall_ms = fast_ms, .mono_ms = fast_ms, .boot_ms = fast_ms, .boot_id = ""};
	kit_make(&kit);
	int lock = lock_open(kit.box.run_dir_fd, "python.lock", &err);
	ck_ok(lock_take(lock, LOCK_EXCLUSIVE, 0, &err), err);
	clock_use(&fast_clock);
	ck_assert(!start_kernel());
	ck_assert_int_eq(err.code, ERR_BUSY);
	ck_assert_ptr_nonnull(strstr(err.msg, "takes too long"));
	close(lock);
	clock_use(NULL);
	kit_end(&kit);
}
TEST_END

TEST(code_that_is_not_taken_over_in_time_is_not_run_later_either)
{
	static const struct clock_source fast_clock = {
		.wall_ms = fast_ms, .mono_ms = fast_ms, .boot_ms = fast_ms, .boot_id = ""};
	static const char signal_all[] =
		"kill -%s $(grep -l '[k]ernel[.]py' /proc/[0-9]*/cmdline | cut -d/ -f3)";
	begin();
	AUTO_FREE char *stop = xasprintf(signal_all, "STOP");
	AUTO_FREE char *go_on = xasprintf(signal_all, "CONT");
	kit_expect(&kit, stop, "");
	int fd = kernel_connect(&kit.box, &err);
	clock_use(&fast_clock);
	bool ok = run_on(fd, "open('late', 'w')", NULL, NULL);
	clock_use(NULL);
	ck_assert(!ok && run.not_taken);
	ck_assert_int_eq(err.code, ERR_BUSY);
	ck_assert_ptr_nonnull(strstr(err.msg, "was not run"));
	kit_expect(&kit, go_on, "");
	/* One after the other are taken over. */
	expect("print(1)", KERNEL_END_DONE, "1\n");
	ck_assert_int_eq(settle_inside(1), 1);
	kit_expect(&kit, "ls late 2>/dev/null || echo none", "none\n");
	end();
}
TEST_END

static bool has_socket(void)
{
	return faccessat(kit.box.run_dir_fd, KERNEL_SOCKET, F_OK, 0) == 0;
}

TEST(a_kernel_that_is_discarded_is_replaced_and_a_newer_one_is_not_discarded)
{
	begin();
	struct timespec before = {1, 0}, now;
	kernel_discard(&kit.box, &before);
	ck_assert(has_socket());
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	/* Whoever starts one holds the lock. */
	int lock = lock_open(kit.box.run_dir_fd, KERNEL_LOCK, &err);
	ck_ok(lock_take(lock, LOCK_EXCLUSIVE, 0, &err), err);
	kernel_discard(&kit.box, &now);
	ck_assert(has_socket());
	close(lock);
	kernel_discard(&kit.box, &now);
	ck_assert(!has_socket());
	kernel_discard(&kit.box, &now);
	ck_assert_int_eq(kernel_connect(&kit.box, &err), -1);
	ck_assert_int_eq(err.code, ERR_LOST);
	clock_sleep_ms(20);
	ck_ok(start_kernel(), err);
	ck_assert_int_eq(settle_inside(2), 2);
	/* Another who waited for the first one. */
	kernel_discard(&kit.box, &now);
	expect("print('again')", KERNEL_END_DONE, "again\n");
	end();
}
TEST_END

TEST(the_python_side_is_there_and_cannot_be_changed)
{
	kit_start(&kit);
	kit_expect(&kit, "test -r /.python/kernel.py && echo there", "there\n");
	kit_expect(&kit, "touch /.python/x 2>/dev/null || echo refused", "refused\n");
	kit_expect(&kit, "echo >>/.python/kernel.py || echo refused", "refused\n");
	kit_end(&kit);
}
TEST_END

TEST(without_the_python_side_sandboxes_do_all_the_rest)
{
	AUTO_FREE char *there = xasprintf("%s/python", getenv(KIT_ENV));
	AUTO_FREE char *away = xasprintf("%s/away", getenv(KIT_ENV));
	ck_assert_int_eq(rename(there, away), 0);
	kit_start(&kit);
	ck_assert_int_eq(rename(away, there), 0);
	kit_expect(&kit, "echo works", "works\n");
	ck_assert(!start_kernel());
	ck_assert_int_eq(err.code, ERR_UNAVAILABLE);
	ck_assert_ptr_nonnull(strstr(err.msg, "own part of Python is missing"));
	kit_end(&kit);
}
TEST_END

int main(int argc, char **argv)
{
	const TTest *const tests[] = {
		code_prints_and_has_a_value,
		each_end_is_told_for_what_it_is,
		code_that_kills_its_watcher_was_run_and_its_end_was_not_seen,
		an_image_arrives_whole,
		a_timeout_interrupts_and_then_kills,
		a_caller_who_goes_away_ends_the_run,
		of_many_starts_at_once_one_starts,
		a_session_keeps_its_variables_from_one_connection_to_the_next,
		a_session_that_is_ended_leaves_nothing,
		a_session_that_dies_is_lost_and_says_so,
		a_kernel_that_was_killed_is_started_again,
		a_sandbox_that_goes_down_loses_the_run_and_then_python_has_to_be_started,
		without_python_it_is_said_who_can_help,
		a_start_that_hangs_or_is_lost_is_told_for_what_it_is,
		a_start_of_somebody_else_is_not_waited_for_for_ever,
		code_that_is_not_taken_over_in_time_is_not_run_later_either,
		a_kernel_that_is_discarded_is_replaced_and_a_newer_one_is_not_discarded,
		the_python_side_is_there_and_cannot_be_changed,
		without_the_python_side_sandboxes_do_all_the_rest,
	};
	(void)argc;
	return kit_main(argv, "kernel", tests, ARRAY_LEN(tests));
}
