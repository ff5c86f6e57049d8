/*
 * Sessions. The row is there before the session and is believed only as far as its socket agrees:
 * whoever finds nobody there ends the row. All that changes a session is done while its lock is
 * held, and looks at the row again when it has it. The lock file goes with the session: an id is
 * never used again, and who opened it before finds by the row that it ended.
 */
#include "box/python_part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/text.h"
#include "box/timeline.h"

#define LOCK_SIZE (sizeof("py-.lock") + ID_LEN)

static void lock_name(char name[static LOCK_SIZE], const char *id)
{
	snprintf(name, LOCK_SIZE, "py-%.*s.lock", ID_LEN, id);
}

/* -1 with ERR_BUSY when somebody else has it. */
static int take_lock(int run_dir_fd, const char *id, struct err *err)
{
	char name[LOCK_SIZE];
	struct err busy = ERR_INIT;
	lock_name(name, id);
	AUTO_FD fd = lock_open(run_dir_fd, name, err);
	if (fd < 0)
		return -1;
	if (lock_take(fd, LOCK_EXCLUSIVE, 0, &busy))
		return TAKE_FD(fd);
	*err = busy;
	if (busy.code != ERR_BUSY)
		return -1;
	err_set(err, ERR_BUSY, "another run of this Python session is going on; nothing was run");
	err_hint(err, "Send the code again when that run has ended. For work at the same time use "
		      "another session (session_id \"new\").");
	return -1;
}

/* Ends what is left of a session, and its row. With its lock held. */
static void end_session(struct app *app, const struct runtime_box *box, const char *id,
			enum python_why why)
{
	char name[LOCK_SIZE];
	struct err err = ERR_INIT;
	kernel_end_session(box, id);
	if (row_python_end(app->db, id, why, clock_wall_ms(), &err) < 0) {
		log_err(LOG_WARN, "python_session_end", &err);
		return; /* the reaper comes back to it */
	}
	lock_name(name, id);
	unlinkat(box->run_dir_fd, name, 0);
}

/* --- what is said of one that ended -------------------------------------------------------- */

static void say_why(struct buf *out, const struct app *app, enum python_why why)
{
	switch (why) {
	case PYTHON_WHY_IDLE:
		buf_printf(out, "it was not used for %lld seconds",
			   (long long)app->conf->python_idle);
		break;
	case PYTHON_WHY_KILLED:
		buf_puts(out, "its code did not react to the interrupt and was killed");
		break;
	case PYTHON_WHY_EXITED:
		buf_puts(out, "its code ended the interpreter");
		break;
	case PYTHON_WHY_CRASHED:
		buf_puts(out, "its interpreter crashed");
		break;
	case PYTHON_WHY_LOST:
	case PYTHON_WHY_NONE:
	case PYTHON_WHY__MAX:
		buf_puts(out, "its processes went away: the sandbox was stopped, or something in "
			      "it ended them");
		break;
	}
}

/* ERR_GONE. Always false. */
static bool gone(struct app *app, const struct python_row *session, struct err *err)
{
	AUTO_BUF why = BUF_INIT;
	AUTO_SANDBOX_ROW sandbox = {0};
	char ended[CLOCK_RFC3339_LEN];
	clock_rfc3339(session->ended_at, ended);
	say_why(&why, app, session->why);
	if (row_sandbox_any(app->db, session->sandbox_id, &sandbox, err) < 0)
		return false;
	if (sandbox.state != SANDBOX_LIVE) {
		err_set(err, ERR_GONE,
			"Python session %s ended at %s: %s. Its sandbox was removed since; nothing "
			"was run",
			session->id, ended, buf_str(&why));
		return err_hint(err, "Begin a new one with session_id \"new\".");
	}
	err_set(err, ERR_GONE,
		"Python session %s ended at %s: %s. Its variables are lost, its files are still in "
		"sandbox %s; nothing was run",
		session->id, ended, buf_str(&why), sandbox.name);
	return err_hint(err,
			"Begin a new one with session_id \"new\" and sandbox \"%s\", and run "
			"again what made the variables that you need.",
			sandbox.name);
}

