/*
 * exec. However the command ends, that is data: only a command that was not run, or whose end
 * nobody saw, is a tool error. One that outlasts the wait goes on under a supervisor: as a job that
 * get_job and its kin look at, or as an MCP task for a client that takes those. The result of such
 * a task is made from its row and its record, by the same functions.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "box/exec.h"
#include "box/task.h"
#include "mcp/args.h"
#include "mcp/target.h"
#include "mcp/task_view.h"
#include "mcp/toolset.h"

static bool read_options(const struct tool_call *call, struct exec_options *options,
			 struct err *err)
{
	*options = (struct exec_options){
		.env = args_object(call, "env"),
		.timeout_ms = args_seconds_ms(call, "timeout"),
	};
	if (options->timeout_ms == 0)
		options->timeout_ms = ((const struct app *)call->app)->conf->exec_timeout * 1000;
	options->stdin_data = args_bytes(call, "stdin", &options->stdin_len);
	return args_str(call, "command", &options->command, err) &&
	       args_str(call, "cwd", &options->cwd, err);
}

static void add_stream(struct json_object *result, const char *name, const struct capture *capture)
{
	AUTO_BUF text = BUF_INIT;
	const char *encoding = capture_text(capture, &text);
	char key[32];
	json_add_strn(result, name, buf_str(&text), text.len);
	snprintf(key, sizeof key, "%s_bytes", name);
	json_add_int(result, key, capture->total);
	snprintf(key, sizeof key, "%s_truncated", name);
	json_add_bool(result, key, capture_truncated(capture));
	snprintf(key, sizeof key, "%s_encoding", name);
	json_add_str(result, key, encoding);
}

static void add_status(struct json_object *result, const struct runtime_status *status)
{
	if (status->end == RUNTIME_END_EXIT)
		json_add_int(result, "exit_code", status->code);
	else if (status->signal != 0)
		task_view_signal(result, status->signal);
	json_add_bool(result, "timed_out", status->end == RUNTIME_END_TIMEOUT);
}

static void add_usage(struct json_object *result, const struct session *session)
{
	const struct runtime_status *status = &session->status;
	json_add_int(result, "duration_ms", session->duration_ms);
	json_add_int(result, "cpu_ms", (status->user_us + status->system_us) / 1000);
	json_add_int(result, "max_rss_kib", status->max_rss_kib);
	json_add_int(result, "background_processes", status->survivors);
}

/* Overwrites what report_lost says of a sandbox that went away: this one is up. */
static void explain_sweep(struct json_object *result)
{
	json_add_str(result, "message",
		     "the command ended every process in the sandbox, the one that watches over "
		     "the command included, so how it would have ended is not known");
	json_add_str(result, "fix",
		     "The sandbox is still up, and the files in /workspace and /tmp are intact; "
		     "background processes are gone. kill -9 -1 and the like do this: end "
		     "processes by their PID, or by name with pkill -x, instead.");
}

static void note_end(const struct session *session, int64_t timeout_ms, struct buf *note)
{
	const struct runtime_status *status = &session->status;
	if (status->end == RUNTIME_END_TIMEOUT)
		target_note(note,
			    "The command did not end within %lld s, so it and everything it had "
			    "started were ended; its output up to then is here. Give a larger "
			    "timeout (up to %d), or start it with run_background.",
			    (long long)(timeout_ms / 1000), EXEC_TIMEOUT_MAX);
	else if (status->end == RUNTIME_END_CANCELLED)
		target_note(note, "The command was cancelled before its end.");
	else if (status->end == RUNTIME_END_SIGNAL && status->signal == SIGKILL)
		target_note(note,
			    "SIGKILL ended the command: something in the sandbox sent it, or the "
			    "host ran out of memory.");
	else if (status->end == RUNTIME_END_SIGNAL && status->signal == SIGXFSZ)
		target_note(note, "The command wrote a file beyond the size limit of one file.");
	if (status->survivors > 0)
		target_note(note,
			    "Background processes that still run: %d. Output that they do not "
			    "write to a file is lost from now on; start such work with > log 2>&1 "
			    "to read it later.",
			    status->survivors);
	if (capture_truncated(&session->out) || capture_truncated(&session->err))
		target_note(note,
			    "Output was cut in the middle. To see all of it, write it to a file "
			    "(command > out.txt 2>&1) and use read_text, grep or download_file.");
}

