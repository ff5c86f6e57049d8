/* Masking of secret values in a stream. */
#include "unit.h"

#include "base/clock.h"
#include "run/mask.h"

/* --- helpers ------------------------------------------------------------------------------- */

#define MASK(...) make_mask((const char *const[]){__VA_ARGS__, NULL})

static struct mask *make_mask(const char *const *values)
{
	struct mask *mask = mask_new();
	for (; *values != NULL; values++)
		mask_add(mask, *values, strlen(*values));
	return mask;
}

/* Feeds text in pieces that end at the given places; the last piece is the rest. */
static void run(const struct mask *mask, const char *text, size_t len, const size_t *ends,
		size_t count, struct buf *out)
{
	struct mask_stream stream;
	mask_stream_init(&stream, mask);
	buf_clear(out);
	size_t pos = 0;
	for (size_t i = 0; i <= count; i++) {
		size_t end = i < count ? ends[i] : len;
		mask_feed(&stream, text + pos, end - pos, out);
		pos = end;
	}
	mask_end(&stream, out);
	mask_stream_finish(&stream);
}

/* Every split into two pieces, many into three, and bytes one by one give the expected text. */
static void check_splits(const struct mask *mask, const char *text, const char *expected)
{
	AUTO_BUF out = BUF_INIT;
	size_t len = strlen(text), step = len < 64 ? 1 : len / 37;
	for (size_t a = 0; a <= len; a++) {
		run(mask, text, len, &a, 1, &out);
		ck_assert_msg(strcmp(buf_str(&out), expected) == 0, "split at %zu: %s", a,
			      buf_str(&out));
		for (size_t b = a; b <= len; b += step) {
			run(mask, text, len, (size_t[]){a, b}, 2, &out);
			ck_assert_msg(strcmp(buf_str(&out), expected) == 0, "split at %zu, %zu: %s",
				      a, b, buf_str(&out));
		}
	}
	AUTO_FREE size_t *ends = xcalloc(len + 1, sizeof(*ends));
	for (size_t i = 0; i < len; i++)
		ends[i] = i;
	run(mask, text, len, ends, len, &out);
	ck_assert_str_eq(buf_str(&out), expected);
}

struct word {
	char data[16];
	size_t len;
};

/* What the promise says, over the whole text at once. */
static void reference(const struct word *words, size_t count, const char *text, size_t len,
		      struct buf *out)
{
	AUTO_FREE bool *covered = xcalloc(len + 1, sizeof(*covered));
	for (size_t w = 0; w < count; w++)
		for (size_t i = 0; words[w].len >= MASK_VALUE_MIN && i + words[w].len <= len; i++)
			if (memcmp(text + i, words[w].data, words[w].len) == 0)
				memset(covered + i, true, words[w].len);
	buf_clear(out);
	for (size_t i = 0; i < len; i++) {
		if (!covered[i])
			buf_putc(out, text[i]);
		else if (i == 0 || !covered[i - 1])
			buf_puts(out, "***");
	}
}

/* --- tests --------------------------------------------------------------------------------- */

TEST(a_value_is_masked_wherever_the_stream_is_split)
{
	struct mask *mask = MASK("s3cr3t-token");
	check_splits(mask, "before s3cr3t-token after", "before *** after");
	check_splits(mask, "s3cr3t-token", "***");
	check_splits(mask, "s3cr3t-toke s3cr3t-token! s3cr3t-tokens3cr3t-tok",
		     "s3cr3t-toke ***! ***s3cr3t-tok");
	mask_free(mask);
}
TEST_END

TEST(overlapping_nested_and_adjacent_values_become_one_mask)
{
	struct mask *mask = MASK("abcabcabc", "cabcab", "bcabca");
	check_splits(mask, "xabcabcabcabcy", "x***y");
	check_splits(mask, "xabcabcabcabcabcaby", "x***y");
	mask_free(mask);
	mask = MASK("abcdef", "defghi", "ghijkl", "123456");
	check_splits(mask, "-abcdefghijkl-abcdef123456-abcdef 123456", "-***-***-*** ***");
	mask_free(mask);
	mask = MASK("aaaaaa");
	check_splits(mask, "aaaaa aaaaaa aaaaaaaaaaaaaaaaaaab", "aaaaa *** ***b");
	mask_free(mask);
}
TEST_END

TEST(a_value_that_begins_or_ends_or_lies_within_another_is_masked_alone_and_with_it)
{
	struct mask *mask = MASK("abcdefgh", "abcdef", "cdefgh", "xxabcdefghyy");
	check_splits(mask, "abcdef cdefgh abcdefgh xxabcdefghyy xxabcdefghy",
		     "*** *** *** *** xx***y");
	mask_free(mask);
}
TEST_END

