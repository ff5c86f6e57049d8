/*
 * The transport rungs: HTTP methods, hosts, media types, bodies, tokens, the log. "checklist N"
 * names the point of the protocol's checklist that a test stands for.
 */
#include "mcp/endpoint.h"

#include "endpoint_kit.h"

#define PING "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"

/* checklist 2 */
TEST(other_http_methods_get_405_with_allow_and_no_body)
{
	static const char *const methods[] = {"GET", "HEAD", "DELETE", "PUT", "PATCH", "post", "X"};
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		AUTO_MEM m;
		mem_init(&m, methods[i], PING, strlen(PING));
		kit_serve(&m);
		ck_assert_int_eq(m.status, 405);
		ck_assert(mem_has_field(&m, "allow", "POST, OPTIONS"));
		ck_assert_uint_eq(m.out.len, 0);
		ck_assert(!m.body_was_read);
	}
}
TEST_END

/* checklist 3 */
TEST(a_preflight_of_an_allowed_origin_needs_no_token)
{
	AUTO_MEM m;
	mem_init(&m, "OPTIONS", "", 0);
	mem_header(&m, "origin", "https://APP.example:8443");
	mem_header(&m, "access-control-request-headers",
		   "authorization, mcp-param-region,x-evil, mcp-param-a\tb");
	kit_serve(&m);
	ck_assert_int_eq(m.status, 204);
	ck_assert(mem_has_field(&m, "access-control-allow-origin", "https://APP.example:8443"));
	ck_assert(mem_has_field(&m, "vary", "Origin"));
	ck_assert(mem_has_field(&m, "access-control-allow-methods", "POST, OPTIONS"));
	ck_assert(mem_has_field(&m, "access-control-max-age", "600"));
	ck_assert_ptr_nonnull(strstr(m.fields.data, "Authorization, Content-Type"));
	ck_assert_ptr_nonnull(strstr(m.fields.data, "Last-Event-ID, mcp-param-region\n"));
}
TEST_END

/* checklist 3 */
TEST(a_preflight_of_another_origin_is_refused)
{
	AUTO_MEM m, without;
	mem_init(&m, "OPTIONS", "", 0);
	mem_header(&m, "origin", "https://app.example");
	kit_serve(&m);
	ck_assert_int_eq(m.status, 403);
	ck_assert(!mem_has_field(&m, "access-control-allow-origin", NULL));
	mem_init(&without, "OPTIONS", "", 0);
	kit_serve(&without);
	ck_assert_int_eq(without.status, 405);
}
TEST_END

TEST(answers_and_refusals_to_an_allowed_origin_can_be_read_by_its_page)
{
	static const char *const tokens[] = {"Bearer sesame", "Bearer wrong"};
	for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
		AUTO_MEM m;
		mem_init(&m, "POST", PING, strlen(PING));
		mem_header(&m, "content-type", "application/json");
		mem_header(&m, "authorization", tokens[i]);
		mem_header(&m, "origin", "http://other.example:80");
		kit_serve(&m);
		ck_assert_int_eq(m.status, i == 0 ? 200 : 401);
		ck_assert(mem_has_field(&m, "access-control-allow-origin",
					"http://other.example:80"));
		ck_assert(mem_has_field(&m, "access-control-expose-headers", "WWW-Authenticate"));
	}
}
TEST_END

/* checklist 4 */
TEST(only_json_is_taken_whatever_its_parameters)
{
	static const struct {
		const char *type;
		int status;
	} cases[] = {
		{"application/json", 200},
		{"application/json; charset=utf-8", 200},
		{"APPLICATION/JSON", 200},
		{"application/json ;x=y", 200},
		{"text/plain", 415},
		{"application/jsonx", 415},
		{"", 415},
		{NULL, 415},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_MEM m;
		mem_init(&m, "POST", PING, strlen(PING));
		mem_header(&m, "authorization", "Bearer sesame");
		if (cases[i].type != NULL)
			mem_header(&m, "content-type", cases[i].type);
		kit_serve(&m);
		ck_assert_msg(m.status == cases[i].status, "%s: %d", cases[i].type, m.status);
	}
}
TEST_END

