/* The handshake revisions, served without remembering anything. */
#include "endpoint_kit.h"
#include "mcp/endpoint.h"

static const char *const revisions[] = {"2025-03-26", "2025-06-18", "2025-11-25"};

static struct json_object *handshake(const char *wanted, const char *header)
{
	AUTO_BUF params = BUF_INIT;
	buf_printf(&params,
		   "{\"protocolVersion\":%s,\"capabilities\":{},\"clientInfo\":{\"name\":\"c\","
		   "\"version\":\"1\"}}",
		   wanted);
	return kit_ask_legacy(header, "initialize", params.data, 200);
}

/* checklist 39 */
TEST(the_handshake_agrees_on_a_known_revision_else_on_the_newest)
{
	static const struct {
		const char *wanted, *given;
	} cases[] = {
		{"\"2025-03-26\"", "2025-03-26"}, {"\"2025-06-18\"", "2025-06-18"},
		{"\"2025-11-25\"", "2025-11-25"}, {"\"1999-01-01\"", "2025-11-25"},
		{"\"2026-07-28\"", "2025-11-25"}, {"\"garbage\"", "2025-11-25"},
		{"\"\"", "2025-11-25"},           {"5", "2025-11-25"},
		{"null", "2025-11-25"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_JSON *answer = handshake(cases[i].wanted, NULL);
		ck_assert_str_eq(kit_text(answer, "result.protocolVersion"), cases[i].given);
		ck_assert_str_eq(kit_text(answer, "result.instructions"), "Use echo.");
	}
	AUTO_JSON *bare = kit_ask_legacy(NULL, "initialize", NULL, 200);
	ck_assert_str_eq(kit_text(bare, "result.protocolVersion"), "2025-11-25");
}
TEST_END

/* checklist 40 */
TEST(the_handshake_ignores_the_version_header)
{
	static const char *const headers[] = {"2026-07-28", "2024-01-01", "garbage", "",
					      "2025-03-26"};
	for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
		AUTO_JSON *answer = handshake("\"2025-06-18\"", headers[i]);
		ck_assert_str_eq(kit_text(answer, "result.protocolVersion"), "2025-06-18");
	}
}
TEST_END

TEST(the_server_describes_itself_in_the_words_of_the_revision)
{
	AUTO_JSON *first = handshake("\"2025-03-26\"", NULL);
	ck_assert_str_eq(json_text(kit_at(first, "result.serverInfo"), NULL),
			 "{\"name\":\"kit\",\"version\":\"1.2.3\"}");
	AUTO_JSON *second = handshake("\"2025-06-18\"", NULL);
	ck_assert_str_eq(kit_text(second, "result.serverInfo.title"), "Test kit");
	ck_assert(!json_has(kit_at(second, "result.serverInfo"), "description"));
	AUTO_JSON *third = handshake("\"2025-11-25\"", NULL);
	ck_assert_str_eq(kit_text(third, "result.serverInfo.description"),
			 "An endpoint for tests.");
	ck_assert_str_eq(kit_text(third, "result.serverInfo.websiteUrl"), "https://kit.example/");
}
TEST_END

/* checklist 38 */
TEST(both_eras_advertise_the_same)
{
	AUTO_JSON *legacy = handshake("\"2025-11-25\"", NULL);
	AUTO_JSON *modern = kit_ask_modern("server/discover", NULL, "", 200);
	ck_assert(json_object_equal(kit_at(legacy, "result.capabilities"),
				    kit_at(modern, "result.capabilities")));
	ck_assert_str_eq(json_text(kit_at(legacy, "result.capabilities"), NULL), "{\"tools\":{}}");
}
TEST_END

/* checklist 41, 48: nothing has to come first */
TEST(ping_is_answered_by_an_empty_object)
{
	AUTO_JSON *before = kit_ask_legacy(NULL, "ping", NULL, 200);
	ck_assert_str_eq(json_text(json_get(before, "result"), NULL), "{}");
	AUTO_JSON *shake = handshake("\"2025-06-18\"", NULL);
	ck_assert(json_has(shake, "result"));
	AUTO_JSON *after = kit_ask_legacy("2025-06-18", "ping", "{}", 200);
	ck_assert_str_eq(json_text(json_get(after, "result"), NULL), "{}");
}
TEST_END

