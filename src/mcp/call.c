/*
 * A failure is a result too: the model reads {error, message, fix, usage, retryable} as text and
 * can correct itself. Only what is no tool's business becomes a JSON-RPC error.
 */
#include "mcp/call.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/id.h"
#include "base/log.h"

static void push_text(struct json_object *content, const char *text, size_t len)
{
	struct json_object *block = json_object_new_object();
	json_add_str(block, "type", "text");
	json_add_strn(block, "text", text, len);
	json_push(content, block);
}

static void push_json_text(struct json_object *content, struct json_object *value)
{
	size_t len;
	const char *text = json_text(value, &len);
	push_text(content, text, len);
}

static struct json_object *failure(const struct catalog_entry *entry, const struct err *err,
				   const char *message)
{
	AUTO_BUF usage = BUF_INIT;
	tool_usage(entry->tool->name, entry->input, &usage);
	AUTO_JSON *body = json_object_new_object();
	json_add_str(body, "error", err_name(err->code));
	json_add_str(body, "message", message);
	json_add_str(body, "fix", err_next(err));
	json_add_str(body, "usage", buf_str(&usage));
	json_add_bool(body, "retryable", err_retryable(err->code));

	struct json_object *content = json_object_new_array();
	push_json_text(content, body);
	struct json_object *result = json_object_new_object();
	json_add(result, "content", content);
	json_add_bool(result, "isError", true);
	return result;
}

/* Details of our own faults go to the log; the reference ties both ends together. */
static struct json_object *internal_failure(const struct catalog_entry *entry, struct err *err)
{
	char id[ID_LEN + 1];
	char message[64];
	id_make(id);
	id[8] = '\0'; /* enough to find one line in a log */
	snprintf(message, sizeof(message), "internal error, reference %s", id);
	err_in(err, "reference=%s tool=%s", id, entry->tool->name);
	log_err(LOG_ERROR, "tool_failed", err);
	return failure(entry, err, message);
}

static struct json_object *handler_failure(const struct catalog_entry *entry, struct err *err)
{
	if (err->code == ERR_IO || err->code == ERR_INTERNAL)
		return internal_failure(entry, err);
	return failure(entry, err, err_message(err));
}

static struct json_object *argument_failure(const struct catalog_entry *entry,
					    const struct schema_faults *faults)
{
	struct err err;
	err_set(&err, ERR_INVALID, "arguments");
	AUTO_BUF message = BUF_INIT;
	buf_printf(&message, "The arguments do not fit the tool:\n%s", buf_str(&faults->lines));
	return failure(entry, &err, buf_str(&message));
}

struct json_object *call_result(struct tool_call *call)
{
	struct json_object *content = json_object_new_array();
	if (call->structured != NULL)
		push_json_text(content, call->structured);
	size_t count = call->content == NULL ? 0 : json_object_array_length(call->content);
	for (size_t i = 0; i < count; i++)
		json_push(content, json_object_get(json_object_array_get_idx(call->content, i)));

	struct json_object *result = json_object_new_object();
	json_add(result, "content", content);
	if (call->is_error)
		json_add_bool(result, "isError", true);
	else
		json_add(result, "structuredContent", TAKE_PTR(call->structured));
	return result;
}

/* What tool.h lets a handler leave behind. */
static bool keeps_promise(const struct tool *tool, const struct tool_call *call)
{
	if (call->structured != NULL && !json_object_is_type(call->structured, json_type_object))
		return false;
	if (call->content != NULL && !json_object_is_type(call->content, json_type_array))
		return false;
	if (call->task.status != TOOL_TASK_NONE)
		return call->takes_task && id_is_valid(call->task.id);
	return call->is_error || tool->output_schema == NULL || call->structured != NULL;
}

static struct json_object *run_handler(const struct catalog_entry *entry, struct tool_call *call,
				       const char **outcome)
{
	struct err err = ERR_INIT;
	bool ok = entry->tool->call(call, &err);
	if (call->round.missing != 0 || (ok && round_is_open(&call->round))) {
		*outcome = "asks";
		return NULL;
	}
	if (!ok && err.code != ERR_NONE) {
		*outcome = err_name(err.code);
		return handler_failure(entry, &err);
	}
	if (!ok || !keeps_promise(entry->tool, call)) {
		err_set(&err, ERR_INTERNAL, "tool %s left no result that may be shown",
			entry->tool->name);
		log_err(LOG_ERROR, "tool_failed", &err);
		*outcome = err_name(err.code);
		return NULL;
	}
	if (call->task.status != TOOL_TASK_NONE) {
		*outcome = "task";
		return NULL;
	}
	*outcome = call->is_error ? "failed" : "ok";
	return call_result(call);
}

/* Of the run before, which went as far as a question. */
static void forget_result(struct tool_call *call)
{
	json_object_put(TAKE_PTR(call->structured));
	json_object_put(TAKE_PTR(call->content));
	call->is_error = false;
}

/* Of a schema that is not ours to check, what holds for all: arguments are an object. */
static bool accepts(const struct catalog_entry *entry, struct json_object *arguments,
		    struct schema_faults *faults)
{
	if (entry->schema != NULL)
		return schema_validate(entry->schema, arguments, "arguments", faults);
	if (json_object_is_type(arguments, json_type_object))
		return true;
	faults->count++;
	buf_puts(&faults->lines, "arguments: expected an object");
	return false;
}

struct json_object *call_tool(const struct catalog_entry *entry, struct tool_call *call,
			      struct json_object *arguments, const char **outcome)
{
	if (call->arguments == NULL)
		call->arguments =
			arguments == NULL ? json_object_new_object() : json_object_get(arguments);
	struct schema_faults faults = SCHEMA_FAULTS_INIT;
	struct json_object *result;
	forget_result(call);
	if (accepts(entry, call->arguments, &faults)) {
		result = run_handler(entry, call, outcome);
	} else {
		*outcome = err_name(ERR_INVALID);
		result = argument_failure(entry, &faults);
	}
	schema_faults_finish(&faults);
	return result;
}

void call_finish(struct tool_call *call)
{
	json_object_put(TAKE_PTR(call->arguments));
	json_object_put(TAKE_PTR(call->structured));
	json_object_put(TAKE_PTR(call->content));
	tool_task_finish(&call->task);
	round_finish(&call->round);
}
