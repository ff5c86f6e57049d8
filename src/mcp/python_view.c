/* See python_view.h. */
#include "mcp/python_view.h"

#include <signal.h>
#include <sodium.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/media.h"
#include "base/text.h"
#include "box/transfer.h"
#include "mcp/resource_uri.h"
#include "mcp/task_view.h"

/* Bytes of what a model reads; about as much as it gets of standard output. */
#define VALUE_MAX     ((size_t)(16 * 1024))
#define TRACEBACK_MAX ((size_t)(16 * 1024))
#define MESSAGE_MAX   ((size_t)(4 * 1024))
#define NOTES_MAX     ((size_t)(4 * 1024))
#define SHOWN_MAX     ((size_t)(32 * 1024)) /* of all displayed texts together */
#define HTML_MAX      ((size_t)(4 * 1024))  /* a longer page is to be looked at, not to be read */

/* --- text -------------------------------------------------------------------------------- */

/* Adds a text that may be too long; true when it was cut. */
static bool add_text(struct json_object *object, const char *key, const char *text, size_t len,
		     size_t max)
{
	size_t kept = text_cut(text, len, max);
	json_add_strn(object, key, text, kept);
	return kept < len;
}

static bool add_member(struct json_object *object, struct json_object *from, const char *key,
		       size_t max)
{
	struct json_object *value = json_get(from, key);
	const char *text = json_str(value);
	return text != NULL && add_text(object, key, text, json_str_len(value), max);
}

static void add_stream(struct json_object *result, const char *name, const char *bytes_name,
		       const struct capture *capture)
{
	AUTO_BUF text = BUF_INIT;
	capture_text(capture, &text);
	json_add_strn(result, name, buf_str(&text), text.len);
	json_add_int(result, bytes_name, capture->total);
}

static void add_streams(struct json_object *result, const struct kernel_run *run)
{
	add_stream(result, "stdout", "stdout_bytes", &run->out);
	add_stream(result, "stderr", "stderr_bytes", &run->err);
	json_add_bool(result, "truncated",
		      capture_truncated(&run->out) || capture_truncated(&run->err));
}

static void add_value(struct json_object *result, const struct kernel_run *run, struct buf *note)
{
	struct json_object *value = json_get(run->value, "text");
	const char *text = json_str(value);
	if (text == NULL)
		return;
	if (add_text(result, "value", text, json_str_len(value), VALUE_MAX) ||
	    json_get_bool(run->value, "truncated", false))
		target_note(note, "The value was cut; print the part of it that matters, or write "
				  "it to a file.");
}

static void add_error(struct json_object *result, const struct kernel_run *run)
{
	if (run->error == NULL)
		return;
	struct json_object *error = json_object_new_object();
	add_member(error, run->error, "type", MESSAGE_MAX);
	add_member(error, run->error, "message", MESSAGE_MAX);
	add_member(error, run->error, "traceback", TRACEBACK_MAX);
	add_member(error, run->error, "hint", MESSAGE_MAX);
	json_add(result, "error", error);
}

static size_t room_for(const struct kernel_display *display, size_t room)
{
	bool is_page = strcmp(display->mime, "text/html") == 0;
	return is_page && display->text.len > HTML_MAX ? 0 : room;
}

static void add_displays(struct json_object *result, const struct kernel_run *run, struct buf *note)
{
	size_t room = SHOWN_MAX, left_out = 0;
	struct json_object *displays = json_object_new_array();
	for (size_t i = 0; i < run->display_count; i++) {
		const struct kernel_display *display = &run->displays[i];
		if (display->text.len > room_for(display, room)) {
			left_out++;
			continue;
		}
		struct json_object *shown = json_object_new_object();
		json_add_str(shown, "mime", display->mime);
		json_add_strn(shown, "text", buf_str(&display->text), display->text.len);
		json_push(displays, shown);
		room -= display->text.len;
	}
	json_add(result, "displays", displays);
	if (left_out > 0)
		target_note(note,
			    "Displayed texts that are too long to be shown here: %zu. Write such "
			    "output to a file.",
			    left_out);
}

/* --- content blocks ------------------------------------------------------------------------ */

static struct json_object *add_block(struct json_object *content, const char *type)
{
	struct json_object *block = json_object_new_object();
	json_add_str(block, "type", type);
	json_push(content, block);
	return block;
}

