/*
 * Lock files with open-file-description locks (F_OFD_*): held by a descriptor, inherited
 * with it, gone with its last copy, and probed without being taken. A lock file is never
 * unlinked while its directory lives: else two processes would hold locks on two inodes of
 * one name.
 */
#ifndef SPOOLBOX_BASE_LOCK_H
#define SPOOLBOX_BASE_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/util.h"

/* Opens (making it, mode 0600) a lock file. Takes no lock. -1 with err set. */
int lock_open(int dirfd, const char *name, struct err *err);

enum lock_mode { LOCK_SHARED, LOCK_EXCLUSIVE };

/* Takes or converts the lock. timeout_ms 0 tries once. False with ERR_BUSY when it is held
 * elsewhere for all that time. Converting exclusive to shared never waits. */
bool lock_take(int fd, enum lock_mode mode, int64_t timeout_ms, struct err *err) MUST_USE;

void lock_release(int fd);

/* 1: another open file description holds it exclusively or shared; 0: free; -1: errno. */
int lock_is_held(int fd);
/* The same, but only for one that is held exclusively. */
int lock_is_exclusive(int fd);

#endif
