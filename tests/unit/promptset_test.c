/* The prompts name tools, and a model does what they say: each name must be one that exists. */
#include "tool_kit.h"

#include <ctype.h>

#include "mcp/prompt.h"
#include "mcp/resource.h"

static const struct prompt *find(const char *name)
{
	for (size_t i = 0; i < promptset.count; i++) {
		if (strcmp(promptset.prompts[i]->name, name) == 0)
			return promptset.prompts[i];
	}
	ck_abort_msg("no prompt %s", name);
	return NULL;
}

/* The text of a prompt with arguments as JSON in which ' stands for "; the caller frees it. NULL
 * when it was refused. */
static char *text_of(const struct prompt *prompt, const char *arguments, struct err *err)
{
	AUTO_FREE char *quoted = xstrdup(arguments);
	for (char *p = quoted; (p = strchr(p, '\'')) != NULL;)
		*p = '"';
	AUTO_JSON *given = json_literal(quoted);
	struct prompt_call call = {.app = &kit.app, .principal = "me", .arguments = given};
	char *text = NULL;
	if (prompt->get(&call, err)) {
		ck_assert_uint_eq(json_object_array_length(call.messages), 1);
		struct json_object *message = json_object_array_get_idx(call.messages, 0);
		ck_assert_str_eq(json_get_str(message, "role"), "user");
		ck_assert_str_eq(json_get_str(json_get(message, "content"), "type"), "text");
		text = xstrdup(json_get_str(json_get(message, "content"), "text"));
	}
	json_object_put(call.messages);
	return text;
}

/* Whether a word with an underscore is a tool, or a member of some tool's arguments or result. */
static bool is_known(const char *word)
{
	for (size_t i = 0; i < toolset.count; i++) {
		const struct tool *tool = toolset.tools[i];
		AUTO_JSON *input = json_literal(tool->input_schema);
		AUTO_JSON *output = json_literal(tool->output_schema);
		if (strcmp(tool->name, word) == 0 ||
		    json_has(json_get(input, "properties"), word) ||
		    json_has(json_get(output, "properties"), word))
			return true;
	}
	return false;
}

static void check_words(const char *prompt, const char *text)
{
	for (const char *p = text; *p != '\0';) {
		size_t len = 0;
		while (isalnum((unsigned char)p[len]) || p[len] == '_')
			len++;
		AUTO_FREE char *word = xstrndup(p, len);
		ck_assert_msg(strchr(word, '_') == NULL || is_known(word), "%s: %s", prompt, word);
		p += len == 0 ? 1 : len;
	}
}

TEST(each_prompt_is_described_and_names_only_what_exists)
{
	kit_open();
	ck_assert_uint_ge(promptset.count, 3);
	for (size_t i = 0; i < promptset.count; i++) {
		const struct prompt *prompt = promptset.prompts[i];
		struct err err = ERR_INIT;
		ck_assert_uint_gt(strlen(prompt->title), 0);
		ck_assert_uint_gt(strlen(prompt->description), 0);
		for (size_t j = 0; j < prompt->argument_count; j++)
			ck_assert_uint_gt(strlen(prompt->arguments[j].description), 0);
		AUTO_FREE char *text = text_of(prompt, "{'task':'T','file':'f'}", &err);
		ck_ok(text != NULL, err);
		ck_assert_uint_lt(strlen(text), 2000);
		ck_assert_msg(strpbrk(text, "{}") == NULL, "%s: %s", prompt->name, text);
		check_words(prompt->name, text);
		ck_assert_ptr_nonnull(strstr(text, "download_file"));
	}
	kit_close();
}
TEST_END

TEST(arguments_stand_in_the_text_as_they_are)
{
	kit_open();
	struct err err = ERR_INIT;
	AUTO_FREE char *text =
		text_of(find("process_file"),
			"{'task':'count {sandbox} %s','file':'in/a b.csv','sandbox':'mine'}", &err);
	ck_ok(text != NULL, err);
	ck_assert_ptr_nonnull(strstr(text, "What I want: count {sandbox} %s\n"));
	ck_assert_ptr_nonnull(strstr(text, "Work in sandbox mine,"));
	ck_assert_ptr_nonnull(strstr(text, "dest in/a b.csv,"));
	AUTO_FREE char *plain = text_of(find("process_file"), "{'task':'x','sandbox':''}", &err);
	ck_ok(plain != NULL, err);
	ck_assert_ptr_nonnull(strstr(plain, "Work in sandbox work,"));
	kit_close();
}
TEST_END

TEST(a_name_that_no_sandbox_can_have_is_refused_at_once)
{
	kit_open();
	struct err err = ERR_INIT;
	ck_assert_ptr_null(text_of(find("long_task"), "{'task':'x','sandbox':'a b'}", &err));
	ck_assert_int_eq(err.code, ERR_INVALID);
	ck_assert_ptr_nonnull(strstr(err.msg, "a b"));
	kit_close();
}
TEST_END

static size_t complete(const char *argument, const char *value, bool *more)
{
	struct err err = ERR_INIT;
	AUTO_JSON *values = json_object_new_array();
	ck_ok(find("analyze_data")->complete(&kit.app, "me", argument, value, values, more, &err),
	      err);
	return json_object_array_length(values);
}

TEST(names_of_sandboxes_are_completed_and_nothing_else)
{
	setenv("SMCP_MAX_SANDBOXES", "1000", 1);
	kit_open();
	bool more = true;
	kit_ok(&tool_create_sandbox, "{'sandbox':'work'}");
	kit_ok(&tool_create_sandbox, "{'sandbox':'other'}");
	kit_ok(&tool_create_sandbox, "{'sandbox':'worn-out'}");
	kit_ok(&tool_destroy_sandbox, "{'sandbox':'worn-out'}");
	ck_assert_uint_eq(complete("sandbox", "wor", &more), 1);
	ck_assert(!more);
	ck_assert_uint_eq(complete("sandbox", "", &more), 2);
	ck_assert_uint_eq(complete("file", "", &more), 0);
	ck_assert(!more);
	for (int i = 0; i < COMPLETE_MAX + 1; i++)
		kit_ok(&tool_create_sandbox, "{'sandbox':'x%d'}", i);
	ck_assert_uint_eq(complete("sandbox", "x", &more), COMPLETE_MAX);
	ck_assert(more);
	kit_close();
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		each_prompt_is_described_and_names_only_what_exists,
		arguments_stand_in_the_text_as_they_are,
		a_name_that_no_sandbox_can_have_is_refused_at_once,
		names_of_sandboxes_are_completed_and_nothing_else,
	};
	return unit_run("promptset", tests, ARRAY_LEN(tests));
}
