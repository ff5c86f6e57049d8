/*
 * Readers first, then the writer. What the files hold, and how readers and a writer that share
 * no lock get along, is described in record_file.c.
 *
 * A write that fails (a full disk) is cut back, so files end with a complete frame as long as their
 * writer lives. If the disk has room for the log's part of an add and none for the segment's, a
 * reader may see bytes in the log that are gone a moment later.
 */
#include "run/record.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include "run/record_file.h"

#define COPY_CHUNK (1024 * 1024)

/* --- readers ------------------------------------------------------------------------------- */

/* What arrived: what the segments say, and at least what the log has. */
static void count_seen(const int64_t kept[RECORD_STREAMS], const struct record_tail *tail,
		       int64_t seen[RECORD_STREAMS])
{
	for (int i = 0; i < RECORD_STREAMS; i++) {
		bool more = tail->current >= 0 && tail->seen[i] > kept[i];
		seen[i] = more ? tail->seen[i] : kept[i];
	}
}

/* What is asked for of one stream. */
struct want {
	enum record_stream stream;
	int64_t offset;
	size_t limit;
	struct buf *out;
};

/* Appends what is wanted of a frame that begins at an offset of its stream. */
static void take_part(struct want *want, const struct record_frame *frame, int64_t frame_offset)
{
	int64_t skip = want->offset > frame_offset ? want->offset - frame_offset : 0;
	if (frame->stream != want->stream || skip >= (int64_t)frame->len)
		return;
	size_t n = frame->len - (size_t)skip;
	if (n > want->limit)
		n = want->limit;
	buf_append(want->out, frame->data + skip, n);
	want->limit -= n;
}

/* One pass over the files: both counts of both streams, and what is wanted. */
static bool scan(int dirfd, struct want *want, int64_t kept[RECORD_STREAMS],
		 int64_t seen[RECORD_STREAMS], struct err *err)
{
	AUTO_RECORD_FILES files = RECORD_FILES_INIT;
	AUTO_RECORD_TAIL tail = {0};
	if (!record_files_open(&files, dirfd, O_RDONLY, err))
		return false;
	AUTO_RECORD_CURSOR cursor = {.fd = files.log};
	struct record_frame frame;
	while (record_cursor_next(&cursor, &frame, err)) {
		take_part(want, &frame, kept[frame.stream]);
		kept[frame.stream] += (int64_t)frame.len;
	}
	bool full =
		kept[RECORD_STDOUT] >= RECORD_KEPT_MAX || kept[RECORD_STDERR] >= RECORD_KEPT_MAX;
	if (cursor.failed || !record_tail_load(files.tail, full, &tail, err))
		return false;
	count_seen(kept, &tail, seen);
	return true;
}

bool record_read(int dirfd, enum record_stream stream, int64_t offset, size_t limit,
		 struct buf *out, struct record_page *page, struct err *err)
{
	struct want want = {stream, offset, limit, out};
	int64_t kept[RECORD_STREAMS] = {0}, seen[RECORD_STREAMS];
	size_t len = out->len;
	assert(offset >= 0);
	if (!scan(dirfd, &want, kept, seen, err))
		return false;
	*page = (struct record_page){.kept = kept[stream],
				     .seen = seen[stream],
				     .next_offset = offset + (int64_t)(out->len - len)};
	return true;
}

bool record_seen(int dirfd, int64_t seen[RECORD_STREAMS], struct err *err)
{
	struct want nothing = {.limit = 0, .offset = INT64_MAX};
	int64_t kept[RECORD_STREAMS] = {0};
	return scan(dirfd, &nothing, kept, seen, err);
}

/* Appends the output of both streams in the log up to a place in the file. */
static bool take_log(int fd, int64_t end, struct buf *out, struct err *err)
{
	AUTO_RECORD_CURSOR cursor = {.fd = fd};
	struct record_frame frame;
	while (record_cursor_next(&cursor, &frame, err) && cursor.pos <= end)
		buf_append(out, frame.data, frame.len);
	return !cursor.failed;
}

/* All output that is there without a gap before the newest byte. The log alone is that only if the
 * segments are unused after it was read. */
