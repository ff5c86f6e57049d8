/*
 * Files of sandboxes as resources. A list is one walk through everything that a principal has, cut
 * into pages: the position is the URI behind which the next page continues, so whatever comes or
 * goes in between, what stays is listed once. Nothing here creates or starts a sandbox, and only a
 * read counts as its use.
 */
#include <sodium.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/media.h"
#include "base/text.h"
#include "box/files.h"
#include "box/walk.h"
#include "mcp/resource.h"
#include "mcp/resource_uri.h"
#include "mcp/roster.h"

#define PAGE_ITEMS  100           /* some 30 KB of result */
#define DIR_ITEMS   1000          /* as many as list_files returns at most */
#define BLOB_MAX    (1024 * 1024) /* bytes; what write_text takes. As base64 it is held thrice */
#define DIR_TYPE    "inode/directory" /* as freedesktop.org names it */
#define SHOWN_BYTES 160

static void add_time(struct json_object *object, const char *key, int64_t wall_ms)
{
	char text[CLOCK_RFC3339_LEN];
	json_add_str(object, key, clock_rfc3339(wall_ms, text));
}

/* --- list ---------------------------------------------------------------------------------- */

struct listing {
	struct resource_call *call;
	const char *sandbox; /* that is being walked through */
	struct buf last;     /* URI of the last item listed */
	bool has_more;
};

/* A path as people read it. */
static void put_title(struct buf *out, const char *sandbox, const char *path, bool is_dir)
{
	buf_printf(out, "%s/", sandbox);
	text_decode(out, path, strlen(path), false, false);
	if (is_dir && *path != '\0')
		buf_putc(out, '/');
}

/* Nothing is said of the type of a file whose extension is unknown: a read will tell. */
static void add_type(struct json_object *item, const char *name)
{
	const char *type = media_type(name);
	if (media_is_known(type))
		json_add_strn(item, "mimeType", type, strcspn(type, ";"));
}

/* Adds a resource, or notes that the page was full before. */
static bool list_item(struct listing *listing, const char *path, const char *name,
		      const struct stat *st)
{
	struct json_object *items = listing->call->result;
	listing->has_more = json_object_array_length(items) == PAGE_ITEMS;
	if (listing->has_more)
		return false;
	bool is_dir = S_ISDIR(st->st_mode);
	AUTO_BUF shown = BUF_INIT;
	AUTO_BUF title = BUF_INIT;
	text_decode(&shown, name, strlen(name), false, false);
	put_title(&title, listing->sandbox, path, is_dir);
	buf_clear(&listing->last);
	resource_uri_write(&listing->last, listing->sandbox, path, is_dir);

	struct json_object *item = json_object_new_object();
	json_add_str(item, "uri", buf_str(&listing->last));
	json_add_str(item, "name", buf_str(&shown));
	json_add_str(item, "title", buf_str(&title));
	if (is_dir)
		json_add_str(item, "mimeType", DIR_TYPE);
	else
		add_type(item, name);
	if (!is_dir)
		json_add_int(item, "size", st->st_size);
	struct json_object *annotations = json_object_new_object();
	add_time(annotations, "lastModified", files_mtime_ms(st));
	json_add(item, "annotations", annotations);
	json_push(items, item);
	return true;
}

static bool list_entry(void *ctx, const struct walk_entry *entry)
{
	return list_item(ctx, entry->path, entry->name, entry->st);
}

/* after: the path behind which to continue; NULL: from the workspace itself on. */
static bool list_tree(struct listing *listing, int workspace_fd, const char *after, struct err *err)
{
	struct stat st;
	if (after == NULL && fstat(workspace_fd, &st) != 0)
		return err_sys(err, "stat workspace");
	if (after == NULL && !list_item(listing, "", listing->sandbox, &st))
		return true;
	walk_tree(workspace_fd, &(struct walk_options){.after = after}, list_entry, listing);
	return true;
}

static bool list_sandbox(struct listing *listing, const char *after, struct err *err)
{
	struct app *app = listing->call->app;
	AUTO_SANDBOX_ROW row = {0};
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	return sandbox_find(app, listing->call->principal, listing->sandbox, &row, err) &&
	       sandbox_enter_to_look(app, &row, &use, err) &&
	       list_tree(listing, use.workspace_fd, after, err);
}

