/*
 * What stands between HTTP and box/transfer: credentials, query and headers in; status, headers
 * and JSON out. What can be refused without reading the body is refused first.
 */
#include "web/filelink.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/media.h"
#include "box/transfer.h"
#include "web/content.h"
#include "web/digest.h"
#include "web/range.h"
#include "web/refuse.h"

/* --- download ---------------------------------------------------------------------------- */

/* A file on its way out: a transfer_sink over the HTTP sink. */
struct outgoing {
	const struct http_sink *sink;
	int status;
	const struct http_header *fields;
	size_t field_count;
	int64_t length;
	bool begun;
};

static bool outgoing_begin(void *ctx)
{
	struct outgoing *out = ctx;
	out->begun = true;
	return out->sink->begin(out->sink->ctx, out->status, out->fields, out->field_count,
				out->length);
}

static bool outgoing_write(void *ctx, const void *data, size_t len)
{
	struct outgoing *out = ctx;
	return out->sink->write(out->sink->ctx, data, len);
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash == NULL ? path : slash + 1;
}

static void refuse_range(const struct http_sink *sink, const struct range_reply *reply,
			 int64_t size)
{
	char value[48];
	snprintf(value, sizeof(value), "bytes */%" PRId64, size);
	const struct http_header field = {"content-range", value};
	if (reply->outcome == RANGE_UNSATISFIABLE)
		refuse(sink, 416, err_name(ERR_RANGE), "the byte range lies outside of the file",
		       "Ask for a range within the size that Content-Range gives.", &field);
	else
		refuse(sink, 412, "precondition_failed",
		       "the file is another version than asked for",
		       "Leave out If-Match and If-Unmodified-Since to get the present version.",
		       NULL);
}

static void send_file(struct app *app, const struct link_row *link, int fd, const struct stat *st,
		      const struct range_reply *reply, struct outgoing *out)
{
	const struct transfer_sink to = {outgoing_begin, outgoing_write, out};
	struct err err = ERR_INIT;
	if (transfer_send(app, link, fd, st, reply->offset, reply->length, &to, &err))
		return;
	if (out->begun)
		log_err(LOG_INFO, "download_cut", &err);
	else
		refuse_err(out->sink, &err);
}

/* Answers with an open file, or the part of it that was asked for. */
static void serve_file(struct app *app, const struct http_request *request,
		       const struct http_sink *sink, const struct link_row *link, const char *path,
		       int fd, const struct stat *st)
{
	char etag[RANGE_ETAG_LEN], modified[CLOCK_HTTP_LEN], range[96];
	range_etag(st, etag);
	/* A sandbox can set times in the future; HTTP forbids to show them. */
	int64_t now = clock_wall_ms(), changed = files_mtime_ms(st);
	struct range_file file = {st->st_size, changed < now ? changed : now, etag};
	struct range_reply reply = range_decide(request, &file);
	if (reply.outcome == RANGE_FAILED || reply.outcome == RANGE_UNSATISFIABLE) {
		refuse_range(sink, &reply, file.size);
		return;
	}
	AUTO_BUF disposition = BUF_INIT;
	content_disposition(&disposition, last_part(path));
	snprintf(range, sizeof(range), "bytes %" PRId64 "-%" PRId64 "/%" PRId64, reply.offset,
		 reply.offset + reply.length - 1, file.size);
	const struct http_header fields[] = {
		{"etag", etag},
		{"last-modified", clock_http_date(file.modified_at, modified)},
		{"cache-control", "private, no-cache"},
		{"x-content-type-options", "nosniff"},
		{"content-security-policy", content_policy},
		{"referrer-policy", "no-referrer"},
		{"accept-ranges", "bytes"},
		{"content-type", media_type(path)},
		{"content-disposition", buf_str(&disposition)},
		{"content-range", range}, /* last: only a part has it */
	};
	size_t count = ARRAY_LEN(fields) - (reply.outcome != RANGE_PART);
	if (reply.outcome == RANGE_NOT_MODIFIED) {
		sink->begin(sink->ctx, 304, fields, count, 0);
		return;
	}
	struct outgoing out = {.sink = sink,
			       .status = reply.outcome == RANGE_PART ? 206 : 200,
			       .fields = fields,
			       .field_count = count,
			       .length = reply.length};
	if (strcmp(request->method, "HEAD") == 0)
		outgoing_begin(&out);
	else
		send_file(app, link, fd, st, &reply, &out);
}

