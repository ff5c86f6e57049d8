/* Lines out of a stream, however it is cut into reads. */
#include "stdio/lines.h"

#include <fcntl.h>

#include "unit.h"

#define MAX ((size_t)40)

static int ends[2];

static void open_pipe(void)
{
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
}

static void feed(const char *text, size_t len)
{
	ck_assert_int_eq(write(ends[1], text, len), (ssize_t)len);
}

/* All there is, each line in brackets, "!" for one that is too long. */
static void drain(struct lines *lines, struct buf *out)
{
	const char *text;
	size_t len;
	enum line_kind kind;
	while ((kind = lines_next(lines, &text, &len)) != LINE_NONE) {
		if (kind == LINE_TOO_LONG)
			buf_puts(out, "!");
		else
			buf_printf(out, "[%.*s]", (int)len, text);
	}
}

/* What comes of a text that is written in pieces of step bytes, then the end. */
static char *lines_of(const char *text, size_t step)
{
	struct buf out = BUF_INIT;
	struct lines lines;
	size_t len = strlen(text);
	lines_init(&lines, MAX);
	open_pipe();
	for (size_t at = 0; at < len; at += step) {
		feed(text + at, len - at < step ? len - at : step);
		ck_assert(lines_has_room(&lines));
		lines_read(&lines, ends[0]);
		drain(&lines, &out);
	}
	close(ends[1]);
	while (!lines.ended)
		lines_read(&lines, ends[0]);
	drain(&lines, &out);
	close(ends[0]);
	lines_finish(&lines);
	return buf_take(&out);
}

static void check_all_cuts(const char *text, const char *expected)
{
	for (size_t step = 1; step <= strlen(text); step++) {
		AUTO_FREE char *got = lines_of(text, step);
		ck_assert_msg(strcmp(got, expected) == 0, "step %zu: %s", step, got);
	}
}

TEST(lines_come_out_whole_however_they_are_cut)
{
	check_all_cuts("{\"a\":1}\nzwei\nx\n", "[{\"a\":1}][zwei][x]");
}
TEST_END

TEST(blank_lines_are_left_out_and_a_carriage_return_stays_with_its_line)
{
	check_all_cuts("\n \t\r\n\r\na\r\n\n", "[a\r]");
}
TEST_END

TEST(the_last_line_needs_no_newline)
{
	check_all_cuts("one\ntwo", "[one][two]");
}
TEST_END

TEST(a_line_of_the_greatest_length_passes_and_one_byte_more_does_not)
{
	char text[256];
	snprintf(text, sizeof(text), "%.*s\nnext\n", (int)MAX,
		 "0123456789012345678901234567890123456789");
	check_all_cuts(text, "[0123456789012345678901234567890123456789][next]");
	snprintf(text, sizeof(text), "0123456789012345678901234567890123456789+\nnext\n");
	check_all_cuts(text, "![next]");
}
TEST_END

TEST(a_long_line_is_told_once_and_dropped_in_bounded_memory)
{
	struct buf out = BUF_INIT;
	struct lines lines;
	char piece[1000];
	memset(piece, 'x', sizeof(piece));
	lines_init(&lines, MAX);
	open_pipe();
	for (int i = 0; i < 2000; i++) {
		feed(piece, sizeof(piece));
		lines_read(&lines, ends[0]);
		drain(&lines, &out);
	}
	ck_assert_uint_lt(lines.data.cap, 300000);
	feed("\nafter\n", 7);
	lines_read(&lines, ends[0]);
	drain(&lines, &out);
	ck_assert_str_eq(buf_str(&out), "![after]");
	close(ends[0]);
	close(ends[1]);
	buf_finish(&out);
	lines_finish(&lines);
}
TEST_END

TEST(a_long_line_without_an_end_is_told_at_the_end)
{
	check_all_cuts("ok\n0123456789012345678901234567890123456789012345", "[ok]!");
}
TEST_END

TEST(peeked_lines_are_shown_once_and_stay)
{
	struct lines lines;
	const char *text;
	size_t len;
	AUTO_BUF out = BUF_INIT;
	lines_init(&lines, MAX);
	open_pipe();
	feed("one\ntwo\nthree\nfo", 16);
	lines_read(&lines, ends[0]);
	ck_assert_int_eq(lines_next(&lines, &text, &len), LINE_TEXT);
	ck_assert(lines_peek(&lines, &text, &len));
	ck_assert_int_eq(strncmp(text, "two\n", len + 1), 0);
	ck_assert(lines_peek(&lines, &text, &len));
	ck_assert_int_eq(strncmp(text, "three\n", len + 1), 0);
	ck_assert(!lines_peek(&lines, &text, &len));
	feed("ur\n", 3);
	lines_read(&lines, ends[0]);
	ck_assert(lines_peek(&lines, &text, &len));
	ck_assert_int_eq(strncmp(text, "four\n", len + 1), 0);
	lines_peek_again(&lines);
	ck_assert(lines_peek(&lines, &text, &len));
	ck_assert_int_eq(strncmp(text, "two\n", len + 1), 0);
	drain(&lines, &out);
	ck_assert_str_eq(buf_str(&out), "[two][three][four]");
	close(ends[0]);
	close(ends[1]);
	lines_finish(&lines);
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		lines_come_out_whole_however_they_are_cut,
		blank_lines_are_left_out_and_a_carriage_return_stays_with_its_line,
		the_last_line_needs_no_newline,
		a_line_of_the_greatest_length_passes_and_one_byte_more_does_not,
		a_long_line_is_told_once_and_dropped_in_bounded_memory,
		a_long_line_without_an_end_is_told_at_the_end,
		peeked_lines_are_shown_once_and_stay,
	};
	return unit_run("lines", unit_tests, ARRAY_LEN(unit_tests));
}
