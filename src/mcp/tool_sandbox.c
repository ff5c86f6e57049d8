/*
 * list_sandboxes, create_sandbox, destroy_sandbox, kill_sandbox. The last two are one verb:
 * kill_sandbox is what a client of the task tools calls to leave nothing behind.
 */
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "box/idle.h"
#include "mcp/args.h"
#include "mcp/confirm.h"
#include "mcp/target.h"
#include "mcp/toolset.h"

#define TTL_MIN_S 60
#define TTL_MAX_S 604800 /* a week */

/* Members that both a new and a listed sandbox have. */
/* clang-format off */
#define SANDBOX_PROPERTIES \
	L_STR("name", "", "Name to use in other calls.") "," \
	L_STR("sandbox_id", "", "Id of this incarnation; links belong to it, not to the name.") "," \
	L_STR("status", L_ENUM("\"running\",\"stopped\",\"kept\",\"unknown\""), \
	      "running: processes may run in it. stopped: starts by itself on the next use. kept: " \
	      "destroyed, but its files wait for the next sandbox of this name. unknown: the host " \
	      "could not tell.") "," \
	L_STR("template", "", "What it was made from.") "," \
	L_STR("network", "", "Network level: loopback or none.") "," \
	L_STR("created_at", "", "When it was made, RFC 3339.") "," \
	L_STR("last_used_at", "", "When it was last used, RFC 3339.") "," \
	L_STR("idle_since", "", \
	      "When its last use ended, or when it was destroyed, RFC 3339. Absent: it is in use.") "," \
	L_STR("will_stop_at", "", \
	      "When its processes are ended unless it is used before, RFC 3339; its files stay. Absent: " \
	      "it is in use, nothing runs in it, or it is removed before.") "," \
	L_STR("will_remove_at", "", \
	      "When it is removed with its files unless it is used before, RFC 3339. Absent: it is in " \
	      "use.") "," \
	L_STRUCT("labels", L_STRING_MAP, "Labels given when it was made.")
#define SANDBOX_REQUIRED \
	L_QUOTE("name") "," L_QUOTE("sandbox_id") "," L_QUOTE("status") "," L_QUOTE("template") "," \
	L_QUOTE("network") "," L_QUOTE("created_at") "," L_QUOTE("last_used_at")
/* clang-format on */

static const char *status_of(struct app *app, const struct sandbox_row *row)
{
	if (row->state == SANDBOX_KEPT)
		return "kept";
	struct err err = ERR_INIT;
	switch (sandbox_running(app, row, &err)) {
	case 1:
		return "running";
	case 0:
		return "stopped";
	default:
		/* One that cannot be looked at must not hide the others. */
		log_err(LOG_WARN, "sandbox_status", &err);
		return "unknown";
	}
}

static void describe_row(struct app *app, const struct sandbox_row *row, const struct idle *idle,
			 struct json_object *result)
{
	const char *status = status_of(app, row);
	json_add_str(result, "name", row->name);
	json_add_str(result, "sandbox_id", row->id);
	json_add_str(result, "status", status);
	json_add_str(result, "template", row->template);
	json_add_str(result, "network", row->network);
	target_add_time(result, "created_at", row->created_at);
	target_add_time(result, "last_used_at", row->last_used_at);
	if (!idle->in_use)
		target_add_time(result, "idle_since", idle->since);
	if (strcmp(status, "stopped") != 0)
		target_add_time(result, "will_stop_at", idle->stop_at);
	target_add_time(result, "will_remove_at", idle->remove_at);
	if (row->labels == NULL)
		return;
	struct err err = ERR_INIT;
	json_add(result, "labels", json_parse(row->labels, strlen(row->labels), &err));
}

/* --- list_sandboxes ------------------------------------------------------------------------ */

struct listing {
	struct app *app;
	struct timeline timeline;
	struct json_object *sandboxes;
	int64_t live;
};

