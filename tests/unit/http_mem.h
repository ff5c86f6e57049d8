/* A request and a sink in memory: drives everything of src/mcp without a web server. */
#ifndef SPOOLBOX_HTTP_MEM_H
#define SPOOLBOX_HTTP_MEM_H

#include "mcp/http.h"
#include "unit.h"

struct mem {
	struct http_request request;
	struct http_header headers[24];
	const char *body;
	size_t body_len, body_at;
	size_t breaks_at; /* bytes after which reading fails; 0: never */
	bool body_was_read;
	/* What came out. */
	int begins, status, writes;
	int64_t length;
	bool gone;         /* the client is not there any more: so says client_gone, */
	bool write_fails;  /* or the next write */
	bool stopping;     /* the process was told to stop */
	struct buf fields; /* "name: value\n" each */
	struct buf out;
};

static inline ssize_t mem_read(void *ctx, void *data, size_t len)
{
	struct mem *m = ctx;
	size_t left = m->body_len - m->body_at;
	m->body_was_read = true;
	if (m->breaks_at > 0 && m->body_at >= m->breaks_at)
		return -1;
	len = len < left ? len : left;
	len = len < 1000 ? len : 1000; /* short reads, as from a socket */
	memcpy(data, m->body + m->body_at, len);
	m->body_at += len;
	return (ssize_t)len;
}

static inline bool mem_begin(void *ctx, int status, const struct http_header *fields, size_t count,
			     int64_t content_length)
{
	struct mem *m = ctx;
	size_t block = 0;
	m->begins++;
	m->status = status;
	m->length = content_length;
	for (size_t i = 0; i < count; i++) {
		for (const char *p = fields[i].value; *p != '\0'; p++)
			ck_assert_msg((unsigned char)*p >= 0x20 && *p != 0x7F,
				      "control character in %s", fields[i].name);
		block += strlen(fields[i].name) + strlen(fields[i].value) + 4;
		buf_printf(&m->fields, "%s: %s\n", fields[i].name, fields[i].value);
	}
	ck_assert_uint_lt(block, 3500);
	return true;
}

static inline bool mem_write(void *ctx, const void *data, size_t len)
{
	struct mem *m = ctx;
	ck_assert_int_eq(m->begins, 1);
	m->writes++;
	if (m->write_fails)
		return false;
	buf_append(&m->out, data, len);
	return true;
}

static inline bool mem_gone(void *ctx)
{
	return ((const struct mem *)ctx)->gone;
}

static inline bool mem_stopping(void *ctx)
{
	return ((const struct mem *)ctx)->stopping;
}

static inline struct http_sink mem_sink(struct mem *m)
{
	return (struct http_sink){m, mem_begin, mem_write, mem_gone, mem_stopping};
}

static inline void mem_init(struct mem *m, const char *method, const char *body, size_t len)
{
	*m = (struct mem){.body = body, .body_len = len};
	m->request = (struct http_request){.method = method,
					   .query = "",
					   .host = "127.0.0.1:8080",
					   .remote_addr = "127.0.0.1",
					   .headers = m->headers,
					   .content_length = (int64_t)len,
					   .read_body = mem_read,
					   .body_ctx = m};
}

static inline void mem_finish(struct mem *m)
{
	buf_finish(&m->fields);
	buf_finish(&m->out);
}
#define AUTO_MEM __attribute__((cleanup(mem_finish))) struct mem

static inline void mem_header(struct mem *m, const char *name, const char *value)
{
	ck_assert_uint_lt(m->request.header_count, ARRAY_LEN(m->headers));
	m->headers[m->request.header_count++] = (struct http_header){name, value};
}

/* Whether the answer has exactly this field; with value NULL: any of the name. */
static inline bool mem_has_field(const struct mem *m, const char *name, const char *value)
{
	AUTO_BUF wanted = BUF_INIT;
	buf_printf(&wanted, "\n%s: ", name);
	if (value != NULL)
		buf_printf(&wanted, "%s\n", value);
	AUTO_BUF all = BUF_INIT;
	buf_printf(&all, "\n%s", buf_str(&m->fields));
	return strstr(all.data, wanted.data) != NULL;
}

#endif
