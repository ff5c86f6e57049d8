/*
 * URIs of sandbox files: one that is read names a path in normal form, and is written in one form
 * that reads as the same.
 *
 * Input: a line with a URI, a line with a value of the template's variable.
 */
#include "fuzz.h"

#include "base/id.h"
#include "box/files.h"
#include "mcp/resource_uri.h"

/* No component is empty or leads anywhere else. */
static void check_form(const struct buf *path)
{
	AUTO_FREE char *framed = xasprintf("/%s/", buf_str(path));
	assert(strlen(buf_str(path)) == path->len && path->len < FILES_PATH_MAX);
	assert(path->len == 0 || strstr(framed, "//") == NULL);
	assert(strstr(framed, "/./") == NULL && strstr(framed, "/../") == NULL);
}

static void check_written(const struct resource_uri *uri)
{
	AUTO_BUF text = BUF_INIT, once_more = BUF_INIT;
	AUTO_RESOURCE_URI again = RESOURCE_URI_INIT;
	resource_uri_write(&text, buf_str(&uri->sandbox), buf_str(&uri->path), uri->names_dir);
	for (const char *p = text.data; *p != '\0'; p++)
		assert(*p > ' ' && *p < 0x7F && strchr("\"<>\\^`{|}?#", *p) == NULL);
	assert(resource_uri_read(text.data, &again));
	assert(strcmp(buf_str(&again.sandbox), buf_str(&uri->sandbox)) == 0);
	assert(strcmp(buf_str(&again.path), buf_str(&uri->path)) == 0);
	assert(uri->path.len == 0 || again.names_dir == uri->names_dir);
	resource_uri_write(&once_more, buf_str(&again.sandbox), buf_str(&again.path),
			   again.names_dir);
	assert(strcmp(once_more.data, text.data) == 0);
}

static void check_uri(const char *text)
{
	AUTO_RESOURCE_URI uri = RESOURCE_URI_INIT;
	if (!resource_uri_read(text, &uri))
		return;
	assert(name_is_valid(buf_str(&uri.sandbox)));
	check_form(&uri.path);
	check_written(&uri);
}

/* A value that was written for a file reads as its directory and its name. */
static void check_value(const char *text)
{
	AUTO_RESOURCE_URI uri = RESOURCE_URI_INIT, again = RESOURCE_URI_INIT;
	AUTO_BUF rest = BUF_INIT, path = BUF_INIT, value = BUF_INIT, rest_again = BUF_INIT;
	if (!resource_uri_read_value(text, &uri, &rest))
		return;
	check_form(&uri.path);
	assert(strchr(buf_str(&rest), '/') == NULL && strlen(buf_str(&rest)) == rest.len);
	buf_printf(&path, "%s%s%s", buf_str(&uri.path), uri.path.len > 0 ? "/" : "",
		   buf_str(&rest));
	resource_uri_write_value(&value, buf_str(&path), false);
	assert(resource_uri_read_value(buf_str(&value), &again, &rest_again));
	assert(strcmp(buf_str(&again.path), buf_str(&uri.path)) == 0);
	assert(strcmp(buf_str(&rest_again), buf_str(&rest)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = fuzz_input(data, size);
	AUTO_FREE char *uri = fuzz_line(&in), *value = fuzz_line(&in);
	check_uri(uri);
	check_value(value);
	return 0;
}
