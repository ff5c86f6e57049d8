/*
 * Framing only. Each event is one write, since the sink flushes at each write and half an event
 * is of no use to anyone.
 */
#include "mcp/stream.h"

#include <assert.h>
#include <string.h>

#define FIELDS_MAX 16

bool stream_begin(const struct http_sink *sink, const struct http_header *extra, size_t extra_count)
{
	/* The last one is for nginx, which would collect the events in its buffer. */
	struct http_header fields[FIELDS_MAX] = {{"content-type", "text/event-stream"},
						 {"cache-control", "no-cache, no-transform"},
						 {"x-content-type-options", "nosniff"},
						 {"x-accel-buffering", "no"}};
	size_t count = 4;
	assert(extra_count <= FIELDS_MAX - count);
	for (size_t i = 0; i < extra_count; i++)
		fields[count++] = extra[i];
	return sink->begin(sink->ctx, 200, fields, count, -1);
}

bool stream_message(const struct http_sink *sink, const char *text, size_t len)
{
	static const char head[] = "event: message\ndata: ";
	assert(memchr(text, '\n', len) == NULL);
	AUTO_BUF event = BUF_INIT;
	buf_reserve(&event, sizeof(head) + len + 2);
	buf_puts(&event, head);
	buf_append(&event, text, len);
	buf_puts(&event, "\n\n");
	return sink->write(sink->ctx, event.data, event.len);
}
