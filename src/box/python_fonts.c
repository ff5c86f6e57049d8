/*
 * fonts/made is touched before the program is started: it is tried once for each state of the
 * machine, however it ends. Two at once do the same work twice and nothing worse.
 */
#include "box/python_fonts.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "base/log.h"
#include "base/proc.h"
#include "run/kernel.h"

#define MADE_NAME "made"
#define PROGRAM   "fonts.py"         /* beside the driver */
#define PYTHON    "/usr/bin/python3" /* as src/run/kernel.c */

/* What the list is made of. The cache of fontconfig changes whenever Debian installs a font. */
static const char *const sources[] = {"/usr/lib/python3/dist-packages/matplotlib",
				      "/usr/share/fonts", "/usr/local/share/fonts",
				      "/var/cache/fontconfig"};

static bool is_newer(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* The first source is matplotlib itself: without it there is nothing to make. Stamps from the
 * future are those of a clock that was wrong: one of ours says nothing, one of a source is no
 * reason. */
static bool is_due(int fonts_fd)
{
	struct stat made, source;
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (stat(sources[0], &source) != 0)
		return false;
	if (fstatat(fonts_fd, MADE_NAME, &made, AT_SYMLINK_NOFOLLOW) != 0 ||
	    is_newer(&made.st_mtim, &now))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(sources); i++)
		if (stat(sources[i], &source) == 0 && is_newer(&source.st_mtim, &made.st_mtim) &&
		    !is_newer(&source.st_mtim, &now))
			return true;
	return false;
}

static bool note_made(int fonts_fd, struct err *err)
{
	AUTO_FD fd = openat(fonts_fd, MADE_NAME, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || futimens(fd, NULL) != 0)
		return err_sys(err, "fonts/" MADE_NAME);
	return true;
}

static bool start(const struct app *app, struct err *err)
{
	AUTO_BUF program = BUF_INIT;
	if (!proc_find(KERNEL_DIR_NAME, &program, err))
		return false;
	buf_puts(&program, "/" PROGRAM);
	const char *const argv[] = {PYTHON, "-I", buf_str(&program), app->fonts_path, NULL};
	const char *const env[] = {"HOME=/nonexistent", "PATH=/usr/bin:/bin", "LANG=C.UTF-8", NULL};
	struct proc_spec spec = {.argv = argv, .envp = env, .detached = true};
	return proc_spawn(&spec, err) >= 0;
}

void python_fonts_refresh(const struct app *app)
{
	struct err err = ERR_INIT;
	AUTO_FD fonts_fd = spool_fonts(&app->spool, &err);
	bool ok = fonts_fd >= 0;
	if (ok && is_due(fonts_fd))
		ok = note_made(fonts_fd, &err) && start(app, &err);
	if (!ok)
		log_err(LOG_WARN, "python_fonts", &err);
}
