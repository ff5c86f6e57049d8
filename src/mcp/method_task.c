/* The tasks extension: calls that go on after their answer. */
#include "base/clock.h"
#include "base/id.h"
#include "mcp/call.h"
#include "mcp/method_part.h"

#define TASK_POLL_MS 2000 /* a model's client looks for seconds to minutes */

static const char *const statuses[] = {
	[TOOL_TASK_WORKING] = "working",     [TOOL_TASK_INPUT] = "input_required",
	[TOOL_TASK_COMPLETED] = "completed", [TOOL_TASK_FAILED] = "failed",
	[TOOL_TASK_CANCELLED] = "cancelled",
};

struct json_object *method_describe_task(const struct tool_task *task)
{
	char created[CLOCK_RFC3339_LEN], updated[CLOCK_RFC3339_LEN];
	struct json_object *result = json_object_new_object();
	json_add_str(result, "taskId", task->id);
	json_add_str(result, "status", statuses[task->status]);
	json_add_str(result, "statusMessage", task->message);
	json_add_str(result, "createdAt", clock_rfc3339(task->created_at, created));
	json_add_str(result, "lastUpdatedAt", clock_rfc3339(task->updated_at, updated));
	json_add_int(result, "ttlMs", task->ttl_ms);
	json_add_int(result, "pollIntervalMs", TASK_POLL_MS);
	return result;
}

/* What comes with its status. */
static void add_outcome(struct json_object *result, const struct tool_task *task,
			struct tool_call *tool_call)
{
	if (task->status == TOOL_TASK_INPUT)
		json_add(result, "inputRequests", json_object_get(task->requests));
	if (task->status == TOOL_TASK_FAILED)
		json_add(result, "error", json_object_get(task->error));
	if (task->status == TOOL_TASK_COMPLETED) {
		struct json_object *of_call = call_result(tool_call);
		json_add_str(of_call, "resultType", "complete");
		json_add(result, "result", of_call);
	}
}

struct json_object *method_fetch_task(const struct method_call *call, const char *id,
				      struct err *err)
{
	struct tool_call tool_call = method_begin_tool_call(call);
	struct tool_task task = {0};
	struct json_object *result = NULL;
	if (!id_is_valid(id)) {
		err_set(err, ERR_NOT_FOUND, "no such task");
	} else if (call->endpoint->tasks->get(&tool_call, id, &task, err)) {
		result = method_describe_task(&task);
		add_outcome(result, &task, &tool_call);
	}
	call_finish(&tool_call);
	tool_task_finish(&task);
	return result;
}

bool method_check_tasks_client(struct method_call *call)
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
	return method_failed(call, "tasks", err);
}

/* The id that params name, or NULL with call->error. */
static const char *read_id(struct method_call *call)
{
	const char *id = rpc_name(json_get(call->params, "taskId"));
	if (!method_check_tasks_client(call))
		return NULL;
	if (id == NULL)
		rpc_in_band(&call->error, RPC_PARAMS, "params.taskId must be a string");
	else if (!id_is_valid(id))
		rpc_in_band(&call->error, RPC_PARAMS, "Unknown task");
	else
		return id;
	return NULL;
}

bool method_tasks_get(struct method_call *call)
{
	struct err err = ERR_INIT;
	const char *id = read_id(call);
	if (id == NULL)
		return false;
	call->result = method_fetch_task(call, id, &err);
	return call->result != NULL || task_failed(call, &err);
}

/* Finds the task that params name. */
static bool find_task(struct method_call *call, struct tool_call *tool_call, struct tool_task *task)
{
	struct err err = ERR_INIT;
	const char *id = read_id(call);
	if (id == NULL)
		return false;
	*tool_call = method_begin_tool_call(call);
	return call->endpoint->tasks->get(tool_call, id, task, &err) || task_failed(call, &err);
}

/* Where no task asks, every answer is to an unknown key, which is to be ignored. */
static bool hand_over(struct method_call *call, struct tool_call *tool_call,
		      const struct tool_task *task)
{
	struct err err = ERR_INIT;
	struct json_object *answers = json_get(call->params, "inputResponses");
	if (!json_object_is_type(answers, json_type_object))
		return rpc_in_band(&call->error, RPC_PARAMS,
				   "params.inputResponses must be an object");
	return call->endpoint->tasks->update == NULL ||
	       call->endpoint->tasks->update(tool_call, task->id, answers, &err) ||
	       task_failed(call, &err);
}

static bool stop(struct method_call *call, struct tool_call *tool_call,
		 const struct tool_task *task)
{
	struct err err = ERR_INIT;
	bool goes_on = task->status == TOOL_TASK_WORKING || task->status == TOOL_TASK_INPUT;
	return !goes_on || call->endpoint->tasks->cancel(tool_call, task->id, &err) ||
	       task_failed(call, &err);
}

/* Acknowledges what was done with a task. */
static bool act_on_task(struct method_call *call,
			bool (*act)(struct method_call *call, struct tool_call *tool_call,
				    const struct tool_task *task))
{
	struct tool_call tool_call = {0};
	struct tool_task task = {0};
	bool ok = find_task(call, &tool_call, &task) && act(call, &tool_call, &task);
	if (ok)
		call->result = json_object_new_object();
	call_finish(&tool_call);
	tool_task_finish(&task);
	return ok;
}

bool method_tasks_update(struct method_call *call)
{
	return act_on_task(call, hand_over);
}

bool method_tasks_cancel(struct method_call *call)
{
	return act_on_task(call, stop);
}
