/* Prompts, completion and log messages over the endpoint. */
#include "endpoint_kit.h"

/* --- prompts ------------------------------------------------------------------------------ */

static bool get_greeting(struct prompt_call *call, struct err *err)
{
	const char *name = prompt_argument(call, "name");
	AUTO_BUF text = BUF_INIT;
	if (strcmp(name, "nobody") == 0)
		return err_set(err, ERR_NOT_FOUND, "nobody is not here");
	if (strcmp(name, "broken") == 0)
		return err_set(err, ERR_INTERNAL, "select * from secret");
	const char *tone = prompt_argument(call, "tone");
	buf_printf(&text, "%s says %s to %s", call->principal, tone == NULL ? "hello" : tone, name);
	prompt_add_text(call, "user", text.data);
	prompt_add(call, "assistant",
		   json_literal("{\"type\":\"resource_link\",\"uri\":\"kit://a\",\"name\":\"a\"}"));
	return true;
}

static bool complete_greeting(void *app, const char *principal, const char *argument,
			      const char *value, struct json_object *values, bool *more,
			      struct err *err)
{
	(void)app;
	ck_assert_str_eq(principal, "tester");
	if (strcmp(argument, "fails") == 0)
		return err_set(err, ERR_BUSY, "not now");
	int count = strcmp(argument, "many") == 0 ? COMPLETE_MAX + 20 : 2;
	for (int i = 0; i < count; i++) {
		AUTO_BUF text = BUF_INIT;
		buf_printf(&text, "%s%d", value, i);
		json_push_str(values, text.data);
	}
	*more = strcmp(argument, "more") == 0;
	return true;
}

static const struct prompt_argument greeting_arguments[] = {
	{"name", "Name", "Whom to greet.", true},
	{"tone", NULL, "How.", false},
};
static const struct prompt greeting = {.name = "greeting",
				       .title = "Greeting",
				       .description = "Greets somebody.",
				       .arguments = greeting_arguments,
				       .argument_count = ARRAY_LEN(greeting_arguments),
				       .get = get_greeting,
				       .complete = complete_greeting};

static bool get_asking(struct prompt_call *call, struct err *err)
{
	(void)err;
	struct json_object *form;
	enum round_answer answer =
		round_elicit(&call->round, "who", "Who?",
			     "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}},"
			     "\"required\":[\"name\"]}",
			     &form);
	if (answer == ROUND_ASKED)
		return true;
	prompt_add_text(call, "user",
			answer == ROUND_ACCEPTED ? json_get_str(form, "name") : "stranger");
	return true;
}

static const struct prompt asking = {
	.name = "asking", .title = "Asking", .description = "Asks first.", .get = get_asking};

static const struct prompt *const list[] = {&greeting, &asking};
static const struct prompt_list prompts = {list, ARRAY_LEN(list)};

TEST(prompts_are_listed_with_their_arguments)
{
	AUTO_JSON *answer = kit_ask_modern("prompts/list", NULL, "", 200);
	ck_assert_str_eq(
		json_text(kit_at(answer, "result.prompts"), NULL),
		"[{\"name\":\"greeting\",\"title\":\"Greeting\",\"description\":\"Greets "
		"somebody.\","
		"\"arguments\":[{\"name\":\"name\",\"title\":\"Name\",\"description\":\"Whom to "
		"greet.\",\"required\":true},{\"name\":\"tone\",\"description\":\"How.\","
		"\"required\":false}]},"
		"{\"name\":\"asking\",\"title\":\"Asking\",\"description\":\"Asks first.\","
		"\"arguments\":[]}]");
	ck_assert_int_gt(json_get_int(json_get(answer, "result"), "ttlMs", -1), 0);
	AUTO_JSON *old = kit_ask_legacy("2025-03-26", "prompts/list", NULL, 200);
	ck_assert(!json_has(kit_at(old, "result.prompts.0"), "title"));
	ck_assert(!json_has(kit_at(old, "result.prompts.0.arguments.0"), "title"));
	AUTO_JSON *cursor = kit_ask_modern("prompts/list", NULL, "\"cursor\":\"x\",", 200);
	ck_assert_int_eq(kit_code(cursor), -32602);
}
TEST_END

