/*
 * Schemas of tools as string literals. A schema stands next to its handler and is put together
 * from these pieces by the compiler, so limits are the constants that the code checks.
 * Descriptions must hold no double quote and no backslash: they go into JSON as they are.
 *
 *	L_OBJECT(L_STR("name", L_LENGTH(1, 63), "What it is called.") ","
 *		 L_INT("count", L_BETWEEN(0, 9), "How many."))
 */
#ifndef SPOOLBOX_MCP_LITERAL_H
#define SPOOLBOX_MCP_LITERAL_H

/* clang-format off */
#define L_TEXT_(x) #x
#define L_TEXT(x)  L_TEXT_(x) /* a numeric macro as its digits */
#define L_QUOTE(s) "\"" s "\""

/* A property: name, JSON type, further rules (each begins with a comma), description. */
#define L_PROPERTY(name, type, rules, description) \
	L_QUOTE(name) ":{\"type\":" L_QUOTE(type) rules ",\"description\":" L_QUOTE(description) "}"
#define L_STR(name, rules, description)	   L_PROPERTY(name, "string", rules, description)
#define L_INT(name, rules, description)	   L_PROPERTY(name, "integer", rules, description)
#define L_BOOL(name, rules, description)   L_PROPERTY(name, "boolean", rules, description)
#define L_STRUCT(name, rules, description) L_PROPERTY(name, "object", rules, description)
#define L_ARRAY(name, item, description) \
	L_PROPERTY(name, "array", ",\"items\":" item, description)

#define L_AT_LEAST(min)	    ",\"minimum\":" L_TEXT(min)
#define L_BETWEEN(min, max) L_AT_LEAST(min) ",\"maximum\":" L_TEXT(max)
#define L_LENGTH(min, max)  ",\"minLength\":" L_TEXT(min) ",\"maxLength\":" L_TEXT(max)
#define L_DEFAULT(json)	    ",\"default\":" json
#define L_EXAMPLE(json)	    ",\"examples\":[" json "]"
#define L_ENUM(quoted_list) ",\"enum\":[" quoted_list "]"
/* An object whose members all are strings; and one of the given properties. */
#define L_STRING_MAP	     ",\"additionalProperties\":{\"type\":\"string\"}"
#define L_MEMBERS(properties) ",\"properties\":{" properties "}"

/* The root of an input schema without and with required properties. */
#define L_OBJECT(properties) \
	"{\"type\":\"object\",\"properties\":{" properties "},\"additionalProperties\":false}"
#define L_OBJECT_NEEDS(required, properties) \
	"{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required \
	"],\"additionalProperties\":false}"
/* The root of an output schema, and of an array's items: members may be added in later versions. */
#define L_RESULT(required, properties) \
	"{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required "]}"
/* clang-format on */

#endif
