/*
 * A tool: one const struct per tool, in the file of its family; toolset.c lists them all. The
 * protocol core takes the list as a parameter, so the conformance fixture passes its own.
 */
#ifndef SPOOLBOX_MCP_TOOL_H
#define SPOOLBOX_MCP_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/util.h"

/* One call. The core has validated arguments against the schema before the handler runs. */
struct tool_call {
	void *app;                     /* the program's context: struct app in the product */
	const char *principal;         /* borrowed */
	struct json_object *arguments; /* an object, never NULL; borrowed */
	/* Result, set by the handler: structured becomes structuredContent and, as text, the first
	 * content block. content (an array of extra blocks) may stay NULL. Both are owned by the
	 * call. */
	struct json_object *structured;
	struct json_object *content;
	bool is_error; /* with structured or content: the tool ran and reports a failure as data */
};

struct tool {
	const char *name;
	const char *title;
	const char *description;
	const char *input_schema;  /* JSON text; object root, additionalProperties false */
	const char *output_schema; /* JSON text; object root; NULL: none */
	bool read_only, destructive, idempotent, open_world;
	/* False with err: answered as an isError result with {error, message, fix, usage,
	 * retryable}: the last says whether the same call may succeed later. */
	bool (*call)(struct tool_call *call, struct err *err);
};

struct tool_list {
	const struct tool *const *tools; /* in the order of tools/list */
	size_t count;
};

/* All tools of the product. */
extern const struct tool_list toolset;

/* What tools/list says of a tool in the newest revision, as a new object. */
struct json_object *tool_describe(const struct tool *tool);

/* One line that shows a call: arguments that are required or for which the schema gives an example
 * of its own, such as the sandbox, which may be named in two ways; then the names of the others. */
void tool_usage(const char *name, struct json_object *input_schema, struct buf *out);

/* For tests: whether a result conforms to the tool's output schema. ERR_INVALID with the faults. */
bool tool_check_result(const struct tool *tool, struct json_object *structured,
		       struct err *err) MUST_USE;

#endif
