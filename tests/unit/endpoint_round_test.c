/* Tools that ask their client: by results in the modern era, on the stream of the call in the
 * handshake era, with a mailbox in memory that answers as a client would. */
#include "clock_kit.h"

#include "endpoint_kit.h"

/* --- tools -------------------------------------------------------------------------------- */

#define FORM \
	"{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}}," \
	"\"required\":[\"name\"]}"

static void say(struct tool_call *call, const char *text)
{
	call->structured = json_object_new_object();
	json_add_str(call->structured, "text", text);
}

static bool call_ask(struct tool_call *call, struct err *err)
{
	(void)err;
	struct json_object *form, *sample;
	kit_calls++;
	say(call, "dropped");
	enum round_answer name = round_elicit(&call->round, "name", "Who?", FORM, &form);
	if (name == ROUND_CANNOT || name == ROUND_DECLINED) {
		json_object_put(call->structured);
		say(call, name == ROUND_CANNOT ? "cannot" : "declined");
		return true;
	}
	if (name == ROUND_ASKED)
		return true;
	if (json_get_bool(call->arguments, "twice", false)) {
		call->round.keep = json_literal("{\"seen\":1}");
		if (round_sample(&call->round, "sample", json_literal("{\"maxTokens\":1}"),
				 &sample) == ROUND_ASKED)
			return true;
		ck_assert_int_eq(json_get_int(call->round.kept, "seen", 0), 1);
	}
	json_object_put(call->structured);
	say(call, json_get_str(form, "name"));
	return true;
}

static const struct tool ask_tool = {
	.name = "ask",
	.title = "Ask",
	.description = "Asks.",
	.input_schema = KIT_SCHEMA("\"twice\":{\"type\":\"boolean\"}", ""),
	.output_schema = KIT_SCHEMA("\"text\":{\"type\":\"string\"}", ""),
	.call = call_ask,
};

static bool call_need(struct tool_call *call, struct err *err)
{
	kit_calls++;
	if (!round_require(&call->round, ROUND_SAMPLE))
		return err_set(err, ERR_INVALID, "never told");
	say(call, "there");
	return true;
}

static const struct tool need_tool = {
	.name = "need",
	.title = "Need",
	.description = "Needs sampling.",
	.input_schema = KIT_SCHEMA("", ""),
	.call = call_need,
};

/* Asks a question for ever. */
static bool call_nag(struct tool_call *call, struct err *err)
{
	(void)err;
	struct json_object *roots;
	kit_calls++;
	ck_assert_int_eq(round_roots(&call->round, "never", &roots), ROUND_ASKED);
	return true;
}

static const struct tool nag_tool = {
	.name = "nag",
	.title = "Nag",
	.description = "Asks for ever.",
	.input_schema = KIT_SCHEMA("", ""),
	.call = call_nag,
};

static bool call_foreign(struct tool_call *call, struct err *err)
{
	(void)err;
	kit_calls++;
	call->structured = json_copy(call->arguments);
	return true;
}

static const struct tool foreign_tool = {
	.name = "foreign",
	.title = "Foreign",
	.description = "Has a schema of other keywords.",
	.input_schema = "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/a\"}},"
			"\"$defs\":{\"a\":{\"$anchor\":\"a\"}},\"allOf\":[{\"anyOf\":[{},true]}],"
			"\"additionalProperties\":false}",
	.schema_is_foreign = true,
	.call = call_foreign,
};

/* --- the modern era ----------------------------------------------------------------------- */

#define ELICITATION KIT_CAN("\"elicitation\":{}")
#define BOTH        KIT_CAN("\"elicitation\":{},\"sampling\":{}")
#define BOB         "\"inputResponses\":{\"name\":{\"action\":\"accept\",\"content\":{\"name\":\"Bob\"}}},"
#define SAMPLE      "\"sample\":{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"x\"}}"

