/* Running one command to its end. */
#include "box_kit.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/log.h"
#include "run/handover.h"

static struct kit kit;

TEST(output_and_errors_are_kept_apart)
{
	kit_start(&kit);
	struct kit_result r = kit_shell(&kit, "echo out; echo err >&2; echo out2; exit 4");
	ck_assert_str_eq(r.out, "out\nout2\n");
	ck_assert_str_eq(r.err_text, "err\n");
	ck_assert_int_eq(r.status.code, 4);
	kit_end(&kit);
}
TEST_END

TEST(short_commands_never_lose_their_output)
{
	kit_start(&kit);
	for (int i = 0; i < 200; i++) {
		char number[16];
		snprintf(number, sizeof(number), "%d", i);
		const char *const argv[] = {"/bin/echo", number, NULL};
		struct kit_result r = kit_run(&kit, argv, "/workspace", NULL, KIT_TIMEOUT);
		ck_ok(r.started, r.err);
		ck_assert_int_eq(atoi(r.out), i);
		ck_assert_int_eq(r.out_total, (int64_t)strlen(number) + 1);
	}
	kit_end(&kit);
}
TEST_END

TEST(standard_input_is_what_was_given_or_nothing)
{
	kit_start(&kit);
	static const char *const cat[] = {"cat", NULL}, *const wc[] = {"wc", "-c", NULL};
	struct kit_result r = kit_run(&kit, cat, "/workspace", "line one\nline two", KIT_TIMEOUT);
	ck_assert_str_eq(r.out, "line one\nline two");
	r = kit_run(&kit, cat, "/workspace", NULL, KIT_TIMEOUT);
	ck_assert_int_eq(r.status.end, RUNTIME_END_EXIT);
	ck_assert_str_eq(r.out, "");
	r = kit_run(&kit, cat, "/workspace", "", KIT_TIMEOUT);
	ck_assert_str_eq(r.out, "");
	AUTO_FREE char *large = xmalloc((4 << 20) + 1);
	memset(large, 'x', 4 << 20);
	large[4 << 20] = '\0';
	r = kit_run(&kit, wc, "/workspace", large, KIT_TIMEOUT);
	ck_assert_str_eq(r.out, "4194304\n");
	kit_end(&kit);
}
TEST_END

TEST(the_command_cannot_change_its_input)
{
	kit_start(&kit);
	static const char *const argv[] = {
		"/bin/bash", "-c", "echo x 2>/dev/null >/dev/stdin && echo written; cat", NULL};
	struct kit_result r = kit_run(&kit, argv, "/workspace", "input", KIT_TIMEOUT);
	ck_assert_str_eq(r.out, "input");
	kit_end(&kit);
}
TEST_END

TEST(a_gibibyte_of_output_costs_no_memory)
{
	kit_start(&kit);
	struct rusage before, after;
	getrusage(RUSAGE_SELF, &before);
	struct kit_result r = kit_shell_for(
		&kit, "printf start; head -c 1073741824 /dev/zero | tr '\\0' x; printf end",
		120000);
	getrusage(RUSAGE_SELF, &after);
	ck_assert_int_eq(r.status.end, RUNTIME_END_EXIT);
	ck_assert_int_eq(r.out_total, 1073741824LL + 8);
	ck_assert_uint_lt(strlen(r.out), 32768 + 100);
	ck_assert_int_eq(strncmp(r.out, "startxxx", 8), 0);
	ck_assert_str_eq(r.out + strlen(r.out) - 6, "xxxend");
	ck_assert_ptr_nonnull(strstr(r.out, "bytes left out"));
	ck_assert_int_lt(after.ru_maxrss - before.ru_maxrss, 1024); /* KiB */
	kit_end(&kit);
}
TEST_END

TEST(a_child_that_keeps_the_pipes_does_not_keep_the_call)
{
	kit_start(&kit);
	int64_t start_ms = clock_mono_ms();
	struct kit_result r = kit_shell(&kit, "sleep 1000 & echo hi");
	ck_assert_str_eq(r.out, "hi\n");
	ck_assert_int_eq(r.status.survivors, 1);
	ck_assert_int_lt(clock_mono_ms() - start_ms, 1000);
	/* One that writes all the time is let go as well. */
	start_ms = clock_mono_ms();
	r = kit_shell(&kit, "(while :; do echo noise; sleep 0.02; done) & echo hi");
	ck_assert_int_eq(r.status.survivors > 0, 1);
	ck_assert_int_lt(clock_mono_ms() - start_ms, 3000);
	kit_end(&kit);
}
TEST_END

