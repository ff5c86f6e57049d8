/* Content blocks, and schemas that several files need. */
#ifndef SPOOLBOX_CONFORMANCE_CONTENT_H
#define SPOOLBOX_CONFORMANCE_CONTENT_H

#include "mcp/tool.h"

/* One pixel, and half a millisecond of sound, as base64. */
extern const char content_png[];
extern const char content_wav[];

struct json_object *content_text(const char *text);
struct json_object *content_image(void);
struct json_object *content_audio(void);
/* An embedded text resource. */
struct json_object *content_resource(const char *uri, const char *text);

/* Adds a block to what a tool answers; it is taken. */
void call_add(struct tool_call *call, struct json_object *block);
/* Adds a text block; true, so that a handler can end with it. */
bool call_say(struct tool_call *call, const char *fmt, ...) PRINTF_LIKE(2, 3);

#define NO_ARGUMENTS "{\"type\": \"object\", \"properties\": {}, \"additionalProperties\": false}"

/* What the simple tools have in common, for a struct tool. */
#define PLAIN_TOOL(tool_name, text, handler) \
	.name = (tool_name), .title = (tool_name), .description = (text), \
	.input_schema = NO_ARGUMENTS, .read_only = true, .idempotent = true, .call = (handler)

/* The schema of a form with one required field. */
#define FORM_OF_ONE(field, type) \
	"{\"type\": \"object\", \"properties\": {\"" field "\": {\"type\": \"" type "\"}}," \
	" \"required\": [\"" field "\"]}"

#endif
