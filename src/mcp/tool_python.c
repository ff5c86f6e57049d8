/*
 * execute_python. Where the code runs follows from three arguments: an earlier session has its
 * sandbox, a sandbox that is named is used or made, and without either the code gets a sandbox for
 * itself. Whatever can be refused is refused before anything is made. However the code ends, that
 * is data: see python_view.c.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "box/files.h"
#include "box/python_pool.h"
#include "mcp/args.h"
#include "mcp/python_view.h"
#include "mcp/resource_uri.h"
#include "mcp/target.h"
#include "mcp/toolset.h"
#include "run/session.h"

#define NEW_SESSION    "new"
#define TIMEOUT_MIN_MS 100
#define URI_PREFIX     "spoolbox://"
#define SHOWN_BYTES    160

/* --- input files --------------------------------------------------------------------------- */

struct input {
	struct buf path;
	struct target from; /* entered: the sandbox that its URI names */
	bool has_uri;       /* else it is a path in the sandbox of the code */
};
struct inputs {
	struct input at[PYTHON_INPUTS_MAX];
	size_t count;
	bool has_paths;
};

static void inputs_finish(struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->count; i++) {
		buf_finish(&inputs->at[i].path);
		target_leave(&inputs->at[i].from);
	}
}
#define AUTO_INPUTS __attribute__((cleanup(inputs_finish))) struct inputs

static bool read_uri(const struct tool_call *call, const char *text, struct input *input,
		     struct err *err)
{
	AUTO_RESOURCE_URI uri = RESOURCE_URI_INIT;
	if (!resource_uri_read(text, &uri) || uri.names_dir || uri.path.len == 0) {
		AUTO_BUF shown = BUF_INIT;
		text_quote(&shown, text, strlen(text), SHOWN_BYTES);
		err_set(err, ERR_INVALID, "files: %s is no URI of a file", buf_str(&shown));
		return err_hint(err, "Give it as spoolbox://SANDBOX/PATH, as results show it.");
	}
	input->has_uri = true;
	buf_append(&input->path, uri.path.data, uri.path.len);
	if (!target_find(call, buf_str(&uri.sandbox), &input->from, err))
		return false;
	AUTO_FD fd = files_open(&input->from.use, buf_str(&input->path), NULL, err);
	return fd >= 0;
}

static bool read_input(const struct tool_call *call, struct json_object *value, struct input *input,
		       struct err *err)
{
	const char *text = json_str(value);
	size_t len = json_str_len(value);
	if (strncmp(text, URI_PREFIX, strlen(URI_PREFIX)) == 0 && strlen(text) == len)
		return read_uri(call, text, input, err);
	if (!files_path("files", text, len, &input->path, err))
		return false;
	if (input->path.len > 0 && text[len - 1] != '/')
		return true;
	err_set(err, ERR_INVALID, "files names a directory; each of it must be a file");
	return err_hint(err, "In its sandbox the code sees all of /workspace anyhow.");
}

/* Sources of other sandboxes are entered here, so they are known to be there. */
static bool read_inputs(const struct tool_call *call, struct inputs *inputs, struct err *err)
{
	struct json_object *files = json_get(call->arguments, "files");
	size_t count = files == NULL ? 0 : json_object_array_length(files);
	for (size_t i = 0; i < count && i < PYTHON_INPUTS_MAX; i++) {
		struct input *input = &inputs->at[inputs->count++];
		*input = (struct input){.path = BUF_INIT, .from = TARGET_INIT};
		if (!read_input(call, json_object_array_get_idx(files, i), input, err))
			return false;
		inputs->has_paths |= !input->has_uri;
	}
	return true;
}

static bool stage(struct app *app, const struct inputs *inputs, const struct target *target,
		  struct python_stage *staged, struct err *err)
{
	for (size_t i = 0; i < inputs->count; i++) {
		const struct input *input = &inputs->at[i];
		const char *path = buf_str(&input->path);
		bool is_own = !input->has_uri || strcmp(input->from.row.id, target->row.id) == 0;
		if (is_own ? !python_stage_own(staged, &target->use, path, err)
			   : !python_stage_copy(app, staged, &input->from.use, path, &target->use,
						err))
			return false;
	}
	return true;
}

/* --- arguments ----------------------------------------------------------------------------- */

struct request {
	struct python_options options;
	const char *sandbox; /* NULL: none was named */
	bool wants_session;  /* a new one */
	bool has_session;    /* this one: */
	struct python_row session;
};

