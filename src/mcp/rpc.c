/* Messages in and out. Results are spliced as text, so a large one is serialized once. */
#include "mcp/rpc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Beyond 2^53-1 a client that keeps numbers as doubles would not recognise its own id. */
#define ID_MAX INT64_C(9007199254740991)

void rpc_error_finish(struct rpc_error *error)
{
	json_object_put(error->data);
	error->data = NULL;
}

bool rpc_fail(struct rpc_error *error, int status, int code, const char *fmt, ...)
{
	rpc_error_finish(error);
	error->status = status;
	error->code = code;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(error->message, sizeof(error->message), fmt, ap);
	va_end(ap);
	return false;
}

const char *rpc_name(struct json_object *value)
{
	const char *s = json_str(value);
	return s != NULL && strlen(s) == json_str_len(value) ? s : NULL;
}

static bool id_is_allowed(struct json_object *id)
{
	if (json_object_is_type(id, json_type_string))
		return true;
	if (!json_object_is_type(id, json_type_int))
		return false;
	int64_t number = json_object_get_int64(id);
	return number >= -ID_MAX && number <= ID_MAX;
}

bool rpc_read(struct json_object *value, struct rpc_message *message, struct rpc_error *error)
{
	*message = (struct rpc_message){.kind = RPC_KIND_NOTIFICATION};
	if (!json_object_is_type(value, json_type_object))
		return rpc_refuse(error, RPC_REQUEST, "The message must be a JSON object");
	bool has_id = json_has(value, "id");
	struct json_object *id = json_get(value, "id");
	bool id_ok = has_id && id_is_allowed(id);
	message->id = id_ok ? id : NULL;
	const char *version = rpc_name(json_get(value, "jsonrpc"));
	if (version == NULL || strcmp(version, "2.0") != 0)
		return rpc_refuse(error, RPC_REQUEST, "Member jsonrpc must be \"2.0\"");
	if (has_id && !id_ok)
		return rpc_refuse(error, RPC_REQUEST,
				  "Member id must be a string or an integer within 2^53");
	if (!json_has(value, "method")) {
		if (!id_ok || (!json_has(value, "result") && !json_has(value, "error")))
			return rpc_refuse(error, RPC_REQUEST, "Member method is missing");
		message->kind = RPC_KIND_RESPONSE;
		return true;
	}
	message->method = rpc_name(json_get(value, "method"));
	if (message->method == NULL)
		return rpc_refuse(error, RPC_REQUEST, "Member method must be a string");
	message->params = json_get(value, "params");
	message->kind = id_ok ? RPC_KIND_REQUEST : RPC_KIND_NOTIFICATION;
	return true;
}

static void begin_message(struct buf *out, struct json_object *id)
{
	buf_puts(out, "{\"jsonrpc\":\"2.0\"");
	if (id != NULL) {
		size_t len;
		const char *text = json_text(id, &len);
		buf_puts(out, ",\"id\":");
		buf_append(out, text, len);
	}
}

void rpc_write_result(struct buf *out, struct json_object *id, const char *result, size_t len)
{
	begin_message(out, id);
	buf_puts(out, ",\"result\":");
	buf_append(out, result, len);
	buf_putc(out, '}');
}

void rpc_drain_result(struct buf *out, struct json_object *id, struct json_object *result)
{
	begin_message(out, id);
	buf_puts(out, ",\"result\":");
	json_drain(out, result);
	buf_putc(out, '}');
}

void rpc_write_error(struct buf *out, struct json_object *id, const struct rpc_error *error)
{
	AUTO_JSON *body = json_object_new_object();
	json_add_int(body, "code", error->code);
	json_add_str(body, "message", error->message);
	json_add(body, "data", json_object_get(error->data));
	size_t len;
	const char *text = json_text(body, &len);
	begin_message(out, id);
	buf_puts(out, ",\"error\":");
	buf_append(out, text, len);
	buf_putc(out, '}');
}
