/*
 * Unix sockets in run/<id>. No sandbox sees that directory, so whoever connects is on the host.
 * They are made under a temporary name, hence never seen half done, and reached by a short path
 * whatever the spool is called.
 */
#ifndef SPOOLBOX_RUN_SOCK_H
#define SPOOLBOX_RUN_SOCK_H

#include "base/err.h"
#include "base/util.h"

/* A socket bound to a name, in place of one that was there; backlog > 0: it listens as well. One
 * at a time for each name: the caller holds a lock. -1 with err. */
int sock_bind(int dirfd, const char *name, int type, int backlog, struct err *err);

/* One try; the connection does not block. -1 with errno: ENOENT or ECONNREFUSED when nobody
 * listens, EAGAIN when the queue is full. */
int sock_connect(int dirfd, const char *name, int type);

#endif
