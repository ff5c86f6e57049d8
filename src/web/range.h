/*
 * Conditional and range requests for one file, as RFC 9110 sections 13 and 14 order them. Pure:
 * values in, a decision out.
 */
#ifndef SPOOLBOX_WEB_RANGE_H
#define SPOOLBOX_WEB_RANGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "mcp/http.h"

#define RANGE_ETAG_LEN 35 /* 32 hex digits, two quotes and NUL */

/* Strong validator: a hash over device, inode, size and both change times in ns. */
void range_etag(const struct stat *st, char out[static RANGE_ETAG_LEN]);

struct range_file {
	int64_t size;
	int64_t modified_at; /* ms */
	const char *etag;
};

enum range_outcome {
	RANGE_WHOLE = 0,     /* 200 */
	RANGE_PART,          /* 206: offset and length are set */
	RANGE_NOT_MODIFIED,  /* 304 */
	RANGE_FAILED,        /* 412: If-Match or If-Unmodified-Since does not hold */
	RANGE_UNSATISFIABLE, /* 416 */
};
struct range_reply {
	enum range_outcome outcome;
	int64_t offset, length; /* what to send, also for RANGE_WHOLE */
};

/* Decides from the request's method and headers. Several ranges, other units and malformed ranges
 * are ignored, as a server may: the whole file is right for every client. */
struct range_reply range_decide(const struct http_request *request, const struct range_file *file);

#endif
