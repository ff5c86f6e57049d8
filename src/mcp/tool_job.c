/*
 * run_background, get_job, stop_job, list_jobs: background work as seed 002 knows it. A job is a
 * task (tool_task.c) seen as one log with a tail; two polls never look the same, so that no client
 * takes steady polling for a loop.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "mcp/args.h"
#include "mcp/target.h"
#include "mcp/task_view.h"
#include "mcp/toolset.h"
#include "run/record.h"

#define TAIL_LINES_DEFAULT 200
#define TAIL_LINES_MAX     2000
#define TAIL_BYTES         32768 /* as much as exec returns of stdout */
#define WAIT_DEFAULT       15    /* seconds; phones cut a call near 30 (seed 002) */
#define COMMAND_SHOWN      500   /* bytes; it is repeated with each poll */
#define LIST_COMMAND_SHOWN 120
#define LIST_DEFAULT       20
#define LIST_MAX           100
#define TIMEOUT_MAX        31536000 /* most that SMCP_JOB_TIMEOUT takes; task_check knows the limit */

/* --- run_background ------------------------------------------------------------------------ */

static bool read_options(const struct tool_call *call, struct task_options *options,
			 struct err *err)
{
	const struct app *app = call->app;
	int64_t timeout_ms = args_seconds_ms(call, "timeout");
	*options = (struct task_options){
		.exec.env = args_object(call, "env"),
		.exec.timeout_ms = timeout_ms > 0 ? timeout_ms : app->conf->job_timeout * 1000,
		.origin = TASK_ORIGIN_JOB,
	};
	options->exec.command = args_bytes(call, "command", &options->exec.command_len);
	return args_str(call, "cwd", &options->exec.cwd, err) &&
	       args_str(call, "request_id", &options->request_id, err);
}

static void describe_run(struct tool_call *call, const struct target *target,
			 const struct task_row *row, bool existing)
{
	AUTO_BUF note = BUF_INIT;
	struct json_object *result = call->structured = json_object_new_object();
	json_add_str(result, "job_id", row->id);
	json_add_str(result, "task_id", row->id);
	json_add_str(result, "status", task_view_status(row->state));
	json_add_str(result, "state", task_state_name(row->state));
	task_view_end(result, row);
	target_describe(target, result, &note);
	task_view_life(result, &target->row, row->state == TASK_RUNNING ? row->timeout_ms : 0,
		       &note);
	if (existing)
		target_note(&note, "This request_id was used before: this is the job of then, and "
				   "nothing was started now.");
	if (row->state == TASK_UNKNOWN)
		target_note(&note,
			    "Whether the job runs could not be seen. Look with get_job before "
			    "you start it again: it may have done its work.");
	target_add_note(result, &note);
}

static bool call_run(struct tool_call *call, struct err *err)
{
	struct app *app = call->app;
	const char *handle;
	struct task_options options;
	if (!args_sandbox(call, &handle, err) || !read_options(call, &options, err) ||
	    !task_check(app, &options, err))
		return false;
	AUTO_TARGET target = TARGET_INIT;
	AUTO_TASK_ROW row = {0};
	bool existing = false;
	if (!target_ensure_for_task(call, handle, &target, err) ||
	    !task_start(app, &target.row, &target.use, &options, &row, &existing, err))
		return false;
	describe_run(call, &target, &row, existing);
	return true;
}

/* --- get_job ------------------------------------------------------------------------------- */

static bool find(const struct tool_call *call, struct task_row *row, struct err *err)
{
	const char *id;
	return args_str(call, "job_id", &id, err) &&
	       task_find(call->app, call->principal, id, NULL, row, err);
}

/* The newest output of both streams, in the order in which it came. */
static bool add_log(const struct tool_call *call, int dirfd, bool is_gone, struct err *err)
{
	struct json_object *result = call->structured;
	int64_t seen[RECORD_STREAMS] = {0, 0};
	AUTO_BUF raw = BUF_INIT;
	AUTO_BUF text = BUF_INIT;
	/* In this order, so that what comes in between does not read as left out. */
	if (dirfd >= 0 && (!record_seen(dirfd, seen, err) ||
			   !record_tail(dirfd, args_int(call, "tail_lines", TAIL_LINES_DEFAULT),
					TAIL_BYTES, &raw, err)))
		return false;
	int64_t bytes = seen[RECORD_STDOUT] + seen[RECORD_STDERR];
	bool truncated = is_gone || bytes > (int64_t)raw.len;
	text_decode(&text, buf_str(&raw), raw.len, truncated, false);
	json_add_int(result, "log_bytes", bytes);
	json_add_strn(result, "log_tail", buf_str(&text), text.len);
	json_add_bool(result, "log_truncated", truncated);
	return true;
}

