/* The durable record of a command's output. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "run/record.h"
#include "run/record_file.h"

#define MIB (1024 * 1024)

/* --- helpers ------------------------------------------------------------------------------- */

/* A directory with a new record. */
struct place {
	char *path;
	int fd;
	struct record record;
};

static void place_init(struct place *place, bool with_record)
{
	struct err err = ERR_INIT;
	*place = (struct place){.path = unit_tempdir(), .record = RECORD_INIT};
	place->fd = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (with_record)
		ck_ok(record_create(&place->record, place->fd, &err), err);
}

static void place_finish(struct place *place)
{
	record_close(&place->record);
	close(place->fd);
	unit_tempdir_remove(place->path);
}

static void add(struct record *record, enum record_stream stream, const char *data, size_t len)
{
	struct err err = ERR_INIT;
	ck_ok(record_add(record, stream, data, len, &err), err);
}

static void add_text(struct record *record, enum record_stream stream, const char *text)
{
	add(record, stream, text, strlen(text));
}

static struct record_page read_page(const struct place *place, enum record_stream stream,
				    int64_t offset, size_t limit, struct buf *out)
{
	struct err err = ERR_INIT;
	struct record_page page;
	buf_clear(out);
	ck_ok(record_read(place->fd, stream, offset, limit, out, &page, &err), err);
	return page;
}

static void read_tail(const struct place *place, int64_t lines, size_t bytes, struct buf *out)
{
	struct err err = ERR_INIT;
	buf_clear(out);
	ck_ok(record_tail(place->fd, lines, bytes, out, &err), err);
}

static void check_tail(const struct place *place, int64_t lines, size_t bytes, const char *expected)
{
	AUTO_BUF out = BUF_INIT;
	read_tail(place, lines, bytes, &out);
	ck_assert_str_eq(buf_str(&out), expected);
}

static void check_seen(const struct place *place, int64_t out, int64_t err_bytes)
{
	struct err err = ERR_INIT;
	int64_t seen[RECORD_STREAMS];
	ck_ok(record_seen(place->fd, seen, &err), err);
	ck_assert_int_eq(seen[RECORD_STDOUT], out);
	ck_assert_int_eq(seen[RECORD_STDERR], err_bytes);
}

static int64_t file_size(const struct place *place, const char *name)
{
	struct stat st;
	ck_assert_int_eq(fstatat(place->fd, name, &st, 0), 0);
	return st.st_size;
}

static int64_t disk_size(const struct place *place)
{
	return file_size(place, "log") + file_size(place, "tail.0") + file_size(place, "tail.1");
}

/* Adds bytes to a file behind the record's back, as a writer does that is killed in a write. */
static void tear(const struct place *place, const char *name, const char *data, size_t len)
{
	AUTO_FD fd = openat(place->fd, name, O_WRONLY | O_APPEND | O_CLOEXEC);
	ck_assert_int_eq(write(fd, data, len), (ssize_t)len);
}

/* The i-th byte of a stream in which a few bytes tell where they are, within a period. */
#define PERIOD (251 * 7)
static char pattern(int64_t i)
{
	return (char)(i % 251 + i / 251 % 7 * 31);
}

static char *make_pattern(int64_t from, size_t len)
{
	char *data = xmalloc(len);
	for (size_t i = 0; i < len; i++)
		data[i] = pattern(from + (int64_t)i);
	return data;
}

static void check_pattern(const char *data, size_t len, int64_t from)
{
	for (size_t i = 0; i < len; i++)
		if (data[i] != pattern(from + (int64_t)i))
			ck_abort_msg("byte %zu of %zu from %lld is wrong", i, len, (long long)from);
}

static void add_pattern(struct record *record, enum record_stream stream, size_t len, size_t step)
{
	AUTO_FREE char *data = make_pattern(record->seen[stream], len);
	for (size_t i = 0; i < len; i += step)
		add(record, stream, data + i, len - i < step ? len - i : step);
}

/* --- reading by offset --------------------------------------------------------------------- */

