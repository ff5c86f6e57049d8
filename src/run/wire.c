/*
 * The wire format. A body is: eight-byte integers (timeout, grace, limits), the number of
 * arguments and of variables, then strings (cwd, arguments, variables), each with its length in
 * front and a NUL behind, so that the reader can point into the body and allocates nothing.
 */
#include "run/wire.h"

#include <string.h>

#define WIRE_MAGIC 0x31504253u /* "SBP1"; the digit is the version */

struct writer {
	unsigned char *data;
	size_t len, cap;
	enum wire_fault fault; /* the first one */
};

struct reader {
	const unsigned char *data;
	size_t pos, len;
	enum wire_fault fault;
};

static void store_uint(unsigned char *p, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		p[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t load_uint(const unsigned char *p, size_t size)
{
	uint64_t value = 0;
	for (size_t i = 0; i < size; i++)
		value |= (uint64_t)p[i] << (8 * i);
	return value;
}

static unsigned char *writer_room(struct writer *w, size_t size)
{
	if (w->fault == WIRE_OK && size > w->cap - w->len)
		w->fault = WIRE_FAULT_BODY;
	if (w->fault != WIRE_OK)
		return NULL;
	unsigned char *p = w->data + w->len;
	w->len += size;
	return p;
}

static void write_uint(struct writer *w, uint64_t value, size_t size)
{
	unsigned char *p = writer_room(w, size);
	if (p)
		store_uint(p, value, size);
}

static void write_string(struct writer *w, const char *s)
{
	size_t len = strlen(s);
	if (len > WIRE_STRING_MAX && w->fault == WIRE_OK)
		w->fault = WIRE_FAULT_STRING;
	write_uint(w, len, 4);
	unsigned char *p = writer_room(w, len + 1);
	if (p)
		memcpy(p, s, len + 1);
}

static size_t count_words(const char *const *words)
{
	size_t count = 0;
	while (words[count] && count <= WIRE_WORDS_MAX)
		count++;
	return count;
}

static bool request_in_range(const struct wire_request *request)
{
	if (request->timeout_ms < 0 || request->timeout_ms > WIRE_TIME_MAX ||
	    request->grace_ms < 0 || request->grace_ms > WIRE_TIME_MAX)
		return false;
	for (size_t i = 0; i < WIRE_LIMIT__MAX; i++)
		if (request->limits[i] < -1)
			return false;
	return request->cwd[0] == '/' && request->argv[0] && request->argv[0][0] != '\0';
}

enum wire_fault wire_put_request(const struct wire_request *request, unsigned char *out, size_t cap,
				 size_t *len)
{
	size_t argc = count_words(request->argv), envc = count_words(request->env);
	if (argc + envc > WIRE_WORDS_MAX)
		return WIRE_FAULT_WORDS;
	if (cap < WIRE_HEAD_SIZE || !request_in_range(request))
		return WIRE_FAULT_FORM;

	struct writer w = {.data = out + WIRE_HEAD_SIZE, .cap = cap - WIRE_HEAD_SIZE};
	if (w.cap > WIRE_BODY_MAX)
		w.cap = WIRE_BODY_MAX;
	write_uint(&w, (uint64_t)request->timeout_ms, 8);
	write_uint(&w, (uint64_t)request->grace_ms, 8);
	for (size_t i = 0; i < WIRE_LIMIT__MAX; i++)
		write_uint(&w, (uint64_t)request->limits[i], 8);
	write_uint(&w, argc, 4);
	write_uint(&w, envc, 4);
	write_string(&w, request->cwd);
	for (size_t i = 0; i < argc; i++)
		write_string(&w, request->argv[i]);
	for (size_t i = 0; i < envc; i++)
		write_string(&w, request->env[i]);
	if (w.fault != WIRE_OK)
		return w.fault;

	store_uint(out, WIRE_MAGIC, 4);
	store_uint(out + 4, w.len, 4);
	*len = WIRE_HEAD_SIZE + w.len;
	return WIRE_OK;
}

size_t wire_body_length(const unsigned char head[static WIRE_HEAD_SIZE])
{
	size_t len = load_uint(head + 4, 4);
	return load_uint(head, 4) == WIRE_MAGIC && len <= WIRE_BODY_MAX ? len : 0;
}

static uint64_t read_uint(struct reader *r, size_t size)
{
	if (r->fault == WIRE_OK && size > r->len - r->pos)
		r->fault = WIRE_FAULT_FORM;
	if (r->fault != WIRE_OK)
		return 0;
	uint64_t value = load_uint(r->data + r->pos, size);
	r->pos += size;
	return value;
}

/* "" once the reader has failed. */
static const char *read_string(struct reader *r)
{
	size_t len = read_uint(r, 4);
	if (r->fault == WIRE_OK && len > WIRE_STRING_MAX)
		r->fault = WIRE_FAULT_STRING;
	if (r->fault == WIRE_OK && len >= r->len - r->pos)
		r->fault = WIRE_FAULT_FORM;
	if (r->fault != WIRE_OK)
		return "";
	const char *s = (const char *)r->data + r->pos;
	if (memchr(s, '\0', len + 1) != s + len) {
		r->fault = WIRE_FAULT_FORM;
		return "";
	}
	r->pos += len + 1;
	return s;
}

static const char **read_words(struct reader *r, const char **words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		words[i] = read_string(r);
	words[count] = NULL;
	return words + count + 1;
}

enum wire_fault wire_get_request(const unsigned char *body, size_t len,
				 struct wire_request *request,
				 const char *words[static WIRE_WORDS_MAX + 2])
{
	struct reader r = {.data = body, .len = len};
	request->timeout_ms = (int64_t)read_uint(&r, 8);
	request->grace_ms = (int64_t)read_uint(&r, 8);
	for (size_t i = 0; i < WIRE_LIMIT__MAX; i++)
		request->limits[i] = (int64_t)read_uint(&r, 8);
	size_t argc = read_uint(&r, 4), envc = read_uint(&r, 4);
	if (argc > WIRE_WORDS_MAX || envc > WIRE_WORDS_MAX - argc)
		return WIRE_FAULT_WORDS;
	request->cwd = read_string(&r);
	request->argv = words;
	request->env = read_words(&r, words, argc);
	read_words(&r, words + argc + 1, envc);
	if (r.fault != WIRE_OK)
		return r.fault;
	return r.pos == r.len && request_in_range(request) ? WIRE_OK : WIRE_FAULT_FORM;
}

void wire_put_reply(const struct wire_reply *reply, unsigned char out[static WIRE_REPLY_SIZE])
{
	struct writer w = {.data = out, .cap = WIRE_REPLY_SIZE};
	write_uint(&w, WIRE_MAGIC, 4);
	write_uint(&w, reply->kind, 4);
	write_uint(&w, reply->step, 4);
	write_uint(&w, (uint32_t)reply->error, 4);
	write_uint(&w, reply->reason, 4);
	write_uint(&w, (uint32_t)reply->code, 4);
	write_uint(&w, (uint32_t)reply->signal, 4);
	write_uint(&w, (uint32_t)reply->survivors, 4);
	write_uint(&w, (uint64_t)reply->user_us, 8);
	write_uint(&w, (uint64_t)reply->system_us, 8);
	write_uint(&w, (uint64_t)reply->max_rss_kib, 8);
}

/* A non-negative int, or -1: what an honest PID 1 never sends. */
static int read_count(struct reader *r)
{
	uint64_t value = read_uint(r, 4);
	return value <= INT32_MAX ? (int)value : -1;
}

bool wire_get_reply(const unsigned char in[static WIRE_REPLY_SIZE], struct wire_reply *reply)
{
	struct reader r = {.data = in, .len = WIRE_REPLY_SIZE};
	uint64_t magic = read_uint(&r, 4), kind = read_uint(&r, 4), step = read_uint(&r, 4);
	reply->error = read_count(&r);
	uint64_t reason = read_uint(&r, 4);
	reply->code = read_count(&r);
	reply->signal = read_count(&r);
	reply->survivors = read_count(&r);
	reply->user_us = (int64_t)read_uint(&r, 8);
	reply->system_us = (int64_t)read_uint(&r, 8);
	reply->max_rss_kib = (int64_t)read_uint(&r, 8);
	if (magic != WIRE_MAGIC || kind == 0 || kind >= WIRE_KIND__MAX || step >= WIRE_STEP__MAX ||
	    reason >= WIRE_REASON__MAX)
		return false;
	reply->kind = (enum wire_kind)kind;
	reply->step = (enum wire_step)step;
	reply->reason = (enum wire_reason)reason;
	return reply->error >= 0 && reply->code >= 0 && reply->signal >= 0 &&
	       reply->survivors >= 0 && reply->user_us >= 0 && reply->system_us >= 0 &&
	       reply->max_rss_kib >= 0;
}
