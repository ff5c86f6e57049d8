/*
 * Ages as the server counts them: wall time without the jumps of the wall clock and without the
 * time that the machine was off. A clock that was set forward by ten years makes nothing old, and
 * one that was set back makes nothing immortal.
 *
 * The reaper records at each pass what the clocks said; a reader compares with the clocks of now,
 * so a jump is known from the moment it happens, before any pass has seen it. On a jump forward
 * (and over a restart of the machine) the excess is a gap; a jump back takes back as much of the
 * newest gaps. A stamp from the future has the age 0.
 *
 * The newest reading is also kept beside the database, as the mtime of reaper.clock in the spool.
 * A database that is older came back from a backup: what was used since then has no stamp in it, so
 * the time since its own reading is a gap as well.
 */
#ifndef SPOOLBOX_BOX_TIMELINE_H
#define SPOOLBOX_BOX_TIMELINE_H

#include "box/app.h"
#include "store/row_clock.h"

/* Less is drift, an NTP correction, or a pass that was held up. */
#define TIMELINE_JUMP_MS (5 * 60 * 1000LL)

struct timeline {
	int64_t now; /* wall */
	struct clock_gap gaps[CLOCK_GAPS_MAX];
	int gap_count;
	int64_t jump_ms; /* of the wall clock since the last recorded reading; 0: none, < 0: back */
	bool restarted;  /* the machine was, since then */
	bool restored;   /* the database is older than the newest reading */
	bool is_first;   /* nothing was recorded yet */
	struct clock_reading reading; /* of now */
};

/* Reads the clocks and what is recorded. */
bool timeline_read(struct app *app, struct timeline *timeline, struct err *err) MUST_USE;

/* How old a stamp is; 0 for one from the future. A stamp that is missing (0) is very old: callers
 * look for those first. */
int64_t timeline_age(const struct timeline *timeline, int64_t stamp_at);
/* The newest stamp whose age is at least age_ms: for queries. INT64_MAX for an age_ms of 0 and
 * less, which any stamp has. */
int64_t timeline_cutoff(const struct timeline *timeline, int64_t age_ms);
/* The wall time at which a stamp will have that age if the clock goes on as it does. */
int64_t timeline_due(const struct timeline *timeline, int64_t stamp_at, int64_t age_ms);

/* Reads again and records the reading and the gaps: timeline is that of this moment afterwards,
 * with the jump that was recorded just now. Two at once: the second sees what the first recorded.
 */
bool timeline_record(struct app *app, struct timeline *timeline, struct err *err) MUST_USE;

#endif
