/*
 * The tools of an endpoint, checked and compiled once at start. What is wrong in a tool stops the
 * program there, not in front of a client.
 */
#ifndef SPOOLBOX_MCP_CATALOG_H
#define SPOOLBOX_MCP_CATALOG_H

#include <stddef.h>

#include "mcp/era.h"
#include "mcp/mirror.h"
#include "mcp/schema.h"
#include "mcp/tool.h"

struct catalog_entry {
	const struct tool *tool;
	struct json_object *input; /* the input schema; schema and mirrors borrow from it */
	struct schema *schema;     /* NULL: arguments are not checked, see schema_is_foreign */
	struct mirror_params mirrors;
};

struct catalog {
	struct catalog_entry *entries; /* in the order of tools/list */
	size_t count;
	struct buf listing[REVISION__MAX]; /* the whole result of tools/list as text */
};

/* NULL with ERR_INVALID: the message names the tool and what is wrong with it. The listings are
 * left empty: what surrounds the tools in a result is known to the method. */
struct catalog *catalog_compile(const struct tool_list *list, struct err *err);
void catalog_free(struct catalog *catalog);

/* NULL when there is no such tool. */
const struct catalog_entry *catalog_find(const struct catalog *catalog, const char *name);
/* The tool that was probably meant, or NULL. */
const char *catalog_near(const struct catalog *catalog, const char *name);

/* The array of tools as a revision may see it, new. */
struct json_object *catalog_describe(const struct catalog *catalog, enum revision revision);

#endif
