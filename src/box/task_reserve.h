/*
 * The row of a new task: one for each request id, and room among those of its sandbox. Both are
 * decided in the transaction that inserts it.
 */
#ifndef SPOOLBOX_BOX_TASK_RESERVE_H
#define SPOOLBOX_BOX_TASK_RESERVE_H

#include "box/exec.h"
#include "store/row_task.h"

#define TASKS_MAX 128 /* per sandbox; seeds 000/001 */

/* A row that reads "running", with a new id. */
void task_row_make(const struct sandbox_row *sandbox, const struct exec_options *options,
		   enum task_origin origin, const char *request_id, struct task_row *row);

/* 1: the row is in the database; 0: its request id belongs to another task, which row is now; -1
 * with err, ERR_QUOTA when TASKS_MAX run. Finished tasks are forgotten to make room, those first
 * that ended first; but not within a minute of their end unless there are very many. */
int task_reserve(struct app *app, const struct sandbox_row *sandbox, struct task_row *row,
		 struct err *err);

#endif
