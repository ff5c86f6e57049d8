/* MCP over two descriptors: both eras, what is told of faults, and how a session ends. */
#include "stdio/stdio.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "endpoint_kit.h"
#include "mcp/rpc.h"

#define WAIT_MS 5000 /* of the tool that waits, unless its client goes */

static bool wait_call(struct tool_call *call, struct err *err)
{
	int64_t until_ms = clock_mono_ms() + WAIT_MS;
	(void)err;
	call->structured = json_object_new_object();
	for (int i = 0; clock_mono_ms() < until_ms; i++) {
		char line[32];
		snprintf(line, sizeof(line), "line %d", i);
		if (!tool_call_tick(call, line))
			return true;
		clock_sleep_ms(20);
		if (json_get_bool(call->arguments, "short", false) && i > 30)
			return true;
	}
	json_add_bool(call->structured, "to_the_end", true);
	return true;
}

static const struct tool wait_tool = {
	.name = "wait",
	.title = "Wait",
	.description = "Waits.",
	.input_schema = KIT_SCHEMA("\"short\":{\"type\":\"boolean\"}", ""),
	.call = wait_call,
};
static const struct tool *const tools[] = {&kit_echo_tool, &kit_mirror_tool, &wait_tool};
static const struct tool_list list = {tools, ARRAY_LEN(tools)};

/* What is left to be done: a byte into this pipe for each time. */
static int after_pipe[2];
static stdio_after *after; /* NULL but where a test sets it */

static void after_answers(void *app)
{
	ck_assert_ptr_eq(app, kit.app);
	ck_assert_int_eq(write(after_pipe[1], "x", 1), 1);
}

/* --- a session ----------------------------------------------------------------------------- */

struct talk {
	int to, from, stop; /* our ends; closed ones are -1 */
	pid_t pid;
};

/* The server, in a process of its own. */
static struct talk talk_begin(void)
{
	int in[2], out[2], stop[2];
	ck_assert_int_eq(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC) | pipe2(stop, O_CLOEXEC), 0);
	struct talk talk = {.to = in[1], .from = out[0], .stop = stop[1], .pid = fork()};
	if (talk.pid == 0) {
		signal(SIGPIPE, SIG_IGN);
		close(in[1]);
		close(out[0]);
		close(stop[1]);
		stdio_serve(&kit, "tester", in[0], out[1], stop[0], after);
		_exit(0);
	}
	close(in[0]);
	close(out[1]);
	close(stop[0]);
	return talk;
}

static void say(struct talk *talk, const char *text)
{
	ck_assert_int_eq(write(talk->to, text, strlen(text)), (ssize_t)strlen(text));
}