/* One that goes meanwhile is left out, and so is one that cannot be looked at: it must not hide the
 * others. */
static void list_from(struct listing *listing, const char *after)
{
	struct err err = ERR_INIT;
	if (!list_sandbox(listing, after, &err) && err.code != ERR_NOT_FOUND &&
	    err.code != ERR_DESTROYED)
		log_err(LOG_WARN, "resource_list", &err);
}

static bool list_all(struct listing *listing, const struct resource_uri *after, struct err *err)
{
	AUTO_ROSTER roster = ROSTER_INIT;
	if (!roster_read(listing->call->app, listing->call->principal, &roster, err))
		return false;
	for (size_t i = 0; i < roster.count && !listing->has_more; i++) {
		listing->sandbox = roster.names[i];
		int order = strcmp(roster.names[i], buf_str(&after->sandbox));
		if (order >= 0)
			list_from(listing, order == 0 ? buf_str(&after->path) : NULL);
	}
	return true;
}

static bool list(struct resource_call *call, const char *after, struct buf *next, struct err *err)
{
	AUTO_RESOURCE_URI position = RESOURCE_URI_INIT;
	if (*after != '\0' && !resource_uri_read(after, &position))
		return err_set(err, ERR_INVALID, "the cursor names no place in the list");
	struct listing listing = {.call = call, .last = BUF_INIT};
	bool ok = list_all(&listing, &position, err);
	if (ok && listing.has_more)
		buf_puts(next, buf_str(&listing.last));
	buf_finish(&listing.last);
	return ok;
}

/* --- read ---------------------------------------------------------------------------------- */

static bool not_found(const char *uri, struct err *err)
{
	AUTO_BUF shown = BUF_INIT;
	text_quote(&shown, uri, strlen(uri), SHOWN_BYTES);
	err_set(err, ERR_NOT_FOUND, "there is no resource %s", buf_str(&shown));
	return err_hint(err,
			"Look with resources/list, or with list_sandboxes and list_files, what "
			"is there. Links that lead out of /workspace are not followed.");
}

static bool too_large(const char *uri, int64_t max, struct err *err)
{
	AUTO_BUF shown = BUF_INIT;
	text_quote(&shown, uri, strlen(uri), SHOWN_BYTES);
	err_set(err, ERR_TOO_LARGE,
		"%s is larger than the %lld bytes that can be read as a resource", buf_str(&shown),
		(long long)max);
	return err_hint(err,
			"Get a link for it with download_file, read parts of a text with read_text "
			"(offset, limit), or look into it with exec.");
}

/* What cannot be there by its name, and what is no file, read the same as what is not there. */
static bool explain(const char *uri, const struct err *trouble, struct err *err)
{
	switch (trouble->code) {
	case ERR_NOT_FOUND:
	case ERR_INVALID:
	case ERR_DESTROYED:
		return not_found(uri, err);
	default:
		*err = *trouble;
		return false;
	}
}

/* Adds contents; a type without its charset, since text is UTF-8 here. */
static struct json_object *add_contents(struct resource_call *call, const char *uri,
					const char *type)
{
	struct json_object *contents = json_object_new_object();
	json_add_str(contents, "uri", uri);
	json_add_strn(contents, "mimeType", type, strcspn(type, ";"));
	json_push(call->result, contents);
	return contents;
}

/* Releases the data as soon as may be: a large blob is held in three forms already. */
static void add_blob(struct json_object *contents, struct buf *data)
{
	AUTO_BUF text = BUF_INIT;
	size_t room = sodium_base64_encoded_len(data->len, sodium_base64_VARIANT_ORIGINAL);
	sodium_bin2base64(buf_reserve(&text, room), room, (const unsigned char *)buf_str(data),
			  data->len, sodium_base64_VARIANT_ORIGINAL);
	text.len = room - 1; /* without the NUL */
	buf_finish(data);
	json_add_strn(contents, "blob", buf_str(&text), text.len);
}

