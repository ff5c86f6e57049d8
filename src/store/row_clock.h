/* Tables clock_reading and clock_gap: what the clocks said, and where they jumped. */
#ifndef SPOOLBOX_STORE_ROW_CLOCK_H
#define SPOOLBOX_STORE_ROW_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "store/db.h"

struct clock_reading {
	char boot_id[CLOCK_BOOT_ID_LEN];
	int64_t boot_ms;
	int64_t wall_at;
};

struct clock_gap {
	int64_t from_at;
	int64_t ms;
};

#define CLOCK_GAPS_MAX 64 /* the oldest ones are joined beyond that */

struct clock_record {
	struct clock_reading reading;
	struct clock_gap gaps[CLOCK_GAPS_MAX]; /* newest first */
	int gap_count;
};

/* Reading and gaps as of one instant: one without the other would count a jump twice. 1/0/-1 as in
 * row_sandbox.h; 0: nothing was recorded yet. */
int row_clock_read(struct db *db, struct clock_record *record, struct err *err);
/* Replaces both. Inside a transaction of the caller. */
bool row_clock_write(struct db *db, const struct clock_record *record, struct err *err) MUST_USE;

#endif