TEST(output_written_just_after_the_end_is_still_taken)
{
	kit_start(&kit);
	struct kit_result r = kit_shell(&kit, "(sleep 0.05; echo late) & echo early");
	ck_assert_str_eq(r.out, "early\nlate\n");
	kit_end(&kit);
}
TEST_END

static void on_alarm(int sig)
{
	(void)sig;
}

TEST(interrupting_signals_do_not_disturb)
{
	kit_start(&kit);
	struct sigaction action = {.sa_handler = on_alarm};
	struct itimerval often = {{0, 3000}, {0, 3000}}, never = {{0, 0}, {0, 0}};
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	struct kit_result r = kit_shell(&kit, "sleep 0.3; head -c 3000000 /dev/zero; exit 6");
	setitimer(ITIMER_REAL, &never, NULL);
	ck_assert_int_eq(r.status.end, RUNTIME_END_EXIT);
	ck_assert_int_eq(r.status.code, 6);
	ck_assert_int_eq(r.out_total, 3000000);
	kit_end(&kit);
}
TEST_END

/* A runtime whose commands never end: what is left when a sandbox hangs. */
static int hanging_peer = -1;

static bool hang_exec(const struct runtime_box *box, const struct runtime_command *command,
		      struct runtime_exec *exec, struct err *err)
{
	int ends[2];
	(void)box;
	(void)command;
	(void)err;
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	exec->fd = ends[0];
	hanging_peer = ends[1];
	return true;
}

TEST(a_sandbox_that_hangs_is_given_up_some_time_after_the_timeout)
{
	const struct runtime hanging = {.name = "hanging", .exec = hang_exec};
	struct kit fake = {.runtime = &hanging};
	static const char *const argv[] = {"true", NULL};
	int64_t start_ms = clock_mono_ms();
	struct kit_result r = kit_run(&fake, argv, "/", NULL, 10);
	int64_t took_ms = clock_mono_ms() - start_ms;
	ck_assert(r.started);
	ck_assert_int_eq(r.status.end, RUNTIME_END_LOST);
	ck_assert_int_ge(took_ms, RUNTIME_GRACE_MS + 10);
	ck_assert_int_lt(took_ms, RUNTIME_GRACE_MS + 10000);
	char byte;
	ck_assert_int_eq(read(hanging_peer, &byte, 1), 0); /* it was hung up, which cancels */
}
TEST_END

/* --- waiting in parts ---------------------------------------------------------------------- */

static struct session session;

/* Starts a shell line in the sandbox of the kit. */
static void start_shell(const char *line, int64_t timeout_ms, session_mask *make_mask)
{
	struct err err = ERR_INIT;
	kit_start(&kit);
	static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
	const char *const argv[] = {"/bin/bash", "-c", line, NULL};
	struct runtime_command command = {.argv = argv,
					  .env = env,
					  .cwd = "/workspace",
					  .timeout_ms = timeout_ms,
					  .limits = kit.limits};
	session_init(&session, 32768, 8192);
	if (make_mask != NULL)
		session_keep_output(&session, make_mask, NULL);
	ck_ok(session_start(&session, kit.runtime, &kit.box, &command, NULL, 0, &err), err);
}

static bool wait_for_ms(int64_t ms)
{
	return session_wait(&session, clock_mono_ms() + ms, NULL, NULL);
}

static const char *captured(const struct capture *capture)
{
	static struct buf out;
	buf_clear(&out);
	capture_text(capture, &out);
	return buf_str(&out);
}