/* Reads a file of at most the larger of both limits. */
static bool read_whole(const char *uri, int fd, int64_t max, struct buf *data, struct err *err)
{
	struct err trouble = ERR_INIT;
	if (fs_read_all(fd, (size_t)max, data, &trouble))
		return true;
	if (trouble.code == ERR_TOO_LARGE)
		return too_large(uri, max, err);
	*err = trouble;
	return false;
}

/* Text is what says so by its name, or says nothing, and is UTF-8 without NUL. */
static bool is_text(const char *type, const struct buf *data)
{
	return (media_is_text(type) || !media_is_known(type)) &&
	       memchr(buf_str(data), '\0', data->len) == NULL &&
	       text_is_utf8(buf_str(data), data->len);
}

static bool read_file(struct resource_call *call, const char *uri, const char *path, int fd,
		      struct err *err)
{
	const struct app *app = call->app;
	int64_t text_max = app->conf->read_text_max;
	const char *type = media_type(path);
	AUTO_BUF data = BUF_INIT;
	if (!read_whole(uri, fd, text_max > BLOB_MAX ? text_max : BLOB_MAX, &data, err))
		return false;
	bool as_text = is_text(type, &data);
	int64_t max = as_text ? text_max : BLOB_MAX;
	if ((int64_t)data.len > max)
		return too_large(uri, max, err);
	if (as_text)
		json_add_strn(add_contents(call, uri, media_is_known(type) ? type : "text/plain"),
			      "text", buf_str(&data), data.len);
	else
		add_blob(add_contents(call, uri, type), &data);
	return true;
}

/* A directory that is being read. */
struct directory {
	const char *sandbox, *path;
	struct json_object *entries;
};

/* Appends directory/name. */
static void put_child(struct buf *out, const char *directory, const char *name)
{
	buf_printf(out, "%s%s%s", directory, *directory == '\0' ? "" : "/", name);
}

static bool read_entry(void *ctx, const struct files_entry *entry)
{
	struct directory *directory = ctx;
	AUTO_BUF path = BUF_INIT;
	AUTO_BUF uri = BUF_INIT;
	put_child(&path, directory->path, entry->raw);
	resource_uri_write(&uri, directory->sandbox, buf_str(&path),
			   strcmp(entry->type, "dir") == 0);
	struct json_object *item = json_object_new_object();
	json_add_str(item, "name", entry->name);
	json_add_str(item, "type", entry->type);
	if (entry->size >= 0)
		json_add_int(item, "size", entry->size);
	add_time(item, "modified_at", entry->modified_at);
	json_add_str(item, "uri", buf_str(&uri));
	json_push(directory->entries, item);
	return true;
}

/* One JSON document: it tells names, sizes and where to go on in one piece, where a contents entry
 * for each file would have to carry the file, and where plain lines would leave the URIs to be
 * guessed. Hidden names and links are shown: whoever reads a directory wants to know. */
static bool read_directory(struct resource_call *call, const char *uri,
			   const struct resource_uri *parts, const struct sandbox_use *use,
			   struct err *err)
{
	AUTO_JSON *listing = json_object_new_object();
	struct directory directory = {buf_str(&parts->sandbox), buf_str(&parts->path),
				      json_object_new_array()};
	json_add_str(listing, "uri", uri);
	json_add(listing, "entries", directory.entries);
	int64_t total;
	if (!files_list(use, directory.path, 0, DIR_ITEMS, read_entry, &directory, &total, err))
		return false;
	json_add_int(listing, "total", total);
	if (total > DIR_ITEMS)
		json_add_str(listing, "note",
			     "This is the beginning; list_files with an offset shows the rest.");
	json_add_str(add_contents(call, uri, "application/json"), "text", json_text(listing, NULL));
	return true;
}

