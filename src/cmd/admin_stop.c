/*
 * spoolbox stop: ends what runs in sandboxes. Rows and files stay; the next use starts a sandbox
 * again. --all goes by the run directories of the spool, so it also reaches what no row tells of.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>

#include "base/fs.h"
#include "base/id.h"
#include "box/sandbox.h"
#include "cmd/admin.h"

static bool stop_one(const struct app *app, const char *id, int *stopped, struct err *err)
{
	AUTO_FD dir =
		openat(app->spool.run_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return errno == ENOENT ? true : err_sys(err, "open the run directory of %s", id);
	struct runtime_box box = {.run_dir_fd = dir, .workspace_path = ""};
	int alive = app->runtime->alive(&box, err);
	if (alive <= 0)
		return alive == 0;
	if (!app->runtime->stop(&box, err))
		return err_in(err, "stop %s", id);
	++*stopped;
	return true;
}

static bool stop_all(const struct app *app, int *stopped, struct err *err)
{
	AUTO_DIR *dir = fs_open_listing(app->spool.run_fd, ".");
	if (dir == NULL)
		return err_sys(err, "read the run directory");
	bool ok = true;
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
		if (id_is_valid(entry->d_name))
			ok = stop_one(app, entry->d_name, stopped, err) && ok;
	return ok;
}

static bool stop_named(struct app *app, char **names, int *stopped, struct err *err)
{
	const char *principal = admin_principal(app);
	for (; *names != NULL; names++) {
		AUTO_SANDBOX_ROW row = {0};
		if (principal == NULL)
			err_set(err, ERR_NOT_FOUND, "there are no sandboxes yet");
		if (principal == NULL || !sandbox_find(app, principal, *names, &row, err))
			return err_hint(err, "see what there is: spoolbox ls");
		if (!stop_one(app, row.id, stopped, err))
			return false;
	}
	return true;
}

int admin_stop(const struct admin *admin, int argc, char **argv)
{
	static const struct option options[] = {{"all", no_argument, NULL, 'a'},
						{NULL, 0, NULL, 0}};
	struct err err = ERR_INIT;
	struct app app;
	bool all = false;
	int c, stopped = 0;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == '?')
			return admin_misused("%s has no option \"%s\"", argv[0], argv[optind - 1]);
		all = true;
	}
	if (all != (optind == argc))
		return admin_misused("stop wants --all or the names of sandboxes");
	if (!app_open(&app, admin->conf, &err))
		return admin_fail(&err);
	bool ok = all ? stop_all(&app, &stopped, &err)
		      : stop_named(&app, argv + optind, &stopped, &err);
	app_close(&app);
	printf("%d stopped\n", stopped);
	return ok ? ADMIN_OK : admin_fail(&err);
}
