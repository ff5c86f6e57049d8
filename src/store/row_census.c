/*
 * Statements that look at whole tables. Ids of tasks are read in the order of their index, which
 * holds nothing else: a hundred thousand of them are a few megabytes.
 */
#include "store/row_census.h"

#include <string.h>

enum statement { SANDBOXES, TASKS, TASK };

static const char *const sql[] = {
	[SANDBOXES] = "SELECT id, files_id, state FROM sandbox ORDER BY id",
	[TASKS] = "SELECT id FROM task ORDER BY id",
	[TASK] = "SELECT state = 'running' FROM task WHERE id = :id",
};

static enum sandbox_state state_of(const char *word)
{
	if (word == NULL)
		return SANDBOX_NONE;
	if (strcmp(word, "live") == 0)
		return SANDBOX_LIVE;
	return strcmp(word, "kept") == 0 ? SANDBOX_KEPT : SANDBOX_GONE;
}

bool row_census_sandboxes(struct db *db, struct census_sandbox **rows, size_t *count,
			  struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[SANDBOXES], err);
	size_t room = 0;
	int rc = stmt == NULL ? -1 : 1;
	while (rc == 1 && (rc = db_step(db, stmt, err)) == 1) {
		if (*count == room) {
			room = room == 0 ? 256 : room * 2;
			*rows = xrealloc(*rows, room * sizeof(**rows));
		}
		struct census_sandbox *row = &(*rows)[(*count)++];
		db_column_id(stmt, 0, row->id);
		db_column_id(stmt, 1, row->files_id);
		row->state = state_of((const char *)sqlite3_column_text(stmt, 2));
	}
	return rc == 0;
}

bool row_census_tasks(struct db *db, row_census_visit *visit, void *ctx, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[TASKS], err);
	int rc = stmt == NULL ? -1 : 1;
	while (rc == 1 && (rc = db_step(db, stmt, err)) == 1) {
		char id[ID_LEN + 1];
		db_column_id(stmt, 0, id);
		visit(ctx, id);
	}
	return rc == 0;
}

int row_census_task(struct db *db, const char *id, bool *is_running, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[TASK], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", id);
	int rc = db_step(db, stmt, err);
	*is_running = rc == 1 && sqlite3_column_int(stmt, 0) != 0;
	return rc;
}
