/* See target.h. */
#include "mcp/target.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "box/python_pool.h"

/* A sandbox can be destroyed between its making and its use; each attempt can lose that race. */
#define ENTER_ATTEMPTS 16

bool target_find(const struct tool_call *call, const char *handle, struct target *target,
		 struct err *err)
{
	struct app *app = call->app;
	target->created = false;
	return sandbox_find(app, call->principal, handle, &target->row, err) &&
	       sandbox_enter(app, &target->row, &target->use, err);
}

bool target_find_to_change(const struct tool_call *call, const char *handle, struct target *target,
			   struct err *err)
{
	struct app *app = call->app;
	target->created = false;
	return sandbox_find(app, call->principal, handle, &target->row, err) &&
	       sandbox_stay(app, &target->row, err) &&
	       sandbox_enter(app, &target->row, &target->use, err);
}

/* sandbox_enter or sandbox_enter_for_task. */
typedef bool enter_with(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
			struct err *err);

static bool create_and(enter_with *enter, const struct tool_call *call,
		       const struct sandbox_options *options, struct target *target,
		       struct err *err)
{
	struct app *app = call->app;
	struct err trouble = ERR_INIT;
	for (int i = 0; i < ENTER_ATTEMPTS; i++) {
		if (!sandbox_create(app, call->principal, options, &target->row, &target->created,
				    err))
			return false;
		if (enter(app, &target->row, &target->use, &trouble))
			return true;
		sandbox_row_finish(&target->row);
		if (trouble.code != ERR_DESTROYED)
			break;
	}
	*err = trouble;
	return false;
}

static bool ensure_and(enter_with *enter, const struct tool_call *call, const char *handle,
		       struct target *target, struct err *err)
{
	struct app *app = call->app;
	struct err trouble = ERR_INIT;
	if (!sandbox_ensure(app, call->principal, handle, &target->row, &target->created, err))
		return false;
	if (enter(app, &target->row, &target->use, &trouble))
		return true;
	sandbox_row_finish(&target->row);
	/* An id is never made anew. */
	if (trouble.code == ERR_DESTROYED && !id_is_valid(handle))
		return create_and(enter, call, &(struct sandbox_options){.name = handle}, target,
				  err);
	*err = trouble;
	return false;
}

bool target_create(const struct tool_call *call, const struct sandbox_options *options,
		   struct target *target, struct err *err)
{
	return create_and(sandbox_enter, call, options, target, err);
}

bool target_ensure(const struct tool_call *call, const char *handle, struct target *target,
		   struct err *err)
{
	return ensure_and(sandbox_enter, call, handle, target, err);
}

bool target_find_for_task(const struct tool_call *call, const char *handle, struct target *target,
			  struct buf *note, struct err *err)
{
	struct app *app = call->app;
	target->created = false;
	if (handle != NULL ? !sandbox_find(app, call->principal, handle, &target->row, err)
			   : !sandbox_find_default(app, call->principal, &target->row, err))
		return false;
	if (handle == NULL)
		target_note(note,
			    "No sandbox was named, so the newest one made with create_sandbox was "
			    "taken: %s.",
			    target->row.name);
	return sandbox_stay(app, &target->row, err) &&
	       sandbox_enter_for_task(app, &target->row, &target->use, err);
}

bool target_ensure_for_task(const struct tool_call *call, const char *handle, struct target *target,
			    struct err *err)
{
	return ensure_and(sandbox_enter_for_task, call, handle, target, err);
}

bool target_take(const struct tool_call *call, int64_t ttl_ms, struct target *target,
		 struct err *err)
{
	struct app *app = call->app;
	struct err trouble = ERR_INIT;
	for (int i = 0; i < ENTER_ATTEMPTS; i++) {
		if (!python_pool_take(app, call->principal, ttl_ms, &target->row, err))
			return false;
		target->created = true;
		if (sandbox_enter(app, &target->row, &target->use, &trouble))
			return true;
		python_pool_release(app, &target->row, false);
		sandbox_row_finish(&target->row);
		if (trouble.code != ERR_DESTROYED)
			break;
	}
	*err = trouble;
	return false;
}

void target_leave(struct target *target)
{
	sandbox_leave(&target->use);
	sandbox_row_finish(&target->row);
}

void target_describe(const struct target *target, struct json_object *result, struct buf *note)
{
	json_add_str(result, "sandbox", target->row.name);
	json_add_str(result, "sandbox_id", target->row.id);
	json_add_bool(result, "sandbox_created", target->created);
	if (!target->created)
		return;
	/* A row that took over kept files names another directory than its own. */
	if (strcmp(target->row.id, target->row.files_id) == 0)
		target_note(note, "Sandbox %s did not exist and was created: it began empty.",
			    target->row.name);
	else
		target_note(
			note,
			"Sandbox %s did not exist and was created with the files that were kept "
			"from the earlier one.",
			target->row.name);
}

void target_add_time(struct json_object *result, const char *key, int64_t wall_ms)
{
	char text[CLOCK_RFC3339_LEN];
	if (wall_ms > 0)
		json_add_str(result, key, clock_rfc3339(wall_ms, text));
}

void target_add_path(struct json_object *result, const char *key, const struct buf *relative)
{
	AUTO_BUF path = BUF_INIT;
	buf_puts(&path, "/workspace");
	if (relative->len > 0) {
		buf_putc(&path, '/');
		buf_append(&path, relative->data, relative->len);
	}
	json_add_strn(result, key, path.data, path.len);
}

void target_note(struct buf *note, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *text = NULL;
	int len = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (len < 0)
		return;
	if (note->len > 0)
		buf_putc(note, ' ');
	buf_append(note, text, (size_t)len);
	free(text);
}

void target_add_note(struct json_object *result, const struct buf *note)
{
	if (note->len > 0)
		json_add_strn(result, "note", note->data, note->len);
}
