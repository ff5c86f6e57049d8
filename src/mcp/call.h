/* One call of a tool: arguments checked, the handler run, its outcome put into a result. */
#ifndef SPOOLBOX_MCP_CALL_H
#define SPOOLBOX_MCP_CALL_H

#include "mcp/catalog.h"

/* Returns a new CallToolResult of the newest revision, or NULL when call->task says what the call
 * goes on as, when call->round has something to ask or misses something, or when the handler broke
 * its promise (logged; to be answered as an internal error).
 * The caller fills in what a call is given, but the arguments, which may be NULL, and releases it
 * with call_finish. *outcome is set to one word for the log: "ok", "task", "asks", "failed" (the
 * tool reports a failure as data) or an error's name. May be called again once what it asked is
 * answered. */
struct json_object *call_tool(const struct catalog_entry *entry, struct tool_call *call,
			      struct json_object *arguments, const char **outcome);

/* The CallToolResult of what a handler left in a call. */
struct json_object *call_result(struct tool_call *call);

void call_finish(struct tool_call *call);

#endif
