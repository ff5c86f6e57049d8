/* Tasks of the fixture as the tasks extension sees them; struct tool_tasks is in fixture.h. */
#ifndef SPOOLBOX_CONFORMANCE_TASKS_H
#define SPOOLBOX_CONFORMANCE_TASKS_H

#include "jobs.h"
#include "mcp/tool.h"

/* Makes a task of a call: it is durable and in call->task when this succeeds. It ends ms from now,
 * or when its last question is answered. arguments: what it is to remember. */
bool task_start(struct tool_call *call, const char *job, struct json_object *arguments, int64_t ms,
		struct err *err) MUST_USE;

#endif
