/*
 * One loop over three descriptors: the command's end and its two pipes. Output never passes
 * through PID 1; the bound on it is the capture here, and the record's own.
 */
#include "run/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "run/handover.h"
#include "run/pipe.h"

#define READ_SIZE 65536 /* a pipe's default size */
/* After the command's end a child may keep the pipes open: what was in flight is taken, then they
 * are let go. */
#define QUIET_MS     100
#define DRAIN_MAX_MS 1000
/* The timeout is enforced inside. This much later than its grace it can only be that the sandbox
 * hangs. */
#define BACKSTOP_MS 5000

#define EARLY_MAX      (16 * 1024)
#define TICK_MS        500
#define TICK_OUTPUT_MS 250 /* at most four a second */

void session_init(struct session *session, size_t stdout_max, size_t stderr_max)
{
	*session = (struct session){.exec = {.fd = -1}, .fds = {-1, -1}, .record = RECORD_INIT};
	capture_init(&session->out, stdout_max);
	capture_init(&session->err, stderr_max);
}

static void stop_keeping(struct session *session)
{
	if (session->keep == SESSION_KEEPS) {
		mask_stream_finish(&session->masked[RECORD_STDOUT]);
		mask_stream_finish(&session->masked[RECORD_STDERR]);
		record_close(&session->record);
		mask_free(session->mask);
	}
	buf_finish(&session->early);
	session->keep = SESSION_KEEP_NONE;
}

void session_let_go(struct session *session)
{
	util_close(&session->exec.fd);
	util_close(&session->fds[RECORD_STDOUT]);
	util_close(&session->fds[RECORD_STDERR]);
	stop_keeping(session);
}

void session_finish(struct session *session)
{
	session_let_go(session);
	capture_finish(&session->out);
	capture_finish(&session->err);
}

/* --- what is kept for a hand-over ---------------------------------------------------------- */

void session_keep_output(struct session *session, session_mask *make_mask, void *ctx)
{
	session->keep = SESSION_KEEP_LATER;
	session->make_mask = make_mask;
	session->mask_ctx = ctx;
}

/* What came before there was a record: for each read this, then the bytes. */
struct early {
	enum record_stream which;
	uint32_t len; /* 0: the stream is at its end */
};

static void add_early(struct session *session, enum record_stream which, const char *data,
		      size_t len)
{
	buf_append(&session->early, &(struct early){which, (uint32_t)len}, sizeof(struct early));
	buf_append(&session->early, data, len);
}

static bool add_masked(struct session *session, enum record_stream which, const char *data,
		       size_t len, struct err *err)
{
	AUTO_BUF settled = BUF_INIT;
	if (len > 0)
		mask_feed(&session->masked[which], data, len, &settled);
	else
		mask_end(&session->masked[which], &settled);
	return record_add(&session->record, which, settled.data, settled.len, err);
}

static bool begin_keeping(struct session *session, struct err *err)
{
	AUTO_BUF early = session->early;
	session->early = (struct buf)BUF_INIT;
	struct mask *mask = session->make_mask(session->mask_ctx, err);
	if (mask == NULL)
		return false;
	if (!record_create(&session->record, -1, err)) {
		mask_free(mask);
		return false;
	}
	session->mask = mask;
	mask_stream_init(&session->masked[RECORD_STDOUT], mask);
	mask_stream_init(&session->masked[RECORD_STDERR], mask);
	session->keep = SESSION_KEEPS;
	struct early frame;
	for (size_t i = 0; i < early.len; i += frame.len) {
		memcpy(&frame, early.data + i, sizeof(frame));
		i += sizeof(frame);
		if (!add_masked(session, frame.which, early.data + i, frame.len, err))
			return false;
	}
	return true;
}

/* The call itself does not depend on it, so what fails here only means that it has to wait for the
 * command to the end. */
static void keeping_failed(struct session *session, const struct err *err)
{
	log_err(LOG_WARN, "session_keep", err);
	stop_keeping(session);
	session->keep = SESSION_KEEP_FAILED;
}

