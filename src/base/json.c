/* Strict reading and safe writing over json-c. The order of the checks is that of cost. */
#include "base/json.h"

#include <math.h>
#include <sqlite3.h>
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

struct json_object *json_parse(const char *text, size_t len, struct err *err)
{
	if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
		text += 3;
		len -= 3;
	}
	err->code = ERR_NONE;
	if (len > INT32_MAX - 1) {
		invalid(err, "too large");
		return NULL;
	}
	/* SQLite and json-c both take a NUL for the end. */
	if (memchr(text, '\0', len) != NULL || !text_is_utf8(text, len)) {
		invalid(err, "it is not UTF-8 text");
		return NULL;
	}
	struct json_tokener *tokener = json_tokener_new_ex(JSON_MAX_DEPTH);
	if (tokener == NULL)
		abort();
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	/* The terminating NUL is passed too: else a bare number at the end reads as unfinished. */
	AUTO_FREE char *copy = xstrndup(text, len);
	struct json_object *value = json_tokener_parse_ex(tokener, copy, (int)len + 1);
	enum json_tokener_error status = json_tokener_get_error(tokener);
	bool whole = json_tokener_get_parse_end(tokener) >= len;
	json_tokener_free(tokener);
	if (status == json_tokener_error_depth)
		invalid(err, "it is nested deeper than 64 levels");
	else if (status != json_tokener_success || !whole || !grammar_ok(text, len))
		invalid(err, "the text breaks the JSON grammar");
	if (err->code != ERR_NONE) {
		json_object_put(value);
		return NULL;
	}
	return value;
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