/* checklist 5 */
TEST(every_reasonable_accept_is_served_in_a_type_it_admits)
{
	static const struct {
		const char *accept;
		int status;
		bool stream;
	} cases[] = {
		{NULL, 200, false},
		{"*/*", 200, false},
		{"application/json", 200, false},
		{"application/*;q=0.5", 200, false},
		{"application/json, text/event-stream", 200, false},
		{"text/event-stream", 200, true},
		{"text/*", 200, true},
		{"application/json;q=0, */*", 200, true},
		{"text/html", 406, false},
		{"*/*;q=0", 406, false},
		{"application/json; q=0.0", 406, false},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_MEM m;
		mem_init(&m, "POST", PING, strlen(PING));
		mem_header(&m, "authorization", "Bearer sesame");
		mem_header(&m, "content-type", "application/json");
		if (cases[i].accept != NULL)
			mem_header(&m, "accept", cases[i].accept);
		kit_serve(&m);
		ck_assert_msg(m.status == cases[i].status, "%s: %d", cases[i].accept, m.status);
		ck_assert_int_eq(m.length == -1, cases[i].stream);
		AUTO_JSON *body = kit_json(&m);
		ck_assert_int_eq(json_has(body, "result"), m.status == 200);
	}
}
TEST_END

TEST(a_stream_has_one_event_and_the_fields_that_keep_proxies_from_collecting_it)
{
	AUTO_MEM m;
	kit_post(&m, PING);
	m.headers[1].value = "text/event-stream";
	kit_serve(&m);
	ck_assert_str_eq(m.out.data, "event: message\ndata: "
				     "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n");
	ck_assert(mem_has_field(&m, "cache-control", "no-cache, no-transform"));
	ck_assert(mem_has_field(&m, "x-accel-buffering", "no"));
	ck_assert_int_eq(m.writes, 1);
}
TEST_END

TEST(errors_by_status_are_json_even_for_those_who_want_a_stream)
{
	AUTO_MEM m;
	kit_post(&m, "{");
	m.headers[1].value = "text/event-stream";
	kit_serve(&m);
	ck_assert_int_eq(m.status, 400);
	ck_assert(mem_has_field(&m, "content-type", "application/json"));
}
TEST_END

/* checklist 6 */
TEST(foreign_hosts_and_origins_are_refused)
{
	static const struct {
		const char *host, *origin;
		int status;
	} cases[] = {
		{"box.example", NULL, 200},
		{"BOX.example:443", "https://box.example", 200},
		{"", NULL, 200},
		{"localhost:8080", NULL, 200},
		{"[::1]:8080", NULL, 200},
		{"192.168.1.7:8080", NULL, 200},
		{"box.example", "https://app.example:8443", 200},
		{"evil.example", NULL, 403},
		{"127.evil.example", NULL, 403},
		{"box.example.evil.example", NULL, 403},
		{"box.example@evil.example", NULL, 403},
		{"box.example", "https://evil.example", 403},
		{"box.example", "http://box.example", 403},
		{"box.example", "https://box.example:444", 403},
		{"box.example", "null", 403},
		{"box.example", "", 403},
		{"box.example", "http://localhost:3000", 403},
		{"evil.example", "https://evil.example", 403},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_MEM m;
		kit_post(&m, PING);
		m.request.host = cases[i].host;
		if (cases[i].origin != NULL)
			mem_header(&m, "origin", cases[i].origin);
		kit_serve(&m);
		ck_assert_msg(m.status == cases[i].status, "%s %s: %d", cases[i].host,
			      cases[i].origin, m.status);
		ck_assert(m.status == 200 || !m.body_was_read);
	}
}
TEST_END

