/*
 * A stdio session: one run of the program that a client started. The sandboxes that were made in it
 * without a name go with it, unless a task was started in them. It lives as long as its lock is
 * held, so a process that was killed is told from one that is busy, and the next one cleans up.
 */
#ifndef SPOOLBOX_BOX_STDIO_SESSION_H
#define SPOOLBOX_BOX_STDIO_SESSION_H

#include "base/id.h"
#include "box/app.h"

struct stdio_session {
	char id[ID_LEN + 1];
	int dir_fd, lock_fd;
};
#define STDIO_SESSION_INIT \
	{ \
		"", -1, -1 \
	}

/* Begins one: from here on sandboxes that app makes belong to it. session must live as long as app
 * is used. */
bool stdio_session_begin(struct app *app, struct stdio_session *session, struct err *err) MUST_USE;

/* Removes what goes with it. What cannot be removed now is left to the next sweep, as after a kill.
 * Safe on one that did not begin. */
void stdio_session_end(struct app *app, struct stdio_session *session);

/* Does that for the sessions that ended without it, for about budget_ms at most; what is left then
 * is for the next time. Faults are logged: nobody waits for this. */
void stdio_session_sweep(struct app *app, int64_t budget_ms);

#endif
