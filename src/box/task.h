/*
 * Background tasks as verbs: start, find, read, wait, cancel, list; and the hand-over of a
 * foreground command that takes long.
 */
#ifndef SPOOLBOX_BOX_TASK_H
#define SPOOLBOX_BOX_TASK_H

#include "box/exec.h"
#include "box/sandbox.h"
#include "box/task_reserve.h"
#include "store/row_task.h"

#define TASK_TIMEOUT_MAX     3600 /* seconds; seeds 000/001 */
#define TASK_TIMEOUT_DEFAULT 300  /* of start_task; run_background has SMCP_JOB_TIMEOUT */
#define TASK_WAIT_MAX        25   /* seconds that a call may wait */
#define TASK_CANCEL_WAIT_MS  3000

struct task_options {
	struct exec_options exec; /* timeout_ms must be set; stdin is not offered */
	const char *request_id;   /* NULL: none; 1..128 printable ASCII characters */
	enum task_origin origin;
};

/* Checks all that can be checked before anything is touched. */
bool task_check(const struct app *app, const struct task_options *options,
		struct err *err) MUST_USE;

/* Starts a task in an entered sandbox and returns when it runs. The same request_id again in the
 * same sandbox: the earlier task is returned and *existing is true; ERR_CONFLICT when its command
 * was another one. ERR_QUOTA at TASKS_MAX that are all running; finished ones make room, oldest
 * first. When the answer of the supervisor did not come in time the row is returned with state
 * TASK_UNKNOWN and its handle: look before submitting again. */
bool task_start(struct app *app, const struct sandbox_row *sandbox, struct sandbox_use *use,
		const struct task_options *options, struct task_row *row, bool *existing,
		struct err *err) MUST_USE;

/* Whether the lifetime of the sandbox (expires_at) is over before a task with this timeout has to
 * be. A running task holds its sandbox and so is not ended by that; but then the sandbox has just
 * its lifetime, counted from the end of the task, for whoever wants the results. */
bool task_outlives_sandbox(const struct sandbox_row *sandbox, int64_t timeout_ms);

/* Finds a task and brings its state up to date (a lost one is settled as TASK_UNKNOWN). sandbox_id
 * NULL: any of the principal's. ERR_NOT_FOUND for unknown and foreign ids alike, ERR_INVALID for
 * what is no id. */
bool task_find(struct app *app, const char *principal, const char *id, const char *sandbox_id,
	       struct task_row *row, struct err *err) MUST_USE;

/* Waits until the task is final, or has output beyond the given offsets (-1: does not matter), or
 * wait_ms is over, or keep_waiting returns false (NULL: never asked; asked about twice a second).
 * Refreshes the row. */
typedef bool task_tick(void *ctx);
bool task_wait(struct app *app, struct task_row *row, int64_t wait_ms, int64_t stdout_offset,
	       int64_t stderr_offset, task_tick *keep_waiting, void *ctx, struct err *err) MUST_USE;

/* Cancels and waits up to TASK_CANCEL_WAIT_MS for the confirmed end. A final task is left as it is.
 * The row says what is known afterwards: still TASK_RUNNING means not confirmed. */
bool task_cancel(struct app *app, struct task_row *row, struct err *err) MUST_USE;

/* Descriptor of the task's directory for record_read and record_tail; -1 with ERR_GONE when its
 * log was pruned, with ERR_BUSY when the task is just being started. */
int task_log(struct app *app, const struct task_row *row, struct err *err);

/* Hands a running foreground command over to a supervisor: no byte lost or repeated. On success the
 * session has nothing but its captures (the output so far) and row is the task; on failure the
 * session is as it was: wait on. options are those the command was started with. */
bool task_adopt(struct app *app, const struct sandbox_row *sandbox, struct session *session,
		const struct exec_options *options, struct task_row *row, struct err *err) MUST_USE;

#endif