static struct json_object *ask(const char *tool, const char *params, const char *meta, int status)
{
	AUTO_MEM m;
	AUTO_BUF body = BUF_INIT, whole = BUF_INIT;
	buf_printf(&whole, "\"name\":\"%s\",%s", tool, params);
	kit_modern_as(&m, &body, "tools/call", tool, whole.data, meta);
	kit_serve(&m);
	ck_assert_msg(m.status == status, "%s: got %d %s", body.data, m.status, buf_str(&m.out));
	return kit_json(&m);
}

TEST(a_tool_asks_by_a_result_and_is_called_again_with_the_answer)
{
	AUTO_JSON *asks = ask("ask", "", ELICITATION, 200);
	struct json_object *result = json_get(asks, "result");
	ck_assert_str_eq(json_get_str(result, "resultType"), "input_required");
	ck_assert_str_eq(json_text(json_get(result, "inputRequests"), NULL),
			 "{\"name\":{\"method\":\"elicitation/create\",\"params\":{\"message\":"
			 "\"Who?\",\"requestedSchema\":" FORM "}}}");
	ck_assert_int_eq(json_object_object_length(result), 3); /* and _meta */
	ck_assert(!json_has(result, "requestState"));
	AUTO_JSON *answer = ask("ask", BOB, ELICITATION, 200);
	ck_assert_str_eq(kit_text(answer, "result.resultType"), "complete");
	ck_assert_str_eq(kit_text(answer, "result.structuredContent.text"), "Bob");
	AUTO_JSON *declined = ask("ask", "\"inputResponses\":{\"name\":{\"action\":\"cancel\"}},",
				  ELICITATION, 200);
	ck_assert_str_eq(kit_text(declined, "result.structuredContent.text"), "declined");
}
TEST_END

/* checklist 73 */
TEST(a_client_is_asked_only_for_what_it_declares)
{
	AUTO_JSON *cannot = ask("ask", "", KIT_CAN("\"sampling\":{}"), 200);
	ck_assert_str_eq(kit_text(cannot, "result.structuredContent.text"), "cannot");
	AUTO_JSON *missing = ask("need", "", ELICITATION, 400);
	ck_assert_int_eq(kit_code(missing), -32021);
	ck_assert_str_eq(json_text(kit_at(missing, "error.data"), NULL),
			 "{\"requiredCapabilities\":{\"sampling\":{}}}");
	AUTO_JSON *there = ask("need", "", BOTH, 200);
	ck_assert_str_eq(kit_text(there, "result.structuredContent.text"), "there");
}
TEST_END

static struct json_object *retry(struct json_object *asks, const char *tool, const char *arguments,
				 const char *responses)
{
	AUTO_BUF params = BUF_INIT;
	buf_printf(&params, "%s\"requestState\":\"%s\",\"inputResponses\":%s,", arguments,
		   kit_text(asks, "result.requestState"), responses);
	return ask(tool, params.data, BOTH, 200);
}

#define TWICE "\"arguments\":{\"twice\":true},"

/* checklist 74, 75 */
TEST(a_second_round_brings_back_what_was_kept_and_used)
{
	AUTO_JSON *first = ask("ask", TWICE BOB, BOTH, 200);
	ck_assert_str_eq(kit_text(first, "result.inputRequests.sample.method"),
			 "sampling/createMessage");
	AUTO_JSON *again = retry(first, "ask", TWICE, "{\"other\":{}}");
	ck_assert_str_eq(kit_text(again, "result.resultType"), "input_required");
	ck_assert_str_ne(kit_text(first, "result.requestState"),
			 kit_text(again, "result.requestState"));
	AUTO_JSON *done = retry(again, "ask", TWICE, "{" SAMPLE "}");
	ck_assert_str_eq(kit_text(done, "result.structuredContent.text"), "Bob");
	int before = kit_calls;
	AUTO_JSON *other = retry(first, "ask", "", "{" SAMPLE "}");
	AUTO_JSON *foreign = retry(first, "need", TWICE, "{" SAMPLE "}");
	AUTO_JSON *null = retry(first, "ask", TWICE, "null");
	ck_assert_int_eq(kit_code(other), -32602);
	ck_assert_int_eq(kit_code(foreign), -32602);
	ck_assert_int_eq(kit_code(null), -32602);
	ck_assert_int_eq(kit_calls, before);
	kit.state_keys[0].bytes[0] ^= 1;
	AUTO_JSON *replaced = retry(first, "ask", TWICE, "{" SAMPLE "}");
	ck_assert_int_eq(kit_code(replaced), -32602);
}
TEST_END

