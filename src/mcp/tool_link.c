/*
 * upload_file and download_file: one-time links over which bytes travel beside the protocol, so
 * that no file has to pass through a model's context.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "box/transfer.h"
#include "mcp/args.h"
#include "mcp/target.h"
#include "mcp/toolset.h"

#define LINK_TTL_MAX_S 604800 /* a week */

/* A word for a POSIX shell: single quotes, inside which nothing but a single quote is special. */
static void shell_quote(struct buf *out, const char *word)
{
	buf_putc(out, '\'');
	for (const char *p = word; *p != '\0'; p++) {
		if (*p == '\'')
			buf_puts(out, "'\\''");
		else
			buf_putc(out, *p);
	}
	buf_putc(out, '\'');
}

static void link_finish(struct transfer_link *link)
{
	free(link->url);
}
#define AUTO_LINK __attribute__((cleanup(link_finish))) struct transfer_link

static void describe_link(struct json_object *result, const struct transfer_link *link)
{
	json_add_str(result, "url", link->url);
	target_add_time(result, "expires_at", link->expires_at);
	json_add_bool(result, "one_time", true);
}

/* clang-format off */
#define LINK_PROPERTIES(method) \
	L_STR("url", "", "The link. Whoever has it can use it once, without a token.") "," \
	L_STR("method", "", "HTTP method to use: " method ".") "," \
	L_STR("expires_at", "", "When the link stops working, RFC 3339.") "," \
	L_BOOL("one_time", "", "Always true: a completed transfer uses the link up.") "," \
	L_STR("example", "", "A command line that uses the link.")
#define LINK_REQUIRED \
	L_QUOTE("url") "," L_QUOTE("method") "," L_QUOTE("expires_at") "," L_QUOTE("one_time") "," \
	L_QUOTE("example")
#define LINK_TTL \
	L_INT("ttl_seconds", L_BETWEEN(0, LINK_TTL_MAX_S), \
	      "How long the link works, up to 604800 (a week). 0 or left out: the server's default, an " \
	      "hour unless set otherwise.")
/* clang-format on */

/* --- upload_file --------------------------------------------------------------------------- */

static bool check_size(const struct app *app, int64_t size, struct err *err)
{
	if (size <= app->conf->max_upload)
		return true;
	err_set(err, ERR_TOO_LARGE,
		"size is %lld bytes; uploads to this server are limited to %lld", (long long)size,
		(long long)app->conf->max_upload);
	return err_hint(err, "Split the file and upload the parts, or ask the operator to raise "
			     "SMCP_MAX_UPLOAD_BYTES.");
}

static void report_upload(struct tool_call *call, const struct target *target,
			  const struct buf *dest, const struct transfer_link *link, int64_t max)
{
	AUTO_BUF example = BUF_INIT;
	AUTO_BUF note = BUF_INIT;
	buf_puts(&example, "curl -T FILE ");
	shell_quote(&example, link->url);
	target_note(&note,
		    "The file appears at the destination when the upload is complete. Nothing was "
		    "transferred yet.");
	struct json_object *result = call->structured = json_object_new_object();
	describe_link(result, link);
	json_add_str(result, "method", "PUT");
	target_add_path(result, "dest", dest);
	json_add_int(result, "max_bytes", max);
	json_add_strn(result, "example", example.data, example.len);
	target_describe(target, result, &note);
	target_add_note(result, &note);
}

static bool call_upload(struct tool_call *call, struct err *err)
{
	struct app *app = call->app;
	const char *handle;
	AUTO_BUF dest = BUF_INIT;
	int64_t size = args_int(call, "size", -1), ttl_s = args_int(call, "ttl_seconds", 0);
	if (!args_sandbox(call, &handle, err) || !args_file_path(call, "dest", &dest, err) ||
	    !check_size(app, size, err))
		return false;
	AUTO_TARGET target = TARGET_INIT;
	if (!target_ensure(call, handle, &target, err) ||
	    !files_can_write(&target.use, dest.data, err) ||
	    !files_check_room(app, &target.use, size > 0 ? size : 0, err))
		return false;
	AUTO_LINK link = {0};
	if (!transfer_make_link(app, &target.row, LINK_PUT, dest.data, size, ttl_s, &link, err))
		return false;
	report_upload(call, &target, &dest, &link, size >= 0 ? size : app->conf->max_upload);
	return true;
}

