/* See incarnation.h. */
#include "box/incarnation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/lock.h"
#include "base/log.h"

/* A driver starts within a few seconds or gives up; whoever waits longer waits for a process that
 * hangs. */
#define END_WAIT_MS 10000

/* A directory is removed once; what is made anew goes at the next look at its row. */
#define OPEN_ATTEMPTS 3

void incarnation_box(const struct app *app, const struct sandbox_row *row, int run_dir_fd,
		     const char *workspace_path, struct runtime_box *box)
{
	*box = (struct runtime_box){
		.run_dir_fd = run_dir_fd,
		.workspace_path = workspace_path,
		.fonts_path = app->fonts_path,
		.inet = strcmp(row->network, "loopback") == 0,
		.tmp_bytes = app->conf->tmp_size,
	};
}

int incarnation_open_use(const struct app *app, const char *id, int *run_dir_fd, struct err *err)
{
	struct err trouble = ERR_INIT;
	for (int i = 0; i < OPEN_ATTEMPTS; i++) {
		AUTO_FD dir = spool_run_dir(&app->spool, id, &trouble);
		AUTO_FD fd = dir < 0 ? -1 : lock_open(dir, "use", &trouble);
		if (fd >= 0) {
			*run_dir_fd = TAKE_FD(dir);
			return TAKE_FD(fd);
		}
		/* Removed between the two opens: once more, and the caller will see why. */
		if (trouble.sys != ENOENT)
			break;
	}
	*err = trouble;
	return -1;
}

bool incarnation_is_used(const struct app *app, const char *id)
{
	char path[ID_LEN + 8];
	snprintf(path, sizeof(path), "%s/use", id);
	AUTO_FD fd = openat(app->spool.run_fd, path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	/* A lock that cannot be looked at counts as held: doubt never ends a sandbox. */
	return fd >= 0 ? lock_is_held(fd) != 0 : errno != ENOENT && errno != ENOTDIR;
}

int incarnation_is_up(const struct app *app, const struct sandbox_row *row, struct err *err)
{
	struct err missing = ERR_INIT;
	AUTO_FD dir = spool_find_run_dir(&app->spool, row->id, &missing);
	if (dir < 0 && missing.code == ERR_NOT_FOUND)
		return 0;
	if (dir < 0) {
		*err = missing;
		return -1;
	}
	AUTO_FREE char *path = spool_workspace_path(&app->spool, app->conf, row->files_id);
	struct runtime_box box;
	incarnation_box(app, row, dir, path, &box);
	return app->runtime->alive(&box, err);
}

int incarnation_lock_start(int run_dir_fd, int64_t timeout_ms, struct err *err)
{
	AUTO_FD fd = lock_open(run_dir_fd, "start", err);
	if (fd < 0)
		return -1;
	if (lock_take(fd, LOCK_EXCLUSIVE, timeout_ms, err))
		return TAKE_FD(fd);
	if (err->code == ERR_BUSY) {
		err_set(err, ERR_BUSY,
			"the sandbox is being started or stopped by another call for more "
			"than %lld s; nothing was changed",
			(long long)(timeout_ms / 1000));
		err_hint(err, "Try the same call again.");
	}
	return -1;
}

bool incarnation_end(const struct app *app, const struct sandbox_row *row, bool *was_running,
		     struct err *err)
{
	struct err trouble = ERR_INIT;
	if (was_running != NULL)
		*was_running = false;
	AUTO_FD dir = spool_find_run_dir(&app->spool, row->id, &trouble);
	if (dir < 0 && trouble.code == ERR_NOT_FOUND)
		return true;
	AUTO_FD lock = dir < 0 ? -1 : incarnation_lock_start(dir, END_WAIT_MS, &trouble);
	if (lock < 0 && trouble.sys == ENOENT)
		return true; /* another process ended it and removed the directory meanwhile */
	if (lock < 0 && trouble.code != ERR_BUSY) {
		*err = trouble;
		return false;
	}
	/* Somebody hangs in a start. Stopping needs no lock, and a starter looks at the row once
	 * more when it is through, so go on. */
	if (lock < 0)
		log_err(LOG_WARN, "sandbox_end_without_lock", &trouble);

	AUTO_FREE char *path = spool_workspace_path(&app->spool, app->conf, row->files_id);
	struct runtime_box box;
	incarnation_box(app, row, dir, path, &box);
	int up = app->runtime->alive(&box, &trouble);
	if (!app->runtime->stop(&box, err))
		return err_in(err, "end of sandbox %s", row->id);
	if (was_running != NULL)
		*was_running = up == 1;
	return spool_retire_run(&app->spool, row->id, err);
}
