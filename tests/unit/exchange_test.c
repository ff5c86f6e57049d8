/* What a caller is told when PID 1 refuses a command. The test plays PID 1 over a socket pair, so
 * that it can say what a real one says only when memory or time run out. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "run/exchange.h"
#include "run/wire.h"

static const char *const plain_argv[] = {"prog", NULL};
static const char *const no_env[] = {NULL};

static struct runtime_command sample(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	return (struct runtime_command){
		.argv = plain_argv,
		.env = no_env,
		.cwd = "/workspace",
		.stdin_fd = null,
		.stdout_fd = null,
		.stderr_fd = null,
		.limits = {.processes = 7, .open_files = -1, .file_bytes = -1, .data_bytes = -1},
	};
}

/* Sends a command to somebody who has already answered with these, and then hung up. */
static bool start(const struct wire_reply *replies, size_t count, struct err *err)
{
	struct runtime_command command = sample();
	struct exchange exchange;
	ck_ok(exchange_encode(&exchange, &command, err), *err);
	int pair[2];
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair),
			 0);
	for (size_t i = 0; i < count; i++) {
		unsigned char bytes[WIRE_REPLY_SIZE];
		wire_put_reply(&replies[i], bytes);
		ck_assert_int_eq(write(pair[1], bytes, sizeof(bytes)), sizeof(bytes));
	}
	shutdown(pair[1], SHUT_WR);
	bool ok = exchange_start(&exchange, pair[0], err);
	close(pair[0]);
	close(pair[1]);
	close(command.stdin_fd);
	exchange_free(&exchange);
	return ok;
}

static void ck_refusal(enum wire_step step, int error, enum err_code code, const char *words)
{
	const struct wire_reply replies[] = {
		{.kind = WIRE_ACCEPTED},
		{.kind = WIRE_FAILED, .step = step, .error = error},
	};
	struct err err = ERR_INIT;
	ck_assert(!start(replies, ARRAY_LEN(replies), &err));
	ck_assert_msg(err.code == code, "step %d, error %d: %s: %s", (int)step, error,
		      err_name(err.code), err.msg);
	ck_assert_msg(strstr(err_message(&err), words) != NULL, "step %d, error %d: %s", (int)step,
		      error, err_message(&err));
}

static void ck_not_sent(const struct runtime_command *command, enum err_code code,
			const char *words)
{
	struct exchange exchange;
	struct err err = ERR_INIT;
	ck_assert(!exchange_encode(&exchange, command, &err));
	exchange_free(&exchange);
	ck_assert_msg(err.code == code, "%s: %s", err_name(err.code), err.msg);
	ck_assert_msg(strstr(err.msg, words) != NULL, "%s", err.msg);
	ck_assert_ptr_nonnull(err_next(&err));
}

TEST(a_command_that_cannot_be_sent_is_refused_with_the_limit_it_is_over)
{
	struct runtime_command command = sample();
	AUTO_FREE char *longest = xmalloc(WIRE_STRING_MAX + 2);
	memset(longest, 'a', WIRE_STRING_MAX + 1);
	longest[WIRE_STRING_MAX + 1] = '\0';
	const char *const one[] = {"prog", longest, NULL};
	command.argv = one;
	ck_not_sent(&command, ERR_TOO_LARGE, "one argument or variable");

	longest[WIRE_STRING_MAX] = '\0';
	const char *const two[] = {"prog", longest, longest, NULL};
	command.argv = two;
	ck_not_sent(&command, ERR_TOO_LARGE, "command and environment are larger");

	static const char *many[WIRE_WORDS_MAX + 2];
	for (size_t i = 0; i <= WIRE_WORDS_MAX; i++)
		many[i] = "x";
	command.argv = plain_argv;
	command.env = many;
	ck_not_sent(&command, ERR_TOO_LARGE, "arguments and variables");

	command.env = no_env;
	command.cwd = "workspace";
	ck_not_sent(&command, ERR_INVALID, "absolute working directory");
	close(command.stdin_fd);
}
TEST_END

TEST(each_step_that_fails_in_the_sandbox_has_an_error_of_its_own)
{
	ck_refusal(WIRE_STEP_CWD, ENOENT, ERR_INVALID,
		   "the working directory \"/workspace\" does not exist");
	ck_refusal(WIRE_STEP_CWD, ELOOP, ERR_INVALID, "too many symbolic links");
	ck_refusal(WIRE_STEP_EXEC, ENOENT, ERR_INVALID, "the program \"prog\" was not found");
	ck_refusal(WIRE_STEP_EXEC, E2BIG, ERR_TOO_LARGE, "too many arguments");
	ck_refusal(WIRE_STEP_FORK, EAGAIN, ERR_QUOTA, "limit of 7 processes");
	ck_refusal(WIRE_STEP_KEEPER, ENOMEM, ERR_QUOTA, "no room for another command");
	ck_refusal(WIRE_STEP_WAIT, ETIMEDOUT, ERR_TIMEOUT, "took too long to load");
}
TEST_END

TEST(what_nobody_expected_keeps_its_step_and_number_for_the_log)
{
	const struct wire_reply reply = {
		.kind = WIRE_FAILED, .step = WIRE_STEP_SETUP, .error = EDOM};
	struct err err = ERR_INIT;
	ck_assert(!start(&reply, 1, &err));
	ck_assert_int_eq(err.sys, EDOM);
	ck_assert_ptr_nonnull(strstr(err.trace, "step 4"));
}
TEST_END

TEST(only_a_command_that_was_not_accepted_is_lost_and_may_be_sent_again)
{
	struct err err = ERR_INIT;
	ck_assert(!start(NULL, 0, &err));
	ck_assert_int_eq(err.code, ERR_LOST);

	const struct wire_reply accepted = {.kind = WIRE_ACCEPTED};
	struct err none = ERR_INIT;
	ck_ok(start(&accepted, 1, &none), none);
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		a_command_that_cannot_be_sent_is_refused_with_the_limit_it_is_over,
		each_step_that_fails_in_the_sandbox_has_an_error_of_its_own,
		what_nobody_expected_keeps_its_step_and_number_for_the_log,
		only_a_command_that_was_not_accepted_is_lost_and_may_be_sent_again,
	};
	return unit_run("exchange", tests, ARRAY_LEN(tests));
}