TEST(a_prompt_is_filled_in_and_shaped)
{
	AUTO_JSON *answer = kit_ask_modern(
		"prompts/get", "greeting",
		"\"name\":\"greeting\",\"arguments\":{\"name\":\"Ann\",\"tone\":\"hi\"},", 200);
	ck_assert_str_eq(kit_text(answer, "result.resultType"), "complete");
	ck_assert_str_eq(kit_text(answer, "result.description"), "Greets somebody.");
	ck_assert_str_eq(
		json_text(kit_at(answer, "result.messages"), NULL),
		"[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"tester says "
		"hi to Ann\"}},{\"role\":\"assistant\",\"content\":{\"type\":"
		"\"resource_link\",\"uri\":\"kit://a\",\"name\":\"a\"}}]");
	ck_assert(!json_has(json_get(answer, "result"), "ttlMs"));
	AUTO_JSON *old =
		kit_ask_legacy("2025-03-26", "prompts/get",
			       "{\"name\":\"greeting\",\"arguments\":{\"name\":\"Ann\"}}", 200);
	ck_assert_str_eq(kit_text(old, "result.messages.0.content.text"),
			 "tester says hello to Ann");
	ck_assert_str_eq(kit_text(old, "result.messages.1.content.text"), "a: kit://a");
}
TEST_END

TEST(what_is_wrong_with_a_request_for_a_prompt_is_told)
{
	static const struct {
		const char *params, *says;
		int code;
	} cases[] = {
		{"", "params.name", -32602},
		{"\"name\":7,", "params.name", -32602},
		{"\"name\":\"nope\",", "nope", -32602},
		{"\"name\":\"greeting\",", "params.arguments.name", -32602},
		{"\"name\":\"greeting\",\"arguments\":{\"tone\":\"x\"},", "Whom to greet", -32602},
		{"\"name\":\"greeting\",\"arguments\":{\"name\":7},", "strings", -32602},
		{"\"name\":\"greeting\",\"arguments\":[],", "object", -32602},
		{"\"name\":\"greeting\",\"arguments\":{\"name\":\"B\\u0000b\"},", "strings",
		 -32602},
		{"\"name\":\"greeting\",\"arguments\":{\"name\":\"nobody\"},", "not here", -32602},
		{"\"name\":\"greeting\",\"arguments\":{\"name\":\"broken\"},", "Internal", -32603},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_JSON *answer = kit_ask_modern(
			"prompts/get", strstr(cases[i].params, "nope") ? "nope" : "greeting",
			cases[i].params, 200);
		ck_assert_int_eq(kit_code(answer), cases[i].code);
		ck_assert_msg(strstr(kit_text(answer, "error.message"), cases[i].says) != NULL,
			      "%s: %s", cases[i].params, kit_text(answer, "error.message"));
	}
}
TEST_END

TEST(a_prompt_can_ask_first)
{
	AUTO_MEM m, n;
	AUTO_BUF body = BUF_INIT, retry = BUF_INIT;
	kit_modern_as(&m, &body, "prompts/get", "asking", "\"name\":\"asking\",",
		      KIT_CAN("\"elicitation\":{}"));
	kit_serve(&m);
	AUTO_JSON *asks = kit_json(&m);
	ck_assert_str_eq(kit_text(asks, "result.resultType"), "input_required");
	ck_assert_str_eq(kit_text(asks, "result.inputRequests.who.params.message"), "Who?");
	kit_modern_as(&n, &retry, "prompts/get", "asking",
		      "\"name\":\"asking\",\"inputResponses\":{\"who\":{\"action\":\"accept\","
		      "\"content\":{\"name\":\"Ann\"}}},",
		      KIT_CAN("\"elicitation\":{}"));
	kit_serve(&n);
	AUTO_JSON *answer = kit_json(&n);
	ck_assert_str_eq(kit_text(answer, "result.messages.0.content.text"), "Ann");
	ck_assert_uint_eq(json_object_array_length(kit_at(answer, "result.messages")), 1);
	AUTO_JSON *cannot = kit_ask_modern("prompts/get", "asking", "\"name\":\"asking\",", 200);
	ck_assert_str_eq(kit_text(cannot, "result.messages.0.content.text"), "stranger");
}
TEST_END

