/*
 * One incarnation of a sandbox on the host: its directory run/<id>, the locks in it, and what
 * the runtime driver is told. Below the rules of sandbox.h; knows no names and no lifetimes.
 *
 * Order of locks: use, then start, then a database transaction.
 */
#ifndef SPOOLBOX_BOX_INCARNATION_H
#define SPOOLBOX_BOX_INCARNATION_H

#include "box/app.h"
#include "store/row_sandbox.h"

/* Fills box; everything in it is borrowed. */
void incarnation_box(const struct app *app, const struct sandbox_row *row, int run_dir_fd,
		     const char *workspace_path, struct runtime_box *box);

/* Opens run/<id>/use, making it when missing. -1 with err. */
int incarnation_open_use(const struct app *app, const char *id, int *run_dir_fd, struct err *err);
/* Whether somebody holds run/<id>/use. Makes nothing. */
bool incarnation_is_used(const struct app *app, const char *id);

/* Whether it runs: 1, 0, or -1 with err. Makes nothing. */
int incarnation_is_up(const struct app *app, const struct sandbox_row *row, struct err *err);

/* The start lock of an open run/<id>: at most one starts or stops at a time. -1 with ERR_BUSY. */
int incarnation_lock_start(int run_dir_fd, int64_t timeout_ms, struct err *err);

/* Stops it and removes run/<id>. The row has left LIVE before, so nobody starts it again; can be
 * repeated, also by another process after a crash. was_running may be NULL. */
bool incarnation_end(const struct app *app, const struct sandbox_row *row, bool *was_running,
		     struct err *err) MUST_USE;

#endif