TEST(short_values_within_a_long_one_that_does_not_complete_are_masked_apart)
{
	struct mask *mask = MASK("begin-secret1-middle-secret2-end", "secret1", "secret2");
	check_splits(mask, "begin-secret1-middle-secret2-en.", "begin-***-middle-***-en.");
	check_splits(mask, "begin-secret1-middle-secret2-end", "***");
	mask_free(mask);
}
TEST_END

TEST(the_beginning_of_a_value_at_the_end_of_the_stream_comes_out)
{
	struct mask *mask = MASK("s3cr3t-token");
	struct mask_stream stream;
	AUTO_BUF out = BUF_INIT;
	mask_stream_init(&stream, mask);
	mask_feed(&stream, "text s3cr3t-toke", 16, &out);
	ck_assert_str_eq(buf_str(&out), "text ");
	mask_end(&stream, &out);
	ck_assert_str_eq(buf_str(&out), "text s3cr3t-toke");
	mask_feed(&stream, "n", 1, &out); /* a new stream: nothing is remembered */
	mask_end(&stream, &out);
	ck_assert_str_eq(buf_str(&out), "text s3cr3t-token");
	mask_stream_finish(&stream);
	mask_free(mask);
}
TEST_END

TEST(short_values_and_no_values_change_nothing)
{
	struct mask *mask = MASK("12345", "");
	ck_assert(mask_is_empty(mask));
	check_splits(mask, "12345 12345", "12345 12345");
	check_splits(NULL, "12345 12345", "12345 12345");
	mask_add(mask, "123456", 6);
	ck_assert(!mask_is_empty(mask));
	mask_free(mask);
	mask_free(NULL);
}
TEST_END

TEST(any_bytes_may_be_in_a_value)
{
	static const char value[] = "\0\xff\0\n\xff\0\x80";
	static const char text[] = "a\0\xff\0\n\xff\0\x80z\0\xff";
	struct mask *mask = mask_new();
	AUTO_BUF out = BUF_INIT;
	mask_add(mask, value, 7);
	for (size_t split = 0; split <= 11; split++) {
		run(mask, text, 11, &split, 1, &out);
		ck_assert_uint_eq(out.len, 7);
		ck_assert_int_eq(memcmp(out.data, "a***z\0\xff", 7), 0);
	}
	mask_free(mask);
}
TEST_END

TEST(of_a_value_beyond_the_limit_the_first_bytes_are_masked)
{
	AUTO_BUF text = BUF_INIT;
	AUTO_BUF out = BUF_INIT;
	for (int i = 0; text.len < MASK_VALUE_MAX + 100; i++)
		buf_printf(&text, "line %d\n", i);
	struct mask *mask = mask_new();
	mask_add(mask, text.data, text.len);
	size_t ends[] = {5, 9000};
	run(mask, text.data, text.len, ends, 2, &out);
	ck_assert_int_eq(strncmp(out.data, "***", 3), 0);
	ck_assert_str_eq(out.data + 3, text.data + MASK_VALUE_MAX);
	mask_free(mask);
}
TEST_END

TEST(less_than_the_longest_value_is_held_back)
{
	struct mask *mask = MASK("aaaaaaab", "aaaaaaaaaa");
	struct mask_stream stream;
	AUTO_BUF out = BUF_INIT;
	mask_stream_init(&stream, mask);
	for (int i = 0; i < 100; i++) {
		mask_feed(&stream, i % 31 == 30 ? "b" : "a", 1, &out);
		ck_assert_uint_lt(stream.held.len, 10);
	}
	mask_feed(&stream, "no beginning of a value", 23, &out);
	ck_assert_uint_eq(stream.held.len, 0);
	mask_stream_finish(&stream);
	mask_free(mask);
}
TEST_END

TEST(one_mask_serves_two_streams_at_once)
{
	struct mask *mask = MASK("s3cr3t-token");
	struct mask_stream one, two;
	AUTO_BUF out1 = BUF_INIT;
	AUTO_BUF out2 = BUF_INIT;
	mask_stream_init(&one, mask);
	mask_stream_init(&two, mask);
	mask_feed(&one, "s3cr3t", 6, &out1);
	mask_feed(&two, "-token", 6, &out2);
	mask_feed(&one, "-token", 6, &out1);
	mask_feed(&two, "s3cr3t", 6, &out2);
	mask_end(&one, &out1);
	mask_end(&two, &out2);
	ck_assert_str_eq(buf_str(&out1), "***");
	ck_assert_str_eq(buf_str(&out2), "-tokens3cr3t");
	mask_stream_finish(&one);
	mask_stream_finish(&two);
	mask_free(mask);
}
TEST_END

