/*
 * Request out, replies in. A reply is looked at before it is taken off the socket, so that what
 * exchange_start cannot deal with is still there for exchange_status.
 */
#include "run/exchange.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/text.h"
#include "run/wire.h"

/* Longer than PID 1's side waits for the request plus exec (keeper.c), so that its answer, which
 * says more than silence, comes first. */
#define START_MS  20000
#define QUOTE_MAX 64 /* bytes of a value shown in a message */

static void request_from(const struct runtime_command *command, struct wire_request *request)
{
	*request = (struct wire_request){
		.timeout_ms = command->timeout_ms,
		.grace_ms = RUNTIME_GRACE_MS,
		.limits = {[WIRE_LIMIT_PROCESSES] = command->limits.processes,
			   [WIRE_LIMIT_OPEN_FILES] = command->limits.open_files,
			   [WIRE_LIMIT_FILE_BYTES] = command->limits.file_bytes,
			   [WIRE_LIMIT_DATA_BYTES] = command->limits.data_bytes},
		.cwd = command->cwd,
		.argv = command->argv,
		.env = command->env,
	};
}

bool exchange_encode(struct exchange *exchange, const struct runtime_command *command,
		     struct err *err)
{
	*exchange = (struct exchange){.command = command,
				      .bytes = xmalloc(WIRE_HEAD_SIZE + WIRE_BODY_MAX)};
	struct wire_request request;
	request_from(command, &request);
	switch (wire_put_request(&request, exchange->bytes, WIRE_HEAD_SIZE + WIRE_BODY_MAX,
				 &exchange->len)) {
	case WIRE_OK:
		return true;
	case WIRE_FAULT_BODY:
		err_set(err, ERR_TOO_LARGE, "command and environment are larger than %d bytes",
			WIRE_BODY_MAX);
		break;
	case WIRE_FAULT_STRING:
		err_set(err, ERR_TOO_LARGE,
			"one argument or variable of the command is longer than %d bytes",
			WIRE_STRING_MAX);
		break;
	case WIRE_FAULT_WORDS:
		err_set(err, ERR_TOO_LARGE, "the command has more than %d arguments and variables",
			WIRE_WORDS_MAX);
		break;
	case WIRE_FAULT_FORM:
		return err_set(err, ERR_INVALID,
			       "a command needs a program name, an absolute working directory and "
			       "limits that are not negative");
	}
	return err_hint(err, "Write large data to a file in the sandbox first and let the command "
			     "read it.");
}

void exchange_free(struct exchange *exchange)
{
	free(exchange->bytes);
	exchange->bytes = NULL;
}

/* False when the time is over. */
static bool wait_for(int fd, short events, int64_t until_ms)
{
	for (;;) {
		int64_t left = until_ms - clock_mono_ms();
		struct pollfd poll_fd = {.fd = fd, .events = events};
		int n = poll(&poll_fd, 1, left > 0 ? (int)left : 0);
		if (n > 0)
			return true;
		if (n == 0 && left <= 0)
			return false;
	}
}

static ssize_t send_part(int fd, const unsigned char *data, size_t len, const int *fds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(WIRE_FDS * sizeof(int))];
	} space = {.bytes = {0}};
	struct iovec iov = {(void *)(uintptr_t)data, len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	if (fds) {
		msg.msg_control = space.bytes;
		msg.msg_controllen = sizeof(space.bytes);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(WIRE_FDS * sizeof(int));
		memcpy(CMSG_DATA(c), fds, WIRE_FDS * sizeof(int));
	}
	return sendmsg(fd, &msg, MSG_NOSIGNAL);
}

/* Stops early when PID 1 hangs up: what it said before that is read next. False when the kernel
 * refuses to pass descriptors: all that processes of this user have under way over sockets count
 * together, so another sandbox can use the room up for as long as it lives. */
