/*
 * Keys and signed link tokens. A token is base64url (no padding) of
 * link id (16 bytes) | expiry in ms, big-endian (8 bytes) | HMAC-SHA-256 over both (32 bytes).
 * It is opaque on purpose: no file name is in it, so no proxy can break it by re-encoding.
 */
#ifndef SPOOLBOX_STORE_SIGN_H
#define SPOOLBOX_STORE_SIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "base/util.h"

#define SIGN_KEY_BYTES 32
#define SIGN_TOKEN_LEN 75 /* 56 bytes as unpadded base64url */

struct sign_key {
	unsigned char bytes[SIGN_KEY_BYTES];
};

/* The key derived from a setting (BLAKE2b of its text). */
void sign_key_from_text(struct sign_key *key, const char *text);
/* The key in a file of 32 random bytes below keys_fd, made there when missing; two makers at
 * once agree on one. */
bool sign_key_from_file(struct sign_key *key, int keys_fd, const char *name,
			struct err *err) MUST_USE;

/* The same for secrets of any form. publish puts data into keys_fd/name, mode 0600 and on disk,
 * unless that name exists: success means that there is a complete file, of us or of another. */
bool sign_publish_secret(int keys_fd, const char *name, const void *data, size_t len,
			 struct err *err) MUST_USE;
/* Appends what the file holds. 1; 0 when there is none; -1 with err (ERR_TOO_LARGE over max). */
int sign_read_secret(int keys_fd, const char *name, size_t max, struct buf *out, struct err *err);

void sign_link(const struct sign_key *key, const char *id, int64_t expires_at,
	       char out[static SIGN_TOKEN_LEN + 1]);
/* Checks form, then signature in constant time, then expiry. ERR_DENIED for a bad token,
 * ERR_GONE for an expired one. */
bool sign_check(const struct sign_key *key, const char *token, int64_t now,
		char id[static ID_LEN + 1], struct err *err) MUST_USE;

/* Seals data (XChaCha20-Poly1305), bound to context, which is not in it: appends base64url without
 * padding to out. The first byte tells the key, so that a key can be replaced while what it sealed
 * is still under way. */
void sign_seal(const struct sign_key *key, const void *data, size_t len, const void *context,
	       size_t context_len, struct buf *out);
/* Opens it with whichever of the keys it was sealed with; appends the data. ERR_DENIED, whatever is
 * wrong with it. */
bool sign_open(const struct sign_key *keys, size_t key_count, const char *sealed,
	       const void *context, size_t context_len, struct buf *out, struct err *err) MUST_USE;

/* Constant-time equality of two texts of any length. */
bool sign_equal(const char *a, const char *b);

#endif
