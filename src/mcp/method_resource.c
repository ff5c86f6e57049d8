/*
 * Resources: lists, contents and, in the handshake era, an acknowledgement to those who subscribe.
 * A cursor is a position that the provider gave, sealed for this list and this principal: it is
 * opaque and keeps nothing on the server.
 */
#include <string.h>

#include "mcp/method_part.h"

static struct resource_call begin(const struct method_call *call)
{
	return (struct resource_call){.app = call->endpoint->app,
				      .principal = call->principal,
				      .result = json_object_new_array()};
}

static void finish(struct resource_call *resource)
{
	round_finish(&resource->round);
	json_object_put(TAKE_PTR(resource->result));
}

static void shape_each(struct json_object *array, enum revision revision)
{
	for (size_t i = 0; i < json_object_array_length(array); i++)
		era_shape(json_object_array_get_idx(array, i), revision);
}

/* --- cursors ------------------------------------------------------------------------------ */

/* The NUL between keeps the parts apart. */
static void write_context(struct buf *out, const struct method_call *call)
{
	buf_puts(out, call->method);
	buf_putc(out, '\0');
	buf_puts(out, call->principal);
}

static bool bad_cursor(struct method_call *call)
{
	return rpc_in_band(&call->error, RPC_PARAMS,
			   "params.cursor is not valid: it is none of this list. Begin anew "
			   "without it");
}

/* Appends the position that a cursor stands for; nothing without one. */
static bool read_cursor(struct method_call *call, struct buf *position)
{
	struct err err = ERR_INIT;
	AUTO_BUF context = BUF_INIT;
	if (json_get(call->params, "cursor") == NULL)
		return true;
	const char *cursor = rpc_name(json_get(call->params, "cursor"));
	write_context(&context, call);
	return (cursor != NULL &&
		sign_open(call->endpoint->state_keys, call->endpoint->state_key_count, cursor,
			  context.data, context.len, position, &err)) ||
	       bad_cursor(call);
}

static void add_cursor(const struct method_call *call, const struct buf *position)
{
	AUTO_BUF context = BUF_INIT, cursor = BUF_INIT;
	if (position->len == 0)
		return;
	write_context(&context, call);
	sign_seal(&call->endpoint->state_keys[0], position->data, position->len, context.data,
		  context.len, &cursor);
	json_add_strn(call->result, "nextCursor", cursor.data, cursor.len);
}

/* --- lists -------------------------------------------------------------------------------- */

static bool list_page(struct method_call *call, const char *after)
{
	struct err err = ERR_INIT;
	AUTO_BUF next = BUF_INIT;
	struct resource_call resource = begin(call);
	bool ok = call->endpoint->resources->list(&resource, after, &next, &err);
	if (ok) {
		shape_each(resource.result, call->revision);
		call->result = json_object_new_object();
		json_add(call->result, "resources", TAKE_PTR(resource.result));
		add_cursor(call, &next);
	}
	finish(&resource);
	if (!ok && err.code == ERR_INVALID)
		return bad_cursor(call);
	return ok || method_failed(call, "resources_list", &err);
}

bool method_resources_list(struct method_call *call)
{
	AUTO_BUF position = BUF_INIT;
	if (!read_cursor(call, &position))
		return false;
	if (call->endpoint->resources != NULL)
		return list_page(call, buf_str(&position));
	call->result = json_object_new_object();
	json_add(call->result, "resources", json_object_new_array());
	return true;
}

static struct json_object *describe_template(const struct resource_template *template)
{
	struct json_object *entry = json_object_new_object();
	json_add_str(entry, "uriTemplate", template->uri_template);
	json_add_str(entry, "name", template->name);
	json_add_str(entry, "title", template->title);
	json_add_str(entry, "description", template->description);
	json_add_str(entry, "mimeType", template->mime_type);
	return entry;
}

bool method_resources_templates(struct method_call *call)
{
	const struct resource_set *set = call->endpoint->resources;
	struct json_object *templates = json_object_new_array();
	for (size_t i = 0; set != NULL && i < set->template_count; i++)
		json_push(templates, describe_template(&set->templates[i]));
	shape_each(templates, call->revision);
	call->result = json_object_new_object();
	json_add(call->result, "resourceTemplates", templates);
	return method_refuse_cursor(call);
}

/* --- contents ----------------------------------------------------------------------------- */

static bool not_found(struct method_call *call, struct json_object *uri)
{
	bool modern = era_of(call->revision) == ERA_MODERN;
	rpc_in_band(&call->error, modern ? RPC_PARAMS : RPC_RESOURCE, "Resource not found");
	call->error.data = json_object_new_object();
	json_add(call->error.data, "uri", json_object_get(uri));
	return false;
}

/* Reads until nothing is left to ask. *is_missing: there is no such resource. */
static bool read_contents(struct method_call *call, struct resource_call *resource, const char *uri,
			  bool *is_missing)
{
	enum method_step step = STEP_AGAIN;
	while (step == STEP_AGAIN) {
		struct err err = ERR_INIT;
		json_object_put(resource->result);
		resource->result = json_object_new_array();
		if (!call->endpoint->resources->read(resource, uri, &err) &&
		    resource->round.missing == 0) {
			*is_missing = err.code == ERR_NOT_FOUND;
			return *is_missing ? false : method_failed(call, "resources_read", &err);
		}
		step = method_end_round(call, &resource->round);
	}
	if (step == STEP_DONE) {
		shape_each(resource->result, call->revision);
		call->result = json_object_new_object();
		json_add(call->result, "contents", TAKE_PTR(resource->result));
	}
	return step != STEP_FAILED;
}

bool method_resources_read(struct method_call *call)
{
	struct json_object *uri = json_get(call->params, "uri");
	if (!json_object_is_type(uri, json_type_string))
		return rpc_in_band(&call->error, RPC_PARAMS, "params.uri must be a string");
	if (call->endpoint->resources == NULL || rpc_name(uri) == NULL)
		return not_found(call, uri);
	struct resource_call resource = begin(call);
	bool is_missing = false;
	bool ok = method_begin_round(call, &resource.round) &&
		  read_contents(call, &resource, rpc_name(uri), &is_missing);
	finish(&resource);
	return is_missing ? not_found(call, uri) : ok;
}

/* There is no session to remember it in, and no channel to tell of changes before the next request:
 * who subscribes is told that it was understood, as those clients want. */
bool method_resources_watch(struct method_call *call)
{
	if (rpc_name(json_get(call->params, "uri")) == NULL)
		return rpc_in_band(&call->error, RPC_PARAMS, "params.uri must be a string");
	call->result = json_object_new_object();
	return true;
}
