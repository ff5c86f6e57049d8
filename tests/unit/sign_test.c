#include "unit.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fs.h"
#include "store/sign.h"

static char *dir;
static int keys_fd;
static struct sign_key key;
static const char id[] = "00112233445566778899aabbccddeeff";

static void setup(void)
{
	ck_assert_int_ge(sodium_init(), 0);
	dir = unit_tempdir();
	keys_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sign_key_from_text(&key, "a secret of the operator");
}

static void teardown(void)
{
	close(keys_fd);
	unit_tempdir_remove(dir);
}

static enum err_code check(const char *token, int64_t now)
{
	struct err err = ERR_INIT;
	char got[ID_LEN + 1] = "untouched";
	if (!sign_check(&key, token, now, got, &err)) {
		ck_assert_str_eq(got, "untouched");
		return err.code;
	}
	ck_assert_str_eq(got, id);
	return ERR_NONE;
}

TEST(a_token_is_good_until_it_expires)
{
	setup();
	char token[SIGN_TOKEN_LEN + 1];
	sign_link(&key, id, 5000, token);
	ck_assert_uint_eq(strlen(token), SIGN_TOKEN_LEN);
	ck_assert_int_eq(check(token, 0), ERR_NONE);
	ck_assert_int_eq(check(token, 4999), ERR_NONE);
	ck_assert_int_eq(check(token, 5000), ERR_GONE);
	sign_link(&key, id, INT64_MAX, token);
	ck_assert_int_eq(check(token, 1), ERR_NONE);
	teardown();
}
TEST_END

TEST(the_bytes_of_a_token_are_as_documented)
{
	setup();
	/* Made with an independent HMAC-SHA-256 over id and expiry; the key is 32 times 'k'. */
	struct sign_key fixed;
	memset(fixed.bytes, 'k', sizeof(fixed.bytes));
	char token[SIGN_TOKEN_LEN + 1];
	sign_link(&fixed, id, 0x0102030405060708, token);
	ck_assert_str_eq(token, "ABEiM0RVZneImaq7zN3u_wECAwQFBgcI7dW5YCf7"
				"A4fVXPHfjJGAP9CbJOutFmVTOwb9KjJw1gY");
	teardown();
}
TEST_END

TEST(no_changed_token_is_good)
{
	setup();
	char token[SIGN_TOKEN_LEN + 2];
	sign_link(&key, id, 5000, token);
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456"
				       "789-_+/=. %\n\x80\xDF\xFF";
	for (size_t at = 0; at < SIGN_TOKEN_LEN; at++) {
		char right = token[at];
		for (const char *c = alphabet; *c != '\0'; c++) {
			token[at] = *c;
			ck_assert_msg(check(token, 0) == (*c == right ? ERR_NONE : ERR_DENIED),
				      "position %zu, character %d", at, *c);
		}
		token[at] = right;
	}
	/* The last character holds two bits that belong to no byte. */
	ck_assert_int_eq(check(token, 0), ERR_NONE);
	strcat(token, "A");
	ck_assert_int_eq(check(token, 0), ERR_DENIED);
	token[SIGN_TOKEN_LEN] = '=';
	ck_assert_int_eq(check(token, 0), ERR_DENIED);
	token[SIGN_TOKEN_LEN - 1] = '\0';
	ck_assert_int_eq(check(token, 0), ERR_DENIED);
	ck_assert_int_eq(check("", 0), ERR_DENIED);
	teardown();
}
TEST_END

TEST(a_token_of_another_key_is_denied_even_when_it_has_expired)
{
	setup();
	struct sign_key other;
	sign_key_from_text(&other, "another secret");
	char token[SIGN_TOKEN_LEN + 1];
	sign_link(&other, id, 5000, token);
	ck_assert_int_eq(check(token, 0), ERR_DENIED);
	ck_assert_int_eq(check(token, 9000), ERR_DENIED);
	teardown();
}
TEST_END

