/* See confirm.h. The id that is asked about travels with the question, sealed: the answer counts
 * for it and for nothing else. */
#include "mcp/confirm.h"

#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "box/sandbox.h"
#include "box/walk.h"
#include "mcp/literal.h"

#define COUNT_MAX 10000 /* entries; a person needs no more, and it is some 20 ms */
#define KEPT_ID   "sandbox_id"

/* A field of its own, since a form without one is sent off too easily. */
/* clang-format off */
static const char form[] =
	L_RESULT(L_QUOTE("delete"),
		 L_BOOL("delete", ",\"title\":\"Delete the sandbox and all its files\"",
			"This cannot be undone."));
/* clang-format on */

/* --- the question -------------------------------------------------------------------------- */

struct count {
	int64_t entries, files, bytes;
};

static bool count_entry(void *ctx, const struct walk_entry *entry)
{
	struct count *count = ctx;
	if (count->entries++ == COUNT_MAX)
		return false;
	count->files += !entry->is_dir;
	count->bytes += entry->is_dir ? 0 : entry->st->st_size;
	return true;
}

static void put_bytes(struct buf *out, int64_t bytes)
{
	static const char *const units[] = {"kB", "MB", "GB", "TB"};
	double amount = (double)bytes / 1000;
	size_t unit = 0;
	while (amount >= 1000 && unit + 1 < ARRAY_LEN(units)) {
		amount /= 1000;
		unit++;
	}
	if (bytes < 1000)
		buf_printf(out, "%lld bytes", (long long)bytes);
	else
		buf_printf(out, "%.1f %s", amount, units[unit]);
}

/* Nothing when it cannot be told: the question stands without it. */
static void put_size(struct buf *out, const struct app *app, const struct sandbox_row *row)
{
	struct err none = ERR_INIT;
	AUTO_FD fd = spool_workspace(&app->spool, row->files_id, &none);
	if (fd < 0)
		return;
	struct count count = {0};
	bool whole = walk_tree(fd, &(struct walk_options){.hidden = true}, count_entry, &count);
	buf_printf(out, " It holds %s%lld file%s, ", whole ? "" : "more than ",
		   (long long)count.files, count.files == 1 ? "" : "s");
	put_bytes(out, count.bytes);
	buf_puts(out, count.files == 1 ? "." : " together.");
}

static void put_question(struct buf *out, const struct app *app, const struct sandbox_row *row)
{
	buf_printf(out, "Delete sandbox %s with all its files?", row->name);
	put_size(out, app, row);
	buf_puts(out, " This cannot be undone.");
}

/* --- the answer ---------------------------------------------------------------------------- */

static enum confirm declined(const struct sandbox_row *row, struct err *err)
{
	err_set(err, ERR_DENIED,
		"the person was asked and did not agree to delete sandbox %s with its files; "
		"nothing was changed",
		row->name);
	err_hint(err, "Ask what they want instead. destroy_sandbox without delete_files ends the "
		      "sandbox and keeps its files.");
	return CONFIRM_FAILED;
}

static enum confirm ask(struct tool_call *call, const struct sandbox_row *row, struct err *err)
{
	AUTO_BUF question = BUF_INIT;
	put_question(&question, call->app, row);
	struct json_object *answer = NULL;
	switch (round_elicit(&call->round, "delete", buf_str(&question), form, &answer)) {
	case ROUND_ASKED:
		json_object_put(call->round.keep);
		call->round.keep = json_object_new_object();
		json_add_str(call->round.keep, KEPT_ID, row->id);
		return CONFIRM_ASKED;
	case ROUND_ACCEPTED:
		return json_get_bool(answer, "delete", false) ? CONFIRM_GO : declined(row, err);
	case ROUND_DECLINED:
		return declined(row, err);
	case ROUND_NONE:
	case ROUND_CANNOT:
		break;
	}
	return CONFIRM_GO;
}

/* An answer without a kept id is to no question of ours. */
static void drop_stray_answers(struct round *round)
{
	if (round->kept == NULL)
		json_object_put(TAKE_PTR(round->answers));
}

enum confirm confirm_delete(struct tool_call *call, const char **handle, char id[static ID_LEN + 1],
			    struct err *err)
{
	struct app *app = call->app;
	if (app->conf->confirm_destroy == CONF_CONFIRM_NEVER ||
	    (call->round.can_ask & ROUND_ELICIT) == 0)
		return CONFIRM_GO;
	drop_stray_answers(&call->round);
	const char *kept = json_get_str(call->round.kept, KEPT_ID);
	AUTO_SANDBOX_ROW row = {0};
	if (!sandbox_find_to_destroy(app, call->principal, kept == NULL ? *handle : kept, &row,
				     err))
		return CONFIRM_FAILED;
	memcpy(id, row.id, ID_LEN + 1);
	*handle = id;
	return ask(call, &row, err);
}
