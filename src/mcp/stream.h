/* An answer as server-sent events: any number of messages, the response last. */
#ifndef SPOOLBOX_MCP_STREAM_H
#define SPOOLBOX_MCP_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "mcp/http.h"

/* Starts the stream; the status is 200 from here on. False: the client has gone. */
bool stream_begin(const struct http_sink *sink, const struct http_header *extra,
		  size_t extra_count);

/* One message as one event. text is JSON on one line. */
bool stream_message(const struct http_sink *sink, const char *text, size_t len);

#endif