TEST(each_stream_is_read_alone_and_both_in_order)
{
	struct place place;
	AUTO_BUF out = BUF_INIT;
	place_init(&place, true);
	check_seen(&place, 0, 0);
	check_tail(&place, 100, 1000, "");
	add_text(&place.record, RECORD_STDOUT, "one\n");
	add_text(&place.record, RECORD_STDERR, "two\n");
	add_text(&place.record, RECORD_STDOUT, "");
	add_text(&place.record, RECORD_STDOUT, "thr");
	add_text(&place.record, RECORD_STDERR, "four\n");
	add_text(&place.record, RECORD_STDOUT, "ee\n");
	read_page(&place, RECORD_STDOUT, 0, 1000, &out);
	ck_assert_str_eq(buf_str(&out), "one\nthree\n");
	read_page(&place, RECORD_STDERR, 0, 1000, &out);
	ck_assert_str_eq(buf_str(&out), "two\nfour\n");
	check_tail(&place, 100, 1000, "one\ntwo\nthrfour\nee\n");
	check_seen(&place, 10, 9);
	place_finish(&place);
}
TEST_END

TEST(offset_and_limit_select_bytes_across_pieces)
{
	static const char text[] = "0123456789abcdefghij";
	static const size_t pieces[] = {1, 2, 3, 7, 20};
	for (size_t p = 0; p < ARRAY_LEN(pieces); p++) {
		struct place place;
		AUTO_BUF out = BUF_INIT;
		place_init(&place, true);
		for (size_t i = 0; i < 20; i += pieces[p]) {
			size_t n = 20 - i < pieces[p] ? 20 - i : pieces[p];
			add(&place.record, RECORD_STDERR, text + i, n);
			add_text(&place.record, RECORD_STDOUT, "noise");
		}
		for (size_t offset = 0; offset < 23; offset++)
			for (size_t limit = 0; limit < 23; limit++) {
				size_t left = offset < 20 ? 20 - offset : 0;
				size_t n = limit < left ? limit : left;
				struct record_page page = read_page(&place, RECORD_STDERR,
								    (int64_t)offset, limit, &out);
				ck_assert_uint_eq(out.len, n);
				if (n > 0)
					ck_assert_int_eq(memcmp(out.data, text + offset, n), 0);
				ck_assert_int_eq(page.kept, 20);
				ck_assert_int_eq(page.seen, 20);
				ck_assert_int_eq(page.next_offset, (int64_t)(offset + n));
			}
		place_finish(&place);
	}
}
TEST_END

TEST(any_bytes_and_any_sizes_come_back)
{
	static const size_t sizes[] = {1, 62, 63, 64, 65, 255, 256, 65535, 65536, 65537, 200000};
	struct place place;
	AUTO_BUF out = BUF_INIT;
	int64_t total = 0;
	place_init(&place, true);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		add_pattern(&place.record, RECORD_STDOUT, sizes[i], sizes[i]);
		total += (int64_t)sizes[i];
	}
	ck_assert_int_eq(read_page(&place, RECORD_STDOUT, 0, MIB, &out).kept, total);
	ck_assert_int_eq((int64_t)out.len, total);
	check_pattern(out.data, out.len, 0);
	place_finish(&place);
}
TEST_END

TEST(a_page_is_appended_to_what_the_buffer_has)
{
	struct place place;
	struct err err = ERR_INIT;
	struct record_page page;
	AUTO_BUF out = BUF_INIT;
	place_init(&place, true);
	add_text(&place.record, RECORD_STDOUT, "output");
	buf_puts(&out, "before ");
	ck_ok(record_read(place.fd, RECORD_STDOUT, 1, 3, &out, &page, &err), err);
	ck_assert_int_eq(page.next_offset, 4);
	ck_ok(record_tail(place.fd, 1, 2, &out, &err), err);
	ck_assert_str_eq(buf_str(&out), "before utput");
	place_finish(&place);
}
TEST_END

/* --- the cap and the tail ------------------------------------------------------------------ */

TEST(a_stream_over_its_cap_is_cut_there_and_counted_and_the_other_goes_on)
{
	struct place place;
	AUTO_BUF out = BUF_INIT;
	place_init(&place, true);
	add_pattern(&place.record, RECORD_STDOUT, RECORD_KEPT_MAX + 300000, 777);
	add_text(&place.record, RECORD_STDERR, "still ");
	add_pattern(&place.record, RECORD_STDOUT, 10000, 10000);
	add_text(&place.record, RECORD_STDERR, "kept");
	struct record_page page = read_page(&place, RECORD_STDOUT, 0, 4 * MIB, &out);
	ck_assert_int_eq(page.kept, RECORD_KEPT_MAX);
	ck_assert_int_eq(page.seen, RECORD_KEPT_MAX + 310000);
	ck_assert_int_eq(page.next_offset, RECORD_KEPT_MAX);
	check_pattern(out.data, out.len, 0);
	page = read_page(&place, RECORD_STDERR, 0, MIB, &out);
	ck_assert_str_eq(buf_str(&out), "still kept");
	ck_assert_int_eq(page.seen, 10);
	check_seen(&place, RECORD_KEPT_MAX + 310000, 10);
	place_finish(&place);
}
TEST_END