static bool take_newest(const struct record_files *files, struct buf *out, struct err *err)
{
	AUTO_RECORD_TAIL tail = {0};
	if (!record_tail_load(files->tail, false, &tail, err))
		return false;
	if (tail.current < 0 &&
	    (!take_log(files->log, INT64_MAX, out, err) ||
	     !record_tail_load(files->tail, out->len >= RECORD_KEPT_MAX, &tail, err)))
		return false;
	if (tail.current < 0)
		return true;
	buf_clear(out);
	if (tail.oldest.generation == 1 && !take_log(files->log, tail.oldest.log_len, out, err))
		return false;
	buf_append(out, tail.output.data, tail.output.len);
	return true;
}

/* Where the last lines begin; a newline at the very end ends the last line. */
static size_t lines_start(const char *data, size_t len, int64_t lines)
{
	size_t end = len;
	if (lines <= 0)
		return len;
	if (end > 0 && data[end - 1] == '\n')
		end--;
	while (lines-- > 0) {
		const char *newline = end > 0 ? memrchr(data, '\n', end) : NULL;
		if (newline == NULL)
			return 0;
		end = (size_t)(newline - data);
	}
	return end + 1;
}

bool record_tail(int dirfd, int64_t max_lines, size_t max_bytes, struct buf *out, struct err *err)
{
	AUTO_RECORD_FILES files = RECORD_FILES_INIT;
	AUTO_BUF all = BUF_INIT;
	if (!record_files_open(&files, dirfd, O_RDONLY, err) || !take_newest(&files, &all, err))
		return false;
	size_t len = all.len < max_bytes ? all.len : max_bytes;
	const char *data = buf_str(&all) + all.len - len;
	size_t start = lines_start(data, len, max_lines);
	buf_append(out, data + start, len - start);
	return true;
}

/* --- opening and closing the writer -------------------------------------------------------- */

static void hand_over(struct record *record, struct record_files *files)
{
	record->files = *files;
	*files = (struct record_files)RECORD_FILES_INIT;
}

bool record_create(struct record *record, int dirfd, struct err *err)
{
	AUTO_RECORD_FILES files = RECORD_FILES_INIT;
	if (!(dirfd < 0 ? record_files_in_memory(&files, err)
			: record_files_create(&files, dirfd, err)))
		return false;
	*record = (struct record){0};
	hand_over(record, &files);
	return true;
}

static bool cut(int fd, int64_t len, struct err *err)
{
	return ftruncate(fd, len) == 0 || err_sys(err, "cut record file");
}

bool record_resume(struct record *record, int dirfd, struct err *err)
{
	AUTO_RECORD_FILES files = RECORD_FILES_INIT;
	AUTO_RECORD_TAIL tail = {0};
	struct record resumed = RECORD_INIT;
	if (!record_files_open(&files, dirfd, O_RDWR, err))
		return false;
	AUTO_RECORD_CURSOR cursor = {.fd = files.log};
	struct record_frame frame;
	while (record_cursor_next(&cursor, &frame, err))
		resumed.kept[frame.stream] += (int64_t)frame.len;
	if (cursor.failed || !record_tail_load(files.tail, false, &tail, err) ||
	    !cut(files.log, cursor.pos, err))
		return false;
	resumed.log_len = cursor.pos;
	count_seen(resumed.kept, &tail, resumed.seen);
	/* What is in unused segments all the same would pass for the newer one later. */
	if (tail.current < 0 && (!cut(files.tail[0], 0, err) || !cut(files.tail[1], 0, err)))
		return false;
	if (tail.current >= 0) {
		if (!cut(files.tail[tail.current], tail.newest_len, err))
			return false;
		resumed.tail_current = tail.current;
		resumed.tail_generation = tail.newest.generation;
		resumed.tail_len = tail.newest_len;
		resumed.tail_bytes = tail.newest_bytes;
	}
	*record = resumed;
	hand_over(record, &files);
	return true;
}

static bool copy_file(int from, int to, struct err *err)
{
	off_t pos = 0;
	ssize_t n;
	while ((n = sendfile(to, from, &pos, COPY_CHUNK)) != 0)
		if (n < 0 && errno != EINTR)
			return err_sys(err, "copy record");
	return true;
}

bool record_move(struct record *record, int dirfd, struct err *err)
{
	AUTO_RECORD_FILES files = RECORD_FILES_INIT;
	if (!record_files_create(&files, dirfd, err))
		return false;
	if (!copy_file(record->files.tail[0], files.tail[0], err) ||
	    !copy_file(record->files.tail[1], files.tail[1], err) ||
	    !copy_file(record->files.log, files.log, err)) {
		record_files_remove(dirfd);
		return false;
	}
	record_close(record);
	hand_over(record, &files);
	return true;
}

