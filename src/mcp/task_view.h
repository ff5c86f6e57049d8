/* Tasks in the arguments and results of tools: what the families that deal with them share. */
#ifndef SPOOLBOX_MCP_TASK_VIEW_H
#define SPOOLBOX_MCP_TASK_VIEW_H

#include "box/task.h"
#include "mcp/literal.h"
#include "mcp/tool.h"

/* A schema's pattern for job_id and task_id. */
#define TASK_VIEW_ID ",\"pattern\":\"^[0-9a-f]{32}$\""
/* clang-format off */
#define TASK_VIEW_STATES \
	L_ENUM("\"running\",\"succeeded\",\"failed\",\"cancelled\",\"timed_out\",\"unknown\"")
#define TASK_VIEW_STATUSES L_ENUM("\"running\",\"finished\",\"unknown\"")
/* Members that task_view_end adds. */
#define TASK_VIEW_END \
	L_INT("exit_code", "", "Exit code, when the command ended by itself.") "," \
	L_STR("signal", "", "Signal that ended the command, e.g. SIGKILL.") "," \
	L_STR("reason", "", "Why it ended so, or why its end is not known.") "," \
	L_INT("background_processes", L_AT_LEAST(1), \
	      "Processes that it left running on purpose. They end with the sandbox.")
#define TASK_VIEW_WILL_REMOVE_AT \
	L_STR("will_remove_at", "", \
	      "When the sandbox's lifetime is over, RFC 3339; it is removed then with its files and tasks. " \
	      "Absent: it has none.")
/* clang-format on */

/* In one word for those who only ask whether to go on polling. */
const char *task_view_status(enum task_state state);

/* "SIGKILL", or "signal 37" for one without a name. */
void task_view_signal(struct json_object *result, int number);
void task_view_end(struct json_object *result, const struct task_row *row);

/* A command's first max bytes. */
void task_view_command(struct json_object *result, const char *command, size_t max);

/* From its start to its end, or until now. */
int64_t task_view_elapsed_ms(const struct task_row *row);

/* Says when the sandbox ends, and in note what that means for a task that has timeout_ms from now;
 * 0: it ended. */
void task_view_life(struct json_object *result, const struct sandbox_row *sandbox,
		    int64_t timeout_ms, struct buf *note);

/* The id of the sandbox that the arguments name; empty when they name none. One that has gone can
 * still be given by its id. */
bool task_view_sandbox_id(const struct tool_call *call, char id[static ID_LEN + 1],
			  struct err *err) MUST_USE;

/* The sandbox of a task, in whatever state it is. The row wants to be zeroed. */
bool task_view_sandbox(const struct tool_call *call, const struct task_row *task,
		       struct sandbox_row *row, struct err *err) MUST_USE;

/* task_wait for a number of seconds, as long as the client of the call is there. */
bool task_view_wait(struct tool_call *call, struct task_row *row, int64_t seconds,
		    int64_t stdout_offset, int64_t stderr_offset, struct err *err) MUST_USE;

/* task_log of a log that may have been pruned, or not be there yet: *dirfd is -1 then, and note
 * says so. */
bool task_view_log(const struct tool_call *call, const struct task_row *row, int *dirfd,
		   struct buf *note, struct err *err) MUST_USE;

#endif
