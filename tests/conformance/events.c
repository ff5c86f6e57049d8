/*
 * Events, and the places of those who listen. The end of a task is nobody's doing, it is a time
 * that passes: whoever looks for events first adds those of tasks that ended since.
 */
#include <unistd.h>

#include "base/clock.h"
#include "fixture.h"

#define LISTENERS_MAX  8 /* of 16 workers: the suite leaves several behind */
#define PLACE_SLACK_MS 60000

enum statement { ADD, NEWEST, NEXT, ENDED, TELL_ENDED, MARK_ENDED, ENTER, LEAVE };

static const char *const sql[] = {
	[ADD] = "INSERT INTO event (kind, what) VALUES (:kind, :what)",
	[NEWEST] = "SELECT coalesce(max(number), 0) FROM event",
	[NEXT] = "SELECT number, kind, what FROM event WHERE number > :after ORDER BY number LIMIT "
		 "1",
#define ENDED_UNTOLD "due_at <= :now AND cancelled_at IS NULL AND told = 0"
	[ENDED] = "SELECT 1 FROM task WHERE " ENDED_UNTOLD " LIMIT 1",
	[TELL_ENDED] = "INSERT INTO event (kind, what) SELECT :kind, id FROM task"
		       " WHERE " ENDED_UNTOLD " ORDER BY due_at",
	[MARK_ENDED] = "UPDATE task SET told = 1 WHERE " ENDED_UNTOLD,
	[ENTER] = "INSERT INTO listener (pid, until) SELECT :pid, :until"
		  " WHERE (SELECT count(*) FROM listener WHERE until > :now AND pid <> :pid) < :max"
		  " ON CONFLICT (pid) DO UPDATE SET until = :until",
	[LEAVE] = "DELETE FROM listener WHERE pid = :pid",
};

bool event_add(struct db *db, enum event_kind kind, const char *what, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[ADD], err);
	if (stmt == NULL)
		return false;
	db_bind_int(stmt, ":kind", kind);
	db_bind_text(stmt, ":what", what);
	return db_run(db, stmt, NULL, err);
}

static int64_t newest(void *app, struct err *err)
{
	struct fixture *fixture = app;
	AUTO_STMT *stmt = db_prepare(fixture->db, sql[NEWEST], err);
	if (stmt == NULL || db_step(fixture->db, stmt, err) != 1)
		return -1;
	return sqlite3_column_int64(stmt, 0);
}

/* --- tasks that ended ---------------------------------------------------------------------- */

static int is_any_untold(struct db *db, int64_t now, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[ENDED], err);
	if (stmt == NULL)
		return -1;
	db_bind_int(stmt, ":now", now);
	return db_step(db, stmt, err);
}

static bool tell(struct db *db, int64_t now, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[TELL_ENDED], err);
	if (stmt == NULL)
		return false;
	db_bind_int(stmt, ":kind", EVENT_TASK);
	db_bind_int(stmt, ":now", now);
	return db_run(db, stmt, NULL, err);
}

static bool mark(struct db *db, int64_t now, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[MARK_ENDED], err);
	if (stmt == NULL)
		return false;
	db_bind_int(stmt, ":now", now);
	return db_run(db, stmt, NULL, err);
}

static bool tell_ended(struct db *db, struct err *err)
{
	int64_t now = clock_wall_ms();
	int any = is_any_untold(db, now, err);
	if (any <= 0)
		return any == 0;
	AUTO_TX tx = TX_INIT;
	return db_begin(db, &tx, err) && tell(db, now, err) && mark(db, now, err) &&
	       db_commit(&tx, err);
}

/* --- reading ------------------------------------------------------------------------------- */

struct event {
	int64_t number;
	enum event_kind kind;
	char *what;
};

/* 1, 0 when there is none, -1 with err. No statement stays open, since visitors write to clients.
 */
static int next(struct db *db, int64_t after, struct event *event, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[NEXT], err);
	if (stmt == NULL)
		return -1;
	db_bind_int(stmt, ":after", after);
	int rc = db_step(db, stmt, err);
	if (rc == 1) {
		event->number = sqlite3_column_int64(stmt, 0);
		event->kind = (enum event_kind)sqlite3_column_int(stmt, 1);
		event->what = db_column_dup(stmt, 2);
	}
	return rc;
}

static int64_t since(void *app, int64_t after, event_visit *visit, void *ctx, struct err *err)
{
	struct fixture *fixture = app;
	if (!tell_ended(fixture->db, err))
		return -1;
	struct event event;
	int rc;
	while ((rc = next(fixture->db, after, &event, err)) == 1) {
		after = event.number;
		bool goes_on = visit(ctx, event.kind, event.what);
		free(event.what);
		if (!goes_on)
			break;
	}
	return rc < 0 ? -1 : after;
}

/* --- places -------------------------------------------------------------------------------- */

/* A worker serves one request at a time, so its pid names the listener. */
static bool enter(void *app, const char *principal, struct err *err)
{
	struct fixture *fixture = app;
	(void)principal;
	int64_t now = clock_wall_ms();
	AUTO_STMT *stmt = db_prepare(fixture->db, sql[ENTER], err);
	if (stmt == NULL)
		return false;
	db_bind_int(stmt, ":pid", getpid());
	db_bind_int(stmt, ":now", now);
	db_bind_int(stmt, ":until", now + EVENT_LIFE_MS + PLACE_SLACK_MS);
	db_bind_int(stmt, ":max", LISTENERS_MAX);
	int entered = db_change(fixture->db, stmt, err);
	if (entered == 0)
		err_set(err, ERR_BUSY, "%d clients listen already", LISTENERS_MAX);
	return entered == 1;
}

static void leave(void *app, const char *principal)
{
	struct fixture *fixture = app;
	(void)principal;
	struct err err = ERR_INIT;
	AUTO_STMT *stmt = db_prepare(fixture->db, sql[LEAVE], &err);
	if (stmt == NULL)
		return;
	db_bind_int(stmt, ":pid", getpid());
	db_change(fixture->db, stmt, &err); /* else the place is free again after its time */
}

const struct event_source fixture_events = {
	.newest = newest,
	.since = since,
	.listeners_max = LISTENERS_MAX,
	.enter = enter,
	.leave = leave,
};
