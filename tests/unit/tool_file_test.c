/* list_files, read_text, write_text, edit_text. */
#include <sys/wait.h>

#include "tool_kit.h"

static void write_file(const char *path, const char *json_content)
{
	kit_ok(&tool_write_text, "{'sandbox':'work','path':'%s','content':'%s'}", path,
	       json_content);
}

static struct json_object *entry_at(size_t i)
{
	return json_object_array_get_idx(json_get(kit.call.structured, "entries"), i);
}

/* --- list_files ---------------------------------------------------------------------------- */

TEST(a_listing_is_sorted_and_typed)
{
	kit_open();
	write_file("b.txt", "four");
	write_file("a/inner.txt", "");
	kit_ok(&tool_list_files, "{'sandbox':'work'}");
	ck_assert_str_eq(kit_str("path"), "/workspace");
	ck_assert_int_eq(kit_int("total"), 2);
	ck_assert(!kit_has("next_offset"));
	ck_assert_str_eq(json_get_str(entry_at(0), "name"), "a");
	ck_assert_str_eq(json_get_str(entry_at(0), "type"), "dir");
	ck_assert(!json_has(entry_at(0), "size"));
	ck_assert_int_eq(json_get_int(entry_at(1), "size", 0), 4);
	ck_assert_str_eq(json_get_str(entry_at(1), "mode"), "0644");
	kit_ok(&tool_list_files, "{'sandbox':'work','path':'/workspace/a/'}");
	ck_assert_str_eq(kit_str("path"), "/workspace/a");
	ck_assert_int_eq(kit_int("total"), 1);
	kit_close();
}
TEST_END

TEST(a_long_listing_is_paged_to_its_end)
{
	kit_open();
	for (int i = 0; i < 5; i++) {
		char name[16];
		snprintf(name, sizeof name, "f%d", i);
		write_file(name, "");
	}
	int seen = 0;
	int64_t offset = 0;
	do {
		kit_ok(&tool_list_files, "{'sandbox':'work','limit':2,'offset':%d}", (int)offset);
		seen += (int)json_object_array_length(json_get(kit.call.structured, "entries"));
		offset = json_get_int(kit.call.structured, "next_offset", -1);
	} while (offset >= 0 && seen < 100);
	ck_assert_int_eq(seen, 5);
	kit_ok(&tool_list_files, "{'sandbox':'work','offset':99}");
	ck_assert(!kit_has("next_offset"));
	kit_close();
}
TEST_END

TEST(a_missing_sandbox_and_a_missing_path_are_told_apart)
{
	kit_open();
	kit_fails(ERR_NOT_FOUND, &tool_list_files, "{'sandbox':'work'}");
	kit_message_has("work");
	ck_assert_ptr_nonnull(strstr(err_message(&kit.err), "sandbox"));
	kit_fails(ERR_NOT_FOUND, &tool_read_text, "{'sandbox':'work','path':'a.txt'}");
	kit_fails(ERR_NOT_FOUND, &tool_download_file, "{'sandbox':'work','src':'a.txt'}");
	ck_assert_int_eq(kit_count(), 0);

	kit_ok(&tool_create_sandbox, "{'sandbox':'work'}");
	kit_fails(ERR_NOT_FOUND, &tool_list_files, "{'sandbox':'work','path':'nowhere'}");
	kit_message_has("/workspace/nowhere");
	kit_fails(ERR_NOT_FOUND, &tool_read_text, "{'sandbox':'work','path':'nowhere'}");
	kit_message_has("/workspace/nowhere");
	kit_close();
}
TEST_END

/* --- write_text ---------------------------------------------------------------------------- */

