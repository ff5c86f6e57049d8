/* See jobs.h. */
#include "jobs.h"

#include <string.h>

#include "content.h"
#include "mcp/rpc.h"

static void end_compute(const struct task_row *row, struct tool_call *call, struct tool_task *task)
{
	(void)task;
	const char *label = json_get_str(row->arguments, "label");
	call_say(call, "%s: computed for %d s", label == NULL ? "unnamed" : label,
		 (int)json_get_int(row->arguments, "seconds", 0));
}

static void end_failing(const struct task_row *row, struct tool_call *call, struct tool_task *task)
{
	(void)row;
	(void)task;
	call->is_error = true;
	call_say(call, "This job always fails, as it should.");
}

static void end_broken(const struct task_row *row, struct tool_call *call, struct tool_task *task)
{
	(void)row;
	(void)call;
	task->status = TOOL_TASK_FAILED;
	task->error = json_object_new_object();
	json_add_int(task->error, "code", RPC_INTERNAL);
	json_add_str(task->error, "message", "This job always breaks off, as it should.");
}

static struct json_object *form_of(const struct task_row *row, const char *key)
{
	struct json_object *answer = json_get(row->answers, key);
	const char *action = json_get_str(answer, "action");
	return action != NULL && strcmp(action, "accept") == 0 ? json_get(answer, "content") : NULL;
}

static void end_delete(const struct task_row *row, struct tool_call *call, struct tool_task *task)
{
	(void)task;
	bool confirmed = json_get_bool(form_of(row, "confirm"), "confirm", false);
	call_say(call, "%s was %s.", json_get_str(row->arguments, "filename"),
		 confirmed ? "deleted" : "kept");
}

static void end_multi(const struct task_row *row, struct tool_call *call, struct tool_task *task)
{
	(void)task;
	const char *name = json_get_str(form_of(row, "who"), "name");
	bool confirmed = json_get_bool(form_of(row, "sure"), "confirm", false);
	call_say(call, "%s is %s.", name == NULL ? "Nobody" : name,
		 confirmed ? "sure" : "not sure");
}

static void end_greeting(const struct task_row *row, struct tool_call *call, struct tool_task *task)
{
	(void)task;
	call_say(call, "Hello, %s!", json_get_str(row->arguments, "name"));
}

static const struct question confirm[] = {
	{"confirm", "Delete the file?", FORM_OF_ONE("confirm", "boolean")},
};
static const struct question who_and_sure[] = {
	{"who", "Who are you?", FORM_OF_ONE("name", "string")},
	{"sure", "Are you sure?", FORM_OF_ONE("confirm", "boolean")},
};

static const struct job jobs[] = {
	{"slow_compute", NULL, 0, end_compute},
	{"failing_job", NULL, 0, end_failing},
	{"protocol_error_job", NULL, 0, end_broken},
	{"confirm_delete", confirm, ARRAY_LEN(confirm), end_delete},
	{"multi_input", who_and_sure, ARRAY_LEN(who_and_sure), end_multi},
	{"test_tool_with_task", NULL, 0, end_greeting},
};

const struct job *job_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
		if (strcmp(jobs[i].name, name) == 0)
			return &jobs[i];
	}
	return NULL;
}

bool job_is_answered(const struct task_row *row, const struct question *question)
{
	return json_get(row->answers, question->key) != NULL;
}