static bool send_request(const struct exchange *exchange, int fd, int64_t until_ms, struct err *err)
{
	const int fds[WIRE_FDS] = {exchange->command->stdin_fd, exchange->command->stdout_fd,
				   exchange->command->stderr_fd};
	for (size_t sent = 0; sent < exchange->len;) {
		ssize_t n = send_part(fd, exchange->bytes + sent, exchange->len - sent,
				      sent == 0 ? fds : NULL);
		if (n < 0 && errno == ETOOMANYREFS) {
			err_set(err, ERR_BUSY,
				"this server has too many descriptors under way; nothing was run");
			return err_hint(err,
					"Try again in a few seconds. If it stays so, the operator "
					"should raise the limit of open files.");
		}
		if (n > 0)
			sent += (size_t)n;
		else if (errno == EAGAIN ? !wait_for(fd, POLLOUT, until_ms) : errno != EINTR)
			break;
	}
	return true;
}

enum look { LOOK_REPLY, LOOK_END, LOOK_LATE };

/* Looks at the next reply and leaves it there. */
static enum look look_at_reply(int fd, int64_t until_ms, struct wire_reply *reply)
{
	unsigned char bytes[WIRE_REPLY_SIZE];
	while (wait_for(fd, POLLIN, until_ms)) {
		ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
		if (n == (ssize_t)sizeof(bytes))
			return wire_get_reply(bytes, reply) ? LOOK_REPLY : LOOK_END;
		/* PID 1 sends replies whole: fewer bytes are all there will ever be. */
		if (n >= 0 || (errno != EAGAIN && errno != EINTR))
			return LOOK_END;
	}
	return LOOK_LATE;
}

static void take_reply(int fd)
{
	unsigned char bytes[WIRE_REPLY_SIZE];
	ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	(void)n; /* it was there a moment ago, and nobody else reads */
}

/* Why a command could not be started, for errors that the caller can do something about. */
static const struct refusal {
	enum wire_step step;
	int error;
	enum err_code code;
	const char *phrase;
	const char *hint;
} refusals[] = {
	{WIRE_STEP_CWD, ENOENT, ERR_INVALID, "does not exist in the sandbox",
	 "Create the directory first, or leave the working directory out to use /workspace."},
	{WIRE_STEP_CWD, ENOTDIR, ERR_INVALID, "is not a directory",
	 "Name a directory, or leave the working directory out to use /workspace."},
	{WIRE_STEP_CWD, EACCES, ERR_INVALID, "may not be entered",
	 "Change its permissions, or use another directory."},
	{WIRE_STEP_CWD, ELOOP, ERR_INVALID, "leads through too many symbolic links",
	 "Use another directory."},
	{WIRE_STEP_CWD, ENAMETOOLONG, ERR_INVALID, "is too long a name", "Use a shorter path."},
	{WIRE_STEP_EXEC, ENOENT, ERR_INVALID,
	 "was not found in the sandbox (or the interpreter that its first line names)",
	 "Check the spelling, or look which programs there are with: command -v NAME"},
	{WIRE_STEP_EXEC, ENOTDIR, ERR_INVALID, "was not found in the sandbox", "Check the path."},
	{WIRE_STEP_EXEC, EACCES, ERR_INVALID, "is not executable",
	 "Make it executable with chmod +x, or run it through its interpreter."},
	{WIRE_STEP_EXEC, ENOEXEC, ERR_INVALID, "is no program this machine can run",
	 "A script needs a first line such as #!/bin/sh, or run it through its interpreter."},
	{WIRE_STEP_EXEC, E2BIG, ERR_TOO_LARGE, "was given too many arguments and variables",
	 "Write large data to a file in the sandbox first and let the command read it."},
};

static bool refuse_with(const struct refusal *refusal, const char *what, const char *subject,
			struct err *err)
{
	AUTO_BUF quoted = BUF_INIT;
	text_quote(&quoted, subject, strlen(subject), QUOTE_MAX);
	err_set(err, refusal->code, "%s \"%s\" %s; nothing was run", what, buf_str(&quoted),
		refusal->phrase);
	return err_hint(err, "%s", refusal->hint);
}

