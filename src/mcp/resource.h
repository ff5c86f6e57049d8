/*
 * Resources of an endpoint: what the core needs from whoever has them. The product's are the files
 * of sandboxes (resource_files.c); the conformance fixture passes its own.
 */
#ifndef SPOOLBOX_MCP_RESOURCE_H
#define SPOOLBOX_MCP_RESOURCE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "mcp/round.h"

struct resource_call {
	void *app;
	const char *principal; /* borrowed */
	struct round round;    /* of reads */
	struct json_object
		*result; /* array: of resources, contents, or values; owned by the call */
};

struct resource_template {
	const char *uri_template; /* RFC 6570 */
	const char *name, *title, *description;
	const char *mime_type; /* may be NULL */
};

struct resource_set {
	const struct resource_template *templates;
	size_t template_count;
	/* One page: resources behind the position after ("" at the start, else what an earlier page
	 * left in next), as Resource objects pushed to call->result. next stays empty on the last
	 * page. A position comes from us, but what it names may be gone. ERR_INVALID: it is none.
	 */
	bool (*list)(struct resource_call *call, const char *after, struct buf *next,
		     struct err *err);
	/* Contents objects pushed to call->result, at least one. ERR_NOT_FOUND for what is not
	 * there, is somebody else's, or is no URI of ours; ERR_TOO_LARGE, ERR_BUSY, ... say so. */
	bool (*read)(struct resource_call *call, const char *uri, struct err *err);
	/* Values for a variable of a template that begin with value: strings pushed to
	 * call->result, at most COMPLETE_MAX; *more tells that there are others. known: the
	 * variables filled in so far, or NULL. NULL: nothing is completed. */
	bool (*complete)(struct resource_call *call, const char *uri_template, const char *variable,
			 const char *value, struct json_object *known, bool *more, struct err *err);
	/* resources/subscribe and unsubscribe are answered in the handshake era, and events about
	 * resources are told to those who listen. */
	bool subscribe;
};

#define COMPLETE_MAX 100 /* values in one answer; MCP completion/complete */

/* The product's: files of sandboxes as spoolbox://SANDBOX/PATH. */
extern const struct resource_set resource_files;

#endif
