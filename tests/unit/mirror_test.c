/* Declarations of repeated arguments; what headers must equal is in endpoint_modern_test.c. */
#include "mcp/mirror.h"

#include "http_mem.h"

static bool declare(const char *text, struct mirror_params *params, struct json_object **schema)
{
	struct err err = ERR_INIT;
	*schema = json_literal(text);
	bool ok = mirror_declare(*schema, params, &err);
	ck_assert_int_eq(ok, err.code == ERR_NONE);
	return ok;
}

/* checklist 33 */
TEST(declarations_that_clients_would_refuse_are_refused)
{
	static const char *const bad[] = {
		"{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"\"}}}",
		"{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"a b\"}}}",
		"{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"a_b\"}}}",
		"{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":5}}}",
		"{\"properties\":{\"a\":{\"type\":\"number\",\"x-mcp-header\":\"A\"}}}",
		"{\"properties\":{\"a\":{\"type\":\"array\",\"x-mcp-header\":\"A\"}}}",
		"{\"properties\":{\"a\":{\"type\":[\"string\",\"null\"],\"x-mcp-header\":\"A\"}}}",
		"{\"properties\":{\"a\":{\"x-mcp-header\":\"A\"}}}",
		"{\"type\":\"string\",\"x-mcp-header\":\"A\"}",
		"{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"},"
		"\"b\":{\"type\":\"string\",\"x-mcp-header\":\"a\"}}}",
		"{\"properties\":{\"a\":{\"type\":\"array\",\"items\":"
		"{\"type\":\"string\",\"x-mcp-header\":\"A\"}}}}",
		"{\"anyOf\":[{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}}]"
		"}",
		"{\"additionalProperties\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}",
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct mirror_params params;
		AUTO_JSON *schema = NULL;
		ck_assert_msg(!declare(bad[i], &params, &schema), "%s", bad[i]);
		ck_assert_uint_eq(params.count, 0);
	}
}
TEST_END

TEST(declarations_are_found_through_nested_properties)
{
	struct mirror_params params;
	AUTO_JSON *schema = NULL;
	ck_assert(declare("{\"properties\":{\"x-mcp-header\":{\"type\":\"string\"},"
			  "\"a\":{\"type\":\"object\",\"properties\":{"
			  "\"b\":{\"type\":\"boolean\",\"x-mcp-header\":\"Deep-1\"}}},"
			  "\"c\":{\"type\":\"integer\",\"x-mcp-header\":\"C\"}}}",
			  &params, &schema));
	ck_assert_uint_eq(params.count, 2);
	ck_assert_str_eq(params.params[0].header, "mcp-param-deep-1");
	ck_assert_uint_eq(params.params[0].depth, 2);
	ck_assert_str_eq(params.params[0].path[0], "a");
	ck_assert_str_eq(params.params[0].path[1], "b");
	ck_assert_str_eq(params.params[1].header, "mcp-param-c");
	ck_assert_uint_eq(params.params[1].depth, 1);
	mirror_params_finish(&params);
}
TEST_END

TEST(arguments_that_are_no_object_have_nothing_set)
{
	struct mirror_params params;
	AUTO_RPC_ERROR error = RPC_ERROR_INIT;
	AUTO_MEM m;
	AUTO_JSON *schema = NULL;
	AUTO_JSON *arguments = json_literal("[\"eu\"]");
	ck_assert(declare("{\"properties\":{\"r\":{\"type\":\"string\",\"x-mcp-header\":\"R\"}}}",
			  &params, &schema));
	mem_init(&m, "POST", "", 0);
	ck_assert(mirror_check_params(&m.request, &params, arguments, &error));
	mem_header(&m, "mcp-param-r", "eu");
	ck_assert(!mirror_check_params(&m.request, &params, arguments, &error));
	ck_assert_int_eq(error.code, RPC_HEADER);
	mirror_params_finish(&params);
}
TEST_END

TEST(a_header_value_beyond_8_kib_is_refused)
{
	AUTO_MEM m;
	AUTO_RPC_ERROR error = RPC_ERROR_INIT;
	AUTO_FREE char *name = xcalloc(9000, 1);
	memset(name, 'a', 8193);
	AUTO_JSON *params = json_object_new_object();
	json_add_str(params, "name", name);
	struct rpc_message message = {.method = "tools/call", .params = params};
	mem_init(&m, "POST", "", 0);
	mem_header(&m, "mcp-method", "tools/call");
	mem_header(&m, "mcp-name", name);
	ck_assert(!mirror_check(&m.request, &message, &error));
	name[8192] = '\0';
	json_add_str(params, "name", name);
	ck_assert(mirror_check(&m.request, &message, &error));
}
TEST_END

TEST(blanks_at_the_edges_of_a_header_do_not_count)
{
	AUTO_MEM m;
	AUTO_BUF value = BUF_INIT, blank = BUF_INIT, none = BUF_INIT;
	mem_init(&m, "POST", "", 0);
	mem_header(&m, "mcp-method", "\t a b \t ");
	mem_header(&m, "mcp-name", " \t ");
	ck_assert(mirror_header(&m.request, "mcp-method", &value));
	ck_assert_str_eq(value.data, "a b");
	ck_assert(mirror_header(&m.request, "mcp-name", &blank));
	ck_assert_str_eq(buf_str(&blank), "");
	ck_assert(!mirror_header(&m.request, "origin", &none));
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		declarations_that_clients_would_refuse_are_refused,
		declarations_are_found_through_nested_properties,
		arguments_that_are_no_object_have_nothing_set,
		a_header_value_beyond_8_kib_is_refused,
		blanks_at_the_edges_of_a_header_do_not_count,
	};
	return unit_run("mirror", unit_tests, ARRAY_LEN(unit_tests));
}
