/*
 * The life of sandboxes: create, find, end. Every change of a row's state is one compare-and-set;
 * who wins it does the rest of the work (stop, remove), and each part of that can be repeated.
 * Order when something appears: files, then the row that names them. Order when it goes: the row,
 * then what runs, then the files.
 */
#include "box/sandbox.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "box/about.h"
#include "box/incarnation.h"
#include "box/sandbox_end.h"
#include "box/sandbox_plan.h"
#include "box/sandbox_room.h"

#define ATTEMPTS 16 /* each fails only because another process changed the same name meanwhile */

/* What one attempt at something that others do as well came to. */
enum attempt { FAILED, DONE, AGAIN };

/* Hands a row over; *from is zeroed. */
static void move_row(struct sandbox_row *to, struct sandbox_row *from)
{
	*to = *from;
	memset(from, 0, sizeof(*from));
}

static bool busy_name(const char *name, struct err *err)
{
	return err_set(err, ERR_BUSY, "sandbox %s is being changed by other calls all the time",
		       name);
}

/* --- the end of a lifetime ----------------------------------------------------------------- */

bool sandbox_is_over(struct app *app, const struct sandbox_row *row)
{
	return sandbox_time_is_over(app, row) && !incarnation_is_used(app, row->id);
}

/* --- create -------------------------------------------------------------------------------- */

/* The transaction that makes a sandbox. kept is what the name was when the caller looked (id empty:
 * nothing); when it is something else by now, nothing happens. gave_way: see sandbox_room.h. */
static enum attempt insert(struct app *app, const struct sandbox_row *kept,
			   const struct sandbox_row *fresh, struct sandbox_row *gave_way,
			   struct err *err)
{
	AUTO_TX tx = TX_INIT;
	if (!db_begin(app->db, &tx, err))
		return FAILED;
	AUTO_SANDBOX_ROW now = {0};
	if (row_sandbox_by_name(app->db, fresh->principal, fresh->name, &now, err) < 0)
		return FAILED;
	if (strcmp(now.id, kept->id) != 0 || now.state != kept->state)
		return AGAIN;
	/* The limit counts after the name: who lost a race for the name gets that sandbox. */
	if (!sandbox_room_take(app, fresh->is_reserve, gave_way, err))
		return FAILED;
	int64_t ended_at = fresh->created_at;
	if (kept->state == SANDBOX_KEPT &&
	    row_sandbox_move(app->db, kept->id, SANDBOX_KEPT, SANDBOX_GONE, ended_at, err) < 0)
		return FAILED;
	int rc = row_sandbox_insert(app->db, fresh, err);
	if (rc != 1)
		return rc == 0 ? AGAIN : FAILED;
	return db_commit(&tx, err) ? DONE : FAILED;
}

/* Takes fresh files back when their row did not come to be. After a commit that failed the
 * database decides; as long as it cannot tell, files without a row are better than a row without
 * files. */
static void drop_files(struct app *app, const struct sandbox_row *fresh)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW found = {0};
	if (row_sandbox_by_id(app->db, fresh->principal, fresh->id, &found, &err) == 0 &&
	    spool_retire_files(&app->spool, fresh->files_id, &err))
		return;
	if (err.code != ERR_NONE)
		log_err(LOG_WARN, "sandbox_drop_files", &err);
}

/* Ends what gave way to a new sandbox, which is there by now: a failure is none of its maker. */
static void end_yielded(struct app *app, const struct sandbox_row *row)
{
	struct err err = ERR_INIT;
	const char *event = row->is_reserve ? "reserve_gave_way" : "sandbox_gave_way";
	if (row->id[0] == '\0')
		return;
	log_event(LOG_INFO, event, "id=%s name=%s", row->id, row->name);
	if (!sandbox_remove(app, row, true, NULL, &err))
		log_err(LOG_WARN, event, &err);
}

