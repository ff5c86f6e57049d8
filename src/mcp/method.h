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
	const char *method;         /* its name, as in the table */
	struct json_object *id;     /* of the request; borrowed */
	struct json_object *params; /* an object, or NULL */
	struct stream *stream;      /* NULL: nothing can be said before the answer */
	/* The outcome: one of these on success, error on failure. */
	struct json_object *result; /* an object, owned by the call */
	const struct buf *ready;    /* the finished result as text, borrowed */
	const char *result_type;    /* of result, in the modern era; NULL: "complete" */
	struct rpc_error error;
	const char *agreed; /* by initialize: the name of the revision; else NULL */
	int rounds;         /* of questions on the stream so far */
	/* For the log; tool may stay NULL. */
	const char *tool;
	const char *outcome;
};

/* What an endpoint may have or not. */
enum method_part {
	PART_ALWAYS = 0,
	PART_RESOURCES,
	PART_PROMPTS,
	PART_COMPLETION, /* something completes */
	PART_WATCHES,    /* resources can be subscribed to */
	PART_EVENTS,     /* somebody can listen */
	PART_LOGS,
	PART_TASKS, /* the tasks extension */
};

struct method {
	const char *name;
	enum era eras;
	enum method_part served_with;
	bool (*handle)(struct method_call *call);
	/* The capability that stands for it where the endpoint has advertised_with; NULL: none. */
	const char *capability;
	enum method_part advertised_with;
	/* How long the modern result holds, which carries ttlMs and cacheScope then; else -1. */
	int ttl_ms;
};

/* NULL when the endpoint has no such method in the era. */
const struct method *method_find(const struct endpoint *endpoint, const char *name, enum era era);

/* Runs the method. On success call->ready or call->result is the finished result; on failure
 * call->error is set. The caller releases call->result in both cases. */
bool method_run(const struct method *method, struct method_call *call) MUST_USE;

/* Writes the listings of the endpoint's catalog, which never change afterwards. */
void method_prepare(const struct endpoint *endpoint);

#endif
