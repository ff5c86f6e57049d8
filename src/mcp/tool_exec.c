/*
 * exec. However the command ends, that is data: only a command that was not run, or whose end
 * nobody saw, is a tool error.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "box/exec.h"
#include "mcp/args.h"
#include "mcp/target.h"
#include "mcp/toolset.h"

static bool read_options(const struct tool_call *call, struct exec_options *options,
			 struct err *err)
{
	*options = (struct exec_options){
		.env = args_object(call, "env"),
		.timeout_ms = args_seconds_ms(call, "timeout"),
	};
	options->stdin_data = args_bytes(call, "stdin", &options->stdin_len);
	return args_str(call, "command", &options->command, err) &&
	       args_str(call, "cwd", &options->cwd, err);
}

static void add_signal(struct json_object *result, int number)
{
	char name[32];
	const char *abbreviation = sigabbrev_np(number);
	if (abbreviation != NULL)
		snprintf(name, sizeof name, "SIG%s", abbreviation);
	else
		snprintf(name, sizeof name, "signal %d", number);
	json_add_str(result, "signal", name);
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
		add_signal(result, status->signal);
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
			    "timeout (up to %d), or run it in the background: command > log 2>&1 &",
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

/* The end was not seen: an error, but the output so far may tell why. */
static void report_lost(struct tool_call *call, const struct session *session)
{
	struct json_object *result = call->structured;
	call->is_error = true;
	json_add_str(result, "error", err_name(ERR_LOST));
	json_add_str(result, "message",
		     "the sandbox went away while the command ran, so how the command ended is "
		     "not known: it may have done all, part or none of its work");
	json_add_str(result, "fix",
		     "Look at what is in /workspace (list_files, exec ls -l) before running the "
		     "command again. Likely causes are a lack of memory or that the sandbox was "
		     "destroyed; the next exec starts it anew.");
	if (session->status.swept)
		explain_sweep(result);
	add_stream(result, "stdout", &session->out);
	add_stream(result, "stderr", &session->err);
}

static void report(struct tool_call *call, const struct target *target,
		   const struct session *session, int64_t timeout_ms)
{
	struct json_object *result = call->structured = json_object_new_object();
	AUTO_BUF note = BUF_INIT;
	if (session->status.end == RUNTIME_END_LOST) {
		report_lost(call, session);
	} else {
		add_status(result, &session->status);
		add_stream(result, "stdout", &session->out);
		add_stream(result, "stderr", &session->err);
		add_usage(result, session);
		note_end(session, timeout_ms, &note);
	}
	target_describe(target, result, &note);
	target_add_note(result, &note);
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
	__attribute__((cleanup(session_finish))) struct session session;
	session_init(&session, (size_t)app->conf->stdout_max, (size_t)app->conf->stderr_max);
	if (!exec_run(app, &target.row, &target.use, &options, &session, err))
		return false;
	int64_t timeout_ms =
		options.timeout_ms > 0 ? options.timeout_ms : app->conf->exec_timeout * 1000;
	report(call, &target, &session, timeout_ms);
	return true;
}

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
		"ended. Of long output the start and the end are returned (32 KiB of stdout, 8 KiB of "
		"stderr by default). For long work start it in the background, 'command > log 2>&1 &', and "
		"look at the log with later calls. To write a file prefer write_text. Returns exit_code or "
		"signal, stdout, stderr and their full sizes, times and memory. Example: "
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
		L_QUOTE("timed_out") "," STREAM_REQUIRED("stdout") "," STREAM_REQUIRED("stderr") ","
		L_QUOTE("duration_ms") "," L_QUOTE("cpu_ms") "," L_QUOTE("max_rss_kib") ","
		L_QUOTE("background_processes") "," TARGET_REQUIRED,
		L_INT("exit_code", "", "Exit code; absent when a signal ended the command.") ","
		L_STR("signal", "", "Signal that ended the command, e.g. SIGKILL.") ","
		L_BOOL("timed_out", "", "Whether it was ended because its time was up.") ","
		STREAM_PROPERTIES("stdout", "standard output") ","
		STREAM_PROPERTIES("stderr", "standard error") ","
		L_INT("duration_ms", L_AT_LEAST(0), "How long it took.") ","
		L_INT("cpu_ms", L_AT_LEAST(0), "Processor time it used.") ","
		L_INT("max_rss_kib", L_AT_LEAST(0), "Memory of its largest process.") ","
		L_INT("background_processes", L_AT_LEAST(0), "Processes it left running.") ","
		TARGET_PROPERTIES ","
		L_STR("note", "", "What else to know, and what to do about it.")),
	.read_only = false,
	.destructive = true,
	.idempotent = false,
	.open_world = false,
	.call = call_exec,
};
/* clang-format on */