TEST(a_tail_is_limited_by_lines_and_bytes)
{
	static const struct {
		int64_t lines;
		size_t bytes;
		const char *expected;
	} cases[] = {
		{0, 100, ""},
		{100, 0, ""},
		{1, 100, "three\n"},
		{2, 100, "two\nthree\n"},
		{3, 100, "one\ntwo\nthree\n"},
		{9, 100, "one\ntwo\nthree\n"},
		{1, 3, "ee\n"},
		{9, 8, "o\nthree\n"},
		{1, 8, "three\n"},
		{-1, 100, ""},
	};
	struct place place;
	place_init(&place, true);
	add_text(&place.record, RECORD_STDOUT, "one\ntwo\nthree\n");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check_tail(&place, cases[i].lines, cases[i].bytes, cases[i].expected);
	add_text(&place.record, RECORD_STDERR, "part");
	check_tail(&place, 1, 100, "part");
	check_tail(&place, 2, 100, "three\npart");
	add_text(&place.record, RECORD_STDERR, "\n\n\n");
	check_tail(&place, 2, 100, "\n\n");
	check_tail(&place, 3, 100, "part\n\n\n");
	place_finish(&place);
}
TEST_END

TEST(one_huge_line_has_its_newest_bytes_as_tail)
{
	struct place place;
	AUTO_BUF out = BUF_INIT;
	place_init(&place, true);
	AUTO_FREE char *data = xmalloc(3 * MIB);
	memset(data, 'x', 3 * MIB);
	memcpy(data + 3 * MIB - 3, "END", 3);
	add(&place.record, RECORD_STDOUT, data, 3 * MIB);
	read_tail(&place, 10, 1000, &out);
	ck_assert_uint_eq(out.len, 1000);
	ck_assert_str_eq(out.data + 997, "END");
	read_tail(&place, 10, 4 * MIB, &out);
	ck_assert_uint_ge(out.len, RECORD_TAIL_MIN);
	place_finish(&place);
}
TEST_END

TEST(the_tail_is_current_and_long_enough_at_every_moment_of_a_long_output)
{
	static const size_t steps[] = {4099, 65536, 61};
	for (size_t s = 0; s < ARRAY_LEN(steps); s++) {
		struct place place;
		AUTO_BUF out = BUF_INIT;
		int64_t total = 0;
		place_init(&place, true);
		for (int i = 0; i < 400; i++) {
			size_t n = steps[s] < 4000 ? steps[s] * 100 : steps[s];
			add_pattern(&place.record, RECORD_STDOUT, n, steps[s]);
			total += (int64_t)n;
			read_tail(&place, INT64_MAX, RECORD_TAIL_MIN, &out);
			size_t all = total < RECORD_TAIL_MIN ? (size_t)total : RECORD_TAIL_MIN;
			ck_assert_uint_eq(out.len, all);
			check_pattern(out.data, out.len, total - (int64_t)all);
		}
		place_finish(&place);
	}
}
TEST_END

TEST(the_tail_joins_the_log_without_gap_or_repetition_when_the_cap_is_crossed)
{
	struct place place;
	AUTO_BUF out = BUF_INIT;
	place_init(&place, true);
	add_pattern(&place.record, RECORD_STDOUT, RECORD_KEPT_MAX - 100, 5000);
	for (int64_t total = RECORD_KEPT_MAX - 100; total < RECORD_KEPT_MAX + 90000;
	     total += 9000) {
		read_tail(&place, INT64_MAX, 2 * MIB, &out);
		ck_assert_int_eq((int64_t)out.len, total);
		check_pattern(out.data, out.len, 0);
		add_pattern(&place.record, RECORD_STDOUT, 9000, 9000);
	}
	place_finish(&place);
}
TEST_END

TEST(after_the_cap_the_tail_has_both_streams_in_order)
{
	struct place place;
	place_init(&place, true);
	add_pattern(&place.record, RECORD_STDOUT, RECORD_KEPT_MAX + 1, 65536);
	add_text(&place.record, RECORD_STDERR, "\none\n");
	add_text(&place.record, RECORD_STDOUT, "two\n");
	add_text(&place.record, RECORD_STDERR, "three\n");
	check_tail(&place, 3, 1000, "one\ntwo\nthree\n");
	place_finish(&place);
}
TEST_END

/* --- bounds -------------------------------------------------------------------------------- */

