/* The adapter against a web server played by this test: a worker is forked on a Unix socket and
 * spoken to record by record, so that it meets what servers do when things go wrong. */
#include "unit.h"

#include <errno.h>
#include <fcgiapp.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/proc.h"
#include "web/fcgi.h"

enum { BEGIN_REQUEST = 1, ABORT_REQUEST = 2, END_REQUEST = 3, PARAMS = 4, STDIN = 5, STDOUT = 6 };

static char *dir;
static char socket_path[64];
static int listen_fd;
static pid_t worker;

/* --- the application: what it does is told by the first path segment ------------------------- */

static void answer(const struct http_sink *sink, const struct buf *text)
{
	const struct http_header type = {"content-type", "text/plain"};
	sink->begin(sink->ctx, 200, &type, 1, (int64_t)text->len);
	sink->write(sink->ctx, buf_str(text), text->len);
}

static void serve_echo(const struct http_request *request, const struct http_sink *sink)
{
	AUTO_BUF text = BUF_INIT;
	buf_printf(&text, "%s", request->method);
	for (size_t i = 0; i < request->segment_count; i++)
		buf_printf(&text, "/%s", request->segments[i]);
	buf_printf(&text, "?%s host=%s from=%s length=%lld%s\n", request->query, request->host,
		   request->remote_addr, (long long)request->content_length,
		   request->chunked ? " chunked" : "");
	for (size_t i = 0; i < request->header_count; i++)
		buf_printf(&text, "%s: %s\n", request->headers[i].name, request->headers[i].value);
	answer(sink, &text);
}

/* Says how much of the body came, whether it was as sent, and how it ended. */
static void serve_count(const struct http_request *request, const struct http_sink *sink)
{
	char piece[5000];
	int64_t total = 0;
	bool intact = true;
	ssize_t n;
	while ((n = request->read_body(request->body_ctx, piece, sizeof(piece))) > 0) {
		for (ssize_t i = 0; i < n; i++)
			intact = intact && piece[i] == 'a' + (total + i) % 26;
		total += n;
	}
	AUTO_BUF text = BUF_INIT;
	buf_printf(&text, "%lld bytes, %s, end %zd", (long long)total,
		   intact ? "intact" : "damaged", n);
	answer(sink, &text);
}

/* Streams until the client has gone and leaves a file that says how that was seen. */
static void serve_stream(const struct http_sink *sink)
{
	sink->begin(sink->ctx, 200, NULL, 0, -1);
	const char *seen = "never";
	for (int i = 0; i < 500; i++) {
		if (!sink->write(sink->ctx, "tick\n", 5))
			seen = "write";
		else if (sink->client_gone(sink->ctx))
			seen = "look";
		else {
			clock_sleep_ms(10);
			continue;
		}
		break;
	}
	AUTO_FD fd = open("gone", O_WRONLY | O_CREAT, 0600);
	(void)!write(fd, seen, strlen(seen));
}

/* Lasts until the process is told to stop, or 5 s. */
static void serve_until_stopped(const struct http_sink *sink)
{
	sink->begin(sink->ctx, 200, NULL, 0, -1);
	sink->write(sink->ctx, "waits\n", 6);
	for (int i = 0; i < 500 && !sink->stopping(sink->ctx); i++)
		clock_sleep_ms(10);
	const char *end = sink->stopping(sink->ctx) ? "stopped" : "late";
	sink->write(sink->ctx, end, strlen(end));
}

/* Lists descriptors that a child would inherit. */
static void serve_descriptors(const struct http_sink *sink)
{
	AUTO_BUF text = BUF_INIT;
	for (int fd = 0; fd < 256; fd++) {
		struct stat st;
		int flags = fcntl(fd, F_GETFD);
		if (flags >= 0 && (flags & FD_CLOEXEC) == 0 && fstat(fd, &st) == 0 &&
		    S_ISSOCK(st.st_mode))
			buf_printf(&text, "%d ", fd);
	}
	buf_puts(&text, "end");
	answer(sink, &text);
}

static void serve_forged(const struct http_sink *sink)
{
	const struct http_header fields[] = {{"x-name", "a\r\nset-cookie: b"}};
	sink->begin(sink->ctx, 200, fields, 1, 5);
	sink->write(sink->ctx, "hello", 5);
}

