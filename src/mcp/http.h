/*
 * HTTP as plain values: what an adapter (libfcgi, plain CGI, a test, a fuzzer) hands in and
 * what it must carry out. Nothing here knows FastCGI.
 */
#ifndef SPOOLBOX_MCP_HTTP_H
#define SPOOLBOX_MCP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/util.h"

struct http_header {
	const char *name; /* lower-case with hyphens, e.g. "mcp-method" */
	const char *value;
};

#define HTTP_SEGMENTS_MAX 16

struct http_request {
	const char *method; /* as sent */
	/* Path segments after the mount prefix, each decoded once, e.g. {"files", "put", token}. */
	const char *segments[HTTP_SEGMENTS_MAX];
	size_t segment_count;
	const char *query; /* raw, without "?"; "" when there is none */
	const char *host;  /* Host header or "" */
	const char *remote_addr;
	const struct http_header *headers; /* every header of the request; a name may recur */
	size_t header_count;
	int64_t content_length; /* -1: not given */
	bool chunked;           /* Transfer-Encoding: chunked was seen */
	/* Reads the body: >0 bytes, 0 at the end, -1 when it broke off. */
	ssize_t (*read_body)(void *ctx, void *data, size_t len);
	void *body_ctx;
};

/* Value of a header, or NULL. With several of one name: the first. */
const char *http_header(const struct http_request *request, const char *name);
/* How often a header occurs. */
size_t http_header_count(const struct http_request *request, const char *name);

/* Decoded value of a query parameter appended to out. 1 found, 0 not, -1 malformed escape or NUL.
 */
int http_query(const struct http_request *request, const char *name, struct buf *out);

/* Reads the whole body, at most max bytes. ERR_TOO_LARGE; ERR_INVALID when it ends before the
 * announced length. */
bool http_read_body(const struct http_request *request, size_t max, struct buf *out,
		    struct err *err);

/* The response. begin once, then write; an adapter ends it when the handler returns. With
 * content_length -1 the body is a stream that is flushed at each write. Fields must be free of
 * control characters; the whole block stays below 3.5 KB (the smallest buffer of the servers is 4).
 */
struct http_sink {
	void *ctx;
	bool (*begin)(void *ctx, int status, const struct http_header *fields, size_t count,
		      int64_t content_length);
	bool (*write)(void *ctx, const void *data, size_t len); /* false: the client has gone */
	/* Cheap looks: whether the client has gone (may be unknown: false), and whether this
	 * process was told to stop, so that what could last comes to an orderly end now. */
	bool (*client_gone)(void *ctx);
	bool (*stopping)(void *ctx);
};

/* A complete answer. body may be NULL with len 0; then no Content-Type is sent. extra fields may
 * be NULL. Always adds X-Content-Type-Options: nosniff and Cache-Control: no-store. */
bool http_answer(const struct http_sink *sink, int status, const char *content_type,
		 const void *body, size_t len, const struct http_header *extra, size_t extra_count);

/* The JSON error of /files: {"error": name, "message": …, "hint": …} with the code's status. */
bool http_answer_error(const struct http_sink *sink, const struct err *err);

#endif
