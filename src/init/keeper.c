/*
 * A keeper: one connection, one command. It is a process of its own, so it may wait and fail. All
 * signals are blocked here; only KILL and STOP from inside reach it, and PID 1 notices both.
 */
#include "init/init.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define REQUEST_MS   5000  /* for a whole request to arrive */
#define EXEC_MS      10000 /* for exec to go through: it reads the program from a disk */
#define PAUSE_MIN_MS 2     /* between passes of the kill loop; longer while somebody hangs in */
#define PAUSE_MAX_MS 128   /* the kernel */

struct keeper {
	int conn_fd, signal_fd;
	pid_t command;
	bool ended;
	int status;
};

/* Untouched, hence free, in PID 1. */
static unsigned char request_body[WIRE_BODY_MAX];
static const char *request_words[WIRE_WORDS_MAX + 2];

static int poll_until(struct pollfd *fds, nfds_t count, int64_t until_ms)
{
	int64_t left = until_ms - init_now_ms();
	if (left < 0)
		left = 0;
	return poll(fds, count, left > INT_MAX ? INT_MAX : (int)left);
}

/* Receives exactly len bytes, with the descriptors when control is not NULL. */
static bool receive(int conn_fd, unsigned char *to, size_t len, struct msghdr *control,
		    int64_t until_ms)
{
	while (len > 0) {
		struct pollfd readable = {.fd = conn_fd, .events = POLLIN};
		if (poll_until(&readable, 1, until_ms) <= 0)
			return false;
		struct iovec iov = {to, len};
		struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
		if (control) {
			msg.msg_control = control->msg_control;
			msg.msg_controllen = control->msg_controllen;
		}
		ssize_t n = recvmsg(conn_fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0 || (msg.msg_flags & MSG_CTRUNC))
			return false;
		if (control) {
			control->msg_controllen = msg.msg_controllen;
			control = NULL; /* they come with the first byte */
		}
		to += n;
		len -= (size_t)n;
	}
	return true;
}

static bool take_descriptors(struct msghdr *control, int fds[WIRE_FDS])
{
	struct cmsghdr *c = CMSG_FIRSTHDR(control);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(WIRE_FDS * sizeof(int)))
		return false;
	memcpy(fds, CMSG_DATA(c), WIRE_FDS * sizeof(int));
	return true;
}

/* Whatever a bad request brought along is closed with this process. */
static bool read_request(int conn_fd, struct wire_request *request, int fds[WIRE_FDS])
{
	int64_t until_ms = init_now_ms() + REQUEST_MS;
	unsigned char head[WIRE_HEAD_SIZE];
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(WIRE_FDS * sizeof(int))];
	} space;
	struct msghdr control = {.msg_control = space.bytes, .msg_controllen = sizeof(space.bytes)};
	if (!receive(conn_fd, head, sizeof(head), &control, until_ms) ||
	    !take_descriptors(&control, fds))
		return false;
	size_t len = wire_body_length(head);
	return len > 0 && receive(conn_fd, request_body, len, NULL, until_ms) &&
	       wire_get_request(request_body, len, request, request_words) == WIRE_OK;
}

/* False once no child is left. */
static bool reap(struct keeper *keeper)
{
	init_drain(keeper->signal_fd);
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);
		if (pid == keeper->command) {
			keeper->ended = true;
			keeper->status = status;
		}
		if (pid == 0)
			return true;
		if (pid < 0 && errno != EINTR)
			return false;
	}
}

/* Ends all descendants, whatever sessions and groups they made: orphans come to us, the subreaper,
 * so having no child left means that nobody is left. */
static void end_all(struct keeper *keeper, int64_t grace_ms)
{
	struct pollfd child = {.fd = keeper->signal_fd, .events = POLLIN};
	int64_t until_ms = init_now_ms() + grace_ms;
	tree_signal(SIGTERM);
	tree_signal(SIGCONT);
	while (reap(keeper) && init_now_ms() < until_ms)
		poll_until(&child, 1, until_ms);
	for (int pause_ms = PAUSE_MIN_MS; reap(keeper);) {
		tree_kill();
		if (poll(&child, 1, pause_ms) == 0 && pause_ms < PAUSE_MAX_MS)
			pause_ms *= 2;
	}
}

