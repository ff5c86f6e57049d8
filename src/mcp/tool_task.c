/*
 * start_task, get_task, cancel_task: the contract of seeds 000/001. Output is read by byte offsets,
 * each stream by itself; the same page can be read again. However a command ends, that is data.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "mcp/args.h"
#include "mcp/target.h"
#include "mcp/task_view.h"
#include "mcp/toolset.h"
#include "run/record.h"

#define PAGE_DEFAULT 16384
#define PAGE_MAX     65536
#define OFFSET_MAX   1048576 /* RECORD_KEPT_MAX as digits, for schemas */
_Static_assert(OFFSET_MAX == RECORD_KEPT_MAX, "offsets reach as far as what is kept");

/* --- start_task ---------------------------------------------------------------------------- */

/* The request as it was sent, so quotes and escapes count; before anything is touched. */
static bool check_request_size(const struct tool_call *call, struct err *err)
{
	size_t len;
	json_text(call->arguments, &len);
	if (len <= EXEC_REQUEST_MAX)
		return true;
	err_set(err, ERR_TOO_LARGE, "the arguments have %zu bytes as JSON; the limit is %d", len,
		EXEC_REQUEST_MAX);
	return err_hint(err,
			"Write the script to a file with write_text and run that file. Nothing "
			"was started.");
}

static bool read_options(const struct tool_call *call, struct task_options *options,
			 struct err *err)
{
	*options = (struct task_options){
		.exec.timeout_ms = args_int(call, "timeout", TASK_TIMEOUT_DEFAULT) * 1000,
		.origin = TASK_ORIGIN_TASK,
	};
	options->exec.command = args_bytes(call, "command", &options->exec.command_len);
	return args_str(call, "cwd", &options->exec.cwd, err) &&
	       args_str(call, "request_id", &options->request_id, err);
}

static void describe_start(struct tool_call *call, const struct target *target,
			   const struct task_row *row, bool existing, struct buf *note)
{
	struct json_object *result = call->structured = json_object_new_object();
	json_add_str(result, "sandbox", target->row.name);
	json_add_str(result, "sandbox_id", target->row.id);
	json_add_str(result, "task_id", row->id);
	json_add_str(result, "state", task_state_name(row->state));
	if (row->started_at > 0)
		json_add_int(result, "started_at", row->started_at / 1000);
	task_view_end(result, row);
	task_view_life(result, &target->row, row->state == TASK_RUNNING ? row->timeout_ms : 0,
		       note);
	if (existing)
		target_note(note, "This request_id was used before: this is the task of then, and "
				  "nothing was started now.");
	if (row->state == TASK_UNKNOWN)
		target_note(note, "Whether the task runs could not be seen. Look with get_task "
				  "before you start it again: it may have done its work.");
	target_add_note(result, note);
}

static bool call_start(struct tool_call *call, struct err *err)
{
	struct app *app = call->app;
	const char *handle;
	struct task_options options;
	if (!check_request_size(call, err) ||
	    !args_str_or(call, "sandbox_id", "sandbox", &handle, err) ||
	    !read_options(call, &options, err) || !task_check(app, &options, err))
		return false;
	AUTO_BUF note = BUF_INIT;
	AUTO_TARGET target = TARGET_INIT;
	AUTO_TASK_ROW row = {0};
	bool existing = false;
	if (!target_find_for_task(call, handle, &target, &note, err) ||
	    !task_start(app, &target.row, &target.use, &options, &row, &existing, err))
		return false;
	describe_start(call, &target, &row, existing, &note);
	return true;
}

/* --- get_task and cancel_task -------------------------------------------------------------- */

static const struct {
	const char *text, *offset, *next_offset, *size, *truncated, *seen;
} names[RECORD_STREAMS] = {
	{"stdout", "stdout_offset", "stdout_next_offset", "stdout_size", "stdout_truncated",
	 "stdout_seen"},
	{"stderr", "stderr_offset", "stderr_next_offset", "stderr_size", "stderr_truncated",
	 "stderr_seen"},
};

