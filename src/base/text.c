/*
 * Text decoding. The order is UTF-8, then GB18030 (archives and tools from Chinese systems),
 * then repair. GB18030 accepts many byte sequences that are no Chinese at all, so it is only
 * believed when the text has no control bytes that text does not have.
 */
#include "base/text.h"

#include <errno.h>
#include <iconv.h>
#include <sodium.h>
#include <stdint.h>
#include <string.h>
#include <unistr.h>

#define REPLACEMENT "\xEF\xBF\xBD"

bool text_is_utf8(const char *p, size_t len)
{
	return len == 0 || u8_check((const uint8_t *)p, len) == NULL;
}

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xC0) == 0x80;
}

size_t text_cut(const char *p, size_t len, size_t max)
{
	if (len <= max)
		return len;
	size_t n = max;
	while (n > 0 && is_continuation(p[n]))
		n--;
	return n;
}

size_t text_count(const char *p, size_t len)
{
	size_t count = 0;
	for (size_t i = 0; i < len; i++)
		count += !is_continuation(p[i]);
	return count;
}

void text_repair(struct buf *out, const char *p, size_t len)
{
	while (len > 0) {
		const uint8_t *bad = u8_check((const uint8_t *)p, len);
		size_t good = bad == NULL ? len : (size_t)((const char *)bad - p);
		buf_append(out, p, good);
		if (bad == NULL)
			return;
		buf_puts(out, REPLACEMENT);
		p += good + 1;
		len -= good + 1;
		/* The rest of a cut or wrong sequence is one fault, not one per byte. */
		while (len > 0 && is_continuation(*p)) {
			p++;
			len--;
		}
	}
}

/* Bytes at the end that begin a sequence which the cut left incomplete. */
static size_t partial_tail(const char *p, size_t len)
{
	for (size_t back = 1; back <= 3 && back <= len; back++) {
		unsigned char c = (unsigned char)p[len - back];
		if ((c & 0xC0) == 0x80)
			continue;
		size_t need = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
		return need > back ? back : 0;
	}
	return 0;
}

static size_t partial_head(const char *p, size_t len)
{
	size_t n = 0;
	while (n < 3 && n < len && is_continuation(p[n]))
		n++;
	return n;
}

/* Converts the whole text or nothing. */
static bool convert(const char *to, const char *from, struct buf *out, const char *p, size_t len)
{
	iconv_t cd = iconv_open(to, from);
	if (cd == (iconv_t)-1)
		return false;
	size_t start = out->len;
	char *in = (char *)p;
	bool ok = true;
	while (ok && len > 0) {
		size_t room = len * 2 + 16;
		char *to_p = buf_reserve(out, room);
		size_t left = room;
		size_t rc = iconv(cd, &in, &len, &to_p, &left);
		out->len += room - left;
		out->data[out->len] = '\0';
		ok = rc != (size_t)-1 || errno == E2BIG;
	}
	iconv_close(cd);
	if (!ok) {
		out->len = start;
		if (out->data != NULL)
			out->data[start] = '\0';
	}
	return ok;
}

static bool has_binary_control(const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)p[i];
		if (c < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != '\b' &&
		    c != '\a' && c != 0x1B)
			return true;
	}
	return false;
}

const char *text_decode(struct buf *out, const char *p, size_t len, bool cut_front, bool cut_back)
{
	size_t head = cut_front ? partial_head(p, len) : 0;
	size_t tail = cut_back ? partial_tail(p + head, len - head) : 0;
	if (text_is_utf8(p + head, len - head - tail)) {
		buf_append(out, p + head, len - head - tail);
		return "utf-8";
	}
	/* A cut may fall inside a two- or four-byte GB18030 sequence at either edge. */
	bool maybe = !has_binary_control(p, len);
	for (size_t front = 0; maybe && front <= (cut_front ? 3 : 0); front++) {
		for (size_t back = 0; back <= (cut_back ? 3 : 0); back++) {
			if (front + back < len &&
			    convert("UTF-8", "GB18030", out, p + front, len - front - back))
				return "gb18030";
		}
	}
	text_repair(out, p + head, len - head - tail);
	return "binary";
}

bool text_to_gb18030(struct buf *out, const char *p, size_t len)
{
	bool ascii = true;
	for (size_t i = 0; i < len && ascii; i++)
		ascii = (unsigned char)p[i] < 0x80;
	return !ascii && convert("GB18030", "UTF-8", out, p, len);
}

void text_quote(struct buf *out, const char *s, size_t len, size_t max)
{
	AUTO_BUF clean = BUF_INIT;
	text_repair(&clean, s, len < max * 2 ? len : max * 2);
	size_t shown = text_cut(buf_str(&clean), clean.len, max);
	for (size_t i = 0; i < shown; i++) {
		unsigned char c = (unsigned char)clean.data[i];
		if (c < 0x20 || c == 0x7F)
			buf_printf(out, "\\x%02x", c);
		else if (c == '"' || c == '\\')
			buf_printf(out, "\\%c", c);
		else
			buf_putc(out, (char)c);
	}
	if (shown < clean.len || len > max * 2)
		buf_puts(out, "...");
}

bool text_from_base64(const char *text, size_t len, int variant, void *out, size_t max, size_t *got)
{
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)text[i] >= 0x80)
			return false;
	}
	return sodium_base642bin(out, max, text, len, NULL, got, NULL, variant) == 0;
}
