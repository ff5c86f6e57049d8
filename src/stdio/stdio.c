/*
 * A request that waits (exec, get_job) asks about twice a second whether its client is still there;
 * then what has come in meanwhile is looked through for a notification that cancels it. The lines
 * stay where they are and are served in their turn.
 *
 * A revision that initialize agreed on holds for all later messages but those that claim one.
 */
#include "stdio/stdio.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "mcp/dispatch.h"
#include "mcp/rpc.h"
#include "mcp/stream.h"
#include "stdio/lines.h"

struct stdio {
	const struct endpoint *endpoint;
	const char *principal;
	int in_fd, out_fd, stop_fd;
	struct lines lines;
	const char *version;             /* agreed by initialize; NULL: none */
	const struct dispatch *dispatch; /* the message that is worked on */
	bool cancelled;                  /* its client does not want it any more */
	bool over;                       /* nobody is there to be served */
	stdio_after *after;
	bool owes; /* after was not called since the last message */
};

/* --- the descriptors ----------------------------------------------------------------------- */

/* Waits up to timeout_ms (-1: for ever) for one of the events on the client's side; the others end
 * it all. */
static bool wait_for(struct stdio *s, short in_events, short out_events, int timeout_ms)
{
	struct pollfd fds[] = {{.fd = in_events != 0 ? s->in_fd : -1, .events = in_events},
			       {.fd = s->out_fd, .events = out_events},
			       {.fd = s->stop_fd, .events = POLLIN}};
	if (poll(fds, ARRAY_LEN(fds), timeout_ms) < 0) {
		s->over |= errno != EINTR;
		return false;
	}
	/* Who reads our output has closed it, whatever the kind of descriptor. */
	s->over |= fds[1].revents & (POLLERR | POLLHUP | POLLNVAL) || fds[2].revents != 0;
	return fds[0].revents != 0 || (fds[1].revents & POLLOUT) != 0;
}

/* In pieces for which poll promises room, so that a client that does not read cannot keep us from
 * seeing stop_fd. */
static bool put(void *ctx, const void *data, size_t len)
{
	struct stdio *s = ctx;
	const char *at = data;
	while (len > 0 && !s->over) {
		if (!wait_for(s, 0, POLLOUT, -1) || s->over)
			continue;
		ssize_t n = write(s->out_fd, at, len < PIPE_BUF ? len : PIPE_BUF);
		if (n < 0)
			s->over |= errno != EINTR && errno != EAGAIN;
		if (n > 0) {
			at += n;
			len -= (size_t)n;
		}
	}
	return len == 0;
}

static bool put_line(struct stdio *s, struct buf *text)
{
	buf_putc(text, '\n');
	return put(s, text->data, text->len);
}

/* --- while a request runs ------------------------------------------------------------------ */

static bool cancels(const char *text, size_t len, struct json_object *id)
{
	static const char method[] = "notifications/cancelled";
	struct err err;
	if (memmem(text, len, method, strlen(method)) == NULL)
		return false;
	AUTO_JSON *message = json_parse(text, len, &err);
	const char *name = json_get_str(message, "method");
	struct json_object *wanted = json_get(json_get(message, "params"), "requestId");
	return name != NULL && strcmp(name, method) == 0 && !json_has(message, "id") &&
	       json_object_equal(wanted, id);
}

/* Reads what is there without waiting, and looks at it. The text of the message that is worked on
 * was parsed, so nobody needs the old bytes. */
static void look_ahead(struct stdio *s)
{
	const char *text;
	size_t len;
	if (lines_has_room(&s->lines) && wait_for(s, POLLIN, 0, 0))
		lines_read(&s->lines, s->in_fd);
	else
		wait_for(s, 0, 0, 0);
	while (lines_peek(&s->lines, &text, &len))
		if (s->dispatch->running != NULL && cancels(text, len, s->dispatch->running))
			s->cancelled = true;
}

static bool client_gone(void *ctx)
{
	struct stdio *s = ctx;
	look_ahead(s);
	return s->cancelled || s->over;
}

