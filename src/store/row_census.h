/* What the database knows of, all principals together: to be compared with what is on disk. */
#ifndef SPOOLBOX_STORE_ROW_CENSUS_H
#define SPOOLBOX_STORE_ROW_CENSUS_H

#include "store/row_sandbox.h"

struct census_sandbox {
	char id[ID_LEN + 1];
	char files_id[ID_LEN + 1];
	enum sandbox_state state;
};

/* Appends all rows to *rows (xrealloc'ed; the caller frees it), by id. */
bool row_census_sandboxes(struct db *db, struct census_sandbox **rows, size_t *count,
			  struct err *err) MUST_USE;
/* Calls visit with the id of each task, in their order. Inside a read transaction: visit does
 * nothing but look. */
typedef void row_census_visit(void *ctx, const char *id);
bool row_census_tasks(struct db *db, row_census_visit *visit, void *ctx, struct err *err) MUST_USE;
/* 1: there is such a task, and is_running tells of its row; 0; -1 with err. */
int row_census_task(struct db *db, const char *id, bool *is_running, struct err *err);

#endif
