/*
 * The rules about sandboxes that are in order but unused. The database names those that may be due;
 * each is decided upon anew while its use lock is held, by the definition of idle.h, and its row
 * changes only as it was seen then.
 */
#include "base/clock.h"
#include "base/log.h"
#include "box/idle.h"
#include "box/incarnation.h"
#include "box/reap_rule.h"
#include "box/sandbox_end.h"
#include "box/stdio_session.h"
#include "store/row_task.h"

#define SESSIONS_MS 5000 /* of a pass for dead stdio sessions; what is left is for the next */

/* Whether a visit has time; counts what was looked at. */
static bool begin_visit(struct reap *reap)
{
	if (reap_is_late(reap))
		return false;
	reap->report->looked_at++;
	return true;
}

static bool is_in_doubt(struct reap *reap, const struct sandbox_row *row)
{
	const char *doubt = idle_doubt(row);
	if (doubt != NULL)
		reap_leave(reap, "sandbox", "id=%s name=%s why=\"%s\"", row->id, row->name, doubt);
	return doubt != NULL;
}

/* A use that is killed cannot stamp its end: so it is stamped that it was seen. A lifetime that is
 * over is renewed, as by a request that comes upon it (sandbox_expire). */
static void note_use(struct reap *reap, const struct sandbox_row *row)
{
	struct err err = ERR_INIT;
	struct db *db = reap->app->db;
	if (reap->options->dry_run)
		return;
	int rc = idle_time_is_over(&reap->timeline, row)
			 ? row_sandbox_touch(db, row->id, clock_wall_ms(), 0, &err)
			 : row_sandbox_stamp(db, row->id, clock_wall_ms(), 0, &err);
	if (rc < 0)
		reap_failed(reap, row->id, &err);
}

/* Takes a candidate, or in a dry run looks at it: true when nobody uses it and no task runs in it
 * (one whose supervisor just died is settled first). */
static bool take(struct reap *reap, const struct sandbox_row *seen, struct sandbox_hold *hold)
{
	struct err err = ERR_INIT;
	struct app *app = reap->app;
	enum sandbox_held held = reap->options->dry_run ? sandbox_peek(app, seen, hold, &err)
							: sandbox_hold(app, seen, hold, &err);
	if (held == SANDBOX_IN_USE)
		note_use(reap, seen);
	int64_t running =
		held == SANDBOX_HELD ? row_task_count_running(app->db, seen->id, &err) : 0;
	if (held == SANDBOX_HELD_NONE || running < 0)
		reap_failed(reap, seen->id, &err);
	return held == SANDBOX_HELD && running == 0;
}

/* --- removing ------------------------------------------------------------------------------ */

static int64_t seconds(int64_t ms)
{
	return ms / 1000;
}

static void end_held(struct reap *reap, struct sandbox_hold *hold)
{
	struct err err = ERR_INIT;
	reap_step(reap, "move_row");
	int rc = sandbox_end_row(reap->app, hold, &err);
	if (rc < 0 || (rc == 1 && !reap_finish(reap, &hold->row, true, &err)))
		reap_failed(reap, hold->row.id, &err);
}

static bool expire(void *ctx, const struct sandbox_row *seen)
{
	struct reap *reap = ctx;
	AUTO_SANDBOX_HOLD hold = SANDBOX_HOLD_INIT;
	if (!begin_visit(reap))
		return false;
	if (is_in_doubt(reap, seen) || !idle_time_is_over(&reap->timeline, seen) ||
	    !take(reap, seen, &hold) || !idle_time_is_over(&reap->timeline, &hold.row))
		return true;
	const struct sandbox_row *row = &hold.row;
	if (reap_act(reap, &reap->report->removed, "remove",
		     "id=%s name=%s age_s=%lld lifetime_s=%lld why=\"its lifetime is over\"",
		     row->id, row->name,
		     (long long)seconds(
			     timeline_age(&reap->timeline, row->expires_at - row->ttl_ms)),
		     (long long)seconds(row->ttl_ms)))
		end_held(reap, &hold);
	return true;
}

void reap_lifetimes(struct reap *reap)
{
	struct err err = ERR_INIT;
	if (!row_sandbox_each_over(reap->app->db, reap->timeline.now, expire, reap, &err))
		reap_failed(reap, "lifetimes", &err);
}

static bool remove_idle(void *ctx, const struct sandbox_row *seen)
{
	struct reap *reap = ctx;
	struct idle idle;
	AUTO_SANDBOX_HOLD hold = SANDBOX_HOLD_INIT;
	if (!begin_visit(reap))
		return false;
	if (is_in_doubt(reap, seen) || seen->ttl_ms > 0 || !take(reap, seen, &hold))
		return true;
	idle_from(reap->app, &reap->timeline, &hold.row, &idle);
	if (!idle.remove_due)
		return true;
	if (reap_act(reap, &reap->report->removed, "remove",
		     "id=%s name=%s idle_s=%lld limit_s=%lld why=\"it was not used for long\"",
		     hold.row.id, hold.row.name, (long long)seconds(idle.age_ms),
		     (long long)reap->app->conf->idle_remove))
		end_held(reap, &hold);
	return true;
}

void reap_idle_removes(struct reap *reap)
{
	struct err err = ERR_INIT;
	int64_t limit_ms = reap->app->conf->idle_remove * 1000;
	if (limit_ms > 0 &&
	    !row_sandbox_each_unused(reap->app->db, timeline_cutoff(&reap->timeline, limit_ms),
				     remove_idle, reap, &err))
		reap_failed(reap, "idle_removes", &err);
}

