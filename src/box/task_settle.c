/* See task_settle.h. Nothing here waits for longer than another process settles. */
#include "box/task_settle.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/task_dir.h"

#define BUSY_TRIES 50 /* somebody else settles the same task: two small files and an fsync */
#define BUSY_MS    10

static const char lost_reason[] =
	"what looks after it was killed (or the machine was restarted), and the command was ended "
	"with it; how far it came is not known";
static const char unstarted_reason[] = "it never started: the server was stopped at that moment";
static const char unadopted_reason[] =
	"the server was stopped while the command became a background task, and the command was "
	"ended with it; how far it came is not known";

/* For people: why the end of a task is not known. */
struct reasons {
	const char *lost, *unstarted;
};

/* 1; 0 when the row is gone; -1 with err. */
static int reload(struct app *app, struct task_row *row, struct err *err)
{
	struct task_row now = {.id = ""};
	int rc = row_task_by_id(app->db, row->principal, row->id, &now, err);
	if (rc == 1) {
		task_row_finish(row);
		*row = now;
	}
	return rc;
}

static bool is_gone(const struct task_row *row, struct err *err)
{
	err_set(err, ERR_NOT_FOUND,
		"task %s is not there any more: it could not be started, or it was finished and "
		"made room for others",
		row->id);
	return err_hint(err, "list_jobs shows the tasks that there are.");
}

/* Puts the outcome into the database. When another one is there already, that is the outcome; when
 * the row had to make room meanwhile, this one is. */
static bool finish_row(struct app *app, struct task_row *row, struct err *err)
{
	int rc = row_task_finish(app->db, row, err);
	return rc == 1 || (rc == 0 && reload(app, row, err) >= 0);
}

static void set_unknown(struct task_row *row, const char *reason)
{
	row->state = TASK_UNKNOWN;
	row->has_exit_code = false;
	row->exit_code = 0;
	row->signal = 0;
	free(row->reason);
	row->reason = xstrdup(reason);
	row->finished_at = clock_wall_ms();
}

/* --- a task with a directory --------------------------------------------------------------- */

/* With the lock held. Whatever result is there in the end is the one that counts. */
static bool settle_lost(struct app *app, struct task_row *row, int dirfd, const char *reason,
			struct err *err)
{
	enum task_verdict verdict = task_dir_verdict(dirfd, row, err);
	if (verdict == TASK_VERDICT_NONE)
		return false;
	if (verdict != TASK_VERDICT_FINAL) { /* the lock that it sees held is ours */
		log_event(LOG_WARN, "task_lost", "id=%s", row->id);
		set_unknown(row, reason);
		if (!task_dir_write_result(dirfd, row, err))
			return false;
	}
	return finish_row(app, row, err);
}

/* 1 settled, or it runs; 0 look again; -1 with err. */
static int settle_once(struct app *app, struct task_row *row, int dirfd, const char *reason,
		       struct err *err)
{
	struct err busy = ERR_INIT;
	switch (task_dir_verdict(dirfd, row, err)) {
	case TASK_VERDICT_RUNNING:
		return 1;
	case TASK_VERDICT_FINAL:
		return finish_row(app, row, err) ? 1 : -1;
	case TASK_VERDICT_NONE:
		return -1;
	case TASK_VERDICT_LOST:
		break;
	}
	AUTO_FD lock = task_dir_take_lock(dirfd, &busy);
	if (lock >= 0)
		return settle_lost(app, row, dirfd, reason, err) ? 1 : -1;
	if (busy.code == ERR_BUSY)
		return 0;
	*err = busy;
	return -1;
}

static bool settle_visible(struct app *app, struct task_row *row, int dirfd, const char *reason,
			   struct err *err)
{
	for (int i = 0; i < BUSY_TRIES; i++) {
		int rc = settle_once(app, row, dirfd, reason, err);
		if (rc != 0)
			return rc == 1;
		clock_sleep_ms(BUSY_MS);
	}
	return err_set(err, ERR_BUSY, "the end of task %s is just being written down", row->id);
}

/* --- a task without one -------------------------------------------------------------------- */

/* A clock that was set back makes a row look as if it came from the future. */
static bool is_young(const struct task_row *row)
{
	int64_t age_ms = clock_wall_ms() - row->created_at;
	return age_ms < TASK_STARTING_MS && age_ms > -TASK_STARTING_MS;
}

static bool never_started(struct app *app, struct task_row *row, const char *reason,
			  struct err *err)
{
	log_event(LOG_WARN, "task_unstarted", "id=%s", row->id);
	set_unknown(row, reason);
	return finish_row(app, row, err);
}

