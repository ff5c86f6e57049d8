/*
 * Whether database, spool directory and data directory belong together: an id that is made once
 * and kept in all three. After a lost, restored or swapped database, or with a disk that is not
 * mounted, what one of them does not mention means nothing; then nobody may clean up.
 */
#ifndef SPOOLBOX_STORE_IDENTITY_H
#define SPOOLBOX_STORE_IDENTITY_H

#include "store/db.h"
#include "store/spool.h"

/* 1 when a directory has an id, so that there was a database: then it is to be opened with
 * db_open_known. 0: none has, -1 with err. To be asked first: files are made after the database. */
int identity_is_known(const struct spool *spool, struct err *err);

/* Makes the id where none of the three has one, or where only one that was upgraded from an
 * earlier version lacks it; two makers at once agree on one. ERR_UNAVAILABLE when they differ or
 * one of them lost it: the hint says how to go on, and nothing was changed. */
bool identity_check(const struct spool *spool, struct db *db, struct err *err) MUST_USE;

#endif