TEST(texts_are_equal_only_when_they_are)
{
	setup();
	ck_assert(sign_equal("", ""));
	ck_assert(sign_equal("secret", "secret"));
	ck_assert(!sign_equal("secret", "secre"));
	ck_assert(!sign_equal("secret", "secrets"));
	ck_assert(!sign_equal("secret", "Secret"));
	ck_assert(!sign_equal("", "x"));
	teardown();
}
TEST_END

TEST(a_key_file_is_made_once_and_private)
{
	setup();
	struct err err = ERR_INIT;
	struct sign_key first, second;
	mode_t old = umask(0);
	ck_ok(sign_key_from_file(&first, keys_fd, "link", &err), err);
	umask(old);
	ck_ok(sign_key_from_file(&second, keys_fd, "link", &err), err);
	ck_assert_mem_eq(first.bytes, second.bytes, SIGN_KEY_BYTES);
	ck_assert(!sodium_is_zero(first.bytes, SIGN_KEY_BYTES));
	struct stat st;
	ck_assert_int_eq(fstatat(keys_fd, "link", &st, 0), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0600);
	ck_assert_int_eq(st.st_size, SIGN_KEY_BYTES);
	ck_assert_int_eq((int)st.st_nlink, 1);
	ck_ok(sign_key_from_file(&second, keys_fd, "other", &err), err);
	ck_assert_mem_ne(first.bytes, second.bytes, SIGN_KEY_BYTES);
	teardown();
}
TEST_END

TEST(many_that_make_a_key_at_once_agree_on_one)
{
	setup();
	for (int round = 0; round < 10; round++) {
		unlinkat(keys_fd, "link", 0);
		int ends[2];
		ck_assert_int_eq(pipe(ends), 0);
		for (int i = 0; i < 16; i++) {
			if (fork() != 0)
				continue;
			struct err err = ERR_INIT;
			struct sign_key mine;
			bool ok = sign_key_from_file(&mine, keys_fd, "link", &err);
			ok = ok && write(ends[1], mine.bytes, SIGN_KEY_BYTES) == SIGN_KEY_BYTES;
			_exit(ok ? 0 : 1);
		}
		close(ends[1]);
		struct sign_key first, next;
		ck_assert_int_eq(read(ends[0], first.bytes, SIGN_KEY_BYTES), SIGN_KEY_BYTES);
		int others = 0;
		while (read(ends[0], next.bytes, SIGN_KEY_BYTES) == SIGN_KEY_BYTES) {
			ck_assert_mem_eq(first.bytes, next.bytes, SIGN_KEY_BYTES);
			others++;
		}
		ck_assert_int_eq(others, 15);
		close(ends[0]);
		while (wait(NULL) > 0)
			;
	}
	teardown();
}
TEST_END

TEST(a_damaged_key_file_is_refused_and_not_replaced)
{
	setup();
	static const size_t sizes[] = {0, 31, 33, 4096};
	static const char bytes[4096];
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct err err = ERR_INIT;
		struct sign_key got;
		ck_ok(fs_write_atomic(keys_fd, "link", bytes, sizes[i], 0600, &err), err);
		ck_assert(!sign_key_from_file(&got, keys_fd, "link", &err));
		ck_assert_int_eq(err.code, ERR_UNAVAILABLE);
		ck_assert_ptr_nonnull(strstr(err.msg, "keys/link"));
		struct stat st;
		ck_assert_int_eq(fstatat(keys_fd, "link", &st, 0), 0);
		ck_assert_int_eq((size_t)st.st_size, sizes[i]);
	}
	unlinkat(keys_fd, "link", 0);
	ck_assert_int_eq(mkfifoat(keys_fd, "link", 0600), 0);
	struct err err = ERR_INIT;
	struct sign_key got;
	ck_assert(!sign_key_from_file(&got, keys_fd, "link", &err));
	ck_assert_int_eq(err.code, ERR_UNAVAILABLE);
	teardown();
}
TEST_END