/* --- completion --------------------------------------------------------------------------- */

static bool list_none(struct resource_call *call, const char *after, struct buf *next,
		      struct err *err)
{
	(void)call, (void)after, (void)next, (void)err;
	return true;
}

static bool read_none(struct resource_call *call, const char *uri, struct err *err)
{
	(void)call, (void)uri;
	return err_set(err, ERR_NOT_FOUND, "none");
}

static bool complete_variable(struct resource_call *call, const char *uri_template,
			      const char *variable, const char *value, struct json_object *known,
			      bool *more, struct err *err)
{
	(void)more, (void)err;
	AUTO_BUF text = BUF_INIT;
	buf_printf(&text, "%s %s %s %s", uri_template, variable, value,
		   known == NULL ? "-" : json_text(known, NULL));
	json_push_str(call->result, text.data);
	return true;
}

static const struct resource_template templates[] = {
	{"kit://{a}/{b}", "t", "T", "A template.", NULL}};
static const struct resource_set resources = {templates,         1,    list_none, read_none,
					      complete_variable, false};

static struct json_object *complete(const char *ref, const char *argument)
{
	AUTO_BUF params = BUF_INIT;
	buf_printf(&params, "\"ref\":%s,\"argument\":%s,\"context\":{\"arguments\":{\"a\":\"1\"}},",
		   ref, argument);
	return kit_ask_modern("completion/complete", NULL, params.data, 200);
}

#define OF_PROMPT   "{\"type\":\"ref/prompt\",\"name\":\"greeting\"}"
#define OF_TEMPLATE "{\"type\":\"ref/resource\",\"uri\":\"kit://{a}/{b}\"}"

TEST(arguments_and_variables_are_completed)
{
	AUTO_JSON *prompt = complete(OF_PROMPT, "{\"name\":\"name\",\"value\":\"An\"}");
	ck_assert_str_eq(json_text(kit_at(prompt, "result.completion"), NULL),
			 "{\"values\":[\"An0\",\"An1\"],\"hasMore\":false}");
	AUTO_JSON *variable = complete(OF_TEMPLATE, "{\"name\":\"b\",\"value\":\"x\"}");
	ck_assert_str_eq(kit_text(variable, "result.completion.values.0"),
			 "kit://{a}/{b} b x {\"a\":\"1\"}");
	AUTO_JSON *nothing = complete("{\"type\":\"ref/prompt\",\"name\":\"asking\"}",
				      "{\"name\":\"x\",\"value\":\"\"}");
	ck_assert_str_eq(json_text(kit_at(nothing, "result.completion"), NULL),
			 "{\"values\":[],\"hasMore\":false}");
	AUTO_JSON *old = kit_ask_legacy(
		"2025-03-26", "completion/complete",
		"{\"ref\":" OF_PROMPT ",\"argument\":{\"name\":\"name\",\"value\":\"\"}}", 200);
	ck_assert_str_eq(kit_text(old, "result.completion.values.1"), "1");
}
TEST_END

TEST(no_more_than_a_hundred_values_are_given)
{
	AUTO_JSON *many = complete(OF_PROMPT, "{\"name\":\"many\",\"value\":\"\"}");
	ck_assert_uint_eq(json_object_array_length(kit_at(many, "result.completion.values")),
			  COMPLETE_MAX);
	ck_assert(json_get_bool(kit_at(many, "result.completion"), "hasMore", false));
	AUTO_JSON *more = complete(OF_PROMPT, "{\"name\":\"more\",\"value\":\"\"}");
	ck_assert(json_get_bool(kit_at(more, "result.completion"), "hasMore", false));
}
TEST_END