static bool list_row(void *ctx, const struct sandbox_row *row)
{
	struct listing *listing = ctx;
	bool is_live = row->state == SANDBOX_LIVE;
	if (is_live && sandbox_is_over(listing->app, row))
		return true; /* only its removal is due */
	struct idle idle;
	struct json_object *item = json_object_new_object();
	idle_of(listing->app, &listing->timeline, row, &idle);
	describe_row(listing->app, row, &idle, item);
	json_push(listing->sandboxes, item);
	listing->live += is_live;
	return true;
}

static bool call_list(struct tool_call *call, struct err *err)
{
	struct app *app = call->app;
	AUTO_JSON *sandboxes = json_object_new_array();
	struct listing listing = {.app = app, .sandboxes = sandboxes};
	if (!timeline_read(app, &listing.timeline, err) ||
	    !row_sandbox_each(app->db, call->principal, list_row, &listing, err))
		return false;
	call->structured = json_object_new_object();
	json_add(call->structured, "sandboxes", TAKE_PTR(sandboxes));
	json_add_int(call->structured, "count", listing.live);
	json_add_int(call->structured, "max_sandboxes", app->conf->max_sandboxes);
	return true;
}

/* clang-format off */
const struct tool tool_list_sandboxes = {
	.name = "list_sandboxes",
	.title = "List sandboxes",
	.description =
		"Lists your sandboxes with their state. Use it to find a sandbox from earlier work, or to "
		"see what can be destroyed when the limit is reached. Not needed before exec or "
		"write_text: those make a missing sandbox themselves. Looking at the list is no use of a "
		"sandbox. Returns sandboxes (name, sandbox_id, status, times: will_remove_at tells when "
		"an unused one goes with its files), count of live ones and max_sandboxes, the limit of "
		"this server. Example: {}",
	.input_schema = L_OBJECT(""),
	.output_schema = L_RESULT(
		L_QUOTE("sandboxes") "," L_QUOTE("count") "," L_QUOTE("max_sandboxes"),
		L_ARRAY("sandboxes", L_RESULT(SANDBOX_REQUIRED, SANDBOX_PROPERTIES),
			"Your sandboxes by name.") "," 
		L_INT("count", L_AT_LEAST(0), "How many of them are live; kept ones do not count.") ","
		L_INT("max_sandboxes", L_AT_LEAST(0), "How many live ones this server allows.")),
	.read_only = true,
	.destructive = false,
	.idempotent = true,
	.open_world = false,
	.call = call_list,
};
/* clang-format on */

/* --- create_sandbox ------------------------------------------------------------------------ */

static bool read_options(const struct tool_call *call, struct sandbox_options *options,
			 struct err *err)
{
	*options = (struct sandbox_options){
		.ttl_ms = args_seconds_ms(call, "timeout"),
		.env = args_object(call, "env"),
		.labels = args_object(call, "labels"),
		.is_explicit = true,
	};
	return args_str(call, "sandbox", &options->name, err) &&
	       args_str_or(call, "template", "image", &options->template, err) &&
	       args_str(call, "network", &options->network, err);
}

static struct json_object *limits_of(const struct conf *conf)
{
	struct json_object *limits = json_object_new_object();
	json_add_int(limits, "memory_bytes_per_process", conf->mem_limit);
	json_add_int(limits, "processes", conf->pids_limit);
	json_add_int(limits, "open_files", conf->open_files);
	json_add_int(limits, "file_bytes", conf->file_size);
	json_add_int(limits, "tmp_bytes", conf->tmp_size);
	return limits;
}

static void note_create(const struct target *target, const struct sandbox_options *options,
			struct buf *note)
{
	const struct sandbox_row *row = &target->row;
	if (!target->created)
		target_note(note, "Sandbox %s existed already and is as it was.", row->name);
	else if (strcmp(row->id, row->files_id) != 0)
		target_note(note, "It has the files that were kept from the earlier sandbox %s.",
			    row->name);
	if (options->name == NULL)
		target_note(note, "The name was made up: use it, or the id, in further calls.");
	if (row->ends_with_session)
		target_note(note,
			    "It goes with its files when this session ends, unless a background "
			    "task was started in it.");
	if (row->expires_at > 0)
		target_note(
			note,
			"It ends with its files when it was not used for %lld seconds; tasks do "
			"not make it live longer than they run.",
			(long long)(row->ttl_ms / 1000));
}