/* The image goes: the answer is held twice already, as an object and as text. */
static void show_image(struct json_object *content, struct kernel_image *image)
{
	AUTO_BUF text = BUF_INIT;
	size_t room = sodium_base64_encoded_len(image->data.len, sodium_base64_VARIANT_ORIGINAL);
	sodium_bin2base64(buf_reserve(&text, room), room,
			  (const unsigned char *)buf_str(&image->data), image->data.len,
			  sodium_base64_VARIANT_ORIGINAL);
	text.len = room - 1; /* without the NUL */
	buf_finish(&image->data);
	struct json_object *block = add_block(content, "image");
	json_add_strn(block, "data", text.data, text.len);
	json_add_str(block, "mimeType", image->mime);
}

static void show_images(struct json_object *content, struct kernel_run *run, struct buf *note)
{
	size_t scaled = 0;
	for (size_t i = 0; i < run->image_count; i++) {
		show_image(content, &run->images[i]);
		scaled += run->images[i].scaled;
	}
	if (scaled > 0)
		target_note(note,
			    "Images shown smaller than they are: %zu of %zu; the full size is "
			    "among the artifacts as far as there was room.",
			    scaled, run->image_count);
}

/* --- files --------------------------------------------------------------------------------- */

/* A path as the sandbox sees it, as readable text. */
static void put_path(struct buf *out, const struct python_file *file)
{
	buf_puts(out, "/workspace/");
	text_decode(out, file->path, strlen(file->path), false, false);
}

/* Without a link the file can still be read by its URI. */
static void add_link(struct json_object *item, struct app *app, const struct sandbox_row *sandbox,
		     const char *path)
{
	struct err err = ERR_INIT;
	struct transfer_link link = {0};
	if (!transfer_make_link(app, sandbox, LINK_GET, path, -1, 0, &link, &err)) {
		log_err(LOG_WARN, "artifact_link", &err);
		return;
	}
	json_add_str(item, "url", link.url);
	target_add_time(item, "expires_at", link.expires_at);
	free(link.url);
}

static void show_link(struct json_object *content, struct json_object *artifact,
		      const struct python_file *file)
{
	struct json_object *block = add_block(content, "resource_link");
	json_add_str(block, "uri", json_get_str(artifact, "uri"));
	json_add_str(block, "name", json_get_str(artifact, "name"));
	json_add_str(block, "description", file->about);
	json_add_str(block, "mimeType", json_get_str(artifact, "mime"));
	json_add_int(block, "size", file->size);
}

static void hand_out(struct tool_call *call, const struct sandbox_row *sandbox,
		     const struct python_file *file, struct json_object *artifacts)
{
	AUTO_BUF path = BUF_INIT;
	AUTO_BUF uri = BUF_INIT;
	put_path(&path, file);
	resource_uri_write(&uri, sandbox->name, file->path, false);
	const char *type = media_type(file->path);
	struct json_object *item = json_object_new_object();
	json_add_str(item, "name", strrchr(buf_str(&path), '/') + 1);
	json_add_strn(item, "path", path.data, path.len);
	json_add_strn(item, "uri", uri.data, uri.len);
	json_add_strn(item, "mime", type, strcspn(type, ";"));
	json_add_int(item, "size", file->size);
	add_link(item, call->app, sandbox, file->path);
	json_push(artifacts, item);
	show_link(call->content, item, file);
}

static void add_changed(struct json_object *result, const struct python_changes *changes,
			struct buf *note)
{
	struct json_object *paths = json_object_new_array();
	for (size_t i = 0; i < changes->count && i < PYTHON_CHANGED_MAX; i++) {
		AUTO_BUF path = BUF_INIT;
		put_path(&path, &changes->files[i]);
		json_push(paths, json_new_text(path.data, path.len));
	}
	json_add(result, "files_changed", paths);
	if (!changes->partial && changes->count <= PYTHON_CHANGED_MAX)
		return;
	json_add_bool(result, "files_changed_partial", true);
	target_note(note,
		    "files_changed may leave some out: no more than %d are named, and of a large "
		    "workspace not all is looked at. Write results directly into /workspace, which "
		    "is looked at first, and pack many into one file (zipfile).",
		    PYTHON_CHANGED_MAX);
}

