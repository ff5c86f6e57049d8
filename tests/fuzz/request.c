/*
 * A whole request to the MCP endpoint of both eras and to what the routes add around it, with a
 * client that is nobody's friend but knows the token. Tools, prompts and resources are those below;
 * the file routes, which need a spool, are left out. (checklist 97)
 */
#include "fuzz.h"

#include "base/json.h"
#include "base/log.h"
#include "http_text.h"
#include "mcp/endpoint.h"
#include "web/route.h"

#define TASK_ID "0123456789abcdef0123456789abcdef"

/* --- tools --------------------------------------------------------------------------------- */

#define SCHEMA(properties) \
	"{\"type\":\"object\",\"properties\":{" properties "},\"additionalProperties\":false}"

/* What came in goes out: as structure, as progress and as a log message. */
static bool call_echo(struct tool_call *call, struct err *err)
{
	(void)err;
	const char *text = json_get_str(call->arguments, "text");
	call->structured = json_object_new_object();
	json_add_str(call->structured, "text", text);
	tool_call_progress(call, 1, 2, text);
	tool_call_log(call, "info", text == NULL ? "" : text);
	tool_call_tick(call, text);
	return true;
}

static bool call_fail(struct tool_call *call, struct err *err)
{
	const char *how = json_get_str(call->arguments, "how");
	if (how != NULL && strcmp(how, "data") == 0) {
		call->structured = json_literal("{\"text\":\"x\"}");
		call->is_error = true;
		return true;
	}
	AUTO_BUF quoted = BUF_INIT;
	text_quote(&quoted, how == NULL ? "" : how, how == NULL ? 0 : strlen(how), 64);
	return err_set(err, ERR_NOT_FOUND, "no \"%s\"", buf_str(&quoted));
}

static bool call_ask(struct tool_call *call, struct err *err)
{
	struct json_object *form = NULL, *roots = NULL;
	(void)err;
	enum round_answer answer =
		round_elicit(&call->round, "name", "Who?",
			     "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}},"
			     "\"required\":[\"name\"]}",
			     &form);
	if (answer == ROUND_ASKED)
		return true;
	if (answer == ROUND_ACCEPTED && round_roots(&call->round, "roots", &roots) == ROUND_ASKED)
		return true;
	call->structured = json_object_new_object();
	json_add(call->structured, "form", json_copy(form));
	json_add(call->structured, "roots", json_copy(roots));
	return true;
}

static bool call_later(struct tool_call *call, struct err *err)
{
	(void)err;
	if (call->takes_task)
		call->task = (struct tool_task){
			.id = TASK_ID,
			.status = TOOL_TASK_WORKING,
			.created_at = 1000,
			.updated_at = 1000,
			.ttl_ms = 60000,
		};
	else
		call->content = json_literal("[{\"type\":\"text\",\"text\":\"now\"}]");
	return true;
}

static const struct tool echo_tool = {
	.name = "echo",
	.title = "Echo",
	.description = "Says it again.",
	.input_schema = SCHEMA("\"text\":{\"type\":\"string\",\"x-mcp-header\":\"Text\"},"
			       "\"count\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":9,"
			       "\"x-mcp-header\":\"Count\"}"),
	.output_schema = SCHEMA("\"text\":{\"type\":\"string\"}"),
	.call = call_echo,
};
static const struct tool fail_tool = {
	.name = "fail",
	.title = "Fail",
	.description = "Fails.",
	.input_schema = SCHEMA("\"how\":{\"type\":\"string\"}"),
	.call = call_fail,
};
static const struct tool ask_tool = {
	.name = "ask",
	.title = "Ask",
	.description = "Asks a person.",
	.input_schema = SCHEMA(""),
	.call = call_ask,
};
static const struct tool later_tool = {
	.name = "later",
	.title = "Later",
	.description = "Goes on as a task.",
	.input_schema = SCHEMA(""),
	.call = call_later,
};
static const struct tool *const tools[] = {&echo_tool, &fail_tool, &ask_tool, &later_tool};
static const struct tool_list tool_list = {tools, ARRAY_LEN(tools)};

