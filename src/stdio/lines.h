/* Lines out of a stream of bytes, in bounded memory. */
#ifndef SPOOLBOX_STDIO_LINES_H
#define SPOOLBOX_STDIO_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct lines {
	size_t max; /* bytes of a line, without its end */
	bool ended; /* nothing comes any more */
	/* State. */
	struct buf data;
	size_t start;   /* of the first line that was not taken */
	size_t scanned; /* before this there is no end of that line */
	size_t peeked;  /* lines before this were shown by lines_peek */
	bool skipping;  /* inside a line that is too long */
};

void lines_init(struct lines *lines, size_t max);
void lines_finish(struct lines *lines);

/* Whether there is room to read more. A line that is longer than max is dropped as it comes, so
 * there always is when lines_next has nothing. */
bool lines_has_room(const struct lines *lines);

/* Reads what there is, once; blocks when there is nothing. Sets ended at the end, and when fd
 * cannot be read. Only with room. */
void lines_read(struct lines *lines, int fd);

enum line_kind {
	LINE_NONE = 0, /* not here yet; with ended: there are no more */
	LINE_TEXT,
	LINE_TOO_LONG, /* told once for each, when its length is known to be too much */
};
/* Takes the next line, borrowed until the next read. Blank lines are left out; at the end a line
 * needs no newline. */
enum line_kind lines_next(struct lines *lines, const char **text, size_t *len);

/* The next whole line that was neither taken nor shown before. Leaves it where it is. */
bool lines_peek(struct lines *lines, const char **text, size_t *len);
/* Shows again what was shown and not taken. */
void lines_peek_again(struct lines *lines);

#endif