/* Waits for the end of the server; what it wrote that was not read yet. */
static char *talk_end(struct talk *talk)
{
	struct buf out = BUF_INIT;
	ssize_t n = 1;
	int status;
	util_close(&talk->to);
	while (talk->from >= 0 && (n = read(talk->from, buf_reserve(&out, 4096), 4096)) > 0)
		out.len += (size_t)n;
	util_close(&talk->from);
	ck_assert_int_eq(waitpid(talk->pid, &status, 0), talk->pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	util_close(&talk->stop);
	return buf_take(&out);
}

/* The messages that answer a whole input, as an array. */
static struct json_object *answers(const char *input)
{
	struct talk talk = talk_begin();
	say(&talk, input);
	AUTO_FREE char *out = talk_end(&talk);
	struct json_object *all = json_object_new_array();
	char *rest = out, *line;
	while ((line = strsep(&rest, "\n")) != NULL && rest != NULL) {
		struct err err;
		struct json_object *message = json_parse(line, strlen(line), &err);
		ck_assert_msg(message != NULL, "no message: %s", line);
		json_push(all, message);
	}
	ck_assert_str_eq(line, ""); /* the last one ended, too */
	return all;
}

static size_t count(struct json_object *all)
{
	return json_object_array_length(all);
}

#define INITIALIZE(version) \
	"{\"jsonrpc\":\"2.0\",\"id\":\"i\",\"method\":\"initialize\",\"params\":{" \
	"\"protocolVersion\":\"" version "\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\"," \
	"\"version\":\"1\"}}}\n" \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"
#define CALL(id, name, rest) \
	"{\"jsonrpc\":\"2.0\",\"id\":" id \
	",\"method\":\"tools/call\",\"params\":{\"name\":\"" name "\"" rest "}}\n"
#define ECHO(id) CALL(id, "echo", ",\"arguments\":{\"command\":\"hey\"}")
#define CANCEL(id) \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/" \
	"cancelled\",\"params\":{\"requestId\":" id "}}\n"

/* --- both eras ----------------------------------------------------------------------------- */

TEST(a_handshake_is_answered_and_its_notification_by_nothing)
{
	AUTO_JSON *all = answers(INITIALIZE("2025-06-18") ECHO("2"));
	ck_assert_uint_eq(count(all), 2);
	ck_assert_str_eq(kit_text(all, "0.result.protocolVersion"), "2025-06-18");
	ck_assert_str_eq(kit_text(all, "0.id"), "i");
	ck_assert_str_eq(kit_text(all, "1.result.structuredContent.text"), "hey");
	ck_assert_str_eq(kit_text(all, "1.result.structuredContent.who"), "tester");
	ck_assert_int_eq(json_get_int(kit_at(all, "1"), "id", 0), 2);
}
TEST_END

TEST(the_agreed_revision_shapes_later_results)
{
	AUTO_JSON *first = answers(INITIALIZE("2025-03-26") ECHO("1"));
	ck_assert_ptr_null(kit_at(first, "1.result.structuredContent"));
	ck_assert_ptr_nonnull(kit_at(first, "1.result.content.0.text"));
	AUTO_JSON *newer = answers(INITIALIZE("2025-11-25") ECHO("1"));
	ck_assert_ptr_nonnull(kit_at(newer, "1.result.structuredContent"));
}
TEST_END

TEST(a_claim_is_modern_without_any_header_also_after_a_handshake)
{
	AUTO_JSON *all = answers(
		INITIALIZE("2025-06-18") CALL("1", "echo",
					      ",\"arguments\":{\"command\":\"hey\"}," KIT_CLAIMS)
			ECHO("2") "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"server/discover\","
				  "\"params\":{" KIT_CLAIMS "}}\n");
	ck_assert_str_eq(kit_text(all, "1.result.resultType"), "complete");
	ck_assert_ptr_null(kit_at(all, "2.result.resultType"));
	ck_assert_str_eq(kit_text(all, "3.result.supportedVersions.0"), "2026-07-28");
	ck_assert_str_eq(kit_text(all, "3.result.cacheScope"), "private");
}
TEST_END

TEST(arguments_that_http_repeats_in_headers_need_none)
{
	AUTO_JSON *all = answers(CALL(
		"1", "mirror", ",\"arguments\":{\"region\":\"west\",\"count\":3}," KIT_CLAIMS));
	ck_assert_str_eq(kit_text(all, "0.result.structuredContent.region"), "west");
}
TEST_END

TEST(a_claim_of_an_unknown_revision_is_told_the_known_ones)
{
	AUTO_JSON *all = answers("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\","
				 "\"params\":{\"_meta\":{\"io.modelcontextprotocol/"
				 "protocolVersion\":\"2030-01-01\",\"io.modelcontextprotocol/"
				 "clientCapabilities\":{}}}}\n");
	ck_assert_int_eq(kit_code(kit_at(all, "0")), RPC_VERSION);
	ck_assert_str_eq(kit_text(all, "0.error.data.supported.0"), "2026-07-28");
}
TEST_END

/* --- faults -------------------------------------------------------------------------------- */

TEST(garbage_is_answered_without_an_id_and_the_next_line_is_served)
{
	AUTO_JSON *all = answers("garbage\n\xff\xfe\n{\"jsonrpc\":\"2.0\"\n\n" ECHO("1"));
	ck_assert_uint_eq(count(all), 4);
	for (size_t i = 0; i < 3; i++) {
		struct json_object *one = json_object_array_get_idx(all, i);
		ck_assert_int_eq(kit_code(one), RPC_PARSE);
		ck_assert(!json_has(one, "id"));
	}
	ck_assert_ptr_nonnull(strstr(kit_text(all, "3.result.content.0.text"), "hey"));
}
TEST_END

TEST(a_line_beyond_the_limit_is_refused_and_the_next_line_is_served)
{
	AUTO_BUF input = BUF_INIT;
	for (size_t i = 0; i < kit.max_body + 1; i++)
		buf_putc(&input, ' ');
	buf_puts(&input, "\n" ECHO("1"));
	AUTO_JSON *all = answers(input.data);
	ck_assert_uint_eq(count(all), 2);
	ck_assert_int_eq(kit_code(kit_at(all, "0")), RPC_REQUEST);
	ck_assert_ptr_nonnull(strstr(kit_text(all, "0.error.message"), "4096"));
	ck_assert_int_eq(json_get_int(kit_at(all, "1"), "id", 0), 1);
}
TEST_END

TEST(an_unknown_method_and_a_response_of_the_client_do_no_harm)
{
	AUTO_JSON *all = answers("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no/such\"}\n"
				 "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}\n" ECHO("2"));
	ck_assert_uint_eq(count(all), 2);
	ck_assert_int_eq(kit_code(kit_at(all, "0")), RPC_METHOD);
}
TEST_END

TEST(a_batch_is_served_in_the_revision_that_has_batches_and_refused_in_others)
{
	static const char batch[] = "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},"
				    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"},"
				    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}]\n";
	AUTO_FREE char *old = xasprintf("%s%s", INITIALIZE("2025-03-26"), batch);
	AUTO_FREE char *newer = xasprintf("%s%s", INITIALIZE("2025-06-18"), batch);
	AUTO_JSON *served = answers(old);
	ck_assert_uint_eq(count(kit_at(served, "1")), 2);
	ck_assert_int_eq(json_get_int(kit_at(served, "1.1"), "id", 0), 2);
	AUTO_JSON *refused = answers(newer);
	ck_assert_int_eq(kit_code(kit_at(refused, "1")), RPC_REQUEST);
}
TEST_END