/* True when any file was handed out. */
static bool add_files(struct tool_call *call, const struct python_view *view, struct buf *note)
{
	const struct python_changes *changes = &view->result->changes;
	struct json_object *artifacts = json_object_new_array();
	size_t count = 0;
	for (; count < changes->count && changes->files[count].is_artifact; count++)
		hand_out(call, &view->target->row, &changes->files[count], artifacts);
	json_add(call->structured, "artifacts", artifacts);
	add_changed(call->structured, changes, note);
	if (count == PYTHON_ARTIFACTS_MAX && changes->count > count)
		target_note(note,
			    "No more than %d files are handed out at once. Pack others (zipfile), "
			    "or call download_file for each.",
			    PYTHON_ARTIFACTS_MAX);
	return count > 0;
}

/* --- notes --------------------------------------------------------------------------------- */

static const struct {
	int number;
	const char *text;
} signal_texts[] = {
	{SIGSEGV, "SIGSEGV ended the code: native code (an extension module, ctypes) crashed, or a "
		  "recursion was too deep for the stack."},
	{SIGBUS, "SIGBUS ended the code: a file was shortened while it was mapped into memory, or "
		 "there was no room for it."},
	{SIGABRT, "SIGABRT ended the code: native code (an extension module) gave up."},
	{SIGFPE, "SIGFPE ended the code: native code (an extension module) divided by zero."},
	{SIGILL, "SIGILL ended the code: this machine's processor lacks an instruction that a "
		 "native module needs. Do without that module; the operator finds more with "
		 "spoolbox doctor."},
	{SIGKILL, "SIGKILL ended the code: something in the sandbox sent it, or the host ran out "
		  "of memory. Work on less data at a time."},
	{SIGXFSZ, "SIGXFSZ ended the code: it wrote a file beyond the size limit of one file."},
};

static void note_signal(const struct kernel_run *run, struct buf *note)
{
	for (size_t i = 0; i < ARRAY_LEN(signal_texts); i++)
		if (signal_texts[i].number == run->signal)
			target_note(note, "%s", signal_texts[i].text);
}

static void note_timeout(const struct python_view *view, struct buf *note)
{
	static const char *const ways[] = {
		[KERNEL_STATE_NONE] = "it and all that it had started were ended",
		[KERNEL_STATE_KEPT] = "it was interrupted (KeyboardInterrupt)",
		[KERNEL_STATE_LOST] = "it was interrupted, did not react, and was killed",
	};
	target_note(note,
		    "The code did not end within %lld ms, so %s; its output up to then is here. "
		    "Give a larger timeout_ms (up to %d). For longer work write it to a file with "
		    "write_text and start it with run_background (python3 script.py).",
		    (long long)view->timeout_ms, ways[view->result->run.state],
		    PYTHON_TIMEOUT_MAX_MS);
}

static void note_end(const struct python_view *view, struct buf *note)
{
	const struct kernel_run *run = &view->result->run;
	if (run->timed_out)
		note_timeout(view, note);
	else if (run->cancelled)
		target_note(note, "The code was cancelled before its end.");
	else if (run->end == KERNEL_END_SIGNAL)
		note_signal(run, note);
}

static void note_state(const struct python_view *view, struct buf *note)
{
	const struct kernel_run *run = &view->result->run;
	if (view->session_id == NULL)
		return;
	if (run->state != KERNEL_STATE_KEPT)
		target_note(note,
			    "The session is over: its variables and imports are lost, files in "
			    "/workspace are kept. To go on, call with session_id new and sandbox "
			    "%s, and run again what the rest needs.",
			    view->target->row.name);
	else if (run->timed_out || run->cancelled)
		target_note(note, "The session goes on: its variables and imports are kept.");
	if (run->state != KERNEL_STATE_KEPT || !view->is_new_session)
		return;
	target_note(note, "The session ends after %lld s without a call.", (long long)view->idle_s);
	if (view->target->row.gives_way)
		target_note(note,
			    "Its files stay then until their place is needed; name %s as sandbox "
			    "to keep them.",
			    view->target->row.name);
}

