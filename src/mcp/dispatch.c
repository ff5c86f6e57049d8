/*
 * The steps of one message, in the order in which its faults are told. Without headers a message
 * speaks for itself: a modern one by its claim, all others by what was agreed at the handshake.
 */
#include "mcp/dispatch.h"

#include <string.h>

#include "base/id.h"
#include "base/log.h"
#include "base/text.h"
#include "mcp/era.h"
#include "mcp/method.h"
#include "mcp/mirror.h"
#include "mcp/rpc.h"
#include "mcp/stream.h"

#define BATCH_MAX        50 /* elements; only clients of 2025-03-26 send any */
#define SHOWN_MAX        ((size_t)64)
#define LEGACY_LOG_LEVEL 1 /* info, see era_log_level */

void dispatch_finish(struct dispatch *dispatch)
{
	buf_finish(&dispatch->method);
}

static int write_error(struct dispatch *d, struct json_object *id, const struct rpc_error *error,
		       struct buf *out)
{
	d->outcome = error->code == RPC_METHOD ? "unknown_method" : "refused";
	rpc_write_error(out, id, error);
	return error->status;
}

/* --- one request -------------------------------------------------------------------------- */

static int unknown_method(struct dispatch *d, const struct rpc_message *message,
			  enum revision revision, struct buf *out)
{
	AUTO_RPC_ERROR error = RPC_ERROR_INIT;
	bool modern = era_of(revision) == ERA_MODERN;
	AUTO_JSON *versions = era_revisions(modern ? ERA_MODERN : ERA_LEGACY);
	rpc_fail(&error, modern ? 404 : 200, RPC_METHOD,
		 "Method \"%.64s\" is not served in revision %s (of %s)", message->method,
		 era_revision_name(revision), json_text(versions, NULL));
	return write_error(d, message->id, &error, out);
}

static void begin_stream(struct dispatch *d, const struct rpc_message *message,
			 enum revision revision)
{
	/* Over HTTP a client of the handshake era may lose its connection and come back. */
	d->stream->ends_call = d->request == NULL || era_of(revision) == ERA_MODERN;
	d->stream->token = era_progress_token(message->params);
	/* Without a session a level that was set cannot be remembered; info is the usual one. */
	if (!d->endpoint->logs)
		d->stream->log_level = -1;
	else if (era_of(revision) == ERA_MODERN)
		d->stream->log_level = era_wanted_log_level(message->params);
	else
		d->stream->log_level = LEGACY_LOG_LEVEL;
}

static int run_method(struct dispatch *d, const struct method *method,
		      const struct rpc_message *message, enum revision revision, struct buf *out)
{
	struct method_call call = {.endpoint = d->endpoint,
				   .request = d->request,
				   .principal = d->principal,
				   .revision = revision,
				   .id = message->id,
				   .params = message->params,
				   .stream = d->stream,
				   .error = RPC_ERROR_INIT,
				   .outcome = "ok"};
	int status = 200;
	begin_stream(d, message, revision);
	bool ok = method_run(method, &call);
	d->tool = call.tool;
	if (ok) {
		d->outcome = call.outcome;
		if (call.agreed != NULL)
			d->agreed = call.agreed;
		if (call.ready != NULL)
			rpc_write_result(out, message->id, call.ready->data, call.ready->len);
		else
			rpc_drain_result(out, message->id, TAKE_PTR(call.result));
	} else {
		status = write_error(d, message->id, &call.error, out);
	}
	json_object_put(call.result);
	rpc_error_finish(&call.error);
	return status;
}

static const char *version_of(const struct dispatch *d, const struct rpc_message *message)
{
	if (d->request == NULL && era_has_claim(message->params))
		return era_claim(message->params);
	return d->version;
}

static int serve_request(struct dispatch *d, const struct rpc_message *message, struct buf *out)
{
	AUTO_RPC_ERROR error = RPC_ERROR_INIT;
	enum revision revision;
	if (!era_read(message, version_of(d, message), &revision, &error))
		return write_error(d, message->id, &error, out);
	enum era era = era_of(revision);
	if (era == ERA_MODERN && d->request != NULL && !mirror_check(d->request, message, &error))
		return write_error(d, message->id, &error, out);
	const struct method *method = method_find(d->endpoint, message->method, era);
	if (method == NULL)
		return unknown_method(d, message, revision, out);
	if (message->params != NULL && !json_object_is_type(message->params, json_type_object)) {
		rpc_in_band(&error, RPC_PARAMS, "params must be an object");
		return write_error(d, message->id, &error, out);
	}
	return run_method(d, method, message, revision, out);
}