/* --- while a call waits -------------------------------------------------------------------- */

TEST(progress_comes_as_messages_before_the_answer_when_it_was_asked_for)
{
	AUTO_JSON *all = answers(CALL("1", "wait",
				      ",\"arguments\":{\"short\":true},"
				      "\"_meta\":{\"progressToken\":\"p\"}"));
	size_t last = count(all) - 1;
	ck_assert_uint_ge(last, 2);
	for (size_t i = 0; i < last; i++) {
		struct json_object *one = json_object_array_get_idx(all, i);
		ck_assert_str_eq(json_get_str(one, "method"), "notifications/progress");
		ck_assert_str_eq(kit_text(one, "params.progressToken"), "p");
		ck_assert_int_eq(strncmp(kit_text(one, "params.message"), "line ", 5), 0);
	}
	ck_assert_int_eq(json_get_int(json_object_array_get_idx(all, last), "id", 0), 1);
}
TEST_END

TEST(without_a_token_there_is_the_answer_alone)
{
	AUTO_JSON *all = answers(CALL("1", "wait", ",\"arguments\":{\"short\":true}"));
	ck_assert_uint_eq(count(all), 1);
}
TEST_END

TEST(a_cancelled_call_ends_and_is_not_answered_but_what_follows_is)
{
	int64_t started_ms = clock_mono_ms();
	AUTO_JSON *all = answers(CALL("\"a\"", "wait", "") ECHO("2") CANCEL("\"a\"") ECHO("3"));
	ck_assert_uint_eq(count(all), 2);
	ck_assert_int_eq(json_get_int(kit_at(all, "0"), "id", 0), 2);
	ck_assert_int_eq(json_get_int(kit_at(all, "1"), "id", 0), 3);
	ck_assert_int_lt(clock_mono_ms() - started_ms, WAIT_MS / 2);
}
TEST_END

