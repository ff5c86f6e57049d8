/* The start-up check of the tools, and the few questions that a request has for them. */
#include "mcp/catalog.h"

#include <string.h>

#include "mcp/near.h"

#define NAME_BYTES 64 /* model APIs take no longer tool names, whatever the protocol allows */

static bool name_is_allowed(const char *name)
{
	size_t len =
		strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-");
	return len > 0 && len <= NAME_BYTES && name[len] == '\0';
}

static bool is_text(const char *s)
{
	return s != NULL && *s != '\0';
}

static bool has_object_root(struct json_object *schema)
{
	const char *type = json_get_str(schema, "type");
	return type != NULL && strcmp(type, "object") == 0 &&
	       json_object_is_type(json_get(schema, "properties"), json_type_object);
}

/* NULL with err unless it is JSON with the root that all schemas of tools have. */
static struct json_object *parse_schema(const char *text, struct err *err)
{
	AUTO_JSON *json = json_parse(text, strlen(text), err);
	if (json == NULL && err->code == ERR_NONE)
		err_set(err, ERR_INVALID, "the schema is null");
	else if (json != NULL && !has_object_root(json))
		err_set(err, ERR_INVALID, "the root must have type \"object\" and properties");
	else
		return TAKE_PTR(json);
	return NULL;
}

/* Parses and compiles one schema of a tool; *json may be set also on failure. */
static struct schema *compile_schema(const char *text, struct json_object **json, struct err *err)
{
	*json = parse_schema(text, err);
	return *json == NULL ? NULL : schema_compile(*json, err);
}

static bool check_output(const struct tool *tool, struct err *err)
{
	if (tool->output_schema == NULL)
		return true;
	AUTO_JSON *json = NULL;
	struct schema *schema = compile_schema(tool->output_schema, &json, err);
	bool ok = schema != NULL;
	schema_free(schema);
	return ok || err_in(err, "output_schema");
}

static bool take_foreign_input(struct catalog_entry *entry, struct err *err)
{
	entry->input = parse_schema(entry->tool->input_schema, err);
	if (entry->input == NULL)
		return err_in(err, "input_schema");
	return mirror_declare(entry->input, &entry->mirrors, err);
}

static bool compile_input(struct catalog_entry *entry, struct err *err)
{
	if (entry->tool->schema_is_foreign)
		return take_foreign_input(entry, err);
	entry->schema = compile_schema(entry->tool->input_schema, &entry->input, err);
	if (entry->schema == NULL)
		return err_in(err, "input_schema");
	if (json_get_bool(entry->input, "additionalProperties", true))
		return err_set(err, ERR_INVALID,
			       "input_schema needs \"additionalProperties\": false");
	return mirror_declare(entry->input, &entry->mirrors, err);
}

static bool compile_tool(struct catalog *catalog, const struct tool *tool, struct err *err)
{
	if (!is_text(tool->name) || !name_is_allowed(tool->name))
		return err_set(err, ERR_INVALID, "the name must match [A-Za-z0-9_-]{1,64}");
	if (catalog_find(catalog, tool->name) != NULL)
		return err_set(err, ERR_INVALID, "the name occurs twice");
	if (!is_text(tool->title) || !is_text(tool->description) || !is_text(tool->input_schema) ||
	    tool->call == NULL)
		return err_set(err, ERR_INVALID,
			       "title, description, input_schema and call are required");
	struct catalog_entry *entry = &catalog->entries[catalog->count++];
	entry->tool = tool;
	return compile_input(entry, err) && check_output(tool, err);
}

struct catalog *catalog_compile(const struct tool_list *list, struct err *err)
{
	struct catalog *catalog = xcalloc(1, sizeof(*catalog));
	catalog->entries = xcalloc(list->count + 1, sizeof(*catalog->entries));
	for (size_t i = 0; i < list->count; i++) {
		const struct tool *tool = list->tools[i];
		if (!compile_tool(catalog, tool, err)) {
			struct err cause = *err;
			err_set(err, ERR_INVALID, "tool \"%s\": %s%s%s",
				tool->name == NULL ? "" : tool->name, cause.trace,
				cause.trace[0] == '\0' ? "" : ": ", cause.msg);
			catalog_free(catalog);
			return NULL;
		}
	}
	return catalog;
}

void catalog_free(struct catalog *catalog)
{
	if (catalog == NULL)
		return;
	for (size_t i = 0; i < catalog->count; i++) {
		schema_free(catalog->entries[i].schema);
		mirror_params_finish(&catalog->entries[i].mirrors);
		json_object_put(catalog->entries[i].input);
	}
	for (size_t i = 0; i < REVISION__MAX; i++)
		buf_finish(&catalog->listing[i]);
	free(catalog->entries);
	free(catalog);
}

const struct catalog_entry *catalog_find(const struct catalog *catalog, const char *name)
{
	for (size_t i = 0; i < catalog->count; i++) {
		if (strcmp(catalog->entries[i].tool->name, name) == 0)
			return &catalog->entries[i];
	}
	return NULL;
}

const char *catalog_near(const struct catalog *catalog, const char *name)
{
	AUTO_FREE const char **names = xcalloc(catalog->count + 1, sizeof(*names));
	for (size_t i = 0; i < catalog->count; i++)
		names[i] = catalog->entries[i].tool->name;
	return near_name(name, names, catalog->count);
}

struct json_object *catalog_describe(const struct catalog *catalog, enum revision revision)
{
	struct json_object *tools = json_object_new_array();
	for (size_t i = 0; i < catalog->count; i++) {
		struct json_object *tool = tool_describe(catalog->entries[i].tool);
		era_shape(tool, revision);
		json_push(tools, tool);
	}
	return tools;
}
