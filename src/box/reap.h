/*
 * One pass of the reaper: cleans up and repairs what the state machines of sandboxes and tasks
 * leave behind. It does nothing that a request could not have done, needs no web server, may be
 * killed anywhere and run again, and two at once are harmless: the second leaves.
 *
 * A pass is a table of rules (reap.c). Each looks for its kind of thing in the database and the
 * spool, decides on a fresh look under the thing's own locks, and acts through the same verbs as
 * requests. What is in doubt is left alone and said.
 */
#ifndef SPOOLBOX_BOX_REAP_H
#define SPOOLBOX_BOX_REAP_H

#include "box/app.h"

struct reap_options {
	bool dry_run;      /* says what it would do; changes nothing */
	int64_t budget_ms; /* about how long a pass may take; what is left is for the next */
	/* For tests: called between any two steps that change something, with a name. */
	void (*step)(void *ctx, const char *name);
	void *ctx;
};

/* What a pass came to; a member per column of the summary line. */
struct reap_report {
	bool other_runs; /* another pass is under way: nothing was done */
	bool jumped;     /* the clock did: no rule that depends on ages ran */
	int64_t looked_at, stopped, removed, tasks_settled, tasks_ended, sessions_ended;
	int64_t logs_pruned, links_dropped, uploads_dropped, orphans_removed, orphans_adopted,
		rows_dropped, repaired;
	int64_t caches_dropped, left_alone, failed;
	int64_t elapsed_ms;
	bool unfinished; /* the budget was used up */
};

/* True when nothing failed. False with err only when the pass could not begin (the database cannot
 * be read, or is not the one of this spool): nothing was changed. What fails in a rule is logged
 * and counted in report. */
bool reap_pass(struct app *app, const struct reap_options *options, struct reap_report *report,
	       struct err *err) MUST_USE;

#endif
