/* URIs come from clients: each either names a place below a workspace or nothing at all. */
#include "unit.h"

#include "mcp/resource_uri.h"

static const struct {
	const char *uri, *sandbox, *path;
	bool names_dir;
	const char *canonical; /* NULL: as it is */
} good[] = {
	{"spoolbox://work/", "work", "", true, NULL},
	{"spoolbox://work", "work", "", false, "spoolbox://work/"},
	{"spoolbox://work/a", "work", "a", false, NULL},
	{"spoolbox://work/a/b.txt", "work", "a/b.txt", false, NULL},
	{"spoolbox://work/a/b/", "work", "a/b", true, NULL},
	{"SPOOLBOX://W-1_x/a", "W-1_x", "a", false, "spoolbox://W-1_x/a"},
	{"spoolbox://0123456789abcdef0123456789abcdef/x", "0123456789abcdef0123456789abcdef", "x",
	 false, NULL},
	{"spoolbox://w/%E4%B8%AD%20%23%3F%25", "w", "\xE4\xB8\xAD #?%", false, NULL},
	{"spoolbox://w/\xE4\xB8\xAD b", "w", "\xE4\xB8\xAD b", false, "spoolbox://w/%E4%B8%AD%20b"},
	{"spoolbox://w/%ff%FE", "w", "\xff\xfe", false, "spoolbox://w/%FF%FE"},
	{"spoolbox://w/%61", "w", "a", false, "spoolbox://w/a"},
	{"spoolbox://w/...", "w", "...", false, NULL},
	{"spoolbox://w/.hidden/..a", "w", ".hidden/..a", false, NULL},
};

TEST(a_uri_is_read_and_written_in_one_form)
{
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		AUTO_RESOURCE_URI uri = RESOURCE_URI_INIT;
		AUTO_BUF again = BUF_INIT;
		ck_assert_msg(resource_uri_read(good[i].uri, &uri), "%s", good[i].uri);
		ck_assert_str_eq(buf_str(&uri.sandbox), good[i].sandbox);
		ck_assert_str_eq(buf_str(&uri.path), good[i].path);
		ck_assert_int_eq(uri.names_dir, good[i].names_dir);
		resource_uri_write(&again, buf_str(&uri.sandbox), buf_str(&uri.path),
				   uri.names_dir);
		ck_assert_str_eq(buf_str(&again),
				 good[i].canonical == NULL ? good[i].uri : good[i].canonical);
	}
}
TEST_END

TEST(what_can_name_no_file_is_refused)
{
	static const char *const bad[] = {
		"",
		"work/a",
		"file:///etc/passwd",
		"spoolbox:/work/a",
		"spoolbox://",
		"spoolbox:///a",
		"spoolbox://../a",
		"spoolbox://-w/a",
		"spoolbox://w%2Fa/b",
		"spoolbox://w%00/b",
		"spoolbox://user@w/a",
		"spoolbox://w:80/a",
		"spoolbox://w//a",
		"spoolbox://w/a//b",
		"spoolbox://w/a//",
		"spoolbox://w/.",
		"spoolbox://w/..",
		"spoolbox://w/../a",
		"spoolbox://w/a/../../b",
		"spoolbox://w/%2e%2e/a",
		"spoolbox://w/%2E./a",
		"spoolbox://w/a%2F..%2F..%2Fb",
		"spoolbox://w/a%00b",
		"spoolbox://w/%",
		"spoolbox://w/%4",
		"spoolbox://w/%zz",
		"spoolbox://w/a?x=1",
		"spoolbox://w/a#f",
		"spoolbox://w?/a",
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		AUTO_RESOURCE_URI uri = RESOURCE_URI_INIT;
		ck_assert_msg(!resource_uri_read(bad[i], &uri), "%s", bad[i]);
	}
}
TEST_END

TEST(a_name_or_path_that_no_file_system_has_is_refused)
{
	char uri[8192] = "spoolbox://w/";
	size_t start = strlen(uri);
	memset(uri + start, 'a', 255);
	AUTO_RESOURCE_URI fits = RESOURCE_URI_INIT;
	ck_assert(resource_uri_read(uri, &fits));
	uri[start + 255] = 'a';
	AUTO_RESOURCE_URI long_name = RESOURCE_URI_INIT;
	ck_assert(!resource_uri_read(uri, &long_name));
	for (size_t i = start; i < 6000; i += 2)
		memcpy(uri + i, "a/", 2);
	AUTO_RESOURCE_URI long_path = RESOURCE_URI_INIT;
	ck_assert(!resource_uri_read(uri, &long_path));
}
TEST_END

TEST(values_for_the_template_are_plain_but_for_what_would_end_the_path)
{
	AUTO_BUF value = BUF_INIT;
	resource_uri_write_value(&value, "\xE4\xB8\xAD b/50%#?", true);
	ck_assert_str_eq(buf_str(&value), "\xE4\xB8\xAD b/50%25%23%3F/");
	buf_clear(&value);
	resource_uri_write_value(&value, "\xff\n", false);
	ck_assert_str_eq(buf_str(&value), "%FF%0A");

	static const struct {
		const char *value, *path, *rest;
	} read[] = {{"", "", ""},          {"a", "", "a"},         {"a/", "a", ""},
		    {"a/b/c", "a/b", "c"}, {"50%25/%2", NULL, ""}, {"50%25/x", "50%", "x"},
		    {"../x", NULL, ""},    {"/x", NULL, ""},       {"a//x", NULL, ""}};
	for (size_t i = 0; i < ARRAY_LEN(read); i++) {
		AUTO_RESOURCE_URI uri = RESOURCE_URI_INIT;
		AUTO_BUF rest = BUF_INIT;
		bool ok = resource_uri_read_value(read[i].value, &uri, &rest);
		ck_assert_msg(ok == (read[i].path != NULL), "%s", read[i].value);
		if (ok) {
			ck_assert_str_eq(buf_str(&uri.path), read[i].path);
			ck_assert_str_eq(buf_str(&rest), read[i].rest);
		}
	}
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		a_uri_is_read_and_written_in_one_form,
		what_can_name_no_file_is_refused,
		a_name_or_path_that_no_file_system_has_is_refused,
		values_for_the_template_are_plain_but_for_what_would_end_the_path,
	};
	return unit_run("resource_uri", tests, ARRAY_LEN(tests));
}