static void serve_download(struct app *app, const struct http_request *request,
			   const struct http_sink *sink, const struct link_row *link,
			   const struct sandbox_row *sandbox, const char *path)
{
	struct err err = ERR_INIT;
	struct stat st;
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	AUTO_FD fd =
		sandbox_enter(app, sandbox, &use, &err) ? files_open(&use, path, &st, &err) : -1;
	if (fd < 0) {
		refuse_err(sink, &err);
		return;
	}
	serve_file(app, request, sink, link, path, fd, &st);
	sandbox_touch(app, sandbox); /* idle counts from the end of a transfer */
}

void filelink_get(const struct endpoint *endpoint, const struct http_request *request,
		  const struct http_sink *sink)
{
	struct app *app = endpoint->app;
	struct err err = ERR_INIT;
	AUTO_LINK_ROW link = {0};
	AUTO_SANDBOX_ROW sandbox = {0};
	if (transfer_open_link(app, request->segments[2], LINK_GET, &link, &sandbox, &err))
		serve_download(app, request, sink, &link, &sandbox, link.path);
	else
		refuse_err(sink, &err);
}

/* --- upload ------------------------------------------------------------------------------ */

static bool unsupported(struct err *err, const char *header, const char *value)
{
	err_set(err, ERR_INVALID, "%s %.60s is not supported here; nothing was stored", header,
		value);
	return err_hint(err, "Send the bytes of the file as they are, as curl -T FILE URL does.");
}

/* Bodies that are not simply the file: stored as they come they would be a surprise. */
static bool is_plain_body(const struct http_request *request, struct err *err)
{
	const char *type = http_header(request, "content-type");
	if (type != NULL && strncasecmp(type, "multipart/", 10) == 0)
		return unsupported(err, "Content-Type", type);
	const char *encoding = http_header(request, "content-encoding");
	if (encoding != NULL && strcasecmp(encoding, "identity") != 0)
		return unsupported(err, "Content-Encoding", encoding);
	const char *range = http_header(request, "content-range");
	return range == NULL || unsupported(err, "Content-Range", range);
}

static void answer_stored(const struct http_sink *sink, const char *path,
			  const struct transfer_done *done, bool sandbox_created)
{
	AUTO_BUF shown = BUF_INIT;
	buf_printf(&shown, "/workspace/%s", path);
	AUTO_JSON *body = json_object_new_object();
	json_add_bool(body, "ok", true);
	json_add_strn(body, "path", shown.data, shown.len);
	json_add_int(body, "size", done->bytes);
	json_add_str(body, "sha256", done->sha256);
	if (sandbox_created)
		json_add_bool(body, "sandbox_created", true);
	size_t len;
	const char *text = json_text(body, &len);
	http_answer(sink, 200, "application/json", text, len, NULL, 0);
}

/* All that can be refused from the headers alone. */
static bool prepare(const struct app *app, const struct http_request *request,
		    const struct link_row *link, struct transfer_body *body, struct err *err)
{
	*body = (struct transfer_body){
		.read = request->read_body,
		.ctx = request->body_ctx,
		/* With a chunked body the client gave no length; what looks like one was counted by
		 * the web server, which may have cut the body before. */
		.length = request->chunked ? -1 : request->content_length,
		.promised = link == NULL ? -1 : link->size,
		.max_bytes = link == NULL ? app->conf->max_upload : link->max_bytes,
	};
	return is_plain_body(request, err) &&
	       digest_announced(request, body->sha256, &body->has_sha256, err) &&
	       transfer_check(body, err);
}