static void serve_long(const struct http_sink *sink)
{
	char value[3600];
	memset(value, 'v', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	const struct http_header field = {"x-long", value};
	sink->begin(sink->ctx, 200, &field, 1, 0);
}

static void serve_short(const struct http_sink *sink)
{
	sink->begin(sink->ctx, 200, NULL, 0, 100);
	sink->write(sink->ctx, "only this", 9);
}

static void serve(void *ctx, const struct http_request *request, const struct http_sink *sink)
{
	ck_assert_ptr_eq(ctx, &worker);
	const char *what = request->segment_count > 0 ? request->segments[0] : "";
	if (strcmp(what, "count") == 0)
		serve_count(request, sink);
	else if (strcmp(what, "stream") == 0)
		serve_stream(sink);
	else if (strcmp(what, "until-stopped") == 0)
		serve_until_stopped(sink);
	else if (strcmp(what, "descriptors") == 0)
		serve_descriptors(sink);
	else if (strcmp(what, "forged") == 0)
		serve_forged(sink);
	else if (strcmp(what, "long") == 0)
		serve_long(sink);
	else if (strcmp(what, "short") == 0)
		serve_short(sink);
	else if (strcmp(what, "unmodified") == 0)
		sink->begin(sink->ctx, 304, NULL, 0, 0);
	else if (strcmp(what, "silent") != 0)
		serve_echo(request, sink);
}

/* Where the work after an answer leaves its mark: one line for each time. Not set: there is none.
 */
static const char *after_path;
static int after_takes_ms;

static void after_answer(void *ctx)
{
	ck_assert_ptr_eq(ctx, &worker);
	clock_sleep_ms(after_takes_ms);
	int fd = open(after_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "done\n", 5), 5);
	close(fd);
}

static fcgi_after *after; /* NULL but where a test sets it */

/* How often it was done, once it was done at least so often or a second has gone. */
static int after_count(int wanted)
{
	struct stat st = {.st_size = 0};
	for (int i = 0; i < 100; i++) {
		if (stat(after_path, &st) == 0 && st.st_size >= wanted * 5)
			break;
		clock_sleep_ms(10);
	}
	return (int)(st.st_size / 5);
}

/* --- the web server ---------------------------------------------------------------------- */

static pid_t start_worker(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		struct err err = ERR_INIT;
		_exit(fcgi_serve(listen_fd, serve, after, &worker, &err) ? 0 : 1);
	}
	return pid;
}

static void start(void)
{
	dir = unit_tempdir();
	ck_assert_int_eq(chdir(dir), 0);
	snprintf(socket_path, sizeof(socket_path), "%s/sock", dir);
	ck_assert_int_eq(FCGX_Init(), 0);
	listen_fd = FCGX_OpenSocket(socket_path, 16);
	ck_assert_int_ge(listen_fd, 0);
	worker = start_worker();
}

/* Ends a worker by TERM; it must obey soon, and well. */
static void ck_ends(pid_t pid)
{
	int status = -1;
	ck_assert_int_eq(proc_wait(pid, 3000, &status), 1);
	ck_assert_int_eq(status, 0);
}

static void stop(void)
{
	kill(worker, SIGTERM);
	ck_ends(worker);
	close(listen_fd);
	ck_assert_int_eq(chdir("/"), 0);
	unit_tempdir_remove(dir);
}