static void note_state(const struct task_row *row, struct buf *note)
{
	switch (row->state) {
	case TASK_TIMED_OUT:
		target_note(
			note,
			"The job did not end within %lld s, so it and everything it had started "
			"were ended. Start it again with a larger timeout if it needs longer.",
			(long long)(row->timeout_ms / 1000));
		break;
	case TASK_UNKNOWN:
		target_note(note,
			    "Nobody saw the end of the job: it may have done all, part or none "
			    "of its work. Look at its files before you start it again.");
		break;
	default:
		break;
	}
}

static void describe(const struct tool_call *call, const struct task_row *row,
		     const struct sandbox_row *sandbox, size_t command_max)
{
	struct json_object *result = call->structured;
	json_add_str(result, "job_id", row->id);
	json_add_str(result, "sandbox", sandbox->name);
	task_view_command(result, row->command, command_max);
	json_add_str(result, "status", task_view_status(row->state));
	json_add_str(result, "state", task_state_name(row->state));
	task_view_end(result, row);
	json_add_int(result, "elapsed_seconds", task_view_elapsed_ms(row) / 1000);
}

static bool call_get(struct tool_call *call, struct err *err)
{
	AUTO_BUF note = BUF_INIT;
	AUTO_TASK_ROW row = {0};
	AUTO_SANDBOX_ROW sandbox = {0};
	AUTO_FD dirfd = -1;
	if (!find(call, &row, err) ||
	    !task_view_wait(call, &row, args_int(call, "wait", WAIT_DEFAULT), -1, -1, err) ||
	    !task_view_sandbox(call, &row, &sandbox, err) ||
	    !task_view_log(call, &row, &dirfd, &note, err))
		return false;
	call->structured = json_object_new_object();
	describe(call, &row, &sandbox, COMMAND_SHOWN);
	if (!add_log(call, dirfd, dirfd < 0 && row.state != TASK_RUNNING, err))
		return false;
	target_add_time(call->structured, "polled_at", clock_wall_ms());
	task_view_life(call->structured, &sandbox, 0, &note);
	note_state(&row, &note);
	target_add_note(call->structured, &note);
	return true;
}

/* --- stop_job ------------------------------------------------------------------------------ */

static void note_stop(const struct task_row *row, bool was_final, struct buf *note)
{
	if (row->state == TASK_RUNNING)
		target_note(note, "The end is not confirmed yet: call stop_job again, or look with "
				  "get_job. kill_sandbox ends everything.");
	else if (row->state == TASK_UNKNOWN)
		note_state(row, note);
	else if (was_final)
		target_note(note, "It had ended before (%s); nothing was changed.",
			    task_state_name(row->state));
	else if (row->state == TASK_CANCELLED)
		target_note(note,
			    "It was ended with everything it had started. Files that it wrote "
			    "are there.");
	else
		target_note(note, "It ended by itself just then (%s).",
			    task_state_name(row->state));
}

static bool call_stop(struct tool_call *call, struct err *err)
{
	AUTO_BUF note = BUF_INIT;
	AUTO_TASK_ROW row = {0};
	if (!find(call, &row, err))
		return false;
	bool was_final = row.state != TASK_RUNNING;
	if (!task_cancel(call->app, &row, err))
		return false;
	note_stop(&row, was_final, &note);
	struct json_object *result = call->structured = json_object_new_object();
	json_add_str(result, "job_id", row.id);
	json_add_bool(result, "stopped", row.state != TASK_RUNNING && row.state != TASK_UNKNOWN);
	json_add_str(result, "state", task_state_name(row.state));
	task_view_end(result, &row);
	target_add_note(result, &note);
	return true;
}

/* --- list_jobs ----------------------------------------------------------------------------- */

struct listing {
	struct tool_call *call;
	struct json_object *jobs;
	struct err err;
};

/* A row that says "running" is asked again: its supervisor may have died. */
static bool list_row(void *ctx, const struct task_row *listed)
{
	struct listing *listing = ctx;
	const struct tool_call *call = listing->call;
	AUTO_TASK_ROW fresh = {0};
	AUTO_SANDBOX_ROW sandbox = {0};
	const struct task_row *row = listed;
	if (listed->state == TASK_RUNNING) {
		if (!task_find(call->app, call->principal, listed->id, NULL, &fresh, &listing->err))
			return listing->err.code == ERR_NOT_FOUND; /* it went meanwhile */
		row = &fresh;
	}
	if (!task_view_sandbox(call, row, &sandbox, &listing->err))
		return false;
	struct tool_call item = {.structured = json_object_new_object()};
	describe(&item, row, &sandbox, LIST_COMMAND_SHOWN);
	json_add_str(item.structured, "sandbox_id", row->sandbox_id);
	target_add_time(item.structured, "started_at",
			row->started_at > 0 ? row->started_at : row->created_at);
	target_add_time(item.structured, "finished_at", row->finished_at);
	json_push(listing->jobs, item.structured);
	return true;
}