/* 1 settled, or it is being started; 0: it became visible; -1 with err. Who holds the lock of
 * .new-<id> may rename it; nobody else can while it is ours. */
static int settle_new(struct app *app, struct task_row *row, const char *reason, struct err *err)
{
	struct err trouble = ERR_INIT;
	AUTO_FD dirfd = task_dir_open_new(&app->spool, row->id, &trouble);
	if (dirfd < 0 && trouble.sys != ENOENT) {
		*err = trouble;
		return -1;
	}
	AUTO_FD lock = dirfd < 0 ? -1 : task_dir_take_lock(dirfd, &trouble);
	if (dirfd >= 0 && lock < 0 && trouble.code == ERR_BUSY)
		return 1;
	AUTO_FD visible = task_dir_open(&app->spool, row->id, &trouble);
	if (visible >= 0)
		return 0;
	if (trouble.code != ERR_NOT_FOUND) {
		*err = trouble;
		return -1;
	}
	if (!task_dir_discard(&app->spool, row->id, err))
		return -1;
	return never_started(app, row, reason, err) ? 1 : -1;
}

static bool settle_hidden(struct app *app, struct task_row *row, const struct reasons *why,
			  struct err *err)
{
	int rc = settle_new(app, row, why->unstarted, err);
	if (rc != 0)
		return rc == 1;
	AUTO_FD dirfd = task_dir_open(&app->spool, row->id, err);
	return dirfd >= 0 && settle_visible(app, row, dirfd, why->lost, err);
}

/* --- both ---------------------------------------------------------------------------------- */

static bool settle(struct app *app, struct task_row *row, bool dead, const struct reasons *why,
		   struct err *err)
{
	struct err missing = ERR_INIT;
	if (row->state != TASK_RUNNING)
		return true;
	AUTO_FD dirfd = task_dir_open(&app->spool, row->id, &missing);
	if (dirfd < 0 && missing.code != ERR_NOT_FOUND) {
		*err = missing;
		return false;
	}
	/* Of a start that was taken back, or a task that made room, the row is gone as well. */
	if (dirfd < 0 || row->started_at == 0) {
		int rc = reload(app, row, err);
		if (rc <= 0)
			return rc == 0 && is_gone(row, err);
		if (row->state != TASK_RUNNING)
			return true;
	}
	if (dirfd >= 0)
		return settle_visible(app, row, dirfd, why->lost, err);
	return (!dead && is_young(row)) || settle_hidden(app, row, why, err);
}

bool task_settle(struct app *app, struct task_row *row, struct err *err)
{
	bool adopted = row->origin == TASK_ORIGIN_EXEC;
	const struct reasons why = {lost_reason, adopted ? unadopted_reason : unstarted_reason};
	return settle(app, row, false, &why, err);
}

bool task_settle_unstarted(struct app *app, struct task_row *row, const char *reason,
			   struct err *err)
{
	const struct reasons why = {lost_reason, reason};
	return settle(app, row, true, &why, err);
}

bool task_settle_killed(struct app *app, struct task_row *row, const char *reason, struct err *err)
{
	const struct reasons why = {reason, reason};
	return settle(app, row, false, &why, err);
}

/* --- a look -------------------------------------------------------------------------------- */

/* By its directory, visible or not. A failed look tells nothing. */
static enum task_due due_of(int dirfd, enum task_due when_lost, struct err *err)
{
	AUTO_TASK_ROW outcome = {.id = ""};
	switch (task_dir_verdict(dirfd, &outcome, err)) {
	case TASK_VERDICT_FINAL:
		return TASK_DUE_BEHIND;
	case TASK_VERDICT_LOST:
		return when_lost;
	case TASK_VERDICT_RUNNING:
	case TASK_VERDICT_NONE:
		break;
	}
	return TASK_DUE_NONE;
}

enum task_due task_settle_due(const struct app *app, const struct task_row *row, struct err *err)
{
	struct err missing = ERR_INIT;
	AUTO_FD dirfd = task_dir_open(&app->spool, row->id, &missing);
	if (dirfd >= 0)
		return due_of(dirfd, TASK_DUE_LOST, err);
	if (missing.code != ERR_NOT_FOUND) {
		*err = missing;
		return TASK_DUE_NONE;
	}
	if (is_young(row))
		return TASK_DUE_NONE;
	AUTO_FD new_fd = task_dir_open_new(&app->spool, row->id, &missing);
	if (new_fd >= 0)
		return due_of(new_fd, TASK_DUE_UNSTARTED, err);
	if (missing.sys == ENOENT)
		return TASK_DUE_UNSTARTED;
	*err = missing;
	return TASK_DUE_NONE;
}
