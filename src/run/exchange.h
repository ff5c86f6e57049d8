/* One command over a connection to PID 1: the host's side of wire.h. */
#ifndef SPOOLBOX_RUN_EXCHANGE_H
#define SPOOLBOX_RUN_EXCHANGE_H

#include "run/runtime.h"

struct exchange {
	const struct runtime_command *command; /* borrowed */
	unsigned char *bytes;
	size_t len;
};

/* Checks and encodes a command, before anything is connected. ERR_INVALID or ERR_TOO_LARGE.
 * exchange_free is needed in both cases. */
bool exchange_encode(struct exchange *exchange, const struct runtime_command *command,
		     struct err *err) MUST_USE;
void exchange_free(struct exchange *exchange);

/* Sends it over a fresh non-blocking connection, with the command's three descriptors, and waits
 * until it runs. Errors as exec of struct runtime. */
bool exchange_start(const struct exchange *exchange, int fd, struct err *err) MUST_USE;

/* Asks for the end; never blocks. */
void exchange_cancel(int fd);

/* Waits for the end. */
void exchange_status(int fd, struct runtime_status *status);

#endif
