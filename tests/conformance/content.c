/* See content.h. */
#include "content.h"

#include <stdarg.h>
#include <stdio.h>

const char content_png[] =
	"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mPQ6w4HAAH7ARFK28dF"
	"AAAAAElFTkSuQmCC";
const char content_wav[] = "UklGRigAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQQAAACAoIBg";

struct json_object *content_text(const char *text)
{
	struct json_object *block = json_object_new_object();
	json_add_str(block, "type", "text");
	json_add_str(block, "text", text);
	return block;
}

static struct json_object *media(const char *type, const char *mime_type, const char *data)
{
	struct json_object *block = json_object_new_object();
	json_add_str(block, "type", type);
	json_add_str(block, "mimeType", mime_type);
	json_add_str(block, "data", data);
	return block;
}

struct json_object *content_image(void)
{
	return media("image", "image/png", content_png);
}

struct json_object *content_audio(void)
{
	return media("audio", "audio/wav", content_wav);
}

struct json_object *content_resource(const char *uri, const char *text)
{
	struct json_object *resource = json_object_new_object();
	json_add_str(resource, "uri", uri);
	json_add_str(resource, "mimeType", "text/plain");
	json_add_str(resource, "text", text);
	struct json_object *block = json_object_new_object();
	json_add_str(block, "type", "resource");
	json_add(block, "resource", resource);
	return block;
}

void call_add(struct tool_call *call, struct json_object *block)
{
	if (call->content == NULL)
		call->content = json_object_new_array();
	json_push(call->content, block);
}

bool call_say(struct tool_call *call, const char *fmt, ...)
{
	char text[1024]; /* beyond any sentence of the fixture; what clients send in is cut */
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	call_add(call, content_text(text));
	return true;
}
