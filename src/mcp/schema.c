/*
 * From schema text to a tree. Each keyword is one row of a table with the function that takes its
 * value; what no row knows is an error. Defaults and examples must fit their own schema, so that
 * what a model copies from a schema works.
 */
#include "mcp/schema.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "mcp/rpc.h"
#include "mcp/schema_node.h"

/* Comparing each with each: 1024 items are half a million comparisons at most. */
#define UNIQUE_MAX ((size_t)1024)

const char *const schema_type_names[SCHEMA_TYPE_COUNT] = {"null",   "boolean", "integer", "number",
							  "string", "array",   "object"};

static bool bad(struct err *err, const char *expected)
{
	return err_set(err, ERR_INVALID, "expected %s", expected);
}

static struct schema *compile(struct json_object *json, struct err *err);

static bool is_array_of_names(struct json_object *value)
{
	if (!json_object_is_type(value, json_type_array))
		return false;
	for (size_t i = 0; i < json_object_array_length(value); i++) {
		if (rpc_name(json_object_array_get_idx(value, i)) == NULL)
			return false;
	}
	return true;
}

/* --- one function per kind of keyword; field is the member of struct schema it sets --------- */

static bool take_type_name(struct schema *schema, struct json_object *value, struct err *err)
{
	const char *name = rpc_name(value);
	for (unsigned i = 0; name != NULL && i < SCHEMA_TYPE_COUNT; i++) {
		if (strcmp(name, schema_type_names[i]) == 0) {
			schema->types |= 1U << i;
			return true;
		}
	}
	return bad(err, "the name of a type");
}

static bool take_type(struct schema *schema, void *field, struct json_object *value,
		      struct err *err)
{
	(void)field;
	if (!json_object_is_type(value, json_type_array))
		return take_type_name(schema, value, err);
	size_t count = json_object_array_length(value);
	for (size_t i = 0; i < count; i++) {
		if (!take_type_name(schema, json_object_array_get_idx(value, i), err))
			return false;
	}
	return count > 0 || bad(err, "at least one type");
}

static bool take_bound(struct schema *schema, void *field, struct json_object *value,
		       struct err *err)
{
	(void)schema;
	struct schema_bound *bound = field;
	if (!json_object_is_type(value, json_type_int) &&
	    !json_object_is_type(value, json_type_double))
		return bad(err, "a number");
	bound->set = true;
	bound->value = json_object_get_double(value);
	return isfinite(bound->value) || bad(err, "a finite number");
}

static bool take_multiple(struct schema *schema, void *field, struct json_object *value,
			  struct err *err)
{
	return take_bound(schema, field, value, err) &&
	       (schema->multiple.value > 0 || bad(err, "a number above 0"));
}

static bool take_count(struct schema *schema, void *field, struct json_object *value,
		       struct err *err)
{
	(void)schema;
	if (!json_object_is_type(value, json_type_int) || json_object_get_int64(value) < 0)
		return bad(err, "an integer of at least 0");
	*(size_t *)field = (size_t)json_object_get_int64(value);
	return true;
}

static bool take_flag(struct schema *schema, void *field, struct json_object *value,
		      struct err *err)
{
	(void)schema;
	if (!json_object_is_type(value, json_type_boolean))
		return bad(err, "true or false");
	*(bool *)field = json_object_get_boolean(value);
	return true;
}

static bool take_enum(struct schema *schema, void *field, struct json_object *value,
		      struct err *err)
{
	(void)field;
	if (!json_object_is_type(value, json_type_array) || json_object_array_length(value) == 0)
		return bad(err, "a list of values");
	schema->choices = value;
	return true;
}

static bool take_const(struct schema *schema, void *field, struct json_object *value,
		       struct err *err)
{
	(void)field;
	(void)err;
	schema->constant = value;
	schema->has_constant = true;
	return true;
}

/* Only what POSIX and ECMAScript expressions read alike: no classes by backslash, no lazy
 * repeats, no look-around, no backslash inside brackets, ASCII alone. */
