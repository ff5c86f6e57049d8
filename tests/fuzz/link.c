/*
 * What clients hand back: the token of a link, the URI that it stands in, and what was sealed for
 * them.
 *
 * Input: a line with a token, a line with a URI, a line of sealed data. The sealed data is also
 * taken for the place and the bit of a change in some that is genuine.
 */
#include "fuzz.h"

#include "store/sign.h"
#include "web/route.h"

#define LINK_ID   "0123456789abcdef0123456789abcdef"
#define NOW       INT64_C(1000)
#define EXPIRES   INT64_C(2000000000000)
#define LONG_GONE INT64_C(999)

/* Only the two tokens that were made are anything else than wrong. */
static void check_token(const char *token)
{
	struct err err = ERR_INIT;
	struct sign_key key;
	char good[SIGN_TOKEN_LEN + 1], old[SIGN_TOKEN_LEN + 1], id[ID_LEN + 1];
	sign_key_from_text(&key, "fuzz");
	sign_link(&key, LINK_ID, EXPIRES, good);
	sign_link(&key, LINK_ID, LONG_GONE, old);
	if (sign_check(&key, token, NOW, id, &err)) {
		assert(strcmp(token, good) == 0 && strcmp(id, LINK_ID) == 0);
		return;
	}
	fuzz_check_err(&err);
	assert(strcmp(token, good) != 0);
	assert(err.code == (strcmp(token, old) == 0 ? ERR_GONE : ERR_DENIED));
}

static void check_segment(const char *segment)
{
	assert(segment[0] != '\0' && strchr(segment, '/') == NULL);
	assert(strcmp(segment, ".") != 0 && strcmp(segment, "..") != 0);
	for (const char *p = segment; *p != '\0'; p++)
		assert((unsigned char)*p >= 0x20 && *p != 0x7F);
}

/* Spelled with nothing but escapes it is the same route. */
static void check_spelling(const struct route_uri *uri)
{
	struct err err = ERR_INIT;
	AUTO_BUF spelled = BUF_INIT;
	for (size_t i = 0; i < uri->segment_count; i++) {
		buf_putc(&spelled, '/');
		for (const char *p = uri->segments[i]; *p != '\0'; p++)
			buf_printf(&spelled, "%%%02x", (unsigned char)*p);
	}
	buf_printf(&spelled, "%s?%s", uri->segment_count == 0 ? "/" : "", uri->query);
	AUTO_ROUTE_URI again;
	assert(route_parse(spelled.data, &again, &err));
	assert(again.segment_count == uri->segment_count);
	for (size_t i = 0; i < uri->segment_count; i++)
		assert(strcmp(again.segments[i], uri->segments[i]) == 0);
	assert(strcmp(again.query, uri->query) == 0);
}

static void check_uri(const char *text)
{
	struct err err = ERR_INIT;
	AUTO_ROUTE_URI uri;
	if (!route_parse(text, &uri, &err)) {
		fuzz_check_err(&err);
		assert(err.code == ERR_INVALID);
		return;
	}
	assert(uri.segment_count <= HTTP_SEGMENTS_MAX);
	for (size_t i = 0; i < uri.segment_count; i++)
		check_segment(uri.segments[i]);
	check_spelling(&uri);
}

static void check_denied(const struct sign_key *key, const char *sealed)
{
	struct err err = ERR_INIT;
	AUTO_BUF data = BUF_INIT;
	assert(!sign_open(key, 1, sealed, "context", 7, &data, &err));
	fuzz_check_err(&err);
	assert(err.code == ERR_DENIED && data.len == 0);
}

static void check_sealed(const char *text)
{
	struct sign_key key;
	sign_key_from_text(&key, "fuzz");
	check_denied(&key, text);
	AUTO_BUF sealed = BUF_INIT;
	sign_seal(&key, "data", 4, "context", 7, &sealed);
	size_t place = text[0] == '\0' ? 0 : (unsigned char)text[0] % sealed.len;
	unsigned bit = text[0] == '\0' ? 0 : (unsigned char)text[1] % 8;
	sealed.data[place] ^= (char)(1U << bit);
	check_denied(&key, sealed.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = fuzz_input(data, size);
	AUTO_FREE char *token = fuzz_line(&in), *uri = fuzz_line(&in);
	AUTO_FREE char *sealed = fuzz_line(&in);
	check_token(token);
	check_uri(uri);
	check_sealed(sealed);
	return 0;
}
