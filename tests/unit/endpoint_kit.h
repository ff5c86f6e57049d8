/*
 * For the tests of the pipeline: an endpoint with a few tools that need nothing, requests of both
 * eras, and what must hold for every answer whatever the case.
 */
#ifndef SPOOLBOX_ENDPOINT_KIT_H
#define SPOOLBOX_ENDPOINT_KIT_H

#include <errno.h>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "http_mem.h"
#include "mcp/endpoint.h"

/* --- tools -------------------------------------------------------------------------------- */

static int kit_calls; /* handlers that ran: faults in arguments must have no effect */

#define KIT_SCHEMA(properties, more) \
	"{\"type\":\"object\",\"properties\":{" properties "},\"additionalProperties\":false" more \
	"}"

static inline bool kit_echo(struct tool_call *call, struct err *err)
{
	(void)err;
	kit_calls++;
	struct json_object *text = json_get(call->arguments, "command");
	call->structured = json_object_new_object();
	json_add_strn(call->structured, "text", json_str(text), json_str_len(text));
	json_add_str(call->structured, "who", call->principal);
	json_add_str(call->structured, "large", "9007199254740993");
	return true;
}

static const struct tool kit_echo_tool = {
	.name = "echo",
	.title = "Echo",
	.description = "Says it again.",
	.input_schema = KIT_SCHEMA(
		"\"command\":{\"type\":\"string\",\"maxLength\":200,\"examples\":[\"ls -la\"]},"
		"\"timeout_ms\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":600}",
		",\"required\":[\"command\"]"),
	.output_schema = KIT_SCHEMA("\"text\":{\"type\":\"string\"},\"who\":{\"type\":\"string\"},"
				    "\"large\":{\"type\":\"string\"}",
				    ",\"required\":[\"text\"]"),
	.read_only = true,
	.call = kit_echo,
};

static inline bool kit_fail(struct tool_call *call, struct err *err)
{
	kit_calls++;
	const char *how = json_get_str(call->arguments, "how");
	if (strcmp(how, "not_found") == 0) {
		err_set(err, ERR_NOT_FOUND, "no sandbox \"x\"");
		return err_hint(err, "Call create_sandbox.");
	}
	if (strcmp(how, "io") == 0) {
		errno = EIO;
		return err_sys(err, "read /srv/secret/state.db");
	}
	if (strcmp(how, "internal") == 0)
		return err_set(err, ERR_INTERNAL, "select * from secret");
	if (strcmp(how, "data") == 0) {
		call->structured = json_literal("{\"exit\":1}");
		call->is_error = true;
		return true;
	}
	if (strcmp(how, "array") == 0) {
		call->structured = json_object_new_array();
		return true;
	}
	return strcmp(how, "nothing") == 0; /* "silent": false without an error */
}

static const struct tool kit_fail_tool = {
	.name = "fail",
	.title = "Fail",
	.description = "Fails in one of several ways.",
	.input_schema = KIT_SCHEMA(
		"\"how\":{\"type\":\"string\",\"enum\":[\"not_found\",\"io\",\"internal\",\"data\","
		"\"array\",\"nothing\",\"silent\"]}",
		",\"required\":[\"how\"]"),
	.output_schema = KIT_SCHEMA("\"exit\":{\"type\":\"integer\"}", ""),
	.destructive = true,
	.call = kit_fail,
};

static inline bool kit_content(struct tool_call *call, struct err *err)
{
	(void)err;
	kit_calls++;
	call->content =
		json_literal("[{\"type\":\"resource_link\",\"uri\":\"spoolbox://b/f\","
			     "\"name\":\"f\",\"title\":\"F\",\"icons\":[]},"
			     "{\"type\":\"image\",\"data\":\"AAAA\",\"mimeType\":\"image/png\"}]");
	return true;
}

static const struct tool kit_content_tool = {
	.name = "content",
	.title = "Content",
	.description = "Has blocks and no structure.",
	.input_schema = KIT_SCHEMA("", ""),
	.call = kit_content,
};

static inline bool kit_mirror(struct tool_call *call, struct err *err)
{
	(void)err;
	kit_calls++;
	call->structured = json_copy(call->arguments);
	return true;
}

static const struct tool kit_mirror_tool = {
	.name = "mirror",
	.title = "Mirror",
	.description = "Repeats arguments in headers.",
	.input_schema = KIT_SCHEMA("\"region\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"},"
				   "\"count\":{\"type\":\"integer\",\"x-mcp-header\":\"Count\"},"
				   "\"deep\":{\"type\":\"object\",\"properties\":{"
				   "\"on\":{\"type\":\"boolean\",\"x-mcp-header\":\"Is-On\"}}}",
				   ""),
	.call = kit_mirror,
};

