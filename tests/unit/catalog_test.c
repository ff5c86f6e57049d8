/* The start-up check of tools: one good tool, spoiled in each way. */
#include "mcp/catalog.h"

#include "mcp/endpoint.h"
#include "unit.h"

static bool handler(struct tool_call *call, struct err *err)
{
	(void)call;
	return err_set(err, ERR_INTERNAL, "never called");
}

static const struct tool good = {
	.name = "good",
	.title = "Good",
	.description = "Does nothing.",
	.input_schema = "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}},"
			"\"additionalProperties\":false}",
	.call = handler,
};

/* Compiles two tools; returns the message, "" when all is well. */
static char *compile_with(const struct tool *second)
{
	const struct tool *const tools[] = {&good, second};
	const struct tool_list list = {tools, 2};
	struct err err = ERR_INIT;
	struct catalog *catalog = catalog_compile(&list, &err);
	ck_assert_int_eq(catalog == NULL, err.code != ERR_NONE);
	catalog_free(catalog);
	return xstrdup(catalog == NULL ? err.msg : "");
}

static void expect(const struct tool *tool, const char *said)
{
	AUTO_FREE char *message = compile_with(tool);
	ck_assert_msg(*said == '\0' ? *message == '\0' : strstr(message, said) != NULL,
		      "wanted '%s', got '%s'", said, message);
}

