/*
 * One buffer: taken lines are dropped from its front before more is read. It holds two lines of the
 * greatest length, so that one can be worked on while others are looked at.
 */
#include "stdio/lines.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES ((size_t)65536)

void lines_init(struct lines *lines, size_t max)
{
	*lines = (struct lines){.max = max};
}

void lines_finish(struct lines *lines)
{
	buf_finish(&lines->data);
}

static size_t waiting(const struct lines *lines)
{
	return lines->data.len - lines->start;
}

bool lines_has_room(const struct lines *lines)
{
	return !lines->ended && waiting(lines) < 2 * (lines->max + 1);
}

/* Drops what was taken. */
static void compact(struct lines *lines)
{
	size_t by = lines->start;
	if (by == 0)
		return;
	memmove(lines->data.data, lines->data.data + by, lines->data.len - by);
	lines->data.len -= by;
	lines->start = 0;
	lines->scanned -= by;
	lines->peeked = lines->peeked > by ? lines->peeked - by : 0;
}

void lines_read(struct lines *lines, int fd)
{
	compact(lines);
	ssize_t n;
	do {
		n = read(fd, buf_reserve(&lines->data, READ_BYTES), READ_BYTES);
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		lines->data.len += (size_t)n;
	else if (n == 0 || errno != EAGAIN)
		lines->ended = true;
}

static bool is_blank(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (strchr(" \t\r", text[i]) == NULL || text[i] == '\0')
			return false;
	return true;
}

/* Takes everything up to end, and the newline there if any. */
static void take(struct lines *lines, size_t end)
{
	lines->start = end < lines->data.len ? end + 1 : end;
	lines->scanned = lines->start;
}

/* What there is of a line whose end did not come: not too long yet, or to be dropped. */
static enum line_kind unfinished(struct lines *lines)
{
	bool is_long = waiting(lines) > lines->max;
	bool is_news = is_long && !lines->skipping;
	lines->scanned = lines->data.len;
	if (is_long || lines->skipping) {
		take(lines, lines->data.len);
		lines->skipping = true;
	}
	return is_news ? LINE_TOO_LONG : LINE_NONE;
}

enum line_kind lines_next(struct lines *lines, const char **text, size_t *len)
{
	while (lines->start < lines->data.len) {
		const char *data = lines->data.data;
		const char *newline =
			memchr(data + lines->scanned, '\n', lines->data.len - lines->scanned);
		if (newline == NULL && !(lines->ended && waiting(lines) <= lines->max))
			return unfinished(lines);
		size_t start = lines->start;
		size_t end = newline == NULL ? lines->data.len : (size_t)(newline - data);
		bool skipping = lines->skipping;
		take(lines, end);
		lines->skipping = false;
		*text = data + start;
		*len = end - start;
		if (skipping)
			continue;
		if (*len > lines->max)
			return LINE_TOO_LONG;
		if (!is_blank(*text, *len))
			return LINE_TEXT;
	}
	return LINE_NONE;
}

bool lines_peek(struct lines *lines, const char **text, size_t *len)
{
	size_t from = lines->peeked > lines->start ? lines->peeked : lines->start;
	const char *data = lines->data.data;
	const char *newline =
		from < lines->data.len ? memchr(data + from, '\n', lines->data.len - from) : NULL;
	if (newline == NULL || lines->skipping)
		return false;
	*text = data + from;
	*len = (size_t)(newline - data) - from;
	lines->peeked = from + *len + 1;
	return true;
}

void lines_peek_again(struct lines *lines)
{
	lines->peeked = 0;
}
