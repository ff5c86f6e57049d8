#include "sandbox_kit.h"

#include "box/secrets.h"
#include "run/handover.h"

static struct sandbox_row row_with_env(const char *env)
{
	return (struct sandbox_row){.env = (char *)env};
}

/* What a text becomes with the mask of a sandbox's env and of a call's. */
static char *masked(const char *env, const char *call_env, const char *text)
{
	struct err err = ERR_INIT;
	struct buf out = BUF_INIT;
	struct mask_stream stream;
	struct sandbox_row row = row_with_env(env);
	AUTO_JSON *call = call_env == NULL ? NULL : json_literal(call_env);
	struct mask *mask = secrets_mask(&app, &row, call, &err);
	ck_ok(mask != NULL, err);
	mask_stream_init(&stream, mask);
	mask_feed(&stream, text, strlen(text), &out);
	mask_end(&stream, &out);
	mask_stream_finish(&stream);
	mask_free(mask);
	return buf_take(&out);
}

#define expect_masked(env, call_env, text, expected) \
	do { \
		AUTO_FREE char *got_ = masked(env, call_env, text); \
		ck_assert_str_eq(got_, expected); \
	} while (0)

TEST(variables_with_telling_names_are_secret_in_any_case)
{
	setup();
	expect_masked("{\"OPENAI_API_KEY\":\"sk-123456\",\"tokens\":\"tok-123456\","
		      "\"MySecretThing\":\"sec-123456\",\"db_password\":\"pw-123456\"}",
		      NULL, "sk-123456 tok-123456 sec-123456 pw-123456", "*** *** *** ***");
	expect_masked("{\"USER_NAME\":\"plain-123\",\"KE_Y\":\"other-123\"}", NULL,
		      "plain-123 other-123", "plain-123 other-123");
	teardown();
}
TEST_END

TEST(a_variable_of_the_call_does_not_uncover_that_of_the_sandbox)
{
	setup();
	expect_masked("{\"TOKEN\":\"of-the-sandbox\"}",
		      "{\"TOKEN\":\"of-the-call\",\"X\":\"neither\"}",
		      "of-the-sandbox of-the-call neither", "*** *** neither");
	teardown();
}
TEST_END

TEST(short_values_are_left)
{
	setup();
	expect_masked("{\"KEY1\":\"12345\",\"KEY2\":\"123456\",\"KEY3\":\"\"}", NULL,
		      "12345 123456", "12345 ***");
	teardown();
}
TEST_END

TEST(the_servers_own_secrets_are_masked)
{
	setup();
	conf.signing_key = xstrdup("a-signing-key-of-the-server");
	expect_masked(NULL, NULL, "a-token-of-16-chars a-signing-key-of-the-server", "*** ***");
	free(conf.signing_key);
	conf.signing_key = NULL;
	teardown();
}
TEST_END