static bool is_common_pattern(const char *p)
{
	bool in_brackets = false;
	for (; *p != '\0'; p++) {
		if ((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7E)
			return false;
		if (in_brackets) {
			if (*p == '\\' || *p == '[')
				return false;
			in_brackets = *p != ']';
		} else if (*p == '[') {
			in_brackets = true;
			p += p[1] == '^';
			if (p[1] == ']')
				return false;
		} else if (*p == '\\') {
			p++;
			if (*p == '\0' || strchr(".*+?^$|(){}[]/\\-", *p) == NULL)
				return false;
		} else if (strchr("*+?}(", *p) != NULL && p[1] == '?') {
			return false;
		}
	}
	return !in_brackets;
}

static bool take_pattern(struct schema *schema, void *field, struct json_object *value,
			 struct err *err)
{
	(void)field;
	const char *pattern = rpc_name(value);
	if (pattern == NULL || !is_common_pattern(pattern) ||
	    regcomp(&schema->regex, pattern, REG_EXTENDED | REG_NOSUB) != 0)
		return bad(err, "an expression that POSIX and ECMAScript read alike");
	schema->pattern = pattern;
	return true;
}

static bool take_schema(struct schema *schema, void *field, struct json_object *value,
			struct err *err)
{
	(void)schema;
	struct schema **below = field;
	*below = compile(value, err);
	return *below != NULL;
}

static bool take_additional(struct schema *schema, void *field, struct json_object *value,
			    struct err *err)
{
	if (!json_object_is_type(value, json_type_boolean))
		return take_schema(schema, field, value, err);
	schema->closed = !json_object_get_boolean(value);
	return true;
}

static bool take_properties(struct schema *schema, void *field, struct json_object *value,
			    struct err *err)
{
	(void)field;
	if (!json_object_is_type(value, json_type_object))
		return bad(err, "an object");
	size_t count = (size_t)json_object_object_length(value);
	schema->properties = xcalloc(count + 1, sizeof(*schema->properties));
	json_object_object_foreach(value, name, below)
	{
		struct schema_property *property = &schema->properties[schema->property_count];
		property->name = name;
		property->schema = compile(below, err);
		if (property->schema == NULL)
			return err_in(err, "%s", name);
		schema->property_count++;
	}
	return true;
}

static bool take_required(struct schema *schema, void *field, struct json_object *value,
			  struct err *err)
{
	(void)field;
	if (!is_array_of_names(value) || json_object_array_length(value) == 0)
		return bad(err, "a list of names that is not empty");
	schema->required = value;
	return true;
}

static bool take_dialect(struct schema *schema, void *field, struct json_object *value,
			 struct err *err)
{
	(void)schema;
	(void)field;
	const char *uri = rpc_name(value);
	return (uri != NULL && strcmp(uri, "https://json-schema.org/draft/2020-12/schema") == 0) ||
	       bad(err, "the 2020-12 dialect");
}

static bool take_text(struct schema *schema, void *field, struct json_object *value,
		      struct err *err)
{
	(void)schema;
	(void)field;
	return rpc_name(value) != NULL || bad(err, "a string");
}

/* Checked against the whole schema afterwards. */
static bool take_sample(struct schema *schema, void *field, struct json_object *value,
			struct err *err)
{
	(void)schema;
	(void)field;
	(void)value;
	(void)err;
	return true;
}

#define AT(member) offsetof(struct schema, member)

static const struct {
	const char *keyword;
	bool (*take)(struct schema *schema, void *field, struct json_object *value,
		     struct err *err);
	size_t field;
} keywords[] = {
	{"type", take_type, AT(types)},
	{"properties", take_properties, AT(properties)},
	{"required", take_required, AT(required)},
	{"additionalProperties", take_additional, AT(additional)},
	{"minProperties", take_count, AT(members_range.min)},
	{"maxProperties", take_count, AT(members_range.max)},
	{"items", take_schema, AT(items)},
	{"minItems", take_count, AT(items_range.min)},
	{"maxItems", take_count, AT(items_range.max)},
	{"uniqueItems", take_flag, AT(unique_items)},
	{"enum", take_enum, AT(choices)},
	{"const", take_const, AT(constant)},
	{"minimum", take_bound, AT(minimum)},
	{"maximum", take_bound, AT(maximum)},
	{"exclusiveMinimum", take_bound, AT(above)},
	{"exclusiveMaximum", take_bound, AT(below)},
	{"multipleOf", take_multiple, AT(multiple)},
	{"minLength", take_count, AT(length.min)},
	{"maxLength", take_count, AT(length.max)},
	{"pattern", take_pattern, AT(pattern)},
	{"$schema", take_dialect, 0},
	{"$comment", take_text, 0},
	{"title", take_text, 0},
	{"description", take_text, 0},
	{"format", take_text, 0}, /* an annotation, as the 2020-12 dialect has it by default */
	{"x-mcp-header", take_text, 0}, /* judged by mirror_declare */
	{"default", take_sample, 0},
	{"examples", take_sample, 0},
};

static bool take_keyword(struct schema *schema, const char *keyword, struct json_object *value,
			 struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(keywords); i++) {
		if (strcmp(keyword, keywords[i].keyword) == 0)
			return keywords[i].take(schema, (char *)schema + keywords[i].field, value,
						err);
	}
	return err_set(err, ERR_INVALID, "this keyword is not known");
}