/* The end was not seen: an error, but the output so far may tell why. reason may be NULL. */
static void report_lost(struct tool_call *call, const struct session *session, const char *reason)
{
	struct json_object *result = call->structured;
	AUTO_FREE char *message = xasprintf(
		"%s, so how the command ended is not known: it may have done all, part or none of "
		"its work",
		reason != NULL ? reason : "the sandbox went away while the command ran");
	call->is_error = true;
	json_add_str(result, "error", err_name(ERR_LOST));
	json_add_str(result, "message", message);
	json_add_str(result, "fix",
		     "Look at what is in /workspace (list_files, exec ls -l) before running the "
		     "command again. Likely causes are a lack of memory or that the sandbox was "
		     "destroyed; the next exec starts it anew.");
	if (session->status.swept)
		explain_sweep(result);
	add_stream(result, "stdout", &session->out);
	add_stream(result, "stderr", &session->err);
}

/* What is told of a command that ended. */
static void report_end(struct tool_call *call, const struct session *session, int64_t timeout_ms,
		       struct buf *note)
{
	struct json_object *result = call->structured;
	json_add_str(result, "status", "finished");
	add_status(result, &session->status);
	add_stream(result, "stdout", &session->out);
	add_stream(result, "stderr", &session->err);
	add_usage(result, session);
	note_end(session, timeout_ms, note);
}

static void report(struct tool_call *call, const struct target *target,
		   const struct session *session, int64_t timeout_ms)
{
	AUTO_BUF note = BUF_INIT;
	call->structured = json_object_new_object();
	if (session->status.end == RUNTIME_END_LOST)
		report_lost(call, session, NULL);
	else
		report_end(call, session, timeout_ms, &note);
	target_describe(target, call->structured, &note);
	target_add_note(call->structured, &note);
}

/* --- beyond the wait ----------------------------------------------------------------------- */

/* How long such a task can be asked for: until its log goes. */
static int64_t ttl_of(const struct app *app, const struct task_row *row)
{
	return row->timeout_ms + app->conf->job_log_retention * 1000;
}

static void report_task(struct tool_call *call, const struct session *session,
			const struct task_row *row)
{
	AUTO_BUF line = BUF_INIT;
	session_last_line(session, &line);
	call->task.status = TOOL_TASK_WORKING;
	memcpy(call->task.id, row->id, sizeof(call->task.id));
	call->task.message = line.len > 0 ? buf_take(&line) : NULL;
	call->task.created_at = call->task.updated_at = row->created_at;
	call->task.ttl_ms = ttl_of(call->app, row);
}

static void report_running(struct tool_call *call, const struct target *target,
			   const struct session *session, const struct task_row *row)
{
	AUTO_BUF note = BUF_INIT;
	struct json_object *result = call->structured = json_object_new_object();
	AUTO_FREE char *next = xasprintf("get_job {\"job_id\":\"%s\"}", row->id);
	int64_t elapsed_ms = task_view_elapsed_ms(row);
	json_add_str(result, "status", "running");
	json_add_str(result, "job_id", row->id);
	json_add_str(result, "next", next);
	json_add_bool(result, "timed_out", false);
	add_stream(result, "stdout", &session->out);
	add_stream(result, "stderr", &session->err);
	json_add_int(result, "duration_ms", elapsed_ms);
	target_note(
		&note,
		"The command still runs, now in the background, and may do so until %lld s after "
		"its start; this is its output so far. Do not start it again: call get_job with "
		"this job_id, which waits for the end and shows the newest output. stop_job ends "
		"it.",
		(long long)(row->timeout_ms / 1000));
	target_describe(target, result, &note);
	int64_t left_ms = row->timeout_ms - elapsed_ms;
	task_view_life(result, &target->row, left_ms > 0 ? left_ms : 0, &note);
	target_add_note(result, &note);
}

