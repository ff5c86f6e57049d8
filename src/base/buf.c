/* The growable byte buffer: doubles when full, so appending is linear in the end. */
#include "base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

char *buf_reserve(struct buf *buf, size_t len)
{
	assert(len < SIZE_MAX / 4 && buf->len < SIZE_MAX / 4);
	size_t need = buf->len + len + 1;
	if (need > buf->cap) {
		size_t cap = buf->cap < 128 ? 256 : buf->cap * 2;
		buf->cap = cap < need ? need : cap;
		buf->data = xrealloc(buf->data, buf->cap);
	}
	return buf->data + buf->len;
}

void buf_append(struct buf *buf, const void *data, size_t len)
{
	char *to = buf_reserve(buf, len);
	if (len > 0)
		memcpy(to, data, len);
	buf->len += len;
	buf->data[buf->len] = '\0';
}

void buf_puts(struct buf *buf, const char *s)
{
	buf_append(buf, s, strlen(s));
}

void buf_putc(struct buf *buf, char c)
{
	buf_append(buf, &c, 1);
}

void buf_printf(struct buf *buf, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	assert(n >= 0);
	char *to = buf_reserve(buf, (size_t)n);
	if (n > 0)
		vsnprintf(to, (size_t)n + 1, fmt, again);
	else
		*to = '\0';
	va_end(again);
	buf->len += (size_t)n;
}

void buf_clear(struct buf *buf)
{
	buf->len = 0;
	if (buf->data != NULL)
		buf->data[0] = '\0';
}

void buf_finish(struct buf *buf)
{
	free(buf->data);
	*buf = (struct buf)BUF_INIT;
}

const char *buf_str(const struct buf *buf)
{
	return buf->data == NULL ? "" : buf->data;
}

char *buf_take(struct buf *buf)
{
	buf_append(buf, "", 0);
	char *data = buf->data;
	*buf = (struct buf)BUF_INIT;
	return data;
}