TEST(three_hundred_mebibytes_are_counted_and_take_little_disk)
{
	struct place place;
	AUTO_BUF out = BUF_INIT;
	place_init(&place, true);
	AUTO_FREE char *data = xmalloc(65536);
	for (int i = 0; i < 65536; i += 2)
		memcpy(data + i, "y\n", 2);
	for (int i = 0; i < 300 * 16; i++)
		add(&place.record, RECORD_STDOUT, data, 65536);
	struct record_page page = read_page(&place, RECORD_STDOUT, 0, 10, &out);
	ck_assert_int_eq(page.kept, RECORD_KEPT_MAX);
	ck_assert_int_eq(page.seen, 300LL * MIB);
	ck_assert_int_lt(disk_size(&place), 3 * MIB);
	check_tail(&place, 2, 1000, "y\ny\n");
	place_finish(&place);
}
TEST_END

TEST(millions_of_single_bytes_stay_bounded_on_disk)
{
	struct place place;
	AUTO_BUF out = BUF_INIT;
	struct err err = ERR_INIT;
	place_init(&place, false);
	/* In memory first: the files are the same and the calls are faster. */
	ck_ok(record_create(&place.record, -1, &err), err);
	for (int64_t i = 0; i < 3000000; i++) {
		char c = pattern(i / 2);
		add(&place.record, i % 2 == 0 ? RECORD_STDOUT : RECORD_STDERR, &c, 1);
	}
	ck_ok(record_move(&place.record, place.fd, &err), err);
	ck_assert_int_le(file_size(&place, "log"), 4 * MIB);
	ck_assert_int_le(disk_size(&place), 4 * MIB + 512 * 1024);
	for (int stream = 0; stream < RECORD_STREAMS; stream++) {
		struct record_page page = read_page(&place, stream, 0, 2 * MIB, &out);
		ck_assert_int_eq(page.kept, RECORD_KEPT_MAX);
		ck_assert_int_eq(page.seen, 1500000);
		ck_assert_uint_eq(out.len, RECORD_KEPT_MAX);
		check_pattern(out.data, out.len, 0);
	}
	read_tail(&place, INT64_MAX, 1000, &out);
	for (int i = 0; i < 1000; i++)
		ck_assert_int_eq(out.data[i], pattern(1500000 - 500 + i / 2));
	place_finish(&place);
}
TEST_END

/* --- failures and hand-over ---------------------------------------------------------------- */

TEST(a_directory_without_a_record_is_not_found_and_one_with_a_record_is_not_overwritten)
{
	struct place place;
	struct err err = ERR_INIT;
	struct record_page page;
	AUTO_BUF out = BUF_INIT;
	AUTO_RECORD second = RECORD_INIT;
	place_init(&place, false);
	ck_assert(!record_read(place.fd, RECORD_STDOUT, 0, 1, &out, &page, &err));
	ck_assert_int_eq(err.code, ERR_NOT_FOUND);
	ck_assert(!record_resume(&second, place.fd, &err));
	ck_assert_int_eq(err.code, ERR_NOT_FOUND);
	ck_ok(record_create(&place.record, place.fd, &err), err);
	add_text(&place.record, RECORD_STDOUT, "mine");
	ck_assert(!record_create(&second, place.fd, &err));
	ck_assert_int_eq(err.code, ERR_IO);
	read_page(&place, RECORD_STDOUT, 0, 100, &out);
	ck_assert_str_eq(buf_str(&out), "mine");
	place_finish(&place);
}
TEST_END

TEST(a_resumed_record_goes_on_where_it_ended_also_over_the_cap)
{
	struct place place;
	struct err err = ERR_INIT;
	AUTO_BUF out = BUF_INIT;
	int64_t total = 0;
	place_init(&place, true);
	for (int i = 0; i < 30; i++) {
		add_pattern(&place.record, RECORD_STDOUT, 50021, 4000);
		total += 50021;
		struct record before = place.record;
		record_close(&place.record);
		ck_ok(record_resume(&place.record, place.fd, &err), err);
		before.files = place.record.files;
		ck_assert_mem_eq(&place.record, &before, sizeof(before));
	}
	ck_assert_int_eq(read_page(&place, RECORD_STDOUT, 0, 2 * MIB, &out).seen, total);
	check_pattern(out.data, out.len, 0);
	read_tail(&place, INT64_MAX, RECORD_TAIL_MIN, &out);
	check_pattern(out.data, out.len, total - RECORD_TAIL_MIN);
	place_finish(&place);
}
TEST_END

