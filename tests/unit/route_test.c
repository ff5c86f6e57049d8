/* REQUEST_URI as clients and servers write it, and what becomes of it. */
#include "unit.h"

#include "web/route.h"

/* Segments joined by "|". */
static void join(const struct route_uri *uri, struct buf *out)
{
	for (size_t i = 0; i < uri->segment_count; i++)
		buf_printf(out, "%s%s", i == 0 ? "" : "|", uri->segments[i]);
}

static const struct {
	const char *uri, *segments, *query; /* segments NULL: refused */
} uris[] = {
	{"/mcp", "mcp", ""},
	{"/mcp/", "mcp", ""},
	{"/mcp?", "mcp", ""},
	{"/mcp?a=%zz&b=/x", "mcp", "a=%zz&b=/x"},
	{"/mcpx", "mcpx", ""},
	{"/MCP", "MCP", ""},
	{"/%6Dcp", "mcp", ""},
	{"/%256Dcp", "%6Dcp", ""},
	{"http://h/mcp", "mcp", ""},
	{"HTTPS://user@h:1/mcp?q", "mcp", "q"},
	{"http://h", "", ""},
	{"http://h?q=/x", "", "q=/x"},
	{"/", "", ""},
	{"/?q", "", "q"},
	{"/dir/app.fcgi/mcp", "mcp", ""},
	{"/a/b/c/d/files/put/T", "files|put|T", ""},
	{"/files/push?sandbox=a&path=b", "files|push", "sandbox=a&path=b"},
	{"/mcp/files/get/T", "files|get|T", ""},
	{"/.well-known/oauth-protected-resource/mcp", ".well-known|oauth-protected-resource|mcp",
	 ""},
	{"/files/get", "files|get", ""},
	{"/files/get/T/x", "files|get|T|x", ""},
	{"/files/get/%E3%81%82+", "files|get|あ+", ""},
	{"/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/files/get/T", "files|get|T", ""},
	{"", NULL, ""},
	{"*", NULL, ""},
	{"mcp", NULL, ""},
	{"ftp://h/mcp", NULL, ""},
	{"//mcp", NULL, ""},
	{"/mcp//", NULL, ""},
	{"/a//mcp", NULL, ""},
	{"/./mcp", NULL, ""},
	{"/files/../mcp", NULL, ""},
	{"/files/%2E%2e/mcp", NULL, ""},
	{"/files/get/a%2Fb", NULL, ""},
	{"/files/get/a%00", NULL, ""},
	{"/files/get/a%0Ab", NULL, ""},
	{"/files/get/a%7F", NULL, ""},
	{"/files/get/a\x01", NULL, ""},
	{"/files/get/%zz", NULL, ""},
	{"/files/get/%4", NULL, ""},
	{"/files/get/%", NULL, ""},
	{"/files/get/%?a", NULL, ""},
};

TEST(a_uri_is_split_decoded_once_and_freed_from_its_mount_prefix)
{
	for (size_t i = 0; i < ARRAY_LEN(uris); i++) {
		struct err err = ERR_INIT;
		AUTO_ROUTE_URI uri;
		bool ok = route_parse(uris[i].uri, &uri, &err);
		ck_assert_msg(ok == (uris[i].segments != NULL), "%s", uris[i].uri);
		if (!ok) {
			ck_assert_int_eq(err.code, ERR_INVALID);
			continue;
		}
		AUTO_BUF got = BUF_INIT;
		join(&uri, &got);
		ck_assert_msg(strcmp(buf_str(&got), uris[i].segments) == 0 &&
				      strcmp(uri.query, uris[i].query) == 0,
			      "%s: %s ? %s", uris[i].uri, buf_str(&got), uri.query);
	}
}
TEST_END

TEST(a_uri_of_many_segments_keeps_the_last)
{
	struct err err = ERR_INIT;
	AUTO_ROUTE_URI uri;
	AUTO_BUF text = BUF_INIT;
	for (int i = 0; i < 1000; i++)
		buf_printf(&text, "/s%d", i);
	ck_ok(route_parse(buf_str(&text), &uri, &err), err);
	ck_assert_uint_eq(uri.segment_count, HTTP_SEGMENTS_MAX);
	ck_assert_str_eq(uri.segments[HTTP_SEGMENTS_MAX - 1], "s999");
}
TEST_END

