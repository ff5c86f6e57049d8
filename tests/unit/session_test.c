/* Running one command to its end. */
#include "box_kit.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>

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
	};
	(void)argc;
	return kit_main(argv, "session", tests, ARRAY_LEN(tests));
}