TEST(a_torn_frame_is_not_read_and_is_cut_off_by_resume)
{
	static const struct {
		const char *data;
		size_t len;
	} torn[] = {
		{"\x05hell", 5},     /* a byte is missing */
		{"\x05", 1},         /* the head alone */
		{"\x40\x01", 2},     /* half a head */
		{"\x41\0\0xyz", 6},  /* 65536 bytes announced */
		{"\0\0\0\0\0\0", 6}, /* lost power */
	};
	for (size_t i = 0; i < 2 * ARRAY_LEN(torn); i++) {
		struct place place;
		struct err err = ERR_INIT;
		AUTO_BUF out = BUF_INIT;
		bool over = i >= ARRAY_LEN(torn);
		size_t len = over ? RECORD_KEPT_MAX + 20000 : 100;
		place_init(&place, true);
		add_pattern(&place.record, RECORD_STDOUT, len, 10000);
		const char *name = !over                            ? "log"
				   : place.record.tail_current == 0 ? "tail.0"
								    : "tail.1";
		record_close(&place.record);
		int64_t size = file_size(&place, name);
		tear(&place, name, torn[i % ARRAY_LEN(torn)].data, torn[i % ARRAY_LEN(torn)].len);
		check_seen(&place, (int64_t)len, 0);
		read_tail(&place, INT64_MAX, 50, &out);
		check_pattern(out.data, out.len, (int64_t)len - 50);
		ck_ok(record_resume(&place.record, place.fd, &err), err);
		ck_assert_int_eq(file_size(&place, name), size);
		add_pattern(&place.record, RECORD_STDOUT, 70, 70);
		check_seen(&place, (int64_t)len + 70, 0);
		read_tail(&place, INT64_MAX, 100, &out);
		check_pattern(out.data, out.len, (int64_t)len + 70 - 100);
		place_finish(&place);
	}
}
TEST_END

TEST(a_segment_with_an_impossible_head_is_as_none_and_the_record_goes_on)
{
	static const struct record_segment damaged[] = {
		{.generation = INT64_MAX, .seen = {1, 1}},
		{.generation = INT64_MIN, .seen = {1, 1}},
		{.generation = 1, .log_len = -1},
		{.generation = 1, .seen = {INT64_MAX, 0}},
		{.generation = 1, .seen = {0, -1}},
	};
	for (size_t i = 0; i < ARRAY_LEN(damaged); i++) {
		struct place place;
		struct err err = ERR_INIT;
		AUTO_BUF out = BUF_INIT, segment = BUF_INIT;
		place_init(&place, true);
		add_text(&place.record, RECORD_STDOUT, "one\n");
		record_close(&place.record);
		buf_append(&segment, &damaged[i], sizeof(damaged[i]));
		buf_puts(&segment, "\x01x");
		tear(&place, "tail.1", segment.data, segment.len);
		check_seen(&place, 4, 0);
		ck_ok(record_resume(&place.record, place.fd, &err), err);
		add_text(&place.record, RECORD_STDOUT, "two\n");
		check_seen(&place, 8, 0);
		read_tail(&place, INT64_MAX, 100, &out);
		ck_assert_str_eq(buf_str(&out), "one\ntwo\n");
		place_finish(&place);
	}
}
TEST_END

TEST(a_first_segment_that_lost_its_first_frame_does_not_hide_what_comes_after_a_resume)
{
	struct place place;
	struct err err = ERR_INIT;
	AUTO_BUF out = BUF_INIT, segment = BUF_INIT;
	const int64_t full = RECORD_KEPT_MAX;
	place_init(&place, true);
	add_pattern(&place.record, RECORD_STDOUT, RECORD_KEPT_MAX, 65536);
	const struct record_segment head = {1, place.record.log_len, {RECORD_KEPT_MAX, 0}};
	record_close(&place.record);
	buf_append(&segment, &head, sizeof(head));
	buf_append(&segment, "\0\0\0", 3); /* lost power */
	tear(&place, "tail.0", segment.data, segment.len);
	ck_ok(record_resume(&place.record, place.fd, &err), err);
	add_pattern(&place.record, RECORD_STDOUT, 70, 70);
	check_seen(&place, full + 70, 0);
	read_tail(&place, INT64_MAX, 100, &out);
	check_pattern(out.data, out.len, full + 70 - 100);
	place_finish(&place);
}
TEST_END