/* clang-format off */
const struct tool tool_upload_file = {
	.name = "upload_file",
	.title = "Get an upload link",
	.description =
		"Makes a one-time link to which a file is sent (HTTP PUT) that then appears in a sandbox. "
		"Transfers nothing itself: whoever has the file uses the link, with curl -T or in a "
		"browser. A sandbox that does not exist yet is made. Use it for binary or large files; "
		"text that you have in front of you goes with write_text. A body needs its length: send a "
		"file, not a pipe. dest is the full path with the "
		"file's name; an existing file is replaced when the upload is complete. Returns url, "
		"expires_at, max_bytes and a command line as example. Example: {\"sandbox\":\"work\","
		"\"dest\":\"input/report.pdf\"}",
	.input_schema = L_OBJECT_NEEDS(L_QUOTE("dest"),
		ARGS_SANDBOX ","
		L_STR("dest", L_LENGTH(1, FILES_PATH_MAX),
		      "Path of the file to be, with its name, relative to /workspace or absolute below "
		      "it.") ","
		L_INT("size", L_AT_LEAST(0),
		      "Exact size in bytes if known; then only a body of that size is taken.") ","
		LINK_TTL),
	.output_schema = L_RESULT(
		LINK_REQUIRED "," L_QUOTE("dest") "," L_QUOTE("max_bytes") "," TARGET_REQUIRED ","
		L_QUOTE("note"),
		LINK_PROPERTIES("PUT") ","
		L_STR("dest", "", "Where the file will be.") ","
		L_INT("max_bytes", L_AT_LEAST(0), "Largest body that is taken.") ","
		TARGET_PROPERTIES ","
		L_STR("note", "", "What else to know.")),
	.read_only = false,
	.destructive = true, /* using the link replaces a file */
	.idempotent = false,
	.open_world = true, /* the bytes come from anywhere */
	.call = call_upload,
};
/* clang-format on */

/* --- download_file ------------------------------------------------------------------------- */

static bool call_download(struct tool_call *call, struct err *err)
{
	struct app *app = call->app;
	const char *handle;
	AUTO_BUF src = BUF_INIT;
	int64_t ttl_s = args_int(call, "ttl_seconds", 0);
	if (!args_sandbox(call, &handle, err) || !args_file_path(call, "src", &src, err))
		return false;
	AUTO_TARGET target = TARGET_INIT;
	if (!target_find(call, handle, &target, err))
		return false;
	struct stat st;
	AUTO_FD fd = files_open(&target.use, src.data, &st, err);
	if (fd < 0)
		return false;
	AUTO_LINK link = {0};
	if (!transfer_make_link(app, &target.row, LINK_GET, src.data, -1, ttl_s, &link, err))
		return false;
	const char *slash = strrchr(src.data, '/');
	const char *name = slash == NULL ? src.data : slash + 1;
	AUTO_BUF example = BUF_INIT;
	buf_puts(&example, "curl -o ");
	shell_quote(&example, name);
	buf_putc(&example, ' ');
	shell_quote(&example, link.url);
	struct json_object *result = call->structured = json_object_new_object();
	describe_link(result, &link);
	json_add_str(result, "method", "GET");
	target_add_path(result, "src", &src);
	json_add_str(result, "name", name);
	json_add_int(result, "size", st.st_size);
	json_add_strn(result, "example", example.data, example.len);
	return true;
}

/* clang-format off */
const struct tool tool_download_file = {
	.name = "download_file",
	.title = "Get a download link",
	.description =
		"Makes a one-time link from which a file of a sandbox is fetched (HTTP GET). Transfers "
		"nothing itself: give the link to the person, who opens it in a browser, or use curl -o. "
		"Use it for results that a person wants to have, and for binary or large files; text that "
		"you want to read yourself comes with read_text. The file must exist now. For several "
		"files pack them first (exec zip -r or tar). Returns url, size, name, expires_at and a "
		"command line as example. Example: {\"sandbox\":\"work\",\"src\":\"out/chart.png\"}",
	.input_schema = L_OBJECT_NEEDS(L_QUOTE("src"),
		ARGS_SANDBOX ","
		L_STR("src", L_LENGTH(1, FILES_PATH_MAX),
		      "File to hand out, relative to /workspace or absolute below it.") ","
		LINK_TTL),
	.output_schema = L_RESULT(
		LINK_REQUIRED "," L_QUOTE("src") "," L_QUOTE("name") "," L_QUOTE("size"),
		LINK_PROPERTIES("GET") ","
		L_STR("src", "", "The file.") ","
		L_STR("name", "", "Name under which it is offered.") ","
		L_INT("size", L_AT_LEAST(0), "Its size in bytes now.")),
	.read_only = false,
	.destructive = false,
	.idempotent = false,
	.open_world = true, /* whoever has the link gets the file */
	.call = call_download,
};
/* clang-format on */
