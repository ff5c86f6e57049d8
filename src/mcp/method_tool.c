/* tools/list and tools/call. */
#include "mcp/call.h"
#include "mcp/catalog.h"
#include "mcp/method_part.h"

bool method_tools_list(struct method_call *call)
{
	call->ready = &call->endpoint->catalog->listing[call->revision];
	return method_refuse_cursor(call);
}

static bool unknown_tool(struct method_call *call, const char *name)
{
	const char *meant = catalog_near(call->endpoint->catalog, name);
	return rpc_in_band(&call->error, RPC_PARAMS, "Unknown tool \"%.64s\"%s%s%s", name,
			   meant == NULL ? "; tools/list names those there are"
					 : "; did you mean \"",
			   meant == NULL ? "" : meant, meant == NULL ? "" : "\"?");
}

struct tool_call method_begin_tool_call(const struct method_call *call)
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

/* Handshake revisions have no error for what a client lacks. */
static bool may_start(struct method_call *call, const struct tool *tool, bool takes_task)
{
	if (!tool->task_only || takes_task)
		return true;
	if (era_of(call->revision) == ERA_MODERN)
		return method_check_tasks_client(call);
	return rpc_in_band(&call->error, RPC_PARAMS,
			   "Tool \"%s\" needs a client of revision 2026-07-28 with the "
			   "extension " TASKS_EXTENSION,
			   tool->name);
}

/* Runs the tool until nothing is left to ask. */
static bool run_tool(struct method_call *call, const struct catalog_entry *entry,
		     struct tool_call *tool_call, struct json_object *arguments)
{
	enum method_step step = STEP_AGAIN;
	while (step == STEP_AGAIN) {
		call->result = call_tool(entry, tool_call, arguments, &call->outcome);
		if (call->result != NULL) {
			era_shape(call->result, call->revision);
			era_shape_content(json_get(call->result, "content"), call->revision);
			return true;
		}
		step = method_end_round(call, &tool_call->round);
	}
	if (step == STEP_DONE && tool_call->task.status != TOOL_TASK_NONE) {
		call->result = method_describe_task(&tool_call->task);
		call->result_type = "task";
	} else if (step == STEP_DONE) {
		return rpc_in_band(&call->error, RPC_INTERNAL, "Internal error");
	}
	return step != STEP_FAILED;
}

bool method_tools_call(struct method_call *call)
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
	struct tool_call tool_call = method_begin_tool_call(call);
	bool ok = may_start(call, entry->tool, tool_call.takes_task) &&
		  method_begin_round(call, &tool_call.round) &&
		  run_tool(call, entry, &tool_call, arguments);
	call_finish(&tool_call);
	return ok;
}
