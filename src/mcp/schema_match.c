/*
 * A value against a compiled schema. Every fault becomes one line that names the path, what was
 * expected and what came, so that a model can correct all of them in one go.
 */
#include "mcp/schema.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "mcp/near.h"
#include "mcp/schema_node.h"

#define SHOWN_BYTES ((size_t)64) /* of a value that is quoted back */
#define NAMES_MAX   64           /* properties that are considered for a suggestion */

/* Where a value stands, as a chain on the stack; written only when there is a fault. */
struct place {
	const struct place *parent;
	const char *name; /* NULL: an item */
	size_t index;
};

static void write_place(struct buf *out, const struct place *place)
{
	if (place->parent != NULL)
		write_place(out, place->parent);
	if (place->name == NULL) {
		buf_printf(out, "[%zu]", place->index);
		return;
	}
	if (place->parent != NULL)
		buf_putc(out, '.');
	text_quote(out, place->name, strlen(place->name), SHOWN_BYTES);
}

static bool is_whole(struct json_object *value)
{
	double number = json_object_get_double(value);
	return isfinite(number) && number == floor(number);
}

static unsigned type_of(struct json_object *value)
{
	switch (json_object_get_type(value)) {
	case json_type_null:
		return SCHEMA_NULL;
	case json_type_boolean:
		return SCHEMA_BOOLEAN;
	case json_type_int:
		return SCHEMA_INTEGER | SCHEMA_NUMBER;
	case json_type_double:
		return is_whole(value) ? SCHEMA_INTEGER | SCHEMA_NUMBER : SCHEMA_NUMBER;
	case json_type_string:
		return SCHEMA_STRING;
	case json_type_array:
		return SCHEMA_ARRAY;
	case json_type_object:
		return SCHEMA_OBJECT;
	}
	return 0;
}

/* The type in the words of JSON Schema, and the value where it is short. */
static void write_got(struct buf *out, struct json_object *value)
{
	unsigned type = type_of(value);
	const char *text = json_str(value);
	if (type & SCHEMA_NULL)
		buf_puts(out, "null");
	else if (type & SCHEMA_OBJECT)
		buf_puts(out, "object");
	else if (type & SCHEMA_ARRAY)
		buf_printf(out, "array of %zu items", json_object_array_length(value));
	else if (text == NULL)
		buf_printf(out, "%s %.*s", schema_type_names[ffs((int)type) - 1], (int)SHOWN_BYTES,
			   json_text(value, NULL));
	else {
		buf_puts(out, "string \"");
		text_quote(out, text, json_str_len(value), SHOWN_BYTES);
		buf_putc(out, '"');
	}
}

/* --- faults ------------------------------------------------------------------------------- */

/* Begins a line unless there are enough; the caller goes on writing when it is true. */
static bool begin_fault(struct schema_faults *faults, const struct place *place)
{
	if (faults->count++ >= SCHEMA_FAULTS_MAX)
		return false;
	if (faults->lines.len > 0)
		buf_putc(&faults->lines, '\n');
	write_place(&faults->lines, place);
	buf_puts(&faults->lines, ": ");
	return true;
}

static bool fault(struct schema_faults *faults, const struct place *place,
		  struct json_object *value, const char *fmt, ...) PRINTF_LIKE(4, 5);

static bool fault(struct schema_faults *faults, const struct place *place,
		  struct json_object *value, const char *fmt, ...)
{
	if (!begin_fault(faults, place))
		return false;
	char expected[256]; /* our own words and numbers; long texts have functions of their own */
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(expected, sizeof(expected), fmt, ap);
	va_end(ap);
	buf_printf(&faults->lines, "expected %s, got ", expected);
	write_got(&faults->lines, value);
	return false;
}

static void write_types(struct buf *out, unsigned types)
{
	const char *separator = "";
	for (unsigned i = 0; i < SCHEMA_TYPE_COUNT; i++) {
		if (types & 1U << i) {
			buf_printf(out, "%s%s", separator, schema_type_names[i]);
			separator = " or ";
		}
	}
	if (types == 0)
		buf_puts(out, "a value");
}

