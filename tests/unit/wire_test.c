/* The protocol between host and PID 1: bytes from either side are hostile to the other. */
#include "unit.h"

#include "run/wire.h"

static const char *const argv_words[] = {"/bin/sh", "-c", "echo \"$X\"\n", "", NULL};
static const char *const env_words[] = {"X=1", "LANG=C.UTF-8", NULL};

static struct wire_request sample(void)
{
	return (struct wire_request){.timeout_ms = 1500,
				     .grace_ms = 2000,
				     .limits = {100, -1, 1LL << 40, 0},
				     .cwd = "/workspace/a b",
				     .argv = argv_words,
				     .env = env_words};
}

static unsigned char bytes[WIRE_HEAD_SIZE + WIRE_BODY_MAX];
static const char *words[WIRE_WORDS_MAX + 2];

/* The sample's body, in memory of exactly its size so that a sanitizer sees one byte too far. */
static unsigned char *sample_body(size_t *len)
{
	struct wire_request request = sample();
	size_t all;
	ck_assert_int_eq(wire_put_request(&request, bytes, sizeof(bytes), &all), WIRE_OK);
	*len = all - WIRE_HEAD_SIZE;
	unsigned char *body = xmalloc(*len);
	memcpy(body, bytes + WIRE_HEAD_SIZE, *len);
	return body;
}

TEST(a_request_comes_out_as_it_went_in)
{
	struct wire_request in = sample(), out;
	size_t len;
	AUTO_FREE unsigned char *body = sample_body(&len);
	ck_assert_uint_eq(wire_body_length(bytes), len);
	ck_assert_int_eq(wire_get_request(body, len, &out, words), WIRE_OK);
	ck_assert_int_eq(out.timeout_ms, 1500);
	ck_assert_int_eq(out.grace_ms, 2000);
	ck_assert_mem_eq(out.limits, in.limits, sizeof(in.limits));
	ck_assert_str_eq(out.cwd, "/workspace/a b");
	for (size_t i = 0; i < ARRAY_LEN(argv_words) - 1; i++)
		ck_assert_str_eq(out.argv[i], argv_words[i]);
	ck_assert_ptr_null(out.argv[ARRAY_LEN(argv_words) - 1]);
	for (size_t i = 0; i < ARRAY_LEN(env_words) - 1; i++)
		ck_assert_str_eq(out.env[i], env_words[i]);
	ck_assert_ptr_null(out.env[ARRAY_LEN(env_words) - 1]);
}
TEST_END

TEST(every_truncation_is_refused)
{
	struct wire_request out;
	size_t len;
	AUTO_FREE unsigned char *body = sample_body(&len);
	for (size_t cut = 0; cut < len; cut++) {
		AUTO_FREE unsigned char *part = xmalloc(cut + 1);
		memcpy(part, body, cut);
		ck_assert_int_ne(wire_get_request(part, cut, &out, words), WIRE_OK);
	}
}
TEST_END

TEST(bytes_after_the_end_are_refused)
{
	struct wire_request out;
	size_t len;
	AUTO_FREE unsigned char *body = sample_body(&len);
	AUTO_FREE unsigned char *longer = xmalloc(len + 1);
	memcpy(longer, body, len);
	longer[len] = 0;
	ck_assert_int_eq(wire_get_request(longer, len + 1, &out, words), WIRE_FAULT_FORM);
}
TEST_END

TEST(a_nul_inside_a_string_is_refused)
{
	struct wire_request out;
	size_t len;
	AUTO_FREE unsigned char *body = sample_body(&len);
	unsigned char *at = memmem(body, len, "workspace", 9);
	ck_assert_ptr_nonnull(at);
	at[3] = '\0';
	ck_assert_int_eq(wire_get_request(body, len, &out, words), WIRE_FAULT_FORM);
}
TEST_END