static int dial(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	memcpy(address.sun_path, socket_path, sizeof(socket_path));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void put_record(int fd, int type, const void *data, size_t len)
{
	unsigned char head[8] = {1, (unsigned char)type,       0,
				 1, (unsigned char)(len >> 8), (unsigned char)len};
	struct err err = ERR_INIT;
	ck_ok(fs_write_all(fd, head, 8, &err) && fs_write_all(fd, data, len, &err), err);
}

/* The lengths of FastCGI: one byte below 128, else four with the top bit set. */
static void put_length(struct buf *out, size_t len)
{
	if (len >= 128) {
		buf_putc(out, (char)(len >> 24 | 0x80));
		buf_putc(out, (char)(len >> 16));
		buf_putc(out, (char)(len >> 8));
	}
	buf_putc(out, (char)len);
}

/* Opens a request: parameters as NAME, value, ..., NULL. */
static int open_request(const char *method, const char *uri, const char *const *params)
{
	const char *const own[] = {"REQUEST_METHOD", method, "REQUEST_URI", uri, NULL};
	AUTO_BUF block = BUF_INIT;
	for (int i = 0; i < 2; i++) {
		for (const char *const *p = i == 0 ? own : params; p != NULL && *p != NULL;
		     p += 2) {
			put_length(&block, strlen(p[0]));
			put_length(&block, strlen(p[1]));
			buf_puts(&block, p[0]);
			buf_puts(&block, p[1]);
		}
	}
	int fd = dial();
	put_record(fd, BEGIN_REQUEST, "\0\1\1\0\0\0\0\0", 8); /* responder, keep-conn */
	put_record(fd, PARAMS, block.data, block.len);
	put_record(fd, PARAMS, "", 0);
	return fd;
}

static bool get_all(int fd, void *data, size_t len)
{
	for (char *p = data; len > 0;) {
		ssize_t n = read(fd, p, len);
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

/* One record; its type, or 0 at the end. STDOUT content is appended. */
static int get_record(int fd, struct buf *out)
{
	unsigned char head[8];
	if (!get_all(fd, head, 8))
		return 0;
	size_t len = (size_t)head[4] << 8 | head[5], pad = head[6];
	char *to = buf_reserve(out, len + pad);
	if (!get_all(fd, to, len + pad))
		return 0;
	if (head[1] == STDOUT)
		out->len += len;
	out->data[out->len] = '\0';
	return head[1];
}

/* Records up to one of type END_REQUEST or the end of the connection, which is 0. */
static int get_response(int fd, struct buf *out)
{
	struct timeval limit = {.tv_sec = 10};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	buf_clear(out);
	int type;
	while ((type = get_record(fd, out)) != 0 && type != END_REQUEST)
		continue;
	return type;
}

/* The whole response, to the end of the request; closes the connection. */
static void finish(int fd, struct buf *out)
{
	ck_assert_int_eq(get_response(fd, out), END_REQUEST);
	/* Whatever the server asked for, the connection is not kept. */
	ck_assert_int_eq(get_record(fd, out), 0);
	close(fd);
}

static void ask(const char *method, const char *uri, const char *const *params, struct buf *out)
{
	int fd = open_request(method, uri, params);
	put_record(fd, STDIN, "", 0);
	finish(fd, out);
}

static void put_body(int fd, int64_t from, int64_t to)
{
	char piece[4000];
	while (from < to) {
		int64_t n = to - from < (int64_t)sizeof(piece) ? to - from : (int64_t)sizeof(piece);
		for (int64_t i = 0; i < n; i++)
			piece[i] = (char)('a' + (from + i) % 26);
		put_record(fd, STDIN, piece, (size_t)n);
		from += n;
	}
}

static void ck_has(const struct buf *out, const char *words)
{
	ck_assert_msg(strstr(buf_str(out), words) != NULL, "no \"%s\" in: %s", words, buf_str(out));
}

static void ck_has_not(const struct buf *out, const char *words)
{
	ck_assert_msg(strstr(buf_str(out), words) == NULL, "\"%s\" in: %s", words, buf_str(out));
}

/* --- requests ---------------------------------------------------------------------------- */

TEST(a_request_arrives_with_all_its_headers)
{
	start();
	const char *const params[] = {"HTTP_HOST",
				      "h:1",
				      "REMOTE_ADDR",
				      "192.0.2.1",
				      "HTTP_MCP_PROTOCOL_VERSION",
				      "2025-11-25",
				      "HTTP_X_TWICE",
				      "one",
				      "HTTP_X_TWICE",
				      "two=2",
				      "HTTP_PROXY",
				      "http://evil",
				      "CONTENT_TYPE",
				      "text/plain",
				      "CONTENT_LENGTH",
				      "0",
				      "HTTP_EMPTY",
				      "",
				      "SCRIPT_NAME",
				      "/wrong",
				      NULL};
	AUTO_BUF out = BUF_INIT;
	ask("POST", "/dir/mcp?a=%20b", params, &out);
	ck_has(&out, "Status: 200 OK\r\n");
	ck_has(&out, "\r\n\r\nPOST/mcp?a=%20b host=h:1 from=192.0.2.1 length=0\n");
	ck_has(&out, "\nmcp-protocol-version: 2025-11-25\n");
	ck_has(&out, "\nx-twice: one\nx-twice: two=2\n");
	ck_has(&out, "\ncontent-type: text/plain\n");
	ck_has(&out, "\nempty: \n");
	ck_has_not(&out, "proxy: ");
	ck_has_not(&out, "wrong");
	stop();
}
TEST_END

TEST(a_redirected_authorization_counts_when_there_is_no_other)
{
	start();
	AUTO_BUF out = BUF_INIT;
	const char *const redirected[] = {"REDIRECT_HTTP_AUTHORIZATION", "Bearer r", NULL};
	ask("GET", "/x", redirected, &out);
	ck_has(&out, "\nauthorization: Bearer r\n");
	const char *const both[] = {"REDIRECT_HTTP_AUTHORIZATION", "Bearer r", "HTTP_AUTHORIZATION",
				    "Bearer a", NULL};
	ask("GET", "/x", both, &out);
	ck_has(&out, "\nauthorization: Bearer a\n");
	ck_has_not(&out, "Bearer r");
	stop();
}
TEST_END

TEST(a_malformed_uri_or_length_is_answered_400)
{
	start();
	AUTO_BUF out = BUF_INIT;
	ask("GET", "/a%zz", NULL, &out);
	ck_has(&out, "Status: 400 Bad Request\r\n");
	ck_has(&out, "\"error\":\"invalid\"");
	static const char *const lengths[] = {"-1", "1x", "99999999999999999999", " 1"};
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		const char *const params[] = {"CONTENT_LENGTH", lengths[i], NULL};
		ask("POST", "/x", params, &out);
		ck_has(&out, "Status: 400 Bad Request\r\n");
	}
	stop();
}
TEST_END

/* --- bodies ------------------------------------------------------------------------------ */

/* Sends `sent` bytes under a Content-Length (NULL: none) to /count. */
static int send_body(const char *length, int64_t sent)
{
	const char *const params[] = {length == NULL ? NULL : "CONTENT_LENGTH", length, NULL};
	int fd = open_request("PUT", "/count", params);
	put_body(fd, 0, sent);
	return fd;
}

TEST(a_body_is_read_to_its_length_or_to_its_end)
{
	static const struct {
		const char *length;
		int64_t sent;
		const char *expected;
	} cases[] = {
		{"100000", 100000, "100000 bytes, intact, end 0"},
		{"1", 1, "1 bytes, intact, end 0"},
		{"0", 0, "0 bytes, intact, end 0"},
		{"10", 5000, "10 bytes, intact, end 0"}, /* more than announced is left alone */
		{NULL, 100000, "100000 bytes, intact, end 0"},
		{"", 100000, "100000 bytes, intact, end 0"},
		{NULL, 0, "0 bytes, intact, end 0"},
	};
	start();
	AUTO_BUF out = BUF_INIT;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int fd = send_body(cases[i].length, cases[i].sent);
		put_record(fd, STDIN, "", 0);
		finish(fd, &out);
		ck_has(&out, cases[i].expected);
	}
	stop();
}
TEST_END

TEST(a_body_that_ends_early_is_told_from_a_whole_one)
{
	start();
	AUTO_BUF out = BUF_INIT;
	int fd = send_body("2000", 1000);
	put_record(fd, STDIN, "", 0);
	finish(fd, &out);
	ck_has(&out, "1000 bytes, intact, end -1");
	fd = send_body("2000", 0);
	put_record(fd, STDIN, "", 0);
	finish(fd, &out);
	ck_has(&out, "0 bytes, intact, end -1");
	stop();
}
TEST_END

TEST(a_body_that_follows_a_false_end_is_read_whole)
{
	static const int64_t sizes[] = {1000, 100000};
	start();
	AUTO_BUF out = BUF_INIT;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		char length[16];
		snprintf(length, sizeof(length), "%d", (int)sizes[i]);
		int fd = send_body(length, 0);
		put_record(fd, STDIN, "", 0);
		put_body(fd, 0, sizes[i]);
		put_record(fd, STDIN, "", 0);
		finish(fd, &out);
		snprintf(length, sizeof(length), "%d bytes", (int)sizes[i]);
		ck_has(&out, length);
		ck_has(&out, "intact, end 0");
	}
	stop();
}
TEST_END

