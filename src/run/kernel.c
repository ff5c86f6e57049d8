/*
 * The host's end of a run: one loop over the connection and the two pipes. Starting the kernel is
 * in kernel_start.c, what the frames mean in kernel_frame.c.
 */
#include "run/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "run/kernel_frame.h"
#include "run/pipe.h"
#include "run/sock.h"

#define CONNECT_MS 5000 /* for a place in a queue that is full */
#define RETRY_MS   5
#define TAKE_MS    20000 /* for the code to be taken over; the kernel may be busy with imports */
/* The time is kept inside. This much later than its grace it can only be that nobody does. */
#define BACKSTOP_MS 5000
#define TICK_MS     500

#define READ_SIZE   65536 /* a pipe's default size */
#define PACKETS_MAX 16    /* taken at once, so that the pipes get their turn */
/* After the end a child may keep the pipes open: what was in flight is taken, then they are let
 * go. */
#define QUIET_MS     100
#define DRAIN_MAX_MS 1000

#define SESSION_BACKLOG 8 /* one run at a time */
#define NAME_SIZE       64

/* Order of the descriptors of a request. */
enum { PASS_CODE, PASS_STDOUT, PASS_STDERR, PASS_SOCKET, PASS__MAX };

static void session_socket(char name[static NAME_SIZE], const char *session_id)
{
	snprintf(name, NAME_SIZE, "py-%s.sock", session_id);
}

/* --- connections --------------------------------------------------------------------------- */

static int connect_to(const struct runtime_box *box, const char *name, const char *what,
		      struct err *err)
{
	int64_t until_ms = clock_mono_ms() + CONNECT_MS;
	for (;;) {
		int fd = sock_connect(box->run_dir_fd, name, SOCK_SEQPACKET);
		if (fd >= 0)
			return fd;
		if (errno == ENOENT || errno == ECONNREFUSED) {
			err_set(err, ERR_LOST, "%s is not running", what);
			return -1;
		}
		if (errno != EAGAIN && errno != EINTR) {
			err_sys(err, "connect to %s", name);
			return -1;
		}
		if (clock_mono_ms() >= until_ms) {
			err_set(err, ERR_BUSY, "%s does not answer; nothing was run", what);
			err_hint(err, "Send the code again in some seconds.");
			return -1;
		}
		clock_sleep_ms(RETRY_MS);
	}
}

int kernel_connect(const struct runtime_box *box, struct err *err)
{
	return connect_to(box, KERNEL_SOCKET, "Python in the sandbox", err);
}

int kernel_connect_session(const struct runtime_box *box, const char *session_id, struct err *err)
{
	char name[NAME_SIZE];
	session_socket(name, session_id);
	return connect_to(box, name, "the Python session", err);
}

static bool is_after(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

void kernel_discard(const struct runtime_box *box, const struct timespec *seen_at)
{
	struct stat st;
	struct err err = ERR_INIT;
	AUTO_FD lock = lock_open(box->run_dir_fd, KERNEL_LOCK, &err);
	if (lock < 0 || !lock_take(lock, LOCK_EXCLUSIVE, 0, &err))
		return;
	if (fstatat(box->run_dir_fd, KERNEL_SOCKET, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    !is_after(&st.st_ctim, seen_at))
		unlinkat(box->run_dir_fd, KERNEL_SOCKET, 0);
}

void kernel_end_session(const struct runtime_box *box, const char *session_id)
{
	static const char request[] = "{\"end\": true}";
	char name[NAME_SIZE];
	session_socket(name, session_id);
	/* Nobody waits in the queue of a session but its one caller, so one try tells. */
	AUTO_FD fd = sock_connect(box->run_dir_fd, name, SOCK_SEQPACKET);
	unlinkat(box->run_dir_fd, name, 0);
	if (fd >= 0)
		send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* --- the request --------------------------------------------------------------------------- */

static struct json_object *describe(const struct kernel_request *request, bool new_session)
{
	struct json_object *inputs = json_object_new_array();
	struct json_object *object = json_object_new_object();
	for (size_t i = 0; request->inputs && request->inputs[i]; i++)
		json_push_str(inputs, request->inputs[i]);
	json_add_str(object, "cwd", request->cwd);
	json_add_int(object, "timeout_ms", request->timeout_ms);
	json_add_int(object, "grace_ms", RUNTIME_GRACE_MS);
	json_add_int(object, "image_bytes", request->image_bytes);
	json_add_str(object, "save_dir", request->save_dir);
	json_add_bool(object, "guard", request->guard);
	json_add(object, "inputs", inputs);
	json_add_bool(object, "session", new_session);
	json_add_int(object, "idle_ms", request->idle_ms);
	return object;
}

static ssize_t send_with(int fd, const char *text, size_t len, const int *fds, size_t count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(PASS__MAX * sizeof(int))];
	} space = {.bytes = {0}};
	struct iovec iov = {(void *)(uintptr_t)text, len};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = space.bytes,
			     .msg_controllen = CMSG_SPACE(count * sizeof(int))};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	ssize_t n;
	do
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n;
}

