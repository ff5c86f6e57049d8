/*
 * From the text of one message (or of one batch) to the text that answers it: what HTTP and stdio
 * have in common. HTTP statuses are told to those who have a use for them.
 */
#ifndef SPOOLBOX_MCP_DISPATCH_H
#define SPOOLBOX_MCP_DISPATCH_H

#include "mcp/endpoint.h"

struct dispatch {
	const struct endpoint *endpoint;
	const char *principal;
	/* For the headers that repeat what is in the body; NULL: the transport has no headers. */
	const struct http_request *request;
	/* The MCP-Protocol-Version header; without headers the revision that an initialize agreed
	 * on. NULL: there was none. */
	const char *version;
	struct stream *stream;
	/* While a request runs that is no part of a batch: its id. Borrowed. */
	struct json_object *running;
	/* Set by an initialize: the name of the revision it agreed on, a static string. */
	const char *agreed;
	/* For the log. */
	struct buf method;
	const char *tool;
	const char *outcome;
};
void dispatch_finish(struct dispatch *dispatch);

/* Appends the answer to out: nothing where none is due. Returns its HTTP status. */
int dispatch_text(struct dispatch *dispatch, const char *text, size_t len, struct buf *out);

#endif
