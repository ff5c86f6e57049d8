/*
 * Three files. All of them hold frames, each written by one call where the disk has room:
 *
 *	1 byte     bit 7: stream; bit 6: long; bits 0-5: length (1-63), or its upper bits
 *	2 bytes    only when long: the lower bits of the length, the more significant byte first
 *	...        the bytes
 *
 * So a frame's head is never larger than its bytes: a log has at most four times RECORD_KEPT_MAX,
 * even if every byte of both streams comes alone. Length 0 does not occur; where it is found (a
 * disk that lost power may leave zeros) the frames end.
 *
 * "log" is frames from its first byte on. A stream goes there as long as it has room for all that
 * came, so its bytes in the log are a prefix of it.
 *
 * "tail.0" and "tail.1" are empty until bytes arrive that the log has no room for. From that add
 *on, everything that arrives on either stream also goes to a segment: a struct record_segment in
 *the machine's byte order, then frames. A segment with RECORD_TAIL_MIN bytes of output is full.
 *Then the other one is cut to nothing and gets the next generation. So both together hold at least
 *that much output, and each file at most SEGMENT_MAX.
 *
 * No counter is stored beside the data: what arrived is what a segment's head says plus the frames
 * behind it, so it is as current as the newest frame, whoever gets killed when. A writer that is
 * killed between log and segment leaves a frame in the log that no segment has.
 *
 * A reader sees a file grow in the middle of a write, so it stops at an incomplete frame. It sees
 * that a segment was replaced by its generation, and reads again.
 */
#include "run/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"

#define SHORT_MAX 63
/* A segment that is just not full, in frames of one byte, and then the largest frame. */
#define SEGMENT_MAX \
	(sizeof(struct record_segment) + 2 * RECORD_TAIL_MIN + RECORD_FRAME_HEAD_MAX + \
	 RECORD_FRAME_MAX)
#define COUNT_MAX     ((int64_t)1 << 60) /* bytes; a number beyond it is none of ours */
#define LOG_BLOCK     (256 * 1024)       /* larger than any frame */
#define EMPTY_LOOKS   20  /* a millisecond apart; only for a log that is full to the byte */
#define TAIL_ATTEMPTS 200 /* each means that the writer wrote RECORD_TAIL_MIN in the meantime */

static const char *const file_names[] = {"log", "tail.0", "tail.1"};

/* --- frames -------------------------------------------------------------------------------- */

size_t record_frame_head(unsigned char head[static RECORD_FRAME_HEAD_MAX],
			 enum record_stream stream, size_t len)
{
	unsigned char bit = stream == RECORD_STDERR ? 0x80 : 0;
	if (len <= SHORT_MAX) {
		head[0] = (unsigned char)(bit | len);
		return 1;
	}
	head[0] = (unsigned char)(bit | 0x40 | len >> 16);
	head[1] = (unsigned char)(len >> 8);
	head[2] = (unsigned char)len;
	return 3;
}

/* False when no complete frame begins here. */
static bool get_frame(const char *data, size_t len, struct record_frame *frame)
{
	const unsigned char *head = (const unsigned char *)data;
	size_t head_len = len > 0 && (head[0] & 0x40) != 0 ? 3 : 1;
	if (len < head_len)
		return false;
	frame->stream = (head[0] & 0x80) != 0 ? RECORD_STDERR : RECORD_STDOUT;
	frame->len = head[0] & 0x3f;
	if (head_len == 3)
		frame->len = frame->len << 16 | (size_t)head[1] << 8 | head[2];
	frame->data = data + head_len;
	frame->size = head_len + frame->len;
	return frame->len > 0 && frame->len <= RECORD_FRAME_MAX && frame->size <= len;
}

/* --- the log ------------------------------------------------------------------------------- */

static bool read_at(int fd, void *data, size_t len, int64_t offset, size_t *got, struct err *err)
{
	*got = 0;
	while (*got < len) {
		ssize_t n = pread(fd, (char *)data + *got, len - *got, offset + (int64_t)*got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "read record");
		if (n == 0)
			break;
		*got += (size_t)n;
	}
	return true;
}

/* Reading always begins at the start of a frame, so no frame is pieced together from two states of
 * the file. */
bool record_cursor_next(struct record_cursor *cursor, struct record_frame *frame, struct err *err)
{
	if (cursor->block == NULL)
		cursor->block = xmalloc(LOG_BLOCK);
	if (!get_frame(cursor->block + cursor->start, cursor->len - cursor->start, frame)) {
		cursor->start = 0;
		cursor->failed = !read_at(cursor->fd, cursor->block, LOG_BLOCK, cursor->pos,
					  &cursor->len, err);
		if (cursor->failed || !get_frame(cursor->block, cursor->len, frame))
			return false;
	}
	cursor->start += frame->size;
	cursor->pos += (int64_t)frame->size;
	return true;
}

void record_cursor_finish(struct record_cursor *cursor)
{
	free(cursor->block);
}

/* --- the segments -------------------------------------------------------------------------- */

/* The head at the front of a file's bytes. All zeros when the file is empty: never used, or about
 * to be written again. The same for numbers that nothing we wrote can have reached: a damaged disk.
 */
static struct record_segment get_head(const char *data, size_t len)
{
	struct record_segment head = {0};
	if (len >= sizeof(head))
		memcpy(&head, data, sizeof(head));
	const int64_t numbers[] = {head.generation, head.log_len, head.seen[RECORD_STDOUT],
				   head.seen[RECORD_STDERR]};
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		if (numbers[i] < 0 || numbers[i] > COUNT_MAX)
			return (struct record_segment){0};
	return head;
}