/* Makes the files and the row. kept->id is empty when nothing was kept under the name. */
static enum attempt make(struct app *app, const char *principal, const struct sandbox_plan *plan,
			 const struct sandbox_row *kept, struct sandbox_row *row, struct err *err)
{
	bool takes_over = kept->state == SANDBOX_KEPT;
	/* Whoever kept the files may have been interrupted before it stopped the sandbox; two must
	 * not work on the same files. */
	if (takes_over && !incarnation_end(app, kept, NULL, err))
		return FAILED;
	AUTO_SANDBOX_ROW fresh = {0}, gave_way = {0};
	sandbox_plan_row(app, plan, principal, takes_over ? kept->files_id : NULL, &fresh);
	enum attempt result = FAILED;
	if (takes_over || (spool_make_files(&app->spool, fresh.files_id, err) &&
			   about_write(&app->spool, &fresh, err)))
		result = insert(app, kept, &fresh, &gave_way, err);
	if (result == DONE) {
		end_yielded(app, &gave_way);
		move_row(row, &fresh);
	} else if (!takes_over)
		drop_files(app, &fresh);
	return result;
}

static enum attempt try_create(struct app *app, const char *principal,
			       const struct sandbox_plan *plan, struct sandbox_row *row,
			       bool *created, struct err *err)
{
	/* The limit is looked at before the name, so that a sandbox of that name which fills the
	 * last place meanwhile is found and not taken for a reason to refuse. */
	bool full;
	if (!sandbox_room_look(app, plan->asked->is_reserve, &full, err))
		return FAILED;
	AUTO_SANDBOX_ROW old = {0};
	int rc = row_sandbox_by_name(app->db, principal, plan->name, &old, err);
	if (rc < 0)
		return FAILED;
	if (rc == 1 && plan->name_is_made_up)
		return AGAIN;
	if (rc == 1 && sandbox_time_is_over(app, &old))
		return sandbox_expire(app, &old, err) ? AGAIN : FAILED;
	if (old.state == SANDBOX_LIVE) {
		if (!sandbox_plan_fits(plan, &old, err) || !sandbox_stay(app, &old, err))
			return FAILED;
		*created = false;
		move_row(row, &old);
		return DONE;
	}
	if (full)
		sandbox_room_none(app, err);
	if (full || !sandbox_room_disk(app, err))
		return FAILED;
	*created = true;
	return make(app, principal, plan, &old, row, err);
}

bool sandbox_create(struct app *app, const char *principal, const struct sandbox_options *options,
		    struct sandbox_row *row, bool *created, struct err *err)
{
	struct sandbox_plan plan;
	if (!sandbox_plan_make(app, options, &plan, err))
		return false;
	for (int i = 0; i < ATTEMPTS; i++) {
		sandbox_plan_new_name(&plan);
		switch (try_create(app, principal, &plan, row, created, err)) {
		case DONE:
			return true;
		case FAILED:
			return false;
		case AGAIN:
			break;
		}
	}
	return busy_name(plan.name, err);
}

/* --- find ---------------------------------------------------------------------------------- */

static bool not_found(const char *handle, struct err *err)
{
	err_set(err, ERR_NOT_FOUND, "there is no sandbox %s", handle);
	return err_hint(
		err,
		id_is_valid(handle)
			? "An id belongs to one sandbox and ends with it. Look with "
			  "list_sandboxes, or use a name: exec, write_text and upload_file make "
			  "a missing one."
			: "Look with list_sandboxes which exist, or make it with create_sandbox.");
}

static bool over(const char *handle, struct err *err)
{
	err_set(err, ERR_NOT_FOUND,
		"the lifetime of sandbox %s is over; it is removed with its files", handle);
	return err_hint(err,
			"Make a new one with create_sandbox; a larger timeout, or a name without "
			"timeout, lets it live longer.");
}

static bool only_kept(const char *handle, struct err *err)
{
	err_set(err, ERR_NOT_FOUND, "sandbox %s was destroyed; its files are kept", handle);
	return err_hint(err, "create_sandbox with the same name makes a new one with these files; "
			     "destroy_sandbox with delete_files removes them.");
}