static void keep_from_now(struct session *session)
{
	struct err err = ERR_INIT;
	if (session->keep == SESSION_KEEP_LATER && !begin_keeping(session, &err))
		keeping_failed(session, &err);
}

/* len 0: the stream is at its end. */
static void keep(struct session *session, enum record_stream which, const char *data, size_t len)
{
	struct err err = ERR_INIT;
	if (session->early.len + len > EARLY_MAX)
		keep_from_now(session);
	if (session->keep == SESSION_KEEP_LATER)
		add_early(session, which, data, len);
	else if (session->keep == SESSION_KEEPS && !add_masked(session, which, data, len, &err))
		keeping_failed(session, &err);
}

int session_prepare_handover(struct session *session, int dirfd, struct err *err)
{
	if (session->keep != SESSION_KEEPS) {
		err_set(err, ERR_UNAVAILABLE, "the output of the command could not be kept");
		return -1;
	}
	AUTO_FD held = handover_save(session->masked, err);
	if (held < 0 || !record_move(&session->record, dirfd, err))
		return -1;
	return TAKE_FD(held);
}

/* --- start --------------------------------------------------------------------------------- */

static int open_stdin(const char *data, size_t len, struct err *err)
{
	if (data)
		return pipe_sealed("stdin", data, len, err);
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		err_sys(err, "open standard input");
	return fd;
}

bool session_start(struct session *session, const struct runtime *runtime,
		   const struct runtime_box *box, struct runtime_command *command,
		   const char *stdin_data, size_t stdin_len, struct err *err)
{
	AUTO_FD stdin_fd = open_stdin(stdin_data, stdin_len, err);
	return stdin_fd >= 0 && session_start_on(session, runtime, box, command, stdin_fd, err);
}

bool session_start_on(struct session *session, const struct runtime *runtime,
		      const struct runtime_box *box, struct runtime_command *command, int stdin_fd,
		      struct err *err)
{
	AUTO_FD out = -1;
	AUTO_FD out_end = -1;
	AUTO_FD errors = -1;
	AUTO_FD errors_end = -1;
	if (!pipe_make(&out, &out_end, err) || !pipe_make(&errors, &errors_end, err))
		return false;
	command->stdin_fd = stdin_fd;
	command->stdout_fd = out_end;
	command->stderr_fd = errors_end;
	if (!runtime->exec(box, command, &session->exec, err))
		return false;
	/* Our copies of the write ends go now: only the command holds them, so their end is its
	 * end. */
	session->runtime = runtime;
	session->fds[RECORD_STDOUT] = TAKE_FD(out);
	session->fds[RECORD_STDERR] = TAKE_FD(errors);
	session->start_ms = clock_mono_ms();
	session->give_up_ms = command->timeout_ms > 0 ? session->start_ms + command->timeout_ms +
								RUNTIME_GRACE_MS + BACKSTOP_MS
						      : INT64_MAX;
	return true;
}

/* --- wait ---------------------------------------------------------------------------------- */

/* Reads what is there, at most one buffer full so that the others get their turn. False when there
 * was nothing. */
static bool read_stream(struct session *session, enum record_stream which)
{
	char data[READ_SIZE];
	int *fd = &session->fds[which];
	ssize_t n = read(*fd, data, sizeof(data));
	if (n > 0) {
		capture_add(which == RECORD_STDOUT ? &session->out : &session->err, data,
			    (size_t)n);
		session->newest = which;
		keep(session, which, data, (size_t)n);
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		util_close(fd);
		keep(session, which, NULL, 0);
	}
	return n > 0;
}

/* What one round of waiting saw. */
struct seen {
	bool output, end;
};

/* Waits once, not beyond until_ms, for output or for fd (-1: none), and takes the output. */
static struct seen wait_once(struct session *session, int fd, int64_t until_ms)
{
	struct seen seen = {false, false};
	struct pollfd fds[] = {{.fd = session->fds[RECORD_STDOUT], .events = POLLIN},
			       {.fd = session->fds[RECORD_STDERR], .events = POLLIN},
			       {.fd = fd, .events = POLLIN}};
	int64_t left = until_ms - clock_mono_ms();
	if (left < 0)
		left = 0;
	if (poll(fds, 3, left > 60000 ? 60000 : (int)left) <= 0)
		return seen;
	for (int i = 0; i < RECORD_STREAMS; i++)
		if (fds[i].revents)
			seen.output |= read_stream(session, (enum record_stream)i);
	seen.end = fds[2].revents != 0;
	return seen;
}