TEST(an_aborted_and_a_broken_body_do_not_stop_the_worker)
{
	start();
	AUTO_BUF out = BUF_INIT;
	int fd = send_body("2000", 1000);
	put_record(fd, ABORT_REQUEST, "", 0);
	while (get_record(fd, &out) != 0)
		continue;
	close(fd);
	ck_has_not(&out, "end 0");
	close(send_body("2000", 1000));
	close(dial());
	ask("GET", "/x", NULL, &out);
	ck_has(&out, "GET/x?");
	stop();
}
TEST_END

TEST(an_unread_body_does_not_stand_in_the_way_of_the_answer)
{
	start();
	AUTO_BUF out = BUF_INIT;
	const char *const params[] = {"CONTENT_LENGTH", "60000", NULL};
	int fd = open_request("PUT", "/x", params);
	put_body(fd, 0, 60000);
	put_record(fd, STDIN, "", 0);
	finish(fd, &out);
	ck_has(&out, "PUT/x?");
	stop();
}
TEST_END

/* --- signals ----------------------------------------------------------------------------- */

TEST(a_stop_in_the_middle_of_a_request_lets_it_finish)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		start();
		AUTO_BUF out = BUF_INIT;
		int fd = send_body("2000", 1000);
		clock_sleep_ms(50); /* the worker waits for the rest */
		kill(worker, signals[i]);
		clock_sleep_ms(50);
		put_body(fd, 1000, 2000);
		put_record(fd, STDIN, "", 0);
		finish(fd, &out);
		ck_has(&out, "2000 bytes, intact, end 0");
		ck_ends(worker);
		worker = start_worker();
		ask("GET", "/x", NULL, &out); /* it is ready, so it can be stopped */
		stop();
	}
}
TEST_END