/* --- tasks --------------------------------------------------------------------------------- */

static bool is_task(const char *id, struct err *err)
{
	return strcmp(id, TASK_ID) == 0 || err_set(err, ERR_NOT_FOUND, "there is no such task");
}

static bool task_get(struct tool_call *call, const char *id, struct tool_task *task,
		     struct err *err)
{
	if (!is_task(id, err))
		return false;
	*task = (struct tool_task){
		.id = TASK_ID,
		.status = TOOL_TASK_COMPLETED,
		.message = xstrdup("done"),
		.created_at = 1000,
		.updated_at = 2000,
		.ttl_ms = 60000,
	};
	call->structured = json_literal("{\"text\":\"done\"}");
	return true;
}

static bool task_cancel(struct tool_call *call, const char *id, struct err *err)
{
	(void)call;
	return is_task(id, err);
}

static bool task_update(struct tool_call *call, const char *id, struct json_object *answers,
			struct err *err)
{
	(void)call;
	assert(json_object_is_type(answers, json_type_object));
	return is_task(id, err);
}

static const struct tool_tasks tasks = {task_get, task_cancel, task_update};

/* --- resources and prompts ----------------------------------------------------------------- */

static bool list_resources(struct resource_call *call, const char *after, struct buf *next,
			   struct err *err)
{
	if (after[0] != '\0' && strcmp(after, "a") != 0)
		return err_set(err, ERR_INVALID, "no page begins there");
	json_push(call->result,
		  json_literal(after[0] == '\0' ? "{\"uri\":\"fuzz://a\",\"name\":\"a\"}"
						: "{\"uri\":\"fuzz://b\",\"name\":\"b\"}"));
	if (after[0] == '\0')
		buf_puts(next, "a");
	return true;
}

static bool read_resource(struct resource_call *call, const char *uri, struct err *err)
{
	if (strncmp(uri, "fuzz://", 7) != 0)
		return err_set(err, ERR_NOT_FOUND, "there is no such resource");
	struct json_object *contents = json_object_new_object();
	json_add_str(contents, "uri", uri);
	json_add_str(contents, "text", uri + 7);
	json_push(call->result, contents);
	return true;
}

static bool complete_resource(struct resource_call *call, const char *uri_template,
			      const char *variable, const char *value, struct json_object *known,
			      bool *more, struct err *err)
{
	(void)uri_template, (void)known, (void)err;
	json_push_str(call->result, variable);
	json_push_str(call->result, value);
	*more = true;
	return true;
}

static const struct resource_template templates[] = {
	{"fuzz://{name}", "any", "Any", "Anything.", "text/plain"}};
static const struct resource_set resources = {
	.templates = templates,
	.template_count = ARRAY_LEN(templates),
	.list = list_resources,
	.read = read_resource,
	.complete = complete_resource,
	.subscribe = true,
};

static bool get_greet(struct prompt_call *call, struct err *err)
{
	(void)err;
	prompt_add_text(call, "user", prompt_argument(call, "who"));
	return true;
}

static bool complete_greet(void *app, const char *principal, const char *argument,
			   const char *value, struct json_object *values, bool *more,
			   struct err *err)
{
	(void)app, (void)principal, (void)argument, (void)err;
	json_push_str(values, value);
	*more = false;
	return true;
}

static const struct prompt_argument greet_arguments[] = {{"who", "Who", "Whom to greet.", true},
							 {"how", "How", "In what words.", false}};
static const struct prompt greet_prompt = {
	.name = "greet",
	.title = "Greet",
	.description = "Greets somebody.",
	.arguments = greet_arguments,
	.argument_count = ARRAY_LEN(greet_arguments),
	.get = get_greet,
	.complete = complete_greet,
};
static const struct prompt *const prompts[] = {&greet_prompt};
static const struct prompt_list prompt_list = {prompts, ARRAY_LEN(prompts)};

