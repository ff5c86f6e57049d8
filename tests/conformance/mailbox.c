/*
 * The mailbox of answers. The worker that waits looks in with a plain read, which takes no lock
 * from those who write.
 */
#include "fixture.h"

enum statement { OPEN, POST, LOOK, REMOVE };

static const char *const sql[] = {
	[OPEN] = "INSERT INTO mailbox (id, principal) VALUES (:id, :principal)",
	[POST] = "UPDATE mailbox SET answer = :answer"
		 " WHERE id = :id AND principal = :principal AND answer IS NULL",
	[LOOK] = "SELECT answer FROM mailbox"
		 " WHERE id = :id AND principal = :principal AND answer IS NOT NULL",
	[REMOVE] = "DELETE FROM mailbox WHERE id = :id",
};

static bool open_box(void *app, const char *principal, const char *id, struct err *err)
{
	struct fixture *fixture = app;
	AUTO_STMT *stmt = db_prepare(fixture->db, sql[OPEN], err);
	if (stmt == NULL)
		return false;
	db_bind_text(stmt, ":id", id);
	db_bind_text(stmt, ":principal", principal);
	return db_run(fixture->db, stmt, NULL, err);
}

/* Only the first answer counts. */
static bool post(void *app, const char *principal, const char *id, const char *text, size_t len,
		 struct err *err)
{
	struct fixture *fixture = app;
	AUTO_STMT *stmt = db_prepare(fixture->db, sql[POST], err);
	if (stmt == NULL)
		return false;
	AUTO_BUF answer = BUF_INIT;
	buf_append(&answer, text, len);
	db_bind_text(stmt, ":id", id);
	db_bind_text(stmt, ":principal", principal);
	db_bind_text(stmt, ":answer", buf_str(&answer));
	return db_run(fixture->db, stmt, NULL, err);
}

static bool remove_box(struct fixture *fixture, const char *id, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(fixture->db, sql[REMOVE], err);
	if (stmt == NULL)
		return false;
	db_bind_text(stmt, ":id", id);
	return db_run(fixture->db, stmt, NULL, err);
}

static int look(struct fixture *fixture, const char *principal, const char *id, struct buf *text,
		struct err *err)
{
	AUTO_STMT *stmt = db_prepare(fixture->db, sql[LOOK], err);
	if (stmt == NULL)
		return -1;
	db_bind_text(stmt, ":id", id);
	db_bind_text(stmt, ":principal", principal);
	int rc = db_step(fixture->db, stmt, err);
	if (rc == 1)
		buf_puts(text, (const char *)sqlite3_column_text(stmt, 0));
	return rc;
}

static int take(void *app, const char *principal, const char *id, struct buf *text, struct err *err)
{
	int rc = look(app, principal, id, text, err);
	if (rc == 1 && !remove_box(app, id, err))
		return -1;
	return rc;
}

/* A row that stays is in nobody's way: its id is never used again. */
static void close_box(void *app, const char *id)
{
	struct err err = ERR_INIT;
	remove_box(app, id, &err);
}

const struct peer fixture_mailbox = {
	.post = post, .open = open_box, .take = take, .close = close_box};