/* --- sealed data -------------------------------------------------------------------------- */

static bool opens(const struct sign_key *keys, size_t count, const char *sealed,
		  const char *context, const char *wanted)
{
	struct err err = ERR_INIT;
	AUTO_BUF out = BUF_INIT;
	buf_puts(&out, "before ");
	bool ok = sign_open(keys, count, sealed, context, strlen(context), &out, &err);
	if (!ok) {
		ck_assert_int_eq(err.code, ERR_DENIED);
		ck_assert_str_eq(buf_str(&out), "before ");
		return false;
	}
	ck_assert_int_eq(strncmp(out.data, "before ", 7), 0);
	ck_assert_str_eq(out.data + 7, wanted);
	return true;
}

TEST(sealed_data_opens_with_its_key_and_context_only)
{
	struct sign_key keys[2];
	sign_key_from_text(&keys[0], "one");
	sign_key_from_text(&keys[1], "two");
	static const char *const texts[] = {"", "x", "a longer text with some words in it"};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		AUTO_BUF sealed = BUF_INIT, again = BUF_INIT;
		sign_seal(&keys[0], texts[i], strlen(texts[i]), "here", 4, &sealed);
		sign_seal(&keys[0], texts[i], strlen(texts[i]), "here", 4, &again);
		ck_assert_str_ne(sealed.data, again.data); /* a nonce is used once */
		ck_assert_uint_eq(sealed.len, strlen(sealed.data));
		ck_assert_uint_eq(strspn(sealed.data, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop"
						      "qrstuvwxyz0123456789-_"),
				  sealed.len);
		ck_assert(opens(keys, 2, sealed.data, "here", texts[i]));
		ck_assert(opens(keys, 1, sealed.data, "here", texts[i]));
		ck_assert(!opens(keys + 1, 1, sealed.data, "here", ""));
		ck_assert(!opens(keys, 0, sealed.data, "here", ""));
		ck_assert(!opens(keys, 2, sealed.data, "there", ""));
		ck_assert(!opens(keys, 2, sealed.data, "", ""));
		const struct sign_key rotated[] = {keys[1], keys[0]};
		ck_assert(opens(rotated, 2, sealed.data, "here", texts[i]));
	}
}
TEST_END

TEST(no_changed_sealed_data_opens)
{
	struct sign_key one;
	sign_key_from_text(&one, "one");
	AUTO_BUF sealed = BUF_INIT;
	sign_seal(&one, "text", 4, "here", 4, &sealed);
	ck_assert(opens(&one, 1, sealed.data, "here", "text"));
	for (size_t i = 0; i < sealed.len; i++) {
		AUTO_FREE char *copy = xstrdup(sealed.data);
		copy[i] = copy[i] == 'A' ? 'B' : 'A';
		ck_assert_msg(!opens(&one, 1, copy, "here", ""), "changed at %zu", i);
		copy[i] = '\0';
		ck_assert_msg(!opens(&one, 1, copy, "here", ""), "cut at %zu", i);
	}
	buf_putc(&sealed, 'A');
	ck_assert(!opens(&one, 1, sealed.data, "here", ""));
	ck_assert(!opens(&one, 1, "not base64!", "here", ""));
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		a_token_is_good_until_it_expires,
		the_bytes_of_a_token_are_as_documented,
		no_changed_token_is_good,
		a_token_of_another_key_is_denied_even_when_it_has_expired,
		texts_are_equal_only_when_they_are,
		a_key_file_is_made_once_and_private,
		many_that_make_a_key_at_once_agree_on_one,
		a_damaged_key_file_is_refused_and_not_replaced,
		sealed_data_opens_with_its_key_and_context_only,
		no_changed_sealed_data_opens,
	};
	return unit_run("sign", unit_tests, ARRAY_LEN(unit_tests));
}