static bool check_handle(const char *handle, struct err *err)
{
	if (handle != NULL && name_is_valid(handle)) /* an id has the form of a name, too */
		return true;
	if (handle == NULL || *handle == '\0')
		return err_set(err, ERR_INVALID, "no sandbox was named");
	AUTO_BUF shown = BUF_INIT;
	text_quote(&shown, handle, strlen(handle), 64);
	err_set(err, ERR_INVALID, "\"%s\" is neither a sandbox name nor a sandbox id",
		buf_str(&shown));
	return err_hint(
		err,
		"Names have 1 to %d letters, digits, - and _, and start with a letter or digit. "
		"Nothing was changed.",
		NAME_MAX_LEN);
}

/* The row of a valid handle, whatever its state; 1, 0, -1. Nobody has been told of a reserve. */
static int look_up(struct app *app, const char *principal, const char *handle,
		   struct sandbox_row *row, struct err *err)
{
	if (!id_is_valid(handle))
		return row_sandbox_by_name(app->db, principal, handle, row, err);
	int rc = row_sandbox_by_id(app->db, principal, handle, row, err);
	if (rc == 1 && row->is_reserve)
		sandbox_row_finish(row);
	return rc == 1 && row->state == SANDBOX_NONE ? 0 : rc;
}

bool sandbox_find(struct app *app, const char *principal, const char *handle,
		  struct sandbox_row *row, struct err *err)
{
	if (!check_handle(handle, err))
		return false;
	AUTO_SANDBOX_ROW found = {0};
	int rc = look_up(app, principal, handle, &found, err);
	if (rc < 0)
		return false;
	if (found.state == SANDBOX_KEPT)
		return only_kept(handle, err);
	if (found.state != SANDBOX_LIVE)
		return not_found(handle, err);
	if (sandbox_is_over(app, &found))
		return over(handle, err);
	move_row(row, &found);
	return true;
}

/* The newest of those that qualify, so far. */
struct newest {
	struct app *app;
	char id[ID_LEN + 1];
	int64_t created_at;
};

static bool is_of_session(const struct app *app, const struct sandbox_row *row)
{
	return app->session_id == NULL || strcmp(app->session_id, row->session_id) == 0;
}

static bool take_newest(void *ctx, const struct sandbox_row *row)
{
	struct newest *newest = ctx;
	if (row->is_explicit && row->state == SANDBOX_LIVE && is_of_session(newest->app, row) &&
	    row->created_at >= newest->created_at && !sandbox_is_over(newest->app, row)) {
		newest->created_at = row->created_at;
		memcpy(newest->id, row->id, sizeof(newest->id));
	}
	return true;
}

bool sandbox_find_default(struct app *app, const char *principal, struct sandbox_row *row,
			  struct err *err)
{
	struct newest newest = {.app = app};
	if (!row_sandbox_each(app->db, principal, take_newest, &newest, err))
		return false;
	if (newest.id[0] != '\0')
		return sandbox_find(app, principal, newest.id, row, err);
	err_set(err, ERR_NOT_FOUND,
		"no sandbox was named, and none that create_sandbox made%s is there to be taken",
		app->session_id != NULL ? " in this session" : "");
	return err_hint(err, "Call create_sandbox first, or give sandbox with the name of one that "
			     "list_sandboxes shows. Nothing was started.");
}

bool sandbox_stay(struct app *app, struct sandbox_row *row, struct err *err)
{
	if (row->gives_way && row_sandbox_stay(app->db, row->id, err) < 0)
		return false;
	row->gives_way = false;
	return true;
}

