/* See task_view.h. */
#include "mcp/task_view.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "mcp/args.h"
#include "mcp/target.h"

const char *task_view_status(enum task_state state)
{
	switch (state) {
	case TASK_RUNNING:
		return "running";
	case TASK_UNKNOWN:
		return "unknown";
	default:
		return "finished";
	}
}

void task_view_signal(struct json_object *result, int number)
{
	char name[32];
	const char *abbreviation = sigabbrev_np(number);
	if (abbreviation != NULL)
		snprintf(name, sizeof name, "SIG%s", abbreviation);
	else
		snprintf(name, sizeof name, "signal %d", number);
	json_add_str(result, "signal", name);
}

void task_view_end(struct json_object *result, const struct task_row *row)
{
	if (row->has_exit_code)
		json_add_int(result, "exit_code", row->exit_code);
	if (row->signal != 0)
		task_view_signal(result, row->signal);
	json_add_str(result, "reason", row->reason);
	if (row->survivors > 0)
		json_add_int(result, "background_processes", row->survivors);
}

void task_view_command(struct json_object *result, const char *command, size_t max)
{
	size_t len = strlen(command);
	AUTO_BUF shown = BUF_INIT;
	buf_append(&shown, command, text_cut(command, len, max));
	if (shown.len < len)
		buf_printf(&shown, " [... %zu bytes more]", len - shown.len);
	json_add_strn(result, "command", buf_str(&shown), shown.len);
}

int64_t task_view_elapsed_ms(const struct task_row *row)
{
	int64_t start = row->started_at > 0 ? row->started_at : row->created_at;
	int64_t end = row->finished_at > 0 ? row->finished_at : clock_wall_ms();
	return end > start ? end - start : 0;
}

void task_view_life(struct json_object *result, const struct sandbox_row *sandbox,
		    int64_t timeout_ms, struct buf *note)
{
	if (sandbox->state != SANDBOX_LIVE || sandbox->expires_at <= 0)
		return;
	/* As it was before the task that this is about. */
	if (sandbox->ends_with_session)
		target_note(note,
			    "Sandbox %s is kept for this task when the session ends, until "
			    "will_remove_at: call kill_sandbox when you have the results.",
			    sandbox->name);
	target_add_time(result, "will_remove_at", sandbox->expires_at);
	if (timeout_ms == 0 || !task_outlives_sandbox(sandbox, timeout_ms))
		return;
	int64_t left_ms = sandbox->expires_at - clock_wall_ms();
	target_note(note,
		    "The lifetime of sandbox %s is over in %lld s, before the %lld s of this task "
		    "are. The task keeps it while it runs; right after that the sandbox goes with "
		    "its files. exec and the file tools renew its lifetime, looking at the task "
		    "does not.",
		    sandbox->name, (long long)(left_ms > 0 ? left_ms / 1000 : 0),
		    (long long)(timeout_ms / 1000));
}

bool task_view_sandbox_id(const struct tool_call *call, char id[static ID_LEN + 1], struct err *err)
{
	const char *handle;
	id[0] = '\0';
	if (!args_str_or(call, "sandbox", "sandbox_id", &handle, err))
		return false;
	if (handle == NULL)
		return true;
	AUTO_SANDBOX_ROW row = {0};
	bool is_id = id_is_valid(handle);
	if (!is_id && !sandbox_find(call->app, call->principal, handle, &row, err))
		return false;
	memcpy(id, is_id ? handle : row.id, ID_LEN + 1);
	return true;
}

bool task_view_sandbox(const struct tool_call *call, const struct task_row *task,
		       struct sandbox_row *row, struct err *err)
{
	struct app *app = call->app;
	int rc = row_sandbox_by_id(app->db, call->principal, task->sandbox_id, row, err);
	if (rc == 0)
		err_set(err, ERR_INTERNAL, "task %s has no sandbox", task->id);
	return rc == 1;
}

static bool keep_waiting(void *ctx)
{
	return tool_call_tick(ctx, NULL);
}

bool task_view_wait(struct tool_call *call, struct task_row *row, int64_t seconds,
		    int64_t stdout_offset, int64_t stderr_offset, struct err *err)
{
	return task_wait(call->app, row, seconds * 1000, stdout_offset, stderr_offset, keep_waiting,
			 call, err);
}

/* Since when, unless something else than the clean-up took it away. */
static void note_pruned(const struct tool_call *call, const struct task_row *row, struct buf *note)
{
	char since[CLOCK_RFC3339_LEN];
	const struct app *app = call->app;
	int64_t retention_s = app->conf->job_log_retention;
	int64_t until = row->finished_at + retention_s * 1000;
	if (row->finished_at > 0 && until <= clock_wall_ms())
		target_note(note,
			    "What it printed is not kept any more since %s, %lld s after its end "
			    "(this server's SMCP_JOB_LOG_RETENTION); only how it ended is.",
			    clock_rfc3339(until, since), (long long)retention_s);
	else
		target_note(note, "What it printed is not kept any more; only how it ended is.");
}

bool task_view_log(const struct tool_call *call, const struct task_row *row, int *dirfd,
		   struct buf *note, struct err *err)
{
	struct err trouble = ERR_INIT;
	*dirfd = task_log(call->app, row, &trouble);
	if (*dirfd >= 0)
		return true;
	if (trouble.code == ERR_GONE)
		note_pruned(call, row, note);
	else if (trouble.code == ERR_BUSY)
		target_note(note, "It is just being started and has printed nothing yet.");
	else
		*err = trouble;
	return trouble.code == ERR_GONE || trouble.code == ERR_BUSY;
}
