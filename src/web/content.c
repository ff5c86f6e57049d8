/* See content.h. */
#include "web/content.h"

#include <string.h>

#include "base/text.h"

const char content_policy[] = "sandbox; default-src 'none'; frame-ancestors 'none'";

/* Characters that stand for themselves in both forms (attr-char of RFC 8187). */
static bool is_plain(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c != '\0' && strchr("!#$&+-.^_`|~", c) != NULL);
}

/* '%' is left out since some clients decode it in the plain form, quotes and backslashes since
 * clients disagree on their escapes. */
static void put_ascii(struct buf *out, const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)name[i];
		if (is_plain(c) || (c != '\0' && strchr(" '(),;=@[]{}", c) != NULL))
			buf_putc(out, (char)c);
		else if ((c & 0xC0) != 0x80) /* one for each character, not for each byte */
			buf_putc(out, '_');
	}
}

void content_disposition(struct buf *out, const char *name)
{
	AUTO_BUF clean = BUF_INIT;
	text_repair(&clean, name, strlen(name));
	const char *text = buf_str(&clean);
	size_t len = text_cut(text, clean.len, 255);

	buf_puts(out, "attachment; filename=\"");
	put_ascii(out, text, len);
	buf_puts(out, "\"; filename*=UTF-8''");
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		if (is_plain(c))
			buf_putc(out, (char)c);
		else
			buf_printf(out, "%%%02X", c);
	}
}