static bool call_create(struct tool_call *call, struct err *err)
{
	struct app *app = call->app;
	struct sandbox_options options;
	if (!read_options(call, &options, err))
		return false;
	AUTO_TARGET target = TARGET_INIT;
	if (!target_create(call, &options, &target, err))
		return false;
	AUTO_BUF note = BUF_INIT;
	note_create(&target, &options, &note);
	struct timeline timeline;
	struct idle idle;
	if (!timeline_read(app, &timeline, err))
		return false;
	idle_from(app, &timeline, &target.row, &idle); /* it is this call that uses it */
	struct json_object *result = call->structured = json_object_new_object();
	describe_row(app, &target.row, &idle, result);
	json_add_bool(result, "created", target.created);
	json_add(result, "limits", limits_of(app->conf));
	json_add(result, "isolation", app->runtime->describe(&target.use.box));
	target_add_note(result, &note);
	return true;
}

/* clang-format off */
#define LIMITS_PROPERTIES \
	L_INT("memory_bytes_per_process", "", "Memory that one process can take.") "," \
	L_INT("processes", "", "Processes and threads at one time.") "," \
	L_INT("open_files", "", "Open files of one process.") "," \
	L_INT("file_bytes", "", "Size of one file that a command writes.") "," \
	L_INT("tmp_bytes", "", "Size of /tmp.")

const struct tool tool_create_sandbox = {
	.name = "create_sandbox",
	.title = "Create a sandbox",
	.description =
		"Makes a sandbox: an isolated Linux machine with a directory /workspace of its own. "
		"Needed only to choose options (environment, lifetime, network, labels) or to get a fresh "
		"one with a made-up name; exec, write_text and upload_file make a missing sandbox "
		"themselves. With a name it lives as long as it is used now and then; without a name, or "
		"with timeout, it ends when it was not used for that time: will_remove_at tells when. A "
		"name that exists is returned as it is "
		"(created is false), but asking for other options than it has is an error. Nothing runs "
		"in it yet: it starts by itself with the first command. Returns name, sandbox_id, the "
		"limits and how it is isolated. Example: {\"sandbox\":\"work\",\"env\":{\"LANG\":"
		"\"zh_CN.UTF-8\"}}",
	.input_schema = L_OBJECT(
		L_STR("sandbox", L_LENGTH(1, NAME_MAX_LEN),
		      "Name of the sandbox: 1 to 63 letters, digits, - and _, starting with a letter or "
		      "digit. Left out: a name is made up.") ","
		L_STR("template", "", "What to make it from. Default and always there: base.") ","
		L_STR("image", "", "Another word for template.") ","
		L_INT("timeout", L_BETWEEN(TTL_MIN_S, TTL_MAX_S),
		      "Lifetime in seconds, 60 to 604800, counted anew from each use; then the sandbox "
		      "ends with its files. Not the time limit of commands: exec has its own.") ","
		L_STRUCT("env", L_STRING_MAP,
			 "Environment variables for every command in it, e.g. {'TZ': 'Asia/Shanghai'}.") ","
		L_STRUCT("labels", L_STRING_MAP, "Labels to tell sandboxes apart in list_sandboxes.") ","
		L_STR("network", L_ENUM("\"loopback\",\"none\""),
		      "loopback: programs in it can talk to each other over 127.0.0.1. none: not even "
		      "that. Neither reaches the internet. Default: the server's setting.")),
	.output_schema = L_RESULT(
		SANDBOX_REQUIRED "," L_QUOTE("created") "," L_QUOTE("limits") "," L_QUOTE("isolation"),
		SANDBOX_PROPERTIES ","
		L_BOOL("created", "", "False: it existed already.") ","
		L_STRUCT("limits", L_MEMBERS(LIMITS_PROPERTIES), "Limits of this sandbox.") ","
		L_STRUCT("isolation", "", "How the host isolates it.") ","
		L_STR("note", "", "What else to know.")),
	.read_only = false,
	.destructive = false,
	.idempotent = false,
	.open_world = false,
	.call = call_create,
};
/* clang-format on */

/* --- destroy_sandbox and kill_sandbox ------------------------------------------------------ */

