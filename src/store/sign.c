/*
 * Keys, link tokens and sealed data over libsodium. A key file is complete and on disk before its
 * name appears, and a name that is taken is never replaced: whoever loses reads the winner's key.
 */
#include "store/sign.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/text.h"

#define STAMP_BYTES   8
#define SIGNED_BYTES  (ID_BYTES + STAMP_BYTES)
#define TOKEN_BYTES   (SIGNED_BYTES + crypto_auth_hmacsha256_BYTES)
#define TOKEN_VARIANT sodium_base64_VARIANT_URLSAFE_NO_PADDING

_Static_assert(SIGN_KEY_BYTES == crypto_auth_hmacsha256_KEYBYTES, "key of HMAC-SHA-256");
_Static_assert(sodium_base64_ENCODED_LEN(TOKEN_BYTES, TOKEN_VARIANT) == SIGN_TOKEN_LEN + 1,
	       "length of a token");

void sign_key_from_text(struct sign_key *key, const char *text)
{
	crypto_generichash(key->bytes, sizeof(key->bytes), (const unsigned char *)text,
			   strlen(text), NULL, 0);
}

bool sign_publish_secret(int keys_fd, const char *name, const void *data, size_t len,
			 struct err *err)
{
	char temp[ID_LEN + 8];
	char id[ID_LEN + 1];
	id_make(id);
	snprintf(temp, sizeof(temp), ".new-%s", id);
	AUTO_FD fd = openat(keys_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, "create key %s", name);
	bool ok = fs_write_all(fd, data, len, err) &&
		  ((fchmod(fd, 0600) == 0 && fsync(fd) == 0) || err_sys(err, "write key %s", name));
	if (ok && linkat(keys_fd, temp, keys_fd, name, 0) != 0 && errno != EEXIST)
		ok = err_sys(err, "publish key %s", name);
	unlinkat(keys_fd, temp, 0);
	/* Also by the loser: the name it goes on to read must survive a power cut, too. */
	return ok && fs_sync_dir(keys_fd, err);
}