static bool call_list(struct tool_call *call, struct err *err)
{
	struct app *app = call->app;
	char sandbox_id[ID_LEN + 1];
	if (!task_view_sandbox_id(call, sandbox_id, err))
		return false;
	AUTO_JSON *jobs = json_object_new_array();
	struct listing listing = {call, jobs, ERR_INIT};
	if (!row_task_each(app->db, call->principal, sandbox_id[0] == '\0' ? NULL : sandbox_id,
			   args_int(call, "limit", LIST_DEFAULT), list_row, &listing, err))
		return false;
	if (listing.err.code != ERR_NONE && listing.err.code != ERR_NOT_FOUND) {
		*err = listing.err;
		return false;
	}
	call->structured = json_object_new_object();
	json_add_int(call->structured, "count", (int64_t)json_object_array_length(jobs));
	json_add(call->structured, "jobs", TAKE_PTR(jobs));
	return true;
}

/* --- schemas ------------------------------------------------------------------------------- */

/* clang-format off */
#define JOB_ID \
	L_STR("job_id", TASK_VIEW_ID L_EXAMPLE("\"0123456789abcdef0123456789abcdef\""), \
	      "The job_id that run_background or exec returned: 32 lower-case hex digits.")
#define NOTE L_STR("note", "", "What else to know, and what to do about it.")
/* Members that describe adds. */
#define JOB_PROPERTIES \
	L_STR("job_id", "", "Id of the job.") "," \
	L_STR("sandbox", "", "Name of its sandbox.") "," \
	L_STR("command", "", "The command; of a long one the beginning.") "," \
	L_STR("status", TASK_VIEW_STATUSES, \
	      "running, finished (state tells how), or unknown: nobody saw its end.") "," \
	L_STR("state", TASK_VIEW_STATES, "How it ended, or running.") "," \
	TASK_VIEW_END "," \
	L_INT("elapsed_seconds", L_AT_LEAST(0), "How long it has run, or ran.")
#define JOB_REQUIRED \
	L_QUOTE("job_id") "," L_QUOTE("sandbox") "," L_QUOTE("command") "," L_QUOTE("status") "," \
	L_QUOTE("state") "," L_QUOTE("elapsed_seconds")

const struct tool tool_run_background = {
	.name = "run_background",
	.title = "Run a command in the background",
	.description =
		"Starts a shell command that takes longer than some seconds (downloads, builds, training, "
		"conversion of many files) and returns at once with a job_id. It goes on when the connection "
		"breaks, the server restarts or you do other things. Then call get_job with the job_id: each "
		"call waits for the end and shows the newest output; stop_job ends it. A sandbox that does "
		"not exist yet is made. At the timeout (default 3600 s unless the server is set otherwise) "
		"the job and all it started are ended. Standard input is empty. Use exec for what ends "
		"within seconds. If an answer was lost (socket timeout), look with list_jobs, or start again "
		"with the same request_id: the same job is returned, nothing runs twice. Example: "
		"{\"sandbox\":\"work\",\"command\":\"python3 train.py --epochs 20\",\"request_id\":"
		"\"train-1\"}",
	.input_schema = L_OBJECT_NEEDS(L_QUOTE("command"),
		ARGS_SANDBOX ","
		L_STR("command", L_LENGTH(1, EXEC_COMMAND_MAX),
		      "Shell command or script, up to 65536 characters.") ","
		L_INT("timeout", L_BETWEEN(0, TIMEOUT_MAX),
		      "Seconds after which the job is ended, up to 3600, or up to the server's default if "
		      "that is more. 0 or left out: the default.") ","
		L_STR("cwd", "", "Directory to run in. Default /workspace; relative paths are below it.") ","
		L_STRUCT("env", L_STRING_MAP, "Environment variables for this command alone.") ","
		L_STR("request_id", L_LENGTH(1, 128),
		      "Your own id of this start, printable ASCII: the same id again is the same job.")),
	.output_schema = L_RESULT(
		L_QUOTE("job_id") "," L_QUOTE("task_id") "," L_QUOTE("status") "," L_QUOTE("state") ","
		TARGET_REQUIRED,
		L_STR("job_id", "", "Id of the job, for get_job and stop_job.") ","
		L_STR("task_id", "", "The same id, as get_task and cancel_task call it.") ","
		L_STR("status", TASK_VIEW_STATUSES, "What is known now; a short job may be finished.") ","
		L_STR("state", TASK_VIEW_STATES, "How it ended, or running.") ","
		TASK_VIEW_END ","
		TARGET_PROPERTIES ","
		TASK_VIEW_WILL_REMOVE_AT ","
		NOTE),
	.read_only = false,
	.destructive = true,
	.idempotent = false,
	.open_world = false,
	.call = call_run,
};

