/* Files of sandboxes as resources: what is listed, what is read, and what nobody gets to see. */
#include "tool_kit.h"

#include <sodium.h>
#include <utime.h>

#include "base/text.h"
#include "box/names.h"
#include "mcp/resource.h"

static struct resource_call call;
static struct err err;
static struct buf next;

static void begin(const char *principal)
{
	json_object_put(call.result);
	call = (struct resource_call){
		.app = &kit.app, .principal = principal, .result = json_object_new_array()};
	err = (struct err)ERR_INIT;
	buf_clear(&next);
}

static void end(void)
{
	json_object_put(call.result);
	buf_finish(&next);
	kit_close();
}

static void make_sandbox(const char *name)
{
	kit_ok(&tool_create_sandbox, "{'sandbox':'%s'}", name);
}

static void make_dir(const char *sandbox, const char *path)
{
	AUTO_FD dir = kit_workspace(sandbox);
	ck_assert_int_eq(mkdirat(dir, path, 0755), 0);
}

static void list_page(const char *after)
{
	AUTO_FREE char *position = xstrdup(after);
	begin("me");
	ck_ok(resource_files.list(&call, position, &next, &err), err);
}

static struct json_object *item_at(size_t i)
{
	return json_object_array_get_idx(call.result, i);
}

/* The URIs of a page, each with a space before it. */
static const char *uris(void)
{
	static char text[8192];
	text[0] = '\0';
	for (size_t i = 0; i < json_object_array_length(call.result); i++) {
		strcat(text, " ");
		strcat(text, json_get_str(item_at(i), "uri"));
	}
	return text;
}

static void read_uri(const char *uri)
{
	begin("me");
	ck_ok(resource_files.read(&call, uri, &err), err);
	ck_assert_uint_eq(json_object_array_length(call.result), 1);
}

static void read_fails(enum err_code code, const char *principal, const char *uri)
{
	begin(principal);
	ck_assert_msg(!resource_files.read(&call, uri, &err), "%s was read", uri);
	ck_assert_msg(err.code == code, "%s: %s: %s", uri, err_name(err.code), err.msg);
}

/* --- list ---------------------------------------------------------------------------------- */

TEST(a_list_shows_each_sandbox_then_its_files_with_what_is_known_of_them)
{
	kit_open();
	make_sandbox("b");
	make_sandbox("a");
	make_dir("a", "dir");
	kit_put("a", "dir/data.csv", "1,2\n", 4);
	kit_put("a", "\xE4\xB8\xAD #.png", "png", 3);
	kit_put("a", "Makefile", "all:\n", 5);
	kit_put("a", ".hidden", "", 0);
	AUTO_FD dir = kit_workspace("a");
	ck_assert_int_eq(symlinkat("/etc/passwd", dir, "link"), 0);
	struct timespec times[2] = {{1700000000, 0}, {1700000000, 123000000}};
	ck_assert_int_eq(utimensat(dir, "dir/data.csv", times, 0), 0);

	list_page("");
	ck_assert_str_eq(uris(), " spoolbox://a/ spoolbox://a/Makefile spoolbox://a/dir/"
				 " spoolbox://a/dir/data.csv spoolbox://a/%E4%B8%AD%20%23.png"
				 " spoolbox://b/");
	ck_assert_uint_eq(next.len, 0);
	struct json_object *csv = item_at(3), *root = item_at(0);
	ck_assert_str_eq(json_get_str(csv, "name"), "data.csv");
	ck_assert_str_eq(json_get_str(csv, "title"), "a/dir/data.csv");
	ck_assert_str_eq(json_get_str(csv, "mimeType"), "text/csv");
	ck_assert_int_eq(json_get_int(csv, "size", -1), 4);
	ck_assert_str_eq(json_get_str(json_get(csv, "annotations"), "lastModified"),
			 "2023-11-14T22:13:20.123Z");
	ck_assert_str_eq(json_get_str(root, "name"), "a");
	ck_assert_str_eq(json_get_str(root, "title"), "a/");
	ck_assert_str_eq(json_get_str(root, "mimeType"), "inode/directory");
	ck_assert(!json_has(root, "size"));
	ck_assert(!json_has(item_at(1), "mimeType"));
	ck_assert_str_eq(json_get_str(item_at(4), "name"), "\xE4\xB8\xAD #.png");
	end();
}
TEST_END

