/* Suggestions for names that do not exist. */
#include "mcp/near.h"

#include "unit.h"

TEST(the_name_that_was_meant_is_found)
{
	static const char *const names[] = {"sandbox", "sandbox_id", "command", "timeout_ms",
					    "path",    "cwd",        "env"};
	static const struct {
		const char *given, *meant;
	} cases[] = {
		{"cmd", "command"},
		{"comand", "command"},
		{"Command", "command"},
		{"timeoutMs", "timeout_ms"},
		{"timeout", "timeout_ms"},
		{"time-out-ms", "timeout_ms"},
		{"file_path", "path"},
		{"sandboxId", "sandbox_id"},
		{"sandbox_name", "sandbox"},
		{"sandobx", "sandbox"},
		{"environment", "env"},
		{"pathh", "path"},
		{"x", NULL},
		{"", NULL},
		{"_", NULL},
		{"language", NULL},
		{"id", NULL},
		{"\xE4\xBD\xA0", NULL},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *found = near_name(cases[i].given, names, ARRAY_LEN(names));
		ck_assert_msg(cases[i].meant == NULL
				      ? found == NULL
				      : found != NULL && strcmp(found, cases[i].meant) == 0,
			      "%s: %s", cases[i].given, found);
	}
}
TEST_END

TEST(words_that_other_tools_use_are_understood)
{
	static const char *const edit[] = {"sandbox",  "sandbox_id", "path",
					   "old_text", "new_text",   "replace_all"};
	static const char *const upload[] = {"sandbox", "sandbox_id", "dest", "size",
					     "ttl_seconds"};
	static const char *const download[] = {"sandbox", "sandbox_id", "src", "ttl_seconds"};
	static const char *const tools[] = {"list_sandboxes", "create_sandbox", "exec",
					    "list_files",     "read_text",      "write_text",
					    "edit_text",      "upload_file",    "download_file"};
	static const struct {
		const char *const *names;
		size_t count;
		const char *given, *meant;
	} cases[] = {
		{edit, ARRAY_LEN(edit), "old_string", "old_text"},
		{edit, ARRAY_LEN(edit), "new_str", "new_text"},
		{edit, ARRAY_LEN(edit), "file", "path"},
		{edit, ARRAY_LEN(edit), "name", "sandbox"},
		{edit, ARRAY_LEN(edit), "replaceAll", "replace_all"},
		{upload, ARRAY_LEN(upload), "path", "dest"},
		{upload, ARRAY_LEN(upload), "file_path", "dest"},
		{upload, ARRAY_LEN(upload), "timeout", "ttl_seconds"},
		{download, ARRAY_LEN(download), "path", "src"},
		{download, ARRAY_LEN(download), "dest", "src"},
		{tools, ARRAY_LEN(tools), "run", "exec"},
		{tools, ARRAY_LEN(tools), "Bash", "exec"},
		{tools, ARRAY_LEN(tools), "read_file", "read_text"},
		{tools, ARRAY_LEN(tools), "str_replace", "edit_text"},
		{tools, ARRAY_LEN(tools), "ls", "list_files"},
		{tools, ARRAY_LEN(tools), "fetch_url", NULL},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *found = near_name(cases[i].given, cases[i].names, cases[i].count);
		ck_assert_msg(cases[i].meant == NULL
				      ? found == NULL
				      : found != NULL && strcmp(found, cases[i].meant) == 0,
			      "%s: %s", cases[i].given, found);
	}
}
TEST_END

TEST(a_name_that_is_far_too_long_is_near_to_nothing)
{
	char given[5000];
	const char *const names[] = {given + 4900, "a"};
	memset(given, 'a', sizeof(given));
	given[sizeof(given) - 1] = '\0';
	ck_assert_ptr_null(near_name(given, names, ARRAY_LEN(names)));
	ck_assert_ptr_null(near_name(given, names, 0));
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		the_name_that_was_meant_is_found,
		words_that_other_tools_use_are_understood,
		a_name_that_is_far_too_long_is_near_to_nothing,
	};
	return unit_run("near", unit_tests, ARRAY_LEN(unit_tests));
}