static bool wrong_type(struct schema_faults *faults, const struct place *place,
		       struct json_object *value, unsigned types)
{
	AUTO_BUF names = BUF_INIT;
	write_types(&names, types);
	return fault(faults, place, value, "%s", buf_str(&names));
}

/* Names the property that was probably meant, else all there are. */
static bool unknown_member(struct schema_faults *faults, const struct place *place,
			   const struct schema *schema)
{
	const char *names[NAMES_MAX];
	size_t count = schema->property_count < NAMES_MAX ? schema->property_count : NAMES_MAX;
	for (size_t i = 0; i < count; i++)
		names[i] = schema->properties[i].name;
	if (!begin_fault(faults, place))
		return false;
	const char *meant = near_name(place->name, names, count);
	buf_puts(&faults->lines, "expected no member of this name");
	if (meant != NULL) {
		buf_printf(&faults->lines, ", did you mean \"%s\"?", meant);
		return false;
	}
	for (size_t i = 0; i < count; i++)
		buf_printf(&faults->lines, "%s%s", i == 0 ? "; known are " : ", ", names[i]);
	return false;
}

/* --- by type ------------------------------------------------------------------------------ */

static bool check_number(const struct schema *schema, struct json_object *value,
			 const struct place *place, struct schema_faults *faults)
{
	double number = json_object_get_double(value);
	if (!isfinite(number))
		return fault(faults, place, value, "a number within the range of a double");
	if (schema->minimum.set && number < schema->minimum.value)
		return fault(faults, place, value, "at least %.15g", schema->minimum.value);
	if (schema->maximum.set && number > schema->maximum.value)
		return fault(faults, place, value, "at most %.15g", schema->maximum.value);
	if (schema->above.set && number <= schema->above.value)
		return fault(faults, place, value, "more than %.15g", schema->above.value);
	if (schema->below.set && number >= schema->below.value)
		return fault(faults, place, value, "less than %.15g", schema->below.value);
	if (schema->multiple.set && fmod(number, schema->multiple.value) != 0)
		return fault(faults, place, value, "a multiple of %.15g", schema->multiple.value);
	return true;
}

static bool check_range(const struct schema_range *range, size_t count, const char *unit,
			const struct place *place, struct json_object *value,
			struct schema_faults *faults)
{
	if (count < range->min)
		return fault(faults, place, value, "at least %zu %s", range->min, unit);
	if (count > range->max)
		return fault(faults, place, value, "at most %zu %s (it has %zu)", range->max, unit,
			     count);
	return true;
}

static bool check_string(const struct schema *schema, struct json_object *value,
			 const struct place *place, struct schema_faults *faults)
{
	const char *text = json_str(value);
	size_t len = json_str_len(value);
	bool counted = schema->length.min > 0 || schema->length.max < SIZE_MAX;
	if (counted && !check_range(&schema->length, text_count(text, len), "characters", place,
				    value, faults))
		return false;
	/* A NUL would end the text for regexec early: such a text matches no pattern of ours. */
	if (schema->pattern != NULL &&
	    (strlen(text) != len || regexec(&schema->regex, text, 0, NULL, 0) != 0))
		return fault(faults, place, value, "text that matches %s", schema->pattern);
	return true;
}

static bool check_value(const struct schema *schema, struct json_object *value,
			const struct place *place, struct schema_faults *faults);

/* 1 and 1.0 are the same value for JSON Schema, not for json-c. */
static bool is_same(struct json_object *a, struct json_object *b)
{
	if (type_of(a) & type_of(b) & SCHEMA_NUMBER)
		return json_object_get_double(a) == json_object_get_double(b);
	return json_object_equal(a, b) != 0;
}

static bool is_unique(struct json_object *array)
{
	size_t count = json_object_array_length(array);
	for (size_t i = 1; i < count; i++) {
		for (size_t j = 0; j < i; j++) {
			if (is_same(json_object_array_get_idx(array, i),
				    json_object_array_get_idx(array, j)))
				return false;
		}
	}
	return true;
}

