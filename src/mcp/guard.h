/*
 * Who may talk to the endpoint at all, judged by HTTP headers alone: Host and Origin against DNS
 * rebinding and foreign web pages, the media types, and what CORS tells an allowed browser.
 */
#ifndef SPOOLBOX_MCP_GUARD_H
#define SPOOLBOX_MCP_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "mcp/http.h"

/* Whether a Host header names this server: the host of public_url, a loopback name or an IP
 * address (no rebound name is one). Ports do not matter. "" (not sent) passes: browsers send it. */
bool guard_host(const char *host, const char *public_url);

/* Whether an Origin header is acceptable: the origin of public_url, one of allowed
 * (comma-separated, may be NULL; the word "null" is possible), or a loopback one when public_url is
 * on loopback. */
bool guard_origin(const char *origin, const char *public_url, const char *allowed);

/* Whether a Content-Type header (NULL: not sent) is application/json. */
bool guard_is_json(const char *content_type);

struct guard_accept {
	bool json;
	bool stream;
};
/* What an Accept header takes; NULL takes everything. */
struct guard_accept guard_accept(const char *accept);

#define GUARD_CORS_MAX 6
struct guard_cors {
	struct http_header fields[GUARD_CORS_MAX];
	size_t count;
	char allow_headers[1024]; /* of a preflight answer; fields point here */
};

/* Fills in what an answer to an allowed origin carries; origin is borrowed. For a preflight more.
 */
void guard_cors(const struct http_request *request, const char *origin, bool preflight,
		struct guard_cors *cors);

#endif