TEST(behind_a_log_that_is_longer_than_any_of_ours_output_goes_to_the_tail)
{
	struct place place;
	struct err err = ERR_INIT;
	AUTO_BUF out = BUF_INIT, frames = BUF_INIT;
	place_init(&place, true);
	record_close(&place.record);
	for (int i = 0; i < RECORD_KEPT_MAX / RECORD_FRAME_MAX + 1; i++) {
		unsigned char head[RECORD_FRAME_HEAD_MAX];
		buf_append(&frames, head, record_frame_head(head, RECORD_STDOUT, RECORD_FRAME_MAX));
		memset(buf_reserve(&frames, RECORD_FRAME_MAX), 'x', RECORD_FRAME_MAX);
		frames.len += RECORD_FRAME_MAX;
	}
	tear(&place, "log", frames.data, frames.len);
	ck_ok(record_resume(&place.record, place.fd, &err), err);
	add_text(&place.record, RECORD_STDOUT, "\nnew");
	ck_assert_int_eq(file_size(&place, "log"), (int64_t)frames.len);
	check_seen(&place, RECORD_KEPT_MAX + RECORD_FRAME_MAX + 4, 0);
	read_tail(&place, 1, 100, &out);
	ck_assert_str_eq(buf_str(&out), "new");
	place_finish(&place);
}
TEST_END

/* Adds pieces of the pattern from what the record has seen, until it is killed. */
static void write_until_killed(int dirfd)
{
	struct err err = ERR_INIT;
	struct record record = RECORD_INIT;
	if (!record_resume(&record, dirfd, &err))
		_exit(1);
	for (;;) {
		int64_t pos = record.seen[RECORD_STDOUT];
		size_t n = 1 + (size_t)(pos % 9973) * 5;
		AUTO_FREE char *data = make_pattern(pos, n);
		if (!record_add(&record, RECORD_STDOUT, data, n, &err))
			_exit(1);
	}
}

TEST(a_writer_killed_at_any_moment_leaves_a_prefix_that_can_be_gone_on_with)
{
	struct place place;
	AUTO_BUF out = BUF_INIT;
	int64_t last = 0;
	place_init(&place, true);
	record_close(&place.record);
	for (int i = 0; i < 60; i++) {
		pid_t pid = fork();
		if (pid == 0)
			write_until_killed(place.fd);
		usleep((useconds_t)(500 + i * 37 % 1000 * 5));
		ck_assert_int_eq(kill(pid, SIGKILL), 0);
		int status;
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert(WIFSIGNALED(status));
		struct record_page page = read_page(&place, RECORD_STDOUT, 0, 2 * MIB, &out);
		ck_assert_int_ge(page.seen, last);
		ck_assert_int_eq((int64_t)out.len, page.kept);
		check_pattern(out.data, out.len, 0);
		read_tail(&place, INT64_MAX, RECORD_TAIL_MIN, &out);
		check_pattern(out.data, out.len, page.seen - (int64_t)out.len);
		last = page.seen;
	}
	ck_assert_int_gt(last, RECORD_KEPT_MAX);
	place_finish(&place);
}
TEST_END