/* checklist 42 */
TEST(an_unsupported_version_header_is_refused_an_absent_one_is_not)
{
	static const struct {
		const char *header;
		int status;
	} cases[] = {{NULL, 200},         {"2025-03-26", 200}, {" 2025-06-18\t", 200},
		     {"2025-11-25", 200}, {"2024-01-01", 400}, {"2024-11-05", 400},
		     {"garbage", 400},    {"", 400},           {"2025-11-25, 2025-11-25", 400},
		     {"1", 400}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_JSON *answer =
			kit_ask_legacy(cases[i].header, "tools/list", NULL, cases[i].status);
		ck_assert_int_eq(json_has(answer, "error"), cases[i].status == 400);
		ck_assert_int_eq(json_get_int(answer, "id", 0), 7);
	}
	AUTO_JSON *old = kit_ask_legacy("2024-01-01", "tools/list", NULL, 400);
	ck_assert_int_eq(kit_code(old), -32600);
	ck_assert_ptr_nonnull(strstr(kit_text(old, "error.message"), "2025-06-18"));
}
TEST_END

/* checklist 43 */
TEST(an_unknown_method_is_an_error_in_band)
{
	static const char *const methods[] = {"foo/bar",
					      "server/discover",
					      "logging/setLevel",
					      "resources/subscribe",
					      "completion/complete",
					      "prompts/get",
					      "tasks/get",
					      "Ping"};
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		AUTO_JSON *answer = kit_ask_legacy("2025-11-25", methods[i], "{}", 200);
		ck_assert_int_eq(kit_code(answer), -32601);
	}
}
TEST_END

/* checklist 44 */
TEST(results_hold_nothing_of_the_modern_era)
{
	static const char *const methods[] = {"initialize",
					      "ping",
					      "tools/list",
					      "tools/call",
					      "prompts/list",
					      "resources/list",
					      "resources/templates/list"};
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		AUTO_JSON *answer = kit_ask_legacy(
			"2025-11-25", methods[i],
			"{\"name\":\"echo\",\"arguments\":{\"command\":\"x\"}}", 200);
		const char *text = json_text(json_get(answer, "result"), NULL);
		ck_assert_ptr_null(strstr(text, "resultType"));
		ck_assert_ptr_null(strstr(text, "ttlMs"));
		ck_assert_ptr_null(strstr(text, "cacheScope"));
		ck_assert_ptr_null(strstr(text, "io.modelcontextprotocol"));
	}
}
TEST_END

/* checklist 45, 61 */
TEST(a_missing_resource_has_the_code_of_its_era)
{
	static const char uri[] = "spoolbox://b/..%2f..%2fetc/passwd";
	AUTO_BUF params = BUF_INIT, modern_params = BUF_INIT;
	buf_printf(&params, "{\"uri\":\"%s\"}", uri);
	buf_printf(&modern_params, "\"uri\":\"%s\",", uri);
	AUTO_JSON *legacy = kit_ask_legacy("2025-11-25", "resources/read", params.data, 200);
	ck_assert_int_eq(kit_code(legacy), -32002);
	ck_assert_str_eq(kit_text(legacy, "error.data.uri"), uri);
	AUTO_JSON *modern = kit_ask_modern("resources/read", uri, modern_params.data, 200);
	ck_assert_int_eq(kit_code(modern), -32602);
	ck_assert_str_eq(kit_text(modern, "error.data.uri"), uri);
}
TEST_END

#define ONE(id)  "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"ping\"}"
#define NOTE     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"
#define RESPONSE "{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"result\":{}}"
#define CALL_START \
	"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\","

/* checklist 46 */
TEST(a_batch_is_answered_by_an_array_without_notifications)
{
	static const char *const headers[] = {NULL, "2025-03-26"};
	for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
		AUTO_JSON *answer = kit_raw(
			"[" ONE("1") "," NOTE "," RESPONSE "," CALL_START
				     "\"arguments\":{\"command\":\"x\"}}},5," ONE("\"two\"") "]",
			headers[i], 200);
		ck_assert_uint_eq(json_object_array_length(answer), 4);
		ck_assert_int_eq(json_get_int(kit_at(answer, "0"), "id", 0), 1);
		ck_assert(!json_has(kit_at(answer, "1.result"), "structuredContent"));
		ck_assert_int_eq(kit_code(kit_at(answer, "2")), -32600);
		ck_assert_str_eq(kit_text(answer, "3.id"), "two");
	}
	ck_assert_ptr_null(kit_raw("[" NOTE "," RESPONSE "]", NULL, 202));
}
TEST_END

