/*
 * spoolbox-reaper: one pass of the reaper (box/reap.h), for cron, a timer, or `spoolbox serve`.
 * It needs nothing of its environment but the settings, and no web server.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/num.h"
#include "base/user.h"
#include "box/reap.h"

#define PROGRAM "spoolbox-reaper"
/* Through before the next minute of cron begins; what is left is for the next pass. */
#define BUDGET_S     50
#define BUDGET_MAX_S 86400

enum { EXIT_DONE = 0, EXIT_FAULT = 1, EXIT_USAGE = 2 };

static void print_usage(FILE *out)
{
	fprintf(out,
		"usage: " PROGRAM " [--dry-run] [--budget SECONDS]\n\n"
		"Cleans up once: stops and removes what is idle or over, prunes logs and links, "
		"and\n"
		"repairs what was interrupted. Harmless at any time; started by cron "
		"(contrib/cron)\n"
		"or by spoolbox serve.\n\n"
		"  --dry-run          say what would be done, and change nothing\n"
		"  --budget SECONDS   about how long it may take (default %d); what is left is "
		"done\n"
		"                     by the next pass\n"
		"  --version          print the version\n\n"
		"Exit status: 0 fine, or another pass runs; 1 something failed, or it could not\n"
		"begin; 2 wrong arguments.\n"
		"Settings come from the environment (SMCP_...) and from the file SMCP_ENV_FILE,\n"
		"else " SYSCONFDIR "/spoolbox.env.\n",
		BUDGET_S);
}

/* For whoever reads cron's mail: what is wrong and what to do, beside the log's details. */
static bool fail(const struct err *err)
{
	log_err(LOG_ERROR, "reap_start", err);
	fprintf(stderr, PROGRAM ": no clean-up, nothing was changed: %s\n", err_message(err));
	if (err_next(err)[0] != '\0')
		fprintf(stderr, "  %s\n", err_next(err));
	return false;
}

/* Of a dry run the lines are what was asked for. */
static void open_log(const struct conf *conf, bool dry_run)
{
	enum log_level level = LOG_INFO;
	log_level_parse(conf->log_level, &level);
	log_open(PROGRAM, dry_run && level < LOG_INFO ? LOG_INFO : level);
}

static bool run_pass(struct app *app, const struct reap_options *options)
{
	struct reap_report report;
	struct err err = ERR_INIT;
	if (reap_pass(app, options, &report, &err))
		return true;
	return err.code == ERR_NONE ? false : fail(&err);
}

static bool run(const struct conf *conf, const struct reap_options *options)
{
	struct err err = ERR_INIT;
	struct app app;
	if (conf->unknown != NULL)
		log_event(LOG_WARN, "unknown_settings", "names=%s", conf->unknown);
	if (!user_become_owner(conf->spool, &err) || !app_open(&app, conf, &err))
		return fail(&err);
	bool ok = run_pass(&app, options);
	app_close(&app);
	return ok;
}

static bool load_and_run(const struct reap_options *options)
{
	struct conf conf;
	struct err err = ERR_INIT;
	bool ok = conf_load(&conf, &err);
	if (ok) {
		open_log(&conf, options->dry_run);
		ok = run(&conf, options);
	} else {
		fail(&err);
	}
	conf_finish(&conf);
	return ok;
}

static int misused(const char *what, const char *argument)
{
	fprintf(stderr, PROGRAM ": %s \"%s\"\n\n", what, argument);
	print_usage(stderr);
	return EXIT_USAGE;
}

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, struct reap_options *options)
{
	static const struct option known[] = {
		{"dry-run", no_argument, NULL, 'n'},
		{"budget", required_argument, NULL, 'b'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	int64_t seconds;
	int c;
	opterr = 0;
	while ((c = getopt_long(argc, argv, "h", known, NULL)) != -1) {
		switch (c) {
		case 'n':
			options->dry_run = true;
			break;
		case 'b':
			if (!num_parse_int(optarg, 1, BUDGET_MAX_S, &seconds))
				return misused("--budget takes 1 to 86400 seconds, not", optarg);
			options->budget_ms = seconds * 1000;
			break;
		case 'h':
			print_usage(stdout);
			return EXIT_DONE;
		case 'V':
			puts(PROGRAM " " PACKAGE_VERSION);
			return EXIT_DONE;
		default:
			return misused("wrong or incomplete option", argv[optind - 1]);
		}
	}
	return optind == argc ? -1 : misused("there is no argument", argv[optind]);
}

int main(int argc, char **argv)
{
	struct reap_options options = {.budget_ms = BUDGET_S * 1000};
	log_open(PROGRAM, LOG_INFO);
	signal(SIGPIPE, SIG_IGN); /* a pass goes on when nobody reads what it says */
	umask(022);               /* of files in workspaces; our own have explicit modes */
	int status = parse(argc, argv, &options);
	if (status >= 0)
		return status;
	return load_and_run(&options) ? EXIT_DONE : EXIT_FAULT;
}
