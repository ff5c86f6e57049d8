/*
 * A growable byte buffer. data is always NUL-terminated when it is not NULL; len does not
 * count that NUL, and the content may hold NULs of its own.
 */
#ifndef SPOOLBOX_BASE_BUF_H
#define SPOOLBOX_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/util.h"

struct buf {
	char *data;
	size_t len;
	size_t cap;
};

#define BUF_INIT \
	{ \
		NULL, 0, 0 \
	}

void buf_append(struct buf *buf, const void *data, size_t len);
void buf_puts(struct buf *buf, const char *s);
void buf_putc(struct buf *buf, char c);
void buf_printf(struct buf *buf, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Makes room for len more bytes and returns where they go; the caller adds to buf->len. */
char *buf_reserve(struct buf *buf, size_t len);

/* Empties the buffer and keeps its memory. */
void buf_clear(struct buf *buf);
/* Frees the memory; the buffer can be used again. */
void buf_finish(struct buf *buf);
/* The content as a C string ("" when empty), still owned by the buffer. */
const char *buf_str(const struct buf *buf);
/* Hands the memory over (never NULL); the caller frees it. */
char *buf_take(struct buf *buf);

#define AUTO_BUF __attribute__((cleanup(buf_finish))) struct buf

#endif