TEST(negative_values_are_refused_on_both_sides)
{
	struct wire_request out, request;
	size_t len, all;
	for (size_t field = 0; field < 2 + WIRE_LIMIT__MAX; field++) {
		AUTO_FREE unsigned char *body = sample_body(&len);
		memset(body + field * 8, 0xFF, 8);
		body[field * 8] = 0xFE; /* -2: -1 means "as it is" for a limit */
		ck_assert_int_eq(wire_get_request(body, len, &out, words), WIRE_FAULT_FORM);
	}
	request = sample();
	request.timeout_ms = -1;
	ck_assert_int_eq(wire_put_request(&request, bytes, sizeof(bytes), &all), WIRE_FAULT_FORM);
	request = sample();
	request.limits[1] = -2;
	ck_assert_int_eq(wire_put_request(&request, bytes, sizeof(bytes), &all), WIRE_FAULT_FORM);
}
TEST_END

TEST(a_command_needs_a_program_and_an_absolute_directory)
{
	static const char *const nothing[] = {NULL}, *const empty[] = {"", NULL};
	struct wire_request request = sample();
	size_t all;
	request.argv = nothing;
	ck_assert_int_eq(wire_put_request(&request, bytes, sizeof(bytes), &all), WIRE_FAULT_FORM);
	request.argv = empty;
	ck_assert_int_eq(wire_put_request(&request, bytes, sizeof(bytes), &all), WIRE_FAULT_FORM);
	request = sample();
	request.cwd = "workspace";
	ck_assert_int_eq(wire_put_request(&request, bytes, sizeof(bytes), &all), WIRE_FAULT_FORM);
}
TEST_END

TEST(sizes_over_the_limits_are_told_apart)
{
	struct wire_request request = sample(), out;
	size_t all = 0;
	AUTO_FREE char *longest = xmalloc(WIRE_STRING_MAX + 2);
	memset(longest, 'a', WIRE_STRING_MAX + 1);
	longest[WIRE_STRING_MAX + 1] = '\0';
	const char *one[] = {"x", longest, NULL};
	request.argv = one;
	ck_assert_int_eq(wire_put_request(&request, bytes, sizeof(bytes), &all), WIRE_FAULT_STRING);
	longest[WIRE_STRING_MAX] = '\0';
	ck_assert_int_eq(wire_put_request(&request, bytes, sizeof(bytes), &all), WIRE_OK);
	ck_assert_int_eq(
		wire_get_request(bytes + WIRE_HEAD_SIZE, all - WIRE_HEAD_SIZE, &out, words),
		WIRE_OK);
	ck_assert_uint_eq(strlen(out.argv[1]), WIRE_STRING_MAX);

	const char *two[] = {"x", longest, longest, NULL};
	request.argv = two;
	ck_assert_int_eq(wire_put_request(&request, bytes, sizeof(bytes), &all), WIRE_FAULT_BODY);

	static const char *many[WIRE_WORDS_MAX + 2];
	for (size_t i = 0; i <= WIRE_WORDS_MAX; i++)
		many[i] = "x";
	request = sample();
	request.env = many;
	ck_assert_int_eq(wire_put_request(&request, bytes, sizeof(bytes), &all), WIRE_FAULT_WORDS);
	ck_assert_int_eq(wire_put_request(&request, bytes, WIRE_HEAD_SIZE - 1, &all),
			 WIRE_FAULT_WORDS);
}
TEST_END

TEST(a_head_of_another_protocol_or_size_has_no_body)
{
	size_t len;
	free(sample_body(&len));
	unsigned char head[WIRE_HEAD_SIZE];
	memcpy(head, bytes, sizeof(head));
	head[3] ^= 1; /* another version */
	ck_assert_uint_eq(wire_body_length(head), 0);
	memcpy(head, bytes, sizeof(head));
	memset(head + 4, 0xFF, 4);
	ck_assert_uint_eq(wire_body_length(head), 0);
	ck_assert_uint_eq(wire_body_length((const unsigned char *)"GET / HTTP/1.1"), 0);
}
TEST_END

