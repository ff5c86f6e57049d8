/* Head and ring. Both are allocated once; the ring keeps the newest bytes after the head. */
#include "run/capture.h"

#include <string.h>

#include "base/text.h"

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
