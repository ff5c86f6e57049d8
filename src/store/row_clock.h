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

/* 1/0/-1 as in row_sandbox.h. */
int row_clock_reading(struct db *db, struct clock_reading *reading, struct err *err);
/* Newest first. Returns their number, or -1 with err. */
int row_clock_gaps(struct db *db, struct clock_gap gaps[static CLOCK_GAPS_MAX], struct err *err);
/* Inside a transaction of the caller. */
bool row_clock_set_reading(struct db *db, const struct clock_reading *reading,
			   struct err *err) MUST_USE;
bool row_clock_set_gaps(struct db *db, const struct clock_gap *gaps, int count,
			struct err *err) MUST_USE;

#endif