TEST(a_written_file_reads_back)
{
	kit_open();
	kit_ok(&tool_write_text, "{'sandbox':'work','path':'a/b/c.txt','content':'one\\ntwo'}");
	ck_assert(kit_true("sandbox_created"));
	ck_assert(kit_true("created"));
	ck_assert_int_eq(kit_int("size"), 7);
	ck_assert_int_eq(kit_int("lines"), 2);
	ck_assert_str_eq(kit_str("path"), "/workspace/a/b/c.txt");
	kit_ok(&tool_write_text, "{'sandbox':'work','path':'a/b/c.txt','content':'x\\u0000y\\n'}");
	ck_assert(!kit_true("created"));
	ck_assert(!kit_true("sandbox_created"));
	ck_assert_int_eq(kit_int("size"), 4);
	ck_assert_int_eq(kit_int("lines"), 1);
	char *text = kit_get("work", "a/b/c.txt");
	ck_assert_int_eq(memcmp(text, "x\0y\n", 5), 0);
	free(text);
	kit_close();
}
TEST_END

TEST(executable_sets_and_clears_and_otherwise_stays)
{
	kit_open();
	struct stat st;
	kit_ok(&tool_write_text, "{'sandbox':'work','path':'run','executable':true}");
	AUTO_FD dir = kit_workspace("work");
	ck_assert_int_eq(fstatat(dir, "run", &st, 0), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0755);
	kit_ok(&tool_write_text, "{'sandbox':'work','path':'run','content':'x'}");
	ck_assert_int_eq(fstatat(dir, "run", &st, 0), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0755);
	kit_ok(&tool_write_text, "{'sandbox':'work','path':'run','executable':false}");
	ck_assert_int_eq(fstatat(dir, "run", &st, 0), 0);
	ck_assert_int_eq(st.st_mode & 0111, 0);
	kit_close();
}
TEST_END

TEST(a_bad_path_or_too_much_content_leaves_nothing_behind)
{
	kit_open();
	static const char *const paths[] = {"../x", "/etc/passwd", "a/../../x", "dir/",
					    ".",    "/workspace",  "a\\u0000b"};
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		kit_fails(ERR_INVALID, &tool_write_text, "{'sandbox':'w','path':'%s'}", paths[i]);
	char *big = xcalloc(1, 1048576 + 2);
	memset(big, 'x', 1048577);
	kit_fails(ERR_TOO_LARGE, &tool_write_text, "{'sandbox':'w','path':'a','content':'%s'}",
		  big);
	kit_message_has("1048577");
	ck_assert_int_eq(kit_count(), 0);
	big[1048576] = '\0';
	kit_ok(&tool_write_text, "{'sandbox':'w','path':'a','content':'%s'}", big);
	free(big);
	kit_close();
}
TEST_END

TEST(writing_over_a_directory_is_refused)
{
	kit_open();
	write_file("d/a.txt", "x");
	kit_fails(ERR_CONFLICT, &tool_write_text, "{'sandbox':'work','path':'d'}");
	kit_close();
}
TEST_END

TEST(a_link_out_of_the_workspace_is_not_followed)
{
	kit_open();
	kit_ok(&tool_create_sandbox, "{'sandbox':'work'}");
	AUTO_FD dir = kit_workspace("work");
	ck_assert_int_eq(symlinkat("/etc/passwd", dir, "pw"), 0);
	ck_assert_int_eq(symlinkat("/etc", dir, "etc"), 0);
	ck_assert(!kit_call(&tool_read_text, "{'sandbox':'work','path':'pw'}"));
	ck_assert(!kit_call(&tool_read_text, "{'sandbox':'work','path':'etc/passwd'}"));
	ck_assert(!kit_call(&tool_list_files, "{'sandbox':'work','path':'etc'}"));
	ck_assert(!kit_call(&tool_download_file, "{'sandbox':'work','src':'pw'}"));
	ck_assert(!kit_call(&tool_edit_text, "{'sandbox':'work','path':'pw','old_text':'root',"
					     "'new_text':'toor'}"));
	ck_assert(!kit_call(&tool_write_text, "{'sandbox':'work','path':'etc/x'}"));
	kit_close();
}
TEST_END

/* --- read_text ----------------------------------------------------------------------------- */

