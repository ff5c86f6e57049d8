/*
 * subscriptions/listen: one stream on which a client is told of changes until it goes, the stream
 * has lived long enough or the worker is told to stop. Nothing outlives it; who listens anew looks
 * at everything anew.
 *
 * The number of the newest event is taken before the acknowledgement, so a client that has seen
 * that and then looks at a list misses no change in between.
 */
#include <string.h>

#include "base/clock.h"
#include "mcp/method_part.h"
#include "mcp/stream.h"

#define SUBSCRIPTION_KEY "io.modelcontextprotocol/subscriptionId"

/* How each kind is asked for and told. */
static const struct {
	enum event_kind kind;
	const char *wish; /* member of params.notifications */
	enum method_part part;
	bool is_list; /* of the URIs or ids that are meant; else a boolean */
	const char *method;
} kinds[] = {
	{EVENT_TOOLS, "toolsListChanged", PART_ALWAYS, false, "notifications/tools/list_changed"},
	{EVENT_PROMPTS, "promptsListChanged", PART_PROMPTS, false,
	 "notifications/prompts/list_changed"},
	{EVENT_RESOURCES, "resourcesListChanged", PART_RESOURCES, false,
	 "notifications/resources/list_changed"},
	{EVENT_RESOURCE, "resourceSubscriptions", PART_WATCHES, true,
	 "notifications/resources/updated"},
	{EVENT_TASK, "taskIds", PART_TASKS, true, "notifications/tasks"},
};

struct listener {
	struct method_call *call;
	struct json_object *honoured; /* wish -> true, or the array of what is meant */
	int64_t seen;                 /* the newest event that was looked at */
};

/* --- wishes ------------------------------------------------------------------------------- */

static bool is_list_of_names(struct json_object *list)
{
	if (!json_object_is_type(list, json_type_array))
		return false;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		if (rpc_name(json_object_array_get_idx(list, i)) == NULL)
			return false;
	}
	return true;
}

/* Tasks that are not the client's are not honoured. */
static struct json_object *tasks_of_client(const struct method_call *call, struct json_object *ids)
{
	struct json_object *known = json_object_new_array();
	for (size_t i = 0; i < json_object_array_length(ids); i++) {
		struct err err = ERR_INIT;
		struct json_object *id = json_object_array_get_idx(ids, i);
		AUTO_JSON *task = method_fetch_task(call, json_str(id), &err);
		if (task != NULL)
			json_push(known, json_object_get(id));
	}
	return known;
}

/* Takes over what is wished for of one kind, as far as the endpoint has it. */
static bool honour(struct listener *listener, size_t kind, struct json_object *wish)
{
	struct method_call *call = listener->call;
	if (kinds[kind].is_list ? !is_list_of_names(wish)
				: !json_object_is_type(wish, json_type_boolean))
		return rpc_in_band(&call->error, RPC_PARAMS, "params.notifications.%s must be %s",
				   kinds[kind].wish,
				   kinds[kind].is_list ? "an array of strings" : "a boolean");
	if (kinds[kind].kind == EVENT_TASK && !method_check_tasks_client(call))
		return false;
	if (!method_has(call->endpoint, kinds[kind].part) ||
	    (!kinds[kind].is_list && !json_object_get_boolean(wish)))
		return true;
	json_add(listener->honoured, kinds[kind].wish,
		 kinds[kind].kind == EVENT_TASK ? tasks_of_client(call, wish)
						: json_object_get(wish));
	return true;
}

static bool read_wishes(struct listener *listener)
{
	struct method_call *call = listener->call;
	struct json_object *wishes = json_get(call->params, "notifications");
	if (!json_object_is_type(wishes, json_type_object))
		return rpc_in_band(&call->error, RPC_PARAMS,
				   "params.notifications must be an object");
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct json_object *wish = json_get(wishes, kinds[i].wish);
		if (wish != NULL && !honour(listener, i, wish))
			return false;
	}
	return true;
}

/* --- notifications ------------------------------------------------------------------------ */