static void write_key(const char *name, const char *text)
{
	AUTO_FD fd = openat(app.spool.keys_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

TEST(files_in_keys_are_masked_without_their_line_end)
{
	setup();
	write_key("token", "token-in-a-file\r\n");
	write_key("other", "-- begin --\nsecond line\n");
	write_key(".new-0123", "not-a-key-yet");
	ck_assert_int_eq(mkdirat(app.spool.keys_fd, "old", 0700), 0);
	expect_masked(NULL, NULL,
		      "<token-in-a-file> -- begin --\nsecond line\n-- begin -- not-a-key-yet",
		      "<***> ***\n-- begin -- not-a-key-yet");
	teardown();
}
TEST_END

TEST(a_key_or_an_env_that_cannot_be_read_is_an_error)
{
	setup();
	struct err err = ERR_INIT;
	struct sandbox_row row = row_with_env("{\"A\":");
	ck_assert_ptr_null(secrets_mask(&app, &row, NULL, &err));
	ck_assert_int_eq(err.code, ERR_INTERNAL);
	err = (struct err)ERR_INIT;
	row = row_with_env(NULL);
	ck_assert_int_eq(symlinkat("/etc/passwd", app.spool.keys_fd, "link2"), 0);
	ck_assert_ptr_null(secrets_mask(&app, &row, NULL, &err));
	ck_assert_int_ne(err.code, ERR_NONE);
	teardown();
}
TEST_END

/* --- the hand-over of what a mask holds back ----------------------------------------------- */

static struct mask *make_mask(void)
{
	struct mask *mask = mask_new();
	mask_add(mask, "abcdefgh", 8);
	mask_add(mask, "ghabcdxyz", 9);
	mask_add(mask, "efghab", 6);
	return mask;
}

/* The text cut at a place, the rest in a stream that was handed over, perhaps with another mask. */
static bool over(const char *text, size_t cut, const struct mask *from, const struct mask *to,
		 struct buf *out, struct err *err)
{
	struct mask_stream old[RECORD_STREAMS], fresh[RECORD_STREAMS];
	for (int i = 0; i < RECORD_STREAMS; i++)
		mask_stream_init(&old[i], from);
	mask_feed(&old[RECORD_STDERR], text, cut, out);
	AUTO_FD fd = handover_save(old, err);
	ck_ok(fd >= 0, *err);
	bool ok = handover_load(fd, to, fresh, err);
	if (ok) {
		mask_feed(&fresh[RECORD_STDERR], text + cut, strlen(text + cut), out);
		mask_end(&fresh[RECORD_STDERR], out);
		ck_assert_int_eq(fresh[RECORD_STDOUT].held.len, 0);
	}
	for (int i = 0; i < RECORD_STREAMS; i++) {
		mask_stream_finish(&old[i]);
		mask_stream_finish(&fresh[i]);
	}
	return ok;
}

TEST(a_stream_that_is_handed_over_anywhere_reads_the_same)
{
	static const char *const texts[] = {
		"-abcdefghabcdxyz-abcdefgh-",    "abcdefghab", "xabcdefghabcdxabcdefghabcdxyzx",
		"efghabcdefghabcdefghabcdxyzab", "plain text",
	};
	struct mask *from = make_mask(), *to = make_mask();
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		AUTO_BUF whole = BUF_INIT;
		struct mask_stream stream;
		mask_stream_init(&stream, from);
		mask_feed(&stream, texts[i], strlen(texts[i]), &whole);
		mask_end(&stream, &whole);
		mask_stream_finish(&stream);
		for (size_t cut = 0; cut <= strlen(texts[i]); cut++) {
			struct err err = ERR_INIT;
			AUTO_BUF out = BUF_INIT;
			ck_ok(over(texts[i], cut, from, to, &out, &err), err);
			ck_assert_msg(strcmp(buf_str(&out), buf_str(&whole)) == 0,
				      "%s cut at %zu: %s instead of %s", texts[i], cut,
				      buf_str(&out), buf_str(&whole));
		}
	}
	mask_free(from);
	mask_free(to);
}
TEST_END

TEST(a_hand_over_for_another_mask_or_of_another_format_is_refused)
{
	struct err err = ERR_INIT;
	AUTO_BUF out = BUF_INIT;
	struct mask *from = make_mask(), *to = mask_new();
	struct mask_stream fresh[RECORD_STREAMS];
	ck_assert(!over("abcd", 4, from, to, &out, &err));
	ck_assert_int_eq(err.code, ERR_INTERNAL);
	static const char zeros[4096];
	for (size_t len = 0; len <= sizeof(zeros); len += 100) {
		FILE *file = tmpfile();
		ck_assert_int_eq(fwrite(zeros, 1, len, file), len);
		rewind(file);
		ck_assert(!handover_load(fileno(file), from, fresh, &err));
		for (int i = 0; i < RECORD_STREAMS; i++)
			mask_stream_finish(&fresh[i]);
		fclose(file);
	}
	mask_free(from);
	mask_free(to);
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		variables_with_telling_names_are_secret_in_any_case,
		a_variable_of_the_call_does_not_uncover_that_of_the_sandbox,
		short_values_are_left,
		the_servers_own_secrets_are_masked,
		files_in_keys_are_masked_without_their_line_end,
		a_key_or_an_env_that_cannot_be_read_is_an_error,
		a_stream_that_is_handed_over_anywhere_reads_the_same,
		a_hand_over_for_another_mask_or_of_another_format_is_refused,
	};
	return unit_run("secrets", unit_tests, ARRAY_LEN(unit_tests));
}
