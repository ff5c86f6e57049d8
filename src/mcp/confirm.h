/*
 * Asking a person before files are deleted (SMCP_CONFIRM_DESTROY). A yes is for one incarnation of
 * a sandbox: what was made under the same name since is not touched by it.
 */
#ifndef SPOOLBOX_MCP_CONFIRM_H
#define SPOOLBOX_MCP_CONFIRM_H

#include "base/id.h"
#include "mcp/tool.h"

enum confirm { CONFIRM_FAILED, CONFIRM_ASKED, CONFIRM_GO };

/* What comes before the files of a sandbox go. GO: the person agrees, or nobody is to be asked or
 * can be; then *handle is what to destroy: as given, or id, which holds it. ASKED: leave the
 * handler with success. FAILED with err: also when the person says no (ERR_DENIED). */
enum confirm confirm_delete(struct tool_call *call, const char **handle, char id[static ID_LEN + 1],
			    struct err *err);

#endif