int sign_read_secret(int keys_fd, const char *name, size_t max, struct buf *out, struct err *err)
{
	AUTO_FD fd = openat(keys_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	struct stat st;
	if (fd < 0 || fstat(fd, &st) != 0) {
		err_sys(err, "open key %s", name);
		return -1;
	}
	if (!S_ISREG(st.st_mode)) {
		err_set(err, ERR_UNAVAILABLE, "keys/%s in the spool is no regular file", name);
		err_hint(err, "Remove it and start again; a new one is made.");
		return -1;
	}
	return fs_read_all(fd, max, out, err) ? 1 : -1;
}

/* 1 when the key was read, 0 when there is none, -1 with err. */
static int read_key(struct sign_key *key, int keys_fd, const char *name, struct err *err)
{
	AUTO_BUF text = BUF_INIT;
	int rc = sign_read_secret(keys_fd, name, SIGN_KEY_BYTES, &text, err);
	if (rc == 0 || (rc < 0 && err->code != ERR_TOO_LARGE))
		return rc;
	bool whole = rc == 1 && text.len == SIGN_KEY_BYTES;
	if (whole)
		memcpy(key->bytes, text.data, SIGN_KEY_BYTES);
	if (text.data != NULL)
		sodium_memzero(text.data, text.cap);
	if (whole)
		return 1;
	err_set(err, ERR_UNAVAILABLE, "keys/%s in the spool does not hold exactly %d bytes", name,
		SIGN_KEY_BYTES);
	err_hint(err, "Remove the file and start again; a new key is made, and links made with the "
		      "old one stop working.");
	return -1;
}

bool sign_key_from_file(struct sign_key *key, int keys_fd, const char *name, struct err *err)
{
	int rc = read_key(key, keys_fd, name, err);
	if (rc != 0)
		return rc == 1;
	struct sign_key fresh;
	randombytes_buf(fresh.bytes, sizeof(fresh.bytes));
	bool ok = sign_publish_secret(keys_fd, name, fresh.bytes, sizeof(fresh.bytes), err);
	sodium_memzero(&fresh, sizeof(fresh));
	if (!ok)
		return false;
	rc = read_key(key, keys_fd, name, err);
	return rc == 1 ||
	       (rc == 0 && err_set(err, ERR_BUSY, "keys/%s was removed while it was made", name));
}

static void put_be64(unsigned char out[static STAMP_BYTES], uint64_t value)
{
	for (int i = STAMP_BYTES - 1; i >= 0; i--, value >>= 8)
		out[i] = (unsigned char)value;
}

static uint64_t get_be64(const unsigned char in[static STAMP_BYTES])
{
	uint64_t value = 0;
	for (int i = 0; i < STAMP_BYTES; i++)
		value = value << 8 | in[i];
	return value;
}

void sign_link(const struct sign_key *key, const char *id, int64_t expires_at,
	       char out[static SIGN_TOKEN_LEN + 1])
{
	unsigned char bytes[TOKEN_BYTES];
	sodium_hex2bin(bytes, ID_BYTES, id, ID_LEN, NULL, NULL, NULL);
	put_be64(bytes + ID_BYTES, (uint64_t)expires_at);
	crypto_auth_hmacsha256(bytes + SIGNED_BYTES, bytes, SIGNED_BYTES, key->bytes);
	sodium_bin2base64(out, SIGN_TOKEN_LEN + 1, bytes, sizeof(bytes), TOKEN_VARIANT);
}

static bool bad_token(struct err *err)
{
	err_set(err, ERR_DENIED,
		"the link is not valid: it was changed or cut, or it was not made here");
	return err_hint(err,
			"Use the whole URL exactly as upload_file or download_file returned it, or "
			"ask for a new one.");
}

bool sign_check(const struct sign_key *key, const char *token, int64_t now,
		char id[static ID_LEN + 1], struct err *err)
{
	unsigned char bytes[TOKEN_BYTES];
	size_t len;
	if (strnlen(token, SIGN_TOKEN_LEN + 1) != SIGN_TOKEN_LEN ||
	    !text_from_base64(token, SIGN_TOKEN_LEN, TOKEN_VARIANT, bytes, sizeof(bytes), &len) ||
	    len != sizeof(bytes))
		return bad_token(err);
	if (crypto_auth_hmacsha256_verify(bytes + SIGNED_BYTES, bytes, SIGNED_BYTES, key->bytes) !=
	    0)
		return bad_token(err);
	if (now >= (int64_t)get_be64(bytes + ID_BYTES)) {
		err_set(err, ERR_GONE, "the link has expired");
		return err_hint(err, "Ask for a new one with upload_file or download_file.");
	}
	sodium_bin2hex(id, ID_LEN + 1, bytes, ID_BYTES);
	return true;
}

bool sign_equal(const char *a, const char *b)
{
	/* Digests have one length, so neither the length nor a common prefix shows in the time. */
	struct sign_key left, right;
	sign_key_from_text(&left, a);
	sign_key_from_text(&right, b);
	return sodium_memcmp(left.bytes, right.bytes, sizeof(left.bytes)) == 0;
}

/* --- sealed data -------------------------------------------------------------------------- */

#define NONCE_BYTES crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
#define TAG_BYTES   crypto_aead_xchacha20poly1305_ietf_ABYTES
#define SEAL_BYTES  (1 + NONCE_BYTES + TAG_BYTES) /* what sealing adds: key id, nonce and tag */

_Static_assert(SIGN_KEY_BYTES == crypto_aead_xchacha20poly1305_ietf_KEYBYTES, "key of XChaCha20");

/* Tells keys apart, not what they are. Two keys may share it: then both are tried. */
static unsigned char key_id(const struct sign_key *key)
{
	unsigned char digest[crypto_generichash_BYTES];
	crypto_generichash(digest, sizeof(digest), key->bytes, sizeof(key->bytes), NULL, 0);
	return digest[0];
}

void sign_seal(const struct sign_key *key, const void *data, size_t len, const void *context,
	       size_t context_len, struct buf *out)
{
	AUTO_BUF sealed = BUF_INIT;
	unsigned char *bytes = (unsigned char *)buf_reserve(&sealed, SEAL_BYTES + len);
	bytes[0] = key_id(key);
	randombytes_buf(bytes + 1, NONCE_BYTES);
	crypto_aead_xchacha20poly1305_ietf_encrypt(bytes + 1 + NONCE_BYTES, NULL, data, len,
						   context, context_len, NULL, bytes + 1,
						   key->bytes);
	size_t room = sodium_base64_ENCODED_LEN(SEAL_BYTES + len, TOKEN_VARIANT);
	char *text = buf_reserve(out, room);
	sodium_bin2base64(text, room, bytes, SEAL_BYTES + len, TOKEN_VARIANT);
	out->len += room - 1; /* the NUL is not counted */
}

static bool bad_seal(struct err *err)
{
	return err_set(err, ERR_DENIED,
		       "the sealed text is not valid: it was changed or cut, it belongs to "
		       "something else, or its key was replaced");
}

bool sign_open(const struct sign_key *keys, size_t key_count, const char *sealed,
	       const void *context, size_t context_len, struct buf *out, struct err *err)
{
	AUTO_BUF decoded = BUF_INIT;
	size_t text_len = strlen(sealed), len;
	unsigned char *bytes = (unsigned char *)buf_reserve(&decoded, text_len);
	if (!text_from_base64(sealed, text_len, TOKEN_VARIANT, bytes, text_len, &len) ||
	    len < SEAL_BYTES)
		return bad_seal(err);
	unsigned char *plain = (unsigned char *)buf_reserve(out, len - SEAL_BYTES);
	for (size_t i = 0; i < key_count; i++) {
		if (key_id(&keys[i]) == bytes[0] &&
		    crypto_aead_xchacha20poly1305_ietf_decrypt(
			    plain, NULL, NULL, bytes + 1 + NONCE_BYTES, len - 1 - NONCE_BYTES,
			    context, context_len, bytes + 1, keys[i].bytes) == 0) {
			out->len += len - SEAL_BYTES;
			out->data[out->len] = '\0';
			return true;
		}
	}
	out->data[out->len] = '\0';
	return bad_seal(err);
}