/* A packet goes whole or not at all, and a fresh connection has room for it. */
static bool send_request(int fd, struct json_object *request, const int fds[PASS__MAX],
			 struct err *err)
{
	size_t len;
	const char *text = json_text(request, &len);
	if (len > KERNEL_PACKET_MAX) {
		err_set(err, ERR_TOO_LARGE,
			"the names of input files and the paths of a run have %zu bytes together; "
			"the limit is %d; nothing was run",
			len, KERNEL_PACKET_MAX);
		return err_hint(err, "Give fewer files, or files with shorter paths.");
	}
	if (send_with(fd, text, len, fds, fds[PASS_SOCKET] < 0 ? PASS_SOCKET : PASS__MAX) >= 0)
		return true;
	switch (errno) {
	case EPIPE:
	case ECONNRESET:
		return err_set(err, ERR_LOST, "Python went away before the code was run");
	case ETOOMANYREFS: /* as in exchange.c */
		err_set(err, ERR_BUSY,
			"this server has too many descriptors under way; nothing was run");
		return err_hint(err, "Try again in a few seconds. If it stays so, the operator "
				     "should raise the limit of open files.");
	default:
		return err_sys(err, "send a request to Python");
	}
}

/* --- the run ------------------------------------------------------------------------------- */

enum { STREAM_OUT, STREAM_ERR, STREAMS };

struct talk {
	int fd;             /* borrowed */
	int pipes[STREAMS]; /* -1: at its end */
	const struct kernel_request *request;
	struct kernel_run *run;
	struct kernel_frames frames;
	bool gone;          /* the peer is */
	bool counts;        /* the time of the code does */
	bool given_up;      /* it was waited for long enough */
	int64_t give_up_ms; /* for what is waited for now */
	int64_t next_tick_ms;
	kernel_tick *tick; /* NULL: nobody is asked any more */
	void *ctx;
};

static void talk_finish(struct talk *talk)
{
	util_close(&talk->pipes[STREAM_OUT]);
	util_close(&talk->pipes[STREAM_ERR]);
	kernel_frames_finish(&talk->frames);
}
#define AUTO_TALK __attribute__((cleanup(talk_finish))) struct talk