/* A page as it is: where it cuts a character, the fragment shows as U+FFFD. */
static bool add_page(const struct tool_call *call, int dirfd, bool is_gone,
		     enum record_stream stream, struct err *err)
{
	struct json_object *result = call->structured;
	int64_t offset = args_int(call, names[stream].offset, 0);
	size_t limit = (size_t)args_int(call, "limit", PAGE_DEFAULT);
	struct record_page page = {.next_offset = offset};
	AUTO_BUF text = BUF_INIT;
	if (dirfd >= 0 && !record_read(dirfd, stream, offset, limit, &text, &page, err))
		return false;
	json_add_strn(result, names[stream].text, buf_str(&text), text.len);
	json_add_int(result, names[stream].next_offset, page.next_offset);
	json_add_int(result, names[stream].size, page.kept);
	json_add_bool(result, names[stream].truncated, is_gone || page.seen > page.kept);
	if (dirfd >= 0)
		json_add_int(result, names[stream].seen, page.seen);
	return true;
}

static void describe(const struct tool_call *call, const struct task_row *row,
		     const struct sandbox_row *sandbox, struct buf *note)
{
	struct json_object *result = call->structured;
	json_add_str(result, "sandbox_id", row->sandbox_id);
	json_add_str(result, "task_id", row->id);
	json_add_str(result, "state", task_state_name(row->state));
	task_view_end(result, row);
	if (row->started_at > 0)
		json_add_int(result, "started_at", row->started_at / 1000);
	if (row->finished_at > 0)
		json_add_int(result, "finished_at", row->finished_at / 1000);
	task_view_life(result, sandbox, 0, note);
}

static bool find(const struct tool_call *call, struct task_row *row, struct err *err)
{
	const char *id;
	char sandbox_id[ID_LEN + 1];
	if (!args_str(call, "task_id", &id, err) || !task_view_sandbox_id(call, sandbox_id, err))
		return false;
	if (sandbox_id[0] == '\0') {
		err_set(err, ERR_INVALID, "sandbox_id is missing");
		return err_hint(err,
				"Give the sandbox_id and the task_id that start_task returned.");
	}
	return task_find(call->app, call->principal, id, sandbox_id, row, err);
}

static bool answer(struct tool_call *call, const struct task_row *row, struct buf *note,
		   struct err *err)
{
	AUTO_SANDBOX_ROW sandbox = {0};
	AUTO_FD dirfd = -1;
	if (!task_view_sandbox(call, row, &sandbox, err) ||
	    !task_view_log(call, row, &dirfd, note, err))
		return false;
	bool is_gone = dirfd < 0 && row->state != TASK_RUNNING;
	call->structured = json_object_new_object();
	describe(call, row, &sandbox, note);
	for (int i = 0; i < RECORD_STREAMS; i++)
		if (!add_page(call, dirfd, is_gone, (enum record_stream)i, err))
			return false;
	target_add_note(call->structured, note);
	return true;
}

static bool call_get(struct tool_call *call, struct err *err)
{
	AUTO_BUF note = BUF_INIT;
	AUTO_TASK_ROW row = {0};
	return find(call, &row, err) &&
	       task_view_wait(call, &row, args_int(call, "wait", 0),
			      args_int(call, "stdout_offset", 0),
			      args_int(call, "stderr_offset", 0), err) &&
	       answer(call, &row, &note, err);
}

static bool call_cancel(struct tool_call *call, struct err *err)
{
	AUTO_BUF note = BUF_INIT;
	AUTO_TASK_ROW row = {0};
	if (!find(call, &row, err))
		return false;
	bool was_final = row.state != TASK_RUNNING;
	if (!task_cancel(call->app, &row, err))
		return false;
	if (row.state == TASK_RUNNING)
		target_note(&note,
			    "The end is not confirmed yet: call cancel_task again, or get_task "
			    "with wait. kill_sandbox ends everything.");
	else if (was_final)
		target_note(&note, "The task had ended before; nothing was changed.");
	return answer(call, &row, &note, err);
}