static const struct tool *const kit_tools[] = {&kit_echo_tool, &kit_fail_tool, &kit_content_tool,
					       &kit_mirror_tool};
static const struct tool_list kit_list = {kit_tools, ARRAY_LEN(kit_tools)};

/* --- the endpoint ------------------------------------------------------------------------- */

static inline bool kit_authenticate(void *app, const char *authorization, const char **principal,
				    struct err *err)
{
	(void)app;
	if (authorization == NULL)
		return err_set(err, ERR_UNAUTHENTICATED, "a token is needed");
	if (strcmp(authorization, "Bearer busy") == 0)
		return err_set(err, ERR_BUSY, "the database is locked");
	if (strcmp(authorization, "Bearer sesame") != 0)
		return err_set(err, ERR_UNAUTHENTICATED, "the token is not known");
	*principal = "tester";
	return true;
}

static inline char *kit_instructions(void *app)
{
	(void)app;
	return xstrdup("Use echo.");
}

static struct endpoint kit = {
	.tools = &kit_list,
	.authenticate = kit_authenticate,
	.name = "kit",
	.title = "Test kit",
	.version = "1.2.3",
	.description = "An endpoint for tests.",
	.website_url = "https://kit.example/",
	.instructions = kit_instructions,
	.public_url = "https://box.example/",
	.allowed_origins = "https://app.example:8443, http://other.example",
	.max_body = 4096,
};

static inline void kit_open(void)
{
	struct err err = ERR_INIT;
	log_open("kit", LOG_ERROR);
	if (!endpoint_check(&kit, &err)) { /* main calls this: no test is running */
		fprintf(stderr, "%s\n", err.msg);
		abort();
	}
}

static inline void kit_close(void)
{
	endpoint_finish(&kit);
}

/* --- what must hold for every answer ------------------------------------------------------ */

static inline void kit_check_json(struct json_object *message)
{
	ck_assert_str_eq(json_get_str(message, "jsonrpc"), "2.0");
	ck_assert(!json_has(message, "id") || json_get(message, "id") != NULL);
	ck_assert_int_ne(json_has(message, "result"), json_has(message, "error"));
}

static inline void kit_check_body(const struct mem *m)
{
	struct err err;
	/* checklist 9, 16 */
	ck_assert(text_is_utf8(m->out.data, m->out.len));
	ck_assert(m->out.data[0] == '{' || m->out.data[0] == '[');
	ck_assert_int_eq(m->length, (int64_t)m->out.len);
	ck_assert(strstr(m->out.data, ":null") == NULL);
	AUTO_JSON *body = json_parse(m->out.data, m->out.len, &err);
	ck_assert_ptr_nonnull(body);
	if (!json_object_is_type(body, json_type_array)) {
		kit_check_json(body);
		return;
	}
	for (size_t i = 0; i < json_object_array_length(body); i++)
		kit_check_json(json_object_array_get_idx(body, i));
}

static inline void kit_check(const struct mem *m)
{
	ck_assert_int_eq(m->begins, 1);
	ck_assert(m->status < 300 || m->status >= 400);       /* checklist 1 */
	ck_assert(!mem_has_field(m, "mcp-session-id", NULL)); /* checklist 10 */
	ck_assert(mem_has_field(m, "x-content-type-options", "nosniff"));
	ck_assert_int_eq(mem_has_field(m, "content-type", NULL), m->out.len > 0);
	if (m->out.len == 0) {
		ck_assert_int_eq(m->length, 0);
	} else if (m->length == -1) {
		ck_assert(mem_has_field(m, "content-type", "text/event-stream"));
	} else {
		ck_assert(mem_has_field(m, "content-type", "application/json"));
		kit_check_body(m);
	}
}

/* --- requests ----------------------------------------------------------------------------- */

static inline void kit_serve(struct mem *m)
{
	struct http_sink sink = mem_sink(m);
	endpoint_serve(&kit, &m->request, &sink);
	kit_check(m);
}

static inline void kit_post(struct mem *m, const char *body)
{
	mem_init(m, "POST", body, strlen(body));
	mem_header(m, "content-type", "application/json");
	mem_header(m, "accept", "application/json, text/event-stream");
	mem_header(m, "authorization", "Bearer sesame");
}

