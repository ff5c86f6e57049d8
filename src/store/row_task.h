/* Table task: one row per background task. The task's directory is ahead of its row: see
 * task_dir.h for which one is believed. */
#ifndef SPOOLBOX_STORE_ROW_TASK_H
#define SPOOLBOX_STORE_ROW_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/id.h"
#include "store/db.h"

enum task_state {
	TASK_NONE = 0,
	TASK_RUNNING,
	TASK_SUCCEEDED, /* exit code 0 */
	TASK_FAILED,    /* another exit code, a signal, or it could not be run */
	TASK_CANCELLED,
	TASK_TIMED_OUT,
	TASK_UNKNOWN, /* its end was not seen; never a guess */
	TASK_STATE__MAX
};
/* "running", "succeeded", …; the words of the database and of the tools. */
const char *task_state_name(enum task_state state);
bool task_state_parse(const char *name, enum task_state *state); /* false leaves *state */

enum task_origin {
	TASK_ORIGIN_NONE = 0,
	TASK_ORIGIN_JOB,
	TASK_ORIGIN_TASK,
	TASK_ORIGIN_EXEC,
	TASK_ORIGIN__MAX
};
/* "job", "task", "exec". */
const char *task_origin_name(enum task_origin origin);
bool task_origin_parse(const char *name, enum task_origin *origin);

struct task_row {
	char id[ID_LEN + 1];
	char sandbox_id[ID_LEN + 1];
	char *principal;
	char *request_id; /* NULL: none */
	enum task_origin origin;
	char *command;
	int64_t timeout_ms;
	enum task_state state;
	bool has_exit_code;
	int exit_code;
	int signal;                  /* 0: none */
	char *reason;                /* NULL: none */
	int64_t cpu_ms, max_rss_kib; /* what it used; 0: not known */
	int survivors;               /* processes that it left running on purpose */
	int64_t created_at, started_at, finished_at;
};
void task_row_finish(struct task_row *row);
#define AUTO_TASK_ROW __attribute__((cleanup(task_row_finish))) struct task_row

/* 1/0/-1 as in row_sandbox.h. Those that fill a row want it zeroed. */
int row_task_by_id(struct db *db, const char *principal, const char *id, struct task_row *row,
		   struct err *err);
int row_task_by_request(struct db *db, const char *principal, const char *sandbox_id,
			const char *request_id, struct task_row *row, struct err *err);
/* Inside a transaction of the caller. 0: the request id is taken. */
int row_task_insert(struct db *db, const struct task_row *row, struct err *err);
/* Compare-and-set running -> the row's final state with its outcome; 0: it was final already, or
 * there is no such row. started_at 0 leaves the one that is there. */
int row_task_finish(struct db *db, const struct task_row *row, struct err *err);
/* Stamps the beginning. */
int row_task_started(struct db *db, const char *id, int64_t started_at, struct err *err);
/* Takes back a row whose task never came to be, or that has had its day. */
int row_task_delete(struct db *db, const char *id, struct err *err);
/* All tasks of a sandbox, and those that run; -1 with err. */
int64_t row_task_count(struct db *db, const char *sandbox_id, struct err *err);
int64_t row_task_count_running(struct db *db, const char *sandbox_id, struct err *err);

/* Newest first; sandbox_id NULL: of all sandboxes of the principal; limit bounds the number. */
typedef bool row_task_visit(void *ctx, const struct task_row *row);
bool row_task_each(struct db *db, const char *principal, const char *sandbox_id, int64_t limit,
		   row_task_visit *visit, void *ctx, struct err *err) MUST_USE;

/* --- of all principals, for the reaper ----------------------------------------------------- */

/* Tasks that read running, by id, those beyond an id ("": from the first), at most limit. */
bool row_task_each_running(struct db *db, const char *beyond, int64_t limit, row_task_visit *visit,
			   void *ctx, struct err *err) MUST_USE;

/* Appends ids, each with its NUL, at most limit: of finished tasks whose log counts from until or
 * earlier, oldest first; of all tasks of a sandbox. Their number, or -1 with err. */
int64_t row_task_ids_of_logs(struct db *db, int64_t until, int64_t limit, struct buf *ids,
			     struct err *err);
int64_t row_task_ids_of_sandbox(struct db *db, const char *sandbox_id, int64_t limit,
				struct buf *ids, struct err *err);
/* How many logs count from until or earlier; -1 with err. */
int64_t row_task_count_logs(struct db *db, int64_t until, struct err *err);
/* Notes that a task's directory is gone. 1/0/-1. */
int row_task_log_gone(struct db *db, const char *id, struct err *err);
/* Logs that count from a time after latest, which is still to come, count from now on; at most
 * limit. How many, or -1 with err. Nothing is written when there is none. */
int row_task_reset_logs(struct db *db, int64_t latest, int64_t now, int64_t limit, struct err *err);

#endif
