/* What the rules of a pass share. Private to reap*.c. */
#ifndef SPOOLBOX_BOX_REAP_RULE_H
#define SPOOLBOX_BOX_REAP_RULE_H

#include "box/reap.h"
#include "box/timeline.h"
#include "store/row_sandbox.h"

struct reap {
	struct app *app;
	const struct reap_options *options;
	struct timeline timeline;
	struct reap_report *report;
	int64_t until_ms; /* monotonic end of the budget */
};

/* Announces an action: one log line "reap action=... KEY=VALUE ... why=...". False in a dry run:
 * then do not do it. Counts it in *counter either way. */
bool reap_act(struct reap *reap, int64_t *counter, const char *action, const char *fmt, ...)
	PRINTF_LIKE(4, 5);
/* Says that something in doubt stays as it is. */
void reap_leave(struct reap *reap, const char *what, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Logs a failure of one thing and counts it; the rule goes on with the next. */
void reap_failed(struct reap *reap, const char *what, const struct err *err);
/* Whether the budget is used up; then the rule returns. */
bool reap_is_late(struct reap *reap);
/* A step that changes something is about to come: for tests that kill here. */
void reap_step(struct reap *reap, const char *name);
/* To be called between two transactions of many: else requests, which look at the lock of the
 * database now and then, might find it taken each time. */
void reap_rest(struct reap *reap);

/* What follows a change of a sandbox's row out of LIVE or KEPT, in steps. */
bool reap_finish(struct reap *reap, const struct sandbox_row *row, bool delete_files,
		 struct err *err) MUST_USE;

/* The rules, by file. None returns anything: what fails is counted. */

/* reap_sandbox.c */
void reap_future_stamps(struct reap *reap); /* stamps from the future: set to now */
void reap_lifetimes(struct reap *reap);     /* TTL over */
void reap_idle_removes(struct reap *reap);
void reap_idle_stops(struct reap *reap);
void reap_kept_files(struct reap *reap);
void reap_stdio_sessions(struct reap *reap);

/* reap_orphan.c */
void reap_half_ended(struct reap *reap);    /* rows that left LIVE, with something of them there */
void reap_orphan_runs(struct reap *reap);   /* run/<id> and holders without a row */
void reap_missing_files(struct reap *reap); /* rows without data/<id> */

/* reap_files.c */
void reap_orphan_files(struct reap *reap); /* data/<id> without a row */
void reap_uploads(struct reap *reap);      /* data/<id>/incoming of nobody */

/* reap_orphan_task.c */
void reap_orphan_tasks(struct reap *reap); /* tasks/<id> and tasks/.new-<id> without a row */

/* reap_task.c */
void reap_overdue_tasks(struct reap *reap); /* past the deadline, supervisor stuck */
void reap_lost_tasks(struct reap *reap);    /* supervisor dead */
void reap_task_logs(struct reap *reap);     /* retention */

/* reap_python.c */
void reap_python_sessions(struct reap *reap); /* idle */
void reap_python_rows(struct reap *reap);     /* retention; those of sandboxes that are gone */

/* reap_store.c */
void reap_links(struct reap *reap);      /* used or expired */
void reap_old_rows(struct reap *reap);   /* sandboxes gone for long, with their tasks and links */
void reap_disk_space(struct reap *reap); /* below SMCP_MIN_FREE_BYTES: caches of idle sandboxes */
void reap_trash(struct reap *reap);
void reap_service_logs(struct reap *reap); /* tasks.log */
void reap_database(struct reap *reap);     /* checkpoint, incremental vacuum, optimize */

#endif
