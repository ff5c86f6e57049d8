/*
 * Rows of table sandbox that are reserves: live sandboxes that wait to be taken. Each ends as one
 * by one compare-and-set: it is taken, gives way, or goes like any other sandbox.
 */
#ifndef SPOOLBOX_STORE_ROW_RESERVE_H
#define SPOOLBOX_STORE_ROW_RESERVE_H

#include "store/row_sandbox.h"

/* Their number, of all principals; -1 with err. */
int64_t row_reserve_count(struct db *db, struct err *err);
/* The oldest of a principal (NULL: of any) whose lifetime is not over. row wants to be zeroed. 1
 * found, 0 none, -1 with err. */
int row_reserve_oldest(struct db *db, const char *principal, int64_t now, struct sandbox_row *row,
		       struct err *err);
/* Makes row an ordinary sandbox that begins now and gives way, with its session_id and
 * ends_with_session, and this lifetime; row is completed. 1; 0: it is none any more; -1 with err.
 */
int row_reserve_take(struct db *db, struct sandbox_row *row, int64_t ttl_ms, int64_t now,
		     struct err *err);
/* live -> gone. 1; 0: it is none any more; -1 with err. */
int row_reserve_end(struct db *db, const char *id, int64_t now, struct err *err);

#endif
