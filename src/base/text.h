/*
 * Bytes that should be text. All that leaves the program as JSON or HTML is valid UTF-8;
 * what comes out of a sandbox can be anything. UTF-8 is checked by libunistring, GB18030
 * is converted by iconv.
 */
#ifndef SPOOLBOX_BASE_TEXT_H
#define SPOOLBOX_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/util.h"

bool text_is_utf8(const char *p, size_t len);

/* The greatest n <= max such that p[0..n) does not cut a UTF-8 sequence (for valid text). */
size_t text_cut(const char *p, size_t len, size_t max);

/* Number of code points of valid UTF-8. */
size_t text_count(const char *p, size_t len);

/* Appends p with every malformed byte replaced by U+FFFD. */
void text_repair(struct buf *out, const char *p, size_t len);

/* Appends p decoded as UTF-8, else as GB18030, else repaired. Returns the name of what it
 * was: "utf-8", "gb18030" or "binary" (repaired; the original bytes are not all text).
 * cut_front and cut_back say that the bytes were cut out of a longer stream, so a partial
 * UTF-8 sequence at that edge is dropped before the decision. */
const char *text_decode(struct buf *out, const char *p, size_t len, bool cut_front, bool cut_back);

/* Converts valid UTF-8 to GB18030 for a second look at file names that an archive brought.
 * False when a character has no GB18030 form or the text is plain ASCII. */
bool text_to_gb18030(struct buf *out, const char *p, size_t len);

/* Appends s with control characters, quotes and backslashes escaped and at most max bytes of
 * it shown; for quoting hostile values in messages. */
void text_quote(struct buf *out, const char *s, size_t len, size_t max);

/* Decodes base64 of a variant of libsodium into out. Strict: no character outside the alphabet (nor
 * bytes beyond ASCII, some of which libsodium takes for the last letter), padding as the variant
 * wants it, no bits left over; so a value has one spelling. */
bool text_from_base64(const char *text, size_t len, int variant, void *out, size_t max,
		      size_t *got) MUST_USE;

#endif
