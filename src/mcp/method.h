/*
 * The MCP methods: one table, one handler each. A handler sees neither HTTP statuses nor what the
 * revisions wrap around a result.
 */
#ifndef SPOOLBOX_MCP_METHOD_H
#define SPOOLBOX_MCP_METHOD_H

#include <stdbool.h>

#include "mcp/endpoint.h"
#include "mcp/era.h"
#include "mcp/rpc.h"

struct method_call {
	const struct endpoint *endpoint;
	const struct http_request *request; /* for the headers that repeat arguments; or NULL */
	const char *principal;
	enum revision revision;
	struct json_object *params; /* an object, or NULL */
	struct stream *stream;      /* NULL: nothing can be said before the answer */
	/* The outcome: one of these on success, error on failure. */
	struct json_object *result; /* an object, owned by the call */
	const struct buf *ready;    /* the finished result as text, borrowed */
	const char *result_type;    /* of result, in the modern era; NULL: "complete" */
	struct rpc_error error;
	const char *agreed; /* by initialize: the name of the revision; else NULL */
	/* For the log; tool may stay NULL. */
	const char *tool;
	const char *outcome;
};

struct method {
	const char *name;
	enum era eras;
	const char *capability; /* the one it is advertised under; NULL: served, not advertised */
	bool cacheable;         /* the modern result carries ttlMs and cacheScope */
	bool of_tasks;          /* of the tasks extension, which not every endpoint offers */
	bool (*handle)(struct method_call *call);
};

/* NULL when the endpoint has no such method in the era. */
const struct method *method_find(const struct endpoint *endpoint, const char *name, enum era era);

/* Runs the method. On success call->ready is set or *text holds the finished result; on failure
 * call->error is set. Releases call->result. */
bool method_run(const struct method *method, struct method_call *call, struct buf *text) MUST_USE;

/* Writes the listings of the endpoint's catalog, which never change afterwards. */
void method_prepare(const struct endpoint *endpoint);

#endif
