/* tools/list and tools/call: listing, validation, results, failures. */
#include "endpoint_kit.h"
#include "mcp/catalog.h"
#include "mcp/endpoint.h"

static const char *const revisions[] = {"2025-03-26", "2025-06-18", "2025-11-25"};

static struct json_object *call(const char *name, const char *arguments)
{
	AUTO_BUF params = BUF_INIT;
	buf_printf(&params, "{\"name\":\"%s\"%s%s}", name,
		   arguments == NULL ? "" : ",\"arguments\":", arguments == NULL ? "" : arguments);
	return kit_ask_legacy("2025-11-25", "tools/call", params.data, 200);
}

/* The {error, message, fix, usage, retryable} of a failed call. */
static struct json_object *failure(struct json_object *answer)
{
	struct err err;
	ck_assert(json_get_bool(json_get(answer, "result"), "isError", false));
	ck_assert(!json_has(json_get(answer, "result"), "structuredContent"));
	ck_assert_uint_eq(json_object_array_length(kit_at(answer, "result.content")), 1);
	const char *text = kit_text(answer, "result.content.0.text");
	struct json_object *body = json_parse(text, strlen(text), &err);
	ck_assert_ptr_nonnull(body);
	ck_assert(json_has(body, "error") && json_has(body, "message") && json_has(body, "fix") &&
		  json_has(body, "usage") && json_has(body, "retryable"));
	return body;
}

/* checklist 49 */
TEST(the_list_is_stable_and_complete)
{
	AUTO_JSON *first = kit_ask_modern("tools/list", NULL, "", 200);
	AUTO_JSON *again = kit_ask_modern("tools/list", NULL, "", 200);
	ck_assert_str_eq(json_text(first, NULL), json_text(again, NULL));
	struct json_object *tools = kit_at(first, "result.tools");
	ck_assert_uint_eq(json_object_array_length(tools), kit_list.count);
	for (size_t i = 0; i < kit_list.count; i++) {
		struct json_object *tool = json_object_array_get_idx(tools, i);
		ck_assert_str_eq(json_get_str(tool, "name"), kit_tools[i]->name);
		ck_assert_str_eq(json_get_str(tool, "title"), kit_tools[i]->title);
		ck_assert_str_eq(json_get_str(tool, "description"), kit_tools[i]->description);
		ck_assert_str_eq(kit_text(tool, "inputSchema.type"), "object");
		ck_assert_ptr_nonnull(kit_at(tool, "inputSchema.properties"));
		static const char *const hints[] = {"readOnlyHint", "destructiveHint",
						    "idempotentHint", "openWorldHint"};
		for (size_t j = 0; j < ARRAY_LEN(hints); j++)
			ck_assert(json_has(json_get(tool, "annotations"), hints[j]));
	}
	ck_assert(json_get_bool(kit_at(tools, "0.annotations"), "readOnlyHint", false));
	ck_assert(!json_get_bool(kit_at(tools, "0.annotations"), "destructiveHint", true));
}
TEST_END

/* checklist 52 */
TEST(no_arguments_can_be_said_in_three_ways)
{
	static const char *const ways[] = {NULL, "null", "{}"};
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		AUTO_JSON *answer = call("content", ways[i]);
		ck_assert(!json_has(json_get(answer, "result"), "isError"));
	}
	ck_assert_int_eq(kit_calls, 3);
}
TEST_END

