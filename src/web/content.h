/*
 * Headers under which bytes of a sandbox go to a browser. Their maker may be hostile: nothing of
 * it may run in the origin of this server, and a name may not forge a header.
 */
#ifndef SPOOLBOX_WEB_CONTENT_H
#define SPOOLBOX_WEB_CONTENT_H

#include "base/buf.h"

/* Appends a Content-Disposition value (RFC 6266) for a file name of any bytes: an ASCII form that
 * old clients read, and the exact name. At most 1.1 KB for the 255 bytes that file systems allow.
 */
void content_disposition(struct buf *out, const char *name);

/* Value of Content-Security-Policy with user content: no script, no frame, an origin of its own. */
extern const char content_policy[];

#endif
