/* What counts as a message: JSON, shape, ids, params. */
#include "endpoint_kit.h"
#include "mcp/endpoint.h"

#define PING "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"

/* checklist 12 */
TEST(what_is_no_json_gets_a_parse_error_without_id)
{
	AUTO_BUF bomb = BUF_INIT;
	for (int i = 0; i < 100; i++)
		buf_putc(&bomb, '[');
	for (int i = 0; i < 100; i++)
		buf_putc(&bomb, ']');
	const char *const bodies[] = {
		"",
		"{\"jsonrpc\":\"2.0\",\"id\":1,",
		PING "x",
		PING PING,
		"{\"jsonrpc\":\"2.0\",\"id\":NaN,\"method\":\"ping\"}",
		"{\"jsonrpc\":\"2.0\",/* */\"id\":1,\"method\":\"ping\"}",
		"{'jsonrpc':'2.0','id':1,'method':'ping'}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xC0\x80\"}",
		bomb.data,
	};
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		AUTO_JSON *body = kit_raw(bodies[i], NULL, 400);
		ck_assert_int_eq(kit_code(body), -32700);
		ck_assert(!json_has(body, "id"));
	}
}
TEST_END

/* checklist 13 */
TEST(a_leading_byte_order_mark_is_skipped)
{
	AUTO_JSON *body = kit_raw("\xEF\xBB\xBF" PING, NULL, 200);
	ck_assert(json_has(body, "result"));
}
TEST_END

/* checklist 14 */
TEST(a_message_of_the_wrong_shape_is_refused)
{
	static const char *const bodies[] = {
		"{\"id\":1,\"method\":\"ping\"}",
		"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
		"{\"jsonrpc\":2.0,\"id\":1,\"method\":\"ping\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":null}",
		"{\"jsonrpc\":\"2.0\",\"id\":1}",
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"ping\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":[],\"method\":\"ping\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":9007199254740992,\"method\":\"ping\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":99999999999999999999999,\"method\":\"ping\"}",
		"{\"jsonrpc\":\"2.0\",\"result\":{}}",
		"\"ping\"",
		"12",
		"null",
		"true",
	};
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		AUTO_JSON *body = kit_raw(bodies[i], NULL, 400);
		ck_assert_msg(kit_code(body) == -32600, "%s", bodies[i]);
	}
}
TEST_END

/* checklist 15, 16 */
TEST(ids_come_back_with_value_and_type)
{
	static const char *const ids[] = {"0",
					  "\"0\"",
					  "\"\"",
					  "1790000000000",
					  "-1",
					  "9007199254740991",
					  "\"\\u0000x\"",
					  "\"a/b\"",
					  "\"\\\"\""};
	static const char *const methods[] = {"ping", "unknown"};
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		for (size_t j = 0; j < ARRAY_LEN(methods); j++) {
			AUTO_MEM m;
			AUTO_BUF body = BUF_INIT, start = BUF_INIT;
			buf_printf(&body, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\"}",
				   ids[i], methods[j]);
			buf_printf(&start, "{\"jsonrpc\":\"2.0\",\"id\":%s,", ids[i]);
			kit_post(&m, body.data);
			kit_serve(&m);
			ck_assert_int_eq(m.status, 200);
			ck_assert_int_eq(strncmp(m.out.data, start.data, start.len), 0);
		}
	}
}
TEST_END

TEST(a_readable_id_is_echoed_even_by_a_refusal)
{
	AUTO_JSON *body =
		kit_raw("{\"jsonrpc\":\"1.0\",\"id\":\"k\",\"method\":\"ping\"}", NULL, 400);
	ck_assert_str_eq(json_get_str(body, "id"), "k");
}
TEST_END

/* checklist 17 */
TEST(odd_characters_survive_or_are_refused)
{
	static const struct {
		const char *sent, *back; /* as JSON */
	} cases[] = {
		{"a\\u0000b", "a\\u0000b"},
		{"\\ud83d\\ude00", "\xF0\x9F\x98\x80"},
		{"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_BUF params = BUF_INIT, back = BUF_INIT;
		buf_printf(&params, "{\"name\":\"echo\",\"arguments\":{\"command\":\"%s\"}}",
			   cases[i].sent);
		AUTO_JSON *body = kit_ask_legacy("2025-11-25", "tools/call", params.data, 200);
		buf_printf(&back, "\"%s\"", cases[i].back);
		ck_assert_str_eq(json_text(kit_at(body, "result.structuredContent.text"), NULL),
				 back.data);
	}
	/* Half a character is no text: it must not become another one on the way. */
	static const char *const halves[] = {"\\ud800", "\\udc00x"};
	for (size_t i = 0; i < ARRAY_LEN(halves); i++) {
		AUTO_BUF params = BUF_INIT;
		buf_printf(&params, "{\"name\":\"echo\",\"arguments\":{\"command\":\"%s\"}}",
			   halves[i]);
		AUTO_JSON *body = kit_ask_legacy("2025-11-25", "tools/call", params.data, 400);
		ck_assert_int_eq(kit_code(body), -32700);
	}
}
TEST_END

TEST(a_tool_name_with_a_nul_is_another_name)
{
	AUTO_JSON *body = kit_ask_legacy(NULL, "tools/call",
					 "{\"name\":\"echo\\u0000\",\"arguments\":{}}", 200);
	ck_assert_int_eq(kit_code(body), -32602);
}
TEST_END

/* checklist 18 */
TEST(params_that_are_no_object_are_refused)
{
	static const char *const params[] = {"[]", "[1]", "\"x\"", "5", "true"};
	static const char *const methods[] = {"ping", "initialize", "tools/list", "tools/call"};
	for (size_t i = 0; i < ARRAY_LEN(params); i++) {
		for (size_t j = 0; j < ARRAY_LEN(methods); j++) {
			AUTO_JSON *body = kit_ask_legacy(NULL, methods[j], params[i], 200);
			ck_assert_int_eq(kit_code(body), -32602);
		}
		AUTO_JSON *modern = kit_ask_legacy("2026-07-28", "tools/list", params[i], 400);
		ck_assert_int_eq(kit_code(modern), -32602);
	}
	AUTO_JSON *absent = kit_ask_legacy(NULL, "tools/list", "null", 200);
	ck_assert(json_has(absent, "result"));
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		what_is_no_json_gets_a_parse_error_without_id,
		a_leading_byte_order_mark_is_skipped,
		a_message_of_the_wrong_shape_is_refused,
		ids_come_back_with_value_and_type,
		a_readable_id_is_echoed_even_by_a_refusal,
		odd_characters_survive_or_are_refused,
		a_tool_name_with_a_nul_is_another_name,
		params_that_are_no_object_are_refused,
	};
	kit_open();
	int failed = unit_run("endpoint_message", unit_tests, ARRAY_LEN(unit_tests));
	kit_close();
	return failed;
}