/* checklist 7 */
TEST(a_notification_is_accepted_without_a_body)
{
	static const char *const bodies[] = {
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unknown\",\"params\":[1]}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{\"name\":\"echo\","
		"\"arguments\":{\"command\":\"x\"}}}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
		"cancelled\",\"params\":{" KIT_CLAIMS "}}",
	};
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		AUTO_MEM m;
		kit_post(&m, bodies[i]);
		kit_serve(&m);
		ck_assert_int_eq(m.status, 202);
		ck_assert_uint_eq(m.out.len, 0);
	}
	ck_assert_int_eq(kit_calls, 0);
}
TEST_END

/* checklist 8 */
TEST(a_body_over_the_limit_gets_413_announced_or_not)
{
	AUTO_FREE char *body = xcalloc(kit.max_body + 2, 1);
	memset(body, ' ', kit.max_body + 1);
	for (int chunked = 0; chunked < 2; chunked++) {
		AUTO_MEM m;
		kit_post(&m, body);
		if (chunked)
			m.request.content_length = -1;
		kit_serve(&m);
		ck_assert_int_eq(m.status, 413);
		ck_assert_int_eq(m.body_was_read, chunked);
	}
}
TEST_END

TEST(a_body_that_breaks_off_is_refused)
{
	AUTO_MEM m;
	kit_post(&m, PING);
	m.request.content_length += 5;
	kit_serve(&m);
	ck_assert_int_eq(m.status, 400);
}
TEST_END

/* checklist 10, 11 */
TEST(session_ids_and_event_ids_are_ignored_in_both_eras)
{
	AUTO_MEM m, old;
	AUTO_BUF body = BUF_INIT;
	kit_modern(&m, &body, "tools/list", NULL, "");
	mem_header(&m, "mcp-session-id", "a");
	mem_header(&m, "mcp-session-id", "b");
	mem_header(&m, "last-event-id", "9");
	kit_serve(&m);
	ck_assert_int_eq(m.status, 200);
	kit_post(&old, PING);
	mem_header(&old, "mcp-session-id", "gone");
	mem_header(&old, "last-event-id", "9");
	kit_serve(&old);
	ck_assert_int_eq(old.status, 200);
}
TEST_END

/* checklist 85 */
TEST(without_a_good_token_nothing_is_read)
{
	static const struct {
		const char *token;
		bool presented;
	} cases[] = {{NULL, false},           {"Basic c2VzYW1l", false}, {"Bearer ", false},
		     {"sesame", false},       {"Bearer wrong", true},    {"bearer wrong", true},
		     {"Bearer sesame ", true}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_MEM m;
		mem_init(&m, "POST", "{", 1);
		mem_header(&m, "content-type", "application/json");
		if (cases[i].token != NULL)
			mem_header(&m, "authorization", cases[i].token);
		kit_serve(&m);
		ck_assert_int_eq(m.status, 401);
		ck_assert(!m.body_was_read);
		ck_assert(mem_has_field(&m, "www-authenticate",
					cases[i].presented
						? "Bearer realm=\"mcp\", error=\"invalid_token\""
						: "Bearer realm=\"mcp\""));
		AUTO_JSON *body = kit_json(&m);
		const char *message = kit_text(body, "error.message");
		ck_assert_int_eq(strstr(message, "CGIPassAuth On") != NULL, cases[i].token == NULL);
		ck_assert(cases[i].token == NULL || strstr(message, "wrong") == NULL);
	}
}
TEST_END

TEST(two_authorization_headers_are_none)
{
	AUTO_MEM m;
	kit_post(&m, PING);
	mem_header(&m, "authorization", "Bearer sesame");
	kit_serve(&m);
	ck_assert_int_eq(m.status, 401);
}
TEST_END

/* checklist 86 */
TEST(a_token_in_the_query_is_not_looked_at)
{
	AUTO_MEM m;
	mem_init(&m, "POST", PING, strlen(PING));
	m.request.query = "access_token=sesame&token=sesame";
	mem_header(&m, "content-type", "application/json");
	kit_serve(&m);
	ck_assert_int_eq(m.status, 401);
}
TEST_END