/* --- what only the whole schema can tell ---------------------------------------------------- */

static bool declares(const struct schema *schema, const char *name)
{
	for (size_t i = 0; i < schema->property_count; i++) {
		if (strcmp(schema->properties[i].name, name) == 0)
			return true;
	}
	return false;
}

static bool check_required(const struct schema *schema, struct err *err)
{
	size_t count = schema->required == NULL ? 0 : json_object_array_length(schema->required);
	for (size_t i = 0; i < count; i++) {
		const char *name = json_str(json_object_array_get_idx(schema->required, i));
		if (!declares(schema, name))
			return err_set(err, ERR_INVALID,
				       "required names \"%s\", which is no property", name);
	}
	return true;
}

static bool check_sample(const struct schema *schema, struct json_object *sample,
			 const char *keyword, struct err *err)
{
	struct schema_faults faults = SCHEMA_FAULTS_INIT;
	bool ok = schema_validate(schema, sample, keyword, &faults);
	if (!ok)
		err_set(err, ERR_INVALID, "%s", buf_str(&faults.lines));
	schema_faults_finish(&faults);
	return ok;
}

static bool check_samples(const struct schema *schema, struct json_object *json, struct err *err)
{
	if (json_has(json, "default") &&
	    !check_sample(schema, json_get(json, "default"), "default", err))
		return false;
	struct json_object *examples = json_get(json, "examples");
	if (!json_has(json, "examples"))
		return true;
	if (!json_object_is_type(examples, json_type_array))
		return err_set(err, ERR_INVALID, "examples: expected a list");
	for (size_t i = 0; i < json_object_array_length(examples); i++) {
		if (!check_sample(schema, json_object_array_get_idx(examples, i), "examples", err))
			return false;
	}
	return true;
}

static bool check_whole(const struct schema *schema, struct json_object *json, struct err *err)
{
	if (schema->unique_items && schema->items_range.max > UNIQUE_MAX)
		return err_set(err, ERR_INVALID, "uniqueItems needs maxItems of at most %zu",
			       UNIQUE_MAX);
	return check_required(schema, err) && check_samples(schema, json, err);
}

/* The place of a fault gathers in err->trace on the way up: "properties: mode: enum". */
static struct schema *compile(struct json_object *json, struct err *err)
{
	if (!json_object_is_type(json, json_type_object)) {
		bad(err, "a schema object");
		return NULL;
	}
	struct schema *schema = xcalloc(1, sizeof(*schema));
	schema->length.max = schema->items_range.max = schema->members_range.max = SIZE_MAX;
	json_object_object_foreach(json, keyword, value)
	{
		if (!take_keyword(schema, keyword, value, err)) {
			err_in(err, "%s", keyword);
			schema_free(schema);
			return NULL;
		}
	}
	if (!check_whole(schema, json, err)) {
		schema_free(schema);
		return NULL;
	}
	return schema;
}

struct schema *schema_compile(struct json_object *json, struct err *err)
{
	struct schema *schema = compile(json, err);
	if (schema == NULL) {
		struct err cause = *err;
		err_set(err, ERR_INVALID, "schema: %s: %s", cause.trace, cause.msg);
	}
	return schema;
}

void schema_free(struct schema *schema)
{
	if (schema == NULL)
		return;
	for (size_t i = 0; i < schema->property_count; i++)
		schema_free(schema->properties[i].schema);
	free(schema->properties);
	if (schema->pattern != NULL)
		regfree(&schema->regex);
	schema_free(schema->items);
	schema_free(schema->additional);
	free(schema);
}