/* checklist 53, 54 */
TEST(wrong_arguments_are_told_by_path_and_have_no_effect)
{
	static const struct {
		const char *arguments, *line;
	} cases[] = {
		{NULL, "arguments.command: expected string, got nothing (it is required)"},
		{"{\"command\":5}", "arguments.command: expected string, got integer 5"},
		{"{\"command\":null}", "arguments.command: expected string, got null"},
		{"{\"cmd\":\"ls\"}",
		 "arguments.cmd: expected no member of this name, did you mean \"command\"?"},
		{"{\"command\":\"x\",\"timeoutMs\":5}", "did you mean \"timeout_ms\"?"},
		{"{\"command\":\"x\",\"zzz\":5}",
		 "arguments.zzz: expected no member of this name; known are command, timeout_ms"},
		{"{\"command\":\"x\",\"timeout_ms\":\"5\"}",
		 "arguments.timeout_ms: expected integer, got string \"5\""},
		{"{\"command\":\"x\",\"timeout_ms\":601}",
		 "arguments.timeout_ms: expected at most 600, got integer 601"},
		{"{\"command\":\"x\",\"timeout_ms\":1.5}",
		 "arguments.timeout_ms: expected integer, got number 1.5"},
		{"[]", "arguments: expected object, got array of 0 items"},
		{"\"{}\"", "arguments: expected object, got string \"{}\""},
		{"true", "arguments: expected object, got boolean true"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_JSON *answer = call("echo", cases[i].arguments);
		AUTO_JSON *body = failure(answer);
		ck_assert_str_eq(json_get_str(body, "error"), "invalid");
		ck_assert_msg(strstr(json_get_str(body, "message"), cases[i].line) != NULL, "%s",
			      json_get_str(body, "message"));
		ck_assert_str_eq(json_get_str(body, "usage"),
				 "echo({\"command\":\"ls -la\"}); optional: timeout_ms");
	}
	ck_assert_int_eq(kit_calls, 0);
}
TEST_END

TEST(modern_calls_report_wrong_arguments_alike)
{
	AUTO_JSON *answer = kit_ask_modern("tools/call", "echo", "\"name\":\"echo\",", 200);
	AUTO_JSON *body = failure(answer);
	ck_assert_str_eq(json_get_str(body, "error"), "invalid");
}
TEST_END

/* checklist 55 */
TEST(an_unknown_tool_is_an_error_that_suggests)
{
	AUTO_JSON *answer = call("ehco", "{}");
	ck_assert_int_eq(kit_code(answer), -32602);
	ck_assert_ptr_nonnull(strstr(kit_text(answer, "error.message"), "did you mean \"echo\"?"));
	AUTO_JSON *modern =
		kit_ask_modern("tools/call", "quite_else", "\"name\":\"quite_else\",", 200);
	ck_assert_int_eq(kit_code(modern), -32602);
	ck_assert_ptr_null(strstr(kit_text(modern, "error.message"), "mean"));
	ck_assert_ptr_nonnull(strstr(kit_text(modern, "error.message"), "tools/list"));
}
TEST_END

/* checklist 56, 57 */
TEST(a_result_is_structured_and_has_the_same_as_text)
{
	AUTO_BUF params = BUF_INIT;
	buf_puts(&params, "{\"name\":\"echo\",\"arguments\":{\"command\":\"a\\\"\xC3\xA4\\n\"}}");
	for (size_t i = 0; i < ARRAY_LEN(revisions); i++) {
		AUTO_JSON *answer = kit_ask_legacy(revisions[i], "tools/call", params.data, 200);
		const char *text = kit_text(answer, "result.content.0.text");
		struct err err = ERR_INIT;
		AUTO_JSON *same = json_parse(text, strlen(text), &err);
		ck_assert_str_eq(json_get_str(same, "who"), "tester");
		struct json_object *structured = kit_at(answer, "result.structuredContent");
		ck_assert_int_eq(structured != NULL, i > 0);
		if (i > 0) {
			ck_assert(json_object_equal(structured, same));
			ck_ok(tool_check_result(&kit_echo_tool, structured, &err), err);
			ck_assert_str_eq(json_get_str(structured, "large"), "9007199254740993");
		}
	}
}
TEST_END

TEST(a_result_that_breaks_its_output_schema_is_found_by_the_check)
{
	struct err err = ERR_INIT;
	AUTO_JSON *wrong = json_literal("{\"text\":5,\"extra\":1}");
	ck_assert(!tool_check_result(&kit_echo_tool, wrong, &err));
	ck_assert_ptr_nonnull(
		strstr(err.msg, "structuredContent.text: expected string, got integer 5"));
	ck_assert(!tool_check_result(&kit_echo_tool, NULL, &err));
	ck_assert(tool_check_result(&kit_content_tool, NULL, &err));
}
TEST_END

TEST(blocks_come_as_the_tool_made_them)
{
	AUTO_JSON *answer = kit_ask_modern("tools/call", "content", "\"name\":\"content\",", 200);
	ck_assert_uint_eq(json_object_array_length(kit_at(answer, "result.content")), 2);
	ck_assert_str_eq(kit_text(answer, "result.content.0.uri"), "spoolbox://b/f");
	ck_assert_str_eq(kit_text(answer, "result.content.1.type"), "image");
	ck_assert(!json_has(json_get(answer, "result"), "structuredContent"));
}
TEST_END

TEST(a_failure_of_the_tool_says_what_and_what_next)
{
	AUTO_JSON *answer = call("fail", "{\"how\":\"not_found\"}");
	AUTO_JSON *body = failure(answer);
	ck_assert_str_eq(json_get_str(body, "error"), "not_found");
	ck_assert_str_eq(json_get_str(body, "message"), "no sandbox \"x\"");
	ck_assert_str_eq(json_get_str(body, "fix"), "Call create_sandbox.");
	ck_assert_str_eq(json_get_str(body, "usage"), "fail({\"how\":\"not_found\"})");
	ck_assert(!json_get_bool(body, "retryable", true));
}
TEST_END

TEST(a_failure_reported_as_data_keeps_its_data)
{
	AUTO_JSON *answer = call("fail", "{\"how\":\"data\"}");
	ck_assert(json_get_bool(json_get(answer, "result"), "isError", false));
	ck_assert_str_eq(kit_text(answer, "result.content.0.text"), "{\"exit\":1}");
	ck_assert(!json_has(json_get(answer, "result"), "structuredContent"));
}
TEST_END

/* Runs a call while standard error goes to text. */
static struct json_object *call_logged(const char *arguments, char *text, size_t size)
{
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);
	dup2(fileno(file), STDERR_FILENO);
	struct json_object *answer = call("fail", arguments);
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(file);
	text[fread(text, 1, size - 1, file)] = '\0';
	fclose(file);
	return answer;
}

