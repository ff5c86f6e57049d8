/*
 * Forms that a client shows to a person: what comes back is checked against the schema that was
 * sent. Forms have a schema language of their own, a flat object of texts, numbers, yes-or-no and
 * choices; schema.h, which is for tools, knows no combinators and would refuse titled choices.
 */
#ifndef SPOOLBOX_MCP_FORM_H
#define SPOOLBOX_MCP_FORM_H

#include <stdbool.h>

#include "base/json.h"

/* Whether content is what a form of this schema yields: an object with the required fields, each
 * field that is filled in of its type, within its limits and one of its choices. Fields that the
 * form does not have are let through. */
bool form_accepts(struct json_object *schema, struct json_object *content);

#endif
