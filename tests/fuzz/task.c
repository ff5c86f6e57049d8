/*
 * The directory of a task as a damaged disk may leave it: whatever stands in its files is told
 * without a fault, in numbers that make sense, and a writer can go on behind it.
 *
 * Input: a line with "full" or "over" for a log that begins with as much output as it may hold, or
 * more; then, parted by lines of "===", the files result, spec, log, tail.0 and tail.1. An empty
 * result or spec is not there.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "run/record.h"
#include "run/record_file.h"
#include "store/task_dir.h"

static int dir_fd = -1;

/* --- making it ----------------------------------------------------------------------------- */

static void put_file(const char *name, const char *data, size_t len)
{
	struct err err = ERR_INIT;
	AUTO_FD fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert(fd >= 0 && fs_write_all(fd, data, len, &err));
}

static void put_part(const char *name, struct fuzz_input *in, bool may_be_missing)
{
	size_t len;
	const char *data = fuzz_part(in, "===", &len);
	if (may_be_missing && len == 0)
		unlinkat(dir_fd, name, 0);
	else
		put_file(name, data, len);
}

/* How many frames a log begins with: an input alone would never fill it. Only by these words, since
 * what reads a full log is slow. */
static int filler(const char *word)
{
	int full = RECORD_KEPT_MAX / RECORD_FRAME_MAX;
	return strcmp(word, "full") == 0 ? full : strcmp(word, "over") == 0 ? full + 1 : 0;
}

static void put_log(struct fuzz_input *in, int frames)
{
	size_t len;
	const char *data = fuzz_part(in, "===", &len);
	AUTO_BUF log = BUF_INIT;
	for (int i = 0; i < frames; i++) {
		unsigned char head[RECORD_FRAME_HEAD_MAX];
		buf_append(&log, head, record_frame_head(head, RECORD_STDOUT, RECORD_FRAME_MAX));
		memset(buf_reserve(&log, RECORD_FRAME_MAX), 'x', RECORD_FRAME_MAX);
		log.len += RECORD_FRAME_MAX;
	}
	buf_append(&log, data, len);
	put_file("log", buf_str(&log), log.len);
}

static void put_files(struct fuzz_input in)
{
	AUTO_FREE char *word = fuzz_line(&in);
	if (dir_fd < 0)
		dir_fd = open(fuzz_tempdir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	put_part("result", &in, true);
	put_part("spec", &in, true);
	put_log(&in, filler(word));
	put_part("tail.0", &in, false);
	put_part("tail.1", &in, false);
}

/* --- looking at it ------------------------------------------------------------------------- */

static void check_result(void)
{
	struct err err = ERR_INIT;
	AUTO_TASK_ROW row = {0};
	enum task_verdict verdict = task_dir_verdict(dir_fd, &row, &err);
	if (faccessat(dir_fd, "result", F_OK, 0) != 0) {
		assert(verdict == TASK_VERDICT_LOST); /* nobody holds the lock */
		return;
	}
	assert(verdict == TASK_VERDICT_FINAL);
	assert(row.state > TASK_RUNNING && row.state < TASK_STATE__MAX);
	assert(row.exit_code >= 0 && row.signal >= 0 && row.survivors >= 0);
	assert(row.cpu_ms >= 0 && row.max_rss_kib >= 0);
	assert(row.started_at >= 0 && row.finished_at >= 0);
	/* A success is never made up. */
	assert(row.state != TASK_SUCCEEDED || (row.has_exit_code && row.exit_code == 0));
}

static void check_spec(void)
{
	struct err err = ERR_INIT;
	AUTO_JSON *spec = task_dir_spec(dir_fd, &err);
	if (spec == NULL)
		fuzz_check_err(&err);
	else
		assert(json_object_is_type(spec, json_type_object));
}

/* Pages of one stream join to what is kept of it. */
static void check_pages(enum record_stream stream, const int64_t seen[RECORD_STREAMS])
{
	struct err err = ERR_INIT;
	AUTO_BUF all = BUF_INIT, end = BUF_INIT;
	struct record_page page, behind;
	assert(record_read(dir_fd, stream, 0, SIZE_MAX, &all, &page, &err));
	assert(page.kept == (int64_t)all.len && page.next_offset == page.kept);
	assert(page.seen >= page.kept && page.seen == seen[stream]);
	int64_t half = page.kept / 2;
	assert(record_read(dir_fd, stream, half, SIZE_MAX, &end, &behind, &err));
	assert(end.len == all.len - (size_t)half);
	assert(memcmp(buf_str(&end), buf_str(&all) + half, end.len) == 0);
	assert(record_read(dir_fd, stream, INT64_MAX, 1, &end, &behind, &err));
	assert(behind.next_offset == INT64_MAX);
}

/* What is written behind it comes last, and is counted. The count may be short where the log has
 * more than the segments know of, as after a kill (record.h). */
static void check_writer(const int64_t before[RECORD_STREAMS])
{
	static const char text[] = "\nnew";
	const int64_t len = (int64_t)strlen(text);
	struct err err = ERR_INIT;
	AUTO_RECORD record = RECORD_INIT;
	AUTO_BUF tail = BUF_INIT;
	int64_t seen[RECORD_STREAMS];
	assert(record_resume(&record, dir_fd, &err));
	bool may_be_short =
		record.tail_generation > 0 && record.kept[RECORD_STDOUT] >= RECORD_KEPT_MAX;
	assert(record_add(&record, RECORD_STDOUT, text, strlen(text), &err));
	assert(record_tail(dir_fd, 1, 100, &tail, &err));
	assert(strcmp(buf_str(&tail), "new") == 0);
	assert(record_seen(dir_fd, seen, &err));
	if (may_be_short)
		assert(seen[RECORD_STDOUT] >= before[RECORD_STDOUT] &&
		       seen[RECORD_STDOUT] <= before[RECORD_STDOUT] + len);
	else
		assert(seen[RECORD_STDOUT] == before[RECORD_STDOUT] + len);
	assert(seen[RECORD_STDERR] == before[RECORD_STDERR]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;
	int64_t seen[RECORD_STREAMS];
	AUTO_BUF tail = BUF_INIT;
	put_files(fuzz_input(data, size));
	check_result();
	check_spec();
	assert(record_seen(dir_fd, seen, &err));
	check_pages(RECORD_STDOUT, seen);
	check_pages(RECORD_STDERR, seen);
	assert(record_tail(dir_fd, 10, 1000, &tail, &err) && tail.len <= 1000);
	check_writer(seen);
	return 0;
}
