/* Strict reading and safe writing over json-c. The order of the checks is that of cost. */
#include "base/json.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* The grammar check: one in-memory database per process, opened on first use. */
static bool grammar_ok(const char *text, size_t len)
{
	static sqlite3 *db;
	static sqlite3_stmt *stmt;
	if (stmt == NULL &&
	    (sqlite3_open(":memory:", &db) != SQLITE_OK ||
	     sqlite3_prepare_v3(db, "SELECT json_valid(?1)", -1, SQLITE_PREPARE_PERSISTENT, &stmt,
				NULL) != SQLITE_OK))
		return false;
	sqlite3_bind_text64(stmt, 1, text, len, SQLITE_STATIC, SQLITE_UTF8);
	bool ok = sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_int(stmt, 0) == 1;
	sqlite3_reset(stmt);
	sqlite3_clear_bindings(stmt);
	return ok;
}

static bool invalid(struct err *err, const char *why)
{
	return err_set(err, ERR_INVALID, "not valid JSON: %s", why);
}

/* Whether there are more values than a sensible message has: each costs json-c about a hundred
 * bytes, however few it has in the text. Valid text only: outside of strings these three follow or
 * open one. */
static bool has_too_many_values(const char *text, size_t len)
{
	size_t count = 0;
	bool in_string = false;
	for (size_t i = 0; i < len; i++) {
		if (in_string && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			in_string = !in_string;
		else if (!in_string && (text[i] == ',' || text[i] == '[' || text[i] == '{'))
			count++;
	}
	return count > JSON_MAX_VALUES;
}

/* The number of a \uXXXX escape at p, or -1 when there is none. */
static long unicode_escape(const char *p, const char *end)
{
	char hex[5] = "";
	if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
		return -1;
	memcpy(hex, p + 2, 4);
	return strtol(hex, NULL, 16);
}

/* Whether an escape stands for half of a character; json-c would put U+FFFD in its place. Valid
 * text only: every backslash begins an escape. */
static bool has_lone_surrogate(const char *text, size_t len)
{
	const char *end = text + len, *p = text;
	while ((p = memchr(p, '\\', (size_t)(end - p))) != NULL) {
		long unit = unicode_escape(p, end);
		p += unit < 0 ? 2 : 6;
		if (unit < 0xD800 || unit > 0xDFFF)
			continue;
		long low = unit < 0xDC00 ? unicode_escape(p, end) : -1;
		if (low < 0xDC00 || low > 0xDFFF)
			return true;
		p += 6;
	}
	return false;
}

/* All that can be told of a text before json-c reads it; cheapest first. */
static bool is_acceptable(const char *text, size_t len, struct err *err)
{
	if (len > INT32_MAX - 1)
		return invalid(err, "too large");
	/* SQLite and json-c both take a NUL for the end. */
	if (memchr(text, '\0', len) != NULL || !text_is_utf8(text, len))
		return invalid(err, "it is not UTF-8 text");
	if (has_too_many_values(text, len))
		return invalid(err, "it has more than 50000 values");
	if (!grammar_ok(text, len))
		return invalid(err, "the text breaks the JSON grammar");
	return !has_lone_surrogate(text, len) || invalid(err, "a lone surrogate escape");
}

struct json_object *json_parse(const char *text, size_t len, struct err *err)
{
	if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
		text += 3;
		len -= 3;
	}
	err->code = ERR_NONE;
	if (!is_acceptable(text, len, err))
		return NULL;
	struct json_tokener *tokener = json_tokener_new_ex(JSON_MAX_DEPTH);
	if (tokener == NULL)
		abort();
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	/* The terminating NUL is passed too: else a bare number at the end reads as unfinished. */
	AUTO_FREE char *copy = xstrndup(text, len);
	struct json_object *value = json_tokener_parse_ex(tokener, copy, (int)len + 1);
	enum json_tokener_error status = json_tokener_get_error(tokener);
	json_tokener_free(tokener);
	if (status == json_tokener_success)
		return value;
	json_object_put(value);
	invalid(err, status == json_tokener_error_depth ? "it is nested deeper than 64 levels"
							: "the text breaks the JSON grammar");
	return NULL;
}

struct json_object *json_literal(const char *text)
{
	struct err err;
	struct json_object *value = json_parse(text, strlen(text), &err);
	if (value == NULL)
		abort();
	return value;
}

struct json_object *json_get(struct json_object *obj, const char *key)
{
	struct json_object *value = NULL;
	if (json_object_is_type(obj, json_type_object))
		json_object_object_get_ex(obj, key, &value);
	return value;
}

