/* What holds for every tool of the product: names, texts, schemas, hints. */
#include "mcp/toolset.h"

#include <ctype.h>

#include "base/json.h"
#include "mcp/schema.h"
#include "unit.h"

static const struct tool *tool_named(const char *name, size_t len)
{
	for (size_t i = 0; i < toolset.count; i++)
		if (strlen(toolset.tools[i]->name) == len &&
		    memcmp(toolset.tools[i]->name, name, len) == 0)
			return toolset.tools[i];
	return NULL;
}

static void check_properties(const char *tool, struct json_object *schema)
{
	json_object_object_foreach(json_get(schema, "properties"), name, property)
	{
		const char *text = json_get_str(property, "description");
		ck_assert_msg(text != NULL && strlen(text) > 5, "%s.%s has no description", tool,
			      name);
		ck_assert_msg(text[strlen(text) - 1] == '.', "%s.%s: no sentence", tool, name);
		ck_assert_ptr_nonnull(json_get_str(property, "type"));
	}
	struct json_object *required = json_get(schema, "required");
	ck_assert(required == NULL || json_object_array_length(required) > 0);
	for (size_t i = 0; required != NULL && i < json_object_array_length(required); i++) {
		const char *needed = json_str(json_object_array_get_idx(required, i));
		ck_assert_msg(json_has(json_get(schema, "properties"), needed),
			      "%s requires %s, which it does not have", tool, needed);
	}
}

static void check_schema(const char *tool, const char *text)
{
	struct err err = ERR_INIT;
	AUTO_JSON *json = json_parse(text, strlen(text), &err);
	ck_assert_msg(json != NULL, "%s: %s: %s", tool, err.msg, text);
	ck_assert_str_eq(json_get_str(json, "type"), "object");
	ck_assert(json_has(json, "properties"));
	struct schema *schema = schema_compile(json, &err);
	ck_assert_msg(schema != NULL, "%s: %s", tool, err.msg);
	schema_free(schema);
	check_properties(tool, json);
}

TEST(every_schema_compiles_and_describes_each_property)
{
	for (size_t i = 0; i < toolset.count; i++) {
		check_schema(toolset.tools[i]->name, toolset.tools[i]->input_schema);
		check_schema(toolset.tools[i]->name, toolset.tools[i]->output_schema);
	}
}
TEST_END

TEST(unknown_arguments_are_refused_by_every_schema)
{
	for (size_t i = 0; i < toolset.count; i++) {
		AUTO_JSON *json = json_literal(toolset.tools[i]->input_schema);
		ck_assert(json_has(json, "additionalProperties"));
		ck_assert(!json_get_bool(json, "additionalProperties", true));
	}
}
TEST_END

TEST(names_are_unique_and_fit_every_model_interface)
{
	for (size_t i = 0; i < toolset.count; i++) {
		const char *name = toolset.tools[i]->name;
		ck_assert(strlen(name) > 0 && strlen(name) <= 64);
		for (const char *p = name; *p != '\0'; p++)
			ck_assert(islower((unsigned char)*p) || *p == '_');
		ck_assert_ptr_eq(tool_named(name, strlen(name)), toolset.tools[i]);
	}
}
TEST_END

TEST(the_tools_of_the_contract_are_there)
{
	static const char *const names[] = {
		"list_sandboxes", "create_sandbox", "destroy_sandbox", "kill_sandbox",
		"exec",           "run_background", "get_job",         "stop_job",
		"list_jobs",      "start_task",     "get_task",        "cancel_task",
		"list_files",     "read_text",      "write_text",      "edit_text",
		"upload_file",    "download_file",  "execute_python"};
	ck_assert_uint_eq(toolset.count, ARRAY_LEN(names));
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		ck_assert_msg(tool_named(names[i], strlen(names[i])) != NULL, "%s", names[i]);
}
TEST_END