/* Nobody uses it; who takes the files over moves the row. */
static bool remove_kept(void *ctx, const struct sandbox_row *seen)
{
	struct reap *reap = ctx;
	struct idle idle;
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW now = {0};
	const struct sandbox_row *row = &now;
	if (!begin_visit(reap))
		return false;
	if (row_sandbox_any(reap->app->db, seen->id, &now, &err) < 0)
		reap_failed(reap, seen->id, &err);
	if (row->state != SANDBOX_KEPT || is_in_doubt(reap, row))
		return true;
	idle_from(reap->app, &reap->timeline, row, &idle);
	if (!idle.remove_due)
		return true;
	if (!reap_act(reap, &reap->report->removed, "remove",
		      "id=%s name=%s kept_s=%lld limit_s=%lld why=\"its files were kept for long\"",
		      row->id, row->name, (long long)seconds(idle.age_ms),
		      (long long)reap->app->conf->idle_remove))
		return true;
	reap_step(reap, "move_row");
	int rc = row_sandbox_move(reap->app->db, row->id, SANDBOX_KEPT, SANDBOX_GONE,
				  reap->timeline.now, &err);
	if (rc < 0 || (rc == 1 && !reap_finish(reap, row, true, &err)))
		reap_failed(reap, row->id, &err);
	return true;
}

void reap_kept_files(struct reap *reap)
{
	struct err err = ERR_INIT;
	int64_t limit_ms = reap->app->conf->idle_remove * 1000;
	if (limit_ms > 0 &&
	    !row_sandbox_each_kept(reap->app->db, timeline_cutoff(&reap->timeline, limit_ms),
				   remove_kept, reap, &err))
		reap_failed(reap, "kept_files", &err);
}

/* --- stopping ------------------------------------------------------------------------------ */

static void stop_held(struct reap *reap, struct sandbox_hold *hold)
{
	struct err err = ERR_INIT;
	reap_step(reap, "stop");
	if (sandbox_stop(reap->app, hold, &err) < 0)
		reap_failed(reap, hold->row.id, &err);
}

/* Most that are idle do not run: that is asked first. What the rule about removing says of rows in
 * doubt is not said twice. */
static bool stop_idle(void *ctx, const struct sandbox_row *seen)
{
	struct reap *reap = ctx;
	struct idle idle;
	struct err err = ERR_INIT;
	AUTO_SANDBOX_HOLD hold = SANDBOX_HOLD_INIT;
	if (!begin_visit(reap))
		return false;
	int up = idle_doubt(seen) != NULL ? 0 : incarnation_is_up(reap->app, seen, &err);
	if (up < 0)
		reap_failed(reap, seen->id, &err);
	if (up != 1 || !take(reap, seen, &hold))
		return true;
	idle_from(reap->app, &reap->timeline, &hold.row, &idle);
	if (!idle.stop_due)
		return true;
	if (reap_act(reap, &reap->report->stopped, "stop",
		     "id=%s name=%s idle_s=%lld limit_s=%lld why=\"it was not used for a while; "
		     "its files stay\"",
		     hold.row.id, hold.row.name, (long long)seconds(idle.age_ms),
		     (long long)reap->app->conf->idle_stop))
		stop_held(reap, &hold);
	return true;
}

void reap_idle_stops(struct reap *reap)
{
	struct err err = ERR_INIT;
	int64_t limit_ms = reap->app->conf->idle_stop * 1000;
	if (limit_ms > 0 &&
	    !row_sandbox_each_unused(reap->app->db, timeline_cutoff(&reap->timeline, limit_ms),
				     stop_idle, reap, &err))
		reap_failed(reap, "idle_stops", &err);
}

/* --- stamps from the future ---------------------------------------------------------------- */

static bool set_right(void *ctx, const struct sandbox_row *row)
{
	struct reap *reap = ctx;
	struct err err = ERR_INIT;
	char used[CLOCK_RFC3339_LEN], over[CLOCK_RFC3339_LEN], ended[CLOCK_RFC3339_LEN];
	if (!begin_visit(reap))
		return false;
	if (!reap_act(
		    reap, &reap->report->repaired, "set_stamps",
		    "id=%s name=%s last_used_at=%s expires_at=%s ended_at=%s why=\"stamps from the "
		    "future: they become now\"",
		    row->id, row->name, clock_rfc3339(row->last_used_at, used),
		    row->expires_at == 0 ? "never" : clock_rfc3339(row->expires_at, over),
		    row->ended_at == 0 ? "never" : clock_rfc3339(row->ended_at, ended)))
		return true;
	reap_step(reap, "set_stamps");
	if (row_sandbox_unfuture(reap->app->db, row, reap->timeline.now, &err) < 0)
		reap_failed(reap, row->id, &err);
	return true;
}

void reap_future_stamps(struct reap *reap)
{
	struct err err = ERR_INIT;
	if (!row_sandbox_each_future(reap->app->db, reap->timeline.now + TIMELINE_JUMP_MS,
				     set_right, reap, &err))
		reap_failed(reap, "future_stamps", &err);
}

/* --- sessions ------------------------------------------------------------------------------ */

/* Their end has a log of its own. */
void reap_stdio_sessions(struct reap *reap)
{
	if (!reap->options->dry_run)
		stdio_session_sweep(reap->app, SESSIONS_MS);
}
