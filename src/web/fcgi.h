/*
 * The libfcgi adapter: FastCGI requests, or one plain CGI request, as struct http_request and
 * struct http_sink. The only file that knows libfcgi.
 *
 * A worker serves one request at a time. TERM, INT, HUP and USR1 stay blocked and are only read
 * between requests, so that a stop lets the request at hand finish; libfcgi itself would cut its
 * body, since it does not retry interrupted reads. A request without an end of its own asks
 * http_sink.stopping.
 */
#ifndef SPOOLBOX_WEB_FCGI_H
#define SPOOLBOX_WEB_FCGI_H

#include <sys/types.h>

#include "mcp/http.h"

typedef void fcgi_handler(void *ctx, const struct http_request *request,
			  const struct http_sink *sink);

/* What is left to be done once an answer was sent. Not after each one: while further requests wait
 * they come first, up to FCGI_AFTER_LATE of them. */
typedef void fcgi_after(void *ctx);
#define FCGI_AFTER_LATE 8

/* Serves what the web server started this process for: requests on the socket that is descriptor
 * 0 until told to stop, or the one CGI request of the environment. after may be NULL. Returns the
 * exit status. */
int fcgi_run(fcgi_handler *handle, fcgi_after *after, void *ctx);

/* Whether this process was started by the web server itself, as plain CGI. */
bool fcgi_is_cgi(void);

/* The parent whose end means that this process is to end too; 0 when there is none. */
pid_t fcgi_watched_parent(void);

/* The accept loop alone, on a listening socket. */
bool fcgi_serve(int listen_fd, fcgi_handler *handle, fcgi_after *after, void *ctx,
		struct err *err) MUST_USE;

#endif
