/* Media types and safe names. The type comes from the name alone: looking into hostile bytes is
 * what a sandbox is for. */
#include "web/content.h"

#include <string.h>
#include <strings.h>

#include "base/text.h"

const char content_policy[] = "sandbox; default-src 'none'; frame-ancestors 'none'";

#define UTF8 "; charset=utf-8"

/* Sorted by extension for the reader; it is short enough to be searched in order. */
static const struct {
	const char *extension;
	const char *type;
} types[] = {
	{"7z", "application/x-7z-compressed"},
	{"avi", "video/x-msvideo"},
	{"bmp", "image/bmp"},
	{"bz2", "application/x-bzip2"},
	{"c", "text/plain" UTF8},
	{"css", "text/css" UTF8},
	{"csv", "text/csv" UTF8},
	{"doc", "application/msword"},
	{"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
	{"epub", "application/epub+zip"},
	{"flac", "audio/flac"},
	{"gif", "image/gif"},
	{"gz", "application/gzip"},
	{"h", "text/plain" UTF8},
	{"htm", "text/html" UTF8},
	{"html", "text/html" UTF8},
	{"ico", "image/vnd.microsoft.icon"},
	{"ipynb", "application/x-ipynb+json"},
	{"jpeg", "image/jpeg"},
	{"jpg", "image/jpeg"},
	{"js", "text/javascript" UTF8},
	{"json", "application/json"},
	{"jsonl", "application/jsonl"},
	{"log", "text/plain" UTF8},
	{"m4a", "audio/mp4"},
	{"md", "text/markdown" UTF8},
	{"mkv", "video/matroska"},
	{"mov", "video/quicktime"},
	{"mp3", "audio/mpeg"},
	{"mp4", "video/mp4"},
	{"odp", "application/vnd.oasis.opendocument.presentation"},
	{"ods", "application/vnd.oasis.opendocument.spreadsheet"},
	{"odt", "application/vnd.oasis.opendocument.text"},
	{"ogg", "audio/ogg"},
	{"parquet", "application/vnd.apache.parquet"},
	{"pdf", "application/pdf"},
	{"png", "image/png"},
	{"ppt", "application/vnd.ms-powerpoint"},
	{"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
	{"py", "text/x-python" UTF8},
	{"rtf", "application/rtf"},
	{"sh", "text/plain" UTF8},
	{"sql", "application/sql"},
	{"sqlite", "application/vnd.sqlite3"},
	{"svg", "image/svg+xml"},
	{"tar", "application/x-tar"},
	{"tgz", "application/gzip"},
	{"tif", "image/tiff"},
	{"tiff", "image/tiff"},
	{"toml", "application/toml"},
	{"tsv", "text/tab-separated-values" UTF8},
	{"ttf", "font/ttf"},
	{"txt", "text/plain" UTF8},
	{"wasm", "application/wasm"},
	{"wav", "audio/vnd.wave"},
	{"webm", "video/webm"},
	{"webp", "image/webp"},
	{"woff2", "font/woff2"},
	{"xls", "application/vnd.ms-excel"},
	{"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
	{"xml", "application/xml"},
	{"xz", "application/x-xz"},
	{"yaml", "application/yaml"},
	{"yml", "application/yaml"},
	{"zip", "application/zip"},
	{"zst", "application/zstd"},
};

const char *content_type(const char *name)
{
	const char *dot = strrchr(name, '.');
	for (size_t i = 0; dot != NULL && i < ARRAY_LEN(types); i++) {
		if (strcasecmp(dot + 1, types[i].extension) == 0)
			return types[i].type;
	}
	return "application/octet-stream";
}

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
