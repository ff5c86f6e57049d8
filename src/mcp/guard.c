/* Parsing of a few headers that browsers and attackers write, strictly and without copies. */
#include "mcp/guard.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"

#define HOST_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

struct authority {
	char host[256]; /* lower case; IPv6 without brackets */
	int port;       /* 0: not given */
};

static bool copy_lower(char *out, size_t size, const char *p, size_t len)
{
	if (len == 0 || len >= size)
		return false;
	for (size_t i = 0; i < len; i++)
		out[i] = (char)tolower((unsigned char)p[i]);
	out[len] = '\0';
	return true;
}

static bool parse_port(const char *p, size_t len, int *port)
{
	char text[6];
	int64_t number;
	*port = 0;
	if (len == 0)
		return true;
	if (p[0] != ':' || !copy_lower(text, sizeof(text), p + 1, len - 1) ||
	    !num_parse_int(text, 1, 65535, &number))
		return false;
	*port = (int)number;
	return true;
}

/* host, host:port, [IPv6], [IPv6]:port. */
static bool parse_authority(const char *p, size_t len, struct authority *out)
{
	size_t host_len;
	if (len > 0 && p[0] == '[') {
		const char *end = memchr(p, ']', len);
		struct in6_addr ignored;
		if (end == NULL ||
		    !copy_lower(out->host, sizeof(out->host), p + 1, (size_t)(end - p) - 1) ||
		    inet_pton(AF_INET6, out->host, &ignored) != 1)
			return false;
		host_len = (size_t)(end - p) + 1;
	} else {
		host_len = strspn(p, HOST_CHARS);
		host_len = host_len < len ? host_len : len;
		if (!copy_lower(out->host, sizeof(out->host), p, host_len))
			return false;
	}
	return parse_port(p + host_len, len - host_len, &out->port);
}

static bool is_ipv4(const char *host, struct in_addr *address)
{
	return inet_pton(AF_INET, host, address) == 1;
}

static bool is_ipv6(const char *host, struct in6_addr *address)
{
	return inet_pton(AF_INET6, host, address) == 1;
}

static bool is_loopback(const char *host)
{
	struct in_addr v4;
	struct in6_addr v6;
	if (is_ipv4(host, &v4))
		return ntohl(v4.s_addr) >> 24 == 127;
	if (is_ipv6(host, &v6))
		return IN6_IS_ADDR_LOOPBACK(&v6);
	return strcmp(host, "localhost") == 0;
}

static bool is_address(const char *host)
{
	struct in_addr v4;
	struct in6_addr v6;
	return is_ipv4(host, &v4) || is_ipv6(host, &v6);
}

struct origin {
	bool secure;
	struct authority at; /* the port is always set */
};

/* "http://host:port"; a path is taken only where we wrote the text ourselves. */
static bool parse_origin(const char *p, size_t len, bool path_allowed, struct origin *out)
{
	static const char *const schemes[] = {"http://", "https://"};
	for (int i = 0; i < 2; i++) {
		size_t scheme = strlen(schemes[i]);
		if (len <= scheme || strncasecmp(p, schemes[i], scheme) != 0)
			continue;
		size_t rest = len - scheme;
		const char *path = memchr(p + scheme, '/', rest);
		if (path != NULL && path_allowed)
			rest = (size_t)(path - p) - scheme;
		out->secure = i == 1;
		if (!parse_authority(p + scheme, rest, &out->at))
			return false;
		if (out->at.port == 0)
			out->at.port = out->secure ? 443 : 80;
		return true;
	}
	return false;
}

static bool parse_public(const char *public_url, struct origin *out)
{
	return public_url != NULL && parse_origin(public_url, strlen(public_url), true, out);
}

static bool is_same_origin(const struct origin *a, const struct origin *b)
{
	return a->secure == b->secure && a->at.port == b->at.port &&
	       strcmp(a->at.host, b->at.host) == 0;
}

bool guard_host(const char *host, const char *public_url)
{
	struct authority sent;
	struct origin ours;
	if (host[0] == '\0')
		return true;
	if (!parse_authority(host, strlen(host), &sent))
		return false;
	return is_loopback(sent.host) || is_address(sent.host) ||
	       (parse_public(public_url, &ours) && strcmp(sent.host, ours.at.host) == 0);
}

/* --- lists -------------------------------------------------------------------------------- */

/* The next element of a comma-separated list without its blanks; false at the end. */
static bool next_element(const char **list, const char **p, size_t *len)
{
	*list += strspn(*list, ", \t");
	if (**list == '\0')
		return false;
	*p = *list;
	*len = strcspn(*p, ",");
	*list += *len;
	while (*len > 0 && ((*p)[*len - 1] == ' ' || (*p)[*len - 1] == '\t'))
		(*len)--;
	return true;
}

static bool is_word(const char *p, size_t len, const char *word)
{
	return len == strlen(word) && strncasecmp(p, word, len) == 0;
}