TEST(a_foreign_schema_is_passed_on_verbatim_and_not_checked)
{
	AUTO_JSON *list = kit_ask_modern("tools/list", NULL, "", 200);
	AUTO_JSON *wanted = json_literal(foreign_tool.input_schema);
	ck_assert_str_eq(json_text(kit_at(list, "result.tools.3.inputSchema"), NULL),
			 json_text(wanted, NULL));
	AUTO_JSON *answer = ask("foreign", "\"arguments\":{\"b\":[1]},", ELICITATION, 200);
	ck_assert_str_eq(json_text(kit_at(answer, "result.structuredContent"), NULL),
			 "{\"b\":[1]}");
	int before = kit_calls;
	AUTO_JSON *array = ask("foreign", "\"arguments\":[1],", ELICITATION, 200);
	ck_assert(json_get_bool(json_get(array, "result"), "isError", false));
	ck_assert_int_eq(kit_calls, before);
}
TEST_END

/* --- the handshake era -------------------------------------------------------------------- */

/* The mailbox, and the client that reads the stream and posts. */
static struct {
	struct mem *stream; /* of the call that asks */
	const char *member; /* what the client answers with, from "result" or "error" on */
	int opened, closed, posted;
	char id[ID_LEN + 1], owner[16];
	struct buf letter;
	enum err_code fails;
	bool leaves; /* the client goes instead of answering */
	bool stops;  /* the process is told to stop instead */
	bool waits;  /* nobody answers, and time passes */
} box;

static bool post_letter(void *app, const char *principal, const char *id, const char *text,
			size_t len, struct err *err)
{
	(void)app, (void)err;
	box.posted++;
	if (strcmp(id, box.id) == 0 && strcmp(principal, box.owner) == 0)
		buf_append(&box.letter, text, len);
	return true;
}

static bool open_box(void *app, const char *principal, const char *id, struct err *err)
{
	(void)app;
	if (box.fails == ERR_BUSY)
		return err_set(err, ERR_BUSY, "too many questions");
	box.opened++;
	snprintf(box.id, sizeof box.id, "%s", id);
	snprintf(box.owner, sizeof box.owner, "%s", principal);
	return true;
}

/* The client: answers the newest request on the stream in a request of its own. */
static void answer_as_client(void)
{
	AUTO_MEM m;
	AUTO_BUF body = BUF_INIT;
	AUTO_JSON *events = kit_events(box.stream);
	struct json_object *newest =
		json_object_array_get_idx(events, json_object_array_length(events) - 1);
	ck_assert_str_eq(json_get_str(newest, "id"), box.id);
	ck_assert_str_eq(json_get_str(newest, "jsonrpc"), "2.0");
	buf_printf(&body, "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",%s}", box.id, box.member);
	kit_post(&m, body.data);
	mem_header(&m, "mcp-protocol-version", "2025-11-25");
	kit_serve(&m);
	ck_assert_int_eq(m.status, 202);
	ck_assert_uint_eq(m.out.len, 0);
}

static int take_letter(void *app, const char *principal, const char *id, struct buf *text,
		       struct err *err)
{
	(void)app;
	ck_assert_str_eq(principal, "tester");
	ck_assert_str_eq(id, box.id);
	if (box.fails == ERR_IO) {
		errno = EIO;
		err_sys(err, "read mailbox");
		return -1;
	}
	if (box.leaves)
		box.stream->gone = true;
	else if (box.stops)
		box.stream->stopping = true;
	else if (box.waits)
		clock_kit_ahead_ms += 7000;
	else if (box.letter.len == 0)
		answer_as_client();
	if (box.letter.len == 0)
		return 0;
	buf_append(text, box.letter.data, box.letter.len);
	buf_clear(&box.letter);
	return 1;
}

static void close_box(void *app, const char *id)
{
	(void)app;
	ck_assert_str_eq(id, box.id);
	box.closed++;
}

