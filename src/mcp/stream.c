/*
 * Each event is one write, since the sink flushes at each write and half an event is of no use to
 * anyone. After a write that failed nothing more is written.
 */
#include "mcp/stream.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

#define FIELDS_MAX  16
#define MESSAGE_MAX ((size_t)500) /* bytes of a progress message: it is shown on one line */

void stream_init(struct stream *stream, const struct http_sink *sink,
		 const struct http_header *extra, size_t extra_count)
{
	*stream = (struct stream){.sink = sink,
				  .extra = extra,
				  .extra_count = extra_count,
				  .quiet_ms = STREAM_QUIET_MS,
				  .log_level = -1,
				  .progressed = -1,
				  .started_ms = clock_mono_ms()};
}

void stream_finish(struct stream *stream)
{
	buf_finish(&stream->said);
}

bool stream_open(struct stream *stream)
{
	/* The last one is for nginx, which would collect the events in its buffer. */
	struct http_header fields[FIELDS_MAX] = {{"content-type", "text/event-stream"},
						 {"cache-control", "no-cache, no-transform"},
						 {"x-content-type-options", "nosniff"},
						 {"x-accel-buffering", "no"}};
	size_t count = 4;
	if (stream->is_open || stream->client_gone)
		return !stream->client_gone;
	assert(stream->extra_count <= FIELDS_MAX - count);
	for (size_t i = 0; i < stream->extra_count; i++)
		fields[count++] = stream->extra[i];
	stream->is_open = true;
	if (stream->in_lines)
		return true;
	stream->client_gone = !stream->sink->begin(stream->sink->ctx, 200, fields, count, -1);
	return !stream->client_gone;
}

static bool put(struct stream *stream, const struct buf *text)
{
	if (!stream_open(stream))
		return false;
	stream->written_ms = clock_mono_ms();
	stream->client_gone = !stream->sink->write(stream->sink->ctx, text->data, text->len);
	return !stream->client_gone;
}

bool stream_message(struct stream *stream, const char *text, size_t len)
{
	static const char head[] = "event: message\ndata: ";
	assert(memchr(text, '\n', len) == NULL);
	AUTO_BUF event = BUF_INIT;
	buf_reserve(&event, sizeof(head) + len + 2);
	if (!stream->in_lines)
		buf_puts(&event, head);
	buf_append(&event, text, len);
	buf_puts(&event, stream->in_lines ? "\n" : "\n\n");
	return put(stream, &event);
}

bool stream_notify(struct stream *stream, const char *method, struct json_object *params)
{
	AUTO_JSON *message = json_object_new_object();
	json_add_str(message, "jsonrpc", "2.0");
	json_add_str(message, "method", method);
	json_add(message, "params", params);
	size_t len;
	const char *text = json_text(message, &len);
	return stream_message(stream, text, len);
}

/* --- progress ----------------------------------------------------------------------------- */

/* value is taken; total and message may be NULL. */
static void notify_progress(struct stream *stream, struct json_object *value,
			    struct json_object *total, const char *message, size_t len)
{
	stream->progressed = json_object_get_double(value);
	stream->progress_ms = clock_mono_ms();
	struct json_object *params = json_object_new_object();
	json_add(params, "progressToken", json_object_get(stream->token));
	json_add(params, "progress", value);
	json_add(params, "total", total);
	if (message != NULL)
		json_add_strn(params, "message", message, text_cut(message, len, MESSAGE_MAX));
	stream_notify(stream, "notifications/progress", params);
}

/* Whole numbers are written without a fraction. */
static struct json_object *new_number(double number)
{
	if (number == floor(number) && fabs(number) < 1e15)
		return json_object_new_int64((int64_t)number);
	return json_object_new_double(number);
}

static bool is_cancelled(const struct stream *stream)
{
	return stream->client_gone && stream->ends_call;
}

bool stream_progress(struct stream *stream, double progress, double total, const char *message)
{
	stream->is_counted = true;
	if (stream->sink->client_gone(stream->sink->ctx))
		stream->client_gone = true;
	if (stream->token != NULL && stream->may_open && !stream->client_gone &&
	    isfinite(progress) && progress > stream->progressed)
		notify_progress(stream, new_number(progress),
				isfinite(total) && total >= 0 ? new_number(total) : NULL, message,
				message == NULL ? 0 : strlen(message));
	return !is_cancelled(stream);
}

/* --- while a call waits ------------------------------------------------------------------- */

static bool says_something_new(const struct stream *stream, const char *line)
{
	return line != NULL && strcmp(line, buf_str(&stream->said)) != 0;
}

static bool progress_is_due(const struct stream *stream, const char *line, int64_t now_ms)
{
	int64_t since = stream->progress_ms > 0 ? stream->progress_ms : stream->started_ms;
	int64_t pause = says_something_new(stream, line) ? STREAM_PROGRESS_MS : STREAM_SAME_MS;
	return stream->token != NULL && !stream->is_counted && now_ms - since >= pause;
}

/* progress is the time in seconds: it grows with each notification, as it must. */
static void send_progress(struct stream *stream, const char *line, int64_t now_ms)
{
	int64_t elapsed = now_ms - stream->started_ms;
	char seconds[32];
	snprintf(seconds, sizeof(seconds), "%" PRId64 ".%03d", elapsed / 1000,
		 (int)(elapsed % 1000));
	if (line != NULL) {
		buf_clear(&stream->said);
		buf_puts(&stream->said, line);
	}
	notify_progress(stream, json_object_new_double_s((double)elapsed / 1000, seconds), NULL,
			stream->said.len > 0 ? stream->said.data : NULL, stream->said.len);
}

/* A line that begins with a colon is a comment. */
static void keep_alive(struct stream *stream)
{
	AUTO_BUF comment = BUF_INIT;
	buf_puts(&comment, ": keep-alive\n\n");
	put(stream, &comment);
}

static bool silence_is_over(const struct stream *stream, int64_t now_ms)
{
	int64_t since = stream->is_open ? stream->written_ms : stream->started_ms;
	return !stream->in_lines && (stream->is_open || stream->ends_call) &&
	       now_ms - since >= stream->quiet_ms;
}

bool stream_tick(struct stream *stream, const char *newest_line)
{
	int64_t now_ms = clock_mono_ms();
	if (stream->sink->client_gone(stream->sink->ctx))
		stream->client_gone = true;
	if (stream->may_open && !stream->client_gone) {
		if (progress_is_due(stream, newest_line, now_ms))
			send_progress(stream, newest_line, now_ms);
		else if (silence_is_over(stream, now_ms))
			keep_alive(stream);
	}
	return !is_cancelled(stream);
}

bool stream_is_stopped(const struct stream *stream)
{
	return stream->sink->stopping(stream->sink->ctx);
}
