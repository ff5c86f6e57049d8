/* One call of a tool: arguments checked, the handler run, its outcome put into a result. */
#ifndef SPOOLBOX_MCP_CALL_H
#define SPOOLBOX_MCP_CALL_H

#include "mcp/catalog.h"

/* Returns a new CallToolResult of the newest revision, or NULL when the handler broke its promise
 * (logged; to be answered as an internal error). arguments may be NULL. *outcome is set to one
 * word for the log: "ok", "failed" (the tool reports a failure as data) or an error's name. */
struct json_object *call_tool(const struct catalog_entry *entry, void *app, const char *principal,
			      struct json_object *arguments, const char **outcome);

#endif
