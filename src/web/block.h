/* The header block of a response, as CGI has it: a Status field, the fields, an empty line. */
#ifndef SPOOLBOX_WEB_BLOCK_H
#define SPOOLBOX_WEB_BLOCK_H

#include "base/buf.h"
#include "mcp/http.h"

/* Appends it; a content_length below 0 is not said. False when a field could forge another, or
 * when it is too long for a web server: then what was appended is of no use. */
bool block_compose(struct buf *block, int status, const struct http_header *fields, size_t count,
		   int64_t content_length) MUST_USE;

#endif
