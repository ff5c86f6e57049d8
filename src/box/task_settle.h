/*
 * What is known of a task: brings a row that reads "running" up to date with the task's directory,
 * which is ahead of it (store/task_dir.h), and settles what nobody looks after any more. Many may
 * do this at once: the lock of the task lets one write the result, and a row leaves "running" once.
 */
#ifndef SPOOLBOX_BOX_TASK_SETTLE_H
#define SPOOLBOX_BOX_TASK_SETTLE_H

#include "box/app.h"
#include "store/row_task.h"

/* A task whose directory is not visible yet is being started by somebody for this long; longer than
 * all that a start may take (task_launch.h). */
#define TASK_STARTING_MS 15000

/* ERR_NOT_FOUND when the row is gone: a start that was taken back. */
bool task_settle(struct app *app, struct task_row *row, struct err *err) MUST_USE;

/* The same for a task whose supervisor is known to be dead and whose directory is not visible: not
 * waiting until it counts as lost. reason is for people. */
bool task_settle_unstarted(struct app *app, struct task_row *row, const char *reason,
			   struct err *err) MUST_USE;

/* The same for one whose supervisor was killed on purpose, for a reason that is known. */
bool task_settle_killed(struct app *app, struct task_row *row, const char *reason,
			struct err *err) MUST_USE;

/* What is wrong with a row that reads "running", without changing anything: TASK_DUE_NONE when it
 * is right (it runs, or is being started), or cannot be told (then err is set). */
enum task_due {
	TASK_DUE_NONE = 0,
	TASK_DUE_BEHIND,    /* its result is there, only the row does not say it */
	TASK_DUE_LOST,      /* its supervisor died without one */
	TASK_DUE_UNSTARTED, /* and had not even begun */
};
enum task_due task_settle_due(const struct app *app, const struct task_row *row, struct err *err);

#endif
