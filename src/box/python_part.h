/* One run of code, between python.c, python_session.c, python_files.c and python_pool.c. Private to
 * them. */
#ifndef SPOOLBOX_BOX_PYTHON_PART_H
#define SPOOLBOX_BOX_PYTHON_PART_H

#include <time.h>

#include "box/exec.h"
#include "box/python.h"

#define PYTHON_WORKSPACE "/workspace"

/* The command that starts the kernel of a sandbox. It is finished by AUTO_PYTHON_KERNEL and stays
 * where it is. */
struct python_kernel {
	struct buf text;
	struct exec_options options;
	struct exec_command command;
};
void python_kernel_finish(struct python_kernel *kernel);
#define AUTO_PYTHON_KERNEL __attribute__((cleanup(python_kernel_finish))) struct python_kernel
#define PYTHON_KERNEL_INIT \
	{ \
		.text = BUF_INIT \
	}
/* idle_ms and preload as of kernel_command. */
bool python_kernel_make(struct python_kernel *kernel, const struct app *app,
			const struct sandbox_row *row, int64_t idle_ms, bool preload,
			struct err *err) MUST_USE;

/* What a run has to do with, all borrowed. */
struct python_work {
	struct app *app;
	const struct sandbox_row *row;
	struct sandbox_use *use;
	const struct python_options *options;
	const struct python_stage *staged; /* NULL: none */
	kernel_tick *tick;
	void *ctx;
	struct python_result *result;
	struct timespec began; /* as file systems stamp changes */
};

/* Makes the result ready and checks the options. */
bool python_work_check(struct python_work *work, struct err *err) MUST_USE;
/* Runs through the kernel, starting sandbox and kernel when needed. new_session_id: NULL, or as of
 * kernel_run. */
bool python_work_fresh(struct python_work *work, const char *new_session_id,
		       struct err *err) MUST_USE;
/* Runs over a connection to a session, which stays the caller's. */
bool python_work_over(struct python_work *work, int fd, struct err *err) MUST_USE;
/* After a run: the sandbox was used, and its files may have changed. */
void python_work_end(struct python_work *work);

/* Fills result->changes from the workspace and from what the kernel named. */
void python_find_changes(const struct python_work *work);

#endif