TEST(names_in_any_bytes_are_listed_as_text_and_read_by_their_uri)
{
	kit_open();
	make_sandbox("a");
	kit_put("a", "\xD6\xD0\xCE\xC4.txt", "gbk", 3);
	kit_put("a", "\xFF", "raw", 3);
	list_page("");
	ck_assert_str_eq(uris(), " spoolbox://a/ spoolbox://a/%D6%D0%CE%C4.txt spoolbox://a/%FF");
	ck_assert_str_eq(json_get_str(item_at(1), "name"), "\xE4\xB8\xAD\xE6\x96\x87.txt");
	const char *name = json_get_str(item_at(2), "name");
	ck_assert(text_is_utf8(name, strlen(name)));
	read_uri("spoolbox://a/%FF");
	ck_assert_str_eq(json_get_str(item_at(0), "text"), "raw");
	read_uri("spoolbox://a/%D6%D0%CE%C4.txt");
	ck_assert_str_eq(json_get_str(item_at(0), "text"), "gbk");
	end();
}
TEST_END

static void put_many(const char *sandbox, const char *dir, int count)
{
	make_dir(sandbox, dir);
	for (int i = 0; i < count; i++) {
		AUTO_FREE char *path = xasprintf("%s/%03d", dir, i);
		kit_put(sandbox, path, "", 0);
	}
}

static int times_seen(const char *all, const char *uri)
{
	int count = 0;
	AUTO_FREE char *line = xasprintf(" %s ", uri);
	for (const char *p = all; (p = strstr(p, line)) != NULL; p++)
		count++;
	return count;
}

/* checklist 59 */
TEST(pages_show_each_item_once_while_files_and_sandboxes_come_and_go)
{
	kit_open();
	make_sandbox("a");
	make_sandbox("c");
	put_many("a", "d", 150);
	put_many("c", "d", 150);
	AUTO_BUF all = BUF_INIT;
	AUTO_FREE char *after = xstrdup("");
	int pages = 0;
	do {
		list_page(after);
		size_t count = json_object_array_length(call.result);
		ck_assert_uint_le(count, 100);
		ck_assert(next.len == 0 || count == 100);
		buf_puts(&all, uris());
		free(after);
		after = xstrdup(buf_str(&next));
		AUTO_FD dir = kit_workspace("a");
		if (pages == 0) {
			/* the position itself goes, something comes before it and behind it */
			ck_assert_str_eq(after, "spoolbox://a/d/097");
			ck_assert_int_eq(unlinkat(dir, "d/097", 0), 0);
			kit_put("a", "d/0000", "", 0);
			kit_put("a", "d/0980", "", 0);
			kit_put("a", "e", "", 0);
		}
		if (pages == 1) {
			make_sandbox("b");
			kit_ok(&tool_kill_sandbox, "{'sandbox':'a'}");
			ck_assert(strncmp(after, "spoolbox://c/d/", 15) == 0);
		}
		if (pages == 1)
			make_sandbox("a");
		pages++;
	} while (*after != '\0');
	buf_putc(&all, ' ');
	ck_assert_int_eq(pages, 4);
	for (int i = 0; i < 150; i++) {
		AUTO_FREE char *in_a = xasprintf("spoolbox://a/d/%03d", i);
		AUTO_FREE char *in_c = xasprintf("spoolbox://c/d/%03d", i);
		ck_assert_msg(times_seen(all.data, in_a) == 1, "%s", in_a);
		ck_assert_msg(times_seen(all.data, in_c) == 1, "%s", in_c);
	}
	ck_assert_int_eq(times_seen(all.data, "spoolbox://a/d/0980"), 1);
	ck_assert_int_eq(times_seen(all.data, "spoolbox://a/d/0000"), 0);
	ck_assert_int_eq(times_seen(all.data, "spoolbox://a/e"), 1);
	ck_assert_int_eq(times_seen(all.data, "spoolbox://c/"), 1);
	end();
}
TEST_END

