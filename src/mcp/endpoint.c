/*
 * The pipeline. Each rung either answers or passes on; their order decides which fault of a
 * request is told, and was chosen so that probes of both eras get what they understand: a client
 * must learn the era from the first answer, and nothing is parsed for a caller without a token.
 */
#include "mcp/endpoint.h"

#include <inttypes.h>
#include <sodium.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/log.h"
#include "mcp/catalog.h"
#include "mcp/dispatch.h"
#include "mcp/guard.h"
#include "mcp/method.h"
#include "mcp/mirror.h"
#include "mcp/rpc.h"
#include "mcp/stream.h"

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
	struct stream stream;
	struct dispatch dispatch;
	/* For the log. */
	int64_t started_ms;
	int status;
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

/* Results go as a stream to those who take nothing else, and where it was begun: then errors, too,
 * since its status is out. Other errors by status are always JSON. */
static bool answer_messages(struct exchange *x, int status, const struct buf *messages)
{
	if (x->stream.client_gone && x->stream.ends_call)
		x->outcome = "client_gone";
	if (x->stream.is_open) {
		x->status = 200;
		stream_message(&x->stream, messages->data, messages->len);
		return false;
	}
	if (messages->len == 0)
		return answer_empty(x, status);
	if (status != 200 || x->accept.json)
		return answer(x, status, "application/json", messages, NULL, 0);
	x->status = status;
	stream_message(&x->stream, messages->data, messages->len);
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

static bool serve_body(struct exchange *x)
{
	AUTO_BUF version = BUF_INIT;
	AUTO_BUF out = BUF_INIT;
	stream_init(&x->stream, x->sink, x->cors.fields, x->cors.count);
	x->stream.may_open = x->accept.stream;
	x->dispatch.endpoint = x->endpoint;
	x->dispatch.request = x->request;
	x->dispatch.principal = x->principal;
	x->dispatch.stream = &x->stream;
	if (mirror_header(x->request, "mcp-protocol-version", &version))
		x->dispatch.version = buf_str(&version);
	int status = dispatch_text(&x->dispatch, buf_str(&x->body), x->body.len, &out);
	x->dispatch.version = NULL;
	x->outcome = x->dispatch.outcome;
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
		  x->dispatch.method.len == 0 ? x->request->method : buf_str(&x->dispatch.method),
		  x->dispatch.tool == NULL ? "-" : x->dispatch.tool,
		  x->principal == NULL ? "-" : x->principal, x->status, x->outcome,
		  clock_mono_ms() - x->started_ms);
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
	stream_finish(&x.stream);
	dispatch_finish(&x.dispatch);
	buf_finish(&x.body);
}

bool endpoint_check(struct endpoint *endpoint, struct err *err)
{
	endpoint->catalog = catalog_compile(endpoint->tools, err);
	if (endpoint->catalog == NULL)
		return false;
	method_prepare(endpoint);
	if (endpoint->state_key_count == 0) {
		randombytes_buf(endpoint->state_keys[0].bytes, SIGN_KEY_BYTES);
		endpoint->state_key_count = 1;
	}
	return true;
}

void endpoint_finish(struct endpoint *endpoint)
{
	catalog_free(endpoint->catalog);
	endpoint->catalog = NULL;
}