TEST(a_full_disk_is_an_error_and_leaves_whole_frames)
{
	struct place place;
	struct err err = ERR_INIT;
	AUTO_BUF out = BUF_INIT;
	place_init(&place, true);
	AUTO_FREE char *data = make_pattern(0, 40000);
	add(&place.record, RECORD_STDOUT, data, 1000);
	/* A limit on file size lets a part of a write succeed, as a disk that becomes full does. */
	struct rlimit old, limit;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	limit = (struct rlimit){.rlim_cur = 20000, .rlim_max = old.rlim_max};
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert(!record_add(&place.record, RECORD_STDOUT, data + 1000, 30000, &err));
	ck_assert_int_eq(err.code, ERR_IO);
	ck_assert_int_eq(place.record.seen[RECORD_STDOUT], 1000);
	check_seen(&place, 1000, 0);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
	/* A shorter frame in the place of the torn one: nothing of that may show behind it. */
	add(&place.record, RECORD_STDOUT, data + 1000, 10);
	check_seen(&place, 1010, 0);
	ck_assert_int_eq(file_size(&place, "log"), place.record.log_len);
	add(&place.record, RECORD_STDOUT, data + 1010, 29990);
	read_page(&place, RECORD_STDOUT, 0, MIB, &out);
	ck_assert_uint_eq(out.len, 31000);
	check_pattern(out.data, out.len, 0);

	int full = open("/dev/full", O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(dup3(full, place.record.files.log, O_CLOEXEC), place.record.files.log);
	close(full);
	ck_assert(!record_add(&place.record, RECORD_STDERR, "x", 1, &err));
	ck_assert_int_eq(err.code, ERR_QUOTA);
	place_finish(&place);
}
TEST_END

TEST(when_only_the_tail_finds_no_room_the_log_is_as_before)
{
	struct place place;
	struct err err = ERR_INIT;
	place_init(&place, true);
	add_pattern(&place.record, RECORD_STDOUT, RECORD_KEPT_MAX, 65536);
	int64_t size = file_size(&place, "log");
	int shut = open("/dev/null", O_RDONLY | O_CLOEXEC); /* neither cut nor written to */
	struct record broken = place.record;
	broken.files.tail[0] = broken.files.tail[1] = shut;
	add_text(&broken, RECORD_STDERR, "log only");
	ck_assert(!record_add(&broken, RECORD_STDOUT, "x", 1, &err));
	ck_assert_int_eq(broken.seen[RECORD_STDOUT], RECORD_KEPT_MAX);
	broken.files.tail[0] = place.record.files.tail[0];
	broken.files.tail[1] = place.record.files.tail[1];
	add_text(&broken, RECORD_STDOUT, "y");
	broken.files.tail[broken.tail_current] = shut;
	ck_assert(!record_add(&broken, RECORD_STDERR, "gone", 4, &err));
	ck_assert_int_eq(file_size(&place, "log"), size + 9);
	check_seen(&place, RECORD_KEPT_MAX + 1, 8);
	check_tail(&place, 1, 9, "log onlyy");
	close(shut);
	place_finish(&place);
}
TEST_END

TEST(a_record_in_memory_moves_into_a_directory_with_everything)
{
	static const size_t sizes[] = {0, 5000, RECORD_KEPT_MAX, RECORD_KEPT_MAX + 500000};
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct place place;
		struct err err = ERR_INIT;
		AUTO_BUF out = BUF_INIT;
		int64_t size = (int64_t)sizes[i], total = size + 6000;
		place_init(&place, false);
		ck_ok(record_create(&place.record, -1, &err), err);
		add_pattern(&place.record, RECORD_STDOUT, sizes[i], 4001);
		ck_ok(record_move(&place.record, place.fd, &err), err);
		check_seen(&place, size, 0);
		add_pattern(&place.record, RECORD_STDOUT, 6000, 4001);
		struct record_page page = read_page(&place, RECORD_STDOUT, 0, 2 * MIB, &out);
		ck_assert_int_eq(page.kept, total < RECORD_KEPT_MAX ? total : RECORD_KEPT_MAX);
		ck_assert_int_eq((int64_t)out.len, page.kept);
		ck_assert_int_eq(page.seen, total);
		check_pattern(out.data, out.len, 0);
		read_tail(&place, INT64_MAX, RECORD_TAIL_MIN, &out);
		ck_assert_uint_eq(out.len,
				  total < RECORD_TAIL_MIN ? (size_t)total : RECORD_TAIL_MIN);
		check_pattern(out.data, out.len, total - (int64_t)out.len);
		place_finish(&place);
	}
}
TEST_END

TEST(a_move_that_fails_leaves_the_record_in_memory_and_nothing_in_the_directory)
{
	struct place place, other;
	struct err err = ERR_INIT;
	AUTO_BUF out = BUF_INIT;
	place_init(&place, false);
	place_init(&other, false);
	ck_ok(record_create(&place.record, -1, &err), err);
	add_pattern(&place.record, RECORD_STDOUT, 5000, 100);
	struct rlimit old, limit;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	limit = (struct rlimit){.rlim_cur = 1000, .rlim_max = old.rlim_max};
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert(!record_move(&place.record, place.fd, &err));
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
	ck_assert_int_ne(faccessat(place.fd, "log", F_OK, 0), 0);
	ck_assert_int_ne(faccessat(place.fd, "tail.0", F_OK, 0), 0);
	add_pattern(&place.record, RECORD_STDOUT, 500, 100);
	ck_ok(record_move(&place.record, other.fd, &err), err);
	read_page(&other, RECORD_STDOUT, 0, MIB, &out);
	ck_assert_uint_eq(out.len, 5500);
	check_pattern(out.data, out.len, 0);
	place_finish(&other);
	place_finish(&place);
}
TEST_END

/* --- readers beside the writer ------------------------------------------------------------- */

/* Adds the pattern in pieces of odd sizes, as fast as possible. */
static void write_much(struct record *record, int64_t bytes, size_t step)
{
	struct err err = ERR_INIT;
	AUTO_FREE char *data = make_pattern(0, PERIOD + step);
	while (record->seen[RECORD_STDOUT] < bytes) {
		int64_t pos = record->seen[RECORD_STDOUT];
		size_t n = 1 + (size_t)pos % step;
		if (!record_add(record, RECORD_STDOUT, data + pos % PERIOD, n, &err))
			_exit(1);
	}
	_exit(0);
}

