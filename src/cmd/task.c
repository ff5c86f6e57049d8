/*
 * spoolbox-task: the supervisor of one task. Started by a worker, with the descriptors of
 * box/supervise.h; not for people.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/proc.h"
#include "box/app.h"
#include "box/supervise.h"

enum { EXIT_DONE = 0, EXIT_FAULT = 1, EXIT_USAGE = 2 };

static bool run(struct conf *conf, const char *id, bool adopted)
{
	struct err err = ERR_INIT;
	struct app app = {.spool = SPOOL_INIT};
	enum log_level level;
	if (!conf_load(conf, &err) || !app_open(&app, conf, &err)) {
		log_err(LOG_ERROR, "task_open", &err);
		supervise_refuse(&err);
		return false;
	}
	/* Nobody rotates tasks.log: only what a human must know goes there. */
	if (log_level_parse(conf->log_level, &level))
		log_open(SUPERVISE_PROGRAM, level < LOG_WARN ? level : LOG_WARN);
	bool ok = supervise(&app, id, adopted, &err);
	if (!ok)
		log_err(LOG_WARN, "task_start", &err);
	app_close(&app);
	return ok;
}

int main(int argc, char **argv)
{
	bool adopted = argc == 3 && strcmp(argv[1], SUPERVISE_ADOPT) == 0;
	const char *id = argv[argc - 1];
	log_open(SUPERVISE_PROGRAM, LOG_WARN);
	proc_raise_open_files();
	if ((argc != 2 && !adopted) || !id_is_valid(id) ||
	    fcntl(SUPERVISE_FD_READY, F_SETFD, FD_CLOEXEC) != 0) {
		log_event(LOG_ERROR, "usage", SUPERVISE_PROGRAM " is started by Spoolbox itself");
		return EXIT_USAGE;
	}
	umask(022); /* of files in workspaces; our own have explicit modes */
	struct conf conf;
	bool ok = run(&conf, id, adopted);
	conf_finish(&conf);
	return ok ? EXIT_DONE : EXIT_FAULT;
}
