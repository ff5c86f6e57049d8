/*
 * The bubblewrap driver: an ordinary user's sandbox out of namespaces, on the host's own /usr. It
 * is found by name through runtime_find.
 */
#ifndef SPOOLBOX_RUN_BWRAP_H
#define SPOOLBOX_RUN_BWRAP_H

#include "run/runtime.h"

extern const struct runtime bwrap_runtime;

#endif