TEST(a_list_of_exactly_one_page_has_no_second)
{
	kit_open();
	make_sandbox("a");
	put_many("a", "d", 98);
	list_page("");
	ck_assert_uint_eq(json_object_array_length(call.result), 100);
	ck_assert_uint_eq(next.len, 0);
	kit_put("a", "z", "", 0);
	list_page("");
	ck_assert_str_eq(buf_str(&next), "spoolbox://a/d/097");
	list_page(buf_str(&next));
	ck_assert_str_eq(uris(), " spoolbox://a/z");
	end();
}
TEST_END

TEST(a_position_that_is_none_is_refused)
{
	kit_open();
	begin("me");
	ck_assert(!resource_files.list(&call, "elsewhere", &next, &err));
	ck_assert_int_eq(err.code, ERR_INVALID);
	end();
}
TEST_END

/* checklist 61 */
TEST(nobody_sees_the_sandboxes_of_another)
{
	kit_open();
	make_sandbox("a");
	kit_put("a", "secret", "s", 1);
	begin("other");
	ck_ok(resource_files.list(&call, "", &next, &err), err);
	ck_assert_uint_eq(json_object_array_length(call.result), 0);
	read_fails(ERR_NOT_FOUND, "other", "spoolbox://a/secret");
	AUTO_BUF foreign = BUF_INIT;
	buf_puts(&foreign, err.msg);
	kit_ok(&tool_kill_sandbox, "{'sandbox':'a'}");
	read_fails(ERR_NOT_FOUND, "other", "spoolbox://a/secret");
	ck_assert_str_eq(err.msg, buf_str(&foreign));
	end();
}
TEST_END

/* --- neither creates, starts nor, for a list, uses ----------------------------------------- */

static int64_t last_used(const char *name)
{
	struct sandbox_row row = {0};
	struct err none = ERR_INIT;
	ck_assert_int_eq(row_sandbox_by_name(kit.app.db, "me", name, &row, &none), 1);
	int64_t at = row.last_used_at;
	sandbox_row_finish(&row);
	return at;
}

