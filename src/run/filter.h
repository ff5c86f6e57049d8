/*
 * The system call filters of a sandbox, as two programs that the kernel applies both:
 *   - the allow list: names that exist for commands; all others answer ENOSYS, so that calls of
 *     kernels to come are out, and programs fall back as on an older kernel;
 *   - the refusals: argument values of listed calls that answer an errno of their own.
 * Each is a table in filter.c. Names that the library or the architecture does not know are
 * left out. Another architecture's calls kill the process.
 */
#ifndef SPOOLBOX_RUN_FILTER_H
#define SPOOLBOX_RUN_FILTER_H

#include <stdbool.h>

#include "base/err.h"

enum filter_kind { FILTER_ALLOW, FILTER_REFUSE };

/* Writes the compiled program to a new descriptor (memory) at offset 0. inet: AF_INET and AF_INET6
 * sockets may be made. -1 with err set. */
int filter_build(enum filter_kind kind, bool inet, struct err *err);

/* As filter_build, but built once per process: each call opens the same memory anew, with an offset
 * of its own. */
int filter_open(enum filter_kind kind, bool inet, struct err *err);

#endif
