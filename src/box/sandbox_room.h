/*
 * Whether there is room for one more sandbox: places below SMCP_MAX_SANDBOXES, and disk. Two kinds
 * hold places that nobody else wants and give way when all are taken: reserves (row_reserve.h), the
 * oldest first; then those that were made for code which named none, and that nobody named since
 * (gives_way), the one unused for longest first. Of the latter none goes that is being used or was
 * a moment ago, or has a Python session in it: a use stamps the row, so it is either seen here or
 * finds the sandbox gone.
 */
#ifndef SPOOLBOX_BOX_SANDBOX_ROOM_H
#define SPOOLBOX_BOX_SANDBOX_ROOM_H

#include "box/app.h"
#include "store/row_sandbox.h"

/* Tells whether all places are taken when lifetimes that are over have been ended. Those of
 * sandboxes that give way count for a reserve only. */
bool sandbox_room_look(struct app *app, bool is_reserve, bool *full, struct err *err) MUST_USE;
/* Inside a transaction that makes a sandbox: false with ERR_QUOTA when all places are taken. One
 * that gives its place away is moved to gone and fills the zeroed row: sandbox_remove follows when
 * the transaction was committed. */
bool sandbox_room_take(struct app *app, bool is_reserve, struct sandbox_row *gave_way,
		       struct err *err) MUST_USE;
/* ERR_QUOTA: all places are taken. Always false. */
bool sandbox_room_none(const struct app *app, struct err *err);
/* ERR_QUOTA when the disk has too little left. */
bool sandbox_room_disk(const struct app *app, struct err *err) MUST_USE;

#endif