TEST(a_cancellation_that_comes_during_the_call_is_seen)
{
	int64_t started_ms = clock_mono_ms();
	struct talk talk = talk_begin();
	say(&talk, CALL("7", "wait", "," KIT_CLAIMS));
	clock_sleep_ms(100);
	say(&talk, CANCEL("7"));
	AUTO_FREE char *out = talk_end(&talk);
	ck_assert_str_eq(out, "");
	ck_assert_int_lt(clock_mono_ms() - started_ms, WAIT_MS / 2);
}
TEST_END

TEST(a_cancellation_of_another_id_ends_nothing)
{
	AUTO_JSON *all = answers(CALL("1", "wait", ",\"arguments\":{\"short\":true}")
					 CANCEL("\"1\"") CANCEL("2") CANCEL("{}"));
	ck_assert_uint_eq(count(all), 1);
	ck_assert_int_eq(json_get_int(kit_at(all, "0"), "id", 0), 1);
}
TEST_END

TEST(two_queued_calls_that_are_cancelled_both_end)
{
	int64_t started_ms = clock_mono_ms();
	AUTO_JSON *all =
		answers(CALL("1", "wait", "") CALL("2", "wait", "") CANCEL("1") CANCEL("2"));
	ck_assert_uint_eq(count(all), 0);
	ck_assert_int_lt(clock_mono_ms() - started_ms, WAIT_MS / 2);
}
TEST_END

/* --- the end ------------------------------------------------------------------------------- */

TEST(what_was_asked_before_the_end_of_input_is_answered)
{
	AUTO_JSON *all = answers(CALL("1", "wait", ",\"arguments\":{\"short\":true}") ECHO("2"));
	ck_assert_uint_eq(count(all), 2);
}
TEST_END

TEST(a_client_that_does_not_read_any_more_ends_the_call_and_the_session)
{
	int64_t started_ms = clock_mono_ms();
	struct talk talk = talk_begin();
	say(&talk, CALL("1", "wait", "") CALL("2", "wait", ""));
	clock_sleep_ms(100);
	util_close(&talk.from);
	AUTO_FREE char *out = talk_end(&talk);
	ck_assert_str_eq(out, ""); /* nothing was read */
	ck_assert_int_lt(clock_mono_ms() - started_ms, WAIT_MS / 2);
}
TEST_END

TEST(the_order_to_stop_ends_a_call_and_the_session)
{
	int64_t started_ms = clock_mono_ms();
	struct talk talk = talk_begin();
	say(&talk, CALL("1", "wait", "") ECHO("2"));
	clock_sleep_ms(100);
	ck_assert_int_eq(write(talk.stop, "x", 1), 1);
	int keep = dup(talk.to); /* the input does not end */
	AUTO_FREE char *out = talk_end(&talk);
	ck_assert_str_eq(out, "");
	ck_assert_int_lt(clock_mono_ms() - started_ms, WAIT_MS / 2);
	close(keep);
}
TEST_END

