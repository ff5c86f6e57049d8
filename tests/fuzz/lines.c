/*
 * Lines come out of a stream as they stand in it, however it is cut into reads.
 *
 * Input: a line with the longest length of a line and the length of a read, then the stream.
 */
#include "fuzz.h"

#include <fcntl.h>

#include "stdio/lines.h"

/* What is to come, as the whole stream tells it. */
struct oracle {
	const char *at, *end;
	size_t max;
};

/* Blank for JSON-RPC over stdio: nothing but spaces, tabs and returns. */
static bool is_blank(const char *text, size_t len)
{
	size_t i = 0;
	while (i < len && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r'))
		i++;
	return i == len;
}

static enum line_kind oracle_next(struct oracle *oracle, const char **text, size_t *len)
{
	while (oracle->at < oracle->end) {
		size_t left = (size_t)(oracle->end - oracle->at);
		const char *newline = memchr(oracle->at, '\n', left);
		*text = oracle->at;
		*len = newline == NULL ? left : (size_t)(newline - oracle->at);
		oracle->at += *len + (newline != NULL);
		if (*len > oracle->max)
			return LINE_TOO_LONG;
		if (!is_blank(*text, *len))
			return LINE_TEXT;
	}
	return LINE_NONE;
}

/* Takes all lines that are there; looks at those behind each first. */
static void take_all(struct lines *lines, struct oracle *oracle)
{
	const char *text, *wanted;
	size_t len, wanted_len;
	enum line_kind kind;
	do {
		lines_peek_again(lines);
		while (lines_peek(lines, &text, &len))
			assert(memchr(text, '\n', len) == NULL);
		kind = lines_next(lines, &text, &len);
		if (kind == LINE_NONE)
			return;
		assert(kind == oracle_next(oracle, &wanted, &wanted_len));
		if (kind == LINE_TEXT)
			assert(len == wanted_len && memcmp(text, wanted, len) == 0);
	} while (true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = fuzz_input(data, size);
	AUTO_FREE char *numbers = fuzz_line(&in);
	unsigned max = 0, chunk = 0;
	sscanf(numbers, "%5u %5u", &max, &chunk);
	chunk = chunk == 0 || chunk > 32768 ? 1 : chunk; /* less than a pipe holds */
	struct oracle oracle = {in.at, in.at + in.len, max};

	int ends[2];
	assert(pipe2(ends, O_CLOEXEC) == 0);
	AUTO_FD out = ends[0];
	struct lines lines;
	lines_init(&lines, max);
	while (in.len > 0) {
		size_t n = in.len < chunk ? in.len : chunk;
		assert(write(ends[1], in.at, n) == (ssize_t)n);
		in.at += n;
		in.len -= n;
		assert(lines_has_room(&lines));
		lines_read(&lines, out);
		take_all(&lines, &oracle);
	}
	close(ends[1]);
	lines_read(&lines, out);
	assert(lines.ended);
	take_all(&lines, &oracle);
	const char *text;
	size_t len;
	assert(oracle_next(&oracle, &text, &len) == LINE_NONE);
	lines_finish(&lines);
	return 0;
}