/* checklist 19, 46 */
TEST(batches_that_are_none_are_refused_as_a_whole)
{
	AUTO_BUF many = BUF_INIT;
	buf_putc(&many, '[');
	for (int i = 0; i < 50; i++)
		buf_puts(&many, ONE("1") ",");
	buf_puts(&many, ONE("1") "]");
	const struct {
		const char *body, *header;
	} cases[] = {
		{"[]", NULL},
		{"[" ONE("1") "]", "2025-06-18"},
		{"[" ONE("1") "]", "2025-11-25"},
		{"[" ONE("1") "]", "2026-07-28"},
		{"[" ONE("1") "]", "garbage"},
		{"[" ONE("1") "," CALL_START KIT_CLAIMS "}}]", NULL},
		{many.data, NULL},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_JSON *answer = kit_raw(cases[i].body, cases[i].header, 400);
		ck_assert_int_eq(kit_code(answer), -32600);
		ck_assert(!json_has(answer, "id"));
	}
	ck_assert_int_eq(kit_calls, 0);
}
TEST_END

TEST(the_handshake_cannot_be_part_of_a_batch)
{
	AUTO_JSON *answer =
		kit_raw("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}]", NULL, 200);
	ck_assert_int_eq(kit_code(kit_at(answer, "0")), -32600);
}
TEST_END

/* checklist 47 */
TEST(a_posted_response_is_accepted_though_nobody_waits)
{
	for (size_t i = 0; i < ARRAY_LEN(revisions); i++) {
		ck_assert_ptr_null(kit_raw(RESPONSE, revisions[i], 202));
		ck_assert_ptr_null(kit_raw("{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{\"code\":1,"
					   "\"message\":\"no\"}}",
					   revisions[i], 202));
	}
}
TEST_END

TEST(the_oldest_revision_sees_no_newer_members)
{
	AUTO_JSON *list = kit_ask_legacy(NULL, "tools/list", NULL, 200);
	struct json_object *tool = kit_at(list, "result.tools.0");
	ck_assert(!json_has(tool, "title"));
	ck_assert(!json_has(tool, "outputSchema"));
	ck_assert(json_has(tool, "annotations"));
	AUTO_JSON *call = kit_ask_legacy(NULL, "tools/call", "{\"name\":\"content\"}", 200);
	ck_assert_str_eq(json_text(kit_at(call, "result.content.0"), NULL),
			 "{\"type\":\"text\",\"text\":\"f: spoolbox://b/f\"}");
	AUTO_JSON *middle =
		kit_ask_legacy("2025-06-18", "tools/call", "{\"name\":\"content\"}", 200);
	ck_assert_str_eq(kit_text(middle, "result.content.0.title"), "F");
	ck_assert(!json_has(kit_at(middle, "result.content.0"), "icons"));
	AUTO_JSON *newer =
		kit_ask_legacy("2025-11-25", "tools/call", "{\"name\":\"content\"}", 200);
	ck_assert(json_has(kit_at(newer, "result.content.0"), "icons"));
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		the_handshake_agrees_on_a_known_revision_else_on_the_newest,
		the_handshake_ignores_the_version_header,
		the_server_describes_itself_in_the_words_of_the_revision,
		both_eras_advertise_the_same,
		ping_is_answered_by_an_empty_object,
		an_unsupported_version_header_is_refused_an_absent_one_is_not,
		an_unknown_method_is_an_error_in_band,
		results_hold_nothing_of_the_modern_era,
		a_missing_resource_has_the_code_of_its_era,
		a_batch_is_answered_by_an_array_without_notifications,
		batches_that_are_none_are_refused_as_a_whole,
		the_handshake_cannot_be_part_of_a_batch,
		a_posted_response_is_accepted_though_nobody_waits,
		the_oldest_revision_sees_no_newer_members,
	};
	kit_open();
	int failed = unit_run("endpoint_legacy", unit_tests, ARRAY_LEN(unit_tests));
	kit_close();
	return failed;
}