static bool streams_are_open(const struct session *session)
{
	return session->fds[RECORD_STDOUT] >= 0 || session->fds[RECORD_STDERR] >= 0;
}

static void drain(struct session *session)
{
	int64_t now_ms = clock_mono_ms();
	int64_t end_ms = now_ms + DRAIN_MAX_MS, quiet_ms = now_ms + QUIET_MS;
	while (streams_are_open(session) && now_ms < quiet_ms && now_ms < end_ms) {
		bool output = wait_once(session, -1, quiet_ms < end_ms ? quiet_ms : end_ms).output;
		now_ms = clock_mono_ms();
		if (output)
			quiet_ms = now_ms + QUIET_MS;
	}
}

static void take_end(struct session *session, bool seen)
{
	if (seen)
		session->runtime->finish(&session->exec, &session->status);
	else
		session->status = (struct runtime_status){.end = RUNTIME_END_LOST};
	util_close(&session->exec.fd);
	session->duration_ms = clock_mono_ms() - session->start_ms;
	drain(session);
	/* Whoever was left running has nobody to talk to any more. */
	session_let_go(session);
}

static int64_t earliest(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* When the caller is asked next, and how to take no for an answer. */
struct clockwork {
	session_tick *tick;
	void *ctx;
	int64_t last_ms;
	bool output; /* since then */
};

static int64_t next_tick_ms(const struct clockwork *work)
{
	if (work->tick == NULL)
		return INT64_MAX;
	return work->last_ms + (work->output ? TICK_OUTPUT_MS : TICK_MS);
}

/* False when the command was cancelled: that takes as long as it takes, up to the grace. */
static bool ask(struct session *session, struct clockwork *work, int64_t now_ms)
{
	work->last_ms = now_ms;
	work->output = false;
	if (work->tick(work->ctx))
		return true;
	work->tick = NULL;
	session->runtime->cancel(&session->exec);
	session->give_up_ms =
		earliest(session->give_up_ms, now_ms + RUNTIME_GRACE_MS + BACKSTOP_MS);
	return false;
}

bool session_wait(struct session *session, int64_t until_ms, session_tick *tick, void *ctx)
{
	struct clockwork work = {.tick = tick, .ctx = ctx, .last_ms = clock_mono_ms()};
	for (;;) {
		int64_t stop_ms =
			earliest(earliest(until_ms, session->give_up_ms), next_tick_ms(&work));
		struct seen seen = wait_once(session, session->exec.fd, stop_ms);
		work.output |= seen.output;
		int64_t now_ms = clock_mono_ms();
		if (seen.end || now_ms >= session->give_up_ms) {
			take_end(session, seen.end);
			return true;
		}
		if (now_ms >= until_ms) {
			keep_from_now(session);
			return false;
		}
		if (now_ms >= next_tick_ms(&work) && !ask(session, &work, now_ms))
			until_ms = INT64_MAX;
	}
}

bool session_run(struct session *session, const struct runtime *runtime,
		 const struct runtime_box *box, struct runtime_command *command,
		 const char *stdin_data, size_t stdin_len, struct err *err)
{
	return session_start(session, runtime, box, command, stdin_data, stdin_len, err) &&
	       session_wait(session, INT64_MAX, NULL, NULL);
}

void session_last_line(const struct session *session, struct buf *out)
{
	const struct capture *newest =
		session->newest == RECORD_STDOUT ? &session->out : &session->err;
	const struct capture *other =
		session->newest == RECORD_STDOUT ? &session->err : &session->out;
	size_t len = out->len;
	capture_last_line(newest, SESSION_LINE_MAX, out);
	if (out->len == len)
		capture_last_line(other, SESSION_LINE_MAX, out);
}
