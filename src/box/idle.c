/* See idle.h. Pure but for the looks at the lock and at Python sessions. */
#include "box/idle.h"

#include "base/log.h"
#include "box/incarnation.h"
#include "store/row_python.h"

/* 2020-01-01: no sandbox is older than the program. A clock that was not set yet stamps 1970. */
#define EARLIEST_AT 1577836800000LL

static bool is_stamp(int64_t at)
{
	return at >= EARLIEST_AT;
}

const char *idle_doubt(const struct sandbox_row *row)
{
	if (row->state == SANDBOX_KEPT)
		return is_stamp(row->ended_at) ? NULL : "nobody knows when it was destroyed";
	if (!is_stamp(row->last_used_at))
		return "nobody knows when it was used last";
	if (row->ttl_ms < 0 || row->expires_at < 0 || (row->ttl_ms > 0) != (row->expires_at > 0))
		return "its lifetime makes no sense";
	return row->ttl_ms == 0 || is_stamp(row->expires_at - row->ttl_ms)
		       ? NULL
		       : "nobody knows when its lifetime began";
}

bool idle_time_is_over(const struct timeline *timeline, const struct sandbox_row *row)
{
	/* The lifetime counts from the use that renewed it. */
	return row->state == SANDBOX_LIVE && row->ttl_ms > 0 && idle_doubt(row) == NULL &&
	       timeline_age(timeline, row->expires_at - row->ttl_ms) >= row->ttl_ms;
}

/* Sets when age_ms after stamp_at is; 0: never. */
static bool due(const struct timeline *timeline, int64_t stamp_at, int64_t age_ms, int64_t *at)
{
	*at = age_ms <= 0 ? 0 : timeline_due(timeline, stamp_at, age_ms);
	return age_ms > 0 && timeline_age(timeline, stamp_at) >= age_ms;
}

/* A session that is not idle yet puts the stop off. When nobody knows, there is none. */
static void spare_python(const struct app *app, const struct timeline *timeline,
			 const struct sandbox_row *row, struct idle *idle)
{
	struct err err = ERR_INIT;
	int64_t python_at = 0;
	int64_t used_at = row_python_last_used(app->db, row->id, &err);
	if (used_at < 0) {
		log_err(LOG_WARN, "idle_python", &err);
		idle->stop_due = false;
		idle->stop_at = 0;
	}
	if (used_at <= 0)
		return;
	if (!due(timeline, used_at, app->conf->python_idle * 1000, &python_at))
		idle->stop_due = false;
	if (idle->stop_at < python_at)
		idle->stop_at = python_at;
}

void idle_from(const struct app *app, const struct timeline *timeline,
	       const struct sandbox_row *row, struct idle *idle)
{
	const struct conf *conf = app->conf;
	bool is_live = row->state == SANDBOX_LIVE;
	int64_t remove_ms = conf->idle_remove * 1000;
	*idle = (struct idle){.since = is_live ? row->last_used_at : row->ended_at};
	idle->why = !is_live ? "kept" : row->ttl_ms > 0 ? "lifetime" : "idle";
	idle->age_ms = timeline_age(timeline, idle->since);
	if (idle_doubt(row) != NULL)
		return;
	if (is_live && row->ttl_ms > 0)
		idle->remove_due =
			due(timeline, row->expires_at - row->ttl_ms, row->ttl_ms, &idle->remove_at);
	else
		idle->remove_due = due(timeline, idle->since, remove_ms, &idle->remove_at);
	if (is_live)
		idle->stop_due = due(timeline, idle->since, conf->idle_stop * 1000, &idle->stop_at);
	if (idle->stop_at > 0)
		spare_python(app, timeline, row, idle);
	/* What goes before it would be stopped is never stopped. */
	if (idle->remove_at > 0 && idle->stop_at >= idle->remove_at)
		idle->stop_at = 0;
}

void idle_of(const struct app *app, const struct timeline *timeline, const struct sandbox_row *row,
	     struct idle *idle)
{
	idle_from(app, timeline, row, idle);
	if (row->state != SANDBOX_LIVE || !incarnation_is_used(app, row->id))
		return;
	idle->in_use = true;
	idle->stop_due = idle->remove_due = false;
	idle->stop_at = idle->remove_at = 0;
}