static bool read_options(const struct tool_call *call, struct python_options *options,
			 struct err *err)
{
	options->code = args_bytes(call, "code", &options->code_len);
	options->timeout_ms = args_int(call, "timeout_ms", 0);
	if (options->timeout_ms == 0)
		options->timeout_ms = PYTHON_TIMEOUT_MS;
	if (options->timeout_ms >= TIMEOUT_MIN_MS)
		return python_check(options, err);
	err_set(err, ERR_INVALID, "timeout_ms is %lld; it is at least %d",
		(long long)options->timeout_ms, TIMEOUT_MIN_MS);
	return err_hint(err, "It counts milliseconds, from %d to %d.", TIMEOUT_MIN_MS,
			PYTHON_TIMEOUT_MAX_MS);
}

static bool read_session(const struct tool_call *call, struct request *request, struct err *err)
{
	const char *id;
	if (!args_str(call, "session_id", &id, err))
		return false;
	request->wants_session = id != NULL && strcmp(id, NEW_SESSION) == 0;
	request->has_session = id != NULL && !request->wants_session;
	return !request->has_session ||
	       python_find(call->app, call->principal, id, &request->session, err);
}

static bool read_request(const struct tool_call *call, struct request *request, struct err *err)
{
	return read_options(call, &request->options, err) &&
	       args_str_or(call, "sandbox", "sandbox_id", &request->sandbox, err) &&
	       read_session(call, request, err);
}

/* --- where it runs ------------------------------------------------------------------------- */

/* A path alone says nothing of a sandbox that does not exist yet. */
static bool check_paths(const struct request *request, const struct inputs *inputs, struct err *err)
{
	if (!inputs->has_paths || request->sandbox != NULL || request->has_session)
		return true;
	err_set(err, ERR_INVALID,
		"files holds a path, but neither sandbox nor session_id says in "
		"which sandbox it is");
	return err_hint(err, "Write it as spoolbox://SANDBOX/PATH, or name the sandbox.");
}

static bool enter_session(const struct tool_call *call, const struct request *request,
			  struct target *target, struct err *err)
{
	struct err trouble = ERR_INIT;
	const struct python_row *session = &request->session;
	const char *wanted = request->sandbox;
	if (!target_find(call, session->sandbox_id, target, &trouble)) {
		if (trouble.code != ERR_NOT_FOUND && trouble.code != ERR_DESTROYED) {
			*err = trouble;
			return false;
		}
		err_set(err, ERR_GONE,
			"session %s is over: its sandbox was removed, and its files "
			"and variables with it",
			session->id);
		return err_hint(err, "Start anew with session_id new.");
	}
	if (wanted == NULL)
		return true;
	if (strcmp(wanted, target->row.id) == 0 || strcmp(wanted, target->row.name) == 0)
		return sandbox_stay(call->app, &target->row, err);
	err_set(err, ERR_INVALID, "session %s is in sandbox %s, not in %.*s", session->id,
		target->row.name, SHOWN_BYTES, wanted);
	return err_hint(err, "Leave sandbox out, or start a session there with session_id new.");
}

/* A sandbox that is to be made has no files yet. */
static bool enter_named(const struct tool_call *call, const struct request *request,
			const struct inputs *inputs, struct target *target, struct err *err)
{
	return inputs->has_paths ? target_find_to_change(call, request->sandbox, target, err)
				 : target_ensure(call, request->sandbox, target, err);
}

/* *is_pooled: it was made for this call, or for the session that this call begins. */
static bool enter(const struct tool_call *call, const struct request *request,
		  const struct inputs *inputs, struct target *target, bool *is_pooled,
		  struct err *err)
{
	const struct conf *conf = ((const struct app *)call->app)->conf;
	*is_pooled = false;
	if (request->has_session)
		return enter_session(call, request, target, err);
	if (request->sandbox != NULL)
		return enter_named(call, request, inputs, target, err);
	int64_t ttl_s = request->wants_session ? conf->sandbox_ttl : conf->url_ttl;
	*is_pooled = target_take(call, ttl_s * 1000, target, err);
	return *is_pooled;
}

/* --- the run ------------------------------------------------------------------------------- */

struct wait {
	struct tool_call *call;
	const struct python_result *result;
};

static bool keep_waiting(void *ctx)
{
	const struct wait *wait = ctx;
	AUTO_BUF line = BUF_INIT;
	capture_last_line(&wait->result->run.out, SESSION_LINE_MAX, &line);
	return tool_call_tick(wait->call, line.len > 0 ? line.data : NULL);
}

static bool run(struct tool_call *call, const struct request *request, struct target *target,
		const struct python_stage *staged, struct python_result *result, struct err *err)
{
	struct app *app = call->app;
	struct wait wait = {call, result};
	if (request->has_session)
		return python_run_in(app, &request->session, &target->row, &target->use,
				     &request->options, staged, keep_waiting, &wait, result, err);
	if (request->wants_session)
		return python_run_new(app, call->principal, &target->row, &target->use,
				      &request->options, staged, keep_waiting, &wait, result, err);
	return python_run(app, &target->row, &target->use, &request->options, staged, keep_waiting,
			  &wait, result, err);
}

