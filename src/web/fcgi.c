/*
 * Parameters in, header block and body out, and the accept loop. What is done here against
 * common sense answers something a real server does.
 */
#include "web/fcgi.h"

#include <ctype.h>
#include <errno.h>
#include <fcgiapp.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <strings.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/num.h"
#include "web/block.h"
#include "web/refuse.h"
#include "web/route.h"

#define PARENT_LOOK_MS 10000
#define OWED_MS        100 /* wait for a request that another worker may have taken */
#define LATE_BODY_S    1   /* wait for a body that follows a false end */
#define CGI_DRAIN_MAX  (64 * 1024 * 1024) /* unread body that a CGI process still takes */

static const int stop_signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};

/* One request on its way through. fcgi is NULL for plain CGI. */
struct exchange {
	FCGX_Request *fcgi;
	bool head;        /* no body goes out */
	bool begun;       /* the header block was sent */
	bool gone;        /* a write failed */
	bool chunked;     /* a body comes whose length nobody said */
	int64_t body_in;  /* bytes of the request body still to come; -1: unknown */
	int64_t body_out; /* bytes of the response body still to go; -1: stream */
};

/* --- transport --------------------------------------------------------------------------- */

static ssize_t read_stdin(void *data, size_t len)
{
	ssize_t n;
	do {
		n = read(STDIN_FILENO, data, len);
	} while (n < 0 && errno == EINTR);
	return n;
}

/* Apache with HTTP/2 sends an empty FCGI_STDIN record, which means the end, before the body when
 * the request has no Content-Length of its own. So after a clean early end the stream is opened
 * again and waited on for a moment. */
