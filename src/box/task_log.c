/*
 * Reading never waits for the disk to have room, since a command that cannot write its output
 * stands still. After the first failure nothing more is recorded: bytes behind a gap would be taken
 * for those that are missing.
 */
#include "box/task_log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "base/clock.h"
#include "run/handover.h"

#define READ_SIZE 65536 /* a pipe's default size */
/* As of a foreground command, see run/session.c. */
#define QUIET_MS     100
#define DRAIN_MAX_MS 1000

static const char *const record_files[] = {"log", "tail.0", "tail.1"};

bool task_log_create(struct task_log *log, int dirfd, struct mask *mask, struct err *err)
{
	log->mask = mask;
	for (int i = 0; i < RECORD_STREAMS; i++)
		mask_stream_init(&log->masked[i], mask);
	return record_create(&log->record, dirfd, err);
}

bool task_log_resume(struct task_log *log, int dirfd, struct mask *mask, int held_fd,
		     struct err *err)
{
	log->mask = mask;
	return handover_load(held_fd, mask, log->masked, err) &&
	       record_resume(&log->record, dirfd, err);
}

void task_log_close(struct task_log *log)
{
	for (int i = 0; i < RECORD_STREAMS; i++) {
		util_close(&log->fds[i]);
		mask_stream_finish(&log->masked[i]);
	}
	record_close(&log->record);
	mask_free(log->mask);
	*log = (struct task_log)TASK_LOG_INIT;
}

/* Non-blocking at our end only: the flag belongs to each end's own open file. */
static bool make_pipe(int *read_fd, int *write_fd, struct err *err)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_sys(err, "pipe");
	*read_fd = ends[0];
	*write_fd = ends[1];
	return fcntl(*read_fd, F_SETFL, O_NONBLOCK) == 0 || err_sys(err, "pipe flags");
}

bool task_log_pipes(struct task_log *log, int write_ends[RECORD_STREAMS], struct err *err)
{
	for (int i = 0; i < RECORD_STREAMS; i++)
		if (!make_pipe(&log->fds[i], &write_ends[i], err))
			return false;
	return true;
}

static void keep(struct task_log *log, enum record_stream stream, const struct buf *masked)
{
	struct record *record = &log->record;
	int64_t before = record->seen[stream];
	if (masked->len == 0 ||
	    record_add(record, stream, masked->data, masked->len, &log->trouble))
		return;
	log->broken = true;
	log->dropped += (int64_t)masked->len - (record->seen[stream] - before);
}

bool task_log_read(struct task_log *log, enum record_stream stream)
{
	char data[READ_SIZE];
	if (log->fds[stream] < 0)
		return false;
	ssize_t n = read(log->fds[stream], data, sizeof(data));
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		util_close(&log->fds[stream]);
	if (n <= 0)
		return false;
	if (log->broken) {
		log->dropped += n;
		return true;
	}
	AUTO_BUF masked = BUF_INIT;
	mask_feed(&log->masked[stream], data, (size_t)n, &masked);
	keep(log, stream, &masked);
	return true;
}

/* Waits for output until until_ms; false when none came or both pipes are at their end. */
static bool drain_some(struct task_log *log, int64_t until_ms)
{
	bool read_some = false;
	int64_t left = until_ms - clock_mono_ms();
	struct pollfd fds[] = {{.fd = log->fds[0], .events = POLLIN},
			       {.fd = log->fds[1], .events = POLLIN}};
	if ((log->fds[0] < 0 && log->fds[1] < 0) || left <= 0)
		return false;
	int n = poll(fds, ARRAY_LEN(fds), (int)left);
	for (int i = 0; n > 0 && i < RECORD_STREAMS; i++)
		if (fds[i].revents != 0)
			/* An end that is seen is progress as well. */
			read_some |= task_log_read(log, (enum record_stream)i) || log->fds[i] < 0;
	return read_some;
}

static void drain(struct task_log *log)
{
	int64_t end_ms = clock_mono_ms() + DRAIN_MAX_MS, until_ms;
	do {
		until_ms = clock_mono_ms() + QUIET_MS;
	} while (drain_some(log, until_ms < end_ms ? until_ms : end_ms));
}

/* What a reader was told must still be there after a power cut. A disk that fails here has said so
 * to the writes, or says it to the result. */
static void sync_files(int dirfd)
{
	for (size_t i = 0; i < ARRAY_LEN(record_files); i++) {
		AUTO_FD fd = openat(dirfd, record_files[i], O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0)
			(void)fdatasync(fd);
	}
}

void task_log_end(struct task_log *log, int dirfd)
{
	drain(log);
	for (int i = 0; i < RECORD_STREAMS && !log->broken; i++) {
		AUTO_BUF masked = BUF_INIT;
		mask_end(&log->masked[i], &masked);
		keep(log, (enum record_stream)i, &masked);
	}
	sync_files(dirfd);
}