/* --- dispatch: a sink that remembers ------------------------------------------------------ */

struct seen {
	int status;
	char allow[64];
	struct buf body;
};

static bool seen_begin(void *ctx, int status, const struct http_header *fields, size_t count,
		       int64_t content_length)
{
	struct seen *seen = ctx;
	(void)content_length;
	seen->status = status;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(fields[i].name, "allow") == 0)
			snprintf(seen->allow, sizeof(seen->allow), "%s", fields[i].value);
	}
	return true;
}

static bool seen_write(void *ctx, const void *data, size_t len)
{
	struct seen *seen = ctx;
	buf_append(&seen->body, data, len);
	return true;
}

static void ask(const char *method, const char *path, struct seen *seen)
{
	struct err err = ERR_INIT;
	AUTO_ROUTE_URI uri;
	ck_ok(route_parse(path, &uri, &err), err);
	struct http_request request = {.method = method, .query = uri.query};
	memcpy(request.segments, uri.segments, sizeof(request.segments));
	request.segment_count = uri.segment_count;
	const struct http_sink sink = {.ctx = seen, .begin = seen_begin, .write = seen_write};
	const struct endpoint endpoint = {.app = NULL}; /* no route below may touch it */
	buf_clear(&seen->body);
	seen->status = 0;
	seen->allow[0] = '\0';
	route_serve(&endpoint, &request, &sink);
}

TEST(health_needs_no_database_and_unknown_urls_are_404)
{
	struct seen seen = {.body = BUF_INIT};
	ask("GET", "/healthz", &seen);
	ck_assert_int_eq(seen.status, 200);
	ck_assert_str_eq(buf_str(&seen.body), "{\"ok\":true}");
	static const char *const unknown[] = {"/",
					      "/mcpx",
					      "/files",
					      "/files/get",
					      "/files/get/a/b",
					      "/Healthz",
					      "/.well-known/oauth-protected-resource"};
	for (size_t i = 0; i < ARRAY_LEN(unknown); i++) {
		ask("GET", unknown[i], &seen);
		ck_assert_msg(seen.status == 404, "%s: %d", unknown[i], seen.status);
		ck_assert_ptr_nonnull(strstr(buf_str(&seen.body), "\"not_found\""));
	}
	buf_finish(&seen.body);
}
TEST_END

TEST(a_wrong_method_is_405_and_says_which_are_right)
{
	static const char *const cases[][3] = {
		{"GET", "/files/put/T", "PUT, POST"},   {"PUT", "/files/get/T", "GET, HEAD"},
		{"DELETE", "/files/push", "PUT, POST"}, {"POST", "/files/pull", "GET, HEAD"},
		{"POST", "/healthz", "GET, HEAD"},      {"get", "/healthz", "GET, HEAD"},
		{"GE", "/healthz", "GET, HEAD"},        {"", "/healthz", "GET, HEAD"},
	};
	struct seen seen = {.body = BUF_INIT};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		ask(cases[i][0], cases[i][1], &seen);
		ck_assert_msg(seen.status == 405, "%s %s: %d", cases[i][0], cases[i][1],
			      seen.status);
		ck_assert_str_eq(seen.allow, cases[i][2]);
	}
	ask("GET", "/files/put/T", &seen);
	ck_assert_ptr_nonnull(strstr(buf_str(&seen.body), "curl -T FILE"));
	buf_finish(&seen.body);
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		a_uri_is_split_decoded_once_and_freed_from_its_mount_prefix,
		a_uri_of_many_segments_keeps_the_last,
		health_needs_no_database_and_unknown_urls_are_404,
		a_wrong_method_is_405_and_says_which_are_right,
	};
	return unit_run("route", tests, ARRAY_LEN(tests));
}
