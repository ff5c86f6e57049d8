/* Head and ring. Both are allocated once; the ring keeps the newest bytes after the head. */
#include "run/capture.h"

#include <string.h>

#include "base/text.h"

#define LINE_WINDOW 4096 /* newest bytes in which a line is looked for */

void capture_init(struct capture *capture, size_t limit)
{
	size_t tail_max = limit / 3;
	*capture = (struct capture){.head_max = limit - tail_max, .tail_max = tail_max};
	capture->head = xmalloc(capture->head_max + 1); /* 0 bytes would be no pointer */
	capture->tail = xmalloc(tail_max + 1);
}

void capture_finish(struct capture *capture)
{
	free(capture->head);
	free(capture->tail);
	*capture = (struct capture){0};
}

/* The write position wraps; what is older than tail_max is overwritten. */
static void ring_add(struct capture *capture, const char *data, size_t len)
{
	if (len > capture->tail_max) {
		data += len - capture->tail_max;
		len = capture->tail_max;
	}
	while (len > 0) {
		size_t room = capture->tail_max - capture->tail_pos;
		size_t n = len < room ? len : room;
		memcpy(capture->tail + capture->tail_pos, data, n);
		capture->tail_pos = (capture->tail_pos + n) % capture->tail_max;
		capture->tail_len += n;
		data += n;
		len -= n;
	}
	if (capture->tail_len > capture->tail_max)
		capture->tail_len = capture->tail_max;
}

void capture_add(struct capture *capture, const char *data, size_t len)
{
	capture->total += (int64_t)len;
	size_t room = capture->head_max - capture->head_len;
	size_t n = len < room ? len : room;
	if (n > 0)
		memcpy(capture->head + capture->head_len, data, n);
	capture->head_len += n;
	if (len > n)
		ring_add(capture, data + n, len - n);
}

static int64_t bytes_left_out(const struct capture *capture)
{
	return capture->total - (int64_t)(capture->head_len + capture->tail_len);
}

bool capture_truncated(const struct capture *capture)
{
	return bytes_left_out(capture) > 0;
}

/* The ring's content in order. */
static void append_tail(const struct capture *capture, struct buf *out)
{
	size_t start = capture->tail_len < capture->tail_max ? 0 : capture->tail_pos;
	size_t first = capture->tail_len - start;
	buf_append(out, capture->tail + start, first);
	buf_append(out, capture->tail, start);
}

/* The one of two encodings that the whole is in. */
static const char *worse(const char *a, const char *b)
{
	if (strcmp(a, "utf-8") == 0 || strcmp(b, "binary") == 0)
		return b;
	return a;
}

const char *capture_text(const struct capture *capture, struct buf *out)
{
	AUTO_BUF raw = BUF_INIT;
	if (!capture_truncated(capture)) {
		buf_append(&raw, capture->head, capture->head_len);
		append_tail(capture, &raw);
		return text_decode(out, buf_str(&raw), raw.len, false, false);
	}
	const char *head = text_decode(out, capture->head, capture->head_len, false, true);
	buf_printf(out, "\n[... %lld bytes left out ...]\n", (long long)bytes_left_out(capture));
	append_tail(capture, &raw);
	const char *tail = text_decode(out, buf_str(&raw), raw.len, true, false);
	return worse(head, tail);
}

/* --- the newest line ----------------------------------------------------------------------- */

/* The newest bytes, in order. */
static void append_newest(const struct capture *capture, struct buf *out)
{
	AUTO_BUF tail = BUF_INIT;
	append_tail(capture, &tail);
	size_t from_tail = tail.len < LINE_WINDOW ? tail.len : LINE_WINDOW;
	size_t from_head = LINE_WINDOW - from_tail;
	/* Only a head that is followed by the tail without a gap continues into it. */
	if (bytes_left_out(capture) > 0)
		from_head = 0;
	if (from_head > capture->head_len)
		from_head = capture->head_len;
	buf_append(out, capture->head + capture->head_len - from_head, from_head);
	buf_append(out, buf_str(&tail) + tail.len - from_tail, from_tail);
}

/* Length of the terminal sequence that begins with ESC at p, at least 1. */
static size_t sequence_len(const char *p, size_t len)
{
	size_t n = 1;
	if (len < 2 || p[1] != '[')
		return len < 2 ? 1 : 2;
	/* CSI: parameters, then a final byte from '@' to '~' (ECMA-48). */
	for (n = 2; n < len && (p[n] < '@' || p[n] > '~'); n++)
		;
	return n < len ? n + 1 : len;
}

/* Drops control characters in place; a tab becomes a space. What is left may still be no UTF-8. */
static size_t clean(char *p, size_t len)
{
	size_t kept = 0;
	for (size_t i = 0; i < len;) {
		unsigned char c = (unsigned char)p[i];
		if (c == 0x1B) {
			i += sequence_len(p + i, len - i);
			continue;
		}
		if (c == '\t')
			p[kept++] = ' ';
		else if (c >= ' ' && c != 0x7F)
			p[kept++] = (char)c;
		i++;
	}
	while (kept > 0 && p[kept - 1] == ' ')
		kept--;
	return kept;
}

static bool ends_line(char c)
{
	return c == '\n' || c == '\r';
}

/* Decoded, and without C1 controls (U+0080 to U+009F), of which one begins a terminal sequence. */
static void append_decoded(struct buf *out, const char *line, size_t len, bool cut_front,
			   size_t max)
{
	AUTO_BUF text = BUF_INIT;
	text_decode(&text, line, len, cut_front, false);
	size_t kept = 0;
	for (size_t i = 0; i < text.len; i++) {
		const unsigned char *c = (const unsigned char *)text.data + i;
		if (c[0] == 0xC2 && c[1] >= 0x80 && c[1] <= 0x9F)
			i++;
		else
			text.data[kept++] = text.data[i];
	}
	buf_append(out, buf_str(&text), text_cut(buf_str(&text), kept, max));
}

void capture_last_line(const struct capture *capture, size_t max, struct buf *out)
{
	AUTO_BUF newest = BUF_INIT;
	append_newest(capture, &newest);
	size_t end = newest.len;
	while (end > 0 && !ends_line(newest.data[end - 1]))
		end--;
	while (end > 0) {
		size_t start = --end; /* the line's own end */
		while (start > 0 && !ends_line(newest.data[start - 1]))
			start--;
		size_t len = clean(newest.data + start, end - start);
		if (len > 0) {
			bool cut_front = start == 0 && (int64_t)newest.len < capture->total;
			append_decoded(out, newest.data + start, len, cut_front, max);
			return;
		}
		end = start;
	}
}
