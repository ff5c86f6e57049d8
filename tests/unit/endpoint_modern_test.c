/* Requests that carry their own metadata: envelope, mirrored headers, discovery, caching. */
#include "endpoint_kit.h"
#include "mcp/endpoint.h"

#define VERSION_KEY "\"io.modelcontextprotocol/protocolVersion\""
#define CAPS_KEY    "\"io.modelcontextprotocol/clientCapabilities\""
#define INFO_KEY    "io.modelcontextprotocol/serverInfo"

/* server/discover with a given _meta, right headers. */
static int meta_status(const char *params, int *code)
{
	AUTO_MEM m;
	AUTO_BUF body = BUF_INIT;
	buf_printf(&body, "{\"jsonrpc\":\"2.0\",\"id\":\"i\",\"method\":\"server/discover\"%s%s}",
		   params == NULL ? "" : ",\"params\":", params == NULL ? "" : params);
	kit_post(&m, body.data);
	mem_header(&m, "mcp-protocol-version", "2026-07-28");
	mem_header(&m, "mcp-method", "server/discover");
	kit_serve(&m);
	AUTO_JSON *answer = kit_json(&m);
	ck_assert_str_eq(json_get_str(answer, "id"), "i");
	*code = kit_code(answer);
	return m.status;
}

/* checklist 20, 21, 22 */
TEST(the_envelope_must_be_whole_and_well_typed)
{
	static const struct {
		const char *params;
		int code;
	} cases[] = {
		{NULL, -32602},
		{"{}", -32602},
		{"{\"_meta\":null}", -32602},
		{"{\"_meta\":[]}", -32602},
		{"{\"_meta\":{}}", -32602},
		{"{\"_meta\":{" VERSION_KEY ":\"2026-07-28\"}}", -32602},
		{"{\"_meta\":{" CAPS_KEY ":{}}}", -32602},
		{"{\"_meta\":{" VERSION_KEY ":5," CAPS_KEY ":{}}}", -32602},
		{"{\"_meta\":{" VERSION_KEY ":null," CAPS_KEY ":{}}}", -32602},
		{"{\"_meta\":{" VERSION_KEY ":\"2026-07-28\"," CAPS_KEY ":[]}}", -32602},
		{"{\"_meta\":{" VERSION_KEY ":\"2026-07-28\"," CAPS_KEY ":null}}", -32602},
		{"{\"_meta\":{" VERSION_KEY ":\"2026-07-28\"," CAPS_KEY
		 ":{},\"io.modelcontextprotocol/logLevel\":\"loud\"}}",
		 -32602},
		{"{\"_meta\":{" VERSION_KEY ":\"2026-07-28\"," CAPS_KEY
		 ":{},\"io.modelcontextprotocol/clientInfo\":\"me\"}}",
		 -32602},
		{"{\"_meta\":{" VERSION_KEY ":\"2026-07-28\"," CAPS_KEY
		 ":{},\"progressToken\":1.5}}",
		 -32602},
		{"{\"_meta\":{" VERSION_KEY ":\"2026-07-28\"," CAPS_KEY
		 ":{},\"progressToken\":null}}",
		 -32602},
		{"{\"_meta\":{" VERSION_KEY ":\"2026-07-28\"," CAPS_KEY ":{}}}", 0},
		{"{\"_meta\":{" VERSION_KEY ":\"2026-07-28\"," CAPS_KEY
		 ":{\"new\":{\"x\":[1]},\"sampling\":{}},\"x.example/y\":null,\"progressToken\":0,"
		 "\"io.modelcontextprotocol/logLevel\":\"emergency\","
		 "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}",
		 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int code;
		int status = meta_status(cases[i].params, &code);
		ck_assert_msg(code == cases[i].code && status == (code == 0 ? 200 : 400),
			      "%s: %d %d", cases[i].params, status, code);
	}
}
TEST_END

struct header_case {
	const char *version, *method, *name; /* headers; NULL: not sent */
	const char *body_version, *body_method, *params;
	int status, code;
};

static struct json_object *ask_case(const struct header_case *c)
{
	AUTO_MEM m;
	AUTO_BUF body = BUF_INIT;
	buf_printf(&body,
		   "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"%s\",\"params\":{%s\"_meta\":"
		   "{" VERSION_KEY ":\"%s\"," CAPS_KEY ":{}}}}",
		   c->body_method, c->params, c->body_version);
	kit_post(&m, body.data);
	if (c->version != NULL)
		mem_header(&m, "mcp-protocol-version", c->version);
	if (c->method != NULL)
		mem_header(&m, "mcp-method", c->method);
	if (c->name != NULL)
		mem_header(&m, "mcp-name", c->name);
	kit_serve(&m);
	AUTO_JSON *answer = kit_json(&m);
	ck_assert_msg(m.status == c->status && kit_code(answer) == c->code, "%s %s %s: %s",
		      c->version, c->method, c->name, m.out.data);
	ck_assert_int_eq(json_get_int(answer, "id", 0), 3);
	return json_object_get(answer);
}

#define NOW  "2026-07-28"
#define ECHO "\"name\":\"echo\",\"arguments\":{\"command\":\"x\"},"

/* checklist 23, 24, 25, 26, 27, 28, 29, 34 */
TEST(headers_must_agree_with_the_body)
{
	static const struct header_case cases[] = {
		/* 23: the version is supported by nobody */
		{"v999.0.0", "tools/list", NULL, "v999.0.0", "tools/list", "", 400, -32022},
		{"2025-11-25", "tools/list", NULL, "2025-11-25", "tools/list", "", 400, -32022},
		{NULL, "tools/list", NULL, "2025-11-25", "tools/list", "", 400, -32022},
		/* 24: the versions differ */
		{NOW, "tools/list", NULL, "v999.0.0", "tools/list", "", 400, -32020},
		{"2025-11-25", "tools/list", NULL, NOW, "tools/list", "", 400, -32020},
		{"", "tools/list", NULL, NOW, "tools/list", "", 400, -32020},
		/* 25 */
		{NULL, "tools/list", NULL, NOW, "tools/list", "", 400, -32020},
		/* 26 */
		{NOW, NULL, NULL, NOW, "tools/list", "", 400, -32020},
		{NOW, "tools/call", NULL, NOW, "tools/list", "", 400, -32020},
		{NOW, "Tools/list", NULL, NOW, "tools/list", "", 400, -32020},
		{NOW, "", NULL, NOW, "tools/list", "", 400, -32020},
		/* 27 */
		{NOW, "tools/call", NULL, NOW, "tools/call", ECHO, 400, -32020},
		{NOW, "tools/call", "fail", NOW, "tools/call", ECHO, 400, -32020},
		{NOW, "tools/call", "ECHO", NOW, "tools/call", ECHO, 400, -32020},
		{NOW, "tools/call", "", NOW, "tools/call", ECHO, 400, -32020},
		{NOW, "prompts/get", NULL, NOW, "prompts/get", "\"name\":\"p\",", 400, -32020},
		{NOW, "resources/read", NULL, NOW, "resources/read", "\"uri\":\"a:b\",", 400,
		 -32020},
		{NOW, "resources/read", "a:c", NOW, "resources/read", "\"uri\":\"a:b\",", 400,
		 -32020},
		{NOW, "tasks/get", NULL, NOW, "tasks/get", "\"taskId\":\"t\",", 400, -32020},
		{NOW, "tasks/cancel", "u", NOW, "tasks/cancel", "\"taskId\":\"t\",", 400, -32020},
		{NOW, "tasks/update", "u", NOW, "tasks/update", "\"taskId\":\"t\",", 400, -32020},
		{NOW, "tools/call", "echo", NOW, "tools/call", ECHO, 200, 0},
		{NOW, "tools/list", "whatever", NOW, "tools/list", "", 200, 0},
		{NOW, "tools/list", "\xFF", NOW, "tools/list", "", 200, 0},
		/* without the source field the parameter check tells */
		{NOW, "tools/call", NULL, NOW, "tools/call", "", 200, -32602},
		{NOW, "tools/call", "x", NOW, "tools/call", "\"name\":5,", 200, -32602},
		{NOW, "resources/read", NULL, NOW, "resources/read", "", 200, -32602},
		/* 28: the sentinel */
		{NOW, "tools/call", "=?base64?ZWNobw==?=", NOW, "tools/call", ECHO, 200, 0},
		{NOW, "tools/call", "=?base64?5L2g?=", NOW, "tools/call",
		 "\"name\":\"\xE4\xBD\xA0\",", 200, -32602},
		{NOW, "tools/call", "\xE4\xBD\xA0", NOW, "tools/call", "\"name\":\"\xE4\xBD\xA0\",",
		 400, -32020},
		{NOW, "tools/call", "=?base64?ZWNobw?=", NOW, "tools/call", ECHO, 400, -32020},
		{NOW, "tools/call", "=?base64?ZWNo*w==?=", NOW, "tools/call", ECHO, 400, -32020},
		{NOW, "tools/call", "=?base64?wIA=?=", NOW, "tools/call", "\"name\":\"\\u0000\",",
		 400, -32020},
		{NOW, "tools/call", "=?BASE64?ZWNobw==?=", NOW, "tools/call", ECHO, 400, -32020},
		{NOW, "tools/call", "=?base64?ZWNobw==", NOW, "tools/call",
		 "\"name\":\"=?base64?ZWNobw==\",", 200, -32602},
		{NOW, "tools/call", "ZWNobw==?=", NOW, "tools/call", "\"name\":\"ZWNobw==?=\",",
		 200, -32602},
		/* 29 */
		{" \t2026-07-28 ", "\ttools/call ", "  echo\t", NOW, "tools/call", ECHO, 200, 0},
		/* 34 */
		{NOW, "foo/bar", NULL, NOW, "foo/bar", "", 404, -32601},
		{NOW, "initialize", NULL, NOW, "initialize", "", 404, -32601},
		{NOW, "ping", NULL, NOW, "ping", "", 404, -32601},
		{NOW, "logging/setLevel", NULL, NOW, "logging/setLevel", "", 404, -32601},
		{NOW, "resources/subscribe", NULL, NOW, "resources/subscribe", "", 404, -32601},
		{NOW, "resources/unsubscribe", NULL, NOW, "resources/unsubscribe", "", 404, -32601},
		{NOW, "tasks/list", NULL, NOW, "tasks/list", "", 404, -32601},
		{NOW, "tasks/result", NULL, NOW, "tasks/result", "", 404, -32601},
		{NOW, "subscriptions/listen", NULL, NOW, "subscriptions/listen", "", 404, -32601},
		{NOW, "prompts/get", "p", NOW, "prompts/get", "\"name\":\"p\",", 404, -32601},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_JSON *answer = ask_case(&cases[i]);
		(void)answer;
	}
}
TEST_END

/* checklist 23 */
TEST(an_unsupported_version_is_told_what_is_supported)
{
	static const struct header_case asked = {"v999.0.0",   "tools/list", NULL, "v999.0.0",
						 "tools/list", "",           400,  -32022};
	AUTO_JSON *answer = ask_case(&asked);
	ck_assert_str_eq(kit_text(answer, "error.data.requested"), "v999.0.0");
	ck_assert_str_eq(json_text(kit_at(answer, "error.data.supported"), NULL),
			 "[\"2026-07-28\"]");
}
TEST_END

/* checklist 30 */
TEST(no_mcp_header_may_come_twice)
{
	static const char *const names[] = {"mcp-protocol-version", "mcp-method", "mcp-name",
					    "mcp-param-any"};
	static const char *const values[] = {"2026-07-28", "tools/call", "echo", "x"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		AUTO_MEM m;
		AUTO_BUF body = BUF_INIT;
		kit_modern(&m, &body, "tools/call", "echo", ECHO);
		mem_header(&m, names[i], values[i]);
		if (i == 3)
			mem_header(&m, names[i], values[i]);
		kit_serve(&m);
		AUTO_JSON *answer = kit_json(&m);
		ck_assert_int_eq(m.status, 400);
		ck_assert_int_eq(kit_code(answer), -32020);
		ck_assert_int_eq(json_get_int(answer, "id", 0), 7);
	}
	ck_assert_int_eq(kit_calls, 0);
}
TEST_END

/* checklist 31, 32 */
TEST(repeated_arguments_must_agree_with_their_headers)
{
	static const struct {
		const char *arguments, *region, *count, *on;
		int status;
	} cases[] = {
		{"{}", NULL, NULL, NULL, 200},
		{"{\"region\":\"eu\"}", "eu", NULL, NULL, 200},
		{"{\"region\":\"eu\"}", "=?base64?ZXU=?=", NULL, NULL, 200},
		{"{\"region\":\"eu\"}", NULL, NULL, NULL, 400},
		{"{\"region\":\"eu\"}", "us", NULL, NULL, 400},
		{"{\"region\":\"eu\"}", "EU", NULL, NULL, 400},
		{"{}", "eu", NULL, NULL, 400},
		{"{\"count\":42}", NULL, "42", NULL, 200},
		{"{\"count\":42}", NULL, "42.0", NULL, 200},
		{"{\"count\":42.0}", NULL, "42", NULL, 200},
		{"{\"count\":42}", NULL, "4.2e1", NULL, 200},
		{"{\"count\":42}", NULL, "43", NULL, 400},
		{"{\"count\":42}", NULL, "0x2a", NULL, 400},
		{"{\"count\":42}", NULL, "forty-two", NULL, 400},
		{"{\"count\":9007199254740993}", NULL, "9007199254740993", NULL, 400},
		{"{\"deep\":{\"on\":true}}", NULL, NULL, "true", 200},
		{"{\"deep\":{\"on\":true}}", NULL, NULL, "True", 400},
		{"{\"deep\":{\"on\":false}}", NULL, NULL, NULL, 400},
		{"{\"deep\":{}}", NULL, NULL, "false", 400},
		{NULL, "eu", NULL, NULL, 400},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_MEM m;
		AUTO_BUF body = BUF_INIT, params = BUF_INIT;
		buf_puts(&params, "\"name\":\"mirror\",");
		if (cases[i].arguments != NULL)
			buf_printf(&params, "\"arguments\":%s,", cases[i].arguments);
		kit_modern(&m, &body, "tools/call", "mirror", params.data);
		if (cases[i].region != NULL)
			mem_header(&m, "mcp-param-region", cases[i].region);
		if (cases[i].count != NULL)
			mem_header(&m, "mcp-param-count", cases[i].count);
		if (cases[i].on != NULL)
			mem_header(&m, "mcp-param-is-on", cases[i].on);
		mem_header(&m, "mcp-param-unknown", "\xFF");
		kit_serve(&m);
		AUTO_JSON *answer = kit_json(&m);
		ck_assert_msg(m.status == cases[i].status, "case %zu: %s", i, m.out.data);
		ck_assert_int_eq(kit_code(answer), m.status == 200 ? 0 : -32020);
	}
}
TEST_END

TEST(a_null_argument_counts_as_not_set)
{
	AUTO_MEM m;
	AUTO_BUF body = BUF_INIT;
	kit_modern(&m, &body, "tools/call", "mirror",
		   "\"name\":\"mirror\",\"arguments\":{\"region\":null},");
	mem_header(&m, "mcp-param-region", "");
	kit_serve(&m);
	ck_assert_int_eq(m.status, 400);
}
TEST_END

TEST(the_legacy_era_knows_no_mirrored_headers)
{
	AUTO_MEM m;
	kit_post(&m, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
		     "\"name\":\"mirror\",\"arguments\":{\"region\":\"eu\"}}}");
	mem_header(&m, "mcp-method", "ping");
	mem_header(&m, "mcp-name", "x");
	mem_header(&m, "mcp-param-region", "us");
	kit_serve(&m);
	ck_assert_int_eq(m.status, 200);
	AUTO_JSON *answer = kit_json(&m);
	ck_assert_int_eq(kit_code(answer), 0);
}
TEST_END

/* checklist 35, 60 */
TEST(results_say_what_they_are_and_six_methods_how_long_they_hold)
{
	static const struct {
		const char *method, *name, *params;
		bool cacheable;
	} cases[] = {
		{"server/discover", NULL, "", true},
		{"tools/list", NULL, "", true},
		{"prompts/list", NULL, "", true},
		{"resources/list", NULL, "", true},
		{"resources/templates/list", NULL, "", true},
		{"tools/call", "echo", ECHO, false},
		{"tools/call", "echo", "\"name\":\"echo\",", false},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_JSON *answer =
			kit_ask_modern(cases[i].method, cases[i].name, cases[i].params, 200);
		struct json_object *result = json_get(answer, "result");
		ck_assert_str_eq(json_get_str(result, "resultType"), "complete");
		struct json_object *info = json_get(json_get(result, "_meta"), INFO_KEY);
		ck_assert_str_eq(json_get_str(info, "name"), "kit");
		ck_assert_str_eq(json_get_str(info, "version"), "1.2.3");
		ck_assert_int_eq(json_has(result, "ttlMs"), cases[i].cacheable);
		ck_assert_int_eq(json_has(result, "cacheScope"), cases[i].cacheable);
		if (cases[i].cacheable) {
			ck_assert_int_ge(json_get_int(result, "ttlMs", -1), 0);
			ck_assert_str_eq(json_get_str(result, "cacheScope"), "private");
		}
	}
}
TEST_END

/* checklist 36 */
TEST(what_one_request_declares_is_forgotten_with_it)
{
	AUTO_JSON *first = kit_ask_modern("tools/list", NULL, "", 200);
	AUTO_JSON *other = kit_ask_legacy("2025-03-26", "tools/list", NULL, 200);
	AUTO_JSON *again = kit_ask_modern("tools/list", NULL, "", 200);
	ck_assert(json_object_equal(first, again));
	ck_assert(!json_object_equal(first, other));
	int code;
	ck_assert_int_eq(meta_status("{\"_meta\":{" VERSION_KEY ":\"2026-07-28\"}}", &code), 400);
}
TEST_END

/* checklist 37, 38 */
TEST(discovery_names_modern_revisions_and_what_is_served)
{
	AUTO_JSON *answer = kit_ask_modern("server/discover", NULL, "", 200);
	ck_assert_str_eq(json_text(kit_at(answer, "result.supportedVersions"), NULL),
			 "[\"2026-07-28\"]");
	ck_assert_str_eq(json_text(kit_at(answer, "result.capabilities"), NULL), "{\"tools\":{}}");
	ck_assert_str_eq(kit_text(answer, "result.instructions"), "Use echo.");
	/* what is advertised works; what is not advertised is empty or unknown */
	AUTO_JSON *list = kit_ask_modern("tools/list", NULL, "", 200);
	ck_assert_uint_gt(json_object_array_length(kit_at(list, "result.tools")), 0);
	AUTO_JSON *unknown = kit_ask_modern("completion/complete", NULL, "", 404);
	ck_assert_int_eq(kit_code(unknown), -32601);
}
TEST_END

TEST(an_unknown_method_is_told_the_revisions)
{
	AUTO_JSON *answer = kit_ask_modern("initialize", NULL, "", 404);
	ck_assert_ptr_nonnull(strstr(kit_text(answer, "error.message"), "2026-07-28"));
}
TEST_END

TEST(a_claim_decides_even_against_the_header)
{
	AUTO_JSON *answer = kit_raw("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{"
				    "\"_meta\":{" VERSION_KEY ":false}}}",
				    "2025-11-25", 400);
	ck_assert_int_eq(kit_code(answer), -32602);
}
TEST_END

TEST(a_posted_response_has_no_place_in_the_modern_era)
{
	AUTO_JSON *answer =
		kit_raw("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", "2026-07-28", 400);
	ck_assert_int_eq(kit_code(answer), -32600);
	ck_assert(!json_has(answer, "id"));
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		the_envelope_must_be_whole_and_well_typed,
		headers_must_agree_with_the_body,
		an_unsupported_version_is_told_what_is_supported,
		no_mcp_header_may_come_twice,
		repeated_arguments_must_agree_with_their_headers,
		a_null_argument_counts_as_not_set,
		the_legacy_era_knows_no_mirrored_headers,
		results_say_what_they_are_and_six_methods_how_long_they_hold,
		what_one_request_declares_is_forgotten_with_it,
		discovery_names_modern_revisions_and_what_is_served,
		an_unknown_method_is_told_the_revisions,
		a_claim_decides_even_against_the_header,
		a_posted_response_has_no_place_in_the_modern_era,
	};
	kit_open();
	int failed = unit_run("endpoint_modern", unit_tests, ARRAY_LEN(unit_tests));
	kit_close();
	return failed;
}