/* --- one message -------------------------------------------------------------------------- */

/* For whoever asked on the stream of a call, most likely in another process. */
static void post_response(struct dispatch *d, const struct rpc_message *message,
			  struct json_object *value)
{
	const struct endpoint *endpoint = d->endpoint;
	struct err err = ERR_INIT;
	size_t len;
	const char *id = rpc_name(message->id);
	if (endpoint->peer == NULL || id == NULL || !id_is_valid(id))
		return;
	const char *text = json_text(value, &len);
	if (!endpoint->peer->post(endpoint->app, d->principal, id, text, len, &err))
		log_err(LOG_ERROR, "peer_post", &err);
}

/* The handshake clients that may send one are always told "accepted"; the modern era has none. */
static int serve_response(struct dispatch *d, const struct rpc_message *message,
			  struct json_object *value, struct buf *out)
{
	AUTO_RPC_ERROR error = RPC_ERROR_INIT;
	if (era_decide(message, d->version) == ERA_LEGACY) {
		post_response(d, message, value);
		return 202;
	}
	rpc_refuse(&error, RPC_REQUEST,
		   "The server sends no requests, so there is nothing to answer");
	return write_error(d, NULL, &error, out);
}

static bool check_single(const struct dispatch *d, struct rpc_error *error)
{
	return d->request == NULL || mirror_check_single(d->request, error);
}

/* Appends at most one message to out; returns the HTTP status it calls for. */
static int serve_message(struct dispatch *d, struct json_object *value, bool in_batch,
			 struct buf *out)
{
	AUTO_RPC_ERROR error = RPC_ERROR_INIT;
	struct rpc_message message;
	if (!rpc_read(value, &message, &error))
		return write_error(d, message.id, &error, out);
	if (!in_batch && message.method != NULL)
		text_quote(&d->method, message.method, strlen(message.method), SHOWN_MAX);
	if (!check_single(d, &error))
		return write_error(d, message.id, &error, out);
	d->outcome = "accepted";
	switch (message.kind) {
	case RPC_KIND_RESPONSE:
		return serve_response(d, &message, value, out);
	case RPC_KIND_NOTIFICATION:
		return 202;
	case RPC_KIND_REQUEST:
		break;
	}
	if (in_batch && strcmp(message.method, "initialize") == 0) {
		rpc_refuse(&error, RPC_REQUEST, "initialize must not be part of a batch");
		return write_error(d, message.id, &error, out);
	}
	if (!in_batch)
		d->running = message.id;
	int status = serve_request(d, &message, out);
	d->running = NULL;
	return status;
}

/* --- batches ------------------------------------------------------------------------------ */

static bool check_batch(const struct dispatch *d, struct json_object *batch,
			struct rpc_error *error)
{
	size_t count = json_object_array_length(batch);
	if (d->version != NULL && strcmp(d->version, era_revision_name(REVISION_2025_03_26)) != 0)
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
	return check_single(d, error);
}

static int serve_batch(struct dispatch *d, struct json_object *batch, struct buf *out)
{
	AUTO_RPC_ERROR error = RPC_ERROR_INIT;
	if (!check_batch(d, batch, &error))
		return write_error(d, NULL, &error, out);
	size_t count = json_object_array_length(batch);
	buf_printf(&d->method, "batch of %zu", count);
	d->stream->may_open = false; /* it is answered in one piece */
	for (size_t i = 0; i < count; i++) {
		AUTO_BUF one = BUF_INIT;
		serve_message(d, json_object_array_get_idx(batch, i), true, &one);
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

int dispatch_text(struct dispatch *d, const char *text, size_t len, struct buf *out)
{
	struct err err;
	AUTO_JSON *value = json_parse(text, len, &err);
	if (value == NULL && err.code != ERR_NONE) {
		AUTO_RPC_ERROR error = RPC_ERROR_INIT;
		rpc_refuse(&error, RPC_PARSE, "%s", err_message(&err));
		rpc_write_error(out, NULL, &error);
		d->outcome = "parse";
		return error.status;
	}
	return json_object_is_type(value, json_type_array) ? serve_batch(d, value, out)
							   : serve_message(d, value, false, out);
}