/* Being told to stop ends the running call: see client_gone. */
static bool stopping(void *ctx)
{
	return ((const struct stdio *)ctx)->over;
}

/* --- one message --------------------------------------------------------------------------- */

static bool begin(void *ctx, int status, const struct http_header *fields, size_t count,
		  int64_t content_length)
{
	(void)ctx;
	(void)status;
	(void)fields;
	(void)count;
	(void)content_length;
	return true;
}

static void serve_text(struct stdio *s, const char *text, size_t len)
{
	const struct http_sink sink = {s, begin, put, client_gone, stopping};
	int64_t started_ms = clock_mono_ms();
	AUTO_BUF out = BUF_INIT;
	struct stream stream;
	stream_init(&stream, &sink, NULL, 0);
	stream.in_lines = true;
	stream.may_open = true;
	struct dispatch dispatch = {.endpoint = s->endpoint,
				    .principal = s->principal,
				    .version = s->version,
				    .stream = &stream,
				    .outcome = "ok"};
	s->dispatch = &dispatch;
	s->cancelled = false;
	lines_peek_again(&s->lines);
	dispatch_text(&dispatch, text, len, &out);
	s->dispatch = NULL;
	if (dispatch.agreed != NULL)
		s->version = dispatch.agreed;
	/* What was cancelled is not answered. */
	if (stream.client_gone)
		dispatch.outcome = s->cancelled ? "cancelled" : "client_gone";
	else if (out.len > 0)
		put_line(s, &out);
	/* Not one a request as over HTTP: some clients never read what is on standard error, and
	 * once it is full a write waits. */
	log_event(LOG_DEBUG, "mcp", "method=\"%s\" tool=%s outcome=%s ms=%" PRId64,
		  buf_str(&dispatch.method), dispatch.tool == NULL ? "-" : dispatch.tool,
		  dispatch.outcome, clock_mono_ms() - started_ms);
	stream_finish(&stream);
	dispatch_finish(&dispatch);
}

static void refuse_long(struct stdio *s)
{
	AUTO_BUF out = BUF_INIT;
	AUTO_RPC_ERROR error = RPC_ERROR_INIT;
	rpc_refuse(
		&error, RPC_REQUEST,
		"The message has more than %zu bytes, which is the limit; it was not read. Large "
		"files go by upload_file",
		s->lines.max);
	rpc_write_error(&out, NULL, &error);
	put_line(s, &out);
	log_event(LOG_WARN, "mcp", "outcome=too_large");
}

static void settle(struct stdio *s)
{
	if (s->owes && s->after != NULL)
		s->after(s->endpoint->app);
	s->owes = false;
}

/* Takes what the client sent since; when it is at rest, what is owed is done first. False at the
 * end. */
static bool read_more(struct stdio *s)
{
	bool is_there = !s->lines.ended && wait_for(s, POLLIN, 0, 0);
	if (!is_there && !s->over)
		settle(s);
	if (s->lines.ended)
		return false;
	if (is_there || wait_for(s, POLLIN, 0, -1))
		lines_read(&s->lines, s->in_fd);
	return true;
}

static void run(struct stdio *s)
{
	const char *text;
	size_t len;
	while (!s->over) {
		switch (lines_next(&s->lines, &text, &len)) {
		case LINE_TEXT:
			serve_text(s, text, len);
			s->owes = true;
			break;
		case LINE_TOO_LONG:
			refuse_long(s);
			break;
		case LINE_NONE:
			if (!read_more(s))
				return;
			break;
		}
	}
}

void stdio_serve(const struct endpoint *endpoint, const char *principal, int in_fd, int out_fd,
		 int stop_fd, stdio_after *after)
{
	struct stdio s = {.endpoint = endpoint,
			  .principal = principal,
			  .in_fd = in_fd,
			  .out_fd = out_fd,
			  .stop_fd = stop_fd,
			  .after = after};
	lines_init(&s.lines, endpoint->max_body);
	run(&s);
	lines_finish(&s.lines);
}