/* Mutations of a good body: whatever is accepted must be usable. */
TEST(garbage_is_refused_or_well_formed)
{
	size_t len;
	AUTO_FREE unsigned char *body = sample_body(&len);
	AUTO_FREE unsigned char *copy = xmalloc(len);
	unsigned state = 12345, accepted = 0;
	for (int round = 0; round < 200000; round++) {
		memcpy(copy, body, len);
		for (int i = 0; i < 1 + round % 4; i++) {
			state = state * 1103515245 + 12345;
			copy[(state >> 8) % len] = (unsigned char)(state >> 20);
		}
		struct wire_request out;
		if (wire_get_request(copy, len, &out, words) != WIRE_OK)
			continue;
		accepted++;
		ck_assert_int_eq(out.cwd[0], '/');
		ck_assert_ptr_nonnull(out.argv[0]);
		size_t total = strlen(out.cwd);
		for (size_t i = 0; out.argv[i]; i++)
			total += strlen(out.argv[i]);
		for (size_t i = 0; out.env[i]; i++)
			total += strlen(out.env[i]);
		ck_assert_uint_lt(total, len);
	}
	ck_assert_uint_gt(accepted, 1000); /* the mutations reach behind the first checks */
}
TEST_END

TEST(a_reply_comes_out_as_it_went_in)
{
	struct wire_reply in = {.kind = WIRE_EXITED,
				.step = WIRE_STEP_EXEC,
				.error = 2,
				.reason = WIRE_REASON_TIMEOUT,
				.code = 255,
				.signal = 9,
				.survivors = 3,
				.user_us = 1LL << 40,
				.system_us = 5,
				.max_rss_kib = 123456};
	struct wire_reply out = {0};
	unsigned char reply[WIRE_REPLY_SIZE], again[WIRE_REPLY_SIZE];
	wire_put_reply(&in, reply);
	ck_assert(wire_get_reply(reply, &out));
	wire_put_reply(&out, again);
	ck_assert_mem_eq(reply, again, sizeof(reply));
	ck_assert_int_eq(out.kind, WIRE_EXITED);
	ck_assert_int_eq(out.step, WIRE_STEP_EXEC);
	ck_assert_int_eq(out.reason, WIRE_REASON_TIMEOUT);
	ck_assert_int_eq(out.code, 255);
	ck_assert_int_eq(out.signal, 9);
	ck_assert_int_eq(out.survivors, 3);
	ck_assert_int_eq(out.user_us, 1LL << 40);
	ck_assert_int_eq(out.max_rss_kib, 123456);
}
TEST_END

TEST(a_reply_out_of_range_is_refused)
{
	struct wire_reply out, in = {.kind = WIRE_STARTED};
	unsigned char good[WIRE_REPLY_SIZE];
	wire_put_reply(&in, good);
	ck_assert(wire_get_reply(good, &out));
	for (size_t field = 0; field < WIRE_REPLY_SIZE / 4; field++) {
		unsigned char bad[WIRE_REPLY_SIZE];
		memcpy(bad, good, sizeof(bad));
		bad[field * 4 + 3] ^= 0x80; /* negative where it is a number */
		if (field < 8 || field % 2 == 1)
			ck_assert(!wire_get_reply(bad, &out));
	}
	in.kind = WIRE_KIND__MAX;
	wire_put_reply(&in, good);
	ck_assert(!wire_get_reply(good, &out));
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		a_request_comes_out_as_it_went_in,
		every_truncation_is_refused,
		bytes_after_the_end_are_refused,
		a_nul_inside_a_string_is_refused,
		negative_values_are_refused_on_both_sides,
		a_command_needs_a_program_and_an_absolute_directory,
		sizes_over_the_limits_are_told_apart,
		a_head_of_another_protocol_or_size_has_no_body,
		garbage_is_refused_or_well_formed,
		a_reply_comes_out_as_it_went_in,
		a_reply_out_of_range_is_refused,
	};
	return unit_run("wire", tests, ARRAY_LEN(tests));
}
