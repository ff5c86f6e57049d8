/*
 * The other end of a call that may take long: progress, keep-alive and whether the client is still
 * there. Over HTTP the answer stays a plain one until there is something to say before it; then it
 * becomes a stream of server-sent events, the response last.
 *
 * A stream opens at the first progress notification, or after STREAM_QUIET_MS without one when
 * the client's going cancels the call: some web servers (Apache) show a disconnect only to who
 * writes. From then on there is a comment at least every STREAM_QUIET_MS, which also keeps the read
 * timeouts of proxies away.
 *
 * Over stdio, which is a stream from the start, a message is a line and silence needs no filling.
 */
#ifndef SPOOLBOX_MCP_STREAM_H
#define SPOOLBOX_MCP_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "mcp/http.h"

/* Ticks come twice a second, so this stays well below the 15 s that clients wait at most. */
#define STREAM_QUIET_MS 10000
/* On a stream that waits for events. It keeps a worker, and a client that has gone shows in a write
 * that fails: the second one after it went, since the first only makes the web server notice. */
#define STREAM_LISTEN_MS   2000
#define STREAM_PROGRESS_MS 250  /* least time between two notifications */
#define STREAM_SAME_MS     5000 /* between two that say the same: clients' timeouts begin anew */

struct stream {
	const struct http_sink *sink;
	const struct http_header *extra; /* more fields of the header block */
	size_t extra_count;
	bool in_lines;  /* stdio: each message is a line, and there is no header block */
	bool may_open;  /* the client takes events, and nothing else is answered with it */
	bool ends_call; /* modern era: a client that goes cancels its call */
	struct json_object *token; /* progressToken, borrowed; NULL: no progress was asked for */
	int64_t quiet_ms;          /* longest silence; STREAM_QUIET_MS unless set otherwise */
	int log_level; /* least rank (era_log_level) of log messages that are sent; -1: none */
	/* State. */
	bool is_open, client_gone;
	int64_t started_ms, written_ms, progress_ms; /* monotonic */
	struct buf said;                             /* the newest progress message */
	bool is_counted;   /* the handler reports progress itself, by a count of its own */
	double progressed; /* the newest progress that was sent; -1: none yet */
};

/* Nothing is written. sink and extra are borrowed until stream_finish. */
void stream_init(struct stream *stream, const struct http_sink *sink,
		 const struct http_header *extra, size_t extra_count);
void stream_finish(struct stream *stream);

/* Starts the stream unless it is open; the status is 200 from here on. False: the client has gone.
 */
bool stream_open(struct stream *stream);

/* One message as one event or line. text is JSON on one line. False: the client has gone. */
bool stream_message(struct stream *stream, const char *text, size_t len);

/* A notification; params are taken. False: the client has gone. */
bool stream_notify(struct stream *stream, const char *method, struct json_object *params);

/* Progress by the handler's own count, sent at once when it was asked for and has grown. total
 * below 0: not known; message may be NULL. False as stream_tick. */
bool stream_progress(struct stream *stream, double progress, double total, const char *message);

/* To be called about twice a second while a call waits; newest_line (NULL: none) is what there is
 * to say of its progress. False when the call is to be cancelled, since its client has gone. */
bool stream_tick(struct stream *stream, const char *newest_line);

/* Whether what waits for events or for a person is to end, since the process was told to stop. */
bool stream_is_stopped(const struct stream *stream);

#endif