/* --- the call ------------------------------------------------------------------------------ */

struct wait {
	struct tool_call *call;
	const struct session *session;
};

static bool keep_waiting(void *ctx)
{
	const struct wait *wait = ctx;
	AUTO_BUF line = BUF_INIT;
	session_last_line(wait->session, &line);
	return tool_call_tick(wait->call, line.len > 0 ? line.data : NULL);
}

/* Runs the command until it ended or runs on as a task; row->id is empty when it ended. When it
 * cannot be handed over, it is waited for here as long as it takes: work that was begun is not
 * thrown away for that. */
static bool run(struct tool_call *call, struct target *target, const struct exec_options *options,
		struct session *session, struct task_row *row, struct err *err)
{
	struct app *app = call->app;
	struct wait wait = {call, session};
	struct err trouble = ERR_INIT;
	bool ended;
	int64_t wait_ms = app->conf->exec_wait * 1000;
	if (options->timeout_ms <= wait_ms)
		wait_ms = EXEC_WAIT_TO_THE_END;
	if (!exec_run_for(app, &target->row, &target->use, options, wait_ms, keep_waiting, &wait,
			  session, &ended, err))
		return false;
	if (ended || task_adopt(app, &target->row, session, options, row, &trouble))
		return true;
	log_err(LOG_WARN, "exec_hand_over", &trouble);
	session_wait(session, EXEC_WAIT_TO_THE_END, keep_waiting, &wait);
	sandbox_touch(app, &target->row);
	return true;
}

static bool call_exec(struct tool_call *call, struct err *err)
{
	struct app *app = call->app;
	const char *handle;
	struct exec_options options;
	if (!args_sandbox(call, &handle, err) || !read_options(call, &options, err) ||
	    !exec_check(app, &options, err))
		return false;
	AUTO_TARGET target = TARGET_INIT;
	if (!target_ensure(call, handle, &target, err))
		return false;
	AUTO_TASK_ROW row = {0};
	__attribute__((cleanup(session_finish))) struct session session;
	session_init(&session, (size_t)app->conf->stdout_max, (size_t)app->conf->stderr_max);
	if (!run(call, &target, &options, &session, &row, err))
		return false;
	if (row.id[0] == '\0')
		report(call, &target, &session, options.timeout_ms);
	else if (call->takes_task)
		report_task(call, &session, &row);
	else
		report_running(call, &target, &session, &row);
	return true;
}

/* --- MCP tasks ----------------------------------------------------------------------------- */

/* Only what exec handed over is a task of that kind; to its clients a job is no task. */
static bool find_task(const struct tool_call *call, const char *id, struct task_row *row,
		      struct err *err)
{
	return task_find(call->app, call->principal, id, NULL, row, err) &&
	       (row->origin == TASK_ORIGIN_EXEC ||
		err_set(err, ERR_NOT_FOUND, "job %s is not a task of the protocol", id));
}

/* The start, and the end when all of the stream was kept: of a longer one the record has the newest
 * output of both streams together only. */
static bool read_capture(int dirfd, enum record_stream stream, struct capture *capture,
			 struct err *err)
{
	struct record_page page;
	AUTO_BUF head = BUF_INIT;
	AUTO_BUF tail = BUF_INIT;
	if (!record_read(dirfd, stream, 0, capture->head_max, &head, &page, err))
		return false;
	capture_add(capture, buf_str(&head), head.len);
	if (page.kept == page.seen) {
		int64_t from = page.kept - (int64_t)capture->tail_max;
		if (from < page.next_offset)
			from = page.next_offset;
		if (!record_read(dirfd, stream, from, capture->tail_max, &tail, &page, err))
			return false;
		capture_add(capture, buf_str(&tail), tail.len);
	}
	capture->total = page.seen;
	return true;
}

static bool read_output(int dirfd, struct session *session, struct err *err)
{
	return dirfd < 0 || (read_capture(dirfd, RECORD_STDOUT, &session->out, err) &&
			     read_capture(dirfd, RECORD_STDERR, &session->err, err));
}

