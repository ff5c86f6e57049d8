/*
 * Methods as rows. What an era advertises is read from the same table as what it serves, so the
 * two cannot differ. Lists without content are served though they are not advertised: some
 * clients ask for them blindly and take an unknown method for a broken server.
 */
#include "mcp/method.h"

#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "mcp/call.h"
#include "mcp/catalog.h"

#define TASKS_EXTENSION "io.modelcontextprotocol/tasks"
#define TASK_POLL_MS    2000 /* a model's client looks for seconds to minutes */

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
	json_add_str(result, "resultType",
		     call->result_type == NULL ? "complete" : call->result_type);
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

static struct tool_call begin_tool_call(const struct method_call *call)
{
	return (struct tool_call){
		.app = call->endpoint->app,
		.principal = call->principal,
		.stream = call->stream,
		.takes_task = call->endpoint->tasks != NULL &&
			      era_of(call->revision) == ERA_MODERN &&
			      era_declares(call->params, TASKS_EXTENSION),
	};
}

static const char *const task_statuses[] = {
	[TOOL_TASK_WORKING] = "working",
	[TOOL_TASK_COMPLETED] = "completed",
	[TOOL_TASK_CANCELLED] = "cancelled",
};

static struct json_object *describe_task(const struct tool_task *task)
{
	char created[CLOCK_RFC3339_LEN], updated[CLOCK_RFC3339_LEN];
	struct json_object *result = json_object_new_object();
	json_add_str(result, "taskId", task->id);
	json_add_str(result, "status", task_statuses[task->status]);
	json_add_str(result, "statusMessage", task->message);
	json_add_str(result, "createdAt", clock_rfc3339(task->created_at, created));
	json_add_str(result, "lastUpdatedAt", clock_rfc3339(task->updated_at, updated));
	json_add_int(result, "ttlMs", task->ttl_ms);
	json_add_int(result, "pollIntervalMs", TASK_POLL_MS);
	return result;
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
	if (era_of(call->revision) == ERA_MODERN && call->request != NULL &&
	    !mirror_check_params(call->request, &entry->mirrors, arguments, &call->error))
		return false;
	struct tool_call tool_call = begin_tool_call(call);
	call->result = call_tool(entry, &tool_call, arguments, &call->outcome);
	if (call->result == NULL && tool_call.task.status != TOOL_TASK_NONE) {
		call->result = describe_task(&tool_call.task);
		call->result_type = "task";
	} else if (call->result != NULL) {
		era_shape(call->result, call->revision);
		era_shape_content(json_get(call->result, "content"), call->revision);
	}
	call_finish(&tool_call);
	return call->result != NULL || rpc_in_band(&call->error, RPC_INTERNAL, "Internal error");
}

/* --- the tasks extension ------------------------------------------------------------------ */

static bool check_tasks_client(struct method_call *call)
{
	if (era_declares(call->params, TASKS_EXTENSION))
		return true;
	rpc_refuse(&call->error, RPC_CAPABILITY,
		   "The client did not declare the extension " TASKS_EXTENSION);
	call->error.data = json_literal(
		"{\"requiredCapabilities\":{\"extensions\":{\"" TASKS_EXTENSION "\":{}}}}");
	return false;
}

static bool task_failed(struct method_call *call, const struct err *err)
{
	if (err->code == ERR_NOT_FOUND || err->code == ERR_INVALID)
		return rpc_in_band(&call->error, RPC_PARAMS, "Unknown task");
	log_err(LOG_ERROR, "tasks", err);
	return rpc_in_band(&call->error, RPC_INTERNAL, "Internal error");
}

/* Finds the task that params name; with its result left in tool_call when it is completed. */
static bool find_task(struct method_call *call, struct tool_call *tool_call, struct tool_task *task)
{
	struct err err = ERR_INIT;
	const char *id = rpc_name(json_get(call->params, "taskId"));
	if (!check_tasks_client(call))
		return false;
	if (id == NULL)
		return rpc_in_band(&call->error, RPC_PARAMS, "params.taskId must be a string");
	if (!id_is_valid(id))
		return rpc_in_band(&call->error, RPC_PARAMS, "Unknown task");
	*tool_call = begin_tool_call(call);
	return call->endpoint->tasks->get(tool_call, id, task, &err) || task_failed(call, &err);
}