bool json_has(struct json_object *obj, const char *key)
{
	return json_object_is_type(obj, json_type_object) &&
	       json_object_object_get_ex(obj, key, NULL);
}

const char *json_str(struct json_object *value)
{
	return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
}

size_t json_str_len(struct json_object *value)
{
	return json_object_is_type(value, json_type_string)
		       ? (size_t)json_object_get_string_len(value)
		       : 0;
}

const char *json_get_str(struct json_object *obj, const char *key)
{
	return json_str(json_get(obj, key));
}

int64_t json_get_int(struct json_object *obj, const char *key, int64_t fallback)
{
	struct json_object *value = json_get(obj, key);
	if (json_object_is_type(value, json_type_int))
		return json_object_get_int64(value);
	if (json_object_is_type(value, json_type_double)) {
		double number = json_object_get_double(value);
		/* 2^53: beyond it a double does not name one integer. */
		if (number == floor(number) && fabs(number) <= 9007199254740992.0)
			return (int64_t)number;
	}
	return fallback;
}

bool json_get_bool(struct json_object *obj, const char *key, bool fallback)
{
	struct json_object *value = json_get(obj, key);
	return json_object_is_type(value, json_type_boolean) ? json_object_get_boolean(value)
							     : fallback;
}

void json_add(struct json_object *obj, const char *key, struct json_object *value)
{
	if (value != NULL)
		json_object_object_add(obj, key, value);
}

struct json_object *json_new_text(const char *s, size_t len)
{
	if (text_is_utf8(s, len))
		return json_object_new_string_len(s, (int)len);
	AUTO_BUF clean = BUF_INIT;
	text_repair(&clean, s, len);
	return json_object_new_string_len(buf_str(&clean), (int)clean.len);
}

void json_add_str(struct json_object *obj, const char *key, const char *s)
{
	if (s != NULL)
		json_add(obj, key, json_new_text(s, strlen(s)));
}

void json_add_strn(struct json_object *obj, const char *key, const char *s, size_t len)
{
	if (s != NULL)
		json_add(obj, key, json_new_text(s, len));
}

void json_add_int(struct json_object *obj, const char *key, int64_t value)
{
	json_add(obj, key, json_object_new_int64(value));
}

void json_add_bool(struct json_object *obj, const char *key, bool value)
{
	json_add(obj, key, json_object_new_boolean(value));
}

void json_push(struct json_object *array, struct json_object *value)
{
	json_object_array_add(array, value);
}

void json_push_str(struct json_object *array, const char *s)
{
	json_push(array, json_new_text(s, strlen(s)));
}

struct json_object *json_copy(struct json_object *value)
{
	struct json_object *copy = NULL;
	if (value != NULL && json_object_deep_copy(value, &copy, NULL) != 0)
		abort();
	return copy;
}

const char *json_text(struct json_object *obj, size_t *len)
{
	size_t length;
	const char *text = json_object_to_json_string_length(
		obj, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &length);
	if (len != NULL)
		*len = length;
	return text;
}

#define DRAIN_DEPTH 3 /* down to the members of an entry of a list in a result */

static void drain(struct buf *out, struct json_object *obj, int depth);

static void drain_members(struct buf *out, struct json_object *obj, int depth)
{
	char separator = '{';
	json_object_object_foreach(obj, name, value)
	{
		AUTO_JSON *key = json_object_new_string(name);
		buf_putc(out, separator);
		buf_puts(out, json_text(key, NULL));
		buf_putc(out, ':');
		drain(out, value, depth);
		/* An existing member changes in place, so the loop goes on. */
		json_object_object_add(obj, name, NULL);
		separator = ',';
	}
	if (separator == '{')
		buf_putc(out, separator);
	buf_putc(out, '}');
}

static void drain_elements(struct buf *out, struct json_object *obj, int depth)
{
	size_t count = json_object_array_length(obj);
	buf_putc(out, '[');
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			buf_putc(out, ',');
		drain(out, json_object_array_get_idx(obj, i), depth);
		json_object_array_put_idx(obj, i, NULL);
	}
	buf_putc(out, ']');
}

static void drain(struct buf *out, struct json_object *obj, int depth)
{
	enum json_type type = json_object_get_type(obj);
	size_t len;
	if (depth > 0 && type == json_type_object)
		drain_members(out, obj, depth - 1);
	else if (depth > 0 && type == json_type_array)
		drain_elements(out, obj, depth - 1);
	else {
		const char *text = json_text(obj, &len);
		buf_append(out, text, len);
	}
}

void json_drain(struct buf *out, struct json_object *obj)
{
	drain(out, obj, DRAIN_DEPTH);
	json_object_put(obj);
}
