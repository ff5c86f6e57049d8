/* Tools that go on as tasks. */
#include "base/clock.h"
#include "content.h"
#include "fixture.h"
#include "tasks.h"

#define SOON_MS                             1000 /* what the suite asks for of the job that fails */
#define TICK_MS                             500  /* see tool_call_tick */
#define TASK_ONLY(tool_name, text, handler) PLAIN_TOOL(tool_name, text, handler), .task_only = true

/* As a plain call it takes its time; false when the client has gone. */
static bool sleep_while_wanted(struct tool_call *call, int64_t ms)
{
	int64_t end_ms = clock_mono_ms() + ms;
	for (int64_t left; (left = end_ms - clock_mono_ms()) > 0;) {
		clock_sleep_ms(left < TICK_MS ? left : TICK_MS);
		if (!tool_call_tick(call, NULL))
			return false;
	}
	return true;
}

static bool slow_compute(struct tool_call *call, struct err *err)
{
	int64_t seconds = json_get_int(call->arguments, "seconds", 0);
	const char *label = json_get_str(call->arguments, "label");
	if (call->takes_task && seconds > 0)
		return task_start(call, "slow_compute", call->arguments, seconds * 1000, err);
	if (!sleep_while_wanted(call, seconds * 1000))
		return call_say(call, "Nobody waits for this any more.");
	return call_say(call, "%s: computed for %d s", label == NULL ? "unnamed" : label,
			(int)seconds);
}

static bool failing_job(struct tool_call *call, struct err *err)
{
	return task_start(call, "failing_job", call->arguments, SOON_MS, err);
}

static bool protocol_error_job(struct tool_call *call, struct err *err)
{
	return task_start(call, "protocol_error_job", call->arguments, 0, err);
}

static bool confirm_delete(struct tool_call *call, struct err *err)
{
	return task_start(call, "confirm_delete", call->arguments, 0, err);
}

static bool multi_input(struct tool_call *call, struct err *err)
{
	return task_start(call, "multi_input", call->arguments, 0, err);
}

/* Asks before there is a task, and takes the answer along. */
static bool tool_with_task(struct tool_call *call, struct err *err)
{
	struct json_object *form;
	switch (round_elicit(&call->round, "user_name", "What is your name?",
			     FORM_OF_ONE("name", "string"), &form)) {
	case ROUND_ASKED:
		return true;
	case ROUND_ACCEPTED:
		return task_start(call, "test_tool_with_task", form, 0, err);
	default:
		return call_say(call, "No name, no task.");
	}
}

static const struct tool tools[] = {
	{
		.name = "slow_compute",
		.title = "slow_compute",
		.description = "Takes its time: as a task where the client takes one.",
		.input_schema =
			"{\"type\": \"object\", \"properties\": {"
			"\"seconds\": {\"type\": \"number\", \"minimum\": 0, \"maximum\": 120,"
			" \"description\": \"How long\"},"
			"\"label\": {\"type\": \"string\", \"description\": \"Comes back\"}},"
			" \"required\": [\"seconds\"], \"additionalProperties\": false}",
		.read_only = true,
		.idempotent = true,
		.call = slow_compute,
	},
	{TASK_ONLY("failing_job", "A task that ends with a failure.", failing_job)},
	{TASK_ONLY("protocol_error_job", "A task that ends with an error.", protocol_error_job)},
	{
		.name = "confirm_delete",
		.title = "confirm_delete",
		.description = "A task that asks first, and deletes nothing in the end.",
		.input_schema = "{\"type\": \"object\", \"properties\": {\"filename\": {\"type\": "
				"\"string\","
				" \"description\": \"What to delete\"}}, \"required\": "
				"[\"filename\"],"
				" \"additionalProperties\": false}",
		.task_only = true,
		.call = confirm_delete,
	},
	{TASK_ONLY("multi_input", "A task that asks two things at once.", multi_input)},
	{TASK_ONLY("test_tool_with_task", "Asks, and goes on as a task.", tool_with_task)},
};

const struct tool_family tools_task = {tools, ARRAY_LEN(tools)};
