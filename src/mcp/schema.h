/*
 * The subset of JSON Schema 2020-12 that tools are written in. A schema is compiled once; a
 * keyword that is not known here stops the program at start instead of being ignored later.
 *
 * Known: type, properties, required, additionalProperties, minProperties, maxProperties, items,
 * minItems, maxItems, uniqueItems, enum, const, minimum, maximum, exclusiveMinimum,
 * exclusiveMaximum, multipleOf, minLength, maxLength, pattern, and the annotations. Schemas are
 * objects; no references and no combinators, since model APIs refuse them.
 */
#ifndef SPOOLBOX_MCP_SCHEMA_H
#define SPOOLBOX_MCP_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

struct schema;

/* Compiles json, which is borrowed and must outlive the schema. NULL with ERR_INVALID: the
 * message names the place and the keyword. */
struct schema *schema_compile(struct json_object *json, struct err *err);
void schema_free(struct schema *schema);

#define SCHEMA_FAULTS_MAX 10 /* more lines help nobody to correct a call */

/* One line per fault: "path: expected ..., got ...". */
struct schema_faults {
	struct buf lines;
	size_t count; /* of all, also those beyond the lines */
};
#define SCHEMA_FAULTS_INIT \
	{ \
		BUF_INIT, 0 \
	}

/* True when value (NULL is JSON null) conforms. root is how paths begin, e.g. "arguments". */
bool schema_validate(const struct schema *schema, struct json_object *value, const char *root,
		     struct schema_faults *faults) MUST_USE;
void schema_faults_finish(struct schema_faults *faults);

#endif