static struct json_object *new_meta(const struct method_call *call)
{
	struct json_object *meta = json_object_new_object();
	json_add(meta, SUBSCRIPTION_KEY, json_object_get(call->id));
	return meta;
}

/* params are taken. */
static bool notify(struct listener *listener, const char *method, struct json_object *params)
{
	json_add(params, "_meta", new_meta(listener->call));
	return stream_notify(listener->call->stream, method, params);
}

static bool acknowledge(struct listener *listener)
{
	struct json_object *params = json_object_new_object();
	json_add(params, "notifications", json_object_get(listener->honoured));
	return notify(listener, "notifications/subscriptions/acknowledged", params);
}

static bool is_meant(struct json_object *list, const char *what)
{
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		if (strcmp(json_str(json_object_array_get_idx(list, i)), what) == 0)
			return true;
	}
	return false;
}

/* The params of a notification; NULL when there is nothing to tell: a task that is gone. */
static struct json_object *describe(const struct listener *listener, enum event_kind kind,
				    const char *what)
{
	struct err err = ERR_INIT;
	if (kind == EVENT_TASK)
		return method_fetch_task(listener->call, what, &err);
	struct json_object *params = json_object_new_object();
	if (kind == EVENT_RESOURCE)
		json_add_str(params, "uri", what);
	return params;
}

static bool tell(void *ctx, enum event_kind kind, const char *what)
{
	struct listener *listener = ctx;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct json_object *wish = json_get(listener->honoured, kinds[i].wish);
		if (kinds[i].kind != kind || wish == NULL ||
		    (kinds[i].is_list && (what == NULL || !is_meant(wish, what))))
			continue;
		struct json_object *params = describe(listener, kind, what);
		return params == NULL || notify(listener, kinds[i].method, params);
	}
	return true;
}

/* --- the stream --------------------------------------------------------------------------- */

/* False with err only when the events cannot be read: a client that has gone is no error. */
static bool listen(struct listener *listener, struct err *err)
{
	const struct endpoint *endpoint = listener->call->endpoint;
	struct stream *stream = listener->call->stream;
	int64_t until_ms = clock_mono_ms() + EVENT_LIFE_MS;
	bool goes_on = acknowledge(listener);
	while (goes_on && clock_mono_ms() < until_ms && !stream_is_stopped(stream)) {
		int64_t last =
			endpoint->events->since(endpoint->app, listener->seen, tell, listener, err);
		if (last < 0)
			return false;
		listener->seen = last;
		goes_on = stream_tick(stream, NULL);
		if (goes_on)
			clock_sleep_ms(EVENT_POLL_MS);
	}
	return true;
}

static bool serve_listener(struct listener *listener)
{
	struct err err = ERR_INIT;
	const struct endpoint *endpoint = listener->call->endpoint;
	listener->seen = endpoint->events->newest(endpoint->app, &err);
	return (listener->seen >= 0 && listen(listener, &err)) ||
	       method_failed(listener->call, "events", &err);
}

/* A place among the listeners is taken for as long as it is served. */
static bool take_place(struct listener *listener)
{
	struct err err = ERR_INIT;
	struct method_call *call = listener->call;
	const struct event_source *events = call->endpoint->events;
	if (!events->enter(call->endpoint->app, call->principal, &err))
		return method_failed(call, "events", &err);
	bool ok = serve_listener(listener);
	events->leave(call->endpoint->app, call->principal);
	return ok;
}

bool method_listen(struct method_call *call)
{
	AUTO_JSON *honoured = json_object_new_object();
	struct listener listener = {.call = call, .honoured = honoured};
	if (call->request == NULL)
		return rpc_in_band(&call->error, RPC_METHOD,
				   "subscriptions/listen is served over HTTP only");
	if (!call->stream->may_open)
		return rpc_fail(&call->error, 406, RPC_REQUEST,
				"Accept must admit text/event-stream to listen");
	call->stream->token = NULL; /* no progress is told here */
	call->stream->quiet_ms = STREAM_LISTEN_MS;
	if (!read_wishes(&listener) || !take_place(&listener))
		return false;
	call->result = json_object_new_object();
	json_add(call->result, "_meta", new_meta(call));
	return true;
}
