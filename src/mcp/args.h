/*
 * Arguments of a call, typed. The core has validated them against the tool's schema; what is
 * left to refuse here is what a schema cannot say: NUL characters, two names of one argument,
 * paths. An empty string counts as "not given" where the schema lets it pass: some clients fill in
 * every optional argument.
 */
#ifndef SPOOLBOX_MCP_ARGS_H
#define SPOOLBOX_MCP_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/util.h"
#include "mcp/literal.h"
#include "mcp/tool.h"

/* The pair of properties that args_sandbox reads. */
/* clang-format off */
#define ARGS_SANDBOX \
	L_STR("sandbox", L_EXAMPLE("\"work\""), \
	      "Name or id of the sandbox. Give this or sandbox_id. A name is 1 to 63 letters, " \
	      "digits, - and _, and starts with a letter or digit.") \
	"," L_STR("sandbox_id", "", "Another word for sandbox; takes a name or an id as well.")
/* The same where it may be left out, for args_str_or. */
#define ARGS_SANDBOX_OR_NONE \
	L_STR("sandbox", "", \
	      "Name or id of the sandbox; a missing one is made. Left out: that of the session, else a " \
	      "fresh one for this call.") \
	"," L_STR("sandbox_id", "", "Another word for sandbox; takes a name or an id as well.")
/* clang-format on */

/* String argument: *out is NULL when it is absent or empty. ERR_INVALID when it holds a NUL. */
bool args_str(const struct tool_call *call, const char *name, const char **out,
	      struct err *err) MUST_USE;

/* The same for an argument with an alias. ERR_INVALID when both are given and differ. */
bool args_str_or(const struct tool_call *call, const char *name, const char *alias,
		 const char **out, struct err *err) MUST_USE;

/* The sandbox argument under either of its names. ERR_INVALID when there is none. */
bool args_sandbox(const struct tool_call *call, const char **handle, struct err *err) MUST_USE;

/* String argument that may hold any character; NULL when absent. Borrowed. */
const char *args_bytes(const struct tool_call *call, const char *name, size_t *len);

/* Object argument; NULL when absent or without members. Borrowed. */
struct json_object *args_object(const struct tool_call *call, const char *name);

int64_t args_int(const struct tool_call *call, const char *name, int64_t fallback);
bool args_bool(const struct tool_call *call, const char *name, bool fallback);

/* Seconds as milliseconds; 0 when absent. */
int64_t args_seconds_ms(const struct tool_call *call, const char *name);

/* Path argument below /workspace, in the form files_path gives; absent reads as the workspace. */
bool args_path(const struct tool_call *call, const char *name, struct buf *out,
	       struct err *err) MUST_USE;

/* The same for a path that must name a file: neither the workspace itself nor "dir/". */
bool args_file_path(const struct tool_call *call, const char *name, struct buf *out,
		    struct err *err) MUST_USE;

#endif