/* One round: words and text over a small alphabet, so that they meet often. */
static void random_round(unsigned letters, size_t len)
{
	struct word words[8];
	size_t count = 1 + (size_t)rand() % ARRAY_LEN(words);
	char text[400];
	struct mask *mask = mask_new();
	for (size_t w = 0; w < count; w++) {
		words[w].len = 5 + (size_t)rand() % (sizeof(words[w].data) - 5);
		for (size_t i = 0; i < words[w].len; i++)
			words[w].data[i] = (char)('a' + (unsigned)rand() % letters);
		mask_add(mask, words[w].data, words[w].len);
	}
	for (size_t i = 0; i < len; i++)
		text[i] = (char)('a' + (unsigned)rand() % letters);
	for (int i = 0; i < 6; i++) { /* whole words and beginnings of words */
		const struct word *word = &words[(size_t)rand() % count];
		size_t n = word->len - (size_t)rand() % 3;
		memcpy(text + (size_t)rand() % (len - n), word->data, n);
	}
	size_t ends[8], splits = (size_t)rand() % ARRAY_LEN(ends), end = 0;
	for (size_t i = 0; i < splits; i++)
		ends[i] = end += (size_t)rand() % (len - end + 1) / 2;
	AUTO_BUF out = BUF_INIT;
	AUTO_BUF expected = BUF_INIT;
	reference(words, count, text, len, &expected);
	run(mask, text, len, ends, splits, &out);
	ck_assert_msg(out.len == expected.len && memcmp(out.data, expected.data, out.len) == 0,
		      "%.*s\ngave %s\nnot  %s", (int)len, text, buf_str(&out), buf_str(&expected));
	mask_free(mask);
}

TEST(random_texts_in_random_pieces_are_masked_as_a_whole_text_would_be)
{
	srand(20240229);
	for (int i = 0; i < 20000; i++)
		random_round(1 + (unsigned)rand() % 4, 60 + (size_t)rand() % 300);
}
TEST_END

TEST(a_hundred_long_values_compile_and_match)
{
	struct mask *mask = mask_new();
	AUTO_BUF text = BUF_INIT;
	AUTO_BUF out = BUF_INIT;
	AUTO_BUF value = BUF_INIT;
	for (int v = 0; v < 100; v++) {
		buf_clear(&value);
		while (value.len < MASK_VALUE_MAX - 32)
			buf_puts(&value, "aaaaaaaaaaaaaaab");
		buf_printf(&value, "%08d", v);
		mask_add(mask, value.data, value.len);
		if (v % 10 == 0) {
			buf_append(&text, value.data, value.len);
			buf_puts(&text, ";");
		}
	}
	run(mask, text.data, text.len, (size_t[]){1000, 20000}, 2, &out);
	ck_assert_str_eq(buf_str(&out), "***;***;***;***;***;***;***;***;***;***;");
	mask_free(mask);
}
TEST_END

/* Not a measurement: each byte of a mere scan of all held bytes would take minutes. */
TEST(hostile_repetition_takes_time_in_proportion_to_its_length)
{
	AUTO_BUF value = BUF_INIT;
	AUTO_BUF text = BUF_INIT;
	AUTO_BUF out = BUF_INIT;
	struct mask *mask = mask_new();
	memset(buf_reserve(&value, MASK_VALUE_MAX), 'a', MASK_VALUE_MAX);
	for (size_t len = MASK_VALUE_MIN; len <= MASK_VALUE_MAX; len += 500)
		mask_add(mask, value.data, len);
	value.data[MASK_VALUE_MAX - 1] = 'b';
	mask_add(mask, value.data, MASK_VALUE_MAX);
	size_t len = 16 << 20;
	memset(buf_reserve(&text, len), 'a', len);
	int64_t start = clock_mono_ms();
	run(mask, text.data, len, (size_t[]){1 << 20, 9 << 20}, 2, &out);
	ck_assert_str_eq(buf_str(&out), "***");
	ck_assert_int_lt(clock_mono_ms() - start, 20000);
	mask_free(mask);
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		a_value_is_masked_wherever_the_stream_is_split,
		overlapping_nested_and_adjacent_values_become_one_mask,
		a_value_that_begins_or_ends_or_lies_within_another_is_masked_alone_and_with_it,
		short_values_within_a_long_one_that_does_not_complete_are_masked_apart,
		the_beginning_of_a_value_at_the_end_of_the_stream_comes_out,
		short_values_and_no_values_change_nothing,
		any_bytes_may_be_in_a_value,
		of_a_value_beyond_the_limit_the_first_bytes_are_masked,
		less_than_the_longest_value_is_held_back,
		one_mask_serves_two_streams_at_once,
		random_texts_in_random_pieces_are_masked_as_a_whole_text_would_be,
		a_hundred_long_values_compile_and_match,
		hostile_repetition_takes_time_in_proportion_to_its_length,
	};
	return unit_run("mask", tests, ARRAY_LEN(tests));
}
