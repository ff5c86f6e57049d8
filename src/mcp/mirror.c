/*
 * A header value is decoded once (blanks trimmed, base64 sentinel undone) and then compared with
 * the body bytewise; only integers are compared as numbers. One table says which methods repeat
 * which parameter, also for methods of extensions: the headers are checked before the method is
 * looked up.
 */
#include "mcp/mirror.h"

#include <ctype.h>
#include <sodium.h>
#include <string.h>

#include "base/text.h"

#define VALUE_MAX ((size_t)8192) /* bytes of a header value; common servers stop there too */
#define SAFE_INT  9007199254740991.0

bool mirror_header(const struct http_request *request, const char *name, struct buf *out)
{
	const char *value = http_header(request, name);
	if (value == NULL)
		return false;
	value += strspn(value, " \t");
	size_t len = strlen(value);
	while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
		len--;
	buf_append(out, value, len);
	return true;
}

/* A session id is not ours to judge: it is ignored in every form. */
static bool is_mcp_header(const char *name)
{
	return strncmp(name, "mcp-", 4) == 0 && strcmp(name, "mcp-session-id") != 0;
}

bool mirror_check_single(const struct http_request *request, struct rpc_error *error)
{
	for (size_t i = 0; i < request->header_count; i++) {
		const char *name = request->headers[i].name;
		if (is_mcp_header(name) && http_header_count(request, name) > 1)
			return rpc_refuse(error, RPC_HEADER, "Header %s was sent more than once",
					  name);
	}
	return true;
}

/* --- values ------------------------------------------------------------------------------- */

static bool is_plain(const struct buf *value)
{
	for (size_t i = 0; i < value->len; i++) {
		unsigned char c = (unsigned char)value->data[i];
		if (c != '\t' && (c < 0x20 || c > 0x7E))
			return false;
	}
	return true;
}

#define SENTINEL_HEAD "=?base64?"
#define SENTINEL_TAIL "?="

static bool is_sentinel(const struct buf *value)
{
	size_t head = strlen(SENTINEL_HEAD), tail = strlen(SENTINEL_TAIL);
	return value->len >= head + tail && memcmp(value->data, SENTINEL_HEAD, head) == 0 &&
	       memcmp(value->data + value->len - tail, SENTINEL_TAIL, tail) == 0;
}

static bool decode_sentinel(struct buf *value)
{
	size_t head = strlen(SENTINEL_HEAD);
	size_t len = value->len - head - strlen(SENTINEL_TAIL);
	AUTO_BUF decoded = BUF_INIT;
	size_t got;
	if (!text_from_base64(value->data + head, len, sodium_base64_VARIANT_ORIGINAL,
			      buf_reserve(&decoded, len), len, &got) ||
	    !text_is_utf8(buf_str(&decoded), got))
		return false;
	buf_clear(value);
	buf_append(value, decoded.data, got);
	return true;
}

/* The decoded value of a header that may use the sentinel form. */
static bool read_value(const struct http_request *request, const char *name, struct buf *out,
		       struct rpc_error *error)
{
	if (!mirror_header(request, name, out))
		return rpc_refuse(error, RPC_HEADER, "Header %s is missing", name);
	if (out->len > VALUE_MAX || !is_plain(out) || (is_sentinel(out) && !decode_sentinel(out)))
		return rpc_refuse(
			error, RPC_HEADER,
			"Header %s is malformed: printable ASCII or =?base64?...?= of UTF-8 "
			"is allowed, at most %zu bytes",
			name, VALUE_MAX);
	return true;
}

static bool is_same_text(const struct buf *value, struct json_object *text)
{
	size_t len = json_str_len(text);
	return value->len == len && memcmp(buf_str(value), json_str(text), len) == 0;
}

static bool differs(struct rpc_error *error, const char *header)
{
	return rpc_refuse(error, RPC_HEADER, "Header %s differs from the body", header);
}

/* --- method and name ---------------------------------------------------------------------- */

static const struct {
	const char *method;
	const char *param;
} names[] = {
	{"tools/call", "name"},  {"prompts/get", "name"},    {"resources/read", "uri"},
	{"tasks/get", "taskId"}, {"tasks/update", "taskId"}, {"tasks/cancel", "taskId"},
};

/* Without the parameter there is nothing to compare; its absence is told by its own check. */
static bool check_name(const struct http_request *request, const struct rpc_message *message,
		       const char *param, struct rpc_error *error)
{
	struct json_object *name = json_get(message->params, param);
	if (!json_object_is_type(name, json_type_string))
		return true;
	AUTO_BUF value = BUF_INIT;
	if (!read_value(request, "mcp-name", &value, error))
		return false;
	return is_same_text(&value, name) || differs(error, "mcp-name");
}

bool mirror_check(const struct http_request *request, const struct rpc_message *message,
		  struct rpc_error *error)
{
	AUTO_BUF method = BUF_INIT;
	if (!mirror_header(request, "mcp-method", &method))
		return rpc_refuse(error, RPC_HEADER, "Header mcp-method is missing");
	if (strcmp(buf_str(&method), message->method) != 0)
		return differs(error, "mcp-method");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strcmp(names[i].method, message->method) == 0)
			return check_name(request, message, names[i].param, error);
	}
	return true;
}

/* --- declared parameters ------------------------------------------------------------------ */

static struct json_object *argument_of(const struct mirror_param *param,
				       struct json_object *arguments)
{
	struct json_object *value = arguments;
	for (size_t i = 0; i < param->depth && value != NULL; i++)
		value = json_get(value, param->path[i]);
	return value;
}

