/* Requests read and answers written as plain values. */
#include "mcp/http.h"

#include <errno.h>

#include "base/json.h"
#include "http_mem.h"

TEST(a_header_is_found_by_name_and_counted)
{
	AUTO_MEM m;
	mem_init(&m, "GET", "", 0);
	mem_header(&m, "origin", "a");
	mem_header(&m, "origin", "b");
	ck_assert_str_eq(http_header(&m.request, "origin"), "a");
	ck_assert_uint_eq(http_header_count(&m.request, "origin"), 2);
	ck_assert_ptr_null(http_header(&m.request, "host"));
	ck_assert_uint_eq(http_header_count(&m.request, "host"), 0);
}
TEST_END

TEST(query_parameters_are_decoded_once)
{
	static const struct {
		const char *query, *name, *value; /* NULL: not found */
		int found;
	} cases[] = {
		{"path=a", "path", "a", 1},
		{"x=1&path=a%2Fb+c%2B&y=2", "path", "a/b c+", 1},
		{"path=", "path", "", 1},
		{"path=%E4%BD%A0", "path", "\xE4\xBD\xA0", 1},
		{"path=%e4%bd%a0", "path", "\xE4\xBD\xA0", 1},
		{"path=%252F", "path", "%2F", 1},
		{"path=a=b", "path", "a=b", 1},
		{"xpath=a&pathx=b", "path", NULL, 0},
		{"path", "path", NULL, 0},
		{"", "path", NULL, 0},
		{"path=%0", "path", NULL, -1},
		{"path=%", "path", NULL, -1},
		{"path=%zz", "path", NULL, -1},
		{"path=a%00b", "path", NULL, -1},
		{"path=%2&y=F", "path", NULL, -1},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct http_request request = {.query = cases[i].query};
		AUTO_BUF out = BUF_INIT;
		ck_assert_msg(http_query(&request, cases[i].name, &out) == cases[i].found, "%s",
			      cases[i].query);
		ck_assert_str_eq(buf_str(&out), cases[i].value == NULL ? "" : cases[i].value);
	}
}
TEST_END

static enum err_code read_code(int64_t announced, size_t len, size_t max, size_t breaks_at)
{
	static const char text[4000];
	AUTO_MEM m;
	AUTO_BUF out = BUF_INIT;
	struct err err = ERR_INIT;
	mem_init(&m, "POST", text, len);
	m.request.content_length = announced;
	m.breaks_at = breaks_at;
	bool ok = http_read_body(&m.request, max, &out, &err);
	ck_assert_int_eq(ok, err.code == ERR_NONE);
	if (ok)
		ck_assert_uint_eq(out.len, len);
	ck_assert_uint_le(out.len, max + 1);
	return err.code;
}

TEST(a_body_is_read_to_its_announced_length_and_no_further_than_the_limit)
{
	/* checklist 8: announced and chunked alike */
	ck_assert_int_eq(read_code(3000, 3000, 3000, 0), ERR_NONE);
	ck_assert_int_eq(read_code(-1, 3000, 3000, 0), ERR_NONE);
	ck_assert_int_eq(read_code(0, 0, 3000, 0), ERR_NONE);
	ck_assert_int_eq(read_code(3001, 3001, 3000, 0), ERR_TOO_LARGE);
	ck_assert_int_eq(read_code(-1, 3001, 3000, 0), ERR_TOO_LARGE);
	ck_assert_int_eq(read_code(INT64_MAX, 10, 3000, 0), ERR_TOO_LARGE);
	ck_assert_int_eq(read_code(2000, 1999, 3000, 0), ERR_INVALID);
	ck_assert_int_eq(read_code(2000, 2000, 3000, 1000), ERR_INVALID);
	ck_assert_int_eq(read_code(-1, 2000, 3000, 1000), ERR_INVALID);
}
TEST_END