TEST(what_cannot_be_completed_is_told)
{
	static const struct {
		const char *ref, *argument;
		int code;
	} cases[] = {
		{OF_PROMPT, "{}", -32602},
		{OF_PROMPT, "{\"name\":\"name\"}", -32602},
		{OF_PROMPT, "{\"name\":\"name\",\"value\":7}", -32602},
		{"{}", "{\"name\":\"a\",\"value\":\"\"}", -32602},
		{"{\"type\":\"ref/tool\"}", "{\"name\":\"a\",\"value\":\"\"}", -32602},
		{"{\"type\":\"ref/prompt\"}", "{\"name\":\"a\",\"value\":\"\"}", -32602},
		{"{\"type\":\"ref/prompt\",\"name\":\"no\"}", "{\"name\":\"a\",\"value\":\"\"}",
		 -32602},
		{"{\"type\":\"ref/resource\",\"uri\":\"kit://x\"}",
		 "{\"name\":\"a\",\"value\":\"\"}", -32602},
		{"{\"type\":\"ref/resource\"}", "{\"name\":\"a\",\"value\":\"\"}", -32602},
		{OF_PROMPT, "{\"name\":\"fails\",\"value\":\"\"}", -32603},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_JSON *answer = complete(cases[i].ref, cases[i].argument);
		ck_assert_msg(kit_code(answer) == cases[i].code, "%s %s", cases[i].ref,
			      cases[i].argument);
	}
}
TEST_END

/* --- log messages ------------------------------------------------------------------------- */

static bool call_chatty(struct tool_call *call, struct err *err)
{
	(void)err;
	static const char *const levels[] = {"debug", "info", "warning", "emergency", "nonsense"};
	for (size_t i = 0; i < ARRAY_LEN(levels); i++)
		tool_call_log(call, levels[i], levels[i]);
	call->content = json_object_new_array();
	return true;
}

static const struct tool chatty = {.name = "chatty",
				   .title = "Chatty",
				   .description = "Logs.",
				   .input_schema = KIT_SCHEMA("", ""),
				   .call = call_chatty};

/* The levels that came, as one word; the last event is the answer. */
static void check_logged(const struct mem *m, const char *wanted)
{
	AUTO_BUF got = BUF_INIT;
	if (m->length >= 0) {
		ck_assert_str_eq("", wanted);
		return;
	}
	AUTO_JSON *events = kit_events(m);
	size_t count = json_object_array_length(events);
	for (size_t i = 0; i + 1 < count; i++) {
		struct json_object *event = json_object_array_get_idx(events, i);
		ck_assert_str_eq(json_get_str(event, "method"), "notifications/message");
		ck_assert_str_eq(kit_text(event, "params.level"), kit_text(event, "params.data"));
		buf_printf(&got, "%s ", kit_text(event, "params.level"));
	}
	ck_assert(json_has(json_object_array_get_idx(events, count - 1), "result"));
	ck_assert_str_eq(buf_str(&got), wanted);
}

static void check_modern_log(const char *meta, const char *wanted)
{
	AUTO_MEM m;
	AUTO_BUF body = BUF_INIT;
	kit_modern_as(&m, &body, "tools/call", "chatty", "\"name\":\"chatty\",", meta);
	kit_serve(&m);
	check_logged(&m, wanted);
}

#define LEVEL(l) ",\"io.modelcontextprotocol/logLevel\":\"" l "\""

/* checklist 69 */
TEST(log_messages_come_only_at_the_level_that_was_asked_for)
{
	check_modern_log(KIT_CAN(""), "");
	check_modern_log(KIT_CAN("") LEVEL("debug"), "debug info warning emergency ");
	check_modern_log(KIT_CAN("") LEVEL("warning"), "warning emergency ");
	kit.logs = false;
	check_modern_log(KIT_CAN("") LEVEL("debug"), "");
}
TEST_END

