/* See task_row.h. */
#include "task_row.h"

#include <string.h>

#include "base/clock.h"

#define COLUMNS \
	"id, principal, job, arguments, answers, created_at, updated_at, due_at, cancelled_at"

enum statement { INSERT, GET, ANSWER, CANCEL };

static const char *const sql[] = {
	[INSERT] =
		"INSERT INTO task (id, principal, job, arguments, created_at, updated_at, due_at)"
		" VALUES (:id, :principal, :job, :arguments, :now, :now, nullif(:due_at, 0))",
	[GET] = "SELECT " COLUMNS " FROM task"
		" WHERE id = :id AND principal = :principal AND created_at > :oldest",
	/* The caller tells of an end that an answer brings. */
	[ANSWER] = "UPDATE task SET answers = :answers, updated_at = :now,"
		   " due_at = nullif(:due_at, 0), told = :due_at <> 0"
		   " WHERE id = :id AND cancelled_at IS NULL AND due_at IS NULL",
	[CANCEL] = "UPDATE task SET cancelled_at = :now, updated_at = :now"
		   " WHERE id = :id AND principal = :principal AND cancelled_at IS NULL"
		   " AND (due_at IS NULL OR due_at > :now)",
};

void task_row_finish(struct task_row *row)
{
	free(row->principal);
	free(row->job);
	json_object_put(row->arguments);
	json_object_put(row->answers);
	memset(row, 0, sizeof(*row));
}

bool task_row_insert(struct db *db, const struct task_row *row, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[INSERT], err);
	if (stmt == NULL)
		return false;
	db_bind_text(stmt, ":id", row->id);
	db_bind_text(stmt, ":principal", row->principal);
	db_bind_text(stmt, ":job", row->job);
	db_bind_text(stmt, ":arguments", json_text(row->arguments, NULL));
	db_bind_int(stmt, ":now", row->created_at);
	db_bind_int(stmt, ":due_at", row->due_at);
	return db_run(db, stmt, NULL, err);
}

/* The table's CHECK has seen to it that it is JSON. */
static struct json_object *column_json(sqlite3_stmt *stmt, int column)
{
	return json_literal((const char *)sqlite3_column_text(stmt, column));
}

int task_row_get(struct db *db, const char *principal, const char *id, struct task_row *row,
		 struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[GET], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", id);
	db_bind_text(stmt, ":principal", principal);
	db_bind_int(stmt, ":oldest", clock_wall_ms() - TASK_TTL_MS);
	int rc = db_step(db, stmt, err);
	if (rc != 1)
		return rc;
	int column = 0;
	db_column_id(stmt, column++, row->id);
	row->principal = db_column_dup(stmt, column++);
	row->job = db_column_dup(stmt, column++);
	row->arguments = column_json(stmt, column++);
	row->answers = column_json(stmt, column++);
	row->created_at = sqlite3_column_int64(stmt, column++);
	row->updated_at = sqlite3_column_int64(stmt, column++);
	row->due_at = sqlite3_column_int64(stmt, column++); /* 0 for NULL, as the next */
	row->cancelled_at = sqlite3_column_int64(stmt, column);
	return 1;
}

int task_row_answer(struct db *db, const struct task_row *row, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[ANSWER], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", row->id);
	db_bind_text(stmt, ":answers", json_text(row->answers, NULL));
	db_bind_int(stmt, ":now", row->updated_at);
	db_bind_int(stmt, ":due_at", row->due_at);
	return db_change(db, stmt, err);
}

int task_row_cancel(struct db *db, const char *principal, const char *id, int64_t now,
		    struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[CANCEL], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", id);
	db_bind_text(stmt, ":principal", principal);
	db_bind_int(stmt, ":now", now);
	return db_change(db, stmt, err);
}
