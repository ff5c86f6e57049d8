/* The /files URLs as a client sees them, over real files and a real database. */
#include "http_mem.h"
#include "tool_kit.h"

#include "box/transfer.h"
#include "web/filelink.h"

#define TOKEN "0123456789abcdef0123456789"

static struct endpoint endpoint;

static void open_service(void)
{
	setenv("SMCP_TOKEN", TOKEN, 1);
	setenv("SMCP_MAX_UPLOAD_BYTES", "100000", 1);
	setenv("SMCP_MIN_FREE_BYTES", "0", 1);
	kit_open();
	endpoint = (struct endpoint){.app = &kit.app};
}

/* The side door with the right token and this query. */
static void side_door(struct mem *m, const char *query, bool push)
{
	struct http_sink sink = mem_sink(m);
	m->request.query = query;
	mem_header(m, "authorization", "Bearer " TOKEN);
	(push ? filelink_push : filelink_pull)(&endpoint, &m->request, &sink);
	ck_assert_int_eq(m->begins, 1);
}

static void ck_error(const struct mem *m, int status, const char *name)
{
	ck_assert_msg(m->status == status, "%d: %s", m->status, buf_str(&m->out));
	struct err err = ERR_INIT;
	AUTO_JSON *body = json_parse(buf_str(&m->out), m->out.len, &err);
	ck_assert_str_eq(json_get_str(body, "error"), name);
	ck_assert_ptr_nonnull(json_get_str(body, "message"));
	ck_assert_ptr_nonnull(json_get_str(body, "hint"));
	ck_assert_int_eq(json_object_object_length(body), 3);
	ck_assert(mem_has_field(m, "content-type", "application/json"));
	ck_assert_ptr_null(strstr(buf_str(&m->out), kit.dir));
}

static void push_file(const char *query, const char *content)
{
	AUTO_MEM m;
	mem_init(&m, "PUT", content, strlen(content));
	side_door(&m, query, true);
	ck_assert_msg(m.status == 200, "%s", buf_str(&m.out));
}

/* A link to a path of sandbox "box"; fills token. */
static void make_link(enum link_op op, const char *path, int64_t size, char *token)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	const char *principal;
	ck_ok(app_authenticate(&kit.app, "Bearer " TOKEN, &principal, &err), err);
	ck_ok(sandbox_find(&kit.app, principal, "box", &row, &err), err);
	struct transfer_link link;
	ck_ok(transfer_make_link(&kit.app, &row, op, path, size, 0, &link, &err), err);
	strcpy(token, strrchr(link.url, '/') + 1);
	free(link.url);
}

static void follow(struct mem *m, const char *token, bool put)
{
	struct http_sink sink = mem_sink(m);
	m->request.segments[0] = "files";
	m->request.segments[1] = put ? "put" : "get";
	m->request.segments[2] = token;
	m->request.segment_count = 3;
	(put ? filelink_put : filelink_get)(&endpoint, &m->request, &sink);
	ck_assert_int_eq(m->begins, 1);
}

/* --- the side door ----------------------------------------------------------------------- */

TEST(push_makes_the_sandbox_and_pull_gets_the_same_bytes)
{
	open_service();
	AUTO_MEM push;
	mem_init(&push, "POST", "hello", 5);
	side_door(&push, "sandbox=box&path=a%20b/c%2Bd.txt", true);
	ck_assert_int_eq(push.status, 200);
	ck_assert_str_eq(buf_str(&push.out),
			 "{\"ok\":true,\"path\":\"/workspace/a b/c+d.txt\",\"size\":5,\"sha256\":"
			 "\"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\","
			 "\"sandbox_created\":true}");
	AUTO_MEM again;
	mem_init(&again, "POST", "hello", 5);
	side_door(&again, "sandbox=box&path=e", true);
	ck_assert_ptr_null(strstr(buf_str(&again.out), "sandbox_created"));

	AUTO_MEM pull;
	mem_init(&pull, "GET", "", 0);
	side_door(&pull, "path=/workspace/a%20b/c%2Bd.txt&sandbox=box", false);
	ck_assert_int_eq(pull.status, 200);
	ck_assert_int_eq(pull.length, 5);
	ck_assert_str_eq(buf_str(&pull.out), "hello");
	ck_assert(mem_has_field(&pull, "content-type", "text/plain; charset=utf-8"));
	ck_assert(mem_has_field(&pull, "content-disposition",
				"attachment; filename=\"c+d.txt\"; filename*=UTF-8''c+d.txt"));
	ck_assert(mem_has_field(&pull, "x-content-type-options", "nosniff"));
	ck_assert(mem_has_field(&pull, "accept-ranges", "bytes"));
	ck_assert(mem_has_field(&pull, "content-security-policy", NULL));
	kit_close();
}
TEST_END

