/*
 * A lock file below sessions/ for each session, named by its id. It is taken while the guard is
 * held, and sweepers look under the guard as well: so nobody sees a file whose owner has not come
 * to lock it yet. An id is never used again, so a session found dead stays dead; its file goes when
 * nothing is left to do for it.
 */
#include "box/stdio_session.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/lock.h"
#include "base/log.h"
#include "box/sandbox.h"

#define GUARD         "guard"
#define GUARD_WAIT_MS 5000 /* it is held for a few system calls */

/* -1 with err. Closing it gives the guard back. */
static int take_guard(int dir_fd, struct err *err)
{
	AUTO_FD guard = lock_open(dir_fd, GUARD, err);
	return guard >= 0 && lock_take(guard, LOCK_EXCLUSIVE, GUARD_WAIT_MS, err) ? TAKE_FD(guard)
										  : -1;
}

/* --- begin and end ------------------------------------------------------------------------- */

bool stdio_session_begin(struct app *app, struct stdio_session *session, struct err *err)
{
	*session = (struct stdio_session)STDIO_SESSION_INIT;
	session->dir_fd = spool_sessions(&app->spool, err);
	if (session->dir_fd < 0)
		return false;
	id_make(session->id);
	AUTO_FD guard = take_guard(session->dir_fd, err);
	AUTO_FD lock = guard < 0 ? -1 : lock_open(session->dir_fd, session->id, err);
	if (lock < 0 || !lock_take(lock, LOCK_EXCLUSIVE, 0, err)) {
		util_close(&session->dir_fd);
		return false;
	}
	session->lock_fd = TAKE_FD(lock);
	app->session_id = session->id;
	return true;
}

/* until_ms as in sandbox_end_session. */
static bool clean_up(struct app *app, int dir_fd, const char *id, int64_t until_ms, struct err *err)
{
	if (!sandbox_end_session(app, id, until_ms, err))
		return false;
	return unlinkat(dir_fd, id, 0) == 0 || errno == ENOENT || err_sys(err, "unlink a session");
}

void stdio_session_end(struct app *app, struct stdio_session *session)
{
	struct err err = ERR_INIT;
	if (session->lock_fd >= 0 && !clean_up(app, session->dir_fd, session->id, 0, &err))
		log_err(LOG_WARN, "session_end", &err);
	app->session_id = NULL;
	util_close(&session->lock_fd);
	util_close(&session->dir_fd);
}

/* --- sweep --------------------------------------------------------------------------------- */

static bool is_dead(int dir_fd, const char *name)
{
	AUTO_FD fd = id_is_valid(name) ? openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC) : -1;
	/* A lock that cannot be looked at counts as held. */
	return fd >= 0 && lock_is_held(fd) == 0;
}

/* The ids of the dead, each with its NUL. */
static bool find_dead(int dir_fd, struct buf *ids, struct err *err)
{
	AUTO_FD guard = take_guard(dir_fd, err);
	if (guard < 0)
		return false;
	AUTO_DIR *dir = fs_open_listing(dir_fd, ".");
	if (dir == NULL)
		return err_sys(err, "read sessions");
	for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
		if (is_dead(dir_fd, entry->d_name))
			buf_append(ids, entry->d_name, ID_LEN + 1);
	return true;
}

void stdio_session_sweep(struct app *app, int64_t budget_ms)
{
	struct err err = ERR_INIT;
	AUTO_BUF dead = BUF_INIT;
	int64_t until_ms = clock_mono_ms() + budget_ms;
	AUTO_FD dir_fd = spool_sessions(&app->spool, &err);
	if (dir_fd < 0 || !find_dead(dir_fd, &dead, &err))
		log_err(LOG_WARN, "session_sweep", &err);
	for (size_t i = 0; i < dead.len && clock_mono_ms() < until_ms; i += ID_LEN + 1) {
		err = (struct err)ERR_INIT;
		if (!clean_up(app, dir_fd, dead.data + i, until_ms, &err))
			log_err(LOG_WARN, "session_sweep", &err);
	}
}