/* --- answers of the client in the handshake era -------------------------------------------- */

/* Whatever is asked has been answered already, with a form that fits and roots that do not. */
static char asked[128];

static bool peer_post(void *app, const char *principal, const char *id, const char *text,
		      size_t len, struct err *err)
{
	(void)app, (void)principal, (void)id, (void)text, (void)len, (void)err;
	return true;
}

static bool peer_open(void *app, const char *principal, const char *id, struct err *err)
{
	(void)app, (void)principal, (void)err;
	snprintf(asked, sizeof(asked), "%s", id);
	return true;
}

static int peer_take(void *app, const char *principal, const char *id, struct buf *text,
		     struct err *err)
{
	(void)app, (void)principal, (void)err;
	assert(strcmp(id, asked) == 0);
	buf_printf(text,
		   "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"result\":{\"action\":\"accept\","
		   "\"content\":{\"name\":\"x\"}}}",
		   id);
	return 1;
}

static void peer_close(void *app, const char *id)
{
	(void)app;
	assert(strcmp(id, asked) == 0);
}

static const struct peer peer = {peer_post, peer_open, peer_take, peer_close};

/* --- the endpoint -------------------------------------------------------------------------- */

static bool authenticate(void *app, const char *authorization, const char **principal,
			 struct err *err)
{
	(void)app;
	if (authorization == NULL || strcmp(authorization, "Bearer sesame") != 0)
		return err_set(err, ERR_UNAUTHENTICATED, "the token is not known");
	*principal = "fuzzer";
	return true;
}

static char *instructions(void *app)
{
	(void)app;
	return xstrdup("Use echo.");
}

static struct endpoint endpoint = {
	.tools = &tool_list,
	.tasks = &tasks,
	.resources = &resources,
	.prompts = &prompt_list,
	.peer = &peer,
	.logs = true,
	.authenticate = authenticate,
	.name = "fuzz",
	.title = "Fuzz",
	.version = "1.0",
	.instructions = instructions,
	.public_url = "https://box.example",
	.max_body = 4096,
};

static void prepare_once(void)
{
	struct err err = ERR_INIT;
	if (endpoint.catalog != NULL)
		return;
	log_open("fuzz", LOG_ERROR); /* what is logged then is a fault of ours */
	sign_key_from_text(&endpoint.state_keys[0], "fuzz");
	endpoint.state_key_count = 1;
	assert(endpoint_check(&endpoint, &err));
}

/* --- the answer ---------------------------------------------------------------------------- */

#define FIELDS_BYTES_MAX 3500 /* mcp/http.h: the whole block stays below it */

struct answer {
	int begins, status;
	int64_t length;
	char type[64]; /* of the content */
	struct buf body;
};

static bool begin(void *ctx, int status, const struct http_header *fields, size_t count,
		  int64_t content_length)
{
	struct answer *answer = ctx;
	size_t bytes = 0;
	answer->begins++;
	answer->status = status;
	answer->length = content_length;
	for (size_t i = 0; i < count; i++) {
		for (const char *p = fields[i].value; *p != '\0'; p++)
			assert((unsigned char)*p >= 0x20 && *p != 0x7F);
		for (const char *p = fields[i].name; *p != '\0'; p++)
			assert(islower((unsigned char)*p) || isdigit((unsigned char)*p) ||
			       *p == '-');
		bytes += strlen(fields[i].name) + strlen(fields[i].value) + 4;
		if (strcmp(fields[i].name, "content-type") == 0)
			snprintf(answer->type, sizeof(answer->type), "%s", fields[i].value);
	}
	assert(bytes < FIELDS_BYTES_MAX);
	return true;
}

static bool put(void *ctx, const void *data, size_t len)
{
	struct answer *answer = ctx;
	assert(answer->begins == 1);
	buf_append(&answer->body, data, len);
	return true;
}

static bool is_gone(void *ctx)
{
	(void)ctx;
	return false;
}