/* Waits for exec to go through. */
static bool await_exec(struct keeper *keeper, int status_fd, struct wire_reply *reply)
{
	struct pollfd fds[] = {{.fd = status_fd, .events = POLLIN},
			       {.fd = keeper->conn_fd, .events = POLLIN}};
	poll_until(fds, 2, init_now_ms() + EXEC_MS);
	if (fds[0].revents)
		return spawn_result(status_fd, reply);
	reply->step = WIRE_STEP_WAIT;
	reply->error = fds[1].revents ? ECANCELED : ETIMEDOUT;
	return false;
}

static bool start(struct keeper *keeper, const struct wire_request *request,
		  const int fds[WIRE_FDS])
{
	struct wire_reply reply = {.kind = WIRE_FAILED, .step = WIRE_STEP_FORK};
	int status_fd = -1;
	keeper->command = spawn_command(request, fds, &status_fd);
	reply.error = errno;
	/* Else the command's pipes would never come to an end. */
	for (int i = 0; i < WIRE_FDS; i++)
		close(fds[i]);
	if (keeper->command > 0 && await_exec(keeper, status_fd, &reply))
		reply = (struct wire_reply){.kind = WIRE_STARTED};
	else if (keeper->command > 0)
		end_all(keeper, 0);
	if (status_fd >= 0)
		close(status_fd);
	init_send(keeper->conn_fd, &reply);
	return reply.kind == WIRE_STARTED;
}

/* Until the command ends by itself, its time is up, or the host says or shows that it is not
 * wanted any more. */
static enum wire_reason await_end(struct keeper *keeper, int64_t timeout_ms)
{
	int64_t until_ms = timeout_ms > 0 ? init_now_ms() + timeout_ms : INT64_MAX;
	struct pollfd fds[] = {{.fd = keeper->signal_fd, .events = POLLIN},
			       {.fd = keeper->conn_fd, .events = POLLIN}};
	for (;;) {
		reap(keeper);
		if (keeper->ended)
			return WIRE_REASON_NONE;
		if (fds[1].revents)
			return WIRE_REASON_CANCEL;
		if (init_now_ms() >= until_ms)
			return WIRE_REASON_TIMEOUT;
		poll_until(fds, 2, until_ms);
	}
}

static int64_t microseconds(struct timeval t)
{
	return (int64_t)t.tv_sec * 1000000 + t.tv_usec;
}

static void report(struct keeper *keeper, enum wire_reason reason)
{
	struct wire_reply reply = {.kind = WIRE_EXITED, .reason = reason};
	if (WIFSIGNALED(keeper->status))
		reply.signal = WTERMSIG(keeper->status);
	else
		reply.code = WEXITSTATUS(keeper->status);
	if (reason == WIRE_REASON_NONE && reap(keeper))
		reply.survivors = tree_count();
	struct rusage usage;
	if (getrusage(RUSAGE_CHILDREN, &usage) == 0) {
		reply.user_us = microseconds(usage.ru_utime);
		reply.system_us = microseconds(usage.ru_stime);
		reply.max_rss_kib = usage.ru_maxrss;
	}
	init_send(keeper->conn_fd, &reply);
}

void keeper_run(int conn_fd, int signal_fd)
{
	struct keeper keeper = {.conn_fd = conn_fd, .signal_fd = signal_fd};
	struct wire_request request;
	int fds[WIRE_FDS];
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		_exit(3);
	if (!read_request(conn_fd, &request, fds)) {
		init_send(conn_fd, &(struct wire_reply){.kind = WIRE_FAILED,
							.step = WIRE_STEP_REQUEST,
							.error = EPROTO});
		_exit(1);
	}
	init_send(conn_fd, &(struct wire_reply){.kind = WIRE_ACCEPTED});
	if (!start(&keeper, &request, fds))
		_exit(1);
	enum wire_reason reason = await_end(&keeper, request.timeout_ms);
	if (reason != WIRE_REASON_NONE)
		end_all(&keeper, request.grace_ms);
	report(&keeper, reason);
	_exit(0);
}