TEST(the_side_door_is_closed_without_the_token_and_for_bad_queries)
{
	open_service();
	push_file("sandbox=box&path=f", "content");
	static const char *const tokens[] = {NULL, "Bearer wrong", "Basic " TOKEN, TOKEN};
	for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
		AUTO_MEM m;
		mem_init(&m, "GET", "", 0);
		m.request.query = "sandbox=box&path=f";
		if (tokens[i] != NULL)
			mem_header(&m, "authorization", tokens[i]);
		struct http_sink sink = mem_sink(&m);
		filelink_pull(&endpoint, &m.request, &sink);
		ck_error(&m, 401, "unauthenticated");
		ck_assert(mem_has_field(&m, "www-authenticate", NULL));
	}
	static const struct {
		const char *query;
		int status;
		const char *name;
	} bad[] = {
		{"", 400, "invalid"},
		{"sandbox=box", 400, "invalid"},
		{"sandbox=box&path=", 400, "invalid"},
		{"sandbox=box&path=%zz", 400, "invalid"},
		{"sandbox=box&path=a%00b", 400, "invalid"},
		{"sandbox=box&path=../f", 400, "invalid"},
		{"sandbox=../box&path=f", 400, "invalid"},
		{"sandbox=..&path=f", 400, "invalid"},
		{"sandbox=nobox&path=f", 404, "not_found"},
		{"sandbox=box&path=none", 404, "not_found"},
		{"sandbox=box&path=.", 400, "invalid"},
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		AUTO_MEM m;
		mem_init(&m, "GET", "", 0);
		side_door(&m, bad[i].query, false);
		ck_error(&m, bad[i].status, bad[i].name);
	}
	kit_close();
}
TEST_END

TEST(an_upload_that_cannot_be_trusted_makes_no_sandbox_and_reads_no_byte)
{
	static const struct {
		const char *header, *value;
		int64_t length;
		bool chunked;
		int status;
	} cases[] = {
		{NULL, NULL, -1, false, 411},
		{NULL, NULL, -1, true, 411},
		{NULL, NULL, 5, true, 411}, /* a length that the web server made up */
		{NULL, NULL, 0, false, 411},
		{NULL, NULL, 100001, false, 413},
		{"content-type", "multipart/form-data; boundary=x", 5, false, 400},
		{"content-encoding", "gzip", 5, false, 400},
		{"content-range", "bytes 0-4/10", 5, false, 400},
		{"repr-digest", "sha-256=:AAAA:", 5, false, 400},
	};
	open_service();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_MEM m;
		mem_init(&m, "PUT", "hello", 5);
		m.request.content_length = cases[i].length;
		m.request.chunked = cases[i].chunked;
		if (cases[i].header != NULL)
			mem_header(&m, cases[i].header, cases[i].value);
		side_door(&m, "sandbox=box&path=f", true);
		ck_assert_msg(m.status == cases[i].status, "case %zu: %d %s", i, m.status,
			      buf_str(&m.out));
		ck_assert(!m.body_was_read);
	}
	AUTO_MEM m;
	mem_init(&m, "GET", "", 0);
	side_door(&m, "sandbox=box&path=f", false);
	ck_error(&m, 404, "not_found");
	ck_assert_ptr_nonnull(strstr(buf_str(&m.out), "no sandbox"));
	kit_close();
}
TEST_END

/* --- links ------------------------------------------------------------------------------- */