TEST(a_wait_can_be_broken_off_and_taken_up_again)
{
	start_shell("echo one; sleep 0.4; echo two; sleep 0.4; echo three; exit 5", KIT_TIMEOUT,
		    NULL);
	ck_assert(!wait_for_ms(150));
	ck_assert_str_eq(captured(&session.out), "one\n");
	ck_assert_int_eq(session.status.end, RUNTIME_END_NONE);
	ck_assert(!wait_for_ms(400));
	ck_assert_str_eq(captured(&session.out), "one\ntwo\n");
	ck_assert(session_wait(&session, INT64_MAX, NULL, NULL));
	ck_assert_str_eq(captured(&session.out), "one\ntwo\nthree\n");
	ck_assert_int_eq(session.status.end, RUNTIME_END_EXIT);
	ck_assert_int_eq(session.status.code, 5);
	ck_assert_int_ge(session.duration_ms, 780);
	session_finish(&session);
	kit_end(&kit);
}
TEST_END

TEST(finishing_a_session_ends_what_still_runs)
{
	const char *marker = kit_marker();
	AUTO_FREE char *line =
		xasprintf("trap '' TERM; setsid sleep %s & sleep %s", marker, marker);
	start_shell(line, KIT_TIMEOUT, NULL);
	ck_assert(!wait_for_ms(200));
	ck_assert_int_gt(kit_count(marker), 1);
	session_finish(&session);
	for (int i = 0; i < 50 && kit_settle(marker, 0) > 0; i++)
		;
	ck_assert_int_eq(kit_count(marker), 0);
	kit_end(&kit);
}
TEST_END

static int ticks, ticks_left;
static char line_seen[SESSION_LINE_MAX + 1];

static bool count_tick(void *ctx)
{
	AUTO_BUF line = BUF_INIT;
	ck_assert_ptr_eq(ctx, &ticks);
	session_last_line(&session, &line);
	snprintf(line_seen, sizeof(line_seen), "%s", buf_str(&line));
	ticks++;
	return ticks_left < 0 || ticks_left-- > 0;
}

TEST(the_caller_is_asked_twice_a_second_and_up_to_four_times_when_there_is_output)
{
	ticks_left = -1;
	start_shell("sleep 1.7", KIT_TIMEOUT, NULL);
	ck_assert(session_wait(&session, INT64_MAX, count_tick, &ticks));
	ck_assert_int_ge(ticks, 2);
	ck_assert_int_le(ticks, 3);
	session_finish(&session);
	kit_end(&kit);
	ticks = 0;
	start_shell("for i in {1..170}; do echo line $i >&$((i % 2 + 1)); sleep 0.01; done",
		    KIT_TIMEOUT, NULL);
	ck_assert(session_wait(&session, INT64_MAX, count_tick, &ticks));
	ck_assert_int_ge(ticks, 4);
	ck_assert_int_le(ticks, session.duration_ms / 250);
	ck_assert_int_eq(strncmp(line_seen, "line ", 5), 0);
	ck_assert_int_gt(atoi(line_seen + 5), 80);
	session_finish(&session);
	kit_end(&kit);
}
TEST_END

TEST(a_caller_that_says_no_cancels_the_command_and_sees_its_end)
{
	const char *marker = kit_marker();
	AUTO_FREE char *line =
		xasprintf("echo begun; trap '' TERM; setsid sleep %s & sleep %s", marker, marker);
	ticks = 0;
	ticks_left = 1;
	start_shell(line, KIT_TIMEOUT, NULL);
	/* Also when the wait would be over before the end. */
	ck_assert(session_wait(&session, clock_mono_ms() + 1200, count_tick, &ticks));
	ck_assert_int_eq(ticks, 2);
	ck_assert_int_eq(session.status.end, RUNTIME_END_CANCELLED);
	ck_assert_str_eq(captured(&session.out), "begun\n");
	ck_assert_int_eq(kit_settle(marker, 0), 0);
	session_finish(&session);
	kit_end(&kit);
}
TEST_END

/* --- hand-over ----------------------------------------------------------------------------- */

#define SECRET "correct-horse-battery"
static int masks_made;

static struct mask *make_mask(void *ctx, struct err *err)
{
	(void)ctx;
	(void)err;
	struct mask *mask = mask_new();
	mask_add(mask, SECRET, strlen(SECRET));
	masks_made++;
	return mask;
}

static struct mask *no_mask(void *ctx, struct err *err)
{
	(void)ctx;
	err_set(err, ERR_IO, "no keys");
	return NULL;
}

