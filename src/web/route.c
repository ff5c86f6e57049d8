/* The table of routes, and the reading of a request URI. */
#include "web/route.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "web/filelink.h"
#include "web/refuse.h"

#define PATTERN_MAX 3

static void serve_health(const struct endpoint *endpoint, const struct http_request *request,
			 const struct http_sink *sink)
{
	static const char body[] = "{\"ok\":true}";
	(void)endpoint;
	(void)request;
	http_answer(sink, 200, "application/json", body, sizeof(body) - 1, NULL, 0);
}

static const char put_usage[] =
	"This is an upload link, not a page. Send the file to it: curl -T FILE 'URL'";

static const struct route {
	const char *pattern[PATTERN_MAX]; /* "*" is any one segment */
	const char *allow;                /* methods; NULL: the handler decides */
	void (*serve)(const struct endpoint *, const struct http_request *,
		      const struct http_sink *);
	const char *usage; /* hint for another method */
} routes[] = {
	{{"mcp"}, NULL, endpoint_serve, NULL},
	{{"files", "get", "*"}, "GET, HEAD", filelink_get, "Fetch it: curl -fOJ 'URL'"},
	{{"files", "put", "*"}, "PUT, POST", filelink_put, put_usage},
	{{"files", "pull"}, "GET, HEAD", filelink_pull, "Fetch it with GET and the bearer token."},
	{{"files", "push"}, "PUT, POST", filelink_push, "Send it with PUT and the bearer token."},
	{{"healthz"}, "GET, HEAD", serve_health, "Ask with GET."},
};

static bool matches(const struct route *route, const char *const *segments, size_t count)
{
	for (size_t i = 0; i < PATTERN_MAX; i++) {
		const char *want = route->pattern[i];
		if (want == NULL || i == count)
			return want == NULL && i == count;
		if (strcmp(want, "*") != 0 && strcmp(want, segments[i]) != 0)
			return false;
	}
	return count == PATTERN_MAX;
}

static const struct route *find(const char *const *segments, size_t count)
{
	for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
		if (matches(&routes[i], segments, count))
			return &routes[i];
	}
	return NULL;
}

/* --- URI --------------------------------------------------------------------------------- */

static int hex_value(char c)
{
	return isdigit((unsigned char)c)    ? c - '0'
	       : isxdigit((unsigned char)c) ? (c | 0x20) - 'a' + 10
					    : -1;
}

static bool is_allowed_byte(int c)
{
	return c >= 0x20 && c != 0x7F && c != '/';
}

/* Appends a segment decoded, with its NUL. */
static bool decode_segment(const char *p, size_t len, struct buf *out)
{
	size_t start = out->len;
	for (size_t i = 0; i < len; i++) {
		int c = (unsigned char)p[i];
		if (c == '%') {
			/* Both are looked at only while inside: hex_value('/') and of NUL are -1.
			 */
			int high = hex_value(p[i + 1]);
			int low = high < 0 ? -1 : hex_value(p[i + 2]);
			if (low < 0)
				return false;
			c = high << 4 | low;
			i += 2;
		}
		if (!is_allowed_byte(c))
			return false;
		buf_putc(out, (char)c);
	}
	const char *text = buf_str(out) + start;
	if (out->len == start || strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
		return false;
	buf_putc(out, '\0');
	return true;
}

/* The path of an absolute-form URI, the URI itself otherwise. */
static const char *skip_origin(const char *uri)
{
	size_t scheme = strncasecmp(uri, "http://", 7) == 0    ? 7
			: strncasecmp(uri, "https://", 8) == 0 ? 8
							       : 0;
	if (scheme == 0)
		return uri;
	const char *path = uri + scheme + strcspn(uri + scheme, "/?");
	return *path == '/' ? path : "/";
}

static bool bad_uri(struct err *err)
{
	err_set(err, ERR_INVALID, "the path of the URL is malformed");
	return err_hint(err, "Use the URL exactly as it was given.");
}

/* /.well-known/x/mcp asks for a document about /mcp (RFC 9728, 3.1), of which there is none. */
static bool is_well_known(const char *const *segments, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(segments[i], ".well-known") == 0)
			return true;
	}
	return false;
}

/* Keeps the last segments: routes are short, and what stands before them is the mount prefix. */
static void collect(struct route_uri *out)
{
	const char *all[HTTP_SEGMENTS_MAX];
	size_t count = 0;
	for (size_t at = 0; at < out->text.len; at += strlen(out->text.data + at) + 1) {
		if (count == HTTP_SEGMENTS_MAX)
			memmove(all, all + 1, --count * sizeof(all[0]));
		all[count++] = out->text.data + at;
	}
	size_t start = 0;
	for (size_t i = is_well_known(all, count) ? 0 : count; i-- > 0 && start == 0;)
		start = find(all + i, count - i) != NULL ? i : 0;
	out->segment_count = count - start;
	memcpy(out->segments, all + start, out->segment_count * sizeof(all[0]));
}

bool route_parse(const char *uri, struct route_uri *out, struct err *err)
{
	*out = (struct route_uri){.query = "", .text = BUF_INIT};
	const char *question = strchr(uri, '?');
	if (question != NULL)
		out->query = question + 1;
	const char *p = skip_origin(uri);
	if (*p != '/')
		return bad_uri(err);
	for (p++; *p != '\0' && *p != '?';) {
		size_t len = strcspn(p, "/?");
		if (!decode_segment(p, len, &out->text))
			return bad_uri(err);
		p += len + (p[len] == '/');
	}
	collect(out);
	return true;
}

void route_finish(struct route_uri *uri)
{
	buf_finish(&uri->text);
}

/* --- dispatch ---------------------------------------------------------------------------- */

/* Whether a comma-separated list has a method; both are case-sensitive. */
static bool allows(const char *list, const char *method)
{
	size_t len = strlen(method);
	for (const char *p = list; *p != '\0'; p += strspn(p, ", ")) {
		size_t item = strcspn(p, ",");
		if (item == len && memcmp(p, method, len) == 0)
			return true;
		p += item;
	}
	return false;
}

void route_serve(const struct endpoint *endpoint, const struct http_request *request,
		 const struct http_sink *sink)
{
	const struct route *route = find(request->segments, request->segment_count);
	if (route == NULL) {
		refuse(sink, 404, err_name(ERR_NOT_FOUND), "nothing is served under this URL",
		       "The MCP endpoint is /mcp; file links start with /files/.", NULL);
		return;
	}
	if (route->allow != NULL && !allows(route->allow, request->method)) {
		const struct http_header field = {"allow", route->allow};
		refuse(sink, 405, "method_not_allowed", "this URL does not take that method",
		       route->usage, &field);
		return;
	}
	route->serve(endpoint, request, sink);
}
