/* What can be said of one tool from its own struct: its listing, a sample call, its results. */
#include "mcp/tool.h"

#include <string.h>

#include "mcp/era.h"
#include "mcp/schema.h"

void tool_task_finish(struct tool_task *task)
{
	free(task->message);
	json_object_put(task->requests);
	json_object_put(task->error);
	*task = (struct tool_task){0};
}

bool tool_call_tick(struct tool_call *call, const char *newest_line)
{
	return call->stream == NULL || stream_tick(call->stream, newest_line);
}

bool tool_call_progress(struct tool_call *call, double progress, double total, const char *message)
{
	return call->stream == NULL || stream_progress(call->stream, progress, total, message);
}

void tool_call_log(struct tool_call *call, const char *level, const char *text)
{
	AUTO_JSON *name = json_new_text(level, strlen(level));
	struct stream *stream = call->stream;
	if (stream == NULL || !stream->may_open || stream->log_level < 0 ||
	    era_log_level(name) < stream->log_level)
		return;
	struct json_object *params = json_object_new_object();
	json_add(params, "level", TAKE_PTR(name));
	json_add_str(params, "data", text);
	stream_notify(stream, "notifications/message", params);
}

/* All four hints are given: the defaults of the protocol are the pessimistic ones. */
static struct json_object *annotations_of(const struct tool *tool)
{
	struct json_object *hints = json_object_new_object();
	json_add_str(hints, "title", tool->title);
	json_add_bool(hints, "readOnlyHint", tool->read_only);
	json_add_bool(hints, "destructiveHint", tool->destructive);
	json_add_bool(hints, "idempotentHint", tool->idempotent);
	json_add_bool(hints, "openWorldHint", tool->open_world);
	return hints;
}

struct json_object *tool_describe(const struct tool *tool)
{
	struct json_object *entry = json_object_new_object();
	json_add_str(entry, "name", tool->name);
	json_add_str(entry, "title", tool->title);
	json_add_str(entry, "description", tool->description);
	json_add(entry, "inputSchema", json_literal(tool->input_schema));
	if (tool->output_schema != NULL)
		json_add(entry, "outputSchema", json_literal(tool->output_schema));
	json_add(entry, "annotations", annotations_of(tool));
	return entry;
}

/* --- usage -------------------------------------------------------------------------------- */

static const char *type_of(struct json_object *schema)
{
	struct json_object *type = json_get(schema, "type");
	if (json_object_is_type(type, json_type_array))
		type = json_object_array_get_idx(type, 0);
	const char *name = json_str(type);
	return name == NULL ? "string" : name;
}

/* A value that the schema gives itself, or NULL. Borrowed. */
static struct json_object *given_sample(struct json_object *schema)
{
	static const char *const lists[] = {"examples", "enum"};
	static const char *const values[] = {"const", "default"};
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		struct json_object *list = json_get(schema, lists[i]);
		if (json_object_is_type(list, json_type_array) &&
		    json_object_array_length(list) > 0)
			return json_object_array_get_idx(list, 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		if (json_get(schema, values[i]) != NULL)
			return json_get(schema, values[i]);
	}
	return NULL;
}

static struct json_object *sample_of(const char *name, struct json_object *schema)
{
	struct json_object *given = given_sample(schema);
	const char *type = type_of(schema);
	if (given != NULL)
		return json_object_get(given);
	if (strcmp(type, "integer") == 0 || strcmp(type, "number") == 0)
		return json_object_new_int64(json_get_int(schema, "minimum", 1));
	if (strcmp(type, "boolean") == 0)
		return json_object_new_boolean(true);
	if (strcmp(type, "object") == 0)
		return json_object_new_object();
	if (strcmp(type, "array") == 0) {
		struct json_object *list = json_object_new_array();
		if (json_get(schema, "items") != NULL)
			json_push(list, sample_of("item", json_get(schema, "items")));
		return list;
	}
	AUTO_BUF text = BUF_INIT;
	buf_printf(&text, "<%s>", name);
	return json_new_text(text.data, text.len);
}

static bool is_required(struct json_object *schema, const char *name)
{
	struct json_object *required = json_get(schema, "required");
	size_t count = required == NULL ? 0 : json_object_array_length(required);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(json_str(json_object_array_get_idx(required, i)), name) == 0)
			return true;
	}
	return false;
}

void tool_usage(const char *name, struct json_object *input_schema, struct buf *out)
{
	AUTO_JSON *arguments = json_object_new_object();
	AUTO_BUF optional = BUF_INIT;
	json_object_object_foreach(json_get(input_schema, "properties"), property, schema)
	{
		if (is_required(input_schema, property) || json_has(schema, "examples"))
			json_add(arguments, property, sample_of(property, schema));
		else
			buf_printf(&optional, "%s%s",
				   optional.len > 0 ? ", " : "; optional: ", property);
	}
	buf_printf(out, "%s(%s)%s", name, json_text(arguments, NULL), buf_str(&optional));
}

/* --- results ------------------------------------------------------------------------------ */

bool tool_check_result(const struct tool *tool, struct json_object *structured, struct err *err)
{
	if (tool->output_schema == NULL)
		return true;
	AUTO_JSON *json = json_literal(tool->output_schema);
	struct schema *schema = schema_compile(json, err);
	if (schema == NULL)
		return false;
	struct schema_faults faults = SCHEMA_FAULTS_INIT;
	bool ok = schema_validate(schema, structured, "structuredContent", &faults);
	if (!ok)
		err_set(err, ERR_INVALID, "%s", buf_str(&faults.lines));
	schema_faults_finish(&faults);
	schema_free(schema);
	return ok;
}
