/* list_files and write_text. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "box/files.h"
#include "mcp/args.h"
#include "mcp/target.h"
#include "mcp/toolset.h"

/* --- list_files ---------------------------------------------------------------------------- */

#define LIST_DEFAULT 500
#define LIST_MAX     1000 /* entries; some 100 KB of result */

static bool list_entry(void *ctx, const struct files_entry *entry)
{
	struct json_object *entries = ctx, *item = json_object_new_object();
	char mode[16];
	snprintf(mode, sizeof mode, "%04o", entry->mode & 07777);
	json_add_str(item, "name", entry->name);
	json_add_str(item, "type", entry->type);
	if (entry->size >= 0)
		json_add_int(item, "size", entry->size);
	target_add_time(item, "modified_at", entry->modified_at);
	json_add_str(item, "mode", mode);
	if (entry->renamed)
		json_add_bool(item, "renamed", true);
	json_push(entries, item);
	return true;
}

static bool call_list(struct tool_call *call, struct err *err)
{
	const char *handle;
	AUTO_BUF path = BUF_INIT;
	if (!args_sandbox(call, &handle, err) || !args_path(call, "path", &path, err))
		return false;
	int64_t offset = args_int(call, "offset", 0), limit = args_int(call, "limit", LIST_DEFAULT);
	AUTO_TARGET target = TARGET_INIT;
	if (!target_find(call, handle, &target, err))
		return false;
	AUTO_JSON *entries = json_object_new_array();
	int64_t total;
	if (!files_list(&target.use, buf_str(&path), offset, limit, list_entry, entries, &total,
			err))
		return false;
	int64_t next = offset + (int64_t)json_object_array_length(entries);
	call->structured = json_object_new_object();
	target_add_path(call->structured, "path", &path);
	json_add(call->structured, "entries", TAKE_PTR(entries));
	json_add_int(call->structured, "total", total);
	if (next < total && next > offset)
		json_add_int(call->structured, "next_offset", next);
	return true;
}

/* clang-format off */
#define ENTRY_PROPERTIES \
	L_STR("name", "", "Name of the entry.") "," \
	L_STR("type", L_ENUM("\"file\",\"dir\",\"link\",\"other\""), "What it is.") "," \
	L_INT("size", L_AT_LEAST(0), "Bytes; files only.") "," \
	L_STR("modified_at", "", "When it was last changed, RFC 3339.") "," \
	L_STR("mode", "", "Permission bits in octal, e.g. 0644.") "," \
	L_BOOL("renamed", "", \
	       "Present when the name is stored in another encoding and was converted for you.")

const struct tool tool_list_files = {
	.name = "list_files",
	.title = "List a directory",
	.description =
		"Lists one directory of a sandbox, sorted by name. Use it to see what is there before "
		"reading or downloading; for a whole tree use exec with find. The sandbox must exist: it "
		"is not made and not started. At most 1000 entries per call (default 500); with more, "
		"continue at next_offset. Returns path, entries (name, type, size, modified_at, mode) and "
		"total. Example: {\"sandbox\":\"work\",\"path\":\"results\"}",
	.input_schema = L_OBJECT(
		ARGS_SANDBOX ","
		L_STR("path", L_DEFAULT("\".\""),
		      "Directory, relative to /workspace or absolute below it. Default: /workspace.") ","
		L_INT("offset", L_AT_LEAST(0) L_DEFAULT("0"), "Entries to skip.") ","
		L_INT("limit", L_BETWEEN(1, LIST_MAX) L_DEFAULT(L_TEXT(LIST_DEFAULT)),
		      "Entries to return at most, up to 1000.")),
	.output_schema = L_RESULT(
		L_QUOTE("path") "," L_QUOTE("entries") "," L_QUOTE("total"),
		L_STR("path", "", "The directory.") ","
		L_ARRAY("entries",
			L_RESULT(L_QUOTE("name") "," L_QUOTE("type"), ENTRY_PROPERTIES),
			"Its entries by name.") ","
		L_INT("total", L_AT_LEAST(0), "How many entries the directory has.") ","
		L_INT("next_offset", L_AT_LEAST(0), "Offset of the next part; absent at the end.")),
	.read_only = true,
	.destructive = false,
	.idempotent = true,
	.open_world = false,
	.call = call_list,
};
/* clang-format on */

/* --- write_text ---------------------------------------------------------------------------- */

#define WRITE_MAX 1048576 /* bytes; more belongs into an upload, not into a model's context */

