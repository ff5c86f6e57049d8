/*
 * Masking of secret values in a stream, before its bytes reach a disk. Every byte that belongs
 * to an occurrence of any value is masked, also where occurrences overlap or lie within one
 * another; each unbroken run of masked bytes becomes one "***". Works across any split of the
 * stream in memory that does not depend on its length: at most one byte less than the longest
 * value is held back.
 */
#ifndef SPOOLBOX_RUN_MASK_H
#define SPOOLBOX_RUN_MASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define MASK_VALUE_MIN 6 /* shorter values would mask ordinary text; they are left */
/* Of a longer value (a bundle of certificates) an occurrence of its first bytes is masked, and what
 * follows them is not. */
#define MASK_VALUE_MAX (16 * 1024)
#define MASK_TEXT      "***"

/* A set of values, compiled once (Aho-Corasick); may serve several streams. */
struct mask;

struct mask *mask_new(void);
void mask_free(struct mask *mask);
/* Adds a value; shorter than MASK_VALUE_MIN: nothing happens. Before the first stream only. */
void mask_add(struct mask *mask, const char *value, size_t len);
bool mask_is_empty(const struct mask *mask);

struct mask_stream {
	const struct mask *mask; /* borrowed; NULL or empty: bytes pass unchanged */
	uint32_t state;
	struct buf held;    /* bytes that may still turn out to belong to a value */
	struct buf covered; /* which of them do already; see mask.c */
	bool in_run;        /* the last settled byte was masked */
};
/* Compiles the mask if that was not done yet. */
void mask_stream_init(struct mask_stream *stream, const struct mask *mask);
void mask_stream_finish(struct mask_stream *stream);
/* Appends what is settled to out. */
void mask_feed(struct mask_stream *stream, const char *data, size_t len, struct buf *out);
/* The end of the stream: what was held back is settled. */
void mask_end(struct mask_stream *stream, struct buf *out);

#endif
