/* The text that tells a model how to work with this server. */
#ifndef SPOOLBOX_MCP_INSTRUCTIONS_H
#define SPOOLBOX_MCP_INSTRUCTIONS_H

#include "base/buf.h"

/* The whole text for a program context (struct app), with its limits; the caller frees it. */
char *instructions_make(void *app);

/* Appends what is installed below a /usr directory, as sentences; nothing when nothing is known.
 * Looks at names only and starts no program. */
void instructions_installed(struct buf *out, const char *usr);

#endif
