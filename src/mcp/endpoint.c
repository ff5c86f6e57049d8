/*
 * The pipeline. Each rung either answers or passes on; their order decides which fault of a
 * request is told, and was chosen so that probes of both eras get what they understand: a client
 * must learn the era from the first answer, and nothing is parsed for a caller without a token.
 */
#include "mcp/endpoint.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "mcp/catalog.h"
#include "mcp/era.h"
#include "mcp/guard.h"
#include "mcp/method.h"
#include "mcp/mirror.h"
#include "mcp/rpc.h"
#include "mcp/stream.h"

#define BATCH_MAX  50 /* elements; only clients of 2025-03-26 send any */
#define SHOWN_MAX  ((size_t)64)
#define FIELDS_MAX (GUARD_CORS_MAX + 2)

/* One request on its way. */
struct exchange {
	const struct endpoint *endpoint;
	const struct http_request *request;
	const struct http_sink *sink;
	const char *principal;
	struct guard_accept accept;
	struct guard_cors cors;
	struct buf body;
	/* MCP-Protocol-Version, trimmed; version is NULL when it was not sent. */
	struct buf version_text;
	const char *version;
	/* For the log. */
	int64_t started_ms;
	int status;
	struct buf method;
	const char *tool;
	const char *outcome;
};

/* --- answers ------------------------------------------------------------------------------ */

static bool answer(struct exchange *x, int status, const char *type, const struct buf *body,
		   const struct http_header *extra, size_t extra_count)
{
	struct http_header fields[FIELDS_MAX];
	size_t count = 0;
	for (size_t i = 0; i < x->cors.count; i++)
		fields[count++] = x->cors.fields[i];
	for (size_t i = 0; i < extra_count; i++)
		fields[count++] = extra[i];
	x->status = status;
	if (body == NULL)
		http_answer(x->sink, status, NULL, NULL, 0, fields, count);
	else
		http_answer(x->sink, status, type, body->data, body->len, fields, count);
	return false;
}

static bool answer_empty(struct exchange *x, int status)
{
	return answer(x, status, NULL, NULL, NULL, 0);
}

/* A refusal below JSON-RPC: its body is an error without an id. */
static bool refuse(struct exchange *x, int status, const struct http_header *extra,
		   const char *outcome, const struct rpc_error *error)
{
	AUTO_BUF body = BUF_INIT;
	rpc_write_error(&body, NULL, error);
	x->outcome = outcome;
	return answer(x, status, "application/json", &body, extra, extra != NULL);
}

#define refuse_with(x, status, extra, outcome, ...) \
	({ \
		AUTO_RPC_ERROR refusal_ = RPC_ERROR_INIT; \
		rpc_fail(&refusal_, status, RPC_REQUEST, __VA_ARGS__); \
		refuse(x, status, extra, outcome, &refusal_); \
	})

/* Results go as a stream only to those who take nothing else; errors by status are always JSON. */
static bool answer_messages(struct exchange *x, int status, const struct buf *messages)
{
	if (messages->len == 0)
		return answer_empty(x, status);
	if (status != 200 || x->accept.json)
		return answer(x, status, "application/json", messages, NULL, 0);
	x->status = status;
	if (stream_begin(x->sink, x->cors.fields, x->cors.count))
		stream_message(x->sink, messages->data, messages->len);
	return false;
}

/* --- the rungs before the body ------------------------------------------------------------ */

static bool check_http_method(struct exchange *x)
{
	static const struct http_header allow = {"allow", "POST, OPTIONS"};
	if (strcmp(x->request->method, "POST") == 0 || strcmp(x->request->method, "OPTIONS") == 0)
		return true;
	x->outcome = "method_not_allowed";
	return answer(x, 405, NULL, NULL, &allow, 1);
}

static bool check_host(struct exchange *x)
{
	if (guard_host(x->request->host, x->endpoint->public_url))
		return true;
	return refuse_with(x, 403, NULL, "host",
			   "The Host header names another server; the operator must set the public "
			   "URL of this one");
}