static void note_output(const struct kernel_run *run, struct buf *note)
{
	if (capture_truncated(&run->out) || capture_truncated(&run->err))
		target_note(note, "Output was cut in the middle. Print less, or write it to a file "
				  "that is then read in parts.");
	if (run->left_out)
		target_note(note, "The code showed more than one result can hold; the rest was "
				  "left out.");
	if (run->notes.len > 0)
		target_note(note, "%.*s",
			    (int)text_cut(buf_str(&run->notes), run->notes.len, NOTES_MAX),
			    buf_str(&run->notes));
}

static bool missed_file(const struct kernel_run *run)
{
	const char *type = json_get_str(run->error, "type");
	return type != NULL && strcmp(type, "FileNotFoundError") == 0;
}

static void note_throwaway(const struct python_view *view, bool keeps_files, struct buf *note)
{
	if (!view->is_throwaway)
		return;
	if (missed_file(&view->result->run))
		target_note(note,
			    "No sandbox was named, so the code ran in a new and empty one; for "
			    "files of an earlier call name its sandbox.");
	if (keeps_files)
		target_note(note,
			    "The files stay in sandbox %s for as long as their links work, or "
			    "until its place is needed; name it as sandbox to go on with them.",
			    view->target->row.name);
	else if (view->result->changes.count > 0)
		target_note(note, "The files that changed are gone with the fresh sandbox of this "
				  "call; name a sandbox to keep files.");
}

/* --- the result ---------------------------------------------------------------------------- */

/* The end was not seen: an error, but the output so far may tell why. */
static void report_lost(struct tool_call *call, const struct python_view *view)
{
	static const char *const fixes[] = {
		"Look at what is in /workspace (list_files) before running the code again. Likely "
		"causes are a lack of memory, that the sandbox was destroyed, or code that kills "
		"processes which are not its own.",
		"The sandbox was made for this call alone, so it can be run again as it is; name a "
		"sandbox to see what it left. Likely causes are a lack of memory, or code that "
		"kills processes which are not its own.",
	};
	call->is_error = true;
	json_add_str(call->structured, "error", err_name(ERR_LOST));
	json_add_str(call->structured, "message",
		     "the sandbox, or what watches over the code in it, went away while the code "
		     "ran, so how it ended is not known: it may have done all, part or none of its "
		     "work");
	json_add_str(call->structured, "fix", fixes[view->is_throwaway]);
}

static void report_end(struct json_object *result, const struct kernel_run *run, struct buf *note)
{
	if (run->end == KERNEL_END_SIGNAL)
		task_view_signal(result, run->signal);
	else
		json_add_int(result, "exit_code", run->code);
	json_add_bool(result, "timed_out", run->timed_out);
	add_value(result, run, note);
	add_error(result, run);
}

static void add_usage(struct json_object *result, const struct kernel_run *run)
{
	json_add_int(result, "duration_ms", run->duration_ms);
	json_add_int(result, "cpu_ms", run->cpu_ms);
	json_add_int(result, "max_rss_kib", run->max_rss_kib);
}

bool python_view_report(struct tool_call *call, const struct python_view *view)
{
	struct kernel_run *run = &view->result->run;
	AUTO_BUF note = BUF_INIT;
	AUTO_BUF known = BUF_INIT; /* that a throw-away sandbox was made is no news */
	struct json_object *result = call->structured = json_object_new_object();
	call->content = json_object_new_array();
	if (run->state == KERNEL_STATE_KEPT)
		json_add_str(result, "session_id", view->session_id);
	add_streams(result, run);
	if (run->end == KERNEL_END_LOST)
		report_lost(call, view);
	else
		report_end(result, run, &note);
	note_end(view, &note);
	note_state(view, &note);
	note_output(run, &note);
	if (run->display_count > 0)
		add_displays(result, run, &note);
	show_images(call->content, run, &note);
	json_add_int(result, "images", (int64_t)run->image_count);
	bool keeps_files = add_files(call, view, &note);
	add_usage(result, run);
	json_add_bool(result, "state_preserved", run->state == KERNEL_STATE_KEPT);
	note_throwaway(view, keeps_files, &note);
	if (!view->is_throwaway)
		target_describe(view->target, result, &note);
	else if (keeps_files)
		target_describe(view->target, result, &known);
	target_add_note(result, &note);
	return keeps_files;
}