TEST(a_database_that_cannot_be_asked_is_503_not_401)
{
	AUTO_MEM m;
	kit_post(&m, PING);
	m.headers[2].value = "Bearer busy";
	kit_serve(&m);
	ck_assert_int_eq(m.status, 503);
	ck_assert(mem_has_field(&m, "retry-after", NULL));
}
TEST_END

TEST(without_authentication_callers_are_anonymous_and_lists_public)
{
	bool (*saved)(void *, const char *, const char **, struct err *) = kit.authenticate;
	kit_close();
	kit.authenticate = NULL;
	kit_open();
	AUTO_JSON *echo =
		kit_ask_legacy("2025-06-18", "tools/call",
			       "{\"name\":\"echo\",\"arguments\":{\"command\":\"x\"}}", 200);
	ck_assert_str_eq(kit_text(echo, "result.structuredContent.who"), "anonymous");
	AUTO_JSON *list = kit_ask_modern("tools/list", NULL, "", 200);
	ck_assert_str_eq(kit_text(list, "result.cacheScope"), "public");
	kit.authenticate = saved;
}
TEST_END

/* checklist 91: standard error is a file for the time of one request */
TEST(the_log_has_one_line_without_arguments_or_tokens)
{
	char text[4096] = "";
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);
	log_open("kit", LOG_INFO);
	dup2(fileno(file), STDERR_FILENO);
	AUTO_JSON *good =
		kit_ask_legacy(NULL, "tools/call",
			       "{\"name\":\"echo\",\"arguments\":{\"command\":\"hush\"}}", 200);
	AUTO_JSON *bad = kit_ask_legacy(NULL, "x\\\" status=1 \\n", NULL, 200);
	dup2(saved, STDERR_FILENO);
	ck_assert(json_has(good, "result") && json_has(bad, "error"));
	rewind(file);
	ck_assert_uint_gt(fread(text, 1, sizeof(text) - 1, file), 0);
	fclose(file);
	ck_assert_ptr_nonnull(strstr(text, "method=\"tools/call\" tool=echo principal=tester "
					   "status=200 outcome=ok ms="));
	ck_assert_ptr_nonnull(strstr(text, "method=\"x\\\" status=1 "));
	ck_assert_ptr_nonnull(strstr(text, "outcome=unknown_method"));
	ck_assert_ptr_null(strstr(text, "hush"));
	ck_assert_ptr_null(strstr(text, "sesame"));
	const char *second = strchr(text, '\n') + 1;
	ck_assert_str_eq(strchr(second, '\n'), "\n");
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		other_http_methods_get_405_with_allow_and_no_body,
		a_preflight_of_an_allowed_origin_needs_no_token,
		a_preflight_of_another_origin_is_refused,
		answers_and_refusals_to_an_allowed_origin_can_be_read_by_its_page,
		only_json_is_taken_whatever_its_parameters,
		every_reasonable_accept_is_served_in_a_type_it_admits,
		a_stream_has_one_event_and_the_fields_that_keep_proxies_from_collecting_it,
		errors_by_status_are_json_even_for_those_who_want_a_stream,
		foreign_hosts_and_origins_are_refused,
		a_notification_is_accepted_without_a_body,
		a_body_over_the_limit_gets_413_announced_or_not,
		a_body_that_breaks_off_is_refused,
		session_ids_and_event_ids_are_ignored_in_both_eras,
		without_a_good_token_nothing_is_read,
		two_authorization_headers_are_none,
		a_token_in_the_query_is_not_looked_at,
		a_database_that_cannot_be_asked_is_503_not_401,
		without_authentication_callers_are_anonymous_and_lists_public,
		the_log_has_one_line_without_arguments_or_tokens,
	};
	kit_open();
	int failed = unit_run("endpoint", unit_tests, ARRAY_LEN(unit_tests));
	kit_close();
	return failed;
}
