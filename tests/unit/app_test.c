#include "sandbox_kit.h"

#include "base/fs.h"

static enum err_code authenticate(const char *authorization, struct err *err)
{
	const char *principal = NULL;
	*err = (struct err)ERR_INIT;
	if (!app_authenticate(&app, authorization, &principal, err)) {
		ck_assert_ptr_null(principal);
		ck_assert_ptr_null(strstr(err->msg, "a-token"));
		ck_assert_ptr_null(strstr(err->hint, "a-token"));
		return err->code;
	}
	ck_assert_str_eq(principal, "default");
	return ERR_NONE;
}

static void reopen_with_token(const char *token)
{
	app_close(&app);
	free(conf.token);
	conf.token = token == NULL ? NULL : xstrdup(token);
	kit_open();
}

TEST(the_right_token_is_let_in_whatever_the_case_of_the_scheme)
{
	setup();
	static const char *const good[] = {"Bearer a-token-of-16-chars",
					   "bearer a-token-of-16-chars",
					   "BEARER  a-token-of-16-chars"};
	struct err err;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		ck_assert_msg(authenticate(good[i], &err) == ERR_NONE, "%s", good[i]);
	teardown();
}
TEST_END

TEST(anything_else_is_refused_and_told_what_is_missing)
{
	setup();
	static const struct {
		const char *header, *part;
	} bad[] = {
		{NULL, "missing"},
		{"", "missing"},
		{"Bearer", "Bearer TOKEN"},
		{"Bearer ", "Bearer TOKEN"},
		{"Bearera-token-of-16-chars", "Bearer TOKEN"},
		{"Basic a-token-of-16-chars", "Bearer TOKEN"},
		{"a-token-of-16-chars", "Bearer TOKEN"},
		{"Bearer a-token-of-16-chars x", "Bearer TOKEN"},
		{"Bearer a-token-of-16-chars ", "Bearer TOKEN"},
		{"Bearer\ta-token-of-16-chars", "Bearer TOKEN"},
		{"Bearer a-token-of-16-char", "not the one"},
		{"Bearer a-token-of-16-chars2", "not the one"},
		{"Bearer A-token-of-16-chars", "not the one"},
	};
	struct err err;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		ck_assert_int_eq(authenticate(bad[i].header, &err), ERR_UNAUTHENTICATED);
		ck_assert_msg(strstr(err.msg, bad[i].part) != NULL, "%zu: %s", i, err.msg);
	}
	teardown();
}
TEST_END

TEST(without_any_token_every_call_is_refused)
{
	setup();
	reopen_with_token(NULL);
	struct err err;
	ck_assert_ptr_null(app.token);
	ck_assert_int_eq(authenticate("Bearer ", &err), ERR_UNAUTHENTICATED);
	ck_assert_int_eq(authenticate("Bearer x", &err), ERR_UNAUTHENTICATED);
	ck_assert_ptr_nonnull(strstr(err.hint, "SMCP_TOKEN"));
	teardown();
}
TEST_END

TEST(a_made_token_is_the_same_ever_after_and_used)
{
	setup();
	struct err err = ERR_INIT;
	AUTO_BUF first = BUF_INIT, second = BUF_INIT;
	reopen_with_token(NULL);
	ck_ok(app_make_token(&app, &first, &err), err);
	ck_ok(app_make_token(&app, &second, &err), err);
	ck_assert_uint_eq(first.len, 43);
	ck_assert_str_eq(buf_str(&first), buf_str(&second));
	struct stat st;
	ck_assert_int_eq(fstatat(app.spool.keys_fd, "token", &st, 0), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0600);
	reopen_with_token(NULL);
	AUTO_FREE char *header = xasprintf("Bearer %s", buf_str(&first));
	ck_assert_int_eq(authenticate(header, &err), ERR_NONE);
	/* The setting wins over the file. */
	reopen_with_token("another-token-of-the-operator");
	ck_assert_int_eq(authenticate(header, &err), ERR_UNAUTHENTICATED);
	teardown();
}
TEST_END

static void write_token(const char *text)
{
	struct err err = ERR_INIT;
	ck_ok(fs_write_atomic(app.spool.keys_fd, "token", text, strlen(text), 0600, &err), err);
}

TEST(a_token_file_of_the_operator_is_one_line)
{
	setup();
	struct err err;
	write_token("my-own-token-file\r\n");
	reopen_with_token(NULL);
	ck_assert_int_eq(authenticate("Bearer my-own-token-file", &err), ERR_NONE);
	static const char *const bad[] = {"", "\n", "two words\n", "two\nlines\n", "t\xc3\xa4st\n"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		write_token(bad[i]);
		struct app other;
		err = (struct err)ERR_INIT;
		ck_assert(!app_open(&other, &conf, &err));
		ck_assert_int_eq(err.code, ERR_UNAVAILABLE);
		ck_assert_ptr_nonnull(strstr(err.msg, "keys/token"));
	}
	teardown();
}
TEST_END

