/*
 * The rules about Python sessions. A session ends by itself when it is idle; what is left for a
 * pass is its row, and one that did not (its processes were stopped, say).
 */
#include <inttypes.h>

#include "box/python.h"
#include "box/reap_rule.h"

#define SLICE 100 /* rows in one transaction: some 5 ms */

static bool end_if_idle(void *ctx, const struct python_row *session)
{
	struct reap *reap = ctx;
	struct err err = ERR_INIT;
	int64_t age_ms = timeline_age(&reap->timeline, session->last_used_at);
	if (reap_is_late(reap))
		return false;
	reap->report->looked_at++;
	if (python_is_used(reap->app, session))
		return true;
	if (!reap_act(reap, &reap->report->sessions_ended, "end_session",
		      "id=%s sandbox=%s idle_s=%" PRId64 " limit_s=%" PRId64
		      " why=\"it was not used for a while\"",
		      session->id, session->sandbox_id, age_ms / 1000,
		      reap->app->conf->python_idle))
		return true;
	reap_step(reap, "end_session");
	int rc = python_end_idle(reap->app, session, &err);
	if (rc < 0)
		reap_failed(reap, session->id, &err);
	if (rc != 1) /* somebody came meanwhile */
		reap->report->sessions_ended--;
	return true;
}

/* Stamps from the future would never be old. */
static void reset_early(struct reap *reap)
{
	struct err err = ERR_INIT;
	int64_t now = reap->timeline.now;
	if (reap->options->dry_run)
		return;
	int count = row_python_reset(reap->app->db, now + TIMELINE_JUMP_MS, now, &err);
	if (count < 0)
		reap_failed(reap, "early_sessions", &err);
	else if (count > 0 && reap_act(reap, &reap->report->repaired, "reset_sessions",
				       "count=%d why=\"they were used in the future\"", count))
		reap->report->repaired += count - 1;
}

void reap_python_sessions(struct reap *reap)
{
	struct err err = ERR_INIT;
	reset_early(reap);
	int64_t until = timeline_cutoff(&reap->timeline, reap->app->conf->python_idle * 1000);
	if (!row_python_each_unused(reap->app->db, until, end_if_idle, reap, &err))
		reap_failed(reap, "python_sessions", &err);
}

void reap_python_rows(struct reap *reap)
{
	struct err err = ERR_INIT;
	int64_t *dropped = &reap->report->rows_dropped;
	int64_t age_ms = reap->app->conf->job_log_retention * 1000;
	int64_t until = timeline_cutoff(&reap->timeline, age_ms);
	int64_t due = row_python_count_old(reap->app->db, until, &err);
	if (due < 0)
		reap_failed(reap, "python_rows", &err);
	if (due <= 0)
		return;
	bool really =
		reap_act(reap, dropped, "forget_sessions",
			 "count=%" PRId64 " why=\"ended for long, or their sandbox is gone\"", due);
	*dropped += really ? -1 : due - 1; /* counted as they go */
	while (really && !reap_is_late(reap)) {
		reap_step(reap, "forget_sessions");
		int64_t count = row_python_forget(reap->app->db, until, SLICE, &err);
		if (count < 0)
			reap_failed(reap, "python_rows", &err);
		if (count <= 0)
			return;
		*dropped += count;
		reap_rest(reap);
	}
}