static bool receive(struct app *app, const struct link_row *link, const struct sandbox_row *sandbox,
		    const char *path, struct transfer_body *body, struct transfer_done *done,
		    struct err *err)
{
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	if (!sandbox_enter(app, sandbox, &use, err) ||
	    !transfer_receive(app, &use, link, path, body, done, err))
		return false;
	sandbox_touch(app, sandbox);
	return true;
}

void filelink_put(const struct endpoint *endpoint, const struct http_request *request,
		  const struct http_sink *sink)
{
	struct app *app = endpoint->app;
	struct err err = ERR_INIT;
	AUTO_LINK_ROW link = {0};
	AUTO_SANDBOX_ROW sandbox = {0};
	struct transfer_body body;
	struct transfer_done done;
	if (transfer_open_link(app, request->segments[2], LINK_PUT, &link, &sandbox, &err) &&
	    prepare(app, request, &link, &body, &err) &&
	    receive(app, &link, &sandbox, link.path, &body, &done, &err))
		answer_stored(sink, link.path, &done, false);
	else
		refuse_err(sink, &err);
}

/* --- the side door ----------------------------------------------------------------------- */

struct side_door {
	const char *principal;
	struct buf sandbox, path;
};

static void side_door_finish(struct side_door *door)
{
	buf_finish(&door->sandbox);
	buf_finish(&door->path);
}
#define AUTO_SIDE_DOOR __attribute__((cleanup(side_door_finish))) struct side_door

static bool query_value(const struct http_request *request, const char *name, struct buf *out,
			struct err *err)
{
	if (http_query(request, name, out) == 1 && out->len > 0)
		return true;
	err_set(err, ERR_INVALID, "the query has no valid %s", name);
	return err_hint(err, "Write ?sandbox=NAME&path=PATH with both values percent-encoded.");
}

static bool open_side_door(struct app *app, const struct http_request *request,
			   struct side_door *door, struct err *err)
{
	AUTO_BUF path = BUF_INIT;
	return app_authenticate(app, http_header(request, "authorization"), &door->principal,
				err) &&
	       query_value(request, "sandbox", &door->sandbox, err) &&
	       query_value(request, "path", &path, err) &&
	       files_path("path", path.data, path.len, &door->path, err);
}

void filelink_pull(const struct endpoint *endpoint, const struct http_request *request,
		   const struct http_sink *sink)
{
	struct app *app = endpoint->app;
	struct err err = ERR_INIT;
	AUTO_SIDE_DOOR door = {NULL, BUF_INIT, BUF_INIT};
	AUTO_SANDBOX_ROW sandbox = {0};
	if (open_side_door(app, request, &door, &err) &&
	    sandbox_find(app, door.principal, buf_str(&door.sandbox), &sandbox, &err))
		serve_download(app, request, sink, NULL, &sandbox, buf_str(&door.path));
	else
		refuse_err(sink, &err);
}

void filelink_push(const struct endpoint *endpoint, const struct http_request *request,
		   const struct http_sink *sink)
{
	struct app *app = endpoint->app;
	struct err err = ERR_INIT;
	AUTO_SIDE_DOOR door = {NULL, BUF_INIT, BUF_INIT};
	AUTO_SANDBOX_ROW sandbox = {0};
	struct transfer_body body;
	struct transfer_done done;
	bool created = false;
	if (open_side_door(app, request, &door, &err) && prepare(app, request, NULL, &body, &err) &&
	    sandbox_ensure(app, door.principal, buf_str(&door.sandbox), &sandbox, &created, &err) &&
	    receive(app, NULL, &sandbox, buf_str(&door.path), &body, &done, &err))
		answer_stored(sink, buf_str(&door.path), &done, created);
	else
		refuse_err(sink, &err);
}