static bool destroy(struct tool_call *call, bool delete_files, struct err *err)
{
	struct app *app = call->app;
	const char *handle;
	char id[ID_LEN + 1];
	if (!args_sandbox(call, &handle, err))
		return false;
	enum confirm confirm = delete_files ? confirm_delete(call, &handle, id, err) : CONFIRM_GO;
	if (confirm != CONFIRM_GO)
		return confirm == CONFIRM_ASKED;
	struct sandbox_destroyed done = {0};
	if (!sandbox_destroy(app, call->principal, handle, delete_files, &done, err))
		return false;
	AUTO_FREE char *name = done.name;
	AUTO_BUF note = BUF_INIT;
	if (done.files_deleted)
		target_note(&note,
			    "Its files are deleted. The name %s is free for a new, empty sandbox.",
			    name);
	else
		target_note(&note,
			    "Its files are kept for %lld seconds: the next sandbox named %s starts "
			    "with them. To delete them now, call destroy_sandbox again with "
			    "delete_files true.",
			    (long long)app->conf->idle_remove, name);
	struct json_object *result = call->structured = json_object_new_object();
	json_add_str(result, "name", name);
	json_add_str(result, "sandbox_id", done.id);
	json_add_bool(result, "destroyed", true);
	json_add_bool(result, "was_running", done.was_running);
	json_add_bool(result, "files_deleted", done.files_deleted);
	target_add_note(result, &note);
	return true;
}

static bool call_destroy(struct tool_call *call, struct err *err)
{
	return destroy(call, args_bool(call, "delete_files", false), err);
}

static bool call_kill(struct tool_call *call, struct err *err)
{
	return destroy(call, true, err);
}

/* clang-format off */
#define DESTROY_RESULT \
	L_RESULT(L_QUOTE("name") "," L_QUOTE("sandbox_id") "," L_QUOTE("destroyed") "," \
		 L_QUOTE("was_running") "," L_QUOTE("files_deleted") "," L_QUOTE("note"), \
		 L_STR("name", "", "Name of the sandbox.") "," \
		 L_STR("sandbox_id", "", "Id of the sandbox that ended.") "," \
		 L_BOOL("destroyed", "", "Always true; what did not exist is an error.") "," \
		 L_BOOL("was_running", "", "Whether processes may have run in it.") "," \
		 L_BOOL("files_deleted", "", "False: the files wait for the next one of this name.") "," \
		 L_STR("note", "", "What became of the files."))

const struct tool tool_destroy_sandbox = {
	.name = "destroy_sandbox",
	.title = "Destroy a sandbox",
	.description =
		"Ends everything that runs in a sandbox and removes it; its links stop working. Files in "
		"/workspace are kept for the next sandbox of the same name unless delete_files is true; "
		"everything else in it (/tmp, processes) is gone. Use it when work is finished or a "
		"sandbox misbehaves. An unknown sandbox is an error. Returns what was ended and whether "
		"the files are deleted. Example: {\"sandbox\":\"work\",\"delete_files\":true}",
	.input_schema = L_OBJECT(ARGS_SANDBOX "," 
		L_BOOL("delete_files", L_DEFAULT("false"),
		       "true: delete the files in /workspace as well; this cannot be undone.")),
	.output_schema = DESTROY_RESULT,
	.read_only = false,
	.destructive = true,
	.idempotent = true,
	.open_world = false,
	.call = call_destroy,
};

const struct tool tool_kill_sandbox = {
	.name = "kill_sandbox",
	.title = "Kill a sandbox",
	.description =
		"Ends everything that runs in a sandbox and removes it with all its files; its links stop "
		"working. This cannot be undone. Same as destroy_sandbox with delete_files true; use "
		"destroy_sandbox to keep the files. Returns what was ended. Example: "
		"{\"sandbox_id\":\"0123456789abcdef0123456789abcdef\"}",
	.input_schema = L_OBJECT(ARGS_SANDBOX),
	.output_schema = DESTROY_RESULT,
	.read_only = false,
	.destructive = true,
	.idempotent = true,
	.open_world = false,
	.call = call_kill,
};
/* clang-format on */
