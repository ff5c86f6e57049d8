/*
 * JSON. Reading is strict: UTF-8 is checked by libunistring, the grammar by SQLite's
 * json_valid (json-c accepts single quotes, NaN and raw control characters), then json-c
 * parses with a depth limit. Writing goes through the helpers here, which repair strings that
 * are not UTF-8, leave absent members out and never print a non-finite number.
 */
#ifndef SPOOLBOX_BASE_JSON_H
#define SPOOLBOX_BASE_JSON_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define JSON_MAX_DEPTH  64
#define JSON_MAX_VALUES 50000 /* bounds the memory of a parsed message to some MiB */

static inline void json_unref(struct json_object **p)
{
	json_object_put(*p);
}
#define AUTO_JSON __attribute__((cleanup(json_unref))) struct json_object

/* Parses exactly one JSON value; a leading byte-order mark is skipped. NULL with ERR_INVALID.
 * A literal null parses to NULL as well: then err->code stays ERR_NONE. */
struct json_object *json_parse(const char *text, size_t len, struct err *err);

/* A schema or other literal of ours: ends the process when it does not parse. */
struct json_object *json_literal(const char *text);

/* Member of an object, or NULL when obj is no object or has no such member (or it is null). */
struct json_object *json_get(struct json_object *obj, const char *key);
bool json_has(struct json_object *obj, const char *key);
/* String member, NULL when absent or of another type. Borrowed. May hold NULs: see json_str_len. */
const char *json_get_str(struct json_object *obj, const char *key);
const char *json_str(struct json_object *value);
size_t json_str_len(struct json_object *value);
/* Integer and boolean members with a default; doubles with an integral value count as integers. */
int64_t json_get_int(struct json_object *obj, const char *key, int64_t fallback);
bool json_get_bool(struct json_object *obj, const char *key, bool fallback);

/* Adding members; obj takes ownership of a value. A NULL string or value adds nothing. */
void json_add(struct json_object *obj, const char *key, struct json_object *value);
void json_add_str(struct json_object *obj, const char *key, const char *s);
void json_add_strn(struct json_object *obj, const char *key, const char *s, size_t len);
void json_add_int(struct json_object *obj, const char *key, int64_t value);
void json_add_bool(struct json_object *obj, const char *key, bool value);
/* Appending to an array. */
void json_push(struct json_object *array, struct json_object *value);
void json_push_str(struct json_object *array, const char *s);
/* A string value from bytes that may not be UTF-8. */
struct json_object *json_new_text(const char *s, size_t len);
/* An independent copy. */
struct json_object *json_copy(struct json_object *value);

/* Compact text on one line, borrowed from obj until it changes or is freed. */
const char *json_text(struct json_object *obj, size_t *len);

/* Appends the same text and frees obj, part by part: a large result is not held twice. Whoever else
 * owns a part finds it emptied. */
void json_drain(struct buf *out, struct json_object *obj);

#endif
