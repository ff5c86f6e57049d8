/*
 * The wire protocol of init from both ends. Bytes that begin with the protocol's magic are what a
 * hostile peer sends: a request or, of their length, a reply. Whatever decodes is encoded to the
 * same bytes. Other inputs are the lines of a request that is to arrive as it was sent: timeout,
 * working directory, arguments, an empty line, environment.
 */
#include "fuzz.h"

#include "run/wire.h"

#define WORDS_MAX   64
#define BUFFER_SIZE (WIRE_HEAD_SIZE + WIRE_BODY_MAX)

static void check_reply(const uint8_t *data)
{
	unsigned char again[WIRE_REPLY_SIZE];
	struct wire_reply reply;
	if (!wire_get_reply(data, &reply))
		return;
	wire_put_reply(&reply, again);
	assert(memcmp(data, again, sizeof(again)) == 0);
}

static enum wire_fault decode(const unsigned char *body, size_t len, struct wire_request *request,
			      const char **words)
{
	enum wire_fault fault = wire_get_request(body, len, request, words);
	if (fault != WIRE_OK)
		return fault;
	assert(request->cwd[0] == '/' && request->argv[0] != NULL);
	return WIRE_OK;
}

/* The body alone, in memory of its size. */
static void check_request(const uint8_t *data, size_t size)
{
	const char *words[WIRE_WORDS_MAX + 2];
	struct wire_request request;
	size_t len = wire_body_length(data);
	if (len == 0 || len != size - WIRE_HEAD_SIZE)
		return;
	AUTO_FREE unsigned char *body = xmalloc(len), *again = xmalloc(BUFFER_SIZE);
	memcpy(body, data + WIRE_HEAD_SIZE, len);
	if (decode(body, len, &request, words) != WIRE_OK)
		return;
	assert(wire_put_request(&request, again, BUFFER_SIZE, &len) == WIRE_OK);
	assert(len == size && memcmp(again, data, size) == 0);
}

static bool same_words(const char *const *a, const char *const *b)
{
	for (; *a != NULL && *b != NULL; a++, b++)
		if (strcmp(*a, *b) != 0)
			return false;
	return *a == NULL && *b == NULL;
}

/* Sent in a buffer of the size that a smaller one tells by WIRE_FAULT_BODY. */
static void check_sent(const struct wire_request *sent)
{
	const char *words[WIRE_WORDS_MAX + 2];
	struct wire_request got;
	size_t len, less;
	AUTO_FREE unsigned char *out = xmalloc(BUFFER_SIZE);
	if (wire_put_request(sent, out, BUFFER_SIZE, &len) != WIRE_OK)
		return;
	AUTO_FREE unsigned char *exact = xmalloc(len);
	assert(wire_put_request(sent, exact, len - 1, &less) == WIRE_FAULT_BODY);
	assert(wire_put_request(sent, exact, len, &less) == WIRE_OK && less == len);
	assert(wire_body_length(exact) == len - WIRE_HEAD_SIZE);
	assert(decode(exact + WIRE_HEAD_SIZE, len - WIRE_HEAD_SIZE, &got, words) == WIRE_OK);
	assert(got.timeout_ms == sent->timeout_ms && strcmp(got.cwd, sent->cwd) == 0);
	assert(same_words(got.argv, sent->argv) && same_words(got.env, sent->env));
}

struct words {
	char *at[WORDS_MAX + 1]; /* NULL-terminated */
	size_t count;
};

/* The lines up to an empty one. */
static void take_words(struct fuzz_input *in, struct words *words)
{
	char *line;
	while ((line = fuzz_line(in))[0] != '\0' && words->count < WORDS_MAX)
		words->at[words->count++] = line;
	free(line);
}

static void free_words(struct words *words)
{
	for (size_t i = 0; i < words->count; i++)
		free(words->at[i]);
}

static void send_lines(struct fuzz_input in)
{
	struct words argv = {.count = 0}, env = {.count = 0};
	AUTO_FREE char *timeout = fuzz_line(&in), *cwd = fuzz_line(&in);
	take_words(&in, &argv);
	take_words(&in, &env);
	const struct wire_request request = {
		.timeout_ms = strtoll(timeout, NULL, 10),
		.grace_ms = 1000,
		.limits = {100, 256, 1 << 30, -1},
		.cwd = cwd,
		.argv = (const char *const *)argv.at,
		.env = (const char *const *)env.at,
	};
	check_sent(&request);
	free_words(&argv);
	free_words(&env);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < WIRE_HEAD_SIZE || memcmp(data, "SBP", 3) != 0) {
		send_lines(fuzz_input(data, size));
		return 0;
	}
	if (size == WIRE_REPLY_SIZE)
		check_reply(data);
	check_request(data, size);
	return 0;
}