static void add_task_result(struct json_object *result, struct tool_call *tool_call)
{
	struct json_object *of_call = call_result(tool_call);
	json_add_str(of_call, "resultType", "complete");
	json_add(result, "result", of_call);
}

static bool tasks_get(struct method_call *call)
{
	struct tool_call tool_call = {0};
	struct tool_task task = {0};
	if (find_task(call, &tool_call, &task)) {
		call->result = describe_task(&task);
		if (task.status == TOOL_TASK_COMPLETED)
			add_task_result(call->result, &tool_call);
	}
	call_finish(&tool_call);
	tool_task_finish(&task);
	return call->result != NULL;
}

/* Nothing was asked for, so every answer is to an unknown key, which is to be ignored. */
static bool tasks_update(struct method_call *call)
{
	struct tool_call tool_call = {0};
	struct tool_task task = {0};
	bool ok = find_task(call, &tool_call, &task);
	if (ok && !json_object_is_type(json_get(call->params, "inputResponses"), json_type_object))
		ok = rpc_in_band(&call->error, RPC_PARAMS,
				 "params.inputResponses must be an object");
	if (ok)
		call->result = json_object_new_object();
	call_finish(&tool_call);
	tool_task_finish(&task);
	return ok;
}

static bool tasks_cancel(struct method_call *call)
{
	struct err err = ERR_INIT;
	struct tool_call tool_call = {0};
	struct tool_task task = {0};
	bool ok = find_task(call, &tool_call, &task);
	if (ok && task.status == TOOL_TASK_WORKING &&
	    !call->endpoint->tasks->cancel(&tool_call, task.id, &err))
		ok = task_failed(call, &err);
	if (ok)
		call->result = json_object_new_object();
	call_finish(&tool_call);
	tool_task_finish(&task);
	return ok;
}

/* --- the table ---------------------------------------------------------------------------- */

static const struct method methods[] = {
	{"server/discover", ERA_MODERN, NULL, true, false, discover},
	{"initialize", ERA_LEGACY, NULL, false, false, initialize},
	{"ping", ERA_LEGACY, NULL, false, false, ping},
	{"tools/list", ERA_BOTH, "tools", true, false, tools_list},
	{"tools/call", ERA_BOTH, "tools", false, false, tools_call},
	{"prompts/list", ERA_BOTH, NULL, true, false, prompts_list},
	{"resources/list", ERA_BOTH, NULL, true, false, resources_list},
	{"resources/templates/list", ERA_BOTH, NULL, true, false, templates_list},
	{"resources/read", ERA_BOTH, NULL, true, false, resources_read},
	{"tasks/get", ERA_MODERN, NULL, false, true, tasks_get},
	{"tasks/update", ERA_MODERN, NULL, false, true, tasks_update},
	{"tasks/cancel", ERA_MODERN, NULL, false, true, tasks_cancel},
};

static bool is_served(const struct endpoint *endpoint, const struct method *method, enum era era)
{
	return (method->eras & era) != 0 && (!method->of_tasks || endpoint->tasks != NULL);
}

const struct method *method_find(const struct endpoint *endpoint, const char *name, enum era era)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		if (is_served(endpoint, &methods[i], era) && strcmp(methods[i].name, name) == 0)
			return &methods[i];
	}
	return NULL;
}

/* No flags inside: none of them can be kept without a channel to the client. */
static struct json_object *capabilities_of(const struct endpoint *endpoint, enum era era)
{
	struct json_object *capabilities = json_object_new_object();
	bool tasks = false;
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		const struct method *method = &methods[i];
		if (!is_served(endpoint, method, era))
			continue;
		if (method->capability != NULL)
			json_add(capabilities, method->capability, json_object_new_object());
		tasks |= method->of_tasks;
	}
	if (tasks)
		json_add(capabilities, "extensions", json_literal("{\"" TASKS_EXTENSION "\":{}}"));
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
