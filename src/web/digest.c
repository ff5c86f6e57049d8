/* Lists of "algorithm=value", of which sha-256 counts. */
#include "web/digest.h"

#include <sodium.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

static const struct {
	const char *header;
	bool in_colons; /* a byte sequence of structured fields: :base64: */
} forms[] = {{"repr-digest", true}, {"content-digest", true}, {"digest", false}};

static bool malformed(const char *header, struct err *err)
{
	err_set(err, ERR_INVALID, "the sha-256 in the header %s is not 32 bytes of base64", header);
	return err_hint(err, "Send Repr-Digest: sha-256=:BASE64: or leave it out.");
}

/* The value behind "sha-256=", up to the end of its list item. */
static bool decode(const char *value, size_t len, bool in_colons, unsigned char sha256[static 32])
{
	if (in_colons) {
		const char *end =
			len > 0 && value[0] == ':' ? memchr(value + 1, ':', len - 1) : NULL;
		if (end == NULL)
			return false;
		value++;
		len = (size_t)(end - value);
	}
	while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
		len--;
	unsigned char digest[32];
	size_t got;
	if (!text_from_base64(value, len, sodium_base64_VARIANT_ORIGINAL, digest, sizeof(digest),
			      &got) ||
	    got != sizeof(digest))
		return false;
	memcpy(sha256, digest, sizeof(digest));
	return true;
}

static bool read_list(const char *header, const char *list, bool in_colons,
		      unsigned char sha256[static 32], bool *found, struct err *err)
{
	static const char wanted[] = "sha-256=";
	for (const char *p = list; *p != '\0';) {
		p += strspn(p, " \t,");
		size_t len = strcspn(p, ",");
		if (len >= sizeof(wanted) - 1 && strncasecmp(p, wanted, sizeof(wanted) - 1) == 0) {
			unsigned char digest[32];
			if (!decode(p + sizeof(wanted) - 1, len - (sizeof(wanted) - 1), in_colons,
				    digest))
				return malformed(header, err);
			if (*found && memcmp(digest, sha256, sizeof(digest)) != 0)
				return err_set(err, ERR_INVALID,
					       "two different sha-256 digests are announced");
			memcpy(sha256, digest, sizeof(digest));
			*found = true;
		}
		p += len;
	}
	return true;
}

bool digest_announced(const struct http_request *request, unsigned char sha256[static 32],
		      bool *found, struct err *err)
{
	*found = false;
	for (size_t i = 0; i < request->header_count; i++) {
		const struct http_header *header = &request->headers[i];
		for (size_t j = 0; j < ARRAY_LEN(forms); j++) {
			if (strcmp(header->name, forms[j].header) == 0 &&
			    !read_list(header->name, header->value, forms[j].in_colons, sha256,
				       found, err))
				return false;
		}
	}
	return true;
}