void record_close(struct record *record)
{
	record_files_close(&record->files);
}

/* --- adding -------------------------------------------------------------------------------- */

/* Writes all parts at the end of a file of *len bytes, or leaves it as it was. */
static bool append(int fd, int64_t *len, struct iovec *parts, int count, struct err *err)
{
	int64_t pos = *len;
	while (count > 0) {
		ssize_t n = pwritev(fd, parts, count, pos);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			err_sys(err, "write record");
			if (ftruncate(fd, *len) != 0)
				err_in(err, "cannot cut it back");
			return false;
		}
		pos += n;
		for (; count > 0 && (size_t)n >= parts->iov_len; count--)
			n -= (ssize_t)(parts++)->iov_len;
		if (count > 0) {
			parts->iov_base = (char *)parts->iov_base + n;
			parts->iov_len -= (size_t)n;
		}
	}
	*len = pos;
	return true;
}

static bool append_log(struct record *record, enum record_stream stream, const char *data,
		       size_t len, struct err *err)
{
	unsigned char head[RECORD_FRAME_HEAD_MAX];
	struct iovec parts[] = {{head, record_frame_head(head, stream, len)}, {(char *)data, len}};
	return append(record->files.log, &record->log_len, parts, ARRAY_LEN(parts), err);
}

/* Begins the other segment with a frame. */
static bool begin_segment(struct record *record, int64_t log_len, const struct iovec frame[2],
			  struct err *err)
{
	int next = 1 - record->tail_current;
	struct record_segment head = {
		.generation = record->tail_generation + 1,
		.log_len = log_len,
		.seen = {record->seen[RECORD_STDOUT], record->seen[RECORD_STDERR]},
	};
	struct iovec parts[] = {{&head, sizeof(head)}, frame[0], frame[1]};
	int64_t len = 0;
	if (!cut(record->files.tail[next], 0, err) ||
	    !append(record->files.tail[next], &len, parts, ARRAY_LEN(parts), err))
		return false;
	record->tail_current = next;
	record->tail_generation++;
	record->tail_len = len;
	record->tail_bytes = 0;
	return true;
}

/* log_len is where the log ended before these bytes. */
static bool append_tail(struct record *record, enum record_stream stream, const char *data,
			size_t len, int64_t log_len, struct err *err)
{
	unsigned char head[RECORD_FRAME_HEAD_MAX];
	struct iovec frame[] = {{head, record_frame_head(head, stream, len)}, {(char *)data, len}};
	bool begin = record->tail_generation == 0 || record->tail_bytes >= RECORD_TAIL_MIN;
	if (begin ? !begin_segment(record, log_len, frame, err)
		  : !append(record->files.tail[record->tail_current], &record->tail_len, frame,
			    ARRAY_LEN(frame), err))
		return false;
	record->tail_bytes += (int64_t)len;
	return true;
}

/* At most RECORD_FRAME_MAX bytes: all of them or none. */
static bool add_piece(struct record *record, enum record_stream stream, const char *data,
		      size_t len, struct err *err)
{
	int64_t log_len = record->log_len, room = 0;
	/* A log that somebody else made longer has no room either. */
	if (record->kept[stream] == record->seen[stream] && record->kept[stream] < RECORD_KEPT_MAX)
		room = RECORD_KEPT_MAX - record->kept[stream];
	size_t keep = (int64_t)len < room ? len : (size_t)room;
	if (keep > 0 && !append_log(record, stream, data, keep, err))
		return false;
	if ((keep < len || record->tail_generation > 0) &&
	    !append_tail(record, stream, data, len, log_len, err)) {
		record->log_len = log_len;
		if (ftruncate(record->files.log, log_len) != 0)
			err_in(err, "cannot cut the log back");
		return false;
	}
	record->kept[stream] += (int64_t)keep;
	record->seen[stream] += (int64_t)len;
	return true;
}

bool record_add(struct record *record, enum record_stream stream, const char *data, size_t len,
		struct err *err)
{
	for (size_t n; len > 0; data += n, len -= n) {
		n = len < RECORD_FRAME_MAX ? len : RECORD_FRAME_MAX;
		if (!add_piece(record, stream, data, n, err))
			return false;
	}
	return true;
}
