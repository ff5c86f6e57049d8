/*
 * What drivers on this host share: run/<id>/alive and init.sock, and everything that is said to
 * PID 1 over the socket. A driver adds only how PID 1 is started.
 */
#ifndef SPOOLBOX_RUN_HOLDER_H
#define SPOOLBOX_RUN_HOLDER_H

#include "run/runtime.h"

/* A start: the first three descriptors are for PID 1, at the numbers of wire.h. */
struct holder_start {
	int listen_fd; /* bound to init.sock; PID 1 listens */
	int alive_fd;  /* carries the lock */
	int ready_fd;  /* PID 1 writes one byte */
	int wait_fd;   /* our end of that pipe */
};
#define HOLDER_START_INIT \
	{ \
		-1, -1, -1, -1 \
	}

/* Takes the alive lock and makes the socket. 1: go on and start PID 1; 0: it is up already, or
 * was started by somebody who died meanwhile, and answers; -1 with err. */
int holder_prepare(const struct runtime_box *box, struct holder_start *start, struct err *err);

/* Closes our copies of PID 1's descriptors and waits until it is ready. ERR_UNAVAILABLE: it ended
 * before; ERR_BUSY: it takes too long (it may still come up). */
bool holder_await(const struct runtime_box *box, struct holder_start *start,
		  struct err *err) MUST_USE;

void holder_start_finish(struct holder_start *start);
#define AUTO_HOLDER_START __attribute__((cleanup(holder_start_finish))) struct holder_start

/* As the verbs of struct runtime. */
bool holder_stop(const struct runtime_box *box, struct err *err);
int holder_alive(const struct runtime_box *box, struct err *err);
bool holder_exec(const struct runtime_box *box, const struct runtime_command *command,
		 struct runtime_exec *exec, struct err *err);
void holder_cancel(struct runtime_exec *exec);
void holder_finish(struct runtime_exec *exec, struct runtime_status *status);

#endif