static bool read_head(int fd, struct record_segment *head, struct err *err)
{
	char data[sizeof(*head)];
	size_t got;
	if (!read_at(fd, data, sizeof(data), 0, &got, err))
		return false;
	*head = get_head(data, got);
	return true;
}

static void take_frames(struct record_tail *tail, const char *data, size_t len)
{
	size_t pos = sizeof(tail->newest);
	struct record_frame frame;
	memcpy(&tail->newest, data, sizeof(tail->newest));
	memcpy(tail->seen, tail->newest.seen, sizeof(tail->seen));
	tail->newest_bytes = 0;
	for (; get_frame(data + pos, len - pos, &frame); pos += frame.size) {
		buf_append(&tail->output, frame.data, frame.len);
		tail->seen[frame.stream] += (int64_t)frame.len;
		tail->newest_bytes += (int64_t)frame.len;
	}
	tail->newest_len = (int64_t)pos;
}

/* Takes a segment of a known generation; *changed when it was replaced: then it has another head,
 * or none, when everything has been read. */
static bool take_segment(int fd, int64_t generation, struct record_tail *tail, bool *changed,
			 struct err *err)
{
	AUTO_FREE char *data = xmalloc(SEGMENT_MAX);
	struct record_segment after;
	size_t got;
	if (!read_at(fd, data, SEGMENT_MAX, 0, &got, err) || !read_head(fd, &after, err))
		return false;
	*changed = get_head(data, got).generation != generation || after.generation != generation;
	if (!*changed)
		take_frames(tail, data, got);
	return true;
}

/* The older segment first: it is the next to be replaced. */
static bool try_load(const int fds[2], struct record_tail *tail, bool *changed, struct err *err)
{
	struct record_segment heads[2];
	if (!read_head(fds[0], &heads[0], err) || !read_head(fds[1], &heads[1], err))
		return false;
	*changed = false;
	tail->current = -1;
	buf_clear(&tail->output);
	int older = heads[0].generation < heads[1].generation ? 0 : 1;
	for (int i = 0; i < 2 && !*changed; i++) {
		int at = i == 0 ? older : 1 - older;
		if (heads[at].generation == 0)
			continue;
		if (!take_segment(fds[at], heads[at].generation, tail, changed, err))
			return false;
		if (tail->current < 0)
			tail->oldest = tail->newest;
		tail->current = at;
	}
	return true;
}

bool record_tail_load(const int fds[2], bool log_is_full, struct record_tail *tail, struct err *err)
{
	int empty = 0;
	for (int i = 0; i < TAIL_ATTEMPTS; i++) {
		bool changed;
		if (!try_load(fds, tail, &changed, err))
			return false;
		if (changed)
			continue;
		/* The first segment was begun but its first frame is not there, or never came: all
		 * output is in the log. */
		if (tail->newest.generation == 1 && tail->output.len == 0)
			tail->current = -1;
		if (tail->current >= 0 || !log_is_full || ++empty == EMPTY_LOOKS)
			return true;
		clock_sleep_ms(1);
	}
	return err_set(err, ERR_BUSY,
		       "the command writes its output faster than it can be read at the moment");
}

void record_tail_finish(struct record_tail *tail)
{
	buf_finish(&tail->output);
}

/* --- the files ----------------------------------------------------------------------------- */

static int open_file(int dirfd, const char *name, int flags, struct err *err)
{
	int fd = openat(dirfd, name, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 && errno == ENOENT) {
		err_set(err, ERR_NOT_FOUND,
			"the output of this command is not on the server any more");
		err_hint(err, "Run the command again if its output is still needed.");
	} else if (fd < 0) {
		err_sys(err, "open record file %s", name);
	}
	return fd;
}

bool record_files_open(struct record_files *files, int dirfd, int flags, struct err *err)
{
	return (files->log = open_file(dirfd, file_names[0], flags, err)) >= 0 &&
	       (files->tail[0] = open_file(dirfd, file_names[1], flags, err)) >= 0 &&
	       (files->tail[1] = open_file(dirfd, file_names[2], flags, err)) >= 0;
}

/* The log last: whoever finds it finds the others as well. */
bool record_files_create(struct record_files *files, int dirfd, struct err *err)
{
	int *fds[] = {&files->log, &files->tail[0], &files->tail[1]};
	for (size_t i = ARRAY_LEN(fds); i-- > 0;) {
		*fds[i] = open_file(dirfd, file_names[i], O_RDWR | O_CREAT | O_EXCL, err);
		if (*fds[i] >= 0)
			continue;
		while (++i < ARRAY_LEN(fds)) /* ours so far */
			unlinkat(dirfd, file_names[i], 0);
		return false;
	}
	return true;
}

bool record_files_in_memory(struct record_files *files, struct err *err)
{
	files->log = memfd_create("log", MFD_CLOEXEC);
	files->tail[0] = memfd_create("tail", MFD_CLOEXEC);
	files->tail[1] = memfd_create("tail", MFD_CLOEXEC);
	if (files->log < 0 || files->tail[0] < 0 || files->tail[1] < 0)
		return err_sys(err, "create record in memory");
	return true;
}

void record_files_remove(int dirfd)
{
	for (size_t i = 0; i < ARRAY_LEN(file_names); i++)
		unlinkat(dirfd, file_names[i], 0);
}

void record_files_close(struct record_files *files)
{
	util_close(&files->log);
	util_close(&files->tail[0]);
	util_close(&files->tail[1]);
}