/* checklist 50 */
TEST(names_must_be_short_plain_and_unique)
{
	static const struct {
		const char *name, *said;
	} cases[] = {
		{"Other_tool-2", ""},
		{"good", "occurs twice"},
		{"", "must match"},
		{NULL, "must match"},
		{"a.b", "must match"},
		{"a b", "must match"},
		{"\xC3\xA4", "must match"},
		{"a123456789012345678901234567890123456789012345678901234567890123", ""},
		{"a1234567890123456789012345678901234567890123456789012345678901234", "must match"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct tool tool = good;
		tool.name = cases[i].name;
		expect(&tool, cases[i].said);
	}
}
TEST_END

/* checklist 49 */
TEST(a_tool_must_be_described_and_callable)
{
	struct tool untitled = good, silent = good, dead = good;
	untitled.name = silent.name = dead.name = "other";
	untitled.title = NULL;
	silent.description = "";
	dead.call = NULL;
	expect(&untitled, "are required");
	expect(&silent, "are required");
	expect(&dead, "are required");
}
TEST_END

#define CLOSED ",\"additionalProperties\":false}"

/* checklist 33, 51 */
TEST(input_schemas_must_be_flat_closed_objects_of_known_keywords)
{
	static const struct {
		const char *schema, *said;
	} cases[] = {
		{"{", "JSON"},
		{"null", "null"},
		{"[]", "the root must have"},
		{"{\"type\":\"object\"" CLOSED, "the root must have"},
		{"{\"type\":\"string\",\"properties\":{}" CLOSED, "the root must have"},
		{"{\"type\":[\"object\"],\"properties\":{}" CLOSED, "the root must have"},
		{"{\"type\":\"object\",\"properties\":{}}", "additionalProperties"},
		{"{\"type\":\"object\",\"properties\":{},\"oneOf\":[]" CLOSED, "not known"},
		{"{\"type\":\"object\",\"properties\":{},\"allOf\":[]" CLOSED, "not known"},
		{"{\"type\":\"object\",\"properties\":{},\"$ref\":\"#\"" CLOSED, "not known"},
		{"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"number\","
		 "\"x-mcp-header\":\"A\"}}" CLOSED,
		 "x-mcp-header"},
		{"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\","
		 "\"x-mcp-header\":\"A\"}}" CLOSED,
		 ""},
		{"{\"type\":\"object\",\"properties\":{}" CLOSED, ""},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct tool tool = good;
		tool.name = "other";
		tool.input_schema = cases[i].schema;
		expect(&tool, cases[i].said);
	}
}
TEST_END

TEST(output_schemas_are_checked_too_and_may_be_open)
{
	struct tool tool = good;
	tool.name = "other";
	tool.output_schema = "{\"type\":\"object\",\"properties\":{}}";
	expect(&tool, "");
	tool.output_schema = "{\"type\":\"array\",\"items\":{}}";
	expect(&tool, "output_schema");
	tool.output_schema = "{\"type\":\"object\",\"properties\":{\"a\":{\"kind\":1}}}";
	expect(&tool, "tool \"other\": output_schema: schema: properties: a: kind");
}
TEST_END

TEST(an_endpoint_with_a_bad_tool_does_not_start)
{
	struct tool bad = good;
	bad.input_schema = "{}";
	const struct tool *const tools[] = {&bad};
	const struct tool_list list = {tools, 1};
	struct endpoint endpoint = {.tools = &list, .name = "n", .version = "1"};
	struct err err = ERR_INIT;
	ck_assert(!endpoint_check(&endpoint, &err));
	ck_assert_int_eq(err.code, ERR_INVALID);
	ck_assert_ptr_null(endpoint.catalog);
	endpoint_finish(&endpoint);
}
TEST_END

TEST(usage_shows_required_arguments_and_names_the_others)
{
	static const struct {
		const char *schema, *usage;
	} cases[] = {
		{"{\"properties\":{}}", "t({})"},
		{"{\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{\"type\":\"integer\","
		 "\"minimum\":3},\"c\":{\"type\":\"boolean\"}},\"required\":[\"c\",\"a\",\"b\"]}",
		 "t({\"a\":\"<a>\",\"b\":3,\"c\":true})"},
		{"{\"properties\":{\"o\":{\"type\":\"string\"},\"a\":{\"type\":\"array\",\"items\":"
		 "{\"type\":\"string\",\"enum\":[\"x\",\"y\"]}},\"p\":{\"type\":\"object\"}},"
		 "\"required\":[\"a\"]}",
		 "t({\"a\":[\"x\"]}); optional: o, p"},
		{"{\"properties\":{\"a\":{\"type\":\"number\",\"default\":0.5},"
		 "\"b\":{\"type\":[\"string\",\"null\"]}},\"required\":[\"a\",\"b\"]}",
		 "t({\"a\":0.5,\"b\":\"<b>\"})"},
		{"{\"properties\":{\"s\":{\"type\":\"string\",\"examples\":[\"work\"]},"
		 "\"s_id\":{\"type\":\"string\"},\"a\":{\"type\":\"string\"}},\"required\":[\"a\"]"
		 "}",
		 "t({\"s\":\"work\",\"a\":\"<a>\"}); optional: s_id"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_JSON *schema = json_literal(cases[i].schema);
		AUTO_BUF usage = BUF_INIT;
		tool_usage("t", schema, &usage);
		ck_assert_str_eq(usage.data, cases[i].usage);
	}
}
TEST_END

TEST(a_foreign_schema_may_use_any_keyword_but_keeps_the_root)
{
	static const struct {
		const char *schema, *said;
	} cases[] = {
		{"{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/x\"}},"
		 "\"$defs\":{\"x\":{}},\"allOf\":[{\"anyOf\":[{}]}]}",
		 ""},
		{"{\"type\":\"object\"}", "properties"},
		{"{\"properties\":{}}", "type"},
		{"[]", "type"},
		{"null", "null"},
		{"{", "input_schema"},
		{"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"number\","
		 "\"x-mcp-header\":\"A\"}}}",
		 "x-mcp-header"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct tool tool = good;
		tool.name = "foreign";
		tool.schema_is_foreign = true;
		tool.input_schema = cases[i].schema;
		expect(&tool, cases[i].said);
		tool.schema_is_foreign = false;
		if (i == 0)
			expect(&tool, "$");
	}
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		names_must_be_short_plain_and_unique,
		a_tool_must_be_described_and_callable,
		input_schemas_must_be_flat_closed_objects_of_known_keywords,
		output_schemas_are_checked_too_and_may_be_open,
		an_endpoint_with_a_bad_tool_does_not_start,
		usage_shows_required_arguments_and_names_the_others,
		a_foreign_schema_may_use_any_keyword_but_keeps_the_root,
	};
	return unit_run("catalog", unit_tests, ARRAY_LEN(unit_tests));
}
