/* Bounded capture. */
#include "unit.h"

#include "base/text.h"
#include "run/capture.h"

/* The text that a capture of limit bytes keeps of data, added in pieces of step bytes. */
static const char *keep(size_t limit, const char *data, size_t len, size_t step, struct buf *out,
			int64_t *total)
{
	struct capture capture;
	capture_init(&capture, limit);
	for (size_t i = 0; i < len; i += step)
		capture_add(&capture, data + i, len - i < step ? len - i : step);
	buf_clear(out);
	const char *encoding = capture_text(&capture, out);
	*total = capture.total;
	ck_assert_int_eq(capture_truncated(&capture), len > limit);
	capture_finish(&capture);
	return encoding;
}

TEST(what_fits_is_kept_whole_however_it_arrives)
{
	static const char text[] = "0123456789abcdefghijklmnopqrst";
	AUTO_BUF out = BUF_INIT;
	int64_t total;
	for (size_t len = 0; len < sizeof(text); len++)
		for (size_t step = 1; step <= 7; step++) {
			keep(30, text, len, step, &out, &total);
			ck_assert_uint_eq(out.len, len);
			ck_assert_int_eq(memcmp(buf_str(&out), text, len), 0);
			ck_assert_int_eq(total, (int64_t)len);
		}
}
TEST_END

TEST(two_thirds_from_the_start_and_one_third_from_the_end_are_kept)
{
	static const char text[] = "AAAAAAAAAAAAAAAAAAAA.................ZZZZZZZZZY";
	AUTO_BUF out = BUF_INIT;
	int64_t total;
	for (size_t step = 1; step <= 50; step++) {
		keep(30, text, strlen(text), step, &out, &total);
		ck_assert_str_eq(buf_str(&out),
				 "AAAAAAAAAAAAAAAAAAAA\n[... 17 bytes left out ...]\nZZZZZZZZZY");
		ck_assert_int_eq(total, (int64_t)strlen(text));
	}
}
TEST_END

TEST(a_character_at_the_seam_of_what_fits_is_not_cut)
{
	static const char text[] = "a\xe4\xb8\xad\xe6\x96\x87\xe5\xad\x97"; /* 1 + 3 * 3 bytes */
	AUTO_BUF out = BUF_INIT;
	int64_t total;
	for (size_t limit = strlen(text); limit < 20; limit++) {
		ck_assert_str_eq(keep(limit, text, strlen(text), 2, &out, &total), "utf-8");
		ck_assert_str_eq(buf_str(&out), text);
	}
}
TEST_END

TEST(characters_cut_at_the_gap_leave_valid_text)
{
	AUTO_BUF text = BUF_INIT;
	AUTO_BUF out = BUF_INIT;
	int64_t total;
	for (int i = 0; i < 100; i++)
		buf_puts(&text, "\xe4\xb8\xad");
	for (size_t limit = 10; limit < 40; limit++) {
		ck_assert_str_eq(keep(limit, text.data, text.len, 64, &out, &total), "utf-8");
		ck_assert(text_is_utf8(out.data, out.len));
		ck_assert_ptr_null(strstr(buf_str(&out), "\xef\xbf\xbd"));
	}
}
TEST_END

TEST(bytes_that_are_no_text_are_called_binary_on_either_side_of_the_gap)
{
	AUTO_BUF text = BUF_INIT;
	AUTO_BUF out = BUF_INIT;
	int64_t total;
	static const char noise[] = {0, 1, 2, (char)0xFF, (char)0xFE, 0};
	for (int i = 0; i < 100; i++)
		buf_puts(&text, "text ");
	buf_append(&text, noise, sizeof(noise));
	ck_assert_str_eq(keep(60, text.data, text.len, 9, &out, &total), "binary");
	ck_assert(text_is_utf8(out.data, out.len));
	AUTO_BUF front = BUF_INIT;
	buf_append(&front, noise, sizeof(noise));
	buf_append(&front, text.data, 400);
	ck_assert_str_eq(keep(60, front.data, front.len, 9, &out, &total), "binary");
}
TEST_END

