/* Sandboxes that are gone: their rows answer for old links and tasks, until they are forgotten. */
#ifndef SPOOLBOX_STORE_ROW_GONE_H
#define SPOOLBOX_STORE_ROW_GONE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"
#include "store/db.h"

struct gone_row {
	char id[ID_LEN + 1];
	char files_id[ID_LEN + 1];
	int64_t ended_at;
	int64_t running; /* tasks of it that still read so */
};

/* Those that ended at until or before and with which the end of a session is through, by the time
 * of their end; those beyond one (zeroed: from the first), at most limit. Everything is read before
 * the first visit. */
typedef bool row_gone_visit(void *ctx, const struct gone_row *row);
bool row_gone_each(struct db *db, int64_t until, const struct gone_row *beyond, int64_t limit,
		   row_gone_visit *visit, void *ctx, struct err *err) MUST_USE;

/* Whether a sandbox that is live or kept has these files. 1/0/-1. */
int row_gone_files_in_use(struct db *db, const char *files_id, struct err *err);

/* Deletes the row, and its Python sessions. Links and tasks of it are to be deleted before, in the
 * same transaction or earlier. 1/0/-1; 0 when it is not gone. */
int row_gone_forget(struct db *db, const char *id, struct err *err);

#endif