/* The bytes are a stretch of the pattern without a gap, wherever it begins. */
static void check_stretch(const char *data, size_t len)
{
	AUTO_FREE char *periods = make_pattern(0, 2 * PERIOD);
	size_t start = len < PERIOD ? len : PERIOD;
	const char *at = memmem(periods, 2 * PERIOD, data, start);
	ck_assert(at != NULL || start == 0);
	if (at != NULL)
		check_pattern(data, len, at - periods);
}

static void read_beside(int64_t bytes, size_t step)
{
	struct place place;
	struct err err = ERR_INIT;
	AUTO_BUF out = BUF_INIT;
	place_init(&place, true);
	pid_t pid = fork();
	if (pid == 0)
		write_much(&place.record, bytes, step);
	int status;
	int64_t last = 0, offset = 0;
	int busy = 0, reads = 0;
	while (waitpid(pid, &status, WNOHANG) == 0) {
		struct record_page page;
		buf_clear(&out);
		if (!record_read(place.fd, RECORD_STDOUT, offset, 50000, &out, &page, &err)) {
			ck_assert_int_eq(err.code, ERR_BUSY);
			busy++;
			continue;
		}
		check_pattern(out.data, out.len, offset);
		ck_assert_int_ge(page.seen, last);
		ck_assert_int_ge(page.seen, page.kept);
		ck_assert_int_le(page.next_offset, page.kept);
		offset = page.next_offset;
		last = page.seen;
		buf_clear(&out);
		if (record_tail(place.fd, INT64_MAX, RECORD_TAIL_MIN, &out, &err)) {
			ck_assert(out.len == RECORD_TAIL_MIN || last < RECORD_TAIL_MIN);
			check_stretch(out.data, out.len);
		}
		reads++;
	}
	ck_assert_int_eq(status, 0);
	ck_assert_int_gt(reads, 0);
	ck_assert_int_le(busy, reads);
	place_finish(&place);
}

TEST(a_reader_beside_a_writer_of_small_pieces_sees_prefixes_and_whole_tails)
{
	read_beside(5 * MIB, 9); /* a million pieces */
}
TEST_END

TEST(a_reader_beside_a_writer_of_large_pieces_sees_prefixes_and_whole_tails)
{
	read_beside(700 * MIB, 65536);
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		each_stream_is_read_alone_and_both_in_order,
		offset_and_limit_select_bytes_across_pieces,
		any_bytes_and_any_sizes_come_back,
		a_page_is_appended_to_what_the_buffer_has,
		a_stream_over_its_cap_is_cut_there_and_counted_and_the_other_goes_on,
		a_tail_is_limited_by_lines_and_bytes,
		one_huge_line_has_its_newest_bytes_as_tail,
		the_tail_is_current_and_long_enough_at_every_moment_of_a_long_output,
		the_tail_joins_the_log_without_gap_or_repetition_when_the_cap_is_crossed,
		after_the_cap_the_tail_has_both_streams_in_order,
		three_hundred_mebibytes_are_counted_and_take_little_disk,
		millions_of_single_bytes_stay_bounded_on_disk,
		a_directory_without_a_record_is_not_found_and_one_with_a_record_is_not_overwritten,
		a_resumed_record_goes_on_where_it_ended_also_over_the_cap,
		a_torn_frame_is_not_read_and_is_cut_off_by_resume,
		a_segment_with_an_impossible_head_is_as_none_and_the_record_goes_on,
		a_first_segment_that_lost_its_first_frame_does_not_hide_what_comes_after_a_resume,
		behind_a_log_that_is_longer_than_any_of_ours_output_goes_to_the_tail,
		a_writer_killed_at_any_moment_leaves_a_prefix_that_can_be_gone_on_with,
		a_full_disk_is_an_error_and_leaves_whole_frames,
		when_only_the_tail_finds_no_room_the_log_is_as_before,
		a_record_in_memory_moves_into_a_directory_with_everything,
		a_move_that_fails_leaves_the_record_in_memory_and_nothing_in_the_directory,
		a_reader_beside_a_writer_of_small_pieces_sees_prefixes_and_whole_tails,
		a_reader_beside_a_writer_of_large_pieces_sees_prefixes_and_whole_tails,
	};
	return unit_run("record", tests, ARRAY_LEN(tests));
}