/* The parsed answer; with several events in a stream this fails. */
static inline struct json_object *kit_json(const struct mem *m)
{
	struct err err;
	const char *text = buf_str(&m->out);
	size_t len = m->out.len;
	if (m->length == -1) {
		static const char head[] = "event: message\ndata: ";
		ck_assert_int_eq(strncmp(text, head, strlen(head)), 0);
		ck_assert_str_eq(text + len - 2, "\n\n");
		text += strlen(head);
		len -= strlen(head) + 2;
	}
	struct json_object *body = json_parse(text, len, &err);
	ck_assert_ptr_nonnull(body);
	return body;
}

static inline struct json_object *kit_raw(const char *body, const char *version, int status)
{
	AUTO_MEM m;
	kit_post(&m, body);
	if (version != NULL)
		mem_header(&m, "mcp-protocol-version", version);
	kit_serve(&m);
	ck_assert_msg(m.status == status, "%s: got %d %s", body, m.status, buf_str(&m.out));
	return m.out.len == 0 ? NULL : kit_json(&m);
}

#define KIT_CLAIMS \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"," \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}"

/* A modern request with right headers; params without braces, e.g. "\"name\":\"echo\",". meta:
 * what _meta holds besides the version, capabilities among it. */
static inline void kit_modern_as(struct mem *m, struct buf *body, const char *method,
				 const char *name, const char *params, const char *meta)
{
	buf_printf(body,
		   "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"%s\",\"params\":{%s\"_meta\":{"
		   "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",%s}}}",
		   method, params, meta);
	kit_post(m, body->data);
	mem_header(m, "mcp-protocol-version", "2026-07-28");
	mem_header(m, "mcp-method", method);
	if (name != NULL)
		mem_header(m, "mcp-name", name);
}

#define KIT_CAN(capabilities) "\"io.modelcontextprotocol/clientCapabilities\":{" capabilities "}"

/* The same by a client that declares nothing. */
static inline void kit_modern(struct mem *m, struct buf *body, const char *method, const char *name,
			      const char *params)
{
	kit_modern_as(m, body, method, name, params, KIT_CAN(""));
}

/* The messages of a stream as an array; comments are left out. */
static inline struct json_object *kit_events(const struct mem *m)
{
	static const char head[] = "event: message\ndata: ";
	struct json_object *events = json_object_new_array();
	ck_assert(mem_has_field(m, "content-type", "text/event-stream"));
	for (const char *p = buf_str(&m->out); *p != '\0'; p = strstr(p, "\n\n") + 2) {
		struct err err = ERR_INIT;
		ck_assert_ptr_nonnull(strstr(p, "\n\n"));
		if (*p == ':')
			continue;
		ck_assert_int_eq(strncmp(p, head, strlen(head)), 0);
		p += strlen(head);
		struct json_object *event = json_parse(p, strcspn(p, "\n"), &err);
		ck_ok(event != NULL, err);
		json_push(events, event);
	}
	return events;
}

static inline struct json_object *kit_ask_modern(const char *method, const char *name,
						 const char *params, int status)
{
	AUTO_MEM m;
	AUTO_BUF body = BUF_INIT;
	kit_modern(&m, &body, method, name, params);
	kit_serve(&m);
	ck_assert_msg(m.status == status, "%s: got %d %s", body.data, m.status, buf_str(&m.out));
	return kit_json(&m);
}

/* params with braces, or NULL. */
static inline struct json_object *kit_ask_legacy(const char *version, const char *method,
						 const char *params, int status)
{
	AUTO_BUF body = BUF_INIT;
	buf_printf(&body, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"%s\"%s%s}", method,
		   params == NULL ? "" : ",\"params\":", params == NULL ? "" : params);
	return kit_raw(body.data, version, status);
}

/* A member by a dotted path; a number is an index. NULL when it is not there. */
static inline struct json_object *kit_at(struct json_object *value, const char *path)
{
	AUTO_FREE char *copy = xstrdup(path);
	char *rest = copy, *step;
	while (value != NULL && (step = strsep(&rest, ".")) != NULL) {
		if (json_object_is_type(value, json_type_array))
			value = json_object_array_get_idx(value, strtoul(step, NULL, 10));
		else
			value = json_get(value, step);
	}
	return value;
}

static inline const char *kit_text(struct json_object *value, const char *path)
{
	const char *text = json_str(kit_at(value, path));
	ck_assert_msg(text != NULL, "no %s in %s", path, json_text(value, NULL));
	return text;
}

static inline int kit_code(struct json_object *value)
{
	return (int)json_get_int(json_get(value, "error"), "code", 0);
}

#endif