TEST(the_order_to_stop_is_seen_while_the_client_does_not_read)
{
	struct talk talk = talk_begin();
	AUTO_BUF input = BUF_INIT;
	for (int i = 0; i < 100; i++) /* far more answer than a pipe holds */
		buf_puts(&input, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n");
	say(&talk, input.data);
	clock_sleep_ms(300);
	ck_assert_int_eq(write(talk.stop, "x", 1), 1);
	int status = 0;
	for (int i = 0; i < 100 && waitpid(talk.pid, &status, WNOHANG) == 0; i++)
		clock_sleep_ms(20);
	ck_assert_int_eq(waitpid(talk.pid, &status, WNOHANG), -1); /* it was reaped above */
	ck_assert(WIFEXITED(status));
	close(talk.to);
	close(talk.from);
	close(talk.stop);
}
TEST_END

TEST(what_is_left_to_do_is_done_when_no_request_waits)
{
	char done[8];
	after = after_answers;
	ck_assert_int_eq(pipe2(after_pipe, O_CLOEXEC), 0);
	struct talk talk = talk_begin();
	clock_sleep_ms(50); /* nothing was asked yet, so nothing is left */
	say(&talk, ECHO("1") ECHO("2"));
	ck_assert_int_eq(read(after_pipe[0], done, sizeof(done)), 1);
	say(&talk, ECHO("3"));
	ck_assert_int_eq(read(after_pipe[0], done, sizeof(done)), 1);
	AUTO_FREE char *out = talk_end(&talk);
	ck_assert_ptr_nonnull(strstr(out, "\"id\":3"));
	ck_assert_int_eq(fcntl(after_pipe[0], F_SETFL, O_NONBLOCK), 0);
	ck_assert_int_eq(read(after_pipe[0], done, sizeof(done)), -1);
	/* What is in the pipe waits as well, even if it is more than is read at once. */
	char lines[70000];
	memset(lines, '\n', sizeof(lines));
	AUTO_FREE char *both = xasprintf(ECHO("1") "%.*s" ECHO("2"), (int)sizeof(lines), lines);
	talk = talk_begin();
	ck_assert_int_ge(fcntl(talk.to, F_SETPIPE_SZ, 1 << 20), 0);
	say(&talk, both);
	AUTO_FREE char *two = talk_end(&talk);
	ck_assert_ptr_nonnull(strstr(two, "\"id\":2"));
	ck_assert_int_eq(read(after_pipe[0], done, sizeof(done)), 1);
	/* What came with the end of the input is followed by it as well. */
	AUTO_JSON *all = answers(ECHO("1"));
	ck_assert_uint_eq(count(all), 1);
	ck_assert_int_eq(read(after_pipe[0], done, sizeof(done)), 1);
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		a_handshake_is_answered_and_its_notification_by_nothing,
		the_agreed_revision_shapes_later_results,
		a_claim_is_modern_without_any_header_also_after_a_handshake,
		arguments_that_http_repeats_in_headers_need_none,
		a_claim_of_an_unknown_revision_is_told_the_known_ones,
		garbage_is_answered_without_an_id_and_the_next_line_is_served,
		a_line_beyond_the_limit_is_refused_and_the_next_line_is_served,
		an_unknown_method_and_a_response_of_the_client_do_no_harm,
		a_batch_is_served_in_the_revision_that_has_batches_and_refused_in_others,
		progress_comes_as_messages_before_the_answer_when_it_was_asked_for,
		without_a_token_there_is_the_answer_alone,
		a_cancelled_call_ends_and_is_not_answered_but_what_follows_is,
		a_cancellation_that_comes_during_the_call_is_seen,
		a_cancellation_of_another_id_ends_nothing,
		two_queued_calls_that_are_cancelled_both_end,
		what_was_asked_before_the_end_of_input_is_answered,
		a_client_that_does_not_read_any_more_ends_the_call_and_the_session,
		the_order_to_stop_ends_a_call_and_the_session,
		the_order_to_stop_is_seen_while_the_client_does_not_read,
		what_is_left_to_do_is_done_when_no_request_waits,
	};
	kit.tools = &list;
	kit_open();
	int status = unit_run("stdio", unit_tests, ARRAY_LEN(unit_tests));
	kit_close();
	return status;
}