/* Stages and runs in an entered sandbox. *keeps: files were handed out. */
static bool run_there(struct tool_call *call, const struct request *request,
		      const struct inputs *inputs, struct target *target, bool is_throwaway,
		      bool *keeps, struct err *err)
{
	struct app *app = call->app;
	AUTO_PYTHON_STAGE staged = {0};
	if (!stage(app, inputs, target, &staged, err))
		return false;
	AUTO_PYTHON_RESULT result = {.session_id = ""};
	if (!run(call, request, target, &staged, &result, err))
		return false;
	const struct python_view view = {
		.target = target,
		.result = &result,
		.timeout_ms = request->options.timeout_ms,
		.session_id = request->has_session     ? request->session.id
			      : request->wants_session ? result.session_id
						       : NULL,
		.is_new_session = request->wants_session,
		.idle_s = app->conf->python_idle,
		.is_throwaway = is_throwaway,
	};
	*keeps = python_view_report(call, &view);
	return true;
}

static bool call_python(struct tool_call *call, struct err *err)
{
	struct request request = {0};
	AUTO_INPUTS inputs = {.count = 0};
	AUTO_TARGET target = TARGET_INIT;
	bool is_pooled, keeps = false;
	if (!read_request(call, &request, err) || !read_inputs(call, &inputs, err) ||
	    !check_paths(&request, &inputs, err) ||
	    !enter(call, &request, &inputs, &target, &is_pooled, err))
		return false;
	bool is_throwaway = is_pooled && !request.wants_session;
	bool ok = run_there(call, &request, &inputs, &target, is_throwaway, &keeps, err);
	sandbox_leave(&target.use);
	/* A session that began has its sandbox to itself. */
	if (is_throwaway || (is_pooled && !ok))
		python_pool_release(call->app, &target.row, keeps);
	return ok;
}

/* --- schema -------------------------------------------------------------------------------- */

/* clang-format off */
const struct tool tool_execute_python = {
	.name = "execute_python",
	.title = "Run Python code",
	.description =
		"Runs Python code and returns what it printed, the value of its last line if that is an "
		"expression, its plots as images and its files as links. Use it for calculations, data "
		"analysis and charts; what is installed is in the instructions of this server. Every "
		"matplotlib figure and PIL image that is shown or left open comes back as an image; files that "
		"the code writes into the working directory (.png .csv .json .svg .html .pdf .xlsx .txt "
		".md .zip unless set otherwise) are handed out as artifacts, each with a link for the "
		"person. Variables last only with session_id: new starts a session, the id from the "
		"result goes on with it, and it ends after a few minutes without a call. Without "
		"session_id each call is a fresh process; without sandbox as well it has a fresh empty "
		"directory. A file of the person is put into a sandbox with upload_file first. "
		"Exceptions, exit codes and timed_out are results, not tool errors. For work of more than "
		"a minute write the script with write_text and start it with run_background (python3 "
		"script.py). Example: {\"code\":\"import matplotlib.pyplot as plt\\nplt.plot([1, 4, 9])\\n"
		"sum([1, 4, 9])\"}",
	.input_schema = L_OBJECT_NEEDS(L_QUOTE("code"),
		L_STR("code", ",\"minLength\":1", "Python source, as in a file; top-level await works.") ","
		L_INT("timeout_ms", L_BETWEEN(0, PYTHON_TIMEOUT_MAX_MS) L_DEFAULT(L_TEXT(PYTHON_TIMEOUT_MS)),
		      "Milliseconds after which the code is interrupted, 100 to 60000. Longer work is a "
		      "background task: write the script to a file and run_background python3 script.py.") ","
		L_STR("session_id", L_LENGTH(0, 64),
		      "new: start a session, which keeps variables and imports. An id from an earlier "
		      "result: go on there. Left out: a fresh process.") ","
		ARGS_SANDBOX_OR_NONE ","
		L_PROPERTY("files", "array",
		      ",\"items\":{\"type\":\"string\",\"minLength\":1},\"maxItems\":" L_TEXT(PYTHON_INPUTS_MAX),
		      "Input files: paths in the sandbox, or spoolbox://SANDBOX/PATH to have one of another "
		      "sandbox copied beside the code, read-only.")),
	.output_schema = PYTHON_VIEW_SCHEMA,
	.read_only = false,
	.destructive = true,
	.idempotent = false,
	.open_world = false,
	.call = call_python,
};
/* clang-format on */
