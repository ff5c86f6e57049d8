/* What a task of the fixture is about: what it asks, and how it ends. No work is done for any. */
#ifndef SPOOLBOX_CONFORMANCE_JOBS_H
#define SPOOLBOX_CONFORMANCE_JOBS_H

#include "mcp/tool.h"
#include "task_row.h"

struct question {
	const char *key, *message, *schema;
};

struct job {
	const char *name; /* of the tool that starts it */
	const struct question *questions;
	size_t question_count;
	/* Leaves the result in call, or an error in task. */
	void (*end)(const struct task_row *row, struct tool_call *call, struct tool_task *task);
};

/* NULL for a name that no job has. */
const struct job *job_find(const char *name);

/* Whether a question has an answer. */
bool job_is_answered(const struct task_row *row, const struct question *question);

#endif
