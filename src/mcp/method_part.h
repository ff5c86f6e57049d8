/* Private to the files of the methods: the handlers, one file per part, and what they share. */
#ifndef SPOOLBOX_MCP_METHOD_PART_H
#define SPOOLBOX_MCP_METHOD_PART_H

#include "mcp/method.h"

#define TASKS_EXTENSION "io.modelcontextprotocol/tasks"

/* --- handlers ------------------------------------------------------------------------------ */

bool method_tools_list(struct method_call *call);
bool method_tools_call(struct method_call *call);
bool method_tasks_get(struct method_call *call);
bool method_tasks_update(struct method_call *call);
bool method_tasks_cancel(struct method_call *call);
bool method_resources_list(struct method_call *call);
bool method_resources_templates(struct method_call *call);
bool method_resources_read(struct method_call *call);
bool method_resources_watch(struct method_call *call);
bool method_prompts_list(struct method_call *call);
bool method_prompts_get(struct method_call *call);
bool method_complete(struct method_call *call);
bool method_set_log_level(struct method_call *call);
bool method_listen(struct method_call *call);

/* --- results and errors -------------------------------------------------------------------- */

bool method_has(const struct endpoint *endpoint, enum method_part part);

/* A list that is one page has no cursor of ours. */
bool method_refuse_cursor(struct method_call *call);

/* What a provider failed with, in band: the message and what to do next. Our own faults are logged
 * under the event's name and not shown. */
bool method_failed(struct method_call *call, const char *event, const struct err *err);

/* --- tasks --------------------------------------------------------------------------------- */

struct tool_call method_begin_tool_call(const struct method_call *call);
/* A CreateTaskResult. */
struct json_object *method_describe_task(const struct tool_task *task);
/* A whole task by its id, as tasks/get has it; NULL with err. */
struct json_object *method_fetch_task(const struct method_call *call, const char *id,
				      struct err *err);
/* False with call->error unless the client declares the extension. */
bool method_check_tasks_client(struct method_call *call);

/* --- questions to the client --------------------------------------------------------------- */

enum method_step {
	STEP_DONE,   /* nothing is asked */
	STEP_AGAIN,  /* it is answered: run the handler again */
	STEP_ASKED,  /* the result asks; it is in call->result */
	STEP_FAILED, /* with call->error */
};

/* What the client can be asked and what it answered. False with call->error. */
bool method_begin_round(struct method_call *call, struct round *round);
/* To be called after each run of a handler. */
enum method_step method_end_round(struct method_call *call, struct round *round);

#endif