TEST(a_request_that_waits_for_events_sees_the_stop_and_ends_in_good_order)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		start();
		AUTO_BUF out = BUF_INIT;
		int fd = open_request("GET", "/until-stopped", NULL);
		put_record(fd, STDIN, "", 0);
		ck_assert_int_eq(get_record(fd, &out), STDOUT);
		int64_t began_ms = clock_mono_ms();
		kill(worker, signals[i]);
		finish(fd, &out);
		ck_has(&out, "stopped");
		ck_ends(worker);
		ck_assert_int_lt(clock_mono_ms() - began_ms, 2000);
		worker = start_worker();
		ask("GET", "/x", NULL, &out);
		stop();
	}
}
TEST_END

TEST(workers_on_one_socket_share_the_requests_and_end_at_once)
{
	start();
	pid_t others[3];
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		others[i] = start_worker();
	AUTO_BUF out = BUF_INIT;
	for (int i = 0; i < 100; i++) {
		int first = open_request("GET", "/x", NULL);
		ask("GET", "/y", NULL, &out);
		ck_has(&out, "GET/y?");
		put_record(first, STDIN, "", 0);
		finish(first, &out);
		ck_has(&out, "GET/x?");
	}
	/* A worker that lost the race for a connection would wait in accept, deaf to a stop. */
	ck_assert((fcntl(listen_fd, F_GETFL) & O_NONBLOCK) != 0);
	int64_t before = clock_mono_ms();
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		kill(others[i], SIGTERM);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		ck_ends(others[i]);
	ck_assert_int_lt(clock_mono_ms() - before, 1000);
	stop();
}
TEST_END

/* --- responses --------------------------------------------------------------------------- */

TEST(a_response_has_its_length_and_head_has_no_body)
{
	start();
	AUTO_BUF get = BUF_INIT, head = BUF_INIT;
	ask("GET", "/count", NULL, &get);
	ck_has(&get, "Content-Length: 22\r\n\r\n0 bytes, intact, end 0");
	ask("HEAD", "/count", NULL, &head);
	ck_has(&head, "Content-Length: 22\r\n\r\n");
	ck_assert_ptr_eq(strstr(head.data, "\r\n\r\n") + 4, head.data + head.len);
	ask("GET", "/unmodified", NULL, &get);
	ck_has(&get, "Status: 304 Not Modified\r\n");
	ck_has_not(&get, "Content-Length");
	stop();
}
TEST_END

