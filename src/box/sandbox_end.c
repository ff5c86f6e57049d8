/* See sandbox_end.h. */
#include "box/sandbox_end.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "box/idle.h"
#include "box/incarnation.h"

#define DECISION_MS 500 /* some hundred times of what a decision and its transaction take */
#define PAUSE_MS    5

bool sandbox_remove(struct app *app, const struct sandbox_row *row, bool delete_files,
		    bool *was_running, struct err *err)
{
	return incarnation_end(app, row, was_running, err) &&
	       (!delete_files || spool_retire_files(&app->spool, row->files_id, err));
}

/* --- holding ------------------------------------------------------------------------------- */

void sandbox_unhold(struct sandbox_hold *hold)
{
	util_close(&hold->use_fd);
	util_close(&hold->run_dir_fd);
	sandbox_row_finish(&hold->row);
}

/* Reads the row anew. */
static enum sandbox_held look(struct app *app, const struct sandbox_row *seen,
			      struct sandbox_hold *hold, struct err *err)
{
	int rc = row_sandbox_any(app->db, seen->id, &hold->row, err);
	if (rc < 0)
		return SANDBOX_HELD_NONE;
	return hold->row.state == SANDBOX_LIVE ? SANDBOX_HELD : SANDBOX_NOT_LIVE;
}

enum sandbox_held sandbox_peek(struct app *app, const struct sandbox_row *seen,
			       struct sandbox_hold *hold, struct err *err)
{
	*hold = (struct sandbox_hold)SANDBOX_HOLD_INIT;
	return incarnation_is_used(app, seen->id) ? SANDBOX_IN_USE : look(app, seen, hold, err);
}

/* Who has it alone decides about the sandbox as we do, and is through in a moment: to take that for
 * a use would renew what is just being ended. */
static bool take_alone(int fd, struct err *err)
{
	for (int64_t waited = 0;; waited += PAUSE_MS) {
		struct err busy = ERR_INIT;
		if (lock_take(fd, LOCK_EXCLUSIVE, 0, &busy))
			return true;
		if (busy.code != ERR_BUSY || lock_is_exclusive(fd) != 1 || waited >= DECISION_MS) {
			*err = busy;
			return false;
		}
		clock_sleep_ms(PAUSE_MS);
	}
}

enum sandbox_held sandbox_hold(struct app *app, const struct sandbox_row *seen,
			       struct sandbox_hold *hold, struct err *err)
{
	*hold = (struct sandbox_hold)SANDBOX_HOLD_INIT;
	struct err busy = ERR_INIT;
	hold->use_fd = incarnation_open_use(app, seen->id, &hold->run_dir_fd, err);
	if (hold->use_fd < 0)
		return SANDBOX_HELD_NONE;
	if (!take_alone(hold->use_fd, &busy)) {
		if (busy.code == ERR_BUSY)
			return SANDBOX_IN_USE;
		*err = busy;
		return SANDBOX_HELD_NONE;
	}
	/* Under the lock the stamps cannot change any more. */
	enum sandbox_held held = look(app, seen, hold, err);
	if (held != SANDBOX_NOT_LIVE)
		return held;
	/* Opening the lock may have made run/<id> anew. Who waits for the lock need not wait for
	 * that. */
	util_close(&hold->use_fd);
	return incarnation_end(app, seen, NULL, err) ? SANDBOX_NOT_LIVE : SANDBOX_HELD_NONE;
}

int sandbox_end_row(struct app *app, struct sandbox_hold *hold, struct err *err)
{
	int rc = row_sandbox_end(app->db, &hold->row, clock_wall_ms(), err);
	util_close(&hold->use_fd);
	return rc;
}

int sandbox_stop(struct app *app, struct sandbox_hold *hold, struct err *err)
{
	struct err busy = ERR_INIT;
	AUTO_FD start = incarnation_lock_start(hold->run_dir_fd, 0, &busy);
	if (start < 0 && busy.code == ERR_BUSY)
		return 0;
	if (start < 0) {
		*err = busy;
		return -1;
	}
	const struct sandbox_row *row = &hold->row;
	AUTO_FREE char *path = spool_workspace_path(&app->spool, app->conf, row->files_id);
	struct runtime_box box;
	incarnation_box(app, row, hold->run_dir_fd, path, &box);
	if (app->runtime->stop(&box, err))
		return 1;
	err_in(err, "stop of sandbox %s", row->id);
	return -1;
}

/* --- the end of a lifetime ----------------------------------------------------------------- */

bool sandbox_time_is_over(struct app *app, const struct sandbox_row *row)
{
	if (row->state != SANDBOX_LIVE || row->expires_at <= 0 || row->expires_at > clock_wall_ms())
		return false;
	struct err err = ERR_INIT;
	struct timeline timeline;
	if (timeline_read(app, &timeline, &err))
		return idle_time_is_over(&timeline, row);
	log_err(LOG_WARN, "sandbox_lifetime", &err);
	return false;
}

bool sandbox_expire(struct app *app, const struct sandbox_row *row, struct err *err)
{
	AUTO_SANDBOX_HOLD hold = SANDBOX_HOLD_INIT;
	switch (sandbox_hold(app, row, &hold, err)) {
	case SANDBOX_HELD_NONE:
		return false;
	case SANDBOX_IN_USE:
		return row_sandbox_touch(app->db, row->id, clock_wall_ms(), 0, err) >= 0;
	case SANDBOX_NOT_LIVE:
		return true;
	case SANDBOX_HELD:
		break;
	}
	if (!sandbox_time_is_over(app, &hold.row))
		return true;
	int rc = sandbox_end_row(app, &hold, err);
	if (rc != 1)
		return rc == 0;
	log_event(LOG_INFO, "sandbox_expired", "id=%s name=%s", row->id, row->name);
	return sandbox_remove(app, &hold.row, true, NULL, err);
}