static int64_t earliest(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Our copies of what is passed go at the end: then the run alone holds them, so their end is its
 * end. */
static bool talk_begin(struct talk *talk, int socket_fd, struct err *err)
{
	const struct kernel_request *request = talk->request;
	AUTO_FD code = pipe_sealed("code", request->code, request->code_len, err);
	AUTO_FD out_end = -1;
	AUTO_FD err_end = -1;
	AUTO_JSON *object = describe(request, socket_fd >= 0);
	if (code < 0 || !pipe_make(&talk->pipes[STREAM_OUT], &out_end, err) ||
	    !pipe_make(&talk->pipes[STREAM_ERR], &err_end, err))
		return false;
	const int fds[PASS__MAX] = {code, out_end, err_end, socket_fd};
	return send_request(talk->fd, object, fds, err);
}

static void read_stream(struct talk *talk, int which)
{
	char data[READ_SIZE];
	struct capture *captures[STREAMS] = {&talk->run->out, &talk->run->err};
	ssize_t n = read(talk->pipes[which], data, sizeof(data));
	if (n > 0)
		capture_add(captures[which], data, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		util_close(&talk->pipes[which]);
}

static void read_packets(struct talk *talk)
{
	char packet[KERNEL_PACKET_MAX];
	for (int i = 0; i < PACKETS_MAX && !talk->frames.ended; i++) {
		ssize_t n = recv(talk->fd, packet, sizeof(packet), MSG_DONTWAIT | MSG_TRUNC);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		/* Said once when the peer ended with something of ours unread; what it sent before
		 * is still there. */
		if (n < 0 && errno == ECONNRESET)
			continue;
		talk->gone = n <= 0;
		if (talk->gone)
			return;
		kernel_frames_add(&talk->frames, packet, (size_t)n);
	}
}

/* Waits once, not beyond until_ms, and takes what is there. fd: the connection, or -1 for the pipes
 * alone. False when there was nothing. */
static bool wait_once(struct talk *talk, int fd, int64_t until_ms)
{
	struct pollfd fds[] = {{.fd = talk->pipes[STREAM_OUT], .events = POLLIN},
			       {.fd = talk->pipes[STREAM_ERR], .events = POLLIN},
			       {.fd = fd, .events = POLLIN}};
	int64_t left = until_ms - clock_mono_ms();
	if (poll(fds, ARRAY_LEN(fds), left > 0 ? (int)left : 0) <= 0)
		return false;
	for (int i = 0; i < STREAMS; i++)
		if (fds[i].revents)
			read_stream(talk, i);
	if (fds[STREAMS].revents)
		read_packets(talk);
	return true;
}

/* Whoever asked does not want it any more: that takes as long as it takes, up to the grace. */
static void cancel(struct talk *talk, int64_t now_ms)
{
	talk->tick = NULL;
	talk->run->cancelled = true;
	send(talk->fd, "c", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	talk->give_up_ms = earliest(talk->give_up_ms, now_ms + RUNTIME_GRACE_MS + BACKSTOP_MS);
}

static void ask(struct talk *talk, int64_t now_ms)
{
	if (talk->tick == NULL || now_ms < talk->next_tick_ms)
		return;
	talk->next_tick_ms = now_ms + TICK_MS;
	if (!talk->tick(talk->ctx))
		cancel(talk, now_ms);
}

/* The time of the code begins when it does. */
static void begin_time(struct talk *talk, int64_t now_ms)
{
	if (talk->counts || !talk->run->started)
		return;
	talk->counts = true;
	if (!talk->run->cancelled)
		talk->give_up_ms =
			now_ms + talk->request->timeout_ms + RUNTIME_GRACE_MS + BACKSTOP_MS;
}

/* From here on the peer cannot say that it begins, so it does not; what it said before counts. */
static void give_up(struct talk *talk)
{
	talk->run->cancelled = true;
	talk->given_up = true;
	shutdown(talk->fd, SHUT_RD);
	read_packets(talk);
}

static void talk_to_end(struct talk *talk)
{
	for (;;) {
		wait_once(talk, talk->fd,
			  earliest(talk->give_up_ms, talk->tick ? talk->next_tick_ms : INT64_MAX));
		int64_t now_ms = clock_mono_ms();
		if (talk->frames.ended || talk->gone)
			return;
		begin_time(talk, now_ms);
		if (now_ms >= talk->give_up_ms) {
			give_up(talk);
			return;
		}
		ask(talk, now_ms);
	}
}

static void drain(struct talk *talk)
{
	int64_t now_ms = clock_mono_ms();
	int64_t end_ms = now_ms + DRAIN_MAX_MS, quiet_ms = now_ms + QUIET_MS;
	while ((talk->pipes[STREAM_OUT] >= 0 || talk->pipes[STREAM_ERR] >= 0) &&
	       now_ms < quiet_ms && now_ms < end_ms) {
		bool output = wait_once(talk, -1, earliest(quiet_ms, end_ms));
		now_ms = clock_mono_ms();
		if (output)
			quiet_ms = now_ms + QUIET_MS;
	}
}

/* False when the code was not taken over, which is the peer's word: it says so before the code can
 * do anything. */
static bool conclude(struct talk *talk, struct err *err)
{
	struct kernel_run *run = talk->run;
	if (!talk->frames.ended && !run->started && talk->gone && !run->cancelled)
		return err_set(err, ERR_LOST, "Python went away before the code was run");
	if (!talk->frames.ended && !run->started && talk->given_up) {
		run->not_taken = run->duration_ms >= TAKE_MS;
		return err_set(err, ERR_BUSY,
			       "Python in the sandbox did not take the code within %d seconds; it "
			       "was not run",
			       (int)(run->duration_ms / 1000));
	}
	if (!talk->frames.ended)
		run->end = KERNEL_END_LOST;
	if (run->end == KERNEL_END_EXCEPTION && run->error == NULL)
		run->error = json_literal("{\"type\": \"Exception\", \"message\": \"\", "
					  "\"traceback\": \"\"}");
	return true;
}

static bool run_over(struct talk *talk, int socket_fd, struct err *err)
{
	int64_t start_ms = clock_mono_ms();
	if (!talk_begin(talk, socket_fd, err))
		return false;
	talk->give_up_ms = start_ms + TAKE_MS;
	talk->next_tick_ms = start_ms + TICK_MS;
	talk_to_end(talk);
	talk->run->duration_ms = clock_mono_ms() - start_ms;
	drain(talk);
	return conclude(talk, err);
}

bool kernel_run(int fd, const struct runtime_box *box, const struct kernel_request *request,
		const char *new_session_id, kernel_tick *tick, void *ctx, struct kernel_run *run,
		struct err *err)
{
	AUTO_FD socket_fd = -1;
	char name[NAME_SIZE];
	if (new_session_id) {
		session_socket(name, new_session_id);
		socket_fd = sock_bind(box->run_dir_fd, name, SOCK_SEQPACKET, SESSION_BACKLOG, err);
		if (socket_fd < 0)
			return false;
	}
	AUTO_TALK talk = {.fd = fd,
			  .pipes = {-1, -1},
			  .request = request,
			  .run = run,
			  .tick = tick,
			  .ctx = ctx};
	kernel_frames_init(&talk.frames, run, request->image_bytes);
	bool ok = run_over(&talk, socket_fd, err);
	/* Nobody is to find a session that is none. */
	if (new_session_id && (!ok || run->state != KERNEL_STATE_KEPT))
		unlinkat(box->run_dir_fd, name, 0);
	return ok;
}
