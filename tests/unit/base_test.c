/* The small modules of the base floor: buf, err, num, clock, id, log. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/num.h"
#include "base/text.h"

TEST(a_buffer_grows_and_stays_terminated)
{
	AUTO_BUF buf = BUF_INIT;
	ck_assert_str_eq(buf_str(&buf), "");
	for (int i = 0; i < 10000; i++)
		buf_printf(&buf, "%d,", i % 10);
	ck_assert_uint_eq(buf.len, 20000);
	ck_assert_uint_eq(strlen(buf_str(&buf)), 20000);
	AUTO_FREE char *taken = buf_take(&buf);
	ck_assert_ptr_null(buf.data);
	ck_assert_int_eq(taken[0], '0');
}
TEST_END

TEST(an_error_keeps_message_hint_and_code)
{
	struct err err = ERR_INIT;
	ck_assert(!err_set(&err, ERR_TOO_LARGE, "limit is %d, got %d", 3, 4));
	err_hint(&err, "use less");
	ck_assert_str_eq(err_message(&err), "limit is 3, got 4");
	ck_assert_str_eq(err_next(&err), "use less");
	ck_assert_int_eq(err_http_status(err.code), 413);
}
TEST_END

TEST(a_host_failure_shows_nothing_of_the_host)
{
	struct err err = ERR_INIT;
	errno = EACCES;
	err_sys(&err, "open /secret/path");
	err_in(&err, "while %s", "reading");
	ck_assert_ptr_null(strstr(err_message(&err), "secret"));
	ck_assert_str_eq(err.trace, "while reading: open /secret/path");
	ck_assert_int_eq(err.sys, EACCES);
	errno = ENOSPC;
	err_sys(&err, "write");
	ck_assert_int_eq(err.code, ERR_QUOTA);
}
TEST_END

TEST(a_long_message_is_cut_between_characters)
{
	struct err err = ERR_INIT;
	AUTO_BUF text = BUF_INIT;
	for (int i = 0; i < 300; i++)
		buf_puts(&text, "\xE4\xBD\xA0");
	for (int pad = 0; pad < 4; pad++) {
		err_set(&err, ERR_INVALID, "%.*s%s", pad, "xxx", buf_str(&text));
		ck_assert(text_is_utf8(err.msg, strlen(err.msg)));
		ck_assert_uint_gt(strlen(err.msg), sizeof(err.msg) - 5);
	}
}
TEST_END

TEST(every_code_has_a_name_a_status_and_a_next_step)
{
	for (int code = 1; code < ERR__MAX; code++) {
		struct err err = {.code = (enum err_code)code};
		ck_assert_ptr_nonnull(err_name(err.code));
		ck_assert_int_ge(err_http_status(err.code), 400);
		ck_assert_str_ne(err_message(&err), "");
		ck_assert_str_ne(err_next(&err), "");
	}
}
TEST_END

TEST(integers_are_the_whole_text_or_nothing)
{
	int64_t n = 0;
	ck_assert(num_parse_int("-12", -100, 100, &n) && n == -12);
	static const char *const bad[] = {
		"", " 1", "1 ", "+1", "1x", "0x10", "--1", "101", "99999999999999999999"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ck_assert_msg(!num_parse_int(bad[i], -100, 100, &n), "%s", bad[i]);
}
TEST_END

TEST(sizes_take_binary_suffixes)
{
	int64_t n = 0;
	ck_assert(num_parse_size("2g", 0, INT64_MAX, &n) && n == 2147483648LL);
	ck_assert(num_parse_size("10KiB", 0, INT64_MAX, &n) && n == 10240);
	ck_assert(num_parse_size("7", 0, INT64_MAX, &n) && n == 7);
	static const char *const bad[] = {"-1", "g", "1x", "1kk", "9999999t", "1.5g", ""};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ck_assert_msg(!num_parse_size(bad[i], 0, INT64_MAX, &n), "%s", bad[i]);
}
TEST_END

TEST(dates_are_formatted_and_read_back)
{
	char rfc[CLOCK_RFC3339_LEN], http[CLOCK_HTTP_LEN];
	ck_assert_str_eq(clock_rfc3339(1790000000123, rfc), "2026-09-21T14:13:20.123Z");
	ck_assert_str_eq(clock_http_date(1790000000123, http), "Mon, 21 Sep 2026 14:13:20 GMT");
	int64_t back = 0;
	ck_assert(clock_parse_http_date(http, &back));
	ck_assert_int_eq(back, 1790000000000);
	ck_assert(!clock_parse_http_date("Mon, 21 Sep 2026 14:13:20 UTC", &back));
	ck_assert_str_eq(clock_rfc3339(-1, rfc), "1969-12-31T23:59:59.999Z");
	clock_rfc3339(INT64_MAX, rfc);
	clock_rfc3339(INT64_MIN, rfc);
}
TEST_END

TEST(ids_are_distinct_and_names_follow_the_grammar)
{
	char a[ID_LEN + 1], b[ID_LEN + 1], name[NAME_MADE_LEN];
	id_make(a);
	id_make(b);
	ck_assert(id_is_valid(a));
	ck_assert_str_ne(a, b);
	name_make(name);
	ck_assert(name_is_valid(name));
	static const char *const bad[] = {"",    "..",  "../x", "-a",       "_a",
					  "a/b", "a b", "a.b",  "\xC3\xA9", "a\n"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ck_assert_msg(!name_is_valid(bad[i]), "%s", bad[i]);
	char longest[NAME_MAX_LEN + 2];
	memset(longest, 'a', sizeof(longest));
	longest[NAME_MAX_LEN] = '\0';
	ck_assert(name_is_valid(longest));
	longest[NAME_MAX_LEN] = 'a';
	longest[NAME_MAX_LEN + 1] = '\0';
	ck_assert(!name_is_valid(longest));
	ck_assert(!id_is_valid("ABCDEF0123456789ABCDEF0123456789"));
}
TEST_END

TEST(a_hostile_value_cannot_forge_a_log_line)
{
	int ends[2];
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	int saved = dup(STDERR_FILENO);
	dup2(ends[1], STDERR_FILENO);
	errno = EXDEV;
	log_event(LOG_INFO, "test", "value=%s", "a\nerror forged\x1B[2J\xFF");
	log_event(LOG_DEBUG, "test", "below the level");
	dup2(saved, STDERR_FILENO);
	close(saved);
	ck_assert_int_eq(errno, EXDEV);
	char line[512];
	ssize_t n = read(ends[0], line, sizeof(line) - 1);
	ck_assert_int_gt(n, 0);
	line[n] = '\0';
	ck_assert_ptr_eq(strchr(line, '\n'), line + n - 1);
	ck_assert_ptr_nonnull(strstr(line, "value=a\\x0aerror forged\\x1b[2J"));
	ck_assert(text_is_utf8(line, (size_t)n));
	close(ends[0]);
	close(ends[1]);
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		a_buffer_grows_and_stays_terminated,
		an_error_keeps_message_hint_and_code,
		a_host_failure_shows_nothing_of_the_host,
		a_long_message_is_cut_between_characters,
		every_code_has_a_name_a_status_and_a_next_step,
		integers_are_the_whole_text_or_nothing,
		sizes_take_binary_suffixes,
		dates_are_formatted_and_read_back,
		ids_are_distinct_and_names_follow_the_grammar,
		a_hostile_value_cannot_forge_a_log_line,
	};
	return unit_run("base", unit_tests, ARRAY_LEN(unit_tests));
}
