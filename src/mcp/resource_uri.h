/*
 * spoolbox://SANDBOX/PATH: the URI of a file or directory of a sandbox. SANDBOX is a name or an id,
 * PATH is below /workspace and percent-encoded byte for byte, so it can hold any name. We write one
 * form only: unreserved characters plain, the others encoded, a directory with a slash at its end.
 */
#ifndef SPOOLBOX_MCP_RESOURCE_URI_H
#define SPOOLBOX_MCP_RESOURCE_URI_H

#include "base/buf.h"
#include "base/util.h"

#define RESOURCE_URI_TEMPLATE "spoolbox://{sandbox}/{+path}"

struct resource_uri {
	struct buf sandbox; /* a valid handle */
	struct buf path;    /* decoded, without empty, "." or ".." components; "" the workspace */
	bool names_dir;     /* it ended in a slash, as only a directory's may */
};
#define RESOURCE_URI_INIT \
	{ \
		BUF_INIT, BUF_INIT, false \
	}
void resource_uri_finish(struct resource_uri *uri);
#define AUTO_RESOURCE_URI __attribute__((cleanup(resource_uri_finish))) struct resource_uri

/* False when it is no URI of ours, or one that can name no file: dots, NUL, an encoded slash. */
bool resource_uri_read(const char *text, struct resource_uri *uri) MUST_USE;
/* Appends it. path has no slash at its end. */
void resource_uri_write(struct buf *out, const char *sandbox, const char *path, bool is_dir);

/* The path alone, as a value for the template's variable: a person sees it, so what a client
 * encodes by itself stays plain. */
void resource_uri_write_value(struct buf *out, const char *path, bool is_dir);
/* Reads such a value, whole or its beginning: its directories go to uri->path, and what follows
 * the last slash to rest. False when it can be the beginning of no path. */
bool resource_uri_read_value(const char *value, struct resource_uri *uri,
			     struct buf *rest) MUST_USE;

#endif