/* What a path names is told by trying: a look before could be outdated. */
static bool read_entered(struct resource_call *call, const struct resource_uri *parts,
			 const struct sandbox_use *use, struct err *err)
{
	const char *path = buf_str(&parts->path);
	AUTO_BUF uri = BUF_INIT;
	struct err no_file = ERR_INIT;
	AUTO_FD fd = parts->names_dir ? -1 : files_open(use, path, NULL, &no_file);
	bool is_dir = parts->names_dir || no_file.code == ERR_INVALID;
	resource_uri_write(&uri, buf_str(&parts->sandbox), path, is_dir);
	if (is_dir)
		return read_directory(call, buf_str(&uri), parts, use, err);
	if (fd >= 0)
		return read_file(call, buf_str(&uri), path, fd, err) && sandbox_confirm(use, err);
	*err = no_file;
	return false;
}

static bool read_resource(struct resource_call *call, const char *uri, struct err *err)
{
	AUTO_RESOURCE_URI parts = RESOURCE_URI_INIT;
	if (!resource_uri_read(uri, &parts))
		return not_found(uri, err);
	struct app *app = call->app;
	struct err trouble = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	if (sandbox_find(app, call->principal, buf_str(&parts.sandbox), &row, &trouble) &&
	    sandbox_enter(app, &row, &use, &trouble) && read_entered(call, &parts, &use, &trouble))
		return true;
	return explain(uri, &trouble, err);
}

/* --- complete ------------------------------------------------------------------------------ */

struct completion {
	struct json_object *values;
	const char *directory, *prefix;
	bool *more;
};

/* Hidden names only for who has typed the dot. */
static bool complete_entry(void *ctx, const struct files_entry *entry)
{
	struct completion *completion = ctx;
	bool is_dir = strcmp(entry->type, "dir") == 0;
	if ((*completion->prefix == '\0' && entry->raw[0] == '.') ||
	    (!is_dir && strcmp(entry->type, "file") != 0))
		return true;
	*completion->more = json_object_array_length(completion->values) == COMPLETE_MAX;
	if (*completion->more)
		return false;
	AUTO_BUF path = BUF_INIT;
	AUTO_BUF value = BUF_INIT;
	put_child(&path, completion->directory, entry->raw);
	resource_uri_write_value(&value, buf_str(&path), is_dir);
	json_push_str(completion->values, buf_str(&value));
	return true;
}

/* What cannot be looked at has no values: somebody is in the middle of typing. */
static void complete_path(struct resource_call *call, const char *sandbox, const char *value,
			  bool *more)
{
	struct app *app = call->app;
	struct err none = ERR_INIT;
	AUTO_RESOURCE_URI parts = RESOURCE_URI_INIT;
	AUTO_BUF prefix = BUF_INIT;
	if (!resource_uri_read_value(value, &parts, &prefix))
		return;
	struct completion completion = {call->result, buf_str(&parts.path), buf_str(&prefix), more};
	AUTO_SANDBOX_ROW row = {0};
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	(void)!(sandbox_find(app, call->principal, sandbox, &row, &none) &&
		sandbox_enter_to_look(app, &row, &use, &none) &&
		files_list_prefix(&use, completion.directory, completion.prefix, complete_entry,
				  &completion, &none));
}

static bool complete(struct resource_call *call, const char *uri_template, const char *variable,
		     const char *value, struct json_object *known, bool *more, struct err *err)
{
	(void)uri_template; /* there is one */
	if (strcmp(variable, "sandbox") == 0)
		return roster_complete(call->app, call->principal, value, call->result, more, err);
	*more = false;
	const char *sandbox = known == NULL ? NULL : json_get_str(known, "sandbox");
	if (strcmp(variable, "path") == 0 && sandbox != NULL)
		complete_path(call, sandbox, value, more);
	return true;
}

/* --- the set ------------------------------------------------------------------------------- */

static const struct resource_template templates[] = {
	{
		.uri_template = RESOURCE_URI_TEMPLATE,
		.name = "sandbox_file",
		.title = "File of a sandbox",
		.description =
			"A file or directory below /workspace of a sandbox (name or id). Text "
			"comes "
			"as text, other files as base64, a directory as a JSON list of its entries "
			"with their URIs.",
	},
};

const struct resource_set resource_files = {
	.templates = templates,
	.template_count = ARRAY_LEN(templates),
	.list = list,
	.read = read_resource,
	.complete = complete,
};
