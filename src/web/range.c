/* Preconditions first, in the order of RFC 9110 section 13.2.2, then the range. */
#include "web/range.h"

#include <ctype.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"

void range_etag(const struct stat *st, char out[static RANGE_ETAG_LEN])
{
	/* Zeroed as a whole and of equal members: no padding is hashed. */
	const int64_t identity[] = {
		(int64_t)st->st_dev, (int64_t)st->st_ino, st->st_size,         st->st_mtim.tv_sec,
		st->st_mtim.tv_nsec, st->st_ctim.tv_sec,  st->st_ctim.tv_nsec,
	};
	unsigned char hash[16];
	char hex[33];
	crypto_generichash(hash, sizeof(hash), (const unsigned char *)identity, sizeof(identity),
			   NULL, 0);
	sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash));
	snprintf(out, RANGE_ETAG_LEN, "\"%s\"", hex);
}

static const char *skip_space(const char *p)
{
	return p + strspn(p, " \t");
}

/* Whether a list of entity tags ("*" is all) names ours. In a strong comparison a weak tag
 * never matches. */
static bool names_etag(const char *list, const char *etag, bool strong)
{
	const char *p = skip_space(list);
	if (p[0] == '*' && *skip_space(p + 1) == '\0')
		return true;
	while (*p != '\0') {
		bool weak = strncmp(p, "W/", 2) == 0;
		p += weak ? 2 : 0;
		const char *end = *p == '"' ? strchr(p + 1, '"') : NULL;
		if (end == NULL)
			return false;
		size_t len = (size_t)(end + 1 - p);
		if (len == strlen(etag) && memcmp(p, etag, len) == 0 && !(weak && strong))
			return true;
		p = skip_space(end + 1);
		p += *p == ',' ? 1 : 0;
		p = skip_space(p);
	}
	return false;
}

/* As names_etag over every header of that name: servers join them or pass each. */
static bool any_names_etag(const struct http_request *request, const char *header, const char *etag,
			   bool strong)
{
	for (size_t i = 0; i < request->header_count; i++) {
		if (strcmp(request->headers[i].name, header) == 0 &&
		    names_etag(request->headers[i].value, etag, strong))
			return true;
	}
	return false;
}

/* Whole seconds, rounded towards the past, as Last-Modified shows them. */
static int64_t seconds(int64_t ms)
{
	return ms / 1000 - (ms % 1000 < 0);
}

/* 1: changed after the date in a header; 0: not; -1: no such header, or no date in it. */
static int changed_since(const struct http_request *request, const char *header,
			 const struct range_file *file)
{
	const char *value = http_header(request, header);
	int64_t date;
	if (value == NULL || !clock_parse_http_date(value, &date))
		return -1;
	return seconds(file->modified_at) > seconds(date);
}

static bool precondition_fails(const struct http_request *request, const struct range_file *file)
{
	if (http_header(request, "if-match") != NULL)
		return !any_names_etag(request, "if-match", file->etag, true);
	return changed_since(request, "if-unmodified-since", file) == 1;
}

static bool is_not_modified(const struct http_request *request, const struct range_file *file)
{
	if (http_header(request, "if-none-match") != NULL)
		return any_names_etag(request, "if-none-match", file->etag, false);
	return changed_since(request, "if-modified-since", file) == 0;
}

/* Whether a client that holds a part of some version holds one of this version. */
static bool if_range_holds(const struct http_request *request, const struct range_file *file)
{
	const char *value = http_header(request, "if-range");
	if (value == NULL)
		return true;
	int64_t date;
	if (clock_parse_http_date(value, &date))
		return seconds(date) == seconds(file->modified_at);
	return value[0] == '"' && names_etag(value, file->etag, true);
}

/* Digits up to *p's end; a number beyond the range of files stays at INT64_MAX. */
static bool position(const char **p, int64_t *out)
{
	if (!isdigit((unsigned char)**p))
		return false;
	for (*out = 0; isdigit((unsigned char)**p); ++*p) {
		int digit = **p - '0';
		*out = *out > (INT64_MAX - digit) / 10 ? INT64_MAX : *out * 10 + digit;
	}
	return true;
}

/* One range of the form "bytes=first-last", "bytes=first-" or "bytes=-count"; last is INT64_MAX
 * when left out, first is -1 for the third form. */
static bool parse_range(const char *value, int64_t *first, int64_t *last)
{
	if (strncasecmp(value, "bytes=", 6) != 0)
		return false;
	const char *p = skip_space(value + 6);
	*first = -1;
	*last = INT64_MAX;
	bool has_first = position(&p, first);
	if (*p++ != '-')
		return false;
	bool has_last = position(&p, last);
	return (has_first || has_last) && *skip_space(p) == '\0' && *first <= *last;
}

static struct range_reply cut(const char *value, int64_t size)
{
	struct range_reply whole = {RANGE_WHOLE, 0, size};
	int64_t first, last;
	if (!parse_range(value, &first, &last))
		return whole;
	if (first < 0) {
		if (last == 0)
			return (struct range_reply){RANGE_UNSATISFIABLE, 0, 0};
		first = last < size ? size - last : 0;
		last = INT64_MAX;
	}
	if (first == 0 && size == 0)
		return whole; /* a 206 cannot say "no bytes", and all of them were asked for */
	if (first >= size)
		return (struct range_reply){RANGE_UNSATISFIABLE, 0, 0};
	last = last < size - 1 ? last : size - 1;
	return (struct range_reply){RANGE_PART, first, last - first + 1};
}

struct range_reply range_decide(const struct http_request *request, const struct range_file *file)
{
	if (precondition_fails(request, file))
		return (struct range_reply){RANGE_FAILED, 0, 0};
	if (is_not_modified(request, file))
		return (struct range_reply){RANGE_NOT_MODIFIED, 0, 0};
	const char *value = http_header(request, "range");
	if (value == NULL || strcmp(request->method, "GET") != 0 ||
	    http_header_count(request, "range") != 1 || !if_range_holds(request, file))
		return (struct range_reply){RANGE_WHOLE, 0, file->size};
	return cut(value, file->size);
}