TEST(a_list_is_no_use_of_a_sandbox_and_a_read_is_one_and_neither_starts_it)
{
	kit_open();
	make_sandbox("a");
	kit_put("a", "f", "x", 1);
	sqlite3 *handle;
	ck_assert_int_eq(sqlite3_open(kit.conf.state_db, &handle), SQLITE_OK);
	sqlite3_busy_timeout(handle, 5000);
	ck_assert_int_eq(
		sqlite3_exec(handle, "UPDATE sandbox SET last_used_at = 1000", NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(handle);
	list_page("");
	ck_assert_uint_eq(json_object_array_length(call.result), 2);
	ck_assert_int_eq(last_used("a"), 1000);
	read_uri("spoolbox://a/f");
	ck_assert_int_gt(last_used("a"), 1000);
	ck_assert(!play.is_up);
	ck_assert_int_eq(play.execs, 0);
	read_fails(ERR_NOT_FOUND, "me", "spoolbox://new/f");
	ck_assert_int_eq(kit_count(), 1);
	end();
}
TEST_END

/* --- read ---------------------------------------------------------------------------------- */

/* checklist 62 */
TEST(text_comes_as_text_and_the_rest_as_base64)
{
	kit_open();
	make_sandbox("a");
	char id[ID_LEN + 1];
	memcpy(id, kit_str("sandbox_id"), sizeof id);
	static const struct {
		const char *name, *data;
		size_t len;
		const char *type, *text, *blob;
	} files[] = {
		{"a.md", "# \xE4\xB8\xAD\n", 6, "text/markdown", "# \xE4\xB8\xAD\n", NULL},
		{"a.json", "{}", 2, "application/json", "{}", NULL},
		{"a.svg", "<svg/>", 6, "image/svg+xml", "<svg/>", NULL},
		{"Makefile", "all:", 4, "text/plain", "all:", NULL},
		{"empty", "", 0, "text/plain", "", NULL},
		{"a.png", "\x89PNG\0\xff", 6, "image/png", NULL, "iVBORwD/"},
		{"text.pdf", "%PDF", 4, "application/pdf", NULL, "JVBERg=="},
		{"nul.txt", "a\0b", 3, "text/plain", NULL, "YQBi"},
		{"gbk.txt", "\xD6\xD0", 2, "text/plain", NULL, "1tA="},
		{"unknown", "\xff\xfe", 2, "application/octet-stream", NULL, "//4="},
	};
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		AUTO_FREE char *uri = xasprintf("spoolbox://a/%s", files[i].name);
		kit_put("a", files[i].name, files[i].data, files[i].len);
		read_uri(uri);
		struct json_object *contents = item_at(0);
		ck_assert_str_eq(json_get_str(contents, "uri"), uri);
		ck_assert_str_eq(json_get_str(contents, "mimeType"), files[i].type);
		ck_assert_pstr_eq(json_get_str(contents, "text"), files[i].text);
		ck_assert_pstr_eq(json_get_str(contents, "blob"), files[i].blob);
	}
	/* By id, and written in another way: answered under the handle that was asked for. */
	AUTO_FREE char *by_id = xasprintf("SPOOLBOX://%s/%%61.json", id);
	AUTO_FREE char *canonical = xasprintf("spoolbox://%s/a.json", id);
	read_uri(by_id);
	ck_assert_str_eq(json_get_str(item_at(0), "uri"), canonical);
	end();
}
TEST_END

TEST(what_is_too_large_is_told_the_limit_and_another_way)
{
	setenv("SMCP_READ_TEXT_MAX_BYTES", "2k", 1);
	kit_open();
	make_sandbox("a");
	size_t size = (1 << 20) + 1;
	AUTO_FREE char *data = xcalloc(1, size);
	kit_put("a", "big.bin", data, size);
	read_fails(ERR_TOO_LARGE, "me", "spoolbox://a/big.bin");
	ck_assert_ptr_nonnull(strstr(err.msg, "1048576"));
	ck_assert_ptr_nonnull(strstr(err_next(&err), "download_file"));
	kit_put("a", "fits.bin", data, size - 1);
	read_uri("spoolbox://a/fits.bin");
	memset(data, 'a', 2049);
	kit_put("a", "big.txt", data, 2049);
	read_fails(ERR_TOO_LARGE, "me", "spoolbox://a/big.txt");
	ck_assert_ptr_nonnull(strstr(err.msg, "2048"));
	ck_assert_ptr_nonnull(strstr(err_next(&err), "read_text"));
	kit_put("a", "fits.txt", data, 2048);
	read_uri("spoolbox://a/fits.txt");
	ck_assert_uint_eq(strlen(json_get_str(item_at(0), "text")), 2048);
	end();
}
TEST_END

TEST(a_directory_comes_as_a_document_that_says_where_to_go_on)
{
	kit_open();
	make_sandbox("a");
	make_dir("a", "d");
	make_dir("a", "d/e");
	kit_put("a", "d/f #1", "xyz", 3);
	kit_put("a", "d/.h", "", 0);
	static const char *const names[] = {"spoolbox://a/d/", "spoolbox://a/d"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		read_uri(names[i]);
		ck_assert_str_eq(json_get_str(item_at(0), "uri"), "spoolbox://a/d/");
		ck_assert_str_eq(json_get_str(item_at(0), "mimeType"), "application/json");
	}
	AUTO_JSON *document = json_literal(json_get_str(item_at(0), "text"));
	struct json_object *entries = json_get(document, "entries");
	ck_assert_int_eq(json_get_int(document, "total", 0), 3);
	ck_assert_uint_eq(json_object_array_length(entries), 3);
	struct json_object *e = json_object_array_get_idx(entries, 1),
			   *f = json_object_array_get_idx(entries, 2);
	ck_assert_str_eq(json_get_str(e, "type"), "dir");
	ck_assert_str_eq(json_get_str(e, "uri"), "spoolbox://a/d/e/");
	ck_assert_str_eq(json_get_str(f, "name"), "f #1");
	ck_assert_int_eq(json_get_int(f, "size", 0), 3);
	read_uri(json_get_str(f, "uri"));
	ck_assert_str_eq(json_get_str(item_at(0), "text"), "xyz");
	read_uri("spoolbox://a");
	ck_assert_str_eq(json_get_str(item_at(0), "uri"), "spoolbox://a/");
	read_fails(ERR_NOT_FOUND, "me", "spoolbox://a/d/.h/");
	end();
}
TEST_END

/* checklist 61 */
TEST(nothing_leads_out_of_a_workspace)
{
	kit_open();
	make_sandbox("a");
	make_sandbox("b");
	make_dir("a", "in");
	kit_put("a", "in/f", "mine", 4);
	kit_put("b", "f", "b's", 3);
	AUTO_FD dir = kit_workspace("a");
	AUTO_FREE char *foreign = xasprintf("%s/spool/keys/state", kit.dir);
	ck_assert_int_eq(symlinkat(foreign, dir, "key"), 0);
	ck_assert_int_eq(symlinkat("/etc", dir, "etc"), 0);
	ck_assert_int_eq(symlinkat("../..", dir, "up"), 0);
	ck_assert_int_eq(symlinkat("in/f", dir, "inside"), 0);
	ck_assert_int_eq(mkfifoat(dir, "fifo", 0644), 0);
	static const char *const bad[] = {
		"spoolbox://a/key",        "spoolbox://a/etc",
		"spoolbox://a/etc/passwd", "spoolbox://a/up",
		"spoolbox://a/up/",        "spoolbox://a/../b/workspace/f",
		"spoolbox://a/%2e%2e/b",   "spoolbox://a/in%2F..%2F..",
		"spoolbox://a/in%00",      "spoolbox://a/in/f%00",
		"spoolbox://a/fifo",       "spoolbox://a/none",
		"spoolbox://a/in/f/x",     "file:///etc/passwd",
		"spoolbox://b%2F/f",
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		read_fails(ERR_NOT_FOUND, "me", bad[i]);
	read_uri("spoolbox://a/inside");
	ck_assert_str_eq(json_get_str(item_at(0), "text"), "mine");
	end();
}
TEST_END

TEST(a_closed_file_is_said_to_be_closed)
{
	if (geteuid() == 0) /* nothing is closed to root */
		return;
	kit_open();
	make_sandbox("a");
	kit_put("a", "f", "x", 1);
	AUTO_FD dir = kit_workspace("a");
	ck_assert_int_eq(fchmodat(dir, "f", 0, 0), 0);
	read_fails(ERR_DENIED, "me", "spoolbox://a/f");
	end();
}
TEST_END

/* --- complete ------------------------------------------------------------------------------ */

/* The values, each with a space before it, and " +" when there are others. */
static const char *completed(const char *variable, const char *value, const char *sandbox)
{
	static char text[8192];
	bool more = true;
	AUTO_JSON *known = sandbox == NULL ? NULL : json_object_new_object();
	if (known != NULL)
		json_add_str(known, "sandbox", sandbox);
	begin("me");
	ck_ok(resource_files.complete(&call, resource_files.templates[0].uri_template, variable,
				      value, known, &more, &err),
	      err);
	text[0] = '\0';
	for (size_t i = 0; i < json_object_array_length(call.result); i++) {
		strcat(text, " ");
		strcat(text, json_str(item_at(i)));
	}
	strcat(text, more ? " +" : "");
	return text;
}

TEST(sandboxes_and_paths_are_completed)
{
	kit_open();
	make_sandbox("work");
	make_sandbox("word");
	make_sandbox("a");
	make_dir("a", "dir");
	make_dir("a", "dir/sub");
	kit_put("a", "dir/s#p", "", 0);
	kit_put("a", "dir/x", "", 0);
	kit_put("a", ".h", "", 0);
	kit_put("a", "d\xff", "", 0);
	AUTO_FD dir = kit_workspace("a");
	ck_assert_int_eq(symlinkat("/etc", dir, "dlink"), 0);
	ck_assert_str_eq(completed("sandbox", "wor", NULL), " word work");
	ck_assert_str_eq(completed("sandbox", "", NULL), " a word work");
	ck_assert_str_eq(completed("sandbox", "x", NULL), "");
	ck_assert_str_eq(completed("path", "", "a"), " dir/ d%FF");
	ck_assert_str_eq(completed("path", ".", "a"), " .h");
	ck_assert_str_eq(completed("path", "d", "a"), " dir/ d%FF");
	ck_assert_str_eq(completed("path", "dir/s", "a"), " dir/s%23p dir/sub/");
	ck_assert_str_eq(completed("path", "dir/s%23", "a"), " dir/s%23p");
	ck_assert_str_eq(completed("path", "none/", "a"), "");
	ck_assert_str_eq(completed("path", "../", "a"), "");
	ck_assert_str_eq(completed("path", "", "none"), "");
	ck_assert_str_eq(completed("path", "", "../a"), "");
	ck_assert_str_eq(completed("path", "", NULL), "");
	ck_assert_str_eq(completed("other", "", "a"), "");
	ck_assert_int_eq(kit_count(), 3);
	put_many("a", "many", COMPLETE_MAX + 1);
	ck_assert_ptr_nonnull(strstr(completed("path", "many/", "a"), " many/099 +"));
	ck_assert_uint_eq(json_object_array_length(call.result), COMPLETE_MAX);
	end();
}
TEST_END

TEST(a_name_behind_thousands_of_others_is_completed)
{
	kit_open();
	make_sandbox("a");
	make_dir("a", "big");
	for (int i = 0; i < NAMES_WINDOW + 10; i++) {
		AUTO_FREE char *path = xasprintf("big/a%05d", i);
		kit_put("a", path, "", 0);
	}
	kit_put("a", "big/zz", "", 0);
	ck_assert_str_eq(completed("path", "big/z", "a"), " big/zz");
	list_page("");
	ck_assert_str_eq(uris(), " spoolbox://a/ spoolbox://a/big/");
	end();
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		a_list_shows_each_sandbox_then_its_files_with_what_is_known_of_them,
		names_in_any_bytes_are_listed_as_text_and_read_by_their_uri,
		pages_show_each_item_once_while_files_and_sandboxes_come_and_go,
		a_list_of_exactly_one_page_has_no_second,
		a_position_that_is_none_is_refused,
		nobody_sees_the_sandboxes_of_another,
		a_list_is_no_use_of_a_sandbox_and_a_read_is_one_and_neither_starts_it,
		text_comes_as_text_and_the_rest_as_base64,
		what_is_too_large_is_told_the_limit_and_another_way,
		a_directory_comes_as_a_document_that_says_where_to_go_on,
		nothing_leads_out_of_a_workspace,
		a_closed_file_is_said_to_be_closed,
		sandboxes_and_paths_are_completed,
		a_name_behind_thousands_of_others_is_completed,
	};
	return unit_run("resource_files", tests, ARRAY_LEN(tests));
}
