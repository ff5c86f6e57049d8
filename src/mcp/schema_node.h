/* A compiled schema, shared by its compiler (schema.c) and its interpreter (schema_match.c). */
#ifndef SPOOLBOX_MCP_SCHEMA_NODE_H
#define SPOOLBOX_MCP_SCHEMA_NODE_H

#include <regex.h>

#include "mcp/schema.h"

/* As bits; "number" admits integers too. */
enum schema_type {
	SCHEMA_NULL = 1,
	SCHEMA_BOOLEAN = 2,
	SCHEMA_INTEGER = 4,
	SCHEMA_NUMBER = 8,
	SCHEMA_STRING = 16,
	SCHEMA_ARRAY = 32,
	SCHEMA_OBJECT = 64,
};
#define SCHEMA_TYPE_COUNT 7
extern const char *const schema_type_names[SCHEMA_TYPE_COUNT]; /* by bit number */

struct schema_bound {
	bool set;
	double value;
};

struct schema_range { /* of a count: characters, items or members */
	size_t min, max;
};

struct schema_property {
	const char *name; /* borrowed from the schema text */
	struct schema *schema;
};

struct schema {
	unsigned types;              /* enum schema_type; 0: any */
	struct json_object *choices; /* enum; borrowed; NULL: none */
	struct json_object *constant;
	bool has_constant;
	struct schema_bound minimum, maximum, above, below, multiple;
	struct schema_range length, items_range, members_range;
	const char *pattern; /* its text; NULL: none */
	regex_t regex;
	bool unique_items;
	struct schema *items;
	struct schema_property *properties;
	size_t property_count;
	struct json_object *required; /* names; borrowed; NULL: none */
	bool closed;                  /* additionalProperties: false */
	struct schema *additional;    /* additionalProperties: {...} */
};

#endif