static bool check_array(const struct schema *schema, struct json_object *value,
			const struct place *place, struct schema_faults *faults)
{
	size_t count = json_object_array_length(value);
	if (!check_range(&schema->items_range, count, "items", place, value, faults))
		return false;
	if (schema->unique_items && !is_unique(value))
		return fault(faults, place, value, "items that all differ");
	bool ok = true;
	for (size_t i = 0; schema->items != NULL && i < count; i++) {
		struct place item = {place, NULL, i};
		ok &= check_value(schema->items, json_object_array_get_idx(value, i), &item,
				  faults);
	}
	return ok;
}

static const struct schema *property_of(const struct schema *schema, const char *name)
{
	for (size_t i = 0; i < schema->property_count; i++) {
		if (strcmp(schema->properties[i].name, name) == 0)
			return schema->properties[i].schema;
	}
	return NULL;
}

static bool check_required(const struct schema *schema, struct json_object *value,
			   const struct place *place, struct schema_faults *faults)
{
	bool ok = true;
	size_t count = schema->required == NULL ? 0 : json_object_array_length(schema->required);
	for (size_t i = 0; i < count; i++) {
		const char *name = json_str(json_object_array_get_idx(schema->required, i));
		if (json_has(value, name))
			continue;
		struct place missing = {place, name, 0};
		if (begin_fault(faults, &missing)) {
			buf_puts(&faults->lines, "expected ");
			write_types(&faults->lines, property_of(schema, name)->types);
			buf_puts(&faults->lines, ", got nothing (it is required)");
		}
		ok = false;
	}
	return ok;
}

static bool check_object(const struct schema *schema, struct json_object *value,
			 const struct place *place, struct schema_faults *faults)
{
	bool ok = check_required(schema, value, place, faults);
	ok &= check_range(&schema->members_range, (size_t)json_object_object_length(value),
			  "members", place, value, faults);
	json_object_object_foreach(value, name, member)
	{
		struct place below = {place, name, 0};
		const struct schema *property = property_of(schema, name);
		if (property == NULL && schema->closed)
			ok = unknown_member(faults, &below, schema);
		else if (property != NULL || schema->additional != NULL)
			ok &= check_value(property != NULL ? property : schema->additional, member,
					  &below, faults);
	}
	return ok;
}

/* --- any value ---------------------------------------------------------------------------- */

static bool check_choice(const struct schema *schema, struct json_object *value,
			 const struct place *place, struct schema_faults *faults)
{
	for (size_t i = 0; i < json_object_array_length(schema->choices); i++) {
		if (is_same(value, json_object_array_get_idx(schema->choices, i)))
			return true;
	}
	if (begin_fault(faults, place)) {
		buf_printf(&faults->lines, "expected one of %s, got ",
			   json_text(schema->choices, NULL));
		write_got(&faults->lines, value);
	}
	return false;
}

static bool check_value(const struct schema *schema, struct json_object *value,
			const struct place *place, struct schema_faults *faults)
{
	unsigned type = type_of(value);
	if (schema->types != 0 && !(schema->types & type))
		return wrong_type(faults, place, value, schema->types);
	if (schema->choices != NULL && !check_choice(schema, value, place, faults))
		return false;
	if (schema->has_constant && !is_same(value, schema->constant))
		return fault(faults, place, value, "%s",
			     schema->constant == NULL ? "null" : json_text(schema->constant, NULL));
	if (type & SCHEMA_NUMBER)
		return check_number(schema, value, place, faults);
	if (type & SCHEMA_STRING)
		return check_string(schema, value, place, faults);
	if (type & SCHEMA_ARRAY)
		return check_array(schema, value, place, faults);
	if (type & SCHEMA_OBJECT)
		return check_object(schema, value, place, faults);
	return true;
}

bool schema_validate(const struct schema *schema, struct json_object *value, const char *root,
		     struct schema_faults *faults)
{
	struct place place = {NULL, root, 0};
	if (check_value(schema, value, &place, faults))
		return true;
	if (faults->count > SCHEMA_FAULTS_MAX)
		buf_printf(&faults->lines, "\nand %zu more", faults->count - SCHEMA_FAULTS_MAX);
	return false;
}

void schema_faults_finish(struct schema_faults *faults)
{
	buf_finish(&faults->lines);
	faults->count = 0;
}
