/*
 * The sandbox that a call works on: found or made, entered for as long as the call lasts, and
 * named in its result.
 */
#ifndef SPOOLBOX_MCP_TARGET_H
#define SPOOLBOX_MCP_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "box/sandbox.h"
#include "mcp/literal.h"
#include "mcp/tool.h"

struct target {
	struct sandbox_row row;
	struct sandbox_use use;
	bool created; /* it did not exist before this call */
};
/* clang-format off */
#define TARGET_INIT {.use = SANDBOX_USE_INIT}
/* clang-format on */

/* For create_sandbox. One that is destroyed before it could be entered is made anew, as in
 * target_ensure. */
bool target_create(const struct tool_call *call, const struct sandbox_options *options,
		   struct target *target, struct err *err) MUST_USE;
/* For tools that only read: the sandbox must exist. */
bool target_find(const struct tool_call *call, const char *handle, struct target *target,
		 struct err *err) MUST_USE;
/* The same for those that write or run in one that must exist: it stays (sandbox_stay). */
bool target_find_to_change(const struct tool_call *call, const char *handle, struct target *target,
			   struct err *err) MUST_USE;
/* For tools that write or run: a missing name is created. Call it after every argument was
 * checked, so that a bad call leaves nothing behind. */
bool target_ensure(const struct tool_call *call, const char *handle, struct target *target,
		   struct err *err) MUST_USE;
/* The last two for tasks, which do not renew the sandbox's lifetime. Without a handle (NULL) the
 * default sandbox is found, and note says which that was. */
bool target_find_for_task(const struct tool_call *call, const char *handle, struct target *target,
			  struct buf *note, struct err *err) MUST_USE;
bool target_ensure_for_task(const struct tool_call *call, const char *handle, struct target *target,
			    struct err *err) MUST_USE;
/* For Python code that names no sandbox: one for it alone (python_pool.h), to be given back. */
bool target_take(const struct tool_call *call, int64_t ttl_ms, struct target *target,
		 struct err *err) MUST_USE;
void target_leave(struct target *target);
#define AUTO_TARGET __attribute__((cleanup(target_leave))) struct target

/* Members that target_describe adds, as schema properties and as required names. */
/* clang-format off */
#define TARGET_PROPERTIES \
	L_STR("sandbox", "", "Name of the sandbox.") "," \
	L_STR("sandbox_id", "", "Id of the sandbox, new for each incarnation of a name.") "," \
	L_BOOL("sandbox_created", "", "Whether the sandbox did not exist and was made by this call.")
#define TARGET_REQUIRED \
	L_QUOTE("sandbox") "," L_QUOTE("sandbox_id") "," L_QUOTE("sandbox_created")
/* clang-format on */
/* Adds them; a created sandbox is also said in note. */
void target_describe(const struct target *target, struct json_object *result, struct buf *note);

/* Result helpers: a wall time as RFC 3339 (nothing for 0), a path as the sandbox sees it, and
 * notes, which are whole sentences joined by spaces (nothing when there is none). */
void target_add_time(struct json_object *result, const char *key, int64_t wall_ms);
void target_add_path(struct json_object *result, const char *key, const struct buf *relative);
void target_note(struct buf *note, const char *fmt, ...) PRINTF_LIKE(2, 3);
void target_add_note(struct json_object *result, const struct buf *note);

#endif