TEST(lines_are_counted_from_one_and_paged)
{
	kit_open();
	write_file("f", "a\\nb\\nc\\nd\\n");
	kit_ok(&tool_read_text, "{'sandbox':'work','path':'f','offset':2,'limit':2}");
	ck_assert_str_eq(kit_str("content"), "b\nc\n");
	ck_assert_int_eq(kit_int("first_line"), 2);
	ck_assert_int_eq(kit_int("lines"), 2);
	ck_assert_int_eq(kit_int("total_lines"), 4);
	ck_assert_int_eq(kit_int("next_offset"), 4);
	ck_assert(kit_true("truncated"));
	kit_ok(&tool_read_text, "{'sandbox':'work','path':'f','offset':4}");
	ck_assert_str_eq(kit_str("content"), "d\n");
	ck_assert(!kit_true("truncated"));
	ck_assert(!kit_has("next_offset"));
	kit_close();
}
TEST_END

TEST(edges_of_a_file_are_right)
{
	kit_open();
	write_file("empty", "");
	kit_ok(&tool_read_text, "{'sandbox':'work','path':'empty'}");
	ck_assert_str_eq(kit_str("content"), "");
	ck_assert_int_eq(kit_int("total_lines"), 0);
	write_file("tail", "a\\nb");
	kit_ok(&tool_read_text, "{'sandbox':'work','path':'tail','limit':1}");
	ck_assert_int_eq(kit_int("next_offset"), 2);
	kit_ok(&tool_read_text, "{'sandbox':'work','path':'tail','offset':2,'limit':1}");
	ck_assert_str_eq(kit_str("content"), "b");
	ck_assert_int_eq(kit_int("total_lines"), 2);
	ck_assert(!kit_true("truncated"));
	kit_ok(&tool_read_text, "{'sandbox':'work','path':'tail','offset':9}");
	ck_assert_int_eq(kit_int("lines"), 0);
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "only 2 lines"));
	kit_close();
}
TEST_END

TEST(the_byte_limit_cuts_between_lines)
{
	setenv("SMCP_READ_TEXT_MAX_BYTES", "1k", 1);
	kit_open();
	AUTO_BUF text = BUF_INIT;
	for (int i = 0; i < 100; i++)
		buf_printf(&text, "line %02d ............................\n", i); /* 37 bytes */
	kit_ok(&tool_create_sandbox, "{'sandbox':'work'}");
	kit_put("work", "f", text.data, text.len);
	AUTO_BUF all = BUF_INIT;
	int64_t offset = 1;
	int pages = 0;
	while (offset > 0 && pages++ < 100) {
		kit_ok(&tool_read_text, "{'sandbox':'work','path':'f','offset':%d}", (int)offset);
		const char *content = kit_str("content");
		ck_assert_uint_le(strlen(content), 1024);
		ck_assert_int_eq(content[strlen(content) - 1], '\n');
		buf_puts(&all, content);
		offset = json_get_int(kit.call.structured, "next_offset", 0);
	}
	ck_assert_str_eq(buf_str(&all), buf_str(&text));
	ck_assert_int_eq(pages, 4);
	kit_close();
}
TEST_END

TEST(a_line_beyond_the_limit_is_cut_with_a_note_and_can_be_passed)
{
	setenv("SMCP_READ_TEXT_MAX_BYTES", "1k", 1);
	kit_open();
	AUTO_BUF text = BUF_INIT;
	buf_puts(&text, "first\n");
	for (int i = 0; i < 1000; i++)
		buf_puts(&text, "\xe4\xbd\xa0");
	buf_puts(&text, "\nlast\n");
	kit_ok(&tool_create_sandbox, "{'sandbox':'work'}");
	kit_put("work", "f", text.data, text.len);
	kit_ok(&tool_read_text, "{'sandbox':'work','path':'f'}");
	ck_assert_str_eq(kit_str("content"), "first\n");
	ck_assert_int_eq(kit_int("next_offset"), 2);
	kit_ok(&tool_read_text, "{'sandbox':'work','path':'f','offset':2}");
	ck_assert_uint_eq(strlen(kit_str("content")), 1023); /* whole characters */
	ck_assert_str_eq(kit_str("encoding"), "utf-8");
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "Line 2 is longer"));
	ck_assert(kit_true("truncated"));
	ck_assert_int_eq(kit_int("next_offset"), 3);
	kit_ok(&tool_read_text, "{'sandbox':'work','path':'f','offset':3}");
	ck_assert_str_eq(kit_str("content"), "last\n");
	kit_close();
}
TEST_END

