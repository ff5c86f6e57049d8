/*
 * Ready sandboxes for code that names none. A reserve is an ordinary live sandbox whose row says so
 * (row_sandbox.h: is_reserve), with its kernel started and the usual modules imported. Each is
 * used once: taking it is a compare-and-set of the row. It counts as a sandbox, gives way when all
 * places are taken, and goes at the end of its lifetime like any other.
 */
#ifndef SPOOLBOX_BOX_PYTHON_POOL_H
#define SPOOLBOX_BOX_PYTHON_POOL_H

#include "box/sandbox.h"

/* A sandbox with a made-up name for the caller alone: a ready one, else a new one. Its lifetime is
 * ttl_ms from now, or ends when its place is needed (sandbox_room.h), unless somebody who writes or
 * runs something in it by its name makes it stay. Sets app->python_used. */
bool python_pool_take(struct app *app, const char *principal, int64_t ttl_ms,
		      struct sandbox_row *row, struct err *err) MUST_USE;

/* Gives one back that nobody needs any more: it is removed by python_pool_settle, or at the end of
 * its lifetime when this process dies before. keep_files: its files were handed out; only what runs
 * in it ends, and the rest at the end of its lifetime. */
void python_pool_release(struct app *app, const struct sandbox_row *row, bool keep_files);

/* What is left to be done after the answer was sent: ends what was released, and makes a reserve or
 * two while there are fewer than SMCP_PYTHON_WARM, memory and places allowing. Does nothing when no
 * code was run since. Failures are logged. */
void python_pool_settle(struct app *app);

#endif
