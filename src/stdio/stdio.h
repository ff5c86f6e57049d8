/*
 * MCP over two descriptors: one JSON-RPC message a line, one request after the other. The methods
 * and tools are those of the endpoint; what HTTP tells by headers and statuses has no place here.
 */
#ifndef SPOOLBOX_STDIO_STDIO_H
#define SPOOLBOX_STDIO_STDIO_H

#include "mcp/endpoint.h"

/* What is left to be done when answers were sent and no further request waits. */
typedef void stdio_after(void *app);

/* Serves until the client has gone or stop_fd becomes readable. At the end of in_fd what was asked
 * before is still answered; a client that does not read any more, and stop_fd, end a call that
 * runs. Messages go to out_fd; nothing else does. SIGPIPE must be ignored. after gets the
 * endpoint's app; NULL: nothing is left. */
void stdio_serve(const struct endpoint *endpoint, const char *principal, int in_fd, int out_fd,
		 int stop_fd, stdio_after *after);

#endif
