/*
 * Masking by its definition: every byte of every occurrence of a value is masked, runs become one
 * mark, and where the stream is cut makes no difference.
 *
 * Input: a line with the length of a feed, the values as lines, an empty line, the stream.
 */
#include "fuzz.h"

#include "run/mask.h"

#define VALUES_MAX 16

struct values {
	char *at[VALUES_MAX];
	size_t count;
};

static void take_values(struct fuzz_input *in, struct values *values)
{
	char *line;
	while ((line = fuzz_line(in))[0] != '\0' && values->count < VALUES_MAX)
		values->at[values->count++] = line;
	free(line);
}

/* What the comment in mask.h says, in quadratic time. */
static void mask_slowly(const struct values *values, const char *data, size_t len, struct buf *out)
{
	AUTO_FREE bool *covered = xcalloc(len + 1, sizeof(*covered));
	for (size_t v = 0; v < values->count; v++) {
		size_t value_len = strlen(values->at[v]);
		value_len = value_len < MASK_VALUE_MAX ? value_len : MASK_VALUE_MAX;
		for (size_t i = 0; value_len >= MASK_VALUE_MIN && i + value_len <= len; i++)
			if (memcmp(data + i, values->at[v], value_len) == 0)
				memset(covered + i, true, value_len);
	}
	for (size_t i = 0; i < len; i++) {
		if (!covered[i])
			buf_putc(out, data[i]);
		else if (i == 0 || !covered[i - 1])
			buf_puts(out, MASK_TEXT);
	}
}

static void mask_in_pieces(const struct mask *mask, const char *data, size_t len, size_t piece,
			   struct buf *out)
{
	struct mask_stream stream;
	mask_stream_init(&stream, mask);
	for (size_t n; len > 0; data += n, len -= n) {
		n = len < piece ? len : piece;
		/* In memory of its own: what is held back must have been copied. */
		AUTO_FREE char *copy = xmalloc(n);
		memcpy(copy, data, n);
		mask_feed(&stream, copy, n, out);
		assert(stream.held.len < MASK_VALUE_MAX);
	}
	mask_end(&stream, out);
	mask_stream_finish(&stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = fuzz_input(data, size);
	AUTO_FREE char *first = fuzz_line(&in);
	size_t piece = strtoul(first, NULL, 10);
	struct values values = {.count = 0};
	struct mask *mask = mask_new();
	take_values(&in, &values);
	for (size_t i = 0; i < values.count; i++)
		mask_add(mask, values.at[i], strlen(values.at[i]));

	AUTO_BUF wanted = BUF_INIT, whole = BUF_INIT, pieces = BUF_INIT;
	mask_slowly(&values, in.at, in.len, &wanted);
	mask_in_pieces(mask, in.at, in.len, SIZE_MAX, &whole);
	mask_in_pieces(mask, in.at, in.len, piece == 0 ? 1 : piece, &pieces);
	assert(wanted.len == whole.len && wanted.len == pieces.len);
	assert(memcmp(buf_str(&wanted), buf_str(&whole), wanted.len) == 0);
	assert(memcmp(buf_str(&wanted), buf_str(&pieces), wanted.len) == 0);

	mask_free(mask);
	for (size_t i = 0; i < values.count; i++)
		free(values.at[i]);
	return 0;
}
