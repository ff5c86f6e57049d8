/* Names of files come out of a sandbox: none may break out of its header, and all must come back
 * exactly. */
#include "unit.h"

#include "base/media.h"
#include "web/content.h"
#include "web/digest.h"

static const struct {
	const char *name, *value;
} dispositions[] = {
	{"a.txt", "attachment; filename=\"a.txt\"; filename*=UTF-8''a.txt"},
	{"a b.txt", "attachment; filename=\"a b.txt\"; filename*=UTF-8''a%20b.txt"},
	{"a\"b\\c.txt", "attachment; filename=\"a_b_c.txt\"; filename*=UTF-8''a%22b%5Cc.txt"},
	{"a\r\nSet-Cookie: x=1", "attachment; filename=\"a__Set-Cookie_ x=1\"; "
				 "filename*=UTF-8''a%0D%0ASet-Cookie%3A%20x%3D1"},
	{"%41.txt", "attachment; filename=\"_41.txt\"; filename*=UTF-8''%2541.txt"},
	{"-rf", "attachment; filename=\"-rf\"; filename*=UTF-8''-rf"},
	{".profile", "attachment; filename=\".profile\"; filename*=UTF-8''.profile"},
	{"\xF0\x9F\xA4\xA3.txt",
	 "attachment; filename=\"_.txt\"; filename*=UTF-8''%F0%9F%A4%A3.txt"},
	{"あ.txt", "attachment; filename=\"_.txt\"; filename*=UTF-8''%E3%81%82.txt"},
	{"a'b;c*d", "attachment; filename=\"a'b;c_d\"; filename*=UTF-8''a%27b%3Bc%2Ad"},
	{"a+b&c=d", "attachment; filename=\"a+b&c=d\"; filename*=UTF-8''a+b&c%3Dd"},
	{"\x7F\x01", "attachment; filename=\"__\"; filename*=UTF-8''%7F%01"},
	{"\xFF", "attachment; filename=\"_\"; filename*=UTF-8''%EF%BF%BD"},
};

TEST(a_name_stays_inside_its_header_and_comes_back_exactly)
{
	for (size_t i = 0; i < ARRAY_LEN(dispositions); i++) {
		AUTO_BUF out = BUF_INIT;
		content_disposition(&out, dispositions[i].name);
		ck_assert_str_eq(buf_str(&out), dispositions[i].value);
	}
}
TEST_END

TEST(the_longest_name_fits_into_a_header_block)
{
	char name[256];
	for (int i = 0; i < 255; i += 3)
		memcpy(name + i, "\xE3\x81\x82", 3);
	name[255] = '\0';
	AUTO_BUF out = BUF_INIT;
	content_disposition(&out, name);
	ck_assert_uint_lt(out.len, 1100);
	memset(name, '"', 255);
	buf_clear(&out);
	content_disposition(&out, name);
	ck_assert_uint_lt(out.len, 1100);
}
TEST_END

TEST(a_media_type_follows_the_last_extension_in_any_case)
{
	static const char *const types[][2] = {
		{"a.PNG", "image/png"},
		{"a.tar.gz", "application/gzip"},
		{"notes.md", "text/markdown; charset=utf-8"},
		{"a.ipynb", "application/x-ipynb+json"},
		{"png", "application/octet-stream"},
		{"a.png.", "application/octet-stream"},
		{"a.unheard-of", "application/octet-stream"},
		{"", "application/octet-stream"},
	};
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		ck_assert_str_eq(media_type(types[i][0]), types[i][1]);
}
TEST_END

/* SHA-256 of nothing */
#define B64 "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="

static const struct {
	const char *name, *value;
	bool ok, found;
} digests[] = {
	{"repr-digest", "sha-256=:" B64 ":", true, true},
	{"content-digest", "SHA-256=:" B64 ":", true, true},
	{"digest", "SHA-256=" B64, true, true},
	{"digest", "md5=AAAA, sha-256=" B64 " , unixsum=1", true, true},
	{"repr-digest", "sha-512=:AAAA:, sha-256=:" B64 ":;q=1", true, true},
	{"repr-digest", "sha-512=:AAAA:", true, false},
	{"repr-digest", "", true, false},
	{"repr-digest", "sha-256=" B64, false, false},
	{"repr-digest", "sha-256=:AAAA:", false, false},
	{"repr-digest", "sha-256=:" B64, false, false},
	{"digest", "sha-256=:" B64 ":", false, false},
	{"digest", "sha-256=", false, false},
	{"digest", "sha-256=AA==", false, false},
	{"digest", "sha-256=" B64 "AAAA", false, false},
	{"x-digest", "sha-256=" B64, true, false},
};

TEST(a_digest_is_found_in_its_three_headers_and_a_malformed_one_refused)
{
	for (size_t i = 0; i < ARRAY_LEN(digests); i++) {
		const struct http_header header = {digests[i].name, digests[i].value};
		const struct http_request request = {.headers = &header, .header_count = 1};
		unsigned char sha256[32] = {0};
		bool found;
		struct err err = ERR_INIT;
		bool ok = digest_announced(&request, sha256, &found, &err);
		ck_assert_msg(ok == digests[i].ok && (!ok || found == digests[i].found), "%s: %s",
			      header.name, header.value);
		if (ok && found)
			ck_assert(sha256[0] == 0xE3 && sha256[31] == 0x55);
	}
}
TEST_END

TEST(two_digests_that_differ_are_refused)
{
	const struct http_header headers[] = {
		{"repr-digest", "sha-256=:" B64 ":"},
		{"digest", "sha-256=" B64},
		{"content-digest", "sha-256=:57DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"},
	};
	struct http_request request = {.headers = headers, .header_count = 2};
	unsigned char sha256[32];
	bool found;
	struct err err = ERR_INIT;
	ck_ok(digest_announced(&request, sha256, &found, &err), err);
	request.header_count = 3;
	ck_assert(!digest_announced(&request, sha256, &found, &err));
	ck_assert_int_eq(err.code, ERR_INVALID);
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		a_name_stays_inside_its_header_and_comes_back_exactly,
		the_longest_name_fits_into_a_header_block,
		a_media_type_follows_the_last_extension_in_any_case,
		a_digest_is_found_in_its_three_headers_and_a_malformed_one_refused,
		two_digests_that_differ_are_refused,
	};
	return unit_run("content", tests, ARRAY_LEN(tests));
}
