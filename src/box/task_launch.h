/*
 * The submitter's side of supervise.h: makes the directory of a task whose row is there, starts the
 * program spoolbox-task and waits for its answer.
 */
#ifndef SPOOLBOX_BOX_TASK_LAUNCH_H
#define SPOOLBOX_BOX_TASK_LAUNCH_H

#include "box/exec.h"
#include "store/row_task.h"

#define TASK_READY_MS 10000 /* a database that is busy, a disk that is slow */

enum task_launch {
	TASK_LAUNCH_NONE = 0, /* it did not come to be; nothing of it is left; err says why */
	TASK_LAUNCH_READY,    /* it runs and is visible */
	TASK_LAUNCH_DIED,     /* the supervisor was killed before its answer */
	TASK_LAUNCH_LATE,     /* no answer in time: it may still come to be */
};

/* session: NULL, or that of a command that runs already. For such a command there is no DIED and no
 * LATE: it is handed over, or NONE and still the session's. */
enum task_launch task_launch(struct app *app, const struct task_row *row,
			     const struct exec_options *options, struct session *session,
			     struct err *err);

#endif
