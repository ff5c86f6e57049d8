/*
 * The conformance fixture: a second FastCGI program on the protocol core of the product, with the
 * tools, resources and prompts that the official conformance suite looks for. It has no sandboxes
 * and keeps all it knows in one SQLite database that its workers share, so the suite also proves
 * that the core needs no memory between two requests.
 */
#ifndef SPOOLBOX_CONFORMANCE_FIXTURE_H
#define SPOOLBOX_CONFORMANCE_FIXTURE_H

#include "mcp/endpoint.h"
#include "store/db.h"

/* The context of every callback. */
struct fixture {
	struct db *db;
};

/* A family of tools, in the order of tools/list. */
struct tool_family {
	const struct tool *tools;
	size_t count;
};

extern const struct tool_family tools_content; /* answers of every kind */
extern const struct tool_family tools_stream;  /* progress, logs and events */
extern const struct tool_family tools_ask;     /* which need an answer of the client */
extern const struct tool_family tools_task;    /* which go on as tasks */

extern const struct resource_set fixture_resources;
extern const struct prompt_list fixture_prompts;
extern const struct event_source fixture_events;
extern const struct peer fixture_mailbox;
extern const struct tool_tasks fixture_tasks;

/* Adds an event for listeners. what may be NULL. */
bool event_add(struct db *db, enum event_kind kind, const char *what, struct err *err) MUST_USE;

#endif
