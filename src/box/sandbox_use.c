/*
 * A sandbox in use. The shared use lock is the lease: while one holds it, nothing ends the sandbox
 * for being idle or old. A destroy does not ask for it: it takes the row away first, and every
 * step here that waited for a lock looks at the row again when it has it.
 */
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "box/incarnation.h"
#include "box/sandbox.h"

#define TOUCH_EVERY_MS 5000  /* precision of last_used_at; a busy sandbox writes no more often */
#define USE_WAIT_MS    10000 /* held exclusively only while its end or its idle stop is decided */
#define START_WAIT_MS  20000 /* below the 30 s after which phones give a call up */

bool sandbox_gone(const struct sandbox_row *row, struct err *err)
{
	err_set(err, ERR_DESTROYED, "sandbox %s was destroyed in the meantime", row->name);
	return err_hint(err,
			"Look with list_sandboxes; exec, write_text and upload_file with its name "
			"make a new one.");
}

/* Asks the database whether the incarnation is still live. */
static bool confirm_live(struct app *app, const struct sandbox_row *row, struct err *err)
{
	AUTO_SANDBOX_ROW now = {0};
	int rc = row_sandbox_by_id(app->db, row->principal, row->id, &now, err);
	if (rc < 0)
		return false;
	return (rc == 1 && now.state == SANDBOX_LIVE) || sandbox_gone(row, err);
}

bool sandbox_confirm(const struct sandbox_use *use, struct err *err)
{
	struct err found = ERR_INIT;
	if (use->app == NULL || confirm_live(use->app, use->row, &found) ||
	    found.code != ERR_DESTROYED)
		return true;
	*err = found;
	return false;
}

bool sandbox_explain(const struct sandbox_use *use, struct err *err)
{
	(void)!sandbox_confirm(use, err);
	return false;
}

/* --- enter and leave ----------------------------------------------------------------------- */

static bool take_use_lock(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
			  struct err *err)
{
	use->app = app;
	use->row = row;
	use->use_fd = incarnation_open_use(app, row->id, &use->run_dir_fd, err);
	if (use->use_fd < 0)
		return sandbox_explain(use, err);
	if (lock_take(use->use_fd, LOCK_SHARED, USE_WAIT_MS, err))
		return true;
	if (err->code != ERR_BUSY)
		return false;
	err_set(err, ERR_BUSY, "sandbox %s is just being stopped; nothing was changed", row->name);
	return err_hint(err, "Try the same call again in a second.");
}

static bool open_directories(struct app *app, const struct sandbox_row *row,
			     struct sandbox_use *use, struct err *err)
{
	use->workspace_fd = spool_workspace(&app->spool, row->files_id, err);
	if (use->workspace_fd < 0)
		return sandbox_explain(use, err);
	use->incoming_fd = spool_incoming(&app->spool, row->files_id, err);
	if (use->incoming_fd < 0)
		return sandbox_explain(use, err);
	use->workspace_path = spool_workspace_path(&app->spool, app->conf, row->files_id);
	incarnation_box(app, row, use->run_dir_fd, use->workspace_path, &use->box);
	return true;
}

/* The lock of a sandbox that just went may have been made after its directory was removed. */
static void end_leftovers(struct app *app, const struct sandbox_row *row)
{
	struct err err = ERR_INIT;
	if (!incarnation_end(app, row, NULL, &err))
		log_err(LOG_WARN, "sandbox_leftovers", &err);
}

/* row_sandbox_touch or row_sandbox_stamp; NULL: no time is stamped. */
typedef int stamper(struct db *db, const char *id, int64_t now, int64_t every_ms, struct err *err);

static bool enter(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
		  stamper *stamp, struct err *err)
{
	/* The first look keeps a stale row from making run/<id> again; the second, under the lock,
	 * is the one that counts. */
	if (!confirm_live(app, row, err) || !take_use_lock(app, row, use, err))
		return false;
	if (stamp != NULL && stamp(app->db, row->id, clock_wall_ms(), TOUCH_EVERY_MS, err) < 0)
		return false;
	if (confirm_live(app, row, err))
		return open_directories(app, row, use, err);
	if (err->code == ERR_DESTROYED)
		end_leftovers(app, row);
	return false;
}

static bool enter_or_leave(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
			   stamper *stamp, struct err *err)
{
	*use = (struct sandbox_use)SANDBOX_USE_INIT;
	if (enter(app, row, use, stamp, err))
		return true;
	sandbox_leave(use);
	return false;
}

bool sandbox_enter(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
		   struct err *err)
{
	return enter_or_leave(app, row, use, row_sandbox_touch, err);
}

bool sandbox_enter_for_task(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
			    struct err *err)
{
	return enter_or_leave(app, row, use, row_sandbox_stamp, err);
}

bool sandbox_enter_to_look(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
			   struct err *err)
{
	return enter_or_leave(app, row, use, NULL, err);
}

void sandbox_leave(struct sandbox_use *use)
{
	util_close(&use->incoming_fd);
	util_close(&use->workspace_fd);
	util_close(&use->use_fd);
	util_close(&use->run_dir_fd);
	free(use->workspace_path);
	*use = (struct sandbox_use)SANDBOX_USE_INIT;
}

void sandbox_touch(struct app *app, const struct sandbox_row *row)
{
	struct err err = ERR_INIT;
	if (row_sandbox_touch(app->db, row->id, clock_wall_ms(), TOUCH_EVERY_MS, &err) < 0)
		log_err(LOG_WARN, "sandbox_touch", &err);
}

/* --- start --------------------------------------------------------------------------------- */

/* With the start lock held. */
static bool start_locked(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
			 struct err *err)
{
	const struct runtime *runtime = app->runtime;
	if (!confirm_live(app, row, err))
		return false;
	int up = runtime->alive(&use->box, err);
	if (up != 0)
		return up == 1;
	if (!runtime->start(&use->box, err))
		return err_in(err, "start of sandbox %s", row->id);
	/* A destroy that gave up waiting for the lock relies on this look. */
	struct err destroyed = ERR_INIT;
	if (confirm_live(app, row, &destroyed))
		return true;
	if (!runtime->stop(&use->box, err))
		return err_in(err, "stop of sandbox %s after its row went", row->id);
	*err = destroyed;
	return false;
}

static bool start(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
		  struct err *err)
{
	int up = app->runtime->alive(&use->box, err);
	if (up != 0)
		return up == 1;
	AUTO_FD lock = incarnation_lock_start(use->run_dir_fd, START_WAIT_MS, err);
	return lock >= 0 && start_locked(app, row, use, err);
}

bool sandbox_start(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
		   struct err *err)
{
	struct err trouble = ERR_INIT;
	if (start(app, row, use, &trouble))
		return true;
	/* A destroy takes run/<id> away under its users; then that is the reason to tell. */
	if (confirm_live(app, row, err))
		*err = trouble;
	return false;
}

int sandbox_running(struct app *app, const struct sandbox_row *row, struct err *err)
{
	return incarnation_is_up(app, row, err);
}