static int64_t count_lines(const char *text, size_t len)
{
	int64_t lines = len > 0 && text[len - 1] != '\n';
	for (const char *p = text; (p = memchr(p, '\n', (size_t)(text + len - p))) != NULL; p++)
		lines++;
	return lines;
}

static bool check_content(size_t len, struct err *err)
{
	if (len <= WRITE_MAX)
		return true;
	err_set(err, ERR_TOO_LARGE, "content has %zu bytes; the limit is %d", len, WRITE_MAX);
	return err_hint(err, "Write it in parts and join them with exec, or use upload_file.");
}

/* Only tells whether it was there: what writing makes of it is decided when it is written. */
static bool file_exists(const struct sandbox_use *use, const char *path)
{
	struct err ignored = ERR_INIT;
	AUTO_FD fd = files_open(use, path, NULL, &ignored);
	return fd >= 0;
}

static bool set_executable(const struct sandbox_use *use, const char *path, bool executable,
			   struct err *err)
{
	struct stat st;
	AUTO_FD fd = files_open(use, path, &st, err);
	if (fd < 0)
		return false;
	mode_t mode = executable ? (st.st_mode & 0777) | 0111 : st.st_mode & 0666;
	if (fchmod(fd, mode) != 0)
		return err_sys(err, "fchmod");
	return true;
}

static bool call_write(struct tool_call *call, struct err *err)
{
	struct app *app = call->app;
	const char *handle;
	size_t len;
	AUTO_BUF path = BUF_INIT;
	const char *content = args_bytes(call, "content", &len);
	if (content == NULL)
		content = "";
	if (!args_sandbox(call, &handle, err) || !args_file_path(call, "path", &path, err) ||
	    !check_content(len, err))
		return false;
	AUTO_TARGET target = TARGET_INIT;
	if (!target_ensure(call, handle, &target, err) ||
	    !files_can_write(&target.use, path.data, err) ||
	    !files_check_room(app, &target.use, (int64_t)len, err))
		return false;
	bool existed = file_exists(&target.use, path.data);
	if (!files_write(&target.use, path.data, content, len, err))
		return false;
	if (json_has(call->arguments, "executable") &&
	    !set_executable(&target.use, path.data, args_bool(call, "executable", false), err))
		return false;
	AUTO_BUF note = BUF_INIT;
	struct json_object *result = call->structured = json_object_new_object();
	target_add_path(result, "path", &path);
	json_add_int(result, "size", (int64_t)len);
	json_add_int(result, "lines", count_lines(content, len));
	json_add_bool(result, "created", !existed);
	target_describe(&target, result, &note);
	target_add_note(result, &note);
	return true;
}

/* clang-format off */
const struct tool tool_write_text = {
	.name = "write_text",
	.title = "Write a text file",
	.description =
		"Writes a whole text file in a sandbox, replacing what is there. A sandbox that does not "
		"exist yet and missing directories are made. Use it for scripts, settings and small data: "
		"quoting is not an issue as it is with exec. To change part of a file use edit_text; for "
		"binary or large files use upload_file. At most 1 MiB (1048576 bytes) of UTF-8. Readers "
		"see the old file or the new one, never half of it. Returns path, size, lines and whether "
		"the file is new. Example: {\"sandbox\":\"work\",\"path\":\"count.py\",\"content\":"
		"\"print(1)\\n\"}",
	.input_schema = L_OBJECT_NEEDS(L_QUOTE("path"),
		ARGS_SANDBOX ","
		L_STR("path", L_LENGTH(1, FILES_PATH_MAX),
		      "File, relative to /workspace or absolute below it.") ","
		L_STR("content", L_DEFAULT("\"\""), "The whole new content. Left out: an empty file.") ","
		L_BOOL("executable", "",
		       "true: may be run as a program; false: may not. Left out: as it was.")),
	.output_schema = L_RESULT(
		L_QUOTE("path") "," L_QUOTE("size") "," L_QUOTE("lines") "," L_QUOTE("created") ","
		TARGET_REQUIRED,
		L_STR("path", "", "The file.") ","
		L_INT("size", L_AT_LEAST(0), "Bytes written.") ","
		L_INT("lines", L_AT_LEAST(0), "Lines written.") ","
		L_BOOL("created", "", "Whether the file did not exist before.") ","
		TARGET_PROPERTIES ","
		L_STR("note", "", "What else to know.")),
	.read_only = false,
	.destructive = true,
	.idempotent = true,
	.open_world = false,
	.call = call_write,
};
/* clang-format on */
