/*
 * The frame of a pass: who may run, what time it is, and the rules in their order. What a rule
 * does and why is in its file.
 *
 * The lock file reaper.lock lets one pass run at a time. It guards nothing: each rule is safe
 * against another pass as it is against requests; it only saves the work.
 */
#include "box/reap.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "box/incarnation.h"
#include "box/reap_rule.h"

#define LOCK_FILE "reaper.lock"
#define REST_MS   15   /* three times of what a transaction takes */
#define TEXT_MAX  1500 /* of an action; a line of the log holds as much */

/* First what sets things right that others judge by: stamps, and tasks that keep their sandboxes.
 * Then what was begun and not finished, then what is due, then what nobody knows of. Deleting comes
 * last: it takes what time is left, and a little when none is, so that the disk gets emptier even
 * where each pass is cut short. */
static const struct rule {
	const char *name;
	void (*run)(struct reap *reap);
	bool needs_ages; /* not while it is unclear what time it is */
	bool when_late;  /* also when the budget is used up: it takes a little time of its own */
} rules[] = {
	{"future_stamps", reap_future_stamps, true, false},
	{"lost_tasks", reap_lost_tasks, false, false},
	{"overdue_tasks", reap_overdue_tasks, true, false},
	{"half_ended", reap_half_ended, false, false},
	{"orphan_runs", reap_orphan_runs, false, false},
	{"stdio_sessions", reap_stdio_sessions, false, false},
	{"python_sessions", reap_python_sessions, true, false},
	{"lifetimes", reap_lifetimes, true, false},
	{"idle_removes", reap_idle_removes, true, false},
	{"idle_stops", reap_idle_stops, true, false},
	{"kept_files", reap_kept_files, true, false},
	{"missing_files", reap_missing_files, false, false},
	{"orphan_files", reap_orphan_files, true, false},
	{"orphan_tasks", reap_orphan_tasks, true, false},
	{"uploads", reap_uploads, true, false},
	{"task_logs", reap_task_logs, true, false},
	{"links", reap_links, true, false},
	{"python_rows", reap_python_rows, true, false},
	{"old_rows", reap_old_rows, true, false},
	{"disk_space", reap_disk_space, false, false},
	{"service_logs", reap_service_logs, false, false},
	{"database", reap_database, false, false},
	{"trash", reap_trash, false, true},
};

/* --- what rules call ----------------------------------------------------------------------- */

bool reap_act(struct reap *reap, int64_t *counter, const char *action, const char *fmt, ...)
{
	char text[TEXT_MAX];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	bool dry = reap->options->dry_run;
	log_event(LOG_INFO, "reap", "%s=%s %s", dry ? "would" : "action", action, text);
	++*counter;
	return !dry;
}

void reap_leave(struct reap *reap, const char *what, const char *fmt, ...)
{
	char text[TEXT_MAX];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_event(LOG_WARN, "reap", "left_alone=%s %s", what, text);
	reap->report->left_alone++;
}

void reap_failed(struct reap *reap, const char *what, const struct err *err)
{
	struct err told = *err;
	err_in(&told, "%s", what);
	log_err(LOG_ERROR, "reap_failed", &told);
	reap->report->failed++;
}

bool reap_is_late(struct reap *reap)
{
	if (clock_mono_ms() < reap->until_ms)
		return false;
	reap->report->unfinished = true;
	return true;
}

void reap_step(struct reap *reap, const char *name)
{
	if (reap->options->step != NULL && !reap->options->dry_run)
		reap->options->step(reap->options->ctx, name);
}

void reap_rest(struct reap *reap)
{
	if (!reap->options->dry_run)
		clock_sleep_ms(REST_MS);
}

bool reap_finish(struct reap *reap, const struct sandbox_row *row, bool delete_files,
		 struct err *err)
{
	struct app *app = reap->app;
	reap_step(reap, "row_moved");
	if (!incarnation_end(app, row, NULL, err))
		return false;
	reap_step(reap, "holder_ended");
	/* Deleting is for the end of the pass (reap_trash). */
	if (delete_files && !spool_drop_file(&app->spool, app->spool.data_fd, row->files_id, err))
		return false;
	reap_step(reap, "files_retired");
	return true;
}

/* --- the pass ------------------------------------------------------------------------------ */

/* Who looks only makes no lock file, and needs none. 1: go on; 0: another pass runs; -1. */
static int take_turn(struct reap *reap, int *lock, struct err *err)
{
	struct err busy = ERR_INIT;
	if (reap->options->dry_run)
		return 1;
	*lock = lock_open(reap->app->spool.root_fd, LOCK_FILE, err);
	if (*lock < 0)
		return -1;
	if (lock_take(*lock, LOCK_EXCLUSIVE, 0, &busy))
		return 1;
	reap->report->other_runs = busy.code == ERR_BUSY;
	if (!reap->report->other_runs)
		*err = busy;
	return reap->report->other_runs ? 0 : -1;
}

