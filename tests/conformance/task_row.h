/* Statements of table task of the fixture. */
#ifndef SPOOLBOX_CONFORMANCE_TASK_ROW_H
#define SPOOLBOX_CONFORMANCE_TASK_ROW_H

#include "base/json.h"
#include "store/db.h"

#define TASK_TTL_MS (10 * 60 * 1000) /* then it is as if it had never been */

struct task_row {
	char id[ID_LEN + 1];
	char *principal;
	char *job;
	struct json_object *arguments, *answers;
	int64_t created_at, updated_at;
	int64_t due_at;       /* 0: it waits for answers */
	int64_t cancelled_at; /* 0: it was not */
};

void task_row_finish(struct task_row *row);
#define AUTO_TASK_ROW __attribute__((cleanup(task_row_finish))) struct task_row

bool task_row_insert(struct db *db, const struct task_row *row, struct err *err) MUST_USE;
/* 1; 0 when it is unknown, somebody else's or expired; -1 with err. */
int task_row_get(struct db *db, const char *principal, const char *id, struct task_row *row,
		 struct err *err);
/* Stores answers, the time of the update and due_at. 1; 0 when it was cancelled meanwhile; -1. */
int task_row_answer(struct db *db, const struct task_row *row, struct err *err);
/* 1; 0 when it had ended already or is not there; -1 with err. */
int task_row_cancel(struct db *db, const char *principal, const char *id, int64_t now,
		    struct err *err);

#endif
