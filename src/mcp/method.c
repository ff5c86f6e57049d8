/*
 * Methods as rows. What an era advertises is read from the same table as what it serves, so the
 * two cannot differ. Lists without content are served though they are not advertised: some
 * clients ask for them blindly and take an unknown method for a broken server.
 */
#include "mcp/method.h"

#include <string.h>

#include "mcp/call.h"
#include "mcp/catalog.h"

/* Five minutes: lists change only when the program is replaced or its settings are. */
#define TTL_MS 300000

/* --- what surrounds a result -------------------------------------------------------------- */

static struct json_object *implementation(const struct endpoint *endpoint, enum revision revision)
{
	struct json_object *info = json_object_new_object();
	json_add_str(info, "name", endpoint->name);
	json_add_str(info, "title", endpoint->title);
	json_add_str(info, "version", endpoint->version);
	if (revision >= REVISION_2025_11_25)
		json_add_str(info, "description", endpoint->description);
	json_add_str(info, "websiteUrl", endpoint->website_url);
	era_shape(info, revision);
	return info;
}

static void finish_modern(const struct method *method, const struct method_call *call,
			  struct json_object *result)
{
	json_add_str(result, "resultType", "complete");
	if (method->cacheable) {
		json_add_int(result, "ttlMs", TTL_MS);
		/* A shared cache may hand "public" results to others even if a token was sent. */
		json_add_str(result, "cacheScope",
			     call->endpoint->authenticate == NULL ? "public" : "private");
	}
	struct json_object *meta = json_object_new_object();
	json_add(meta, "io.modelcontextprotocol/serverInfo",
		 implementation(call->endpoint, call->revision));
	json_add(result, "_meta", meta);
}

bool method_run(const struct method *method, struct method_call *call, struct buf *text)
{
	if (!method->handle(call))
		return false;
	if (call->result == NULL)
		return true;
	if (era_of(call->revision) == ERA_MODERN)
		finish_modern(method, call, call->result);
	size_t len;
	const char *written = json_text(call->result, &len);
	buf_append(text, written, len);
	json_object_put(TAKE_PTR(call->result));
	return true;
}

/* --- discovery ---------------------------------------------------------------------------- */

static struct json_object *capabilities_of(enum era era);

static void add_instructions(const struct endpoint *endpoint, struct json_object *result)
{
	AUTO_FREE char *text =
		endpoint->instructions == NULL ? NULL : endpoint->instructions(endpoint->app);
	json_add_str(result, "instructions", text);
}

static bool discover(struct method_call *call)
{
	call->result = json_object_new_object();
	json_add(call->result, "supportedVersions", era_revisions(ERA_MODERN));
	json_add(call->result, "capabilities", capabilities_of(ERA_MODERN));
	add_instructions(call->endpoint, call->result);
	return true;
}

/* Never an error: a client that names another revision gets our newest one it can shake hands
 * with, and decides for itself. */
static bool initialize(struct method_call *call)
{
	const char *wanted = rpc_name(json_get(call->params, "protocolVersion"));
	enum revision revision;
	if (wanted == NULL || !era_find_revision(wanted, &revision) ||
	    era_of(revision) != ERA_LEGACY)
		revision = REVISION_NEWEST_LEGACY;
	call->result = json_object_new_object();
	json_add_str(call->result, "protocolVersion", era_revision_name(revision));
	json_add(call->result, "capabilities", capabilities_of(ERA_LEGACY));
	json_add(call->result, "serverInfo", implementation(call->endpoint, revision));
	add_instructions(call->endpoint, call->result);
	return true;
}

static bool ping(struct method_call *call)
{
	call->result = json_object_new_object();
	return true;
}

/* --- lists: each is one page, so no cursor is ours ---------------------------------------- */

static bool refuse_cursor(struct method_call *call)
{
	return json_get(call->params, "cursor") == NULL ||
	       rpc_in_band(&call->error, RPC_PARAMS,
			   "params.cursor is not valid: the list is one page, leave it out");
}

static bool tools_list(struct method_call *call)
{
	call->ready = &call->endpoint->catalog->listing[call->revision];
	return refuse_cursor(call);
}

static bool empty_list(struct method_call *call, const char *member)
{
	call->result = json_object_new_object();
	json_add(call->result, member, json_object_new_array());
	return refuse_cursor(call);
}

