/* The call that every tool error shows can be copied: who follows it makes a valid call. */
#include "tool_kit.h"

/* The arguments in tool_usage's line. */
static struct json_object *usage_arguments(const struct tool *tool)
{
	struct err err = ERR_INIT;
	AUTO_JSON *schema = json_literal(tool->input_schema);
	AUTO_BUF usage = BUF_INIT;
	tool_usage(tool->name, schema, &usage);
	size_t name_len = strlen(tool->name);
	ck_assert_int_eq(strncmp(buf_str(&usage), tool->name, name_len), 0);
	ck_assert_int_eq(buf_str(&usage)[name_len], '(');
	const char *start = buf_str(&usage) + name_len + 1;
	const char *end = strstr(start, "})");
	ck_assert_msg(end != NULL, "%s", buf_str(&usage));
	struct json_object *arguments = json_parse(start, (size_t)(end + 1 - start), &err);
	ck_assert_msg(arguments != NULL, "%s: %s", err.msg, buf_str(&usage));
	return arguments;
}

TEST(the_arguments_of_usage_fit_the_schema)
{
	for (size_t i = 0; i < toolset.count; i++) {
		AUTO_JSON *arguments = usage_arguments(toolset.tools[i]);
		kit_conforms(toolset.tools[i]->input_schema, arguments, toolset.tools[i]->name);
	}
}
TEST_END

/* Two words for one argument: the schema requires neither, but the tool does one of them. */
TEST(usage_says_which_sandbox_is_meant)
{
	AUTO_JSON *exec = usage_arguments(&tool_exec);
	ck_assert_str_eq(json_text(exec, NULL), "{\"sandbox\":\"work\",\"command\":\"<command>\"}");
	AUTO_JSON *list = usage_arguments(&tool_list_files);
	ck_assert_str_eq(json_text(list, NULL), "{\"sandbox\":\"work\"}");
	AUTO_JSON *create = usage_arguments(&tool_create_sandbox);
	ck_assert_str_eq(json_text(create, NULL), "{}");
}
TEST_END

TEST(no_tool_calls_its_own_usage_invalid)
{
	for (size_t i = 0; i < toolset.count; i++) {
		const struct tool *tool = toolset.tools[i];
		AUTO_JSON *arguments = usage_arguments(tool);
		kit_open();
		kit_ok(&tool_create_sandbox, "{'sandbox':'work'}");
		kit_call(tool, "%s", json_text(arguments, NULL));
		ck_assert_msg(kit.err.code != ERR_INVALID, "%s(%s): %s", tool->name,
			      json_text(arguments, NULL), err_message(&kit.err));
		kit_close();
	}
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		the_arguments_of_usage_fit_the_schema,
		usage_says_which_sandbox_is_meant,
		no_tool_calls_its_own_usage_invalid,
	};
	return unit_run("usage", tests, ARRAY_LEN(tests));
}