static bool unknown(const char *id, struct err *err)
{
	AUTO_BUF shown = BUF_INIT;
	text_quote(&shown, id, strlen(id), 64);
	err_set(err, ERR_NOT_FOUND, "there is no Python session \"%s\"; nothing was run",
		buf_str(&shown));
	return err_hint(err, "Give the session_id of an earlier result, or \"new\" to begin a "
			     "session. One that ended is forgotten after a while.");
}

/* Nobody was found where the session should be. With its lock held. ERR_GONE; always false. */
static bool note_gone(struct app *app, const struct runtime_box *box, struct python_row *session,
		      struct err *err)
{
	struct timeline timeline;
	if (!timeline_read(app, &timeline, err))
		return false;
	bool idle = timeline_age(&timeline, session->last_used_at) >= app->conf->python_idle * 1000;
	session->why = idle ? PYTHON_WHY_IDLE : PYTHON_WHY_LOST;
	session->ended_at = timeline.now;
	end_session(app, box, session->id, session->why);
	return gone(app, session, err);
}

bool python_find(struct app *app, const char *principal, const char *session_id,
		 struct python_row *session, struct err *err)
{
	AUTO_SANDBOX_ROW sandbox = {0};
	int rc = id_is_valid(session_id)
			 ? row_python_by_id(app->db, principal, session_id, session, err)
			 : 0;
	if (rc != 1)
		return rc == 0 && unknown(session_id, err);
	if (session->ended_at > 0)
		return gone(app, session, err);
	if (row_sandbox_any(app->db, session->sandbox_id, &sandbox, err) < 0)
		return false;
	if (sandbox.state == SANDBOX_LIVE)
		return true;
	session->why = PYTHON_WHY_LOST;
	session->ended_at = sandbox.ended_at;
	return gone(app, session, err);
}

/* --- runs ---------------------------------------------------------------------------------- */

static enum python_why why_of(const struct kernel_run *run)
{
	if (run->timed_out || run->cancelled)
		return PYTHON_WHY_KILLED;
	switch (run->end) {
	case KERNEL_END_EXIT:
	case KERNEL_END_DONE:
	case KERNEL_END_EXCEPTION:
		return PYTHON_WHY_EXITED;
	case KERNEL_END_SIGNAL:
		return PYTHON_WHY_CRASHED;
	case KERNEL_END_LOST:
	case KERNEL_END_NONE:
		break;
	}
	return PYTHON_WHY_LOST;
}

/* After a run in a session. One whose end was not seen is not trusted to live. */
static void settle(struct python_work *work, const char *id)
{
	struct err err = ERR_INIT;
	struct app *app = work->app;
	struct python_result *result = work->result;
	if (result->run.state != KERNEL_STATE_KEPT) {
		end_session(app, &work->use->box, id, why_of(&result->run));
		return;
	}
	memcpy(result->session_id, id, sizeof(result->session_id));
	if (row_python_touch(app->db, id, clock_wall_ms(), &err) < 0)
		log_err(LOG_WARN, "python_session_touch", &err);
}

bool python_run_new(struct app *app, const char *principal, const struct sandbox_row *row,
		    struct sandbox_use *use, const struct python_options *options,
		    const struct python_stage *staged, kernel_tick *tick, void *ctx,
		    struct python_result *result, struct err *err)
{
	struct python_work work = {app, row, use, options, staged, tick, ctx, result, {0, 0}};
	if (!python_work_check(&work, err))
		return false;
	int64_t now = clock_wall_ms();
	struct python_row session = {.created_at = now, .last_used_at = now};
	id_make(session.id);
	memcpy(session.sandbox_id, row->id, sizeof(session.sandbox_id));
	/* The reaper leaves alone what is locked. */
	AUTO_FD lock = take_lock(use->run_dir_fd, session.id, err);
	if (lock < 0)
		return sandbox_explain(use, err);
	int rc = row_python_insert(app->db, &session, principal, err);
	if (rc != 1)
		return rc == 0 && sandbox_gone(row, err);
	if (!python_work_fresh(&work, session.id, err)) {
		end_session(app, &use->box, session.id, PYTHON_WHY_LOST);
		return false;
	}
	settle(&work, session.id);
	python_work_end(&work);
	return true;
}

