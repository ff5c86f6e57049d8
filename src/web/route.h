/*
 * From REQUEST_URI to a handler. It is the one variable that is raw and the same behind all web
 * servers; SCRIPT_NAME and PATH_INFO are not looked at.
 */
#ifndef SPOOLBOX_WEB_ROUTE_H
#define SPOOLBOX_WEB_ROUTE_H

#include "mcp/endpoint.h"

struct route_uri {
	/* Decoded segments after the mount prefix; all of them (the last HTTP_SEGMENTS_MAX) when
	 * they name no route. They point into text. */
	const char *segments[HTTP_SEGMENTS_MAX];
	size_t segment_count;
	const char *query; /* raw; points into the URI */
	struct buf text;
};

/* Takes a URI apart: absolute form or path; each segment decoded once. ERR_INVALID for bad
 * escapes, for NUL, '/' and control characters in a segment, for "." and "..", and for empty
 * segments but a single trailing one. The mount prefix is the longest one after which a whole
 * route stands; ".well-known" is in none. */
bool route_parse(const char *uri, struct route_uri *out, struct err *err) MUST_USE;
void route_finish(struct route_uri *uri);
#define AUTO_ROUTE_URI __attribute__((cleanup(route_finish))) struct route_uri

/* Serves one request: the handler of its segments, or 404, or 405 with Allow. */
void route_serve(const struct endpoint *endpoint, const struct http_request *request,
		 const struct http_sink *sink);

#endif
