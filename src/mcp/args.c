/* See args.h. */
#include "mcp/args.h"

#include <string.h>

#include "base/json.h"
#include "box/files.h"

bool args_str(const struct tool_call *call, const char *name, const char **out, struct err *err)
{
	size_t len;
	const char *value = args_bytes(call, name, &len);
	*out = NULL;
	if (value == NULL || len == 0)
		return true;
	if (memchr(value, '\0', len) != NULL) {
		err_set(err, ERR_INVALID, "%s holds a NUL character", name);
		return err_hint(err, "Send %s without \\u0000.", name);
	}
	*out = value;
	return true;
}

bool args_str_or(const struct tool_call *call, const char *name, const char *alias,
		 const char **out, struct err *err)
{
	const char *second;
	if (!args_str(call, name, out, err) || !args_str(call, alias, &second, err))
		return false;
	if (*out != NULL && second != NULL && strcmp(*out, second) != 0) {
		err_set(err, ERR_INVALID, "%s and %s are two words for one argument, but differ",
			name, alias);
		return err_hint(err, "Give %s alone.", name);
	}
	if (*out == NULL)
		*out = second;
	return true;
}

bool args_sandbox(const struct tool_call *call, const char **handle, struct err *err)
{
	if (!args_str_or(call, "sandbox", "sandbox_id", handle, err))
		return false;
	if (*handle != NULL)
		return true;
	err_set(err, ERR_INVALID, "no sandbox was named: neither sandbox nor sandbox_id is given");
	return err_hint(err, "Add sandbox with a name such as \"work\"; list_sandboxes shows what "
			     "there is.");
}

const char *args_bytes(const struct tool_call *call, const char *name, size_t *len)
{
	struct json_object *value = json_get(call->arguments, name);
	const char *text = json_str(value);
	*len = text == NULL ? 0 : json_str_len(value);
	return text;
}

struct json_object *args_object(const struct tool_call *call, const char *name)
{
	struct json_object *value = json_get(call->arguments, name);
	if (!json_object_is_type(value, json_type_object) || json_object_object_length(value) == 0)
		return NULL;
	return value;
}

int64_t args_int(const struct tool_call *call, const char *name, int64_t fallback)
{
	return json_get_int(call->arguments, name, fallback);
}

bool args_bool(const struct tool_call *call, const char *name, bool fallback)
{
	return json_get_bool(call->arguments, name, fallback);
}

int64_t args_seconds_ms(const struct tool_call *call, const char *name)
{
	return args_int(call, name, 0) * 1000;
}

bool args_path(const struct tool_call *call, const char *name, struct buf *out, struct err *err)
{
	size_t len;
	const char *path = args_bytes(call, name, &len);
	return files_path(name, path == NULL ? "" : path, len, out, err);
}

bool args_file_path(const struct tool_call *call, const char *name, struct buf *out,
		    struct err *err)
{
	size_t len;
	const char *path = args_bytes(call, name, &len);
	if (!args_path(call, name, out, err))
		return false;
	if (out->len > 0 && path[len - 1] != '/')
		return true;
	err_set(err, ERR_INVALID, "%s names a directory, not a file", name);
	return err_hint(err, "Give the whole path with the file's name, e.g. \"data/input.csv\".");
}
