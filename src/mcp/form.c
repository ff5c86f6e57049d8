/* One check for each type of field, as a table. Keywords that only tell a client how to show a
 * field (title, format, default) are not looked at. */
#include "mcp/form.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"

/* Whether a value is one of those listed in an array. */
static bool is_listed(struct json_object *list, struct json_object *value)
{
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		if (json_object_equal(json_object_array_get_idx(list, i), value))
			return true;
	}
	return false;
}

/* The same for an array of {const, title}. */
static bool is_titled(struct json_object *list, struct json_object *value)
{
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *choice = json_object_array_get_idx(list, i);
		if (json_object_equal(json_get(choice, "const"), value))
			return true;
	}
	return false;
}

/* Whether a value is one of the choices of a field, if it has any. */
static bool is_choice(struct json_object *field, struct json_object *value)
{
	static const struct {
		const char *keyword;
		bool (*holds)(struct json_object *list, struct json_object *value);
	} lists[] = {{"enum", is_listed}, {"oneOf", is_titled}, {"anyOf", is_titled}};
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		struct json_object *list = json_get(field, lists[i].keyword);
		if (json_object_is_type(list, json_type_array) && !lists[i].holds(list, value))
			return false;
	}
	return true;
}

static bool is_between(struct json_object *field, const char *least, const char *most, size_t count)
{
	int64_t number = (int64_t)count;
	return number >= json_get_int(field, least, 0) &&
	       number <= json_get_int(field, most, INT64_MAX);
}

static bool accepts_string(struct json_object *field, struct json_object *value)
{
	if (!json_object_is_type(value, json_type_string))
		return false;
	size_t count = text_count(json_str(value), json_str_len(value));
	return is_between(field, "minLength", "maxLength", count) && is_choice(field, value);
}

static bool accepts_number(struct json_object *field, struct json_object *value)
{
	if (!json_object_is_type(value, json_type_int) &&
	    !json_object_is_type(value, json_type_double))
		return false;
	double number = json_object_get_double(value);
	struct json_object *least = json_get(field, "minimum"), *most = json_get(field, "maximum");
	return isfinite(number) && (least == NULL || number >= json_object_get_double(least)) &&
	       (most == NULL || number <= json_object_get_double(most));
}

static bool accepts_integer(struct json_object *field, struct json_object *value)
{
	return accepts_number(field, value) &&
	       json_object_get_double(value) == floor(json_object_get_double(value));
}

static bool accepts_boolean(struct json_object *field, struct json_object *value)
{
	(void)field;
	return json_object_is_type(value, json_type_boolean);
}

/* Several of some choices. */
static bool accepts_array(struct json_object *field, struct json_object *value)
{
	if (!json_object_is_type(value, json_type_array))
		return false;
	size_t count = json_object_array_length(value);
	for (size_t i = 0; i < count; i++) {
		struct json_object *item = json_object_array_get_idx(value, i);
		if (!json_object_is_type(item, json_type_string) ||
		    !is_choice(json_get(field, "items"), item))
			return false;
	}
	return is_between(field, "minItems", "maxItems", count);
}

static bool accepts_field(struct json_object *field, struct json_object *value)
{
	static const struct {
		const char *type;
		bool (*accepts)(struct json_object *field, struct json_object *value);
	} types[] = {{"string", accepts_string},
		     {"number", accepts_number},
		     {"integer", accepts_integer},
		     {"boolean", accepts_boolean},
		     {"array", accepts_array}};
	const char *type = json_get_str(field, "type");
	for (size_t i = 0; type != NULL && i < ARRAY_LEN(types); i++) {
		if (strcmp(types[i].type, type) == 0)
			return types[i].accepts(field, value);
	}
	return false;
}

static bool has_required(struct json_object *schema, struct json_object *content)
{
	struct json_object *required = json_get(schema, "required");
	size_t count = required == NULL ? 0 : json_object_array_length(required);
	for (size_t i = 0; i < count; i++) {
		if (json_get(content, json_str(json_object_array_get_idx(required, i))) == NULL)
			return false;
	}
	return true;
}

bool form_accepts(struct json_object *schema, struct json_object *content)
{
	if (!json_object_is_type(content, json_type_object) || !has_required(schema, content))
		return false;
	json_object_object_foreach(json_get(schema, "properties"), name, field)
	{
		if (json_has(content, name) && !accepts_field(field, json_get(content, name)))
			return false;
	}
	return true;
}