const struct tool tool_get_job = {
	.name = "get_job",
	.title = "Look at a background job",
	.description =
		"State and newest output of a job (run_background, start_task, or an exec that went on). "
		"Waits up to 15 s for the end, so call it again and again without pauses of your own until "
		"status is finished; elapsed_seconds, log_bytes and polled_at show that it moves on. A job "
		"that prints nothing still runs as long as status is running. log_tail has the last lines of "
		"stdout and stderr in the order they were written; get_task reads everything by offsets. A "
		"non-zero exit_code, timed_out and cancelled are results, not tool errors; unknown means "
		"that nobody saw the end. Example: {\"job_id\":\"0123456789abcdef0123456789abcdef\"}",
	.input_schema = L_OBJECT_NEEDS(L_QUOTE("job_id"),
		JOB_ID ","
		L_INT("tail_lines", L_BETWEEN(1, TAIL_LINES_MAX) L_DEFAULT("200"),
		      "Lines of output to return, at most 32 KiB.") ","
		L_INT("wait", L_BETWEEN(0, TASK_WAIT_MAX) L_DEFAULT("15"),
		      "Seconds to wait for the end; 0 looks only.")),
	.output_schema = L_RESULT(
		JOB_REQUIRED "," L_QUOTE("log_bytes") "," L_QUOTE("polled_at") "," L_QUOTE("log_tail") ","
		L_QUOTE("log_truncated"),
		JOB_PROPERTIES ","
		L_INT("log_bytes", L_AT_LEAST(0), "Bytes written so far to stdout and stderr.") ","
		L_STR("polled_at", "", "When this was seen, RFC 3339.") ","
		L_STR("log_tail", "", "The newest output, stdout and stderr in order.") ","
		L_BOOL("log_truncated", "", "Whether there is output before log_tail.") ","
		TASK_VIEW_WILL_REMOVE_AT ","
		NOTE),
	.read_only = true,
	.destructive = false,
	.idempotent = true,
	.open_world = false,
	.call = call_get,
};

const struct tool tool_stop_job = {
	.name = "stop_job",
	.title = "Stop a background job",
	.description =
		"Ends a job with everything it started (TERM, then KILL) and waits up to 3 s for the "
		"confirmed end. stopped is true when it is certain that it does not run any more; note says "
		"what happened, also when the job had ended before. Files that it wrote stay. Returns "
		"stopped, state and exit_code where there is one. Example: {\"job_id\":"
		"\"0123456789abcdef0123456789abcdef\"}",
	.input_schema = L_OBJECT_NEEDS(L_QUOTE("job_id"), JOB_ID),
	.output_schema = L_RESULT(
		L_QUOTE("job_id") "," L_QUOTE("stopped") "," L_QUOTE("state") "," L_QUOTE("note"),
		L_STR("job_id", "", "Id of the job.") ","
		L_BOOL("stopped", "", "Whether it is certain that it runs no more.") ","
		L_STR("state", TASK_VIEW_STATES, "How it ended; running: not confirmed.") ","
		TASK_VIEW_END ","
		NOTE),
	.read_only = false,
	.destructive = true,
	.idempotent = true,
	.open_world = false,
	.call = call_stop,
};

const struct tool tool_list_jobs = {
	.name = "list_jobs",
	.title = "List background jobs",
	.description =
		"Lists your background jobs, newest first, with their state. Use it when a job_id was lost, "
		"for instance because the connection broke during run_background, or to see what still runs "
		"before destroying a sandbox. Commands that exec handed over are among them. Returns jobs and "
		"their count. Example: {\"sandbox\":\"work\"}",
	.input_schema = L_OBJECT(
		L_STR("sandbox", "", "Only jobs of this sandbox, by name or id. Left out: of all.") ","
		L_STR("sandbox_id", "", "Another word for sandbox.") ","
		L_INT("limit", L_BETWEEN(1, LIST_MAX) L_DEFAULT("20"), "How many to list at most.")),
	.output_schema = L_RESULT(
		L_QUOTE("jobs") "," L_QUOTE("count"),
		L_ARRAY("jobs",
			L_RESULT(JOB_REQUIRED "," L_QUOTE("sandbox_id") "," L_QUOTE("started_at"),
				 JOB_PROPERTIES ","
				 L_STR("sandbox_id", "", "Id of its sandbox.") ","
				 L_STR("started_at", "", "When it began, RFC 3339.") ","
				 L_STR("finished_at", "", "When it ended, RFC 3339.")),
			"Jobs, newest first.") ","
		L_INT("count", L_AT_LEAST(0), "How many are listed.")),
	.read_only = true,
	.destructive = false,
	.idempotent = true,
	.open_world = false,
	.call = call_list,
};
/* clang-format on */
