/*
 * Methods as rows. What an era advertises is read from the same table as what it serves, so the
 * two cannot differ. Lists without content are served though they are not advertised: some
 * clients ask for them blindly and take an unknown method for a broken server.
 */
#include "mcp/method.h"

#include <string.h>

#include "base/log.h"
#include "mcp/catalog.h"
#include "mcp/method_part.h"

/* Lists of what the program or its settings bring along change only when those do. Contents, and
 * the list of what there is, change at any time. */
#define TTL_MS   300000
#define TTL_NOW  0
#define TTL_NONE (-1) /* not a method whose results say how long they hold */

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

/* What a client was asked for goes into the answer, so nobody else may have it, nor later: but the
 * members are required even then. A shared cache may hand "public" results to others even if a
 * token was sent. */
static void add_lifetime(const struct method *method, const struct method_call *call,
			 struct json_object *result)
{
	bool answers = json_has(call->params, "inputResponses");
	bool is_private = answers || call->endpoint->authenticate != NULL;
	json_add_int(result, "ttlMs", answers ? TTL_NOW : method->ttl_ms);
	json_add_str(result, "cacheScope", is_private ? "private" : "public");
}

static void finish_modern(const struct method *method, const struct method_call *call,
			  struct json_object *result)
{
	json_add_str(result, "resultType",
		     call->result_type == NULL ? "complete" : call->result_type);
	if (method->ttl_ms >= 0 && call->result_type == NULL)
		add_lifetime(method, call, result);
	if (!json_has(result, "_meta"))
		json_add(result, "_meta", json_object_new_object());
	json_add(json_get(result, "_meta"), "io.modelcontextprotocol/serverInfo",
		 implementation(call->endpoint, call->revision));
}

bool method_run(const struct method *method, struct method_call *call)
{
	call->method = method->name;
	if (!method->handle(call))
		return false;
	if (call->result != NULL && era_of(call->revision) == ERA_MODERN)
		finish_modern(method, call, call->result);
	return true;
}

bool method_refuse_cursor(struct method_call *call)
{
	return json_get(call->params, "cursor") == NULL ||
	       rpc_in_band(&call->error, RPC_PARAMS,
			   "params.cursor is not valid: the list is one page, leave it out");
}

bool method_failed(struct method_call *call, const char *event, const struct err *err)
{
	bool is_ours = err->code == ERR_NONE || err->code == ERR_IO || err->code == ERR_INTERNAL;
	bool is_theirs = err->code == ERR_INVALID || err->code == ERR_NOT_FOUND ||
			 err->code == ERR_TOO_LARGE || err->code == ERR_DENIED;
	if (is_ours) {
		log_err(LOG_ERROR, event, err);
		return rpc_in_band(&call->error, RPC_INTERNAL, "Internal error");
	}
	return rpc_in_band(&call->error, is_theirs ? RPC_PARAMS : RPC_INTERNAL, "%s. %s",
			   err_message(err), err_next(err));
}

/* --- discovery ---------------------------------------------------------------------------- */

static struct json_object *capabilities_of(const struct endpoint *endpoint, enum era era);

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
	json_add(call->result, "capabilities", capabilities_of(call->endpoint, ERA_MODERN));
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
	call->agreed = era_revision_name(revision);
	call->result = json_object_new_object();
	json_add_str(call->result, "protocolVersion", call->agreed);
	json_add(call->result, "capabilities", capabilities_of(call->endpoint, ERA_LEGACY));
	json_add(call->result, "serverInfo", implementation(call->endpoint, revision));
	add_instructions(call->endpoint, call->result);
	return true;
}

static bool ping(struct method_call *call)
{
	call->result = json_object_new_object();
	return true;
}

/* Without a session there is nothing to remember it in: in the handshake era messages are sent
 * from the level info on. */
bool method_set_log_level(struct method_call *call)
{
	if (era_log_level(json_get(call->params, "level")) < 0)
		return rpc_in_band(&call->error, RPC_PARAMS,
				   "params.level must be a syslog level name such as \"info\"");
	return ping(call);
}

/* --- the table ---------------------------------------------------------------------------- */

