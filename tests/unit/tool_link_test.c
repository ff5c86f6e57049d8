/* upload_file and download_file. */
#include "box/transfer.h"
#include "tool_kit.h"

/* The row behind the link of the last result. */
static void open_link(enum link_op op, struct link_row *link, struct sandbox_row *sandbox)
{
	struct err err = ERR_INIT;
	const char *token = strrchr(kit_str("url"), '/') + 1;
	ck_ok(transfer_open_link(&kit.app, token, op, link, sandbox, &err), err);
}

TEST(an_upload_link_is_for_the_file_that_was_asked_for)
{
	kit_open();
	kit_ok(&tool_upload_file,
	       "{'sandbox':'work','dest':'in/a b.pdf','size':5,'ttl_seconds':60}");
	ck_assert(kit_true("sandbox_created"));
	ck_assert(kit_true("one_time"));
	ck_assert_str_eq(kit_str("method"), "PUT");
	ck_assert_str_eq(kit_str("dest"), "/workspace/in/a b.pdf");
	ck_assert_int_eq(kit_int("max_bytes"), 5);
	ck_assert_int_eq(strncmp(kit_str("url"), "https://box.example/", 20), 0);
	ck_assert_ptr_nonnull(strstr(kit_str("example"), kit_str("url")));
	ck_assert_int_eq(strncmp(kit_str("example"), "curl -T FILE 'https", 19), 0);

	struct link_row link = {0};
	struct sandbox_row sandbox = {0};
	open_link(LINK_PUT, &link, &sandbox);
	ck_assert_str_eq(link.path, "in/a b.pdf");
	ck_assert_int_eq(link.size, 5);
	ck_assert_str_eq(sandbox.id, kit_str("sandbox_id"));
	ck_assert_int_le(link.expires_at, clock_wall_ms() + 60000);
	link_row_finish(&link);
	sandbox_row_finish(&sandbox);
	kit_close();
}
TEST_END

/* When the link of the last result expires, in seconds from now. */
static int64_t lifetime_s(enum link_op op)
{
	struct link_row link = {0};
	struct sandbox_row sandbox = {0};
	open_link(op, &link, &sandbox);
	int64_t left_ms = link.expires_at - clock_wall_ms();
	link_row_finish(&link);
	sandbox_row_finish(&sandbox);
	return (left_ms + 999) / 1000;
}

TEST(a_link_lives_as_long_as_asked_else_as_the_setting_says)
{
	setenv("SMCP_URL_TTL", "120", 1);
	kit_open();
	kit_ok(&tool_write_text, "{'sandbox':'work','path':'f'}");
	static const struct {
		const char *more;
		int64_t seconds;
	} cases[] = {{"", 120}, {",'ttl_seconds':0", 120}, {",'ttl_seconds':300", 300}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		kit_ok(&tool_upload_file, "{'sandbox':'work','dest':'g'%s}", cases[i].more);
		int64_t up = lifetime_s(LINK_PUT);
		kit_ok(&tool_download_file, "{'sandbox':'work','src':'f'%s}", cases[i].more);
		int64_t down = lifetime_s(LINK_GET);
		/* A busy machine may take some seconds between making a link and looking at it. */
		ck_assert_int_le(up, cases[i].seconds);
		ck_assert_int_gt(up, cases[i].seconds - 30);
		ck_assert_int_le(down, cases[i].seconds);
		ck_assert_int_gt(down, cases[i].seconds - 30);
	}
	kit_close();
}
TEST_END

TEST(without_a_size_the_server_limit_applies)
{
	kit_open();
	kit_ok(&tool_upload_file, "{'sandbox':'work','dest':'a','ttl_seconds':0}");
	ck_assert_int_eq(kit_int("max_bytes"), kit.conf.max_upload);
	kit_close();
}
TEST_END

TEST(a_destination_that_cannot_be_gets_no_link)
{
	kit_open();
	kit_fails(ERR_INVALID, &tool_upload_file, "{'sandbox':'w','dest':'dir/'}");
	kit_message_has("directory");
	kit_fails(ERR_INVALID, &tool_upload_file, "{'sandbox':'w','dest':'../x'}");
	kit_fails(ERR_TOO_LARGE, &tool_upload_file, "{'sandbox':'w','dest':'x','size':%lld}",
		  (long long)kit.conf.max_upload + 1);
	ck_assert_int_eq(kit_count(), 0);
	kit_ok(&tool_write_text, "{'sandbox':'w','path':'d/a.txt'}");
	kit_fails(ERR_CONFLICT, &tool_upload_file, "{'sandbox':'w','dest':'d'}");
	kit_fails(ERR_CONFLICT, &tool_upload_file, "{'sandbox':'w','dest':'d/a.txt/b'}");
	kit_close();
}
TEST_END

TEST(a_download_link_names_file_and_size)
{
	kit_open();
	kit_ok(&tool_write_text, "{'sandbox':'work','path':'out/r.txt','content':'12345'}");
	kit_ok(&tool_download_file, "{'sandbox':'work','src':'out/r.txt'}");
	ck_assert_str_eq(kit_str("src"), "/workspace/out/r.txt");
	ck_assert_str_eq(kit_str("name"), "r.txt");
	ck_assert_int_eq(kit_int("size"), 5);
	ck_assert_str_eq(kit_str("method"), "GET");
	struct link_row link = {0};
	struct sandbox_row sandbox = {0};
	open_link(LINK_GET, &link, &sandbox);
	ck_assert_str_eq(link.path, "out/r.txt");
	link_row_finish(&link);
	sandbox_row_finish(&sandbox);
	kit_close();
}
TEST_END

TEST(the_example_line_is_safe_in_a_shell)
{
	kit_open();
	kit_ok(&tool_create_sandbox, "{'sandbox':'work'}");
	kit_put("work", "a'; touch pwned; '.txt", "x", 1);
	kit_ok(&tool_download_file,
	       "{'sandbox':'work','src':'a\\u0027; touch pwned; \\u0027.txt'}");
	AUTO_FREE char *expected =
		xasprintf("curl -o 'a'\\''; touch pwned; '\\''.txt' '%s'", kit_str("url"));
	ck_assert_str_eq(kit_str("example"), expected);
	kit_close();
}
TEST_END

TEST(what_is_no_file_cannot_be_downloaded)
{
	kit_open();
	kit_ok(&tool_write_text, "{'sandbox':'work','path':'d/a.txt'}");
	kit_fails(ERR_INVALID, &tool_download_file, "{'sandbox':'work','src':'d'}");
	kit_fails(ERR_INVALID, &tool_download_file, "{'sandbox':'work','src':'.'}");
	kit_fails(ERR_NOT_FOUND, &tool_download_file, "{'sandbox':'work','src':'none'}");
	kit_message_has("/workspace/none");
	kit_close();
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		an_upload_link_is_for_the_file_that_was_asked_for,
		a_link_lives_as_long_as_asked_else_as_the_setting_says,
		without_a_size_the_server_limit_applies,
		a_destination_that_cannot_be_gets_no_link,
		a_download_link_names_file_and_size,
		the_example_line_is_safe_in_a_shell,
		what_is_no_file_cannot_be_downloaded,
	};
	return unit_run("tool_link", tests, ARRAY_LEN(tests));
}