/* An orderly end would have the web server keep the client waiting for the rest. */
TEST(a_body_that_could_not_be_completed_ends_without_the_end_of_the_request)
{
	start();
	AUTO_BUF out = BUF_INIT;
	for (int i = 0; i < 2; i++) { /* and the worker goes on */
		int fd = open_request("GET", "/short", NULL);
		put_record(fd, STDIN, "", 0);
		int64_t before = clock_mono_ms();
		ck_assert_int_eq(get_response(fd, &out), 0);
		ck_assert_int_lt(clock_mono_ms() - before, 1000);
		close(fd);
		ck_has(&out, "Content-Length: 100\r\n\r\nonly this");
		ask("HEAD", "/short", NULL, &out);
		ck_has(&out, "Content-Length: 100\r\n\r\n");
	}
	stop();
}
TEST_END

TEST(no_handler_can_forge_a_header_or_answer_nothing)
{
	start();
	AUTO_BUF out = BUF_INIT;
	ask("GET", "/forged", NULL, &out);
	ck_has(&out, "Status: 500 Internal Server Error\r\n");
	ck_has_not(&out, "set-cookie");
	ck_has_not(&out, "hello");
	ask("GET", "/long", NULL, &out);
	ck_has(&out, "Status: 500 Internal Server Error\r\n");
	ck_assert_uint_lt(out.len, 3500);
	ask("GET", "/silent", NULL, &out);
	ck_has(&out, "Status: 500 Internal Server Error\r\n");
	ck_has(&out, "\"error\":\"internal\"");
	stop();
}
TEST_END

TEST(a_stream_goes_out_at_each_write_and_a_lost_client_is_noticed)
{
	start();
	AUTO_BUF out = BUF_INIT;
	int fd = open_request("GET", "/stream", NULL);
	put_record(fd, STDIN, "", 0);
	int64_t before = clock_mono_ms();
	while (strstr(buf_str(&out), "tick\ntick") == NULL)
		ck_assert_int_eq(get_record(fd, &out), STDOUT);
	ck_assert_int_lt(clock_mono_ms() - before, 1000);
	ck_has_not(&out, "Content-Length");
	close(fd);
	ask("GET", "/x", NULL, &out); /* the worker is free again */
	ck_has(&out, "GET/x?");
	char seen[16] = "";
	AUTO_FD gone = open("gone", O_RDONLY);
	ck_assert_int_gt(read(gone, seen, sizeof(seen) - 1), 0);
	ck_assert_str_ne(seen, "never");
	stop();
}
TEST_END

TEST(no_socket_is_left_for_children)
{
	start();
	AUTO_BUF out = BUF_INIT;
	ask("GET", "/descriptors", NULL, &out);
	ck_has(&out, "\r\n\r\nend");
	stop();
}
TEST_END

TEST(what_is_left_to_do_is_done_after_the_answer_was_sent)
{
	after = after_answer;
	after_path = "after";
	after_takes_ms = 300;
	start();
	int64_t begun_ms = clock_mono_ms();
	AUTO_BUF out = BUF_INIT;
	ask("GET", "/x", NULL, &out);
	ck_has(&out, "GET/x?");
	ck_assert_int_lt(clock_mono_ms() - begun_ms, 250);
	ck_assert_int_eq(after_count(1), 1);
	buf_clear(&out);
	ask("GET", "/y", NULL, &out);
	ck_assert_int_eq(after_count(2), 2);
	clock_sleep_ms(200); /* longer than it waits when something is owed */
	ck_assert_int_eq(after_count(3), 2);
	stop();
}
TEST_END

TEST(requests_that_wait_come_before_what_is_left_to_do)
{
	after = after_answer;
	after_path = "after";
	after_takes_ms = 0;
	start();
	kill(worker, SIGSTOP);
	int fds[3];
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		fds[i] = open_request("GET", "/x", NULL);
		put_record(fds[i], STDIN, "", 0);
	}
	kill(worker, SIGCONT);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		AUTO_BUF out = BUF_INIT;
		finish(fds[i], &out);
		ck_has(&out, "GET/x?");
	}
	ck_assert_int_eq(after_count(1), 1);
	stop();
}
TEST_END

/* --- plain CGI --------------------------------------------------------------------------- */

extern char **environ;

static int64_t cgi_answer_ms; /* when the last one's answer was complete */