/* The session may go on any time, so it is none that ended. Always false. */
static bool not_taken(const struct sandbox_row *row, struct err *err)
{
	return err_hint(err,
			"Something in the sandbox may have stopped this session. If it stays so, "
			"begin a new one with session_id \"new\" and sandbox \"%s\", and run again "
			"what made the variables that you need.",
			row->name);
}

/* With the lock held: whether the session is still to be tried. */
static bool look_again(const struct python_work *work, const char *id, struct python_row *now,
		       struct err *err)
{
	char name[LOCK_SIZE];
	int rc = row_python_by_id(work->app->db, work->row->principal, id, now, err);
	if (rc == 1 && now->ended_at == 0)
		return true;
	if (rc < 0)
		return false;
	/* Opening the lock may have made it anew. */
	lock_name(name, id);
	unlinkat(work->use->run_dir_fd, name, 0);
	return rc == 1 ? gone(work->app, now, err) : unknown(id, err);
}

bool python_run_in(struct app *app, const struct python_row *session, const struct sandbox_row *row,
		   struct sandbox_use *use, const struct python_options *options,
		   const struct python_stage *staged, kernel_tick *tick, void *ctx,
		   struct python_result *result, struct err *err)
{
	struct python_work work = {app, row, use, options, staged, tick, ctx, result, {0, 0}};
	struct python_row now;
	struct err lost = ERR_INIT;
	if (!python_work_check(&work, err))
		return false;
	AUTO_FD lock = take_lock(use->run_dir_fd, session->id, err);
	if (lock < 0)
		return sandbox_explain(use, err);
	if (!look_again(&work, session->id, &now, err))
		return false;
	AUTO_FD fd = kernel_connect_session(&use->box, session->id, &lost);
	if (fd < 0 || !python_work_over(&work, fd, &lost)) {
		if (lost.code == ERR_LOST)
			return note_gone(app, &use->box, &now, err);
		*err = lost;
		return result->run.not_taken && not_taken(row, err);
	}
	settle(&work, session->id);
	python_work_end(&work);
	return true;
}

/* --- the reaper's part --------------------------------------------------------------------- */

/* With the lock held, or where nobody can hold one. The row first: who dies then leaves a session
 * that ends by itself. */
static int end_idle(struct app *app, int run_dir_fd, const struct python_row *session,
		    struct err *err)
{
	char name[LOCK_SIZE];
	int rc = row_python_end_idle(app->db, session, clock_wall_ms(), err);
	if (rc != 1 || run_dir_fd < 0)
		return rc;
	struct runtime_box box = {.run_dir_fd = run_dir_fd};
	kernel_end_session(&box, session->id);
	lock_name(name, session->id);
	unlinkat(run_dir_fd, name, 0);
	return 1;
}

bool python_is_used(const struct app *app, const struct python_row *session)
{
	char name[LOCK_SIZE];
	char path[ID_LEN + 1 + LOCK_SIZE];
	lock_name(name, session->id);
	snprintf(path, sizeof(path), "%.*s/%s", ID_LEN, session->sandbox_id, name);
	AUTO_FD fd = openat(app->spool.run_fd, path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	/* A lock that cannot be looked at counts as held. */
	return fd >= 0 ? lock_is_held(fd) != 0 : errno != ENOENT && errno != ENOTDIR;
}

int python_end_idle(struct app *app, const struct python_row *session, struct err *err)
{
	struct err trouble = ERR_INIT;
	AUTO_FD dir = spool_find_run_dir(&app->spool, session->sandbox_id, &trouble);
	if (dir < 0 && trouble.code == ERR_NOT_FOUND)
		return end_idle(app, -1, session, err);
	AUTO_FD lock = dir < 0 ? -1 : take_lock(dir, session->id, &trouble);
	if (lock >= 0)
		return end_idle(app, dir, session, err);
	if (trouble.code == ERR_BUSY)
		return 0;
	*err = trouble;
	return -1;
}