/* clang-format off */
static const struct method methods[] = {
	{"server/discover", ERA_MODERN, PART_ALWAYS, discover,
	 NULL, PART_ALWAYS, TTL_MS},
	{"initialize", ERA_LEGACY, PART_ALWAYS, initialize,
	 NULL, PART_ALWAYS, TTL_NONE},
	{"ping", ERA_LEGACY, PART_ALWAYS, ping,
	 NULL, PART_ALWAYS, TTL_NONE},
	{"tools/list", ERA_BOTH, PART_ALWAYS, method_tools_list,
	 "tools", PART_ALWAYS, TTL_MS},
	{"tools/call", ERA_BOTH, PART_ALWAYS, method_tools_call,
	 "tools", PART_ALWAYS, TTL_NONE},
	{"prompts/list", ERA_BOTH, PART_ALWAYS, method_prompts_list,
	 "prompts", PART_PROMPTS, TTL_MS},
	{"prompts/get", ERA_BOTH, PART_PROMPTS, method_prompts_get,
	 "prompts", PART_PROMPTS, TTL_NONE},
	{"resources/list", ERA_BOTH, PART_ALWAYS, method_resources_list,
	 "resources", PART_RESOURCES, TTL_NOW},
	{"resources/templates/list", ERA_BOTH, PART_ALWAYS, method_resources_templates,
	 "resources", PART_RESOURCES, TTL_MS},
	{"resources/read", ERA_BOTH, PART_ALWAYS, method_resources_read,
	 "resources", PART_RESOURCES, TTL_NOW},
	{"resources/subscribe", ERA_LEGACY, PART_WATCHES, method_resources_watch,
	 NULL, PART_ALWAYS, TTL_NONE},
	{"resources/unsubscribe", ERA_LEGACY, PART_WATCHES, method_resources_watch,
	 NULL, PART_ALWAYS, TTL_NONE},
	{"completion/complete", ERA_BOTH, PART_COMPLETION, method_complete,
	 "completions", PART_COMPLETION, TTL_NONE},
	{"logging/setLevel", ERA_LEGACY, PART_LOGS, method_set_log_level,
	 "logging", PART_LOGS, TTL_NONE},
	{"subscriptions/listen", ERA_MODERN, PART_EVENTS, method_listen,
	 NULL, PART_ALWAYS, TTL_NONE},
	{"tasks/get", ERA_MODERN, PART_TASKS, method_tasks_get,
	 "extensions", PART_TASKS, TTL_NONE},
	{"tasks/update", ERA_MODERN, PART_TASKS, method_tasks_update,
	 "extensions", PART_TASKS, TTL_NONE},
	{"tasks/cancel", ERA_MODERN, PART_TASKS, method_tasks_cancel,
	 "extensions", PART_TASKS, TTL_NONE},
};
/* clang-format on */

static bool completes(const struct endpoint *endpoint)
{
	const struct prompt_list *prompts = endpoint->prompts;
	for (size_t i = 0; prompts != NULL && i < prompts->count; i++) {
		if (prompts->prompts[i]->complete != NULL)
			return true;
	}
	return endpoint->resources != NULL && endpoint->resources->complete != NULL;
}

bool method_has(const struct endpoint *endpoint, enum method_part part)
{
	switch (part) {
	case PART_ALWAYS:
		return true;
	case PART_RESOURCES:
		return endpoint->resources != NULL;
	case PART_PROMPTS:
		return endpoint->prompts != NULL && endpoint->prompts->count > 0;
	case PART_COMPLETION:
		return completes(endpoint);
	case PART_WATCHES:
		return endpoint->resources != NULL && endpoint->resources->subscribe;
	case PART_EVENTS:
		return endpoint->events != NULL;
	case PART_LOGS:
		return endpoint->logs;
	case PART_TASKS:
		return endpoint->tasks != NULL;
	}
	return false;
}

static bool is_served(const struct endpoint *endpoint, const struct method *method, enum era era)
{
	return (method->eras & era) != 0 && method_has(endpoint, method->served_with);
}

const struct method *method_find(const struct endpoint *endpoint, const char *name, enum era era)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		if (is_served(endpoint, &methods[i], era) && strcmp(methods[i].name, name) == 0)
			return &methods[i];
	}
	return NULL;
}

/* --- capabilities ------------------------------------------------------------------------- */

/* Flags within a capability promise that changes are told. In the modern era that takes listeners;
 * in the handshake era there is no channel, but clients may ask to subscribe all the same. */
static const struct {
	const char *capability, *flag;
	enum era eras;
	enum method_part part;
} flags[] = {
	{"tools", "listChanged", ERA_MODERN, PART_ALWAYS},
	{"prompts", "listChanged", ERA_MODERN, PART_ALWAYS},
	{"resources", "listChanged", ERA_MODERN, PART_ALWAYS},
	{"resources", "subscribe", ERA_BOTH, PART_WATCHES},
};

static void add_flags(const struct endpoint *endpoint, enum era era,
		      struct json_object *capabilities)
{
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		struct json_object *capability = json_get(capabilities, flags[i].capability);
		bool is_told = era == ERA_LEGACY || method_has(endpoint, PART_EVENTS);
		if (capability != NULL && (flags[i].eras & era) != 0 && is_told &&
		    method_has(endpoint, flags[i].part))
			json_add_bool(capability, flags[i].flag, true);
	}
}

static struct json_object *capabilities_of(const struct endpoint *endpoint, enum era era)
{
	struct json_object *capabilities = json_object_new_object();
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		const struct method *method = &methods[i];
		if (is_served(endpoint, method, era) && method->capability != NULL &&
		    method_has(endpoint, method->advertised_with))
			json_add(capabilities, method->capability, json_object_new_object());
	}
	/* In the modern era a request names its level itself, so no method stands for it. */
	if (method_has(endpoint, PART_LOGS))
		json_add(capabilities, "logging", json_object_new_object());
	if (json_has(capabilities, "extensions"))
		json_add(json_get(capabilities, "extensions"), TASKS_EXTENSION,
			 json_object_new_object());
	add_flags(endpoint, era, capabilities);
	return capabilities;
}

void method_prepare(const struct endpoint *endpoint)
{
	struct catalog *catalog = endpoint->catalog;
	const struct method *list = method_find(endpoint, "tools/list", ERA_BOTH);
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