static void check_legacy_log(const char *accept, const char *wanted)
{
	AUTO_MEM m;
	static const char body[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
				   "\"params\":{\"name\":\"chatty\"}}";
	mem_init(&m, "POST", body, strlen(body));
	mem_header(&m, "content-type", "application/json");
	mem_header(&m, "accept", accept);
	mem_header(&m, "authorization", "Bearer sesame");
	kit_serve(&m);
	check_logged(&m, wanted);
}

TEST(the_handshake_era_gets_messages_from_info_on)
{
	check_legacy_log("application/json, text/event-stream", "info warning emergency ");
	check_legacy_log("application/json", "");
	static const struct {
		const char *params;
		int code;
	} cases[] = {{"{\"level\":\"debug\"}", 0},
		     {"{\"level\":\"loud\"}", -32602},
		     {"{\"level\":3}", -32602},
		     {"{}", -32602}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_JSON *answer =
			kit_ask_legacy("2025-06-18", "logging/setLevel", cases[i].params, 200);
		ck_assert_int_eq(kit_code(answer), cases[i].code);
		if (cases[i].code == 0)
			ck_assert_str_eq(json_text(json_get(answer, "result"), NULL), "{}");
	}
	kit.logs = false;
	check_legacy_log("application/json, text/event-stream", "");
	AUTO_JSON *unknown =
		kit_ask_legacy("2025-06-18", "logging/setLevel", "{\"level\":\"info\"}", 200);
	ck_assert_int_eq(kit_code(unknown), -32601);
}
TEST_END

/* --- capabilities ------------------------------------------------------------------------- */

TEST(all_that_is_there_is_advertised_in_both_eras)
{
	AUTO_JSON *discovered = kit_ask_modern("server/discover", NULL, "", 200);
	AUTO_JSON *hello = kit_ask_legacy(NULL, "initialize", "{}", 200);
	struct json_object *modern = kit_at(discovered, "result.capabilities");
	ck_assert_str_eq(json_text(modern, NULL), "{\"tools\":{},\"prompts\":{},\"resources\":{},"
						  "\"completions\":{},\"logging\":{}}");
	ck_assert(json_object_equal(modern, kit_at(hello, "result.capabilities")));
	static const struct prompt_list none = {NULL, 0};
	kit.prompts = &none;
	kit.resources = NULL;
	kit.logs = false;
	AUTO_JSON *less = kit_ask_modern("server/discover", NULL, "", 200);
	ck_assert_str_eq(json_text(kit_at(less, "result.capabilities"), NULL), "{\"tools\":{}}");
	static const char *const methods[] = {"completion/complete", "prompts/get"};
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		AUTO_JSON *answer = kit_ask_modern(methods[i], "x", "\"name\":\"x\",", 404);
		ck_assert_int_eq(kit_code(answer), -32601);
	}
}
TEST_END

int main(void)
{
	static const struct tool *const tools[] = {&chatty};
	static const struct tool_list tool_list = {tools, ARRAY_LEN(tools)};
	const TTest *const unit_tests[] = {
		prompts_are_listed_with_their_arguments,
		a_prompt_is_filled_in_and_shaped,
		what_is_wrong_with_a_request_for_a_prompt_is_told,
		a_prompt_can_ask_first,
		arguments_and_variables_are_completed,
		no_more_than_a_hundred_values_are_given,
		what_cannot_be_completed_is_told,
		log_messages_come_only_at_the_level_that_was_asked_for,
		the_handshake_era_gets_messages_from_info_on,
		all_that_is_there_is_advertised_in_both_eras,
	};
	kit.tools = &tool_list;
	kit.prompts = &prompts;
	kit.resources = &resources;
	kit.logs = true;
	kit_open();
	int failed = unit_run("endpoint_prompt", unit_tests, ARRAY_LEN(unit_tests));
	kit_close();
	return failed;
}