TEST(a_fault_of_the_host_shows_a_reference_that_the_log_explains)
{
	static const char *const hows[] = {"{\"how\":\"io\"}", "{\"how\":\"internal\"}"};
	for (size_t i = 0; i < ARRAY_LEN(hows); i++) {
		char log[4096];
		AUTO_JSON *answer = call_logged(hows[i], log, sizeof(log));
		AUTO_JSON *body = failure(answer);
		const char *message = json_get_str(body, "message");
		ck_assert(json_get_bool(body, "retryable", false));
		ck_assert_ptr_null(strstr(json_text(answer, NULL), "secret"));
		ck_assert_int_eq(strncmp(message, "internal error, reference ", 26), 0);
		ck_assert_ptr_nonnull(strstr(log, message + 26));
		ck_assert_ptr_nonnull(strstr(log, "secret"));
	}
}
TEST_END

/* checklist 58 */
TEST(a_handler_that_breaks_its_promise_is_an_internal_error)
{
	static const char *const hows[] = {"silent", "nothing", "array"};
	for (size_t i = 0; i < ARRAY_LEN(hows); i++) {
		char log[4096];
		AUTO_BUF arguments = BUF_INIT;
		buf_printf(&arguments, "{\"how\":\"%s\"}", hows[i]);
		AUTO_JSON *answer = call_logged(arguments.data, log, sizeof(log));
		ck_assert_int_eq(kit_code(answer), -32603);
		ck_assert_str_eq(kit_text(answer, "error.message"), "Internal error");
		ck_assert_ptr_nonnull(strstr(log, "fail"));
	}
}
TEST_END

/* checklist 59, 63 */
TEST(lists_are_one_page_and_know_no_cursor)
{
	static const struct {
		const char *method, *member;
	} lists[] = {{"tools/list", "tools"},
		     {"prompts/list", "prompts"},
		     {"resources/list", "resources"},
		     {"resources/templates/list", "resourceTemplates"}};
	static const char *const cursors[] = {"\"x\"", "\"\"", "5", "{}"};
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		AUTO_JSON *modern = kit_ask_modern(lists[i].method, NULL, "", 200);
		AUTO_JSON *legacy = kit_ask_legacy("2025-06-18", lists[i].method, "{}", 200);
		ck_assert(json_object_is_type(json_get(json_get(modern, "result"), lists[i].member),
					      json_type_array));
		ck_assert(json_object_is_type(json_get(json_get(legacy, "result"), lists[i].member),
					      json_type_array));
		ck_assert(!json_has(json_get(modern, "result"), "nextCursor"));
		for (size_t j = 0; j < ARRAY_LEN(cursors); j++) {
			AUTO_BUF params = BUF_INIT;
			buf_printf(&params, "\"cursor\":%s,", cursors[j]);
			AUTO_JSON *answer = kit_ask_modern(lists[i].method, NULL, params.data, 200);
			ck_assert_int_eq(kit_code(answer), -32602);
		}
	}
}
TEST_END

/* checklist 84 */
TEST(a_task_wish_in_params_is_ignored)
{
	AUTO_JSON *answer = kit_ask_legacy(
		"2025-11-25", "tools/call",
		"{\"name\":\"echo\",\"arguments\":{\"command\":\"x\"},\"task\":{\"ttl\":5}}", 200);
	ck_assert_str_eq(kit_text(answer, "result.structuredContent.text"), "x");
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		the_list_is_stable_and_complete,
		no_arguments_can_be_said_in_three_ways,
		wrong_arguments_are_told_by_path_and_have_no_effect,
		modern_calls_report_wrong_arguments_alike,
		an_unknown_tool_is_an_error_that_suggests,
		a_result_is_structured_and_has_the_same_as_text,
		a_result_that_breaks_its_output_schema_is_found_by_the_check,
		blocks_come_as_the_tool_made_them,
		a_failure_of_the_tool_says_what_and_what_next,
		a_failure_reported_as_data_keeps_its_data,
		a_fault_of_the_host_shows_a_reference_that_the_log_explains,
		a_handler_that_breaks_its_promise_is_an_internal_error,
		lists_are_one_page_and_know_no_cursor,
		a_task_wish_in_params_is_ignored,
	};
	kit_open();
	int failed = unit_run("endpoint_tool", unit_tests, ARRAY_LEN(unit_tests));
	kit_close();
	return failed;
}
