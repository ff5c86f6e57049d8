/* Media types of files, by the extensions of their names. */
#ifndef SPOOLBOX_BASE_MEDIA_H
#define SPOOLBOX_BASE_MEDIA_H

#include <stdbool.h>

#define MEDIA_UNKNOWN "application/octet-stream"

/* Media type by the name's extension, with a charset where browsers want one; MEDIA_UNKNOWN for
 * what is not known. */
const char *media_type(const char *name);

/* Whether files of a type that media_type gives are read as text. Not so of MEDIA_UNKNOWN, which
 * may be anything. */
bool media_is_text(const char *type);
bool media_is_known(const char *type);

#endif