TEST(a_huge_file_is_read_in_little_memory)
{
	kit_open();
	kit_ok(&tool_create_sandbox, "{'sandbox':'work'}");
	AUTO_BUF text = BUF_INIT;
	for (int i = 0; i < 20000; i++)
		buf_puts(&text, "0123456789\n");
	kit_put("work", "f", text.data, text.len);
	AUTO_FD dir = kit_workspace("work");
	AUTO_FD fd = openat(dir, "f", O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(ftruncate(fd, 10LL << 30), 0);
	kit_ok(&tool_read_text, "{'sandbox':'work','path':'f','offset':15000,'limit':2}");
	ck_assert_str_eq(kit_str("content"), "0123456789\n0123456789\n");
	ck_assert_int_eq(kit_int("next_offset"), 15002);
	ck_assert(!kit_has("total_lines"));
	ck_assert_int_eq(kit_int("size"), 10LL << 30);
	/* Behind the text there is one line without an end: looked for in a bounded part only. */
	kit_fails(ERR_TOO_LARGE, &tool_read_text, "{'sandbox':'work','path':'f','offset':20002}");
	ck_assert_ptr_nonnull(strstr(err_next(&kit.err), "exec"));
	kit_close();
}
TEST_END

TEST(encodings_are_named_and_binary_is_refused)
{
	kit_open();
	kit_ok(&tool_create_sandbox, "{'sandbox':'work'}");
	kit_put("work", "gbk", "\xc4\xe3\xba\xc3\n", 5);
	kit_ok(&tool_read_text, "{'sandbox':'work','path':'gbk'}");
	ck_assert_str_eq(kit_str("content"), "\xe4\xbd\xa0\xe5\xa5\xbd\n");
	ck_assert_str_eq(kit_str("encoding"), "gb18030");
	kit_put("work", "png", "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
	kit_fails(ERR_INVALID, &tool_read_text, "{'sandbox':'work','path':'png'}");
	kit_message_has("binary");
	kit_message_has("16 bytes");
	ck_assert_ptr_nonnull(strstr(err_next(&kit.err), "download_file"));
	kit_put("work", "utf16",
		"\xff\xfe"
		"a\0b\0",
		6);
	kit_fails(ERR_INVALID, &tool_read_text, "{'sandbox':'work','path':'utf16'}");
	kit_message_has("iconv");
	kit_put("work", "latin", "caf\xe9\n", 5);
	kit_ok(&tool_read_text, "{'sandbox':'work','path':'latin'}");
	ck_assert_str_eq(kit_str("encoding"), "binary");
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "U+FFFD"));
	kit_close();
}
TEST_END

/* --- edit_text ----------------------------------------------------------------------------- */

static bool edit(const char *old_text, const char *new_text, const char *more)
{
	return kit_call(&tool_edit_text,
			"{'sandbox':'work','path':'f','old_text':'%s','new_text':'%s'%s}", old_text,
			new_text, more);
}

static void holds(const char *expected)
{
	char *text = kit_get("work", "f");
	ck_assert_str_eq(text, expected);
	free(text);
}

