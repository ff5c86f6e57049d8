/* JSON-RPC messages in and out, below any transport. */
#include "mcp/rpc.h"

#include "base/text.h"
#include "unit.h"

static int read_text(const char *text, struct rpc_message *message, struct json_object **value)
{
	AUTO_RPC_ERROR error = RPC_ERROR_INIT;
	*value = json_literal(text);
	return rpc_read(*value, message, &error) ? 0 : error.code;
}

TEST(the_three_kinds_of_message_are_told_apart)
{
	static const struct {
		const char *text;
		enum rpc_kind kind;
	} cases[] = {
		{"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"m\"}", RPC_KIND_REQUEST},
		{"{\"jsonrpc\":\"2.0\",\"method\":\"m\"}", RPC_KIND_NOTIFICATION},
		{"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":null}", RPC_KIND_RESPONSE},
		{"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"error\":{}}", RPC_KIND_RESPONSE},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct rpc_message message;
		AUTO_JSON *value = NULL;
		ck_assert_int_eq(read_text(cases[i].text, &message, &value), 0);
		ck_assert_int_eq(message.kind, cases[i].kind);
	}
}
TEST_END

/* checklist 14, 15 */
TEST(an_id_is_a_string_or_a_safe_integer)
{
	static const struct {
		const char *id;
		bool ok;
	} cases[] = {{"0", true},
		     {"\"\"", true},
		     {"-9007199254740991", true},
		     {"9007199254740991", true},
		     {"9007199254740992", false},
		     {"18446744073709551615", false},
		     {"1e3", false},
		     {"1.0", false},
		     {"null", false},
		     {"false", false},
		     {"[]", false}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_BUF text = BUF_INIT;
		AUTO_JSON *value = NULL;
		struct rpc_message message;
		buf_printf(&text, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"m\"}", cases[i].id);
		int code = read_text(text.data, &message, &value);
		ck_assert_msg(code == (cases[i].ok ? 0 : -32600), "%s", cases[i].id);
		ck_assert_int_eq(message.id != NULL, cases[i].ok);
	}
}
TEST_END

TEST(a_refused_message_still_gives_its_id)
{
	struct rpc_message message;
	AUTO_JSON *value = NULL;
	ck_assert_int_eq(read_text("{\"id\":5,\"method\":\"m\"}", &message, &value), -32600);
	ck_assert_int_eq(json_object_get_int64(message.id), 5);
}
TEST_END

TEST(a_result_is_written_around_its_text)
{
	AUTO_BUF out = BUF_INIT;
	AUTO_JSON *id = json_object_new_string("x/\"");
	rpc_write_result(&out, id, "{\"a\":1}", 7);
	ck_assert_str_eq(out.data, "{\"jsonrpc\":\"2.0\",\"id\":\"x/\\\"\",\"result\":{\"a\":1}}");
}
TEST_END

/* checklist 16 */
TEST(an_error_without_id_or_data_has_no_such_members)
{
	AUTO_BUF out = BUF_INIT;
	AUTO_RPC_ERROR error = RPC_ERROR_INIT;
	ck_assert(!rpc_refuse(&error, RPC_PARSE, "no %s", "json"));
	ck_assert_int_eq(error.status, 400);
	rpc_write_error(&out, NULL, &error);
	ck_assert_str_eq(
		out.data,
		"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"no json\"}}");
}
TEST_END

TEST(a_second_error_replaces_the_first_with_its_data)
{
	AUTO_BUF out = BUF_INIT;
	AUTO_RPC_ERROR error = RPC_ERROR_INIT;
	rpc_in_band(&error, RPC_PARAMS, "one");
	error.data = json_literal("{\"uri\":\"a\"}");
	rpc_in_band(&error, RPC_METHOD, "two");
	rpc_write_error(&out, NULL, &error);
	ck_assert_str_eq(out.data,
			 "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32601,\"message\":\"two\"}}");
}
TEST_END

/* checklist 17 */
TEST(a_message_that_had_to_be_cut_is_still_utf8)
{
	AUTO_BUF out = BUF_INIT, many = BUF_INIT;
	AUTO_RPC_ERROR error = RPC_ERROR_INIT;
	for (int i = 0; i < 300; i++)
		buf_puts(&many, "\xE4\xBD\xA0");
	rpc_in_band(&error, RPC_PARAMS, "%s", many.data);
	rpc_write_error(&out, NULL, &error);
	ck_assert(text_is_utf8(out.data, out.len));
}
TEST_END

TEST(a_name_has_no_nul_inside)
{
	AUTO_JSON *good = json_literal("\"echo\"");
	AUTO_JSON *bad = json_literal("\"echo\\u0000x\"");
	AUTO_JSON *number = json_literal("5");
	ck_assert_str_eq(rpc_name(good), "echo");
	ck_assert_ptr_null(rpc_name(bad));
	ck_assert_ptr_null(rpc_name(number));
	ck_assert_ptr_null(rpc_name(NULL));
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		the_three_kinds_of_message_are_told_apart,
		an_id_is_a_string_or_a_safe_integer,
		a_refused_message_still_gives_its_id,
		a_result_is_written_around_its_text,
		an_error_without_id_or_data_has_no_such_members,
		a_second_error_replaces_the_first_with_its_data,
		a_message_that_had_to_be_cut_is_still_utf8,
		a_name_has_no_nul_inside,
	};
	return unit_run("rpc", unit_tests, ARRAY_LEN(unit_tests));
}
