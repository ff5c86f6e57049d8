/*
 * Table python_session: who may use which session, and why one that ended did. Whether a session
 * lives is told by its socket (run/kernel.h); the row follows.
 */
#ifndef SPOOLBOX_STORE_ROW_PYTHON_H
#define SPOOLBOX_STORE_ROW_PYTHON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"
#include "store/db.h"

enum python_why {
	PYTHON_WHY_NONE = 0, /* it has not ended as far as is known */
	PYTHON_WHY_IDLE,
	PYTHON_WHY_KILLED,  /* a run did not react to an interrupt after its timeout */
	PYTHON_WHY_EXITED,  /* os._exit or the like */
	PYTHON_WHY_CRASHED, /* a signal */
	PYTHON_WHY_LOST,    /* it was gone: the sandbox was stopped or killed its processes */
	PYTHON_WHY__MAX
};

struct python_row {
	char id[ID_LEN + 1];
	char sandbox_id[ID_LEN + 1];
	int64_t created_at, last_used_at;
	int64_t ended_at; /* 0: not yet */
	enum python_why why;
};

/* Each returns 1 found / changed, 0 not, -1 with err set. */
/* 0: its sandbox is not live any more. */
int row_python_insert(struct db *db, const struct python_row *row, const char *principal,
		      struct err *err);
int row_python_by_id(struct db *db, const char *principal, const char *id, struct python_row *row,
		     struct err *err);
int row_python_touch(struct db *db, const char *id, int64_t now, struct err *err);
/* Live -> ended, once. */
int row_python_end(struct db *db, const char *id, enum python_why why, int64_t now,
		   struct err *err);
/* The same for one that is idle, unless it was used since it was read. */
int row_python_end_idle(struct db *db, const struct python_row *seen, int64_t now, struct err *err);
/* When a session of this sandbox that has not ended was used last; 0: there is none; -1 with err.
 */
int64_t row_python_last_used(struct db *db, const char *sandbox_id, struct err *err);
/* Calls visit for each session that has not ended and was last used at until or before, the oldest
 * first. Everything is read before the first visit. */
typedef bool row_python_visit(void *ctx, const struct python_row *row);
bool row_python_each_unused(struct db *db, int64_t until, row_python_visit *visit, void *ctx,
			    struct err *err) MUST_USE;
/* Stamps that are later than latest become now; how many, -1 with err. */
int row_python_reset(struct db *db, int64_t latest, int64_t now, struct err *err);
/* Those that ended at until or before, and those of sandboxes that are gone: how many there are,
 * and forgetting at most limit of them; -1 with err. */
int64_t row_python_count_old(struct db *db, int64_t until, struct err *err);
int64_t row_python_forget(struct db *db, int64_t until, int64_t limit, struct err *err);

#endif
