/* The SHA-256 that an upload announces: Repr-Digest and Content-Digest of RFC 9530, and the older
 * Digest of RFC 3230. */
#ifndef SPOOLBOX_WEB_DIGEST_H
#define SPOOLBOX_WEB_DIGEST_H

#include "mcp/http.h"

/* *found tells whether there is one; other algorithms are passed over. ERR_INVALID when one is
 * malformed or two differ. */
bool digest_announced(const struct http_request *request, unsigned char sha256[static 32],
		      bool *found, struct err *err) MUST_USE;

#endif
