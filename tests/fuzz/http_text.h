/*
 * A request as text, for fuzzers of what HTTP hands over:
 *
 *	POST /mcp
 *	content-type: application/json
 *
 *	{"jsonrpc": "2.0", ...}
 *
 * Names come in lower case and values without control characters, as the adapter hands them on:
 * what web servers refuse is not tried.
 */
#ifndef SPOOLBOX_FUZZ_HTTP_TEXT_H
#define SPOOLBOX_FUZZ_HTTP_TEXT_H

#include "fuzz.h"

#include <ctype.h>

#include "mcp/http.h"

#define HTTP_TEXT_HEADERS 32

struct http_text {
	struct http_request request;
	char *method, *uri; /* the two words of the first line */
	struct http_header headers[HTTP_TEXT_HEADERS];
	char *lines[HTTP_TEXT_HEADERS]; /* hold them */
	struct fuzz_input body;         /* what was not read of it */
};

static inline ssize_t http_text_read(void *ctx, void *data, size_t len)
{
	struct fuzz_input *body = ctx;
	len = len < body->len ? len : body->len;
	memcpy(data, body->at, len);
	body->at += len;
	body->len -= len;
	return (ssize_t)len;
}

/* Splits "name: value" where it is kept. */
static inline struct http_header http_text_header(char *line)
{
	char *colon = strchr(line, ':'), *value = line + strlen(line);
	if (colon != NULL) {
		*colon = '\0';
		value = colon + 1 + strspn(colon + 1, " ");
	}
	for (char *p = line; *p != '\0'; p++)
		*p = (char)(*p == '_' ? '-' : tolower((unsigned char)*p));
	for (char *p = value; *p != '\0'; p++)
		if (((unsigned char)*p < 0x20 && *p != '\t') || *p == 0x7F)
			*p = ' ';
	return (struct http_header){line, value};
}

static inline void http_text_parse(struct http_text *text, struct fuzz_input in)
{
	*text = (struct http_text){.method = fuzz_line(&in)};
	text->uri = text->method + strcspn(text->method, " ");
	if (*text->uri == ' ')
		*text->uri++ = '\0';
	size_t count = 0;
	char *line;
	while ((line = fuzz_line(&in))[0] != '\0' && count < HTTP_TEXT_HEADERS) {
		text->lines[count] = line;
		text->headers[count++] = http_text_header(line);
	}
	free(line);
	text->body = in;
	text->request = (struct http_request){
		.method = text->method,
		.query = "",
		.host = "",
		.remote_addr = "127.0.0.1",
		.headers = text->headers,
		.header_count = count,
		.content_length = (int64_t)in.len,
		.read_body = http_text_read,
	};
	text->request.body_ctx = &text->body;
	const char *length = http_header(&text->request, "content-length");
	if (length != NULL)
		text->request.content_length = llabs(strtoll(length, NULL, 10) % INT64_MAX);
	text->request.chunked = http_header(&text->request, "transfer-encoding") != NULL;
	if (text->request.chunked)
		text->request.content_length = -1;
	const char *host = http_header(&text->request, "host");
	text->request.host = host == NULL ? "" : host;
}

static inline void http_text_finish(struct http_text *text)
{
	free(text->method);
	for (size_t i = 0; i < text->request.header_count; i++)
		free(text->lines[i]);
}
#define AUTO_HTTP_TEXT __attribute__((cleanup(http_text_finish))) struct http_text

#endif
