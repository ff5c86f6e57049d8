/*
 * Bounded capture of one output stream: the first two thirds of the limit and the last third,
 * with the number of bytes in between. Memory is the limit, however much is written.
 */
#ifndef SPOOLBOX_RUN_CAPTURE_H
#define SPOOLBOX_RUN_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct capture {
	char *head, *tail; /* tail is a ring */
	size_t head_max, tail_max;
	size_t head_len, tail_len, tail_pos;
	int64_t total; /* bytes seen */
};

void capture_init(struct capture *capture, size_t limit);
void capture_finish(struct capture *capture);
void capture_add(struct capture *capture, const char *data, size_t len);
bool capture_truncated(const struct capture *capture);
/* Appends the decoded text, with a line such as "[... 1234 bytes left out ...]" at the gap.
 * Returns the encoding's name as text_decode does. */
const char *capture_text(const struct capture *capture, struct buf *out);

/* Appends the newest line that is complete and not blank, as UTF-8 without control characters and
 * terminal sequences, cut at max bytes. A carriage return ends a line as well: what programs show
 * of their progress is overwritten that way. */
void capture_last_line(const struct capture *capture, size_t max, struct buf *out);

#endif