static const struct peer mailbox = {post_letter, open_box, take_letter, close_box};

/* Calls a tool in the handshake era; the messages on its stream. */
static struct json_object *call_on_stream(struct mem *m, const char *tool, const char *arguments)
{
	AUTO_BUF body = BUF_INIT;
	buf_printf(&body,
		   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
		   "\"%s\",\"arguments\":%s}}",
		   tool, arguments);
	kit.peer = &mailbox;
	box.stream = m;
	kit_post(m, body.data);
	mem_header(m, "mcp-protocol-version", "2025-11-25");
	kit_serve(m);
	return kit_events(m);
}

static struct json_object *last(struct json_object *events)
{
	return json_object_array_get_idx(events, json_object_array_length(events) - 1);
}

#define ACCEPT "\"result\":{\"action\":\"accept\",\"content\":{\"name\":\"Eve\"}}"

TEST(a_tool_asks_on_its_stream_and_the_answer_is_posted)
{
	AUTO_MEM m;
	box.member = ACCEPT;
	kit_calls = 0;
	AUTO_JSON *events = call_on_stream(&m, "ask", "{}");
	ck_assert_uint_eq(json_object_array_length(events), 2);
	ck_assert_str_eq(kit_text(events, "0.method"), "elicitation/create");
	ck_assert_str_eq(json_text(kit_at(events, "0.params"), NULL),
			 "{\"message\":\"Who?\",\"requestedSchema\":" FORM "}");
	ck_assert_str_eq(kit_text(last(events), "result.structuredContent.text"), "Eve");
	ck_assert_int_eq(json_get_int(last(events), "id", 0), 1);
	ck_assert_int_eq(kit_calls, 2);
	ck_assert_int_eq(box.opened, 1);
	ck_assert_int_eq(box.posted, 1);
	ck_assert_int_eq(box.closed, 1);
}
TEST_END