TEST(one_passage_is_replaced_and_the_rest_stays)
{
	kit_open();
	write_file("f", "a\\r\\nb  \\n\\tc");
	ck_assert(edit("b  \\n\\t", "B\\n", ""));
	ck_assert_int_eq(kit_int("replacements"), 1);
	ck_assert_int_eq(kit_int("first_line"), 2);
	ck_assert_int_eq(kit_int("size"), 6);
	holds("a\r\nB\nc");
	ck_assert(edit("B\\n", "", ""));
	holds("a\r\nc");
	kit_close();
}
TEST_END

TEST(several_passages_need_replace_all)
{
	kit_open();
	write_file("f", "x = 1\\ny\\nx = 1\\n");
	ck_assert(!edit("x = 1", "x = 2", ""));
	kit_message_has("2 times");
	kit_message_has("1, 3");
	holds("x = 1\ny\nx = 1\n");
	ck_assert(edit("x = 1", "x = 22", ",'replace_all':true"));
	ck_assert_int_eq(kit_int("replacements"), 2);
	ck_assert_int_eq(kit_int("first_line"), 1);
	holds("x = 22\ny\nx = 22\n");
	kit_close();
}
TEST_END

TEST(overlapping_matches_are_counted_once)
{
	kit_open();
	write_file("f", "aaaa");
	ck_assert(edit("aa", "b", ",'replace_all':true"));
	ck_assert_int_eq(kit_int("replacements"), 2);
	holds("bb");
	kit_close();
}
TEST_END

TEST(a_miss_says_where_the_nearest_lines_are)
{
	kit_open();
	write_file("f", "def f():\\n\\treturn 1\\n\\ndef g():\\n\\treturn 2\\n");
	ck_assert(!edit("def g():\\n    return 2", "x", ""));
	kit_message_has("from 4");
	kit_message_has("white space");
	ck_assert(!edit("def g():\\n\\treturn 3", "x", ""));
	kit_message_has("line 4");
	kit_message_has("return 3");
	kit_message_has("return 2");
	kit_message_has("(line 5)");
	ck_assert(!edit("f():\\nreturn 9", "x", ""));
	kit_message_has("within line 1");
	ck_assert(!edit("nothing like it", "x", ""));
	kit_message_has("nor does its first line");
	write_file("f", "a\\r\\nb\\r\\n");
	ck_assert(!edit("a\\nb\\n", "x", ""));
	kit_message_has("CRLF");
	kit_close();
}
TEST_END

TEST(an_edit_that_cannot_be_meant_is_refused)
{
	kit_open();
	write_file("f", "a\\n");
	ck_assert(!edit("", "x", ""));
	kit_message_has("empty");
	ck_assert(!edit("a", "a", ""));
	kit_message_has("same");
	kit_put("work", "f", "\xc4\xe3 a\n", 5);
	ck_assert(!edit("a", "b", ""));
	kit_message_has("not UTF-8");
	ck_assert_ptr_nonnull(strstr(err_next(&kit.err), "iconv"));
	kit_fails(ERR_NOT_FOUND, &tool_edit_text,
		  "{'sandbox':'work','path':'none','old_text':'a','new_text':'b'}");
	kit_close();
}
TEST_END