/* The example at the end of a description is a call that its own schema accepts. */
TEST(descriptions_end_with_an_example_that_is_valid)
{
	for (size_t i = 0; i < toolset.count; i++) {
		const struct tool *tool = toolset.tools[i];
		struct err err = ERR_INIT;
		const char *example = strstr(tool->description, "Example: ");
		ck_assert_msg(example != NULL, "%s", tool->name);
		example += strlen("Example: ");
		AUTO_JSON *arguments = json_parse(example, strlen(example), &err);
		ck_assert_msg(arguments != NULL, "%s: %s", tool->name, example);
		AUTO_JSON *json = json_literal(tool->input_schema);
		struct schema *schema = schema_compile(json, &err);
		struct schema_faults faults = SCHEMA_FAULTS_INIT;
		ck_assert_msg(schema_validate(schema, arguments, "example", &faults), "%s: %s",
			      tool->name, buf_str(&faults.lines));
		schema_faults_finish(&faults);
		schema_free(schema);
	}
}
TEST_END

TEST(texts_are_long_enough_to_help_and_short_enough_to_read)
{
	size_t all = 0;
	for (size_t i = 0; i < toolset.count; i++) {
		const struct tool *tool = toolset.tools[i];
		ck_assert_ptr_nonnull(tool->title);
		ck_assert_ptr_nonnull(tool->call);
		ck_assert_uint_gt(strlen(tool->description), 200);
		ck_assert_uint_lt(strlen(tool->description), 1500);
		all += strlen(tool->description) + strlen(tool->input_schema);
	}
	ck_assert_uint_lt(all, 26000);
}
TEST_END

/* Whether a word is a tool, or an argument or result member of one. */
static bool is_known(const char *word)
{
	AUTO_FREE char *quoted = xasprintf("\"%s\":", word);
	for (size_t i = 0; i < toolset.count; i++) {
		const struct tool *tool = toolset.tools[i];
		if (strcmp(tool->name, word) == 0 || strstr(tool->input_schema, quoted) != NULL ||
		    strstr(tool->output_schema, quoted) != NULL)
			return true;
	}
	return false;
}

/* A word with an underscore in a description is something that exists. */
TEST(descriptions_name_only_what_exists)
{
	for (size_t i = 0; i < toolset.count; i++) {
		const struct tool *tool = toolset.tools[i];
		const char *end = strstr(tool->description, "Example: ");
		for (const char *p = tool->description; p < end;) {
			size_t len = strspn(p, "abcdefghijklmnopqrstuvwxyz_");
			AUTO_FREE char *word = xstrndup(p, len);
			if (strchr(word, '_') != NULL)
				ck_assert_msg(is_known(word), "%s speaks of %s", tool->name, word);
			p += len > 0 ? len : 1;
		}
	}
}
TEST_END

TEST(readers_do_not_claim_to_destroy)
{
	for (size_t i = 0; i < toolset.count; i++) {
		const struct tool *tool = toolset.tools[i];
		ck_assert(!(tool->read_only && tool->destructive));
	}
	ck_assert(tool_read_text.read_only && tool_list_files.read_only);
	ck_assert(tool_get_job.read_only && tool_get_task.read_only && tool_list_jobs.read_only);
	ck_assert(tool_run_background.destructive && tool_start_task.destructive);
	ck_assert(!tool_exec.read_only && tool_exec.destructive);
	ck_assert(!tool_execute_python.read_only && tool_execute_python.destructive);
	ck_assert(tool_destroy_sandbox.destructive && tool_write_text.destructive);
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		every_schema_compiles_and_describes_each_property,
		unknown_arguments_are_refused_by_every_schema,
		names_are_unique_and_fit_every_model_interface,
		the_tools_of_the_contract_are_there,
		descriptions_end_with_an_example_that_is_valid,
		texts_are_long_enough_to_help_and_short_enough_to_read,
		descriptions_name_only_what_exists,
		readers_do_not_claim_to_destroy,
	};
	return unit_run("toolset", tests, ARRAY_LEN(tests));
}