TEST(what_the_client_answers_decides_how_the_tool_goes_on)
{
	static const struct {
		const char *member, *text;
	} cases[] = {
		{"\"result\":{\"action\":\"decline\"}", "declined"},
		{"\"error\":{\"code\":-1,\"message\":\"User said no\"}", "declined"},
		{"\"error\":{\"code\":-32601,\"message\":\"Method not found\"}", "cannot"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_MEM m;
		box.member = cases[i].member;
		AUTO_JSON *events = call_on_stream(&m, "ask", "{}");
		ck_assert_str_eq(kit_text(last(events), "result.structuredContent.text"),
				 cases[i].text);
	}
	ck_assert_int_eq(box.closed, box.opened);
}
TEST_END

TEST(an_answer_that_never_fits_is_not_asked_for_without_end)
{
	AUTO_MEM m;
	box.member = "\"result\":{\"roots\":7}";
	kit_calls = 0;
	AUTO_JSON *events = call_on_stream(&m, "nag", "{}");
	ck_assert_int_eq(kit_code(last(events)), -32603);
	ck_assert_int_eq(kit_calls, 17);
	ck_assert_int_eq(box.closed, box.opened);
}
TEST_END

TEST(a_client_that_goes_or_never_answers_ends_the_call)
{
	AUTO_MEM m, n;
	box.waits = true;
	AUTO_JSON *late = call_on_stream(&m, "ask", "{}");
	ck_assert_int_eq(kit_code(last(late)), -32603);
	ck_assert_ptr_nonnull(strstr(kit_text(last(late), "error.message"), "60 s"));
	ck_assert_ptr_nonnull(strstr(m.out.data, ": keep-alive\n\n"));
	box.waits = false;
	box.leaves = true;
	AUTO_JSON *gone = call_on_stream(&n, "ask", "{}");
	ck_assert_uint_eq(json_object_array_length(gone), 1); /* nothing after the question */
	ck_assert_int_eq(box.closed, 2);
}
TEST_END

TEST(a_worker_that_is_told_to_stop_gives_the_question_up_at_once)
{
	AUTO_MEM m;
	int64_t began_ms = clock_mono_ms();
	box.stops = true;
	AUTO_JSON *events = call_on_stream(&m, "ask", "{}");
	ck_assert_int_eq(kit_code(last(events)), -32603);
	ck_assert_ptr_nonnull(strstr(kit_text(last(events), "error.message"), "Repeat the call"));
	ck_assert_int_lt(clock_mono_ms() - began_ms, 1000);
	ck_assert_int_eq(box.closed, 1);
}
TEST_END

TEST(a_mailbox_that_fails_fails_the_call)
{
	AUTO_MEM m;
	box.fails = ERR_IO;
	AUTO_JSON *events = call_on_stream(&m, "ask", "{}");
	ck_assert_int_eq(kit_code(last(events)), -32603);
	ck_assert_str_eq(kit_text(last(events), "error.message"), "Internal error");
	ck_assert_int_eq(box.closed, 1);
	box.fails = ERR_BUSY;
	AUTO_JSON *busy = kit_ask_legacy("2025-11-25", "tools/call", "{\"name\":\"ask\"}", 200);
	ck_assert_int_eq(kit_code(busy), -32603);
	ck_assert_int_eq(box.closed, 1); /* none was opened */
}
TEST_END

TEST(nothing_is_asked_where_nothing_can_come_back)
{
	AUTO_JSON *no_peer = kit_ask_legacy("2025-11-25", "tools/call", "{\"name\":\"ask\"}", 200);
	ck_assert_str_eq(kit_text(no_peer, "result.structuredContent.text"), "cannot");
	AUTO_JSON *missing = kit_ask_legacy("2025-11-25", "tools/call", "{\"name\":\"need\"}", 200);
	ck_assert_int_eq(kit_code(missing), -32600);
	kit.peer = &mailbox;
	AUTO_JSON *batch =
		kit_raw("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
			"\"name\":\"ask\"}}]",
			"2025-03-26", 200);
	ck_assert_str_eq(kit_text(batch, "0.result.content.0.text"), "{\"text\":\"cannot\"}");
	ck_assert_int_eq(box.opened, 0);
	AUTO_JSON *modern = ask("ask", "", ELICITATION, 200);
	ck_assert_str_eq(kit_text(modern, "result.resultType"), "input_required");
	ck_assert_int_eq(box.opened, 0);
}
TEST_END

/* checklist 47 */
TEST(answers_to_nobody_are_accepted_and_dropped)
{
	static const char *const ids[] = {"7", "\"7\"", "\"00112233445566778899aabbccddeeff\""};
	kit.peer = &mailbox;
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		AUTO_BUF body = BUF_INIT;
		buf_printf(&body, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}", ids[i]);
		ck_assert_ptr_null(kit_raw(body.data, "2025-11-25", 202));
	}
	ck_assert_int_eq(box.posted, 1); /* only what may be an id of ours gets there */
	ck_assert_uint_eq(box.letter.len, 0);
}
TEST_END

int main(void)
{
	static const struct tool *const tools[] = {&ask_tool, &need_tool, &nag_tool, &foreign_tool};
	static const struct tool_list list = {tools, ARRAY_LEN(tools)};
	const TTest *const unit_tests[] = {
		a_tool_asks_by_a_result_and_is_called_again_with_the_answer,
		a_client_is_asked_only_for_what_it_declares,
		a_second_round_brings_back_what_was_kept_and_used,
		a_foreign_schema_is_passed_on_verbatim_and_not_checked,
		a_tool_asks_on_its_stream_and_the_answer_is_posted,
		what_the_client_answers_decides_how_the_tool_goes_on,
		an_answer_that_never_fits_is_not_asked_for_without_end,
		a_client_that_goes_or_never_answers_ends_the_call,
		a_worker_that_is_told_to_stop_gives_the_question_up_at_once,
		a_mailbox_that_fails_fails_the_call,
		nothing_is_asked_where_nothing_can_come_back,
		answers_to_nobody_are_accepted_and_dropped,
	};
	kit.tools = &list;
	kit_open();
	int failed = unit_run("endpoint_round", unit_tests, ARRAY_LEN(unit_tests));
	kit_close();
	return failed;
}