static bool is_stopping(void *ctx)
{
	(void)ctx;
	return false;
}

/* One JSON-RPC message: a response, or over a stream also a request or a notification. */
static void check_message(struct json_object *message, bool may_ask)
{
	const char *version = json_get_str(message, "jsonrpc");
	bool is_response = json_get_str(message, "method") == NULL;
	assert(version != NULL && strcmp(version, "2.0") == 0);
	assert(!json_has(message, "id") || json_get(message, "id") != NULL);
	assert(is_response || may_ask);
	assert(is_response == (json_has(message, "result") + json_has(message, "error") == 1));
}

/* Any JSON; never a null id. */
static struct json_object *parse(const char *text, size_t len)
{
	struct err err = ERR_INIT;
	struct json_object *value = json_parse(text, len, &err);
	assert(value != NULL);
	assert(memmem(text, len, "\"id\":null", 9) == NULL);
	return value;
}

/* A message, or in the oldest revision several of them. */
static void check_messages(const char *text, size_t len, bool may_ask)
{
	AUTO_JSON *body = parse(text, len);
	if (!json_object_is_type(body, json_type_array)) {
		check_message(body, may_ask);
		return;
	}
	assert(json_object_array_length(body) > 0);
	for (size_t i = 0; i < json_object_array_length(body); i++)
		check_message(json_object_array_get_idx(body, i), false);
}

static void check_stream(const struct answer *answer)
{
	struct fuzz_input in = {answer->body.data, answer->body.len};
	assert(in.len >= 2 && memcmp(in.at + in.len - 2, "\n\n", 2) == 0);
	while (in.len > 0) {
		AUTO_FREE char *line = fuzz_line(&in);
		if (strncmp(line, "data: ", 6) == 0) {
			check_messages(line + 6, strlen(line + 6), true);
		} else {
			assert(line[0] == '\0' || line[0] == ':' ||
			       strcmp(line, "event: message") == 0);
		}
	}
}

/* Of the transport, and of what guards it. */
static bool is_legal(int status)
{
	static const int statuses[] = {200, 202, 204, 400, 401, 403, 404, 405, 406, 413, 415};
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		if (statuses[i] == status)
			return true;
	return false;
}

static void check_answer(const struct answer *answer, bool is_rpc)
{
	assert(answer->begins == 1 && is_legal(answer->status));
	assert(text_is_utf8(buf_str(&answer->body), answer->body.len));
	if (answer->length == -1) {
		assert(strcmp(answer->type, "text/event-stream") == 0);
		check_stream(answer);
		return;
	}
	assert(answer->length == (int64_t)answer->body.len);
	assert((answer->type[0] != '\0') == (answer->body.len > 0));
	if (answer->body.len == 0)
		return;
	assert(strcmp(answer->type, "application/json") == 0);
	if (is_rpc)
		check_messages(answer->body.data, answer->body.len, false);
	else
		json_object_put(parse(answer->body.data, answer->body.len));
}

static void serve(struct http_text *text, const struct route_uri *uri)
{
	struct answer answer = {.begins = 0};
	const struct http_sink sink = {&answer, begin, put, is_gone, is_stopping};
	memcpy(text->request.segments, uri->segments, sizeof(uri->segments));
	text->request.segment_count = uri->segment_count;
	text->request.query = uri->query;
	bool is_rpc = uri->segment_count == 1 && strcmp(uri->segments[0], "mcp") == 0;
	route_serve(&endpoint, &text->request, &sink);
	check_answer(&answer, is_rpc);
	buf_finish(&answer.body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;
	AUTO_HTTP_TEXT text;
	AUTO_ROUTE_URI uri;
	prepare_once();
	http_text_parse(&text, fuzz_input(data, size));
	if (route_parse(text.uri, &uri, &err) &&
	    (uri.segment_count < 2 || strcmp(uri.segments[0], "files") != 0))
		serve(&text, &uri);
	return 0;
}