/* The end of a command as its session would have told it. */
static void restore_status(const struct task_row *row, struct session *session)
{
	static const enum runtime_end ends[TASK_STATE__MAX] = {
		[TASK_CANCELLED] = RUNTIME_END_CANCELLED,
		[TASK_TIMED_OUT] = RUNTIME_END_TIMEOUT,
	};
	struct runtime_status *status = &session->status;
	*status = (struct runtime_status){.end = ends[row->state],
					  .code = row->exit_code,
					  .signal = row->signal,
					  .user_us = row->cpu_ms * 1000,
					  .max_rss_kib = row->max_rss_kib,
					  .survivors = row->survivors};
	if (status->end == RUNTIME_END_NONE)
		status->end = row->has_exit_code ? RUNTIME_END_EXIT
			      : row->signal != 0 ? RUNTIME_END_SIGNAL
						 : RUNTIME_END_LOST;
	session->duration_ms = task_view_elapsed_ms(row);
}

static bool restore_result(struct tool_call *call, const struct task_row *row, struct err *err)
{
	const struct app *app = call->app;
	AUTO_BUF note = BUF_INIT;
	AUTO_FD dirfd = -1;
	AUTO_TARGET target = TARGET_INIT;
	__attribute__((cleanup(session_finish))) struct session session;
	session_init(&session, (size_t)app->conf->stdout_max, (size_t)app->conf->stderr_max);
	if (!task_view_sandbox(call, row, &target.row, err) ||
	    !task_view_log(call, row, &dirfd, &note, err) || !read_output(dirfd, &session, err))
		return false;
	restore_status(row, &session);
	call->structured = json_object_new_object();
	if (session.status.end == RUNTIME_END_LOST)
		report_lost(call, &session, row->reason);
	else
		report_end(call, &session, row->timeout_ms, &note);
	target_describe(&target, call->structured, &note);
	target_add_note(call->structured, &note);
	return true;
}

/* The newest line is what there is to tell of a task that works; without one nothing is. */
static char *newest_line(const struct tool_call *call, const struct task_row *row)
{
	struct err err = ERR_INIT;
	struct capture capture;
	AUTO_BUF tail = BUF_INIT;
	AUTO_BUF line = BUF_INIT;
	AUTO_FD dirfd = task_log(call->app, row, &err);
	if (dirfd < 0 || !record_tail(dirfd, 8, 8 * SESSION_LINE_MAX, &tail, &err))
		return NULL;
	capture_init(&capture, tail.len + 1);
	capture_add(&capture, buf_str(&tail), tail.len);
	capture_last_line(&capture, SESSION_LINE_MAX, &line);
	capture_finish(&capture);
	return line.len > 0 ? buf_take(&line) : NULL;
}

static bool get_exec_task(struct tool_call *call, const char *id, struct tool_task *task,
			  struct err *err)
{
	AUTO_TASK_ROW row = {0};
	if (!find_task(call, id, &row, err))
		return false;
	memcpy(task->id, row.id, sizeof(task->id));
	task->created_at = row.created_at;
	task->updated_at = row.finished_at > 0 ? row.finished_at : row.created_at;
	task->ttl_ms = ttl_of(call->app, &row);
	switch (row.state) {
	case TASK_RUNNING:
		task->status = TOOL_TASK_WORKING;
		task->message = newest_line(call, &row);
		return true;
	case TASK_CANCELLED:
		task->status = TOOL_TASK_CANCELLED;
		return true;
	default:
		task->status = TOOL_TASK_COMPLETED;
		return restore_result(call, &row, err);
	}
}

static bool cancel_exec_task(struct tool_call *call, const char *id, struct err *err)
{
	AUTO_TASK_ROW row = {0};
	return find_task(call, id, &row, err) && task_cancel(call->app, &row, err);
}

const struct tool_tasks toolset_tasks = {get_exec_task, cancel_exec_task, NULL};

/* --- schema -------------------------------------------------------------------------------- */

