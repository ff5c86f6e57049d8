/* See block.h. */
#include "web/block.h"

#define BLOCK_MAX 3500 /* bytes: nginx has a buffer of 4 KiB */

static const struct {
	int status;
	const char *reason;
} reasons[] = {
	{200, "OK"},
	{202, "Accepted"},
	{204, "No Content"},
	{206, "Partial Content"},
	{304, "Not Modified"},
	{400, "Bad Request"},
	{401, "Unauthorized"},
	{403, "Forbidden"},
	{404, "Not Found"},
	{405, "Method Not Allowed"},
	{406, "Not Acceptable"},
	{409, "Conflict"},
	{410, "Gone"},
	{411, "Length Required"},
	{412, "Precondition Failed"},
	{413, "Content Too Large"},
	{415, "Unsupported Media Type"},
	{416, "Range Not Satisfiable"},
	{421, "Misdirected Request"},
	{429, "Too Many Requests"},
	{500, "Internal Server Error"},
	{502, "Bad Gateway"},
	{503, "Service Unavailable"},
	{504, "Gateway Timeout"},
	{507, "Insufficient Storage"},
};

static const char *reason_of(int status)
{
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
		if (reasons[i].status == status)
			return reasons[i].reason;
	}
	return "Status";
}

static bool is_clean(const char *s)
{
	for (; *s != '\0'; s++) {
		if ((unsigned char)*s < 0x20 || *s == 0x7F)
			return false;
	}
	return true;
}

bool block_compose(struct buf *block, int status, const struct http_header *fields, size_t count,
		   int64_t content_length)
{
	buf_printf(block, "Status: %d %s\r\n", status, reason_of(status));
	for (size_t i = 0; i < count; i++) {
		if (!is_clean(fields[i].name) || !is_clean(fields[i].value))
			return false;
		buf_printf(block, "%s: %s\r\n", fields[i].name, fields[i].value);
	}
	if (content_length >= 0 && status != 204 && status != 304)
		buf_printf(block, "Content-Length: %lld\r\n", (long long)content_length);
	buf_puts(block, "\r\n");
	return block->len <= BLOCK_MAX;
}
