/*
 * One loop over three descriptors: the command's end and its two pipes. Output never passes
 * through PID 1; the bound on it is the capture here.
 */
#include "run/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/fs.h"

#define READ_SIZE 65536 /* a pipe's default size */
/* After the command's end a child may keep the pipes open: what was in flight is taken, then they
 * are let go. */
#define QUIET_MS     100
#define DRAIN_MAX_MS 1000
/* The timeout is enforced inside. This much later than its grace it can only be that the sandbox
 * hangs. */
#define BACKSTOP_MS 5000

struct stream {
	int fd; /* -1: at its end */
	struct capture *capture;
};

void session_init(struct session *session, size_t stdout_max, size_t stderr_max)
{
	*session = (struct session){0};
	capture_init(&session->out, stdout_max);
	capture_init(&session->err, stderr_max);
}

void session_finish(struct session *session)
{
	capture_finish(&session->out);
	capture_finish(&session->err);
}

/* A sealed copy in memory, opened for reading only: the command cannot change it, and it is not a
 * pipe that somebody would have to fill while the command runs. */
static int open_stdin(const char *data, size_t len, struct err *err)
{
	char path[32] = "/dev/null";
	AUTO_FD memory = -1;
	if (data) {
		memory = memfd_create("stdin", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		if (memory < 0) {
			err_sys(err, "memfd_create");
			return -1;
		}
		if (!fs_write_all(memory, data, len, err))
			return -1;
		fcntl(memory, F_ADD_SEALS,
		      F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", memory);
	}
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		err_sys(err, "open standard input");
	return fd;
}

/* Non-blocking at our end only: the flag belongs to each end's own open file. */
static bool make_pipe(int *read_fd, int *write_fd, struct err *err)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(err, "pipe");
	*read_fd = ends[0];
	*write_fd = ends[1];
	if (fcntl(*read_fd, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(err, "pipe flags");
	return true;
}

/* Reads what is there, at most one buffer full so that the others get their turn. False when there
 * was nothing. */
static bool stream_read(struct stream *stream)
{
	char data[READ_SIZE];
	if (stream->fd < 0)
		return false;
	ssize_t n = read(stream->fd, data, sizeof(data));
	if (n > 0)
		capture_add(stream->capture, data, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		stream->fd = -1;
	return n > 0;
}

static int poll_until(struct pollfd *fds, nfds_t count, int64_t until_ms)
{
	int64_t left = until_ms - clock_mono_ms();
	if (left < 0)
		left = 0;
	return poll(fds, count, left > 60000 ? 60000 : (int)left);
}

/* Reads both streams until fd (-1: none) is readable; false when the time is over or, without fd,
 * when both are at their end. */
static bool pump(struct stream streams[2], int fd, int64_t until_ms)
{
	for (;;) {
		struct pollfd fds[] = {{.fd = streams[0].fd, .events = POLLIN},
				       {.fd = streams[1].fd, .events = POLLIN},
				       {.fd = fd, .events = POLLIN}};
		if (fd < 0 && streams[0].fd < 0 && streams[1].fd < 0)
			return false;
		int n = poll_until(fds, 3, until_ms);
		bool read_some = false;
		for (int i = 0; n > 0 && i < 2; i++)
			if (fds[i].revents)
				read_some |= stream_read(&streams[i]);
		if (n > 0 && fds[2].revents)
			return true;
		if (fd < 0 && read_some)
			return true;
		if (clock_mono_ms() >= until_ms)
			return false;
	}
}

static void drain(struct stream streams[2])
{
	int64_t end_ms = clock_mono_ms() + DRAIN_MAX_MS;
	for (;;) {
		int64_t quiet_ms = clock_mono_ms() + QUIET_MS;
		if (!pump(streams, -1, quiet_ms < end_ms ? quiet_ms : end_ms))
			return;
	}
}

static void run_to_end(struct session *session, const struct runtime *runtime,
		       struct runtime_exec *exec, int64_t timeout_ms, struct stream streams[2])
{
	int64_t start_ms = clock_mono_ms();
	int64_t until_ms =
		timeout_ms > 0 ? start_ms + timeout_ms + RUNTIME_GRACE_MS + BACKSTOP_MS : INT64_MAX;
	if (pump(streams, exec->fd, until_ms)) {
		runtime->finish(exec, &session->status);
	} else {
		session->status = (struct runtime_status){.end = RUNTIME_END_LOST};
		util_close(&exec->fd);
	}
	session->duration_ms = clock_mono_ms() - start_ms;
	drain(streams);
}

bool session_run(struct session *session, const struct runtime *runtime,
		 const struct runtime_box *box, struct runtime_command *command,
		 const char *stdin_data, size_t stdin_len, struct err *err)
{
	AUTO_FD stdin_fd = open_stdin(stdin_data, stdin_len, err);
	AUTO_FD out = -1;
	AUTO_FD out_end = -1;
	AUTO_FD errors = -1;
	AUTO_FD errors_end = -1;
	if (stdin_fd < 0 || !make_pipe(&out, &out_end, err) ||
	    !make_pipe(&errors, &errors_end, err))
		return false;
	command->stdin_fd = stdin_fd;
	command->stdout_fd = out_end;
	command->stderr_fd = errors_end;
	struct runtime_exec exec = {.fd = -1};
	if (!runtime->exec(box, command, &exec, err))
		return false;
	/* From here on only the command holds them, so their end is its end. */
	util_close(&stdin_fd);
	util_close(&out_end);
	util_close(&errors_end);
	struct stream streams[] = {{out, &session->out}, {errors, &session->err}};
	run_to_end(session, runtime, &exec, command->timeout_ms, streams);
	return true;
}