/* clang-format off */
#define STREAM_PROPERTIES(name, which) \
	L_STR(name, "", "What the command wrote to " which ", cut in the middle when too long.") "," \
	L_INT(name "_bytes", L_AT_LEAST(0), "How many bytes that was in all.") "," \
	L_BOOL(name "_truncated", "", "Whether a part in the middle is missing here.") "," \
	L_STR(name "_encoding", "", \
	      "utf-8; gb18030, converted to UTF-8 here; or binary, with bytes shown as U+FFFD.")
#define STREAM_REQUIRED(name) \
	L_QUOTE(name) "," L_QUOTE(name "_bytes") "," L_QUOTE(name "_truncated") "," \
	L_QUOTE(name "_encoding")

const struct tool tool_exec = {
	.name = "exec",
	.title = "Run a command",
	.description =
		"Runs a shell command in a sandbox (a Linux machine of its own) and waits for it to end. A "
		"sandbox that does not exist yet is made. Use it for everything that ends within seconds: "
		"scripts, compilers, converters, tests. The text goes to bash -c as it is, so several "
		"lines, pipes and here-documents work. Each call is a new shell: cd and variables do not "
		"last, files in /workspace do. Standard input is empty unless stdin is given. A non-zero "
		"exit_code, a signal and timed_out are results, not tool errors. At the timeout (1 to 3600 "
		"s, default 60 unless the server is set otherwise) the command and all it started are "
		"ended. A command that runs longer than 25 s is answered before its end: status is running, "
		"it goes on in the background, and get_job with the job_id waits for it. For work of which "
		"you know that it is long use run_background. Of long output the start and the end are "
		"returned (32 KiB of stdout, 8 KiB of stderr by default). To write a file prefer write_text. "
		"Returns exit_code or signal, stdout, stderr and their full sizes, times and memory. Example: "
		"{\"sandbox\":\"work\",\"command\":\"python3 count.py data.csv\",\"timeout\":20}",
	.input_schema = L_OBJECT_NEEDS(L_QUOTE("command"),
		ARGS_SANDBOX ","
		L_STR("command", L_LENGTH(1, EXEC_COMMAND_MAX),
		      "Shell command or script, up to 65536 characters.") ","
		L_INT("timeout", L_BETWEEN(0, EXEC_TIMEOUT_MAX),
		      "Seconds after which the command is ended, up to 3600. 0 or left out: the default.") ","
		L_STR("cwd", "", "Directory to run in. Default /workspace; relative paths are below it.") ","
		L_STRUCT("env", L_STRING_MAP, "Environment variables for this command alone.") ","
		L_STR("stdin", "", "Text for the standard input of the command. Left out: empty.")),
	.output_schema = L_RESULT(
		L_QUOTE("status") "," L_QUOTE("timed_out") "," STREAM_REQUIRED("stdout") ","
		STREAM_REQUIRED("stderr") "," L_QUOTE("duration_ms") "," TARGET_REQUIRED,
		L_STR("status", L_ENUM("\"finished\",\"running\""),
		      "running: it goes on in the background as job_id, and this is its output so far.") ","
		L_STR("job_id", "", "With status running: what get_job and stop_job take.") ","
		L_STR("next", "", "With status running: the call to make next.") ","
		L_INT("exit_code", "", "Exit code; absent when a signal ended the command.") ","
		L_STR("signal", "", "Signal that ended the command, e.g. SIGKILL.") ","
		L_BOOL("timed_out", "", "Whether it was ended because its time was up.") ","
		STREAM_PROPERTIES("stdout", "standard output") ","
		STREAM_PROPERTIES("stderr", "standard error") ","
		L_INT("duration_ms", L_AT_LEAST(0), "How long it took, or has run so far.") ","
		L_INT("cpu_ms", L_AT_LEAST(0), "Processor time it used.") ","
		L_INT("max_rss_kib", L_AT_LEAST(0), "Memory of its largest process.") ","
		L_INT("background_processes", L_AT_LEAST(0), "Processes it left running.") ","
		TARGET_PROPERTIES ","
		TASK_VIEW_WILL_REMOVE_AT ","
		L_STR("note", "", "What else to know, and what to do about it.")),
	.read_only = false,
	.destructive = true,
	.idempotent = false,
	.open_world = false,
	.call = call_exec,
};
/* clang-format on */