/* --- schemas ------------------------------------------------------------------------------- */

/* clang-format off */
#define START_TASK_DESCRIPTION \
	"Starts a shell command in the background and returns at once; it goes on when you or the " \
	"connection are gone. The sandbox must exist: without sandbox_id the newest one made with " \
	"create_sandbox is taken, and none is ever created. Keep sandbox_id and task_id: get_task reads " \
	"state and output by byte offsets, cancel_task ends it. Of each stream the first 1 MiB is kept. " \
	"At the timeout (1 to 3600 s, default 300) the command and all it started are ended. A task does " \
	"not make its sandbox live longer; note says when the sandbox ends first. If an answer was lost, " \
	"start again with the same request_id and the same sandbox_id: the same task is returned. Same " \
	"as run_background, which makes a missing sandbox; either family of tools reads the tasks of the " \
	"other. Example: {\"command\":\"printf BEFORE; sleep 10; printf AFTER\",\"timeout\":120}"

const struct tool tool_start_task = {
	.name = "start_task",
	.title = "Start a background task",
	.description = START_TASK_DESCRIPTION,
	.input_schema = L_OBJECT_NEEDS(L_QUOTE("command"),
		L_STR("command", L_LENGTH(1, EXEC_COMMAND_MAX),
		      "Shell command or script, up to 65536 characters.") ","
		L_STR("sandbox_id", "",
		      "Sandbox to run in, by id or name. Left out: the newest one made with "
		      "create_sandbox.") ","
		L_STR("sandbox", "", "Another word for sandbox_id.") ","
		L_STR("cwd", "", "Directory to run in. Default /workspace; relative paths are below it.") ","
		L_INT("timeout", L_BETWEEN(1, TASK_TIMEOUT_MAX) L_DEFAULT("300"),
		      "Seconds after which the task is ended.") ","
		L_STR("request_id", L_LENGTH(1, 128),
		      "Your own id of this start, printable ASCII: the same id again is the same task.")),
	.output_schema = L_RESULT(
		L_QUOTE("sandbox") "," L_QUOTE("sandbox_id") "," L_QUOTE("task_id") "," L_QUOTE("state"),
		L_STR("sandbox", "", "Name of the sandbox.") ","
		L_STR("sandbox_id", "", "Id of the sandbox, for get_task and cancel_task.") ","
		L_STR("task_id", "", "Id of the task; get_job takes it as job_id.") ","
		L_STR("state", TASK_VIEW_STATES, "What is known now; a short task may have ended already.") ","
		L_INT("started_at", "", "Start, in seconds since 1970.") ","
		TASK_VIEW_END ","
		TASK_VIEW_WILL_REMOVE_AT ","
		L_STR("note", "", "What else to know, and what to do about it.")),
	.read_only = false,
	.destructive = true,
	.idempotent = false,
	.open_world = false,
	.call = call_start,
};

#define HANDLE_AND_PAGE \
	L_STR("sandbox_id", L_EXAMPLE("\"work\""), \
	      "The sandbox_id that start_task returned; a name works as well.") "," \
	L_STR("sandbox", "", "Another word for sandbox_id.") "," \
	L_STR("task_id", TASK_VIEW_ID L_EXAMPLE("\"0123456789abcdef0123456789abcdef\""), \
	      "The task_id that start_task returned: 32 lower-case hex digits.") "," \
	L_INT("stdout_offset", L_BETWEEN(0, OFFSET_MAX) L_DEFAULT("0"), \
	      "Byte of stdout to read from: 0, then the last stdout_next_offset.") "," \
	L_INT("stderr_offset", L_BETWEEN(0, OFFSET_MAX) L_DEFAULT("0"), \
	      "Byte of stderr to read from: 0, then the last stderr_next_offset.") "," \
	L_INT("limit", L_BETWEEN(1, PAGE_MAX) L_DEFAULT("16384"), "Bytes to return of each stream.")

