/* Files of NAME=value lines, as systemd and docker read them: comments after #, `export ` before a
 * name, quotes around a value. Nothing is expanded. */
#ifndef SPOOLBOX_BASE_ENV_FILE_H
#define SPOOLBOX_BASE_ENV_FILE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/util.h"

typedef void env_file_visit(void *ctx, const char *name, const char *value);

/* Calls visit for each line of an opened file in order. The text is wiped afterwards: it may hold
 * secrets. */
bool env_file_read(int fd, env_file_visit *visit, void *ctx, struct err *err) MUST_USE;

#endif