TEST(tiny_limits_work)
{
	AUTO_BUF out = BUF_INIT;
	int64_t total;
	keep(0, "abc", 3, 1, &out, &total);
	ck_assert_str_eq(buf_str(&out), "\n[... 3 bytes left out ...]\n");
	keep(1, "abc", 3, 2, &out, &total);
	ck_assert_str_eq(buf_str(&out), "a\n[... 2 bytes left out ...]\n");
	keep(3, "abcdef", 6, 6, &out, &total);
	ck_assert_str_eq(buf_str(&out), "ab\n[... 3 bytes left out ...]\nf");
}
TEST_END

/* The newest line after len bytes arrived one by one. */
static const char *last_line(const char *data, size_t len, size_t limit)
{
	static struct buf out;
	struct capture capture;
	capture_init(&capture, limit);
	for (size_t i = 0; i < len; i++)
		capture_add(&capture, data + i, 1);
	buf_clear(&out);
	capture_last_line(&capture, 200, &out);
	capture_finish(&capture);
	return buf_str(&out);
}
#define LAST_LINE(text) last_line(text, sizeof(text) - 1, 3000)

TEST(the_newest_line_is_complete_and_not_blank)
{
	ck_assert_str_eq(LAST_LINE(""), "");
	ck_assert_str_eq(LAST_LINE("no end"), "");
	ck_assert_str_eq(LAST_LINE("one\n"), "one");
	ck_assert_str_eq(LAST_LINE("one\ntwo\nthr"), "two");
	ck_assert_str_eq(LAST_LINE("one\n\n \t \n\n"), "one");
	ck_assert_str_eq(LAST_LINE("\n\n"), "");
	/* A progress bar overwrites itself. */
	ck_assert_str_eq(LAST_LINE("start\n 10%\r 20%\r 30"), " 20%");
	ck_assert_str_eq(LAST_LINE("dos\r\nline\r\n"), "line");
}
TEST_END

TEST(the_newest_line_has_no_terminal_sequences)
{
	ck_assert_str_eq(LAST_LINE("\x1b[1;32mgreen\x1b[0m\tx\a\n"), "green x");
	ck_assert_str_eq(LAST_LINE("a\x1b[2K\x1b(B\x7f\x00z\n"), "aBz");
	ck_assert_str_eq(LAST_LINE("a\xc2\x9b"
				   "31mred\n"),
			 "a31mred");
	ck_assert_str_eq(LAST_LINE("ends in\x1b[\n"), "ends in");
	ck_assert_str_eq(LAST_LINE("\x1b\n"), "");
}
TEST_END

TEST(the_newest_line_is_short_valid_text_also_across_the_gap)
{
	AUTO_BUF text = BUF_INIT;
	for (int i = 0; i < 1000; i++)
		buf_puts(&text, "\xe4\xb8\xad");
	buf_putc(&text, '\n');
	for (size_t limit = 1; limit < 120; limit++)
		ck_assert(text_is_utf8(last_line(text.data, text.len, limit),
				       strlen(last_line(text.data, text.len, limit))));
	ck_assert_uint_eq(strlen(last_line(text.data, text.len, 30000)), 198);
	/* Head and tail that are not neighbours are not read as one line. */
	buf_clear(&text);
	buf_puts(&text, "head ");
	for (int i = 0; i < 50; i++)
		buf_puts(&text, "left out ");
	buf_puts(&text, "tail\n");
	ck_assert_ptr_null(strstr(last_line(text.data, text.len, 30), "head"));
	/* And those that are, are. */
	ck_assert_str_eq(last_line("x\nabcdefgh\n", 11, 12), "abcdefgh");
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		what_fits_is_kept_whole_however_it_arrives,
		two_thirds_from_the_start_and_one_third_from_the_end_are_kept,
		a_character_at_the_seam_of_what_fits_is_not_cut,
		characters_cut_at_the_gap_leave_valid_text,
		bytes_that_are_no_text_are_called_binary_on_either_side_of_the_gap,
		tiny_limits_work,
		the_newest_line_is_complete_and_not_blank,
		the_newest_line_has_no_terminal_sequences,
		the_newest_line_is_short_valid_text_also_across_the_gap,
	};
	return unit_run("capture", tests, ARRAY_LEN(tests));
}
