/*
 * Questions of a handler on their way to the client. In the modern era they are a result, and the
 * request comes again. In the handshake era they are requests of ours on the stream of the call,
 * and the answers are taken out of the mailbox that endpoint->peer keeps: the client posts them
 * wherever it likes.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "mcp/method_part.h"
#include "mcp/stream.h"

#define ROUNDS_MAX 16 /* questions to one client on one stream: a handler must come to an end */

static struct round_binding binding_of(const struct method_call *call)
{
	return (struct round_binding){call->endpoint->state_keys, call->endpoint->state_key_count,
				      call->principal, call->method, call->params};
}

/* What a client of the handshake era declared is not known without a session, so it is asked. */
static bool can_ask_on_stream(const struct method_call *call)
{
	return call->endpoint->peer != NULL && call->request != NULL && call->stream != NULL &&
	       call->stream->may_open;
}

bool method_begin_round(struct method_call *call, struct round *round)
{
	const struct round_binding binding = binding_of(call);
	if (era_of(call->revision) == ERA_MODERN)
		return round_read(round, &binding, &call->error);
	round->can_ask = can_ask_on_stream(call) ? ROUND_ALL : 0;
	return true;
}

/* --- on the stream ------------------------------------------------------------------------ */

/* The questions that are out, as {id of our request: key}. */
struct questions {
	struct method_call *call;
	struct round *round;
	struct json_object *open;
};

static bool client_went(struct questions *q)
{
	return rpc_in_band(&q->call->error, RPC_INTERNAL, "The client has gone");
}

static bool send_question(struct questions *q, const char *key, struct json_object *request)
{
	const struct endpoint *endpoint = q->call->endpoint;
	struct err err = ERR_INIT;
	char id[ID_LEN + 1];
	id_make(id);
	if (!endpoint->peer->open(endpoint->app, q->call->principal, id, &err))
		return method_failed(q->call, "peer_open", &err);
	json_add_str(q->open, id, key);
	AUTO_JSON *message = json_object_new_object();
	json_add_str(message, "jsonrpc", "2.0");
	json_add_str(message, "id", id);
	json_add(message, "method", json_object_get(json_get(request, "method")));
	json_add(message, "params", json_object_get(json_get(request, "params")));
	size_t len;
	const char *text = json_text(message, &len);
	return stream_message(q->call->stream, text, len) || client_went(q);
}

static bool send_questions(struct questions *q)
{
	bool ok = true;
	json_object_object_foreach(q->round->requests, key, request) ok =
		ok && send_question(q, key, request);
	return ok;
}

/* A client that does not know the method cannot answer; whatever else it fails with is a no. */
static void read_answer(struct questions *q, const char *key, const struct buf *text)
{
	struct err err = ERR_INIT;
	AUTO_JSON *message = json_parse(buf_str(text), text->len, &err);
	struct json_object *error = json_get(message, "error");
	struct json_object *result = json_get(message, "result");
	if (json_get_int(error, "code", 0) == RPC_METHOD)
		round_cannot(q->round, key);
	else if (error != NULL)
		round_add_answer(q->round, key, json_literal("{\"action\":\"decline\"}"));
	else
		round_add_answer(q->round, key, json_object_get(result));
}

static void close_question(struct questions *q, const char *id)
{
	q->call->endpoint->peer->close(q->call->endpoint->app, id);
}

/* Looks for the answers that are out, and takes the first that is there. */
static bool take_answers(struct questions *q)
{
	const struct endpoint *endpoint = q->call->endpoint;
	struct json_object_iter it;
	json_object_object_foreachC(q->open, it)
	{
		struct err err = ERR_INIT;
		AUTO_BUF text = BUF_INIT;
		int rc = endpoint->peer->take(endpoint->app, q->call->principal, it.key, &text,
					      &err);
		if (rc < 0)
			return method_failed(q->call, "peer_take", &err);
		if (rc == 0)
			continue;
		read_answer(q, json_str(it.val), &text);
		close_question(q, it.key);
		json_object_object_del(q->open, it.key);
		return true;
	}
	return true;
}

static bool await_answers(struct questions *q)
{
	int64_t until_ms = clock_mono_ms() + PEER_WAIT_MS;
	while (json_object_object_length(q->open) > 0) {
		if (!take_answers(q))
			return false;
		if (!stream_tick(q->call->stream, NULL) || q->call->stream->client_gone)
			return client_went(q);
		if (stream_is_stopped(q->call->stream))
			return rpc_in_band(&q->call->error, RPC_INTERNAL,
					   "The server is being stopped and cannot wait for the "
					   "answer. Repeat the call");
		if (clock_mono_ms() >= until_ms)
			return rpc_in_band(&q->call->error, RPC_INTERNAL,
					   "The client did not answer within %d s. Repeat the call "
					   "when somebody is there to answer",
					   PEER_WAIT_MS / 1000);
		if (json_object_object_length(q->open) > 0)
			clock_sleep_ms(PEER_POLL_MS);
	}
	return true;
}

static bool ask_on_stream(struct method_call *call, struct round *round)
{
	AUTO_JSON *open = json_object_new_object();
	struct questions q = {call, round, open};
	bool ok = send_questions(&q) && await_answers(&q);
	json_object_object_foreach(open, id, key)
	{
		(void)key;
		close_question(&q, id);
	}
	if (ok)
		round_again(round);
	return ok;
}

/* --- after a run -------------------------------------------------------------------------- */

static enum method_step end_legacy(struct method_call *call, struct round *round)
{
	if (round->missing != 0) {
		rpc_in_band(&call->error, RPC_REQUEST,
			    "This call has to ask the client, which this connection does not "
			    "allow for; it works in revision %s",
			    era_revision_name(REVISION_FIRST_MODERN));
		return STEP_FAILED;
	}
	if (++call->rounds > ROUNDS_MAX) {
		rpc_in_band(&call->error, RPC_INTERNAL, "No fitting answer after %d questions",
			    ROUNDS_MAX);
		return STEP_FAILED;
	}
	return ask_on_stream(call, round) ? STEP_AGAIN : STEP_FAILED;
}

static enum method_step end_modern(struct method_call *call, struct round *round)
{
	const struct round_binding binding = binding_of(call);
	if (round->missing != 0) {
		round_refuse(round, &call->error);
		return STEP_FAILED;
	}
	call->result = json_object_new_object();
	call->result_type = "input_required";
	round_write(round, &binding, call->result);
	return STEP_ASKED;
}

enum method_step method_end_round(struct method_call *call, struct round *round)
{
	if (round->missing == 0 && !round_is_open(round))
		return STEP_DONE;
	return era_of(call->revision) == ERA_MODERN ? end_modern(call, round)
						    : end_legacy(call, round);
}
