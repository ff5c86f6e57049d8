/* Tools that answer at once, with content of every kind. */
#include "content.h"
#include "fixture.h"

static bool simple_text(struct tool_call *call, struct err *err)
{
	(void)err;
	return call_say(call, "This is a simple text answer.");
}

static bool image_content(struct tool_call *call, struct err *err)
{
	(void)err;
	call_add(call, content_image());
	return true;
}

static bool audio_content(struct tool_call *call, struct err *err)
{
	(void)err;
	call_add(call, content_audio());
	return true;
}

static bool embedded_resource(struct tool_call *call, struct err *err)
{
	(void)err;
	call_add(call, content_resource("test://embedded-resource", "An embedded resource."));
	return true;
}

static bool multiple_content_types(struct tool_call *call, struct err *err)
{
	(void)err;
	call_say(call, "Text, an image and a resource:");
	call_add(call, content_image());
	call_add(call, content_resource("test://mixed-content-resource", "One of three."));
	return true;
}

static bool error_handling(struct tool_call *call, struct err *err)
{
	(void)err;
	call->is_error = true;
	return call_say(call, "This tool always fails, as it should.");
}

static bool schema_tool(struct tool_call *call, struct err *err)
{
	(void)err;
	return call_say(call, "Called with %s", json_text(call->arguments, NULL));
}

static bool header_tool(struct tool_call *call, struct err *err)
{
	(void)err;
	const char *region = json_get_str(call->arguments, "region");
	return call_say(call, "region: %s", region == NULL ? "none" : region);
}

static bool greet(struct tool_call *call, struct err *err)
{
	(void)err;
	return call_say(call, "Hello, %s!", json_get_str(call->arguments, "name"));
}

/* Keywords that are kept on their way to the client, whether or not we can check them. */
static const char full_schema[] =
	"{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\", \"type\": \"object\","
	" \"$defs\": {\"address\": {\"$anchor\": \"addressDef\", \"type\": \"object\","
	" \"properties\": {\"street\": {\"type\": \"string\"}, \"city\": {\"type\": \"string\"}}}},"
	" \"properties\": {\"name\": {\"type\": \"string\"},"
	" \"address\": {\"$ref\": \"#/$defs/address\"},"
	" \"contactMethod\": {\"type\": \"string\", \"enum\": [\"phone\", \"email\"]},"
	" \"phone\": {\"type\": \"string\"}, \"email\": {\"type\": \"string\"}},"
	" \"allOf\": [{\"anyOf\": [{\"required\": [\"phone\"]}, {\"required\": [\"email\"]}]}],"
	" \"if\": {\"properties\": {\"contactMethod\": {\"const\": \"phone\"}},"
	" \"required\": [\"contactMethod\"]},"
	" \"then\": {\"required\": [\"phone\"]}, \"else\": {\"required\": [\"email\"]},"
	" \"additionalProperties\": false}";

static const struct tool tools[] = {
	{PLAIN_TOOL("test_simple_text", "Answers with one text block.", simple_text)},
	{PLAIN_TOOL("test_image_content", "Answers with an image.", image_content)},
	{PLAIN_TOOL("test_audio_content", "Answers with a sound.", audio_content)},
	{PLAIN_TOOL("test_embedded_resource", "Answers with a resource.", embedded_resource)},
	{PLAIN_TOOL("test_multiple_content_types", "Answers with text, an image and a resource.",
		    multiple_content_types)},
	{PLAIN_TOOL("test_error_handling", "Fails and says so in its result.", error_handling)},
	{
		.name = "json_schema_2020_12_tool",
		.title = "json_schema_2020_12_tool",
		.description = "Has a schema with every keyword that must reach the client.",
		.input_schema = full_schema,
		.schema_is_foreign = true,
		.read_only = true,
		.idempotent = true,
		.call = schema_tool,
	},
	{
		.name = "test_x_mcp_header",
		.title = "test_x_mcp_header",
		.description = "Repeats an argument that is also sent as a header.",
		.input_schema = "{\"type\": \"object\", \"properties\": {\"region\": {\"type\": "
				"\"string\","
				" \"description\": \"Any text\", \"x-mcp-header\": \"Region\"}},"
				" \"additionalProperties\": false}",
		.read_only = true,
		.idempotent = true,
		.call = header_tool,
	},
	{
		.name = "greet",
		.title = "greet",
		.description = "Greets somebody, always at once.",
		.input_schema =
			"{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\","
			" \"description\": \"Whom to greet\"}}, \"required\": [\"name\"],"
			" \"additionalProperties\": false}",
		.read_only = true,
		.idempotent = true,
		.call = greet,
	},
};

const struct tool_family tools_content = {tools, ARRAY_LEN(tools)};