/* Runs a CGI process with this environment and body; its output is appended. */
static void run_cgi(char **env, const char *body, size_t len, struct buf *out)
{
	int in[2], result[2];
	ck_assert_int_eq(pipe2(in, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(result, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(in[0], 0);
		dup2(result[1], 1);
		close(in[0]);
		close(in[1]);
		close(result[0]);
		close(result[1]);
		environ = env;
		_exit(fcgi_run(serve, after, &worker));
	}
	close(in[0]);
	close(result[1]);
	struct err err = ERR_INIT;
	ck_ok(fs_write_all(in[1], body, len, &err), err);
	close(in[1]);
	ck_ok(fs_read_all(result[0], 1 << 20, out, &err), err);
	cgi_answer_ms = clock_mono_ms();
	close(result[0]);
	ck_ends(pid);
}

TEST(the_same_program_serves_plain_cgi)
{
	char *whole[] = {(char *)"REQUEST_METHOD=POST", (char *)"REQUEST_URI=/count",
			 (char *)"CONTENT_LENGTH=26", NULL};
	AUTO_BUF out = BUF_INIT;
	run_cgi(whole, "abcdefghijklmnopqrstuvwxyz", 26, &out);
	ck_has(&out, "Status: 200 OK\r\n");
	ck_has(&out, "26 bytes, intact, end 0");
	buf_clear(&out);
	run_cgi(whole, "abc", 3, &out);
	ck_has(&out, "3 bytes, intact, end -1");

	/* Nothing here can tell the server of a cut; what there is comes. */
	char *cut[] = {(char *)"REQUEST_METHOD=GET", (char *)"REQUEST_URI=/short", NULL};
	buf_clear(&out);
	run_cgi(cut, "", 0, &out);
	ck_has(&out, "Content-Length: 100\r\n\r\nonly this");

	/* A body that the handler leaves is taken all the same: 200,000 bytes do not fit into a
	 * pipe, so writing them would fail. */
	char *unread[] = {(char *)"REQUEST_METHOD=POST", (char *)"REQUEST_URI=/x",
			  (char *)"CONTENT_LENGTH=200000", (char *)"HTTP_HOST=h", NULL};
	AUTO_FREE char *body = xcalloc(1, 200000);
	buf_clear(&out);
	run_cgi(unread, body, 200000, &out);
	ck_has(&out, "POST/x? host=h");
}
TEST_END

TEST(a_web_server_does_not_wait_for_what_is_left_to_do)
{
	char *env[] = {(char *)"REQUEST_METHOD=GET", (char *)"REQUEST_URI=/x", NULL};
	char *at = unit_tempdir();
	AUTO_FREE char *path = xasprintf("%s/after", at);
	after = after_answer;
	after_path = path;
	after_takes_ms = 700;
	AUTO_BUF out = BUF_INIT;
	int64_t begun_ms = clock_mono_ms();
	cgi_answer_ms = 0;
	run_cgi(env, "", 0, &out);
	ck_has(&out, "GET/x?");
	ck_assert_int_lt(cgi_answer_ms - begun_ms, 500);
	ck_assert_int_eq(after_count(1), 1);
	unit_tempdir_remove(at);
}
TEST_END

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	const TTest *const tests[] = {
		a_request_arrives_with_all_its_headers,
		a_redirected_authorization_counts_when_there_is_no_other,
		a_malformed_uri_or_length_is_answered_400,
		a_body_is_read_to_its_length_or_to_its_end,
		a_body_that_ends_early_is_told_from_a_whole_one,
		a_body_that_follows_a_false_end_is_read_whole,
		an_aborted_and_a_broken_body_do_not_stop_the_worker,
		an_unread_body_does_not_stand_in_the_way_of_the_answer,
		a_stop_in_the_middle_of_a_request_lets_it_finish,
		a_request_that_waits_for_events_sees_the_stop_and_ends_in_good_order,
		workers_on_one_socket_share_the_requests_and_end_at_once,
		a_response_has_its_length_and_head_has_no_body,
		a_body_that_could_not_be_completed_ends_without_the_end_of_the_request,
		no_handler_can_forge_a_header_or_answer_nothing,
		a_stream_goes_out_at_each_write_and_a_lost_client_is_noticed,
		no_socket_is_left_for_children,
		what_is_left_to_do_is_done_after_the_answer_was_sent,
		requests_that_wait_come_before_what_is_left_to_do,
		the_same_program_serves_plain_cgi,
		a_web_server_does_not_wait_for_what_is_left_to_do,
	};
	return unit_run("fcgi", tests, ARRAY_LEN(tests));
}