static bool check_origin(struct exchange *x)
{
	const struct endpoint *endpoint = x->endpoint;
	const char *origin = http_header(x->request, "origin");
	if (origin == NULL)
		return true;
	if (http_header_count(x->request, "origin") > 1 ||
	    !guard_origin(origin, endpoint->public_url, endpoint->allowed_origins))
		return refuse_with(
			x, 403, NULL, "origin",
			"Pages of this origin may not use this server; the operator must "
			"add it to the allowed origins");
	guard_cors(x->request, origin, strcmp(x->request->method, "OPTIONS") == 0, &x->cors);
	return true;
}

/* A browser asks without credentials, so this comes before the token is looked at. */
static bool answer_preflight(struct exchange *x)
{
	static const struct http_header allow = {"allow", "POST, OPTIONS"};
	if (strcmp(x->request->method, "OPTIONS") != 0)
		return true;
	x->outcome = "preflight";
	return x->cors.count > 0 ? answer_empty(x, 204) : answer(x, 405, NULL, NULL, &allow, 1);
}

static bool presents_token(const char *authorization)
{
	return authorization != NULL && strncasecmp(authorization, "Bearer ", 7) == 0 &&
	       authorization[7 + strspn(authorization + 7, " ")] != '\0';
}

static bool refuse_caller(struct exchange *x, const char *authorization, const struct err *err)
{
	struct http_header challenge = {"www-authenticate", "Bearer realm=\"mcp\""};
	if (presents_token(authorization))
		challenge.value = "Bearer realm=\"mcp\", error=\"invalid_token\"";
	return refuse_with(
		x, 401, &challenge, "unauthenticated", "%s. %s%s", err_message(err), err_next(err),
		authorization != NULL ? ""
				      : " No Authorization header arrived: behind Apache its "
					"configuration needs 'CGIPassAuth On'.");
}

static bool authenticate(struct exchange *x)
{
	const struct endpoint *endpoint = x->endpoint;
	const char *authorization = http_header(x->request, "authorization");
	struct err err = ERR_INIT;
	x->principal = "anonymous";
	if (endpoint->authenticate == NULL)
		return true;
	if (http_header_count(x->request, "authorization") > 1) {
		err_set(&err, ERR_UNAUTHENTICATED, "the Authorization header was sent twice");
		return refuse_caller(x, authorization, &err);
	}
	if (endpoint->authenticate(endpoint->app, authorization, &x->principal, &err))
		return true;
	x->principal = "anonymous";
	if (err.code == ERR_UNAUTHENTICATED)
		return refuse_caller(x, authorization, &err);
	if (err.code == ERR_DENIED)
		return refuse_with(x, 403, NULL, "denied", "%s. %s", err_message(&err),
				   err_next(&err));
	log_err(LOG_ERROR, "authenticate", &err);
	static const struct http_header later = {"retry-after", "1"};
	return refuse_with(x, 503, &later, err_name(err.code),
			   "The server cannot check tokens now");
}

static bool check_content_type(struct exchange *x)
{
	return guard_is_json(http_header(x->request, "content-type")) ||
	       refuse_with(x, 415, NULL, "content_type", "Content-Type must be application/json");
}

static bool check_accept(struct exchange *x)
{
	x->accept = guard_accept(http_header(x->request, "accept"));
	return x->accept.json || x->accept.stream ||
	       refuse_with(x, 406, NULL, "accept",
			   "Accept must admit application/json or text/event-stream");
}

static bool read_body(struct exchange *x)
{
	struct err err;
	if (http_read_body(x->request, x->endpoint->max_body, &x->body, &err))
		return true;
	return refuse_with(x, err.code == ERR_TOO_LARGE ? 413 : 400, NULL, err_name(err.code),
			   "%s. %s", err_message(&err), err_next(&err));
}

/* --- messages ----------------------------------------------------------------------------- */

static int write_error(struct exchange *x, struct json_object *id, const struct rpc_error *error,
		       struct buf *out)
{
	x->outcome = error->code == RPC_METHOD ? "unknown_method" : "refused";
	rpc_write_error(out, id, error);
	return error->status;
}

