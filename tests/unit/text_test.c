#include "unit.h"

#include "base/text.h"

#define REPLACEMENT "\xEF\xBF\xBD"

static void expect_decode(const char *in, size_t len, bool front, bool back, const char *text,
			  const char *encoding)
{
	AUTO_BUF out = BUF_INIT;
	ck_assert_str_eq(text_decode(&out, in, len, front, back), encoding);
	ck_assert_str_eq(buf_str(&out), text);
}

TEST(utf8_comes_through_unchanged_and_is_named)
{
	expect_decode("h\xC3\xA9llo \xF0\x9F\xA4\xA3", 11, false, false,
		      "h\xC3\xA9llo \xF0\x9F\xA4\xA3", "utf-8");
	expect_decode("", 0, false, false, "", "utf-8");
}
TEST_END

TEST(gb18030_is_decoded_when_it_is_not_utf8)
{
	expect_decode("\xC4\xE3\xBA\xC3", 4, false, false, "\xE4\xBD\xA0\xE5\xA5\xBD", "gb18030");
}
TEST_END

TEST(bytes_that_are_no_text_are_repaired_and_called_binary)
{
	expect_decode("a\xFF\x01z", 4, false, false, "a" REPLACEMENT "\x01z", "binary");
	expect_decode("a\xE4\xBD\xFF", 4, false, false, "a" REPLACEMENT REPLACEMENT, "binary");
}
TEST_END

TEST(a_sequence_cut_at_an_edge_is_dropped_not_misread)
{
	expect_decode("\x9F\xA4\xA3 ok", 6, true, false, " ok", "utf-8");
	expect_decode("ok \xE4\xBD", 5, false, true, "ok ", "utf-8");
	expect_decode("ok \xF0\x9F\xA4\xA3", 7, false, true, "ok \xF0\x9F\xA4\xA3", "utf-8");
}
TEST_END

TEST(random_bytes_always_become_valid_utf8)
{
	unsigned seed = 7;
	for (int round = 0; round < 2000; round++) {
		char bytes[64];
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (char)rand_r(&seed);
		AUTO_BUF out = BUF_INIT;
		text_decode(&out, bytes, (size_t)rand_r(&seed) % sizeof(bytes), round & 1,
			    round & 2);
		ck_assert(text_is_utf8(buf_str(&out), out.len));
	}
}
TEST_END

TEST(cutting_never_splits_a_character)
{
	const char *text = "a\xC3\xA9\xF0\x9F\xA4\xA3";
	static const size_t want[] = {0, 1, 1, 3, 3, 3, 3, 7, 7};
	for (size_t max = 0; max < ARRAY_LEN(want); max++)
		ck_assert_uint_eq(text_cut(text, 7, max), want[max]);
	ck_assert_uint_eq(text_count(text, 7), 3);
}
TEST_END

TEST(names_are_converted_to_gb18030_only_when_that_differs)
{
	AUTO_BUF out = BUF_INIT;
	ck_assert(text_to_gb18030(&out, "\xE4\xBD\xA0", 3));
	ck_assert_str_eq(buf_str(&out), "\xC4\xE3");
	ck_assert(!text_to_gb18030(&out, "ascii", 5));
}
TEST_END

TEST(quoting_escapes_control_characters_and_bounds_the_length)
{
	AUTO_BUF out = BUF_INIT;
	text_quote(&out, "a\n\"\\\x7F", 5, 64);
	ck_assert_str_eq(buf_str(&out), "a\\x0a\\\"\\\\\\x7f");
	buf_clear(&out);
	text_quote(&out, "0123456789", 10, 4);
	ck_assert_str_eq(buf_str(&out), "0123...");
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		utf8_comes_through_unchanged_and_is_named,
		gb18030_is_decoded_when_it_is_not_utf8,
		bytes_that_are_no_text_are_repaired_and_called_binary,
		a_sequence_cut_at_an_edge_is_dropped_not_misread,
		random_bytes_always_become_valid_utf8,
		cutting_never_splits_a_character,
		names_are_converted_to_gb18030_only_when_that_differs,
		quoting_escapes_control_characters_and_bounds_the_length,
	};
	return unit_run("text", unit_tests, ARRAY_LEN(unit_tests));
}
