/*
 * A task's directory in the spool, and the order in which its files appear:
 *
 *	tasks/.new-<id>/   made by the submitter, with `spec`, `alive` and `ctl`; the supervisor
 *takes the lock `alive`, begins the record, starts the command and tasks/<id>/        then renames
 *it: a visible task is complete and locked spec             immutable: what to run (JSON, see
 *below) alive            lock that the supervisor holds for its life ctl              FIFO, one
 *byte per order: TASK_ORDER_CANCEL log, tail.*      the output, see run/record.h result how it
 *ended (JSON): temporary name, fsync, link, fsync of the directory; once, before the lock goes
 *
 * A reader: `result` exists -> final. Else the lock is held -> running. Else `result` once more (it
 * is written before the lock goes) -> final. Else the supervisor died: lost.
 *
 * Why the command is started before the rename: one that cannot be started leaves nothing that
 * anybody saw, and one whose supervisor dies before the rename is ended by its keeper, which sees
 * the connection close. .new-<id> with a free lock is therefore rubbish as soon as its supervisor
 * is gone, and nothing of it runs.
 *
 * The spec is an object of
 *	"id", "sandbox_id", "principal", "origin", "command"   strings
 *	"timeout_ms"                                           integer above 0
 *	"cwd" (string), "env" (object of strings)              optional: what the caller gave
 *	"adopted": true, "started_at": integer                 of a command that runs already
 */
#ifndef SPOOLBOX_STORE_TASK_DIR_H
#define SPOOLBOX_STORE_TASK_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "store/row_task.h"
#include "store/spool.h"

#define TASK_ORDER_CANCEL 'c'

/* Makes tasks/.new-<id> with the given spec, synced. Returns its descriptor, or -1 with err. */
int task_dir_make(const struct spool *spool, const char *id, struct json_object *spec,
		  struct err *err);
/* Removes a directory that was not published, or retires a published one. Missing: success. */
bool task_dir_discard(const struct spool *spool, const char *id, struct err *err) MUST_USE;
/* tasks/.new-<id>, for the supervisor; -1 with err. */
int task_dir_open_new(const struct spool *spool, const char *id, struct err *err);
/* Renames .new-<id> to <id> and syncs; the caller holds the lock. */
bool task_dir_publish(const struct spool *spool, const char *id, struct err *err) MUST_USE;
/* tasks/<id>; -1 with ERR_NOT_FOUND when there is none. */
int task_dir_open(const struct spool *spool, const char *id, struct err *err);

struct json_object *task_dir_spec(int dirfd, struct err *err); /* NULL with err */

/* Writes the result from the outcome members of row (state, exit_code, signal, reason, times, use
 * of resources). Only the first call of a task's life has an effect; later ones keep what is there.
 */
bool task_dir_write_result(int dirfd, const struct task_row *row, struct err *err) MUST_USE;

enum task_verdict {
	TASK_VERDICT_NONE = 0,
	TASK_VERDICT_RUNNING,
	TASK_VERDICT_FINAL,
	TASK_VERDICT_LOST
};
/* Fills the outcome members of row when final. A result that is damaged is final as well, with
 * TASK_UNKNOWN. TASK_VERDICT_NONE with err on failure. */
enum task_verdict task_dir_verdict(int dirfd, struct task_row *row, struct err *err);

/* Takes the lock: the supervisor for its life, or whoever finds a task lost, so that one process
 * settles it (it asks for the verdict's result once more when it has the lock). -1 with ERR_BUSY
 * when another holds it. */
int task_dir_take_lock(int dirfd, struct err *err);

/* Sends an order to the supervisor; false with ERR_CONFLICT when nobody reads it. Never blocks and
 * raises no signal. */
bool task_dir_order(int dirfd, char order, struct err *err) MUST_USE;
/* The supervisor's end of ctl (made by task_dir_make), non-blocking; -1 with err. */
int task_dir_open_orders(int dirfd, struct err *err);

#endif