static bool prompts_list(struct method_call *call)
{
	return empty_list(call, "prompts");
}

static bool resources_list(struct method_call *call)
{
	return empty_list(call, "resources");
}

static bool templates_list(struct method_call *call)
{
	return empty_list(call, "resourceTemplates");
}

static bool resources_read(struct method_call *call)
{
	struct json_object *uri = json_get(call->params, "uri");
	if (!json_object_is_type(uri, json_type_string))
		return rpc_in_band(&call->error, RPC_PARAMS, "params.uri must be a string");
	bool modern = era_of(call->revision) == ERA_MODERN;
	rpc_in_band(&call->error, modern ? RPC_PARAMS : RPC_RESOURCE, "Resource not found");
	call->error.data = json_object_new_object();
	json_add(call->error.data, "uri", json_object_get(uri));
	return false;
}

/* --- tools/call --------------------------------------------------------------------------- */

static bool unknown_tool(struct method_call *call, const char *name)
{
	const char *meant = catalog_near(call->endpoint->catalog, name);
	return rpc_in_band(&call->error, RPC_PARAMS, "Unknown tool \"%.64s\"%s%s%s", name,
			   meant == NULL ? "; tools/list names those there are"
					 : "; did you mean \"",
			   meant == NULL ? "" : meant, meant == NULL ? "" : "\"?");
}

static bool tools_call(struct method_call *call)
{
	const char *name = rpc_name(json_get(call->params, "name"));
	struct json_object *arguments = json_get(call->params, "arguments");
	if (name == NULL)
		return rpc_in_band(&call->error, RPC_PARAMS,
				   "params.name must be the name of a tool");
	const struct catalog_entry *entry = catalog_find(call->endpoint->catalog, name);
	if (entry == NULL)
		return unknown_tool(call, name);
	call->tool = entry->tool->name;
	if (era_of(call->revision) == ERA_MODERN &&
	    !mirror_check_params(call->request, &entry->mirrors, arguments, &call->error))
		return false;
	call->result =
		call_tool(entry, call->endpoint->app, call->principal, arguments, &call->outcome);
	if (call->result == NULL)
		return rpc_in_band(&call->error, RPC_INTERNAL, "Internal error");
	era_shape(call->result, call->revision);
	era_shape_content(json_get(call->result, "content"), call->revision);
	return true;
}

/* --- the table ---------------------------------------------------------------------------- */

static const struct method methods[] = {
	{"server/discover", ERA_MODERN, NULL, true, discover},
	{"initialize", ERA_LEGACY, NULL, false, initialize},
	{"ping", ERA_LEGACY, NULL, false, ping},
	{"tools/list", ERA_BOTH, "tools", true, tools_list},
	{"tools/call", ERA_BOTH, "tools", false, tools_call},
	{"prompts/list", ERA_BOTH, NULL, true, prompts_list},
	{"resources/list", ERA_BOTH, NULL, true, resources_list},
	{"resources/templates/list", ERA_BOTH, NULL, true, templates_list},
	{"resources/read", ERA_BOTH, NULL, true, resources_read},
};

const struct method *method_find(const char *name, enum era era)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		if ((methods[i].eras & era) != 0 && strcmp(methods[i].name, name) == 0)
			return &methods[i];
	}
	return NULL;
}

/* No flags inside: none of them can be kept without a channel to the client. */
static struct json_object *capabilities_of(enum era era)
{
	struct json_object *capabilities = json_object_new_object();
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		if (methods[i].capability != NULL && (methods[i].eras & era) != 0)
			json_add(capabilities, methods[i].capability, json_object_new_object());
	}
	return capabilities;
}

void method_prepare(const struct endpoint *endpoint)
{
	struct catalog *catalog = endpoint->catalog;
	const struct method *list = method_find("tools/list", ERA_BOTH);
	for (int i = 0; i < REVISION__MAX; i++) {
		struct method_call call = {.endpoint = endpoint, .revision = (enum revision)i};
		AUTO_JSON *result = json_object_new_object();
		json_add(result, "tools", catalog_describe(catalog, call.revision));
		if (era_of(call.revision) == ERA_MODERN)
			finish_modern(list, &call, result);
		size_t len;
		const char *text = json_text(result, &len);
		buf_append(&catalog->listing[i], text, len);
	}
}
