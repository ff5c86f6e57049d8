/* The order of tools/list: running and files first, since that is what most calls are. */
#include "mcp/toolset.h"

#include "base/util.h"

/* clang-format off */
static const struct tool *const all[] = {
	&tool_exec,
	&tool_execute_python,
	&tool_run_background,
	&tool_get_job,
	&tool_stop_job,
	&tool_list_jobs,
	&tool_write_text,
	&tool_read_text,
	&tool_edit_text,
	&tool_list_files,
	&tool_upload_file,
	&tool_download_file,
	&tool_list_sandboxes,
	&tool_create_sandbox,
	&tool_destroy_sandbox,
	&tool_kill_sandbox,
	&tool_start_task,
	&tool_get_task,
	&tool_cancel_task,
};
/* clang-format on */

const struct tool_list toolset = {all, ARRAY_LEN(all)};