TEST(an_edit_cannot_grow_a_file_without_bound)
{
	kit_open();
	char *as = xcalloc(1, 1001), *xs = xcalloc(1, 20001);
	memset(as, 'a', 1000);
	memset(xs, 'x', 20000);
	write_file("f", as);
	ck_assert(!edit("a", xs, ",'replace_all':true"));
	ck_assert_str_eq(err_name(kit.err.code), "too_large");
	kit_message_has("20000000");
	holds(as);
	AUTO_FD dir = kit_workspace("work");
	AUTO_FD fd = openat(dir, "f", O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(ftruncate(fd, 11 << 20), 0);
	ck_assert(!edit("b", "c", ""));
	kit_message_has("11534336 bytes");
	free(as);
	free(xs);
	kit_close();
}
TEST_END

/* The search for a near miss must not take minutes on lines made to match for long. */
TEST(a_hostile_file_does_not_stall_an_edit)
{
	kit_open();
	kit_ok(&tool_create_sandbox, "{'sandbox':'work'}");
	AUTO_BUF text = BUF_INIT;
	AUTO_BUF old_text = BUF_INIT;
	for (int i = 0; i < 2000000; i++)
		buf_puts(&text, "x\n");
	for (int i = 0; i < 100000; i++)
		buf_puts(&old_text, "x\\n");
	buf_puts(&old_text, "y");
	kit_put("work", "f", text.data, text.len);
	int64_t start = clock_mono_ms();
	ck_assert(!edit(buf_str(&old_text), "z", ""));
	ck_assert_int_lt(clock_mono_ms() - start, 10000);
	kit_close();
}
TEST_END

/* Each with a connection of its own, as workers are. */
static void edit_in_child(int i)
{
	struct app app;
	struct err err = ERR_INIT;
	if (!app_open(&app, &kit.conf, &err))
		_exit(2);
	app.runtime = &play_runtime;
	AUTO_FREE char *text =
		xasprintf("{\"sandbox\":\"work\",\"path\":\"f\",\"old_text\":\"a%d;\","
			  "\"new_text\":\"b%d;\"}",
			  i, i);
	struct tool_call call = {.app = &app, .principal = "me", .arguments = json_literal(text)};
	_exit(tool_edit_text.call(&call, &err) ? 0 : 1);
}

TEST(edits_at_the_same_time_are_all_kept)
{
	kit_open();
	write_file("f", "a0; a1; a2; a3; a4; a5; a6; a7;");
	for (int i = 0; i < 8; i++)
		if (fork() == 0)
			edit_in_child(i);
	for (int i = 0; i < 8; i++) {
		int status;
		ck_assert_int_gt(wait(&status), 0);
		ck_assert_int_eq(status, 0);
	}
	holds("b0; b1; b2; b3; b4; b5; b6; b7;");
	kit_close();
}
TEST_END

TEST(a_file_with_an_old_chinese_name_is_edited_in_place)
{
	kit_open();
	kit_ok(&tool_create_sandbox, "{'sandbox':'work'}");
	kit_put("work", "\xd6\xd0.txt", "a", 1);
	kit_ok(&tool_edit_text,
	       "{'sandbox':'work','path':'\u4e2d.txt','old_text':'a','new_text':'b'}");
	kit_ok(&tool_list_files, "{'sandbox':'work'}");
	ck_assert_int_eq(kit_int("total"), 1);
	ck_assert(json_get_bool(entry_at(0), "renamed", false));
	kit_ok(&tool_read_text, "{'sandbox':'work','path':'\u4e2d.txt'}");
	ck_assert_str_eq(kit_str("content"), "b");
	kit_close();
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		a_listing_is_sorted_and_typed,
		a_long_listing_is_paged_to_its_end,
		a_missing_sandbox_and_a_missing_path_are_told_apart,
		a_written_file_reads_back,
		executable_sets_and_clears_and_otherwise_stays,
		a_bad_path_or_too_much_content_leaves_nothing_behind,
		writing_over_a_directory_is_refused,
		a_link_out_of_the_workspace_is_not_followed,
		lines_are_counted_from_one_and_paged,
		edges_of_a_file_are_right,
		the_byte_limit_cuts_between_lines,
		a_line_beyond_the_limit_is_cut_with_a_note_and_can_be_passed,
		a_huge_file_is_read_in_little_memory,
		encodings_are_named_and_binary_is_refused,
		one_passage_is_replaced_and_the_rest_stays,
		several_passages_need_replace_all,
		overlapping_matches_are_counted_once,
		a_miss_says_where_the_nearest_lines_are,
		an_edit_that_cannot_be_meant_is_refused,
		an_edit_cannot_grow_a_file_without_bound,
		a_hostile_file_does_not_stall_an_edit,
		edits_at_the_same_time_are_all_kept,
		a_file_with_an_old_chinese_name_is_edited_in_place,
	};
	return unit_run("tool_file", tests, ARRAY_LEN(tests));
}