static bool is_listed(const char *allowed, const char *sent, const struct origin *origin)
{
	const char *p;
	size_t len;
	while (allowed != NULL && next_element(&allowed, &p, &len)) {
		struct origin entry;
		if (origin == NULL
			    ? is_word(p, len, sent)
			    : parse_origin(p, len, true, &entry) && is_same_origin(&entry, origin))
			return true;
	}
	return false;
}

bool guard_origin(const char *origin, const char *public_url, const char *allowed)
{
	struct origin sent, ours;
	if (strcmp(origin, "null") == 0)
		return is_listed(allowed, origin, NULL);
	if (!parse_origin(origin, strlen(origin), false, &sent))
		return false;
	if (is_listed(allowed, origin, &sent))
		return true;
	/* Without a public URL the server is bound to loopback. */
	if (!parse_public(public_url, &ours))
		return is_loopback(sent.at.host);
	return is_same_origin(&sent, &ours) ||
	       (is_loopback(ours.at.host) && is_loopback(sent.at.host));
}

/* --- media types -------------------------------------------------------------------------- */

/* The length of a media range without its parameters and blanks. */
static size_t type_length(const char *p, size_t len)
{
	const char *semicolon = memchr(p, ';', len);
	if (semicolon != NULL)
		len = (size_t)(semicolon - p);
	while (len > 0 && (p[len - 1] == ' ' || p[len - 1] == '\t'))
		len--;
	return len;
}

bool guard_is_json(const char *content_type)
{
	if (content_type == NULL)
		return false;
	content_type += strspn(content_type, " \t");
	return is_word(content_type, type_length(content_type, strlen(content_type)),
		       "application/json");
}

/* q=0, q=0.0 and so on. */
static bool is_refused(const char *p, size_t len)
{
	for (const char *at = p; (at = memchr(at, ';', len - (size_t)(at - p))) != NULL;) {
		at++;
		size_t left = len - (size_t)(at - p);
		size_t blanks = strspn(at, " \t");
		if (blanks + 3 > left || strncasecmp(at + blanks, "q=0", 3) != 0)
			continue;
		size_t zeros = blanks + 3 + strspn(at + blanks + 3, ".0");
		if (zeros >= left || strchr(" \t;", at[zeros]) != NULL)
			return true;
	}
	return false;
}

/* How exactly a media range names a type: 3 itself, 2 its group, 1 everything, 0 not at all. */
static int exactness(const char *p, size_t len, const char *type, const char *group)
{
	return is_word(p, len, type) ? 3 : is_word(p, len, group) ? 2 : is_word(p, len, "*/*");
}

static bool accepts(const char *accept, const char *type, const char *group)
{
	const char *p;
	size_t len;
	int best = 0;
	bool result = false;
	while (next_element(&accept, &p, &len)) {
		int exact = exactness(p, type_length(p, len), type, group);
		if (exact > best) {
			best = exact;
			result = !is_refused(p, len);
		}
	}
	return result;
}

struct guard_accept guard_accept(const char *accept)
{
	if (accept == NULL)
		return (struct guard_accept){true, true};
	return (struct guard_accept){accepts(accept, "application/json", "application/*"),
				     accepts(accept, "text/event-stream", "text/*")};
}

/* --- CORS --------------------------------------------------------------------------------- */

static void add_field(struct guard_cors *cors, const char *name, const char *value)
{
	cors->fields[cors->count++] = (struct http_header){name, value};
}

/* The fixed names, and those of repeated arguments that the browser asks for, while they fit. */
static void list_allowed_headers(const char *requested, struct guard_cors *cors)
{
	static const char prefix[] = "mcp-param-";
	size_t used = (size_t)snprintf(cors->allow_headers, sizeof(cors->allow_headers),
				       "Authorization, Content-Type, Accept, MCP-Protocol-Version, "
				       "Mcp-Method, Mcp-Name, Mcp-Session-Id, Last-Event-ID");
	const char *p;
	size_t len;
	while (requested != NULL && next_element(&requested, &p, &len)) {
		if (len <= strlen(prefix) || strncasecmp(p, prefix, strlen(prefix)) != 0 ||
		    strspn(p, HOST_CHARS) < len || used + len + 3 > sizeof(cors->allow_headers))
			continue;
		used += (size_t)snprintf(cors->allow_headers + used,
					 sizeof(cors->allow_headers) - used, ", %.*s", (int)len, p);
	}
}

void guard_cors(const struct http_request *request, const char *origin, bool preflight,
		struct guard_cors *cors)
{
	cors->count = 0;
	add_field(cors, "access-control-allow-origin", origin);
	add_field(cors, "vary", "Origin");
	add_field(cors, "access-control-expose-headers", "WWW-Authenticate");
	if (!preflight)
		return;
	list_allowed_headers(http_header(request, "access-control-request-headers"), cors);
	add_field(cors, "access-control-allow-methods", "POST, OPTIONS");
	add_field(cors, "access-control-allow-headers", cors->allow_headers);
	add_field(cors, "access-control-max-age", "600");
}