bool sandbox_ensure(struct app *app, const char *principal, const char *handle,
		    struct sandbox_row *row, bool *created, struct err *err)
{
	struct err missing = ERR_INIT;
	if (sandbox_find(app, principal, handle, row, &missing)) {
		*created = false;
		return sandbox_stay(app, row, err);
	}
	/* An id is never made up by a caller: a missing one stays missing. */
	if (missing.code != ERR_NOT_FOUND || id_is_valid(handle)) {
		*err = missing;
		return false;
	}
	struct sandbox_options options = {.name = handle};
	return sandbox_create(app, principal, &options, row, created, err);
}

/* --- destroy ------------------------------------------------------------------------------- */

bool sandbox_find_to_destroy(struct app *app, const char *principal, const char *handle,
			     struct sandbox_row *row, struct err *err)
{
	if (!check_handle(handle, err))
		return false;
	AUTO_SANDBOX_ROW found = {0};
	if (look_up(app, principal, handle, &found, err) < 0)
		return false;
	if (found.state != SANDBOX_LIVE && found.state != SANDBOX_KEPT)
		return not_found(handle, err);
	move_row(row, &found);
	return true;
}

static enum attempt try_destroy(struct app *app, const char *principal, const char *handle,
				bool delete_files, struct sandbox_destroyed *out, struct err *err)
{
	AUTO_SANDBOX_ROW row = {0};
	if (!sandbox_find_to_destroy(app, principal, handle, &row, err))
		return FAILED;
	if (row.state == SANDBOX_KEPT && !delete_files) {
		only_kept(handle, err);
		return FAILED;
	}
	enum sandbox_state to = delete_files ? SANDBOX_GONE : SANDBOX_KEPT;
	int rc = row_sandbox_move(app->db, row.id, row.state, to, clock_wall_ms(), err);
	if (rc != 1)
		return rc == 0 ? AGAIN : FAILED;
	if (!sandbox_remove(app, &row, delete_files, &out->was_running, err))
		return FAILED;
	memcpy(out->id, row.id, sizeof(out->id));
	out->name = TAKE_PTR(row.name);
	out->files_deleted = delete_files;
	return DONE;
}

bool sandbox_destroy(struct app *app, const char *principal, const char *handle, bool delete_files,
		     struct sandbox_destroyed *out, struct err *err)
{
	for (int i = 0; i < ATTEMPTS; i++) {
		switch (try_destroy(app, principal, handle, delete_files, out, err)) {
		case DONE:
			return true;
		case FAILED:
			return false;
		case AGAIN:
			break;
		}
	}
	return busy_name(handle, err);
}

/* --- the end of a session ------------------------------------------------------------------ */

struct session_end {
	struct app *app;
	int64_t until_ms; /* monotonic; 0: no limit */
	struct err *err;
	bool ok;
};

/* A row that is gone already was left so by a process that did not come to its end. */
static bool end_one(struct app *app, const struct sandbox_row *row, struct err *err)
{
	int rc = 1;
	if (row->state == SANDBOX_LIVE)
		rc = row_sandbox_end_with_session(app->db, row->id, clock_wall_ms(), err);
	if (rc != 1)
		return rc == 0;
	log_event(LOG_INFO, "sandbox_ended_with_session", "id=%s name=%s", row->id, row->name);
	return sandbox_remove(app, row, true, NULL, err) &&
	       row_sandbox_settled(app->db, row->id, err) >= 0;
}

/* One that cannot be removed does not keep the others. */
static bool end_each(void *ctx, const struct sandbox_row *row)
{
	struct session_end *end = ctx;
	struct err err = ERR_INIT;
	bool is_late = end->until_ms > 0 && clock_mono_ms() >= end->until_ms;
	if (is_late)
		err_set(&err, ERR_TIMEOUT, "there were more sandboxes than time to remove them");
	else if (end_one(end->app, row, &err))
		return true;
	if (end->ok)
		*end->err = err;
	end->ok = false;
	return !is_late;
}

bool sandbox_end_session(struct app *app, const char *session_id, int64_t until_ms, struct err *err)
{
	struct session_end end = {app, until_ms, err, true};
	return row_sandbox_each_of_session(app->db, session_id, end_each, &end, err) && end.ok;
}