static ssize_t read_after_false_end(FCGX_Request *fcgi, char *data, size_t len)
{
	struct timeval wait = {.tv_sec = LATE_BODY_S};
	setsockopt(fcgi->ipcFd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	fcgi->in->isClosed = 0;
	int n = FCGX_GetStr(data, (int)len, fcgi->in);
	wait.tv_sec = 0;
	setsockopt(fcgi->ipcFd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	return n > 0 ? n : -1;
}

static ssize_t read_fcgi(FCGX_Request *fcgi, char *data, size_t len, bool end_is_false)
{
	int n = FCGX_GetStr(data, (int)len, fcgi->in);
	if (n > 0)
		return n;
	if (FCGX_GetError(fcgi->in) != 0)
		return -1;
	return end_is_false ? read_after_false_end(fcgi, data, len) : 0;
}

static ssize_t read_body(void *ctx, void *data, size_t len)
{
	struct exchange *ex = ctx;
	if (ex->body_in == 0)
		return 0;
	if (len > INT32_MAX)
		len = INT32_MAX;
	if (ex->body_in > 0 && len > (uint64_t)ex->body_in)
		len = (size_t)ex->body_in;
	ssize_t n = ex->fcgi == NULL ? read_stdin(data, len)
				     : read_fcgi(ex->fcgi, data, len, ex->body_in > 0);
	if (n > 0 && ex->body_in > 0)
		ex->body_in -= n;
	return n == 0 && ex->body_in > 0 ? -1 : n;
}

static bool put(struct exchange *ex, const void *data, size_t len, bool flush)
{
	if (ex->gone)
		return false;
	if (ex->fcgi == NULL) {
		struct err err = ERR_INIT;
		ex->gone = !fs_write_all(STDOUT_FILENO, data, len, &err);
		return !ex->gone;
	}
	FCGX_Stream *out = ex->fcgi->out;
	for (const char *p = data; len > 0 && !ex->gone;) {
		int step = len < INT32_MAX ? (int)len : INT32_MAX;
		ex->gone = FCGX_PutStr(p, step, out) != step;
		p += step;
		len -= (size_t)step;
	}
	/* A failed flush is reported once only; the error of the stream stays. */
	if (flush && !ex->gone)
		ex->gone = FCGX_FFlush(out) != 0;
	ex->gone = ex->gone || FCGX_GetError(out) != 0;
	return !ex->gone;
}

/* --- response ---------------------------------------------------------------------------- */

static bool begin(void *ctx, int status, const struct http_header *fields, size_t count,
		  int64_t content_length)
{
	struct exchange *ex = ctx;
	AUTO_BUF block = BUF_INIT;
	bool good = block_compose(&block, status, fields, count, content_length);
	if (!good) {
		log_event(LOG_ERROR, "response", "refused header block status=%d fields=%zu",
			  status, count);
		buf_clear(&block);
		(void)!block_compose(&block, 500, NULL, 0, 0);
	}
	ex->begun = true;
	ex->body_out = good && !ex->head ? content_length : 0;
	/* Without a body nothing is left that would push the block out. */
	return put(ex, block.data, block.len, ex->body_out == 0) && good;
}

static bool write_body(void *ctx, const void *data, size_t len)
{
	struct exchange *ex = ctx;
	if (ex->head)
		return !ex->gone;
	if (ex->body_out < 0)
		return put(ex, data, len, true);
	if (len > (uint64_t)ex->body_out) {
		log_event(LOG_ERROR, "response", "a body is longer than its Content-Length");
		len = (size_t)ex->body_out;
	}
	ex->body_out -= (int64_t)len;
	/* The last bytes are pushed out, so that the caller learns whether they could be. */
	return put(ex, data, len, ex->body_out == 0);
}

/* Whether one of these came; they are blocked, and stay to be read by the accept loop. */
static bool is_pending(const int *signals, size_t count)
{
	sigset_t pending;
	if (sigpending(&pending) != 0)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (sigismember(&pending, signals[i]) == 1)
			return true;
	}
	return false;
}

static bool client_gone(void *ctx)
{
	const struct exchange *ex = ctx;
	if (ex->gone)
		return true;
	/* Apache and lighttpd send TERM to a CGI process whose client went away. */
	if (ex->fcgi == NULL)
		return is_pending((const int[]){SIGTERM}, 1);
	struct pollfd peer = {.fd = ex->fcgi->ipcFd, .events = POLLRDHUP};
	return poll(&peer, 1, 0) > 0 && (peer.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

static bool stopping(void *ctx)
{
	(void)ctx;
	return is_pending(stop_signals, ARRAY_LEN(stop_signals));
}

/* --- request ----------------------------------------------------------------------------- */

/* Names are owned, values point into the parameters. */
struct headers {
	struct http_header *at;
	size_t count, cap;
};

static void headers_finish(struct headers *headers)
{
	for (size_t i = 0; i < headers->count; i++)
		free((char *)headers->at[i].name);
	free(headers->at);
}
#define AUTO_HEADERS __attribute__((cleanup(headers_finish))) struct headers

/* name is in the spelling of CGI: MCP_METHOD, up to "=". */
static void headers_add(struct headers *headers, const char *name, size_t len, const char *value)
{
	if (headers->count == headers->cap) {
		headers->cap = headers->cap == 0 ? 32 : headers->cap * 2;
		headers->at = xrealloc(headers->at, headers->cap * sizeof(headers->at[0]));
	}
	char *lower = xstrndup(name, len);
	for (char *p = lower; *p != '\0'; p++)
		*p = (char)(*p == '_' ? '-' : tolower((unsigned char)*p));
	headers->at[headers->count++] = (struct http_header){lower, value};
}

static const char *param(char **params, const char *name)
{
	const char *value = FCGX_GetParam(name, params);
	return value == NULL ? "" : value;
}

/* Every HTTP_* and the two that CGI sets apart. nginx passes a header that recurs as two
 * parameters, so all are kept. */
static void read_headers(char **params, struct headers *headers)
{
	for (char **p = params; *p != NULL; p++) {
		const char *equals = strchr(*p, '=');
		if (equals == NULL || strncmp(*p, "HTTP_", 5) != 0)
			continue;
		/* A client could set a proxy for programs that trust the environment ("httpoxy").
		 */
		if (strncmp(*p, "HTTP_PROXY=", 11) != 0)
			headers_add(headers, *p + 5, (size_t)(equals - *p - 5), equals + 1);
	}
	static const char type[] = "CONTENT_TYPE", length[] = "CONTENT_LENGTH";
	if (param(params, type)[0] != '\0')
		headers_add(headers, type, sizeof(type) - 1, param(params, type));
	if (param(params, length)[0] != '\0')
		headers_add(headers, length, sizeof(length) - 1, param(params, length));
	/* What Apache makes of HTTP_AUTHORIZATION when a rewrite stands in between. */
	const char *redirected = FCGX_GetParam("REDIRECT_HTTP_AUTHORIZATION", params);
	if (redirected != NULL && FCGX_GetParam("HTTP_AUTHORIZATION", params) == NULL)
		headers_add(headers, "AUTHORIZATION", 13, redirected);
}

/* Absent and "" both mean unknown, with or without a body. */
static bool read_length(char **params, struct http_request *request, struct err *err)
{
	const char *text = param(params, "CONTENT_LENGTH");
	request->chunked = strcasestr(param(params, "HTTP_TRANSFER_ENCODING"), "chunked") != NULL;
	request->content_length = -1;
	return text[0] == '\0' || num_parse_int(text, 0, INT64_MAX, &request->content_length) ||
	       err_set(err, ERR_INVALID, "Content-Length is not a number");
}

static void serve_request(struct exchange *ex, char **params, fcgi_handler *handle, void *ctx)
{
	const struct http_sink sink = {ex, begin, write_body, client_gone, stopping};
	struct err err = ERR_INIT;
	AUTO_HEADERS headers = {NULL, 0, 0};
	AUTO_ROUTE_URI uri = {.text = BUF_INIT};
	read_headers(params, &headers);
	struct http_request request = {
		.method = param(params, "REQUEST_METHOD"),
		.host = param(params, "HTTP_HOST"),
		.remote_addr = param(params, "REMOTE_ADDR"),
		.headers = headers.at,
		.header_count = headers.count,
		.read_body = read_body,
		.body_ctx = ex,
	};
	ex->head = strcmp(request.method, "HEAD") == 0;
	bool understood = read_length(params, &request, &err) &&
			  route_parse(param(params, "REQUEST_URI"), &uri, &err);
	ex->body_in = request.content_length;
	ex->chunked = request.chunked;
	if (!understood) {
		refuse_err(&sink, &err);
		return;
	}
	memcpy(request.segments, uri.segments, sizeof(request.segments));
	request.segment_count = uri.segment_count;
	request.query = uri.query;
	handle(ctx, &request, &sink);
	/* A response without a header block ends the process of one web server. */
	if (!ex->begun) {
		err_set(&err, ERR_INTERNAL, "no answer was made");
		refuse_err(&sink, &err);
	}
}

/* --- FastCGI ----------------------------------------------------------------------------- */

/* What the accept loop waits for. */
struct listener {
	int fd, signal_fd;
	pid_t parent; /* 0: its end means nothing */
};

/* Blocks the signals that mean "stop" for good and makes them readable instead. */
static int block_signals(struct err *err)
{
	sigset_t stop;
	sigemptyset(&stop);
	for (size_t i = 0; i < ARRAY_LEN(stop_signals); i++)
		sigaddset(&stop, stop_signals[i]);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	int fd = signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		err_sys(err, "signalfd");
	return fd;
}

/* A web server that is killed leaves its workers behind, so they look for it. One that leads a
 * session was set up to live without a parent: spawn-fcgi does so and ends at once. */
pid_t fcgi_watched_parent(void)
{
	pid_t parent = getppid();
	return parent == 1 || getsid(0) == getpid() ? 0 : parent;
}

enum wait_result { WAIT_STOP, WAIT_AGAIN, WAIT_CONNECTION };

static enum wait_result wait_for_connection(const struct listener *listener, int timeout_ms)
{
	struct pollfd fds[] = {
		{.fd = listener->signal_fd, .events = POLLIN},
		{.fd = listener->fd, .events = POLLIN},
	};
	if (poll(fds, ARRAY_LEN(fds), timeout_ms) < 0)
		return errno == EINTR ? WAIT_AGAIN : WAIT_STOP;
	if (fds[0].revents != 0 || (fds[1].revents & (POLLNVAL | POLLERR | POLLHUP)) != 0)
		return WAIT_STOP;
	if (fds[1].revents != 0)
		return WAIT_CONNECTION;
	return listener->parent != 0 && getppid() != listener->parent ? WAIT_STOP : WAIT_AGAIN;
}

/* Ends a response whose body could not be completed. An orderly end would have the web server keep
 * the client's connection, and the client wait there for the rest; without one it breaks off. */
static void break_off(FCGX_Request *fcgi)
{
	FCGX_FFlush(fcgi->out);
	FCGX_Free(fcgi, 1);
}

/* Takes one connection and answers its request. */
static void serve_connection(FCGX_Request *fcgi, fcgi_handler *handle, void *ctx)
{
	int rc = FCGX_Accept_r(fcgi);
	if (rc == -EAGAIN)
		return; /* another worker took it, or it ended before its request was complete */
	if (rc < 0) {
		log_event(LOG_WARN, "accept", "rc=%d", rc);
		clock_sleep_ms(100); /* out of descriptors, say: it is still readable */
		return;
	}
	fcntl(fcgi->ipcFd, F_SETFD, FD_CLOEXEC); /* libfcgi accepts without it */
	struct exchange ex = {.fcgi = fcgi, .body_in = -1};
	serve_request(&ex, fcgi->envp, handle, ctx);
	/* A kept connection would own this worker while others wait. */
	fcgi->keepConnection = 0;
	if (ex.body_out > 0)
		break_off(fcgi);
	else
		FCGX_Finish_r(fcgi);
}

/* How a worker serves, and what it still owes. */
struct service {
	fcgi_handler *handle;
	fcgi_after *after;
	void *ctx;
	unsigned owed; /* requests since after was called */
};

static bool is_waiting(int listen_fd)
{
	struct pollfd fds = {.fd = listen_fd, .events = POLLIN};
	return poll(&fds, 1, 0) > 0;
}

static void settle(struct service *service)
{
	if (service->owed > 0 && service->after != NULL)
		service->after(service->ctx);
	service->owed = 0;
}

static void serve_next(FCGX_Request *fcgi, struct service *service, int listen_fd)
{
	serve_connection(fcgi, service->handle, service->ctx);
	service->owed++;
	if (service->owed >= FCGI_AFTER_LATE || !is_waiting(listen_fd))
		settle(service);
}

bool fcgi_serve(int listen_fd, fcgi_handler *handle, fcgi_after *after, void *ctx, struct err *err)
{
	struct service service = {handle, after, ctx, 0};
	FCGX_Request fcgi;
	if (FCGX_Init() != 0 || FCGX_InitRequest(&fcgi, listen_fd, FCGI_FAIL_ACCEPT_ON_INTR) != 0)
		return err_set(err, ERR_UNAVAILABLE, "libfcgi could not be set up");
	AUTO_FD signal_fd = block_signals(err);
	if (signal_fd < 0)
		return false;
	/* All workers wait on one socket: who comes late must not block in accept. */
	int flags = fcntl(listen_fd, F_GETFL);
	if (flags < 0 || fcntl(listen_fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
	    fcntl(listen_fd, F_SETFD, FD_CLOEXEC) != 0)
		return err_sys(err, "set up listening socket");
	struct listener listener = {listen_fd, signal_fd, fcgi_watched_parent()};
	enum wait_result result;
	while ((result = wait_for_connection(
			&listener, service.owed > 0 ? OWED_MS : PARENT_LOOK_MS)) != WAIT_STOP) {
		if (result == WAIT_CONNECTION)
			serve_next(&fcgi, &service, listen_fd);
		else
			settle(&service); /* whoever waited was served by another worker */
	}
	settle(&service);
	return true;
}

/* --- plain CGI --------------------------------------------------------------------------- */

/* A CGI process that ends with its body unread makes Apache lose the answer at random. */
static void drain_stdin(int64_t left)
{
	char sink[16384];
	int64_t max = left < CGI_DRAIN_MAX ? left : CGI_DRAIN_MAX;
	for (ssize_t n; max > 0; max -= n) {
		n = read_stdin(sink, max < (int64_t)sizeof(sink) ? (size_t)max : sizeof(sink));
		if (n <= 0)
			return;
	}
}

/* Lets go of what the web server reads: it takes the end of both for the end of the answer. One
 * that ends this process then (Apache, three seconds later) does no harm. */
static void hang_up(void)
{
	AUTO_FD null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd < 0)
		return;
	dup2(null_fd, STDOUT_FILENO);
	dup2(null_fd, STDERR_FILENO);
}

static bool serve_cgi(fcgi_handler *handle, fcgi_after *after, void *ctx, struct err *err)
{
	AUTO_FD signal_fd = block_signals(err);
	if (signal_fd < 0)
		return false;
	struct exchange ex = {.fcgi = NULL, .body_in = -1};
	serve_request(&ex, environ, handle, ctx);
	drain_stdin(ex.body_in < 0 && ex.chunked ? CGI_DRAIN_MAX : ex.body_in);
	if (after == NULL)
		return true;
	hang_up();
	after(ctx);
	return true;
}

bool fcgi_is_cgi(void)
{
	return FCGX_IsCGI();
}

int fcgi_run(fcgi_handler *handle, fcgi_after *after, void *ctx)
{
	struct err err = ERR_INIT;
	bool ok = FCGX_IsCGI() ? serve_cgi(handle, after, ctx, &err)
			       : fcgi_serve(STDIN_FILENO, handle, after, ctx, &err);
	if (!ok)
		log_err(LOG_ERROR, "worker", &err);
	return ok ? 0 : 1;
}
