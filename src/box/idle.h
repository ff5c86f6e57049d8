/*
 * The one definition of idle.
 *
 * Activity is: a call that names the sandbox and reads, writes or runs something in it; a command,
 * a background task, a transfer or a session that goes on in it. All of them hold the shared use
 * lock, and the stamp last_used_at is set at their beginning and at their end; so a sandbox whose
 * lock is held is not idle, however long, and idle time counts from the end of the last activity.
 * An activity that was killed could not stamp its end: then it counts from the last pass of the
 * reaper that saw it. No activity are: list_sandboxes and other listings, asking for the state of a
 * task, and processes that a command left running.
 *
 * What follows: after SMCP_IDLE_STOP_SECONDS a sandbox is stopped, its files stay and the next use
 * starts it again, but not while it holds a Python session that was used within
 * SMCP_PYTHON_IDLE_SECONDS, whose variables would be lost; after SMCP_IDLE_REMOVE_SECONDS it goes
 * with its files. One with a lifetime (timeout, or a made-up name) goes when that is over instead,
 * be that sooner or later; its lifetime is renewed by commands and file calls, not by tasks (seeds
 * 000/001). Files that a destroy kept go after the same time as an idle sandbox, counted from the
 * destroy. Ages are those of timeline.h.
 *
 * Nothing is due for a row whose stamps cannot be true.
 */
#ifndef SPOOLBOX_BOX_IDLE_H
#define SPOOLBOX_BOX_IDLE_H

#include "box/app.h"
#include "box/timeline.h"
#include "store/row_sandbox.h"

struct idle {
	bool in_use;       /* then nothing is due */
	int64_t since;     /* wall: the end of the last activity as far as it was stamped */
	int64_t age_ms;    /* idle for so long */
	int64_t stop_at;   /* wall; 0: never. Past: as soon as the reaper comes */
	int64_t remove_at; /* wall; 0: never */
	bool stop_due, remove_due;
	const char *why; /* of remove_at: "idle", "lifetime" or "kept" */
};

/* Of a live or kept sandbox. Takes no lock. */
void idle_of(const struct app *app, const struct timeline *timeline, const struct sandbox_row *row,
	     struct idle *idle);
/* The same as if nobody used it now: for who holds its lock. */
void idle_from(const struct app *app, const struct timeline *timeline,
	       const struct sandbox_row *row, struct idle *idle);

/* Whether the lifetime of a live sandbox is over, whether used or not. */
bool idle_time_is_over(const struct timeline *timeline, const struct sandbox_row *row);

/* What cannot be true about the stamps of a live or kept sandbox, or NULL. Stamps from the future
 * are not meant: they are of age 0 until the reaper sets them right. */
const char *idle_doubt(const struct sandbox_row *row);

#endif
