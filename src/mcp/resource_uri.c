/* See resource_uri.h. Reading is lenient where nothing is gained by refusing: characters that
 * should have been encoded stand for themselves, and a scheme has no case. */
#include "mcp/resource_uri.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

#include "base/id.h"
#include "base/text.h"
#include "box/files.h"

#define SCHEME "spoolbox://"

void resource_uri_finish(struct resource_uri *uri)
{
	buf_finish(&uri->sandbox);
	buf_finish(&uri->path);
}

/* --- writing ------------------------------------------------------------------------------- */

static void put_encoded(struct buf *out, unsigned char c)
{
	buf_printf(out, "%%%02X", c);
}

/* RFC 3986, unreserved; and the slash between names. */
static bool is_plain(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c != '\0' && strchr("-._~/", c) != NULL);
}

void resource_uri_write(struct buf *out, const char *sandbox, const char *path, bool is_dir)
{
	buf_printf(out, SCHEME "%s/", sandbox);
	for (const char *p = path; *p != '\0'; p++) {
		if (is_plain((unsigned char)*p))
			buf_putc(out, *p);
		else
			put_encoded(out, (unsigned char)*p);
	}
	if (is_dir && *path != '\0')
		buf_putc(out, '/');
}

/* {+path} lets reserved characters pass, so those that would end the path are encoded here. */
void resource_uri_write_value(struct buf *out, const char *path, bool is_dir)
{
	bool is_text = text_is_utf8(path, strlen(path));
	for (const char *p = path; *p != '\0'; p++) {
		unsigned char c = (unsigned char)*p;
		if (c < ' ' || c == 0x7f || strchr("%?#", c) != NULL || (c >= 0x80 && !is_text))
			put_encoded(out, c);
		else
			buf_putc(out, *p);
	}
	if (is_dir && *path != '\0')
		buf_putc(out, '/');
}

/* --- reading ------------------------------------------------------------------------------- */

static int hex_value(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
				      : -1;
}

/* Appends decoded bytes up to end. False for a bad escape, and for what no name can hold. */
static bool decode(const char *p, const char *end, struct buf *out)
{
	for (; p < end; p++) {
		char c = *p;
		if (c == '%') {
			int high = end - p < 3 ? -1 : hex_value(p[1]);
			int low = high < 0 ? -1 : hex_value(p[2]);
			if (low < 0)
				return false;
			c = (char)(high << 4 | low);
			p += 2;
			if (c == '\0' || c == '/')
				return false;
		}
		buf_putc(out, c);
	}
	return true;
}

static bool is_name(const char *name, size_t len)
{
	return len > 0 && len <= NAME_MAX && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Appends the components between text and end to a path, each decoded by itself. */
static bool read_path(const char *text, const char *end, struct buf *path)
{
	for (const char *p = text; p < end;) {
		const char *slash = memchr(p, '/', (size_t)(end - p));
		const char *stop = slash == NULL ? end : slash;
		if (path->len > 0)
			buf_putc(path, '/');
		size_t start = path->len;
		if (!decode(p, stop, path) || !is_name(buf_str(path) + start, path->len - start) ||
		    path->len >= FILES_PATH_MAX)
			return false;
		p = stop + (slash != NULL);
	}
	return true;
}

bool resource_uri_read(const char *text, struct resource_uri *uri)
{
	size_t scheme = strlen(SCHEME);
	if (strncasecmp(text, SCHEME, scheme) != 0)
		return false;
	text += scheme;
	const char *path = text + strcspn(text, "/");
	if (!decode(text, path, &uri->sandbox) || !name_is_valid(buf_str(&uri->sandbox)))
		return false;
	if (*path == '\0')
		return true;
	const char *end = path + strcspn(path, "?#");
	uri->names_dir = end[-1] == '/';
	return *end == '\0' && read_path(path + 1, end, &uri->path);
}

bool resource_uri_read_value(const char *value, struct resource_uri *uri, struct buf *rest)
{
	const char *slash = strrchr(value, '/');
	const char *name = slash == NULL ? value : slash + 1;
	uri->names_dir = true;
	if (slash == value || (slash != NULL && slash[-1] == '/'))
		return false;
	return (slash == NULL || read_path(value, slash, &uri->path)) &&
	       decode(name, name + strlen(name), rest);
}
