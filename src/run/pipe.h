/* What a command's descriptors are made of. */
#ifndef SPOOLBOX_RUN_PIPE_H
#define SPOOLBOX_RUN_PIPE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/util.h"

/* A pipe that does not block at our end, the reading one. */
bool pipe_make(int *read_fd, int *write_fd, struct err *err) MUST_USE;

/* A sealed copy of data in memory, opened for reading only: who gets it cannot change it, and it is
 * not a pipe that somebody would have to fill. -1 with err. */
int pipe_sealed(const char *name, const char *data, size_t len, struct err *err);

#endif
