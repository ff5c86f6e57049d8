/* Resources: three that are always there, and one for each id. */
#include <string.h>

#include "content.h"
#include "fixture.h"

static const struct fixed {
	const char *uri, *name, *description, *mime_type;
	const char *text, *blob; /* one of them */
} fixed[] = {
	{"test://static-text", "static-text", "A text", "text/plain", "The text of a resource.",
	 NULL},
	{"test://static-binary", "static-binary", "An image", "image/png", NULL, content_png},
	{"test://watched-resource", "watched-resource", "A text to subscribe to", "text/plain",
	 "It does not change.", NULL},
};

#define DATA_BEFORE "test://template/"
#define DATA_AFTER  "/data"
#define ID_MAX      64

static const struct resource_template templates[] = {{
	.uri_template = DATA_BEFORE "{id}" DATA_AFTER,
	.name = "data",
	.title = "Data",
	.description = "A JSON document for each id",
	.mime_type = "application/json",
}};

static bool list(struct resource_call *call, const char *after, struct buf *next, struct err *err)
{
	(void)next;
	if (*after != '\0')
		return err_set(err, ERR_INVALID, "there is one page only");
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
		struct json_object *entry = json_object_new_object();
		json_add_str(entry, "uri", fixed[i].uri);
		json_add_str(entry, "name", fixed[i].name);
		json_add_str(entry, "description", fixed[i].description);
		json_add_str(entry, "mimeType", fixed[i].mime_type);
		json_push(call->result, entry);
	}
	return true;
}

static struct json_object *contents(const char *uri, const char *mime_type, const char *text,
				    const char *blob)
{
	struct json_object *entry = json_object_new_object();
	json_add_str(entry, "uri", uri);
	json_add_str(entry, "mimeType", mime_type);
	json_add_str(entry, "text", text);
	json_add_str(entry, "blob", blob);
	return entry;
}

/* The id in a URI of the template; false when it is none. */
static bool template_id(const char *uri, char id[static ID_MAX + 1])
{
	const size_t before = strlen(DATA_BEFORE);
	if (strncmp(uri, DATA_BEFORE, before) != 0)
		return false;
	size_t len = strcspn(uri + before, "/");
	if (len == 0 || len > ID_MAX || strcmp(uri + before + len, DATA_AFTER) != 0)
		return false;
	memcpy(id, uri + before, len);
	id[len] = '\0';
	return true;
}

static bool read_template(struct resource_call *call, const char *uri, const char *id)
{
	AUTO_JSON *data = json_object_new_object();
	json_add_str(data, "id", id);
	json_add_str(data, "data", "Data of this id");
	json_push(call->result, contents(uri, "application/json", json_text(data, NULL), NULL));
	return true;
}

static bool read_resource(struct resource_call *call, const char *uri, struct err *err)
{
	char id[ID_MAX + 1];
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
		if (strcmp(fixed[i].uri, uri) != 0)
			continue;
		json_push(call->result,
			  contents(uri, fixed[i].mime_type, fixed[i].text, fixed[i].blob));
		return true;
	}
	if (template_id(uri, id))
		return read_template(call, uri, id);
	return err_set(err, ERR_NOT_FOUND, "there is no such resource");
}

const struct resource_set fixture_resources = {
	.templates = templates,
	.template_count = ARRAY_LEN(templates),
	.list = list,
	.read = read_resource,
	.subscribe = true,
};
