/*
 * The HTTP side of transfers. Links (/files/get/TOKEN, /files/put/TOKEN) need no credentials: the
 * signed token is one. The side door (/files/pull, /files/push) takes the bearer token of /mcp
 * and names sandbox and path in the query.
 */
#ifndef SPOOLBOX_WEB_FILELINK_H
#define SPOOLBOX_WEB_FILELINK_H

#include "mcp/endpoint.h"

/* All serve one request whose method and segments the route table has checked; endpoint->app is
 * the struct app. */
void filelink_get(const struct endpoint *endpoint, const struct http_request *request,
		  const struct http_sink *sink);
void filelink_put(const struct endpoint *endpoint, const struct http_request *request,
		  const struct http_sink *sink);
void filelink_pull(const struct endpoint *endpoint, const struct http_request *request,
		   const struct http_sink *sink);
void filelink_push(const struct endpoint *endpoint, const struct http_request *request,
		   const struct http_sink *sink);

#endif