/* On a disk that is entirely full the database cannot be written, and making room is what a pass is
 * for: that needs no more than a look at the clocks. */
static bool record_time(struct reap *reap, struct err *err)
{
	struct err full = ERR_INIT;
	if (timeline_record(reap->app, &reap->timeline, &full))
		return true;
	if (full.code != ERR_QUOTA) {
		*err = full;
		return false;
	}
	if (!timeline_read(reap->app, &reap->timeline, err))
		return false;
	reap_disk_space(reap);
	return timeline_record(reap->app, &reap->timeline, err);
}

/* What the clocks say is recorded before anything is judged by it. A jump may be undone in a
 * minute; until the next pass nothing ages. */
static bool read_time(struct reap *reap, struct err *err)
{
	struct timeline *timeline = &reap->timeline;
	if (reap->options->dry_run ? !timeline_read(reap->app, timeline, err)
				   : !record_time(reap, err))
		return false;
	reap->report->jumped = timeline->jump_ms != 0;
	if (reap->report->jumped)
		log_event(
			LOG_WARN, "reap_clock_jump",
			"jump_s=%lld restarted=%s restored=%s why=\"the clock of this machine "
			"jumped, the machine was off, or the database is an older one; nothing is "
			"taken for old in this pass, and the jump does not count in later ones\"",
			(long long)(timeline->jump_ms / 1000), timeline->restarted ? "yes" : "no",
			timeline->restored ? "yes" : "no");
	return true;
}

static void run_rules(struct reap *reap)
{
	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		if ((rules[i].needs_ages && reap->report->jumped) ||
		    (!rules[i].when_late && reap_is_late(reap)))
			continue;
		reap_step(reap, rules[i].name);
		rules[i].run(reap);
	}
}

static const struct column {
	const char *name;
	size_t offset;
} columns[] = {
	{"looked_at", offsetof(struct reap_report, looked_at)},
	{"stopped", offsetof(struct reap_report, stopped)},
	{"removed", offsetof(struct reap_report, removed)},
	{"tasks_settled", offsetof(struct reap_report, tasks_settled)},
	{"tasks_ended", offsetof(struct reap_report, tasks_ended)},
	{"sessions_ended", offsetof(struct reap_report, sessions_ended)},
	{"logs_pruned", offsetof(struct reap_report, logs_pruned)},
	{"links_dropped", offsetof(struct reap_report, links_dropped)},
	{"uploads_dropped", offsetof(struct reap_report, uploads_dropped)},
	{"orphans_removed", offsetof(struct reap_report, orphans_removed)},
	{"orphans_adopted", offsetof(struct reap_report, orphans_adopted)},
	{"rows_dropped", offsetof(struct reap_report, rows_dropped)},
	{"repaired", offsetof(struct reap_report, repaired)},
	{"caches_dropped", offsetof(struct reap_report, caches_dropped)},
	{"left_alone", offsetof(struct reap_report, left_alone)},
	{"failed", offsetof(struct reap_report, failed)},
	{"elapsed_ms", offsetof(struct reap_report, elapsed_ms)},
};

static void log_summary(const struct reap *reap)
{
	AUTO_BUF line = BUF_INIT;
	const struct reap_report *report = reap->report;
	for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
		const char *member = (const char *)report + columns[i].offset;
		buf_printf(&line, "%s=%lld ", columns[i].name,
			   (long long)*(const int64_t *)(const void *)member);
	}
	buf_printf(&line, "dry_run=%s jumped=%s unfinished=%s",
		   reap->options->dry_run ? "yes" : "no", report->jumped ? "yes" : "no",
		   report->unfinished ? "yes" : "no");
	log_event(LOG_INFO, "reap_pass", "%s", buf_str(&line));
}

bool reap_pass(struct app *app, const struct reap_options *options, struct reap_report *report,
	       struct err *err)
{
	int64_t start_ms = clock_mono_ms();
	*report = (struct reap_report){.failed = 0};
	struct reap reap = {.app = app,
			    .options = options,
			    .report = report,
			    .until_ms = start_ms + options->budget_ms};
	AUTO_FD lock = -1;
	int turn = take_turn(&reap, &lock, err);
	if (turn < 0)
		return false;
	if (turn == 0) {
		log_event(LOG_INFO, "reap_pass", "other_runs=yes");
		return true;
	}
	if (!read_time(&reap, err))
		return false;
	run_rules(&reap);
	report->elapsed_ms = clock_mono_ms() - start_ms;
	log_summary(&reap);
	return report->failed == 0;
}
