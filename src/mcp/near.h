/* Which known name a wrong one was probably meant to be. */
#ifndef SPOOLBOX_MCP_NEAR_H
#define SPOOLBOX_MCP_NEAR_H

#include <stddef.h>

/* The most similar of names, or NULL when none is close: "cmd" -> "command", "timeoutMs" ->
 * "timeout_ms", "file_path" -> "path", "old_string" -> "old_text". */
const char *near_name(const char *given, const char *const *names, size_t count);

#endif
