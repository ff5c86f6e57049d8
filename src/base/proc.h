/*
 * Starting programs. A worker has the listening socket as descriptor 0, ignored signals it
 * inherited from its web server and secrets in its environment; a child must have none of
 * it. proc_spawn gives it exactly the descriptors that are listed, default signals, an empty
 * mask, its own session, umask 022, and exactly the environment that is passed.
 */
#ifndef SPOOLBOX_BASE_PROC_H
#define SPOOLBOX_BASE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/util.h"

/* Absolute path of a program of ours, e.g. "spoolbox-init": beside the running executable (a build
 * tree, or installed), else where it was to be installed. ERR_UNAVAILABLE when it is in neither. */
bool proc_find(const char *name, struct buf *path, struct err *err) MUST_USE;

struct proc_fd {
	int from; /* in the parent; -1 for /dev/null */
	int to;   /* in the child */
};

struct proc_spec {
	const char *const *argv; /* argv[0] is an absolute path */
	const char *const *envp;
	const struct proc_fd *fds; /* 0, 1 and 2 default to /dev/null when not listed */
	size_t fd_count;
	const char *cwd; /* NULL: "/" */
	bool detached;   /* double fork: the child is not ours to wait for */
};

/* Returns the pid (0 when detached), or -1 with err set, also when exec failed. */
pid_t proc_spawn(const struct proc_spec *spec, struct err *err);

/* Waits up to timeout_ms for a child to end. 1: ended, *status set; 0: still running; -1. */
int proc_wait(pid_t pid, int64_t timeout_ms, int *status);

/* Raises the soft limit of open files to the hard one. Descriptors that processes of one user have
 * in flight over sockets are counted together and held against the sender's soft limit: without
 * this a sandbox, whose processes may hold many, could keep us from sending any. */
void proc_raise_open_files(void);

/* Another process of our own user that holds a lock through an open file of fd's inode: a pidfd of
 * it, and *pid. That it holds it was seen after the pidfd was opened, so what is done through it
 * reaches that process or none. -1 when there is none, or none that may be looked at. Slow: looks
 * at all descriptors of the user's processes. */
int proc_lock_holder(int fd, pid_t *pid);

/* pidfd_open and pidfd_send_signal; -1 with errno. */
int proc_pidfd(pid_t pid);
int proc_pidfd_signal(int pidfd, int sig);

#endif
