/* What handlers of prompts share. */
#include "mcp/prompt.h"

void prompt_add(struct prompt_call *call, const char *role, struct json_object *content)
{
	struct json_object *message = json_object_new_object();
	json_add_str(message, "role", role);
	json_add(message, "content", content);
	if (call->messages == NULL)
		call->messages = json_object_new_array();
	json_push(call->messages, message);
}

void prompt_add_text(struct prompt_call *call, const char *role, const char *text)
{
	struct json_object *content = json_object_new_object();
	json_add_str(content, "type", "text");
	json_add_str(content, "text", text);
	prompt_add(call, role, content);
}

const char *prompt_argument(const struct prompt_call *call, const char *name)
{
	return json_get_str(call->arguments, name);
}
