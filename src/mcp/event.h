/*
 * Changes that listeners are told of (subscriptions/listen, modern era). Each listener keeps one
 * worker busy, so an endpoint offers this only with workers to spare; the product does not
 * (doc/design.md), the conformance fixture does.
 */
#ifndef SPOOLBOX_MCP_EVENT_H
#define SPOOLBOX_MCP_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum event_kind {
	EVENT_NONE = 0,
	EVENT_TOOLS,
	EVENT_PROMPTS,
	EVENT_RESOURCES,
	EVENT_RESOURCE,
	EVENT_TASK
};

#define EVENT_POLL_MS 500
#define EVENT_LIFE_MS \
	(5 * 60 * 1000) /* then the stream ends in good order; clients listen anew \
			 */

typedef bool event_visit(void *ctx, enum event_kind kind, const char *what); /* URI or task id */

struct event_source {
	/* The number of the newest event, so that a listener begins there. -1 with err. */
	int64_t (*newest)(void *app, struct err *err);
	/* Calls visit for each later event in order. Returns the number of the last, or -1 with
	 * err. */
	int64_t (*since)(void *app, int64_t after, event_visit *visit, void *ctx, struct err *err);
	int listeners_max; /* per process tree; kept by whoever implements enter and leave */
	/* A place among the listeners. False with ERR_BUSY when all are taken. */
	bool (*enter)(void *app, const char *principal, struct err *err);
	void (*leave)(void *app, const char *principal);
};

#endif
