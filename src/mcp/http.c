/* The request read and the answer written, with nothing of any web server in it. */
#include "mcp/http.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

#define READ_STEP ((size_t)16384) /* one FastCGI buffer's worth or two */

const char *http_header(const struct http_request *request, const char *name)
{
	for (size_t i = 0; i < request->header_count; i++) {
		if (strcmp(request->headers[i].name, name) == 0)
			return request->headers[i].value;
	}
	return NULL;
}

size_t http_header_count(const struct http_request *request, const char *name)
{
	size_t count = 0;
	for (size_t i = 0; i < request->header_count; i++)
		count += strcmp(request->headers[i].name, name) == 0;
	return count;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Form decoding: "+" is a space, since that is what every HTTP library sends for one. */
static bool decode_value(const char *p, size_t len, struct buf *out)
{
	for (size_t i = 0; i < len; i++) {
		if (p[i] != '%') {
			buf_putc(out, (char)(p[i] == '+' ? ' ' : p[i]));
			continue;
		}
		int high = i + 2 < len ? hex_digit(p[i + 1]) : -1;
		int low = high >= 0 ? hex_digit(p[i + 2]) : -1;
		if (low < 0 || (high == 0 && low == 0))
			return false;
		buf_putc(out, (char)(high << 4 | low));
		i += 2;
	}
	return true;
}

int http_query(const struct http_request *request, const char *name, struct buf *out)
{
	size_t name_len = strlen(name);
	for (const char *p = request->query; *p != '\0';) {
		size_t len = strcspn(p, "&");
		if (len > name_len && p[name_len] == '=' && memcmp(p, name, name_len) == 0) {
			AUTO_BUF value = BUF_INIT;
			if (!decode_value(p + name_len + 1, len - name_len - 1, &value))
				return -1;
			buf_append(out, buf_str(&value), value.len);
			return 1;
		}
		p += len + (p[len] == '&');
	}
	return 0;
}

static bool too_large(size_t max, struct err *err)
{
	err_set(err, ERR_TOO_LARGE, "the request body is larger than %zu bytes", max);
	return err_hint(err, "Send less at once; move files by upload_file and download_file.");
}

/* One byte more than max is asked for, so that "exactly max" and "too much" differ. */
bool http_read_body(const struct http_request *request, size_t max, struct buf *out,
		    struct err *err)
{
	int64_t announced = request->content_length;
	if (announced > 0 && (uint64_t)announced > max)
		return too_large(max, err);
	size_t limit = announced >= 0 ? (size_t)announced : max + 1;
	size_t got = 0;
	while (got < limit) {
		size_t step = limit - got < READ_STEP ? limit - got : READ_STEP;
		ssize_t n = request->read_body(request->body_ctx, buf_reserve(out, step), step);
		if (n < 0)
			return err_set(err, ERR_INVALID,
				       "the request body broke off after %zu bytes", got);
		if (n == 0)
			break;
		out->len += (size_t)n;
		out->data[out->len] = '\0';
		got += (size_t)n;
	}
	if (got > max)
		return too_large(max, err);
	if (announced >= 0 && got < (size_t)announced)
		return err_set(err, ERR_INVALID,
			       "the request body ended after %zu of %" PRId64 " bytes", got,
			       announced);
	return true;
}

#define FIELDS_MAX 24 /* more would not fit into the smallest header buffer anyway */

bool http_answer(const struct http_sink *sink, int status, const char *content_type,
		 const void *body, size_t len, const struct http_header *extra, size_t extra_count)
{
	struct http_header fields[FIELDS_MAX];
	size_t count = 0;
	assert(extra_count + 3 <= FIELDS_MAX);
	if (len > 0)
		fields[count++] = (struct http_header){"content-type", content_type};
	fields[count++] = (struct http_header){"x-content-type-options", "nosniff"};
	fields[count++] = (struct http_header){"cache-control", "no-store"};
	for (size_t i = 0; i < extra_count; i++)
		fields[count++] = extra[i];
	if (!sink->begin(sink->ctx, status, fields, count, (int64_t)len))
		return false;
	return len == 0 || sink->write(sink->ctx, body, len);
}

bool http_answer_error(const struct http_sink *sink, const struct err *err)
{
	static const struct http_header challenge = {"www-authenticate", "Bearer realm=\"mcp\""};
	static const struct http_header later = {"retry-after", "1"};
	int status = err_http_status(err->code);
	const struct http_header *extra = status == 401   ? &challenge
					  : status == 503 ? &later
							  : NULL;

	AUTO_JSON *body = json_object_new_object();
	json_add_str(body, "error", err_name(err->code));
	json_add_str(body, "message", err_message(err));
	json_add_str(body, "hint", err_next(err));
	size_t len;
	const char *text = json_text(body, &len);
	return http_answer(sink, status, "application/json", text, len, extra, extra != NULL);
}