/* What a record holds of a stream. */
static const char *recorded(int dirfd, enum record_stream stream)
{
	static struct buf out[RECORD_STREAMS];
	struct err err = ERR_INIT;
	struct record_page page;
	buf_clear(&out[stream]);
	ck_ok(record_read(dirfd, stream, 0, RECORD_KEPT_MAX, &out[stream], &page, &err), err);
	return buf_str(&out[stream]);
}

static int make_dir(const char *name)
{
	ck_assert_int_eq(mkdirat(kit.box.run_dir_fd, name, 0700), 0);
	int fd = openat(kit.box.run_dir_fd, name, O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	return fd;
}

/* Reads a pipe to its end into a record, as the other process does. */
static void take_rest(int fd, struct mask_stream *masked, struct record *record,
		      enum record_stream stream)
{
	struct err err = ERR_INIT;
	AUTO_BUF out = BUF_INIT;
	char data[4096];
	ck_assert_int_eq(fcntl(fd, F_SETFL, 0), 0);
	for (ssize_t n; (n = read(fd, data, sizeof(data))) > 0;)
		mask_feed(masked, data, (size_t)n, &out);
	mask_end(masked, &out);
	ck_ok(record_add(record, stream, out.data, out.len, &err), err);
}

TEST(a_command_is_handed_over_in_the_middle_of_a_secret_without_losing_a_byte)
{
	struct err err = ERR_INIT;
	start_shell(
		"mkfifo go; echo first; printf 'a correct-horse'; echo problem >&2; read x < go;"
		"echo -battery z; echo last; echo correct-horse-bat >&2",
		KIT_TIMEOUT, make_mask);
	AUTO_FREE char *fifo = xasprintf("%s/go", kit.workspace);
	ck_assert(!wait_for_ms(300));
	AUTO_FD dir = make_dir("task");
	AUTO_FD held = session_prepare_handover(&session, dir, &err);
	ck_ok(held >= 0, err);
	AUTO_FD exec_fd = dup(session.exec.fd), out = dup(session.fds[0]),
		errors = dup(session.fds[1]);
	session_let_go(&session);
	ck_assert_int_eq(session.exec.fd, -1);
	ck_assert_str_eq(captured(&session.out), "first\na correct-horse");
	ck_assert_str_eq(recorded(dir, RECORD_STDOUT), "first\na ");
	FILE *go = fopen(fifo, "w");
	ck_assert_ptr_nonnull(go);
	fclose(go);
	/* The other process. */
	struct mask *mask = make_mask(NULL, &err);
	struct mask_stream masked[RECORD_STREAMS];
	struct record record = RECORD_INIT;
	ck_ok(handover_load(held, mask, masked, &err), err);
	ck_ok(record_resume(&record, dir, &err), err);
	take_rest(out, &masked[0], &record, RECORD_STDOUT);
	take_rest(errors, &masked[1], &record, RECORD_STDERR);
	struct runtime_exec exec = {TAKE_FD(exec_fd)};
	struct runtime_status status;
	kit.runtime->finish(&exec, &status);
	ck_assert_int_eq(status.end, RUNTIME_END_EXIT);
	ck_assert_str_eq(recorded(dir, RECORD_STDOUT), "first\na *** z\nlast\n");
	ck_assert_str_eq(recorded(dir, RECORD_STDERR), "problem\ncorrect-horse-bat\n");
	record_close(&record);
	mask_stream_finish(&masked[0]);
	mask_stream_finish(&masked[1]);
	mask_free(mask);
	session_finish(&session);
	kit_end(&kit);
}
TEST_END

TEST(after_a_hand_over_that_failed_the_session_goes_on_and_can_try_again)
{
	struct err err = ERR_INIT;
	start_shell("for i in {1..80}; do echo $i; sleep 0.01; done; exit 3", KIT_TIMEOUT,
		    make_mask);
	for (int i = 0; i < 3; i++) {
		char name[16];
		snprintf(name, sizeof(name), "try%d", i);
		ck_assert(!wait_for_ms(100));
		AUTO_FD dir = make_dir(name);
		AUTO_FD held = session_prepare_handover(&session, dir, &err);
		ck_ok(held >= 0, err);
		ck_assert_str_eq(recorded(dir, RECORD_STDOUT), captured(&session.out));
		ck_assert_int_eq(unlinkat(dir, "log", 0), 0);
	}
	ck_assert(session_wait(&session, INT64_MAX, NULL, NULL));
	ck_assert_int_eq(session.status.code, 3);
	AUTO_BUF expected = BUF_INIT;
	for (int i = 1; i <= 80; i++)
		buf_printf(&expected, "%d\n", i);
	ck_assert_str_eq(captured(&session.out), buf_str(&expected));
	session_finish(&session);
	kit_end(&kit);
}
TEST_END

TEST(a_short_command_makes_neither_record_nor_mask)
{
	masks_made = 0;
	start_shell("echo short; echo problem >&2", KIT_TIMEOUT, make_mask);
	ck_assert(session_wait(&session, INT64_MAX, NULL, NULL));
	ck_assert_str_eq(captured(&session.out), "short\n");
	ck_assert_int_eq(masks_made, 0);
	session_finish(&session);
	kit_end(&kit);
}
TEST_END

TEST(much_output_is_kept_in_the_order_of_its_arrival)
{
	struct err err = ERR_INIT;
	start_shell("for i in {1..20000}; do echo $i; done; echo done >&2; sleep 5", KIT_TIMEOUT,
		    make_mask);
	ck_assert(!wait_for_ms(1500));
	AUTO_FD dir = make_dir("task");
	AUTO_FD held = session_prepare_handover(&session, dir, &err);
	ck_ok(held >= 0, err);
	AUTO_BUF expected = BUF_INIT;
	for (int i = 1; i <= 20000; i++)
		buf_printf(&expected, "%d\n", i);
	ck_assert_str_eq(recorded(dir, RECORD_STDOUT), buf_str(&expected));
	AUTO_BUF tail = BUF_INIT;
	ck_ok(record_tail(dir, 2, 100, &tail, &err), err);
	ck_assert_str_eq(buf_str(&tail), "20000\ndone\n");
	session_finish(&session);
	kit_end(&kit);
}
TEST_END

TEST(without_its_secrets_a_command_stays_where_it_is)
{
	struct err err = ERR_INIT;
	log_open("test", LOG_ERROR);
	start_shell("echo some; sleep 0.5; exit 2", KIT_TIMEOUT, no_mask);
	ck_assert(!wait_for_ms(200));
	AUTO_FD dir = make_dir("task");
	ck_assert_int_eq(session_prepare_handover(&session, dir, &err), -1);
	ck_assert_int_eq(err.code, ERR_UNAVAILABLE);
	ck_assert(session_wait(&session, INT64_MAX, NULL, NULL));
	ck_assert_int_eq(session.status.code, 2);
	ck_assert_str_eq(captured(&session.out), "some\n");
	session_finish(&session);
	kit_end(&kit);
}
TEST_END

int main(int argc, char **argv)
{
	const TTest *const tests[] = {
		output_and_errors_are_kept_apart,
		short_commands_never_lose_their_output,
		standard_input_is_what_was_given_or_nothing,
		the_command_cannot_change_its_input,
		a_gibibyte_of_output_costs_no_memory,
		a_child_that_keeps_the_pipes_does_not_keep_the_call,
		output_written_just_after_the_end_is_still_taken,
		interrupting_signals_do_not_disturb,
		a_sandbox_that_hangs_is_given_up_some_time_after_the_timeout,
		a_wait_can_be_broken_off_and_taken_up_again,
		finishing_a_session_ends_what_still_runs,
		the_caller_is_asked_twice_a_second_and_up_to_four_times_when_there_is_output,
		a_caller_that_says_no_cancels_the_command_and_sees_its_end,
		a_command_is_handed_over_in_the_middle_of_a_secret_without_losing_a_byte,
		after_a_hand_over_that_failed_the_session_goes_on_and_can_try_again,
		a_short_command_makes_neither_record_nor_mask,
		much_output_is_kept_in_the_order_of_its_arrival,
		without_its_secrets_a_command_stays_where_it_is,
	};
	(void)argc;
	return kit_main(argv, "session", tests, ARRAY_LEN(tests));
}
