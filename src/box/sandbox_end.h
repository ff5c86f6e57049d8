/*
 * How sandboxes end, or stop, without being asked to: for requests that come upon a lifetime that
 * is over, and for the reaper. Nobody who is at work in one is interrupted: the use lock is taken
 * exclusively and without waiting, the row is read again under it, and it changes only as it was
 * seen then. The row goes first, then what runs, then the files; who dies in between leaves what
 * the reaper finds (reap_orphan.c).
 */
#ifndef SPOOLBOX_BOX_SANDBOX_END_H
#define SPOOLBOX_BOX_SANDBOX_END_H

#include "box/app.h"
#include "store/row_sandbox.h"

/* A live sandbox that nobody can enter meanwhile. Let it go soon: requests wait for it. */
struct sandbox_hold {
	struct sandbox_row row; /* as it is now */
	int run_dir_fd, use_fd;
};
#define SANDBOX_HOLD_INIT \
	{ \
		.run_dir_fd = -1, .use_fd = -1 \
	}

enum sandbox_held {
	SANDBOX_HELD_NONE = 0, /* err is set */
	SANDBOX_HELD,
	SANDBOX_IN_USE,
	SANDBOX_NOT_LIVE, /* not any more */
};

/* Takes it. hold is released by sandbox_unhold in any case. */
enum sandbox_held sandbox_hold(struct app *app, const struct sandbox_row *seen,
			       struct sandbox_hold *hold, struct err *err);
/* The same look without taking or making anything, for who only wants to tell. */
enum sandbox_held sandbox_peek(struct app *app, const struct sandbox_row *seen,
			       struct sandbox_hold *hold, struct err *err);
void sandbox_unhold(struct sandbox_hold *hold);
#define AUTO_SANDBOX_HOLD __attribute__((cleanup(sandbox_unhold))) struct sandbox_hold

/* live -> gone, and lets the lock go: who waited for it sees that the sandbox is gone. 1; 0 when it
 * was destroyed meanwhile; -1 with err. After 1 the caller does what sandbox_remove does. */
int sandbox_end_row(struct app *app, struct sandbox_hold *hold, struct err *err);
/* Ends what runs in it; its files stay, and the next use starts it again. run/<id> stays, too:
 * others may wait for the locks in it. 1; 0 when somebody else is at it; -1 with err. */
int sandbox_stop(struct app *app, struct sandbox_hold *hold, struct err *err);

/* What follows a change of the row out of LIVE or KEPT. Can be repeated, also by others. */
bool sandbox_remove(struct app *app, const struct sandbox_row *row, bool delete_files,
		    bool *was_running, struct err *err) MUST_USE;

/* Whether a live sandbox's lifetime is over, whether used or not; in doubt it is not. The ages are
 * those of timeline.h, which are looked up only when the clock says that it may be. */
bool sandbox_time_is_over(struct app *app, const struct sandbox_row *row);
/* Ends it when it is. One that is in use is renewed instead. */
bool sandbox_expire(struct app *app, const struct sandbox_row *row, struct err *err) MUST_USE;

#endif
