/*
 * Headers of transfers: ranges and preconditions of a download, digests of an upload, the name of
 * a file in its answer.
 *
 * Input: a request as text whose second word is the size of the file, and whose body is its name.
 */
#include "fuzz.h"

#include <strings.h>

#include "base/media.h"
#include "http_text.h"
#include "web/content.h"
#include "web/digest.h"
#include "web/range.h"

#define ETAG "\"0123456789abcdef0123456789abcdef\""

static void check_range(const struct http_request *request, int64_t size)
{
	/* 2015-10-21 07:28:00 GMT, as the examples of RFC 9110 like it. */
	const struct range_file file = {size, 1445412480000, ETAG};
	struct range_reply reply = range_decide(request, &file);
	switch (reply.outcome) {
	case RANGE_WHOLE:
		assert(reply.offset == 0 && reply.length == size);
		break;
	case RANGE_PART:
		assert(reply.offset >= 0 && reply.length > 0);
		assert(reply.offset < size && reply.length <= size - reply.offset);
		break;
	default:
		assert(reply.offset == 0 && reply.length == 0);
	}
	/* Nothing is left out or refused unless the client gave a reason. */
	if (http_header(request, "range") == NULL)
		assert(reply.outcome != RANGE_PART && reply.outcome != RANGE_UNSATISFIABLE);
	if (http_header(request, "if-none-match") == NULL &&
	    http_header(request, "if-modified-since") == NULL)
		assert(reply.outcome != RANGE_NOT_MODIFIED);
	if (http_header(request, "if-match") == NULL &&
	    http_header(request, "if-unmodified-since") == NULL)
		assert(reply.outcome != RANGE_FAILED);
}

static bool has_text(const struct http_request *request, const char *text)
{
	for (size_t i = 0; i < request->header_count; i++)
		if (strcasestr(request->headers[i].value, text) != NULL)
			return true;
	return false;
}

static void check_digest(const struct http_request *request)
{
	struct err err = ERR_INIT;
	unsigned char sha256[32];
	bool found = false;
	if (!digest_announced(request, sha256, &found, &err))
		fuzz_check_err(&err);
	else if (found)
		assert(has_text(request, "sha-256="));
}

/* Undoes RFC 8187. */
static void decode(const char *text, struct buf *out)
{
	unsigned byte;
	for (; *text != '\0'; text += *text == '%' ? 3 : 1) {
		byte = (unsigned char)*text;
		assert(*text != '%' || sscanf(text, "%%%2X", &byte) == 1);
		buf_putc(out, (char)byte);
	}
}

static void check_name(const char *name)
{
	AUTO_BUF value = BUF_INIT, decoded = BUF_INIT;
	content_disposition(&value, name);
	for (size_t i = 0; i < value.len; i++)
		assert(value.data[i] >= 0x20 && value.data[i] < 0x7F);
	assert(value.len <= 1126); /* content.h: 1.1 KB */
	/* Quoted once, and nothing in it ends the quotes. */
	const char *open = strchr(value.data, '"'), *close = strrchr(value.data, '"');
	assert(open != NULL && strchr(open + 1, '"') == close);
	assert(memchr(open, '\\', (size_t)(close - open)) == NULL);
	const char *exact = strstr(close, "; filename*=UTF-8''");
	assert(exact == close + 1);
	decode(exact + strlen("; filename*=UTF-8''"), &decoded);
	assert(text_is_utf8(buf_str(&decoded), decoded.len));
	if (strlen(name) <= 255 && text_is_utf8(name, strlen(name)))
		assert(strcmp(buf_str(&decoded), name) == 0);
	const char *type = media_type(name);
	assert(type[0] != '\0' && strchr(type, '/') != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_HTTP_TEXT text;
	http_text_parse(&text, fuzz_input(data, size));
	int64_t file_size = strtoll(text.uri, NULL, 10);
	check_range(&text.request, file_size < 0 ? 0 : file_size);
	check_digest(&text.request);
	AUTO_FREE char *name = fuzz_line(&text.body);
	check_name(name);
	return 0;
}
