/* Hosts, origins and media types as browsers, proxies and attackers write them. */
#include "mcp/guard.h"

#include "http_mem.h"

TEST(a_host_is_ours_local_or_an_address)
{
	static const struct {
		const char *host, *public_url;
		bool ok;
	} cases[] = {
		{"box.example", "https://box.example", true},
		{"box.example:8443", "https://box.example/x/", true},
		{"Box.Example", "https://box.example:9", true},
		{"localhost", NULL, true},
		{"127.0.0.1:1", NULL, true},
		{"[::1]", NULL, true},
		{"[fe80::1]:80", NULL, true},
		{"10.0.0.5", "https://box.example", true},
		{"", NULL, true},
		{"box.example", NULL, false},
		{"box.example", "not a url", false},
		{"127.0.0.1.evil.example", NULL, false},
		{"localhost.evil.example", NULL, false},
		{"localhost:80:90", NULL, false},
		{"localhost:", NULL, false},
		{"localhost:99999", NULL, false},
		{"localhost, evil", NULL, false},
		{"user@localhost", NULL, false},
		{"[::1", NULL, false},
		{"[]", NULL, false},
		{"[box.example]", "https://box.example", false},
		{":80", NULL, false},
		{" ", NULL, false},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		ck_assert_msg(guard_host(cases[i].host, cases[i].public_url) == cases[i].ok,
			      "%s %s", cases[i].host, cases[i].public_url);
}
TEST_END

TEST(an_origin_is_ours_or_listed_or_local_to_a_local_server)
{
	static const struct {
		const char *origin, *public_url, *allowed;
		bool ok;
	} cases[] = {
		{"https://box.example", "https://box.example", NULL, true},
		{"https://box.example:443", "https://BOX.example/", NULL, true},
		{"http://localhost:3000", "http://127.0.0.1:8080", NULL, true},
		{"http://[::1]:3000", "http://localhost", NULL, true},
		{"http://localhost:3000", NULL, NULL, true},
		{"https://a.example", "https://box.example", "https://a.example", true},
		{"https://a.example", NULL, " x , https://A.example/ ,", true},
		{"null", NULL, "null", true},
		{"null", NULL, NULL, false},
		{"null", NULL, "https://null", false},
		{"http://box.example", "https://box.example", NULL, false},
		{"https://box.example:444", "https://box.example", NULL, false},
		{"https://box.example/", "https://box.example", NULL, false},
		{"https://box.example.evil.example", "https://box.example", NULL, false},
		{"https://evil.example", "http://127.0.0.1:8080", NULL, false},
		{"http://localhost:3000", "https://box.example", NULL, false},
		{"file://", NULL, NULL, false},
		{"", NULL, "", false},
		{"https://", NULL, NULL, false},
		{"https://a.example", NULL, "https://a.example:1, a.example, *", false},
		{"https://u:p@box.example", "https://box.example", NULL, false},
		{"https://box.example\r\nx: y", "https://box.example", NULL, false},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		ck_assert_msg(guard_origin(cases[i].origin, cases[i].public_url,
					   cases[i].allowed) == cases[i].ok,
			      "%s %s %s", cases[i].origin, cases[i].public_url, cases[i].allowed);
}
TEST_END

TEST(accept_is_read_by_the_most_exact_range)
{
	static const struct {
		const char *accept;
		bool json, stream;
	} cases[] = {
		{NULL, true, true},
		{"*/*", true, true},
		{"", false, false},
		{"application/json", true, false},
		{"APPLICATION/JSON;charset=utf-8", true, false},
		{"text/event-stream", false, true},
		{"application/json,text/event-stream", true, true},
		{"application/*, text/*", true, true},
		{"text/html", false, false},
		{"text/html, */*;q=0.1", true, true},
		{"*/*;q=0", false, false},
		{"*/*, application/json;q=0", false, true},
		{"application/json;q=0, application/*", false, false},
		{"application/json; q=0.000", false, false},
		{"application/json;q=0.001", true, false},
		{"application/json;x=1;q=0", false, false},
		{"application/json;Q=0 ;x=1", false, false},
		{"application/json; quality=0", true, false},
		{"application/jsonp", false, false},
		{",,;;,", false, false},
		{"application/json;q=", true, false},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct guard_accept got = guard_accept(cases[i].accept);
		ck_assert_msg(got.json == cases[i].json && got.stream == cases[i].stream,
			      "%s: %d %d", cases[i].accept, got.json, got.stream);
	}
}
TEST_END

TEST(a_content_type_is_json_or_not)
{
	ck_assert(guard_is_json("application/json"));
	ck_assert(guard_is_json(" Application/JSON ; charset=utf-8"));
	ck_assert(!guard_is_json(NULL));
	ck_assert(!guard_is_json(""));
	ck_assert(!guard_is_json("application/json-rpc"));
	ck_assert(!guard_is_json("text/json"));
	ck_assert(!guard_is_json(";application/json"));
}
TEST_END

TEST(a_preflight_answer_stays_small_whatever_is_asked)
{
	AUTO_MEM m;
	AUTO_BUF asked = BUF_INIT;
	for (int i = 0; i < 500; i++)
		buf_printf(&asked, "mcp-param-%d, ", i);
	struct guard_cors cors;
	mem_init(&m, "OPTIONS", "", 0);
	mem_header(&m, "access-control-request-headers", asked.data);
	guard_cors(&m.request, "https://a.example", true, &cors);
	ck_assert_uint_le(cors.count, GUARD_CORS_MAX);
	ck_assert_ptr_nonnull(strstr(cors.allow_headers, ", mcp-param-0, mcp-param-1,"));
	ck_assert_uint_lt(strlen(cors.allow_headers), sizeof(cors.allow_headers));
	ck_assert_ptr_null(strstr(cors.allow_headers, "mcp-param-499"));
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		a_host_is_ours_local_or_an_address,
		an_origin_is_ours_or_listed_or_local_to_a_local_server,
		accept_is_read_by_the_most_exact_range,
		a_content_type_is_json_or_not,
		a_preflight_answer_stays_small_whatever_is_asked,
	};
	return unit_run("guard", unit_tests, ARRAY_LEN(unit_tests));
}