/* "42.0" equals 42: both sides are read as JSON numbers. */
static bool is_same_number(const struct buf *value, struct json_object *number)
{
	struct err err;
	AUTO_JSON *sent = json_parse(buf_str(value), value->len, &err);
	if (!json_object_is_type(sent, json_type_int) &&
	    !json_object_is_type(sent, json_type_double))
		return false;
	double a = json_object_get_double(sent), b = json_object_get_double(number);
	return a == b && a >= -SAFE_INT && a <= SAFE_INT;
}

static bool is_same_value(const struct buf *value, struct json_object *argument)
{
	switch (json_object_get_type(argument)) {
	case json_type_string:
		return is_same_text(value, argument);
	case json_type_boolean:
		return strcmp(buf_str(value), json_text(argument, NULL)) == 0;
	case json_type_int:
	case json_type_double:
		return is_same_number(value, argument);
	default: /* never a declared type: the schema check tells */
		return true;
	}
}

bool mirror_check_params(const struct http_request *request, const struct mirror_params *params,
			 struct json_object *arguments, struct rpc_error *error)
{
	for (size_t i = 0; i < params->count; i++) {
		const char *header = params->params[i].header;
		struct json_object *argument = argument_of(&params->params[i], arguments);
		if (argument == NULL) {
			if (http_header(request, header) != NULL)
				return rpc_refuse(error, RPC_HEADER,
						  "Header %s was sent but its argument is not set",
						  header);
			continue;
		}
		AUTO_BUF value = BUF_INIT;
		if (!read_value(request, header, &value, error))
			return false;
		if (!is_same_value(&value, argument))
			return differs(error, header);
	}
	return true;
}

void mirror_params_finish(struct mirror_params *params)
{
	for (size_t i = 0; i < params->count; i++)
		free(params->params[i].header);
	free(params->params);
	*params = (struct mirror_params){NULL, 0};
}

/* Hyphens and letters only: web servers fold other characters into "_" and let names collide. */
static char *header_name(const char *declared)
{
	size_t len =
		strspn(declared, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-");
	if (len == 0 || declared[len] != '\0')
		return NULL;
	char *name = xasprintf("mcp-param-%s", declared);
	for (char *p = name; *p != '\0'; p++)
		*p = (char)tolower((unsigned char)*p);
	return name;
}

static bool is_mirrored_type(struct json_object *schema)
{
	const char *type = json_get_str(schema, "type");
	return type != NULL && (strcmp(type, "string") == 0 || strcmp(type, "integer") == 0 ||
				strcmp(type, "boolean") == 0);
}

/* at: the path so far; its header is not set. */
static bool declare_one(struct json_object *schema, const struct mirror_param *at,
			struct mirror_params *params, struct err *err)
{
	const char *declared = rpc_name(json_get(schema, "x-mcp-header"));
	AUTO_FREE char *header = declared == NULL ? NULL : header_name(declared);
	if (header == NULL || at->depth == 0 || !is_mirrored_type(schema))
		return err_set(
			err, ERR_INVALID,
			"x-mcp-header needs letters, digits and hyphens, on a string, integer "
			"or boolean property");
	for (size_t i = 0; i < params->count; i++) {
		if (strcmp(params->params[i].header, header) == 0)
			return err_set(err, ERR_INVALID, "x-mcp-header \"%s\" occurs twice",
				       declared);
	}
	params->params = xrealloc(params->params, (params->count + 1) * sizeof(*params->params));
	params->params[params->count] = *at;
	params->params[params->count++].header = TAKE_PTR(header);
	return true;
}

/* Whether a declaration stands anywhere below: used for the parts where none may stand. */
static bool contains_declaration(struct json_object *value)
{
	if (json_has(value, "x-mcp-header"))
		return true;
	if (json_object_is_type(value, json_type_object)) {
		json_object_object_foreach(value, key, member)
		{
			(void)key;
			if (contains_declaration(member))
				return true;
		}
	} else if (json_object_is_type(value, json_type_array)) {
		for (size_t i = 0; i < json_object_array_length(value); i++) {
			if (contains_declaration(json_object_array_get_idx(value, i)))
				return true;
		}
	}
	return false;
}

static bool declare_below(struct json_object *schema, struct mirror_param *at,
			  struct mirror_params *params, struct err *err);

static bool declare_properties(struct json_object *properties, struct mirror_param *at,
			       struct mirror_params *params, struct err *err)
{
	if (!json_object_is_type(properties, json_type_object))
		return true;
	bool ok = true;
	at->depth++;
	json_object_object_foreach(properties, name, schema)
	{
		at->path[at->depth - 1] = name;
		ok = ok && declare_below(schema, at, params, err);
	}
	at->depth--;
	return ok;
}

static bool declare_below(struct json_object *schema, struct mirror_param *at,
			  struct mirror_params *params, struct err *err)
{
	if (!json_object_is_type(schema, json_type_object))
		return true;
	if (json_has(schema, "x-mcp-header") && !declare_one(schema, at, params, err))
		return false;
	json_object_object_foreach(schema, keyword, value)
	{
		if (strcmp(keyword, "properties") == 0) {
			if (!declare_properties(value, at, params, err))
				return false;
		} else if (contains_declaration(value)) {
			return err_set(err, ERR_INVALID, "x-mcp-header must not stand below \"%s\"",
				       keyword);
		}
	}
	return true;
}

bool mirror_declare(struct json_object *schema, struct mirror_params *params, struct err *err)
{
	struct mirror_param root = {.header = NULL, .depth = 0};
	*params = (struct mirror_params){NULL, 0};
	if (declare_below(schema, &root, params, err))
		return true;
	mirror_params_finish(params);
	return false;
}