#define STREAM_PROPERTIES(name) \
	L_STR(name, "", "This page; a character cut by its edge shows as U+FFFD.") "," \
	L_INT(name "_next_offset", L_AT_LEAST(0), "Offset for the next call.") "," \
	L_INT(name "_size", L_AT_LEAST(0), "Bytes that are kept so far, at most 1048576.") "," \
	L_BOOL(name "_truncated", "", "Whether there was more than is kept.") "," \
	L_INT(name "_seen", L_AT_LEAST(0), "Bytes that were written in all so far.")
#define STREAM_REQUIRED(name) \
	L_QUOTE(name) "," L_QUOTE(name "_next_offset") "," L_QUOTE(name "_size") "," \
	L_QUOTE(name "_truncated")

#define TASK_RESULT L_RESULT( \
	L_QUOTE("sandbox_id") "," L_QUOTE("task_id") "," L_QUOTE("state") "," \
	STREAM_REQUIRED("stdout") "," STREAM_REQUIRED("stderr"), \
	L_STR("sandbox_id", "", "Id of the sandbox.") "," \
	L_STR("task_id", "", "Id of the task.") "," \
	L_STR("state", TASK_VIEW_STATES, \
	      "failed: a non-zero exit code, a signal, or it could not be run. unknown: its end was not " \
	      "seen, see reason.") "," \
	TASK_VIEW_END "," \
	L_INT("started_at", "", "Start, in seconds since 1970.") "," \
	L_INT("finished_at", "", "End, in seconds since 1970; absent while it runs.") "," \
	STREAM_PROPERTIES("stdout") "," STREAM_PROPERTIES("stderr") "," \
	TASK_VIEW_WILL_REMOVE_AT "," \
	L_STR("note", "", "What else to know, and what to do about it."))

const struct tool tool_get_task = {
	.name = "get_task",
	.title = "Look at a task",
	.description =
		"State and output of a task that start_task, run_background or a long exec started. Returns "
		"a page of stdout and of stderr from the given byte offsets; give stdout_next_offset and "
		"stderr_next_offset in the next call to go on, or the same offsets to read a page again. "
		"With wait (up to 25 s) it returns when there is new output or the task ended, so poll with "
		"wait rather than often. A non-zero exit_code, a signal, timed_out and cancelled are "
		"results, not tool errors; unknown means that nobody saw the end, so look at the files "
		"before starting it again. Output is kept for a day after the end unless the server is set "
		"otherwise, the state for longer. Example: {\"sandbox_id\":\"work\",\"task_id\":"
		"\"0123456789abcdef0123456789abcdef\",\"stdout_offset\":0,\"wait\":20}",
	.input_schema = L_OBJECT_NEEDS(L_QUOTE("task_id"),
		HANDLE_AND_PAGE ","
		L_INT("wait", L_BETWEEN(0, TASK_WAIT_MAX) L_DEFAULT("0"),
		      "Seconds to wait for new output or the end.")),
	.output_schema = TASK_RESULT,
	.read_only = true,
	.destructive = false,
	.idempotent = true,
	.open_world = false,
	.call = call_get,
};

const struct tool tool_cancel_task = {
	.name = "cancel_task",
	.title = "Cancel a task",
	.description =
		"Ends a task with everything it started (TERM, then KILL) and waits up to 3 s for the "
		"confirmed end. Returns the same as get_task: state cancelled means that it ended; running "
		"or unknown means that this is not confirmed. Cancelling a task that ended already changes "
		"nothing and returns its saved outcome. Files that it wrote stay. Example: {\"sandbox_id\":"
		"\"work\",\"task_id\":\"0123456789abcdef0123456789abcdef\"}",
	.input_schema = L_OBJECT_NEEDS(L_QUOTE("task_id"), HANDLE_AND_PAGE),
	.output_schema = TASK_RESULT,
	.read_only = false,
	.destructive = true,
	.idempotent = true,
	.open_world = false,
	.call = call_cancel,
};
/* clang-format on */