TEST(the_link_key_comes_from_the_setting_or_stays_in_its_file)
{
	setup();
	struct sign_key first = app.link_key;
	reopen_with_token("a-token-of-16-chars");
	ck_assert_mem_eq(first.bytes, app.link_key.bytes, SIGN_KEY_BYTES);
	conf.signing_key = xstrdup("a-signing-key-of-the-operator");
	reopen_with_token("a-token-of-16-chars");
	ck_assert_mem_ne(first.bytes, app.link_key.bytes, SIGN_KEY_BYTES);
	free(conf.signing_key);
	teardown();
}
TEST_END

/* checklist 76 */
TEST(a_state_key_that_was_rotated_away_still_opens_what_it_sealed)
{
	setup();
	struct err err = ERR_INIT;
	ck_assert_uint_eq(app.state_key_count, 1);
	struct sign_key first = app.state_keys[0];
	ck_assert_mem_ne(first.bytes, app.link_key.bytes, SIGN_KEY_BYTES);
	AUTO_BUF sealed = BUF_INIT, opened = BUF_INIT;
	sign_seal(&first, "state", 5, "call", 4, &sealed);
	reopen_with_token("a-token-of-16-chars");
	ck_assert_mem_eq(first.bytes, app.state_keys[0].bytes, SIGN_KEY_BYTES);

	int keys = app.spool.keys_fd;
	ck_assert_int_eq(renameat(keys, "state", keys, "state.old"), 0);
	reopen_with_token("a-token-of-16-chars");
	ck_assert_uint_eq(app.state_key_count, 2);
	ck_assert_mem_ne(first.bytes, app.state_keys[0].bytes, SIGN_KEY_BYTES);
	ck_ok(sign_open(app.state_keys, app.state_key_count, buf_str(&sealed), "call", 4, &opened,
			&err),
	      err);
	ck_assert_str_eq(buf_str(&opened), "state");
	teardown();
}
TEST_END

TEST(an_old_state_key_that_is_none_stops_the_start)
{
	setup();
	static const char *const bad[] = {"", "short", "a text of more than thirty-two bytes"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err err = ERR_INIT;
		struct app other;
		ck_ok(fs_write_atomic(app.spool.keys_fd, "state.old", bad[i], strlen(bad[i]), 0600,
				      &err),
		      err);
		ck_assert(!app_open(&other, &conf, &err));
		ck_assert_int_eq(err.code, ERR_UNAVAILABLE);
		ck_assert_ptr_nonnull(strstr(err.msg, "keys/state.old"));
	}
	teardown();
}
TEST_END

TEST(an_unknown_runtime_is_refused_with_the_known_ones)
{
	setup();
	struct err err = ERR_INIT;
	struct app other;
	free(conf.runtime);
	conf.runtime = xstrdup("docker");
	ck_assert(!app_open(&other, &conf, &err));
	ck_assert_int_eq(err.code, ERR_INVALID);
	ck_assert_ptr_nonnull(strstr(err.msg, "docker"));
	ck_assert_ptr_nonnull(strstr(err.msg, "bwrap"));
	ck_assert_ptr_null(other.db);
	teardown();
}
TEST_END

TEST(a_database_that_is_not_the_spools_is_refused_by_everything_that_opens)
{
	setup();
	app_close(&app);
	AUTO_FREE char *away = xasprintf("%s.away", conf.state_db);
	ck_assert_int_eq(rename(conf.state_db, away), 0);
	struct err err = ERR_INIT;
	ck_assert(!app_open(&app, &conf, &err));
	ck_assert_int_eq(err.code, ERR_UNAVAILABLE);
	ck_assert_ptr_nonnull(strstr(err.msg, "SMCP_STATE_DB"));
	ck_assert_int_ne(access(conf.state_db, F_OK), 0);
	ck_assert_int_eq(rename(away, conf.state_db), 0);
	kit_open();
	/* One that closed it for a while, like a supervisor, looks again. */
	db_close(app.db);
	app.db = NULL;
	ck_assert_int_eq(unlinkat(app.spool.data_fd, "spool.id", 0), 0);
	ck_assert(!app_open_db(&app, &err));
	ck_assert_ptr_null(app.db);
	ck_assert_ptr_nonnull(strstr(err.msg, "not mounted"));
	teardown();
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		the_right_token_is_let_in_whatever_the_case_of_the_scheme,
		anything_else_is_refused_and_told_what_is_missing,
		without_any_token_every_call_is_refused,
		a_made_token_is_the_same_ever_after_and_used,
		a_token_file_of_the_operator_is_one_line,
		the_link_key_comes_from_the_setting_or_stays_in_its_file,
		a_state_key_that_was_rotated_away_still_opens_what_it_sealed,
		an_old_state_key_that_is_none_stops_the_start,
		an_unknown_runtime_is_refused_with_the_known_ones,
		a_database_that_is_not_the_spools_is_refused_by_everything_that_opens,
	};
	return unit_run("app", unit_tests, ARRAY_LEN(unit_tests));
}