static bool refuse_for_room(const struct runtime_command *command, const struct wire_reply *reply,
			    struct err *err)
{
	if (reply->step == WIRE_STEP_FORK && command->limits.processes >= 0)
		err_set(err, ERR_QUOTA,
			"the sandbox is at its limit of %lld processes; nothing was run",
			(long long)command->limits.processes);
	else
		err_set(err, ERR_QUOTA,
			"the sandbox has no room for another command; nothing was run");
	return err_hint(err, "End what still runs in the sandbox in the background, or destroy the "
			     "sandbox and create it anew, then try again.");
}

static bool explain(const struct runtime_command *command, const struct wire_reply *reply,
		    struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		const struct refusal *refusal = &refusals[i];
		if (refusal->step != reply->step || refusal->error != reply->error)
			continue;
		bool is_cwd = refusal->step == WIRE_STEP_CWD;
		return refuse_with(refusal, is_cwd ? "the working directory" : "the program",
				   is_cwd ? command->cwd : command->argv[0], err);
	}
	if (reply->error == EAGAIN || reply->error == ENOMEM || reply->error == ENFILE)
		return refuse_for_room(command, reply, err);
	if (reply->step == WIRE_STEP_WAIT)
		return err_set(err, ERR_TIMEOUT,
			       "the program took too long to load; it was not run");
	errno = reply->error;
	return err_sys(err, "PID 1 could not start a command, step %d", (int)reply->step);
}

bool exchange_start(const struct exchange *exchange, int fd, struct err *err)
{
	int64_t until_ms = clock_mono_ms() + START_MS;
	if (!send_request(exchange, fd, until_ms, err))
		return false;
	for (bool accepted = false;;) {
		struct wire_reply reply;
		enum look look = look_at_reply(fd, until_ms, &reply);
		if (look == LOOK_LATE)
			return err_set(
				err, ERR_TIMEOUT,
				"the sandbox did not start the command within %d seconds; it "
				"was called off",
				START_MS / 1000);
		if (look == LOOK_REPLY && reply.kind == WIRE_FAILED)
			return explain(exchange->command, &reply, err);
		bool goes_on = look == LOOK_REPLY &&
			       (reply.kind == WIRE_ACCEPTED || reply.kind == WIRE_STARTED);
		if (goes_on)
			take_reply(fd);
		if (goes_on && reply.kind == WIRE_ACCEPTED) {
			accepted = true;
			continue;
		}
		/* It may have run: what is on the socket, or its end, is for exchange_status. */
		if (goes_on || accepted)
			return true;
		return err_set(err, ERR_LOST,
			       "the sandbox went down before the command was started");
	}
}

void exchange_cancel(int fd)
{
	send(fd, "c", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void status_from(const struct wire_reply *reply, struct runtime_status *status)
{
	static const enum runtime_end ends[WIRE_REASON__MAX] = {
		[WIRE_REASON_NONE] = RUNTIME_END_EXIT,
		[WIRE_REASON_TIMEOUT] = RUNTIME_END_TIMEOUT,
		[WIRE_REASON_CANCEL] = RUNTIME_END_CANCELLED,
	};
	*status = (struct runtime_status){
		.end = ends[reply->reason],
		.code = reply->code,
		.signal = reply->signal,
		.user_us = reply->user_us,
		.system_us = reply->system_us,
		.max_rss_kib = reply->max_rss_kib,
		.survivors = reply->survivors,
	};
	if (reply->reason == WIRE_REASON_NONE && reply->signal)
		status->end = RUNTIME_END_SIGNAL;
	/* It caught the signal and exited. */
	if (reply->reason != WIRE_REASON_NONE && !reply->signal)
		status->signal = SIGTERM;
}

void exchange_status(int fd, struct runtime_status *status)
{
	struct wire_reply reply;
	enum look look;
	*status = (struct runtime_status){.end = RUNTIME_END_LOST};
	do
		look = look_at_reply(fd, clock_mono_ms() + START_MS, &reply);
	while (look == LOOK_LATE);
	if (look == LOOK_REPLY && reply.kind == WIRE_EXITED)
		status_from(&reply, status);
	else if (look == LOOK_REPLY && reply.kind == WIRE_SWEPT)
		status->swept = true;
}