TEST(bytes_beyond_the_announced_length_are_left_alone)
{
	AUTO_MEM m;
	AUTO_BUF out = BUF_INIT;
	struct err err = ERR_INIT;
	mem_init(&m, "POST", "abcdef", 6);
	m.request.content_length = 3;
	ck_ok(http_read_body(&m.request, 100, &out, &err), err);
	ck_assert_str_eq(buf_str(&out), "abc");
}
TEST_END

TEST(an_answer_has_length_type_and_safety_fields)
{
	AUTO_MEM m;
	struct http_header extra = {"allow", "POST"};
	mem_init(&m, "GET", "", 0);
	struct http_sink sink = mem_sink(&m);
	ck_assert(http_answer(&sink, 200, "text/plain", "hello", 5, &extra, 1));
	ck_assert_int_eq(m.status, 200);
	ck_assert_int_eq(m.length, 5);
	ck_assert_str_eq(m.out.data, "hello");
	ck_assert(mem_has_field(&m, "content-type", "text/plain"));
	ck_assert(mem_has_field(&m, "x-content-type-options", "nosniff"));
	ck_assert(mem_has_field(&m, "cache-control", "no-store"));
	ck_assert(mem_has_field(&m, "allow", "POST"));
}
TEST_END

TEST(an_answer_without_body_has_no_type_and_writes_nothing)
{
	AUTO_MEM m;
	mem_init(&m, "GET", "", 0);
	struct http_sink sink = mem_sink(&m);
	ck_assert(http_answer(&sink, 405, NULL, NULL, 0, NULL, 0));
	ck_assert_int_eq(m.length, 0);
	ck_assert_int_eq(m.writes, 0);
	ck_assert(!mem_has_field(&m, "content-type", NULL));
}
TEST_END

TEST(an_error_is_answered_with_its_status_as_json)
{
	static const struct {
		enum err_code code;
		int status;
		const char *field;
	} cases[] = {{ERR_NOT_FOUND, 404, NULL},
		     {ERR_UNAUTHENTICATED, 401, "www-authenticate"},
		     {ERR_BUSY, 503, "retry-after"}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_MEM m;
		struct err err;
		err_set(&err, cases[i].code, "what \"happened\"");
		err_hint(&err, "do this");
		mem_init(&m, "GET", "", 0);
		struct http_sink sink = mem_sink(&m);
		ck_assert(http_answer_error(&sink, &err));
		ck_assert_int_eq(m.status, cases[i].status);
		AUTO_JSON *body = json_parse(m.out.data, m.out.len, &err);
		ck_assert_str_eq(json_get_str(body, "error"), err_name(cases[i].code));
		ck_assert_str_eq(json_get_str(body, "message"), "what \"happened\"");
		ck_assert_str_eq(json_get_str(body, "hint"), "do this");
		if (cases[i].field != NULL)
			ck_assert(mem_has_field(&m, cases[i].field, NULL));
	}
}
TEST_END

TEST(an_error_of_the_host_shows_nothing_of_it)
{
	AUTO_MEM m;
	struct err err;
	errno = EIO;
	err_sys(&err, "open /srv/secret");
	mem_init(&m, "GET", "", 0);
	struct http_sink sink = mem_sink(&m);
	ck_assert(http_answer_error(&sink, &err));
	ck_assert_int_eq(m.status, 500);
	ck_assert_ptr_null(strstr(m.out.data, "secret"));
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		a_header_is_found_by_name_and_counted,
		query_parameters_are_decoded_once,
		a_body_is_read_to_its_announced_length_and_no_further_than_the_limit,
		bytes_beyond_the_announced_length_are_left_alone,
		an_answer_has_length_type_and_safety_fields,
		an_answer_without_body_has_no_type_and_writes_nothing,
		an_error_is_answered_with_its_status_as_json,
		an_error_of_the_host_shows_nothing_of_it,
	};
	return unit_run("http", unit_tests, ARRAY_LEN(unit_tests));
}