static int unknown_method(struct exchange *x, const struct rpc_message *message,
			  enum revision revision, struct buf *out)
{
	AUTO_RPC_ERROR error = RPC_ERROR_INIT;
	bool modern = era_of(revision) == ERA_MODERN;
	AUTO_JSON *versions = era_revisions(modern ? ERA_MODERN : ERA_LEGACY);
	rpc_fail(&error, modern ? 404 : 200, RPC_METHOD,
		 "Method \"%.64s\" is not served in revision %s (of %s)", message->method,
		 era_revision_name(revision), json_text(versions, NULL));
	return write_error(x, message->id, &error, out);
}

static int run_method(struct exchange *x, const struct method *method,
		      const struct rpc_message *message, enum revision revision, struct buf *out)
{
	struct method_call call = {.endpoint = x->endpoint,
				   .request = x->request,
				   .principal = x->principal,
				   .revision = revision,
				   .params = message->params,
				   .error = RPC_ERROR_INIT,
				   .outcome = "ok"};
	AUTO_BUF text = BUF_INIT;
	int status = 200;
	bool ok = method_run(method, &call, &text);
	x->tool = call.tool;
	if (ok) {
		const struct buf *result = call.ready != NULL ? call.ready : &text;
		x->outcome = call.outcome;
		rpc_write_result(out, message->id, result->data, result->len);
	} else {
		status = write_error(x, message->id, &call.error, out);
	}
	json_object_put(call.result);
	rpc_error_finish(&call.error);
	return status;
}

static int serve_request(struct exchange *x, const struct rpc_message *message, struct buf *out)
{
	AUTO_RPC_ERROR error = RPC_ERROR_INIT;
	enum revision revision;
	if (!era_read(message, x->version, &revision, &error))
		return write_error(x, message->id, &error, out);
	enum era era = era_of(revision);
	if (era == ERA_MODERN && !mirror_check(x->request, message, &error))
		return write_error(x, message->id, &error, out);
	const struct method *method = method_find(message->method, era);
	if (method == NULL)
		return unknown_method(x, message, revision, out);
	if (message->params != NULL && !json_object_is_type(message->params, json_type_object)) {
		rpc_in_band(&error, RPC_PARAMS, "params must be an object");
		return write_error(x, message->id, &error, out);
	}
	return run_method(x, method, message, revision, out);
}

/* Nobody waits for a response here: the handshake clients that may send one are told "accepted",
 * and the modern era has none. */
static int serve_response(struct exchange *x, const struct rpc_message *message, struct buf *out)
{
	AUTO_RPC_ERROR error = RPC_ERROR_INIT;
	if (era_decide(message, x->version) == ERA_LEGACY)
		return 202;
	rpc_refuse(&error, RPC_REQUEST,
		   "The server sends no requests, so there is nothing to answer");
	return write_error(x, NULL, &error, out);
}

/* Appends at most one message to out; returns the HTTP status it calls for. */
static int serve_message(struct exchange *x, struct json_object *value, bool in_batch,
			 struct buf *out)
{
	AUTO_RPC_ERROR error = RPC_ERROR_INIT;
	struct rpc_message message;
	if (!rpc_read(value, &message, &error))
		return write_error(x, message.id, &error, out);
	if (!in_batch && message.method != NULL)
		text_quote(&x->method, message.method, strlen(message.method), SHOWN_MAX);
	if (!mirror_check_single(x->request, &error))
		return write_error(x, message.id, &error, out);
	x->outcome = "accepted";
	switch (message.kind) {
	case RPC_KIND_RESPONSE:
		return serve_response(x, &message, out);
	case RPC_KIND_NOTIFICATION:
		return 202;
	case RPC_KIND_REQUEST:
		break;
	}
	if (in_batch && strcmp(message.method, "initialize") == 0) {
		rpc_refuse(&error, RPC_REQUEST, "initialize must not be part of a batch");
		return write_error(x, message.id, &error, out);
	}
	return serve_request(x, &message, out);
}