TEST(an_upload_link_works_once_and_a_failed_upload_does_not_count)
{
	open_service();
	push_file("sandbox=box&path=f", "old");
	char token[128];
	make_link(LINK_PUT, "f", 5, token);
	static const struct {
		const char *body;
		size_t breaks_at;
		int status;
	} attempts[] = {{"hell", 0, 400}, {"hello!", 0, 400}, {"hello", 1, 400}, {"hello", 0, 200}};
	for (size_t i = 0; i < ARRAY_LEN(attempts); i++) {
		AUTO_MEM m;
		mem_init(&m, "PUT", attempts[i].body, strlen(attempts[i].body));
		m.request.content_length = -1; /* the promise of the link counts */
		m.request.chunked = true;
		m.breaks_at = attempts[i].breaks_at;
		if (m.breaks_at > 0)
			m.body_len = 2;
		follow(&m, token, true);
		ck_assert_msg(m.status == attempts[i].status, "%zu: %s", i, buf_str(&m.out));
		AUTO_MEM pull;
		mem_init(&pull, "GET", "", 0);
		side_door(&pull, "sandbox=box&path=f", false);
		ck_assert_str_eq(buf_str(&pull.out), m.status == 200 ? "hello" : "old");
	}
	AUTO_MEM m;
	mem_init(&m, "PUT", "hello", 5);
	follow(&m, token, true);
	ck_error(&m, 410, "gone");
	ck_assert(!m.body_was_read);
	kit_close();
}
TEST_END

TEST(a_download_link_takes_head_parts_and_conditions_before_it_is_spent)
{
	open_service();
	push_file("sandbox=box&path=f.html", "0123456789");
	char token[128], etag[128];
	make_link(LINK_GET, "f.html", -1, token);
	AUTO_MEM head;
	mem_init(&head, "HEAD", "", 0);
	follow(&head, token, false);
	ck_assert_int_eq(head.status, 200);
	ck_assert_int_eq(head.length, 10);
	ck_assert_uint_eq(head.out.len, 0);
	ck_assert_int_eq(sscanf(strstr(buf_str(&head.fields), "etag: "), "etag: %127s", etag), 1);

	static const struct {
		const char *header, *value; /* value NULL: the etag */
		int status;
		const char *body, *content_range;
	} cases[] = {
		{"range", "bytes=2-4", 206, "234", "bytes 2-4/10"},
		{"range", "bytes=10-", 416, NULL, "bytes */10"},
		{"if-none-match", NULL, 304, "", NULL},
		{"if-match", "\"other\"", 412, NULL, NULL},
		{"range", "bytes=7-", 206, "789", "bytes 7-9/10"}, /* reaches the end: spent */
		{"range", "bytes=7-", 410, NULL, NULL},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_MEM m;
		mem_init(&m, "GET", "", 0);
		mem_header(&m, cases[i].header, cases[i].value == NULL ? etag : cases[i].value);
		follow(&m, token, false);
		ck_assert_msg(m.status == cases[i].status, "%zu: %d", i, m.status);
		if (cases[i].body != NULL)
			ck_assert_str_eq(buf_str(&m.out), cases[i].body);
		ck_assert_int_eq(mem_has_field(&m, "content-range", cases[i].content_range),
				 cases[i].content_range != NULL);
	}
	kit_close();
}
TEST_END

TEST(links_that_are_none_are_refused)
{
	open_service();
	push_file("sandbox=box&path=f", "x");
	char token[128];
	make_link(LINK_GET, "f", -1, token);
	AUTO_MEM wrong;
	mem_init(&wrong, "PUT", "x", 1);
	follow(&wrong, token, true);
	ck_error(&wrong, 400, "invalid");
	token[5] = token[5] == 'A' ? 'B' : 'A';
	AUTO_MEM forged;
	mem_init(&forged, "GET", "", 0);
	follow(&forged, token, false);
	ck_error(&forged, 403, "denied");
	kit_close();
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		push_makes_the_sandbox_and_pull_gets_the_same_bytes,
		the_side_door_is_closed_without_the_token_and_for_bad_queries,
		an_upload_that_cannot_be_trusted_makes_no_sandbox_and_reads_no_byte,
		an_upload_link_works_once_and_a_failed_upload_does_not_count,
		a_download_link_takes_head_parts_and_conditions_before_it_is_spent,
		links_that_are_none_are_refused,
	};
	return unit_run("filelink", tests, ARRAY_LEN(tests));
}
