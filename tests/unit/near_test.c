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
		a_name_that_is_far_too_long_is_near_to_nothing,
	};
	return unit_run("near", unit_tests, ARRAY_LEN(unit_tests));
}
