/* Every tool of the product, one per line; toolset.c puts them in order. */
#ifndef SPOOLBOX_MCP_TOOLSET_H
#define SPOOLBOX_MCP_TOOLSET_H

#include "mcp/tool.h"

/* tool_sandbox.c */
extern const struct tool tool_list_sandboxes;
extern const struct tool tool_create_sandbox;
extern const struct tool tool_destroy_sandbox;
extern const struct tool tool_kill_sandbox;
/* tool_exec.c */
extern const struct tool tool_exec;
/* tool_python.c */
extern const struct tool tool_execute_python;
/* tool_job.c */
extern const struct tool tool_run_background;
extern const struct tool tool_get_job;
extern const struct tool tool_stop_job;
extern const struct tool tool_list_jobs;
/* tool_task.c */
extern const struct tool tool_start_task;
extern const struct tool tool_get_task;
extern const struct tool tool_cancel_task;
/* tool_file.c, tool_read.c, tool_edit.c */
extern const struct tool tool_list_files;
extern const struct tool tool_read_text;
extern const struct tool tool_write_text;
extern const struct tool tool_edit_text;
/* tool_link.c */
extern const struct tool tool_upload_file;
extern const struct tool tool_download_file;

#endif
