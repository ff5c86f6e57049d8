/* Becoming an ordinary user. bwrap started as root is no sandbox, and files that root makes in the
 * spool would lock everybody else out: so a program started as root gives that up first. */
#ifndef SPOOLBOX_BASE_USER_H
#define SPOOLBOX_BASE_USER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/util.h"

/* Gives up root for good: groups, gid, uid, and HOME, USER and LOGNAME when the user has an entry
 * in the user database (without one gid is the only group). */
bool user_become(uid_t uid, gid_t gid, struct err *err) MUST_USE;

/* When started as root: becomes the owner of the spool, a directory. Anybody else stays who they
 * are. The messages name the directory: they are for an operator. */
bool user_become_owner(const char *spool, struct err *err) MUST_USE;

#endif