static bool check_batch(const struct exchange *x, struct json_object *batch,
			struct rpc_error *error)
{
	size_t count = json_object_array_length(batch);
	if (x->version != NULL && strcmp(x->version, era_revision_name(REVISION_2025_03_26)) != 0)
		return rpc_refuse(error, RPC_REQUEST, "Only revision 2025-03-26 has batches");
	if (count == 0 || count > BATCH_MAX)
		return rpc_refuse(error, RPC_REQUEST, "A batch holds 1 to %d messages, got %zu",
				  BATCH_MAX, count);
	for (size_t i = 0; i < count; i++) {
		struct json_object *params =
			json_get(json_object_array_get_idx(batch, i), "params");
		if (era_has_claim(params))
			return rpc_refuse(error, RPC_REQUEST,
					  "Requests of this revision cannot be batched");
	}
	return mirror_check_single(x->request, error);
}

static int serve_batch(struct exchange *x, struct json_object *batch, struct buf *out)
{
	AUTO_RPC_ERROR error = RPC_ERROR_INIT;
	if (!check_batch(x, batch, &error))
		return write_error(x, NULL, &error, out);
	size_t count = json_object_array_length(batch);
	buf_printf(&x->method, "batch of %zu", count);
	for (size_t i = 0; i < count; i++) {
		AUTO_BUF one = BUF_INIT;
		serve_message(x, json_object_array_get_idx(batch, i), true, &one);
		if (one.len == 0)
			continue;
		buf_putc(out, out->len == 0 ? '[' : ',');
		buf_append(out, one.data, one.len);
	}
	if (out->len == 0)
		return 202;
	buf_putc(out, ']');
	return 200;
}

static bool serve_body(struct exchange *x)
{
	struct err err;
	AUTO_BUF out = BUF_INIT;
	AUTO_JSON *value = json_parse(buf_str(&x->body), x->body.len, &err);
	if (value == NULL && err.code != ERR_NONE) {
		AUTO_RPC_ERROR error = RPC_ERROR_INIT;
		rpc_refuse(&error, RPC_PARSE, "%s", err_message(&err));
		return refuse(x, 400, NULL, "parse", &error);
	}
	if (mirror_header(x->request, "mcp-protocol-version", &x->version_text))
		x->version = buf_str(&x->version_text);
	int status = json_object_is_type(value, json_type_array)
			     ? serve_batch(x, value, &out)
			     : serve_message(x, value, false, &out);
	return answer_messages(x, status, &out);
}

/* --- all of it ---------------------------------------------------------------------------- */

static bool (*const rungs[])(struct exchange *x) = {
	check_http_method,  check_host,   check_origin, answer_preflight, authenticate,
	check_content_type, check_accept, read_body,    serve_body,
};

static void log_exchange(const struct exchange *x)
{
	log_event(LOG_INFO, "mcp",
		  "method=\"%s\" tool=%s principal=%s status=%d outcome=%s ms=%" PRId64,
		  x->method.len == 0 ? x->request->method : buf_str(&x->method),
		  x->tool == NULL ? "-" : x->tool, x->principal == NULL ? "-" : x->principal,
		  x->status, x->outcome, clock_mono_ms() - x->started_ms);
}

void endpoint_serve(const struct endpoint *endpoint, const struct http_request *request,
		    const struct http_sink *sink)
{
	struct exchange x = {.endpoint = endpoint,
			     .request = request,
			     .sink = sink,
			     .started_ms = clock_mono_ms(),
			     .outcome = "ok"};
	for (size_t i = 0; i < ARRAY_LEN(rungs) && rungs[i](&x); i++)
		;
	log_exchange(&x);
	buf_finish(&x.body);
	buf_finish(&x.version_text);
	buf_finish(&x.method);
}

bool endpoint_check(struct endpoint *endpoint, struct err *err)
{
	endpoint->catalog = catalog_compile(endpoint->tools, err);
	if (endpoint->catalog == NULL)
		return false;
	method_prepare(endpoint);
	return true;
}

void endpoint_finish(struct endpoint *endpoint)
{
	catalog_free(endpoint->catalog);
	endpoint->catalog = NULL;
}
