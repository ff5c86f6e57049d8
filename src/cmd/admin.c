/*
 * spoolbox: the operator's program. Holds the table of subcommands and main: it finds the
 * subcommand, loads the settings, gives root up, and calls.
 */
#include "cmd/admin.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

static const struct admin_command commands[] = {
	{"serve", "[--with-parent]", "serve MCP and file links over HTTP with a private lighttpd",
	 false, admin_serve},
	{"stdio", "", "speak MCP over standard input and output, for a client that starts it",
	 false, admin_stdio},
	{"token", "", "print the bearer token; make it when there is none", false, admin_token},
	{"doctor", "", "check whether this machine can run sandboxes, and say what to do", false,
	 admin_doctor},
	{"ls", "[--json]", "list the sandboxes", false, admin_ls},
	{"stop", "--all | NAME|ID...", "end what runs in sandboxes; their files stay", false,
	 admin_stop},
	{"config", "[--json | --readme]",
	 "print all settings, their values and where they are from", true, admin_config},
};

static void print_usage(FILE *out)
{
	fputs("usage: spoolbox [--user NAME] SUBCOMMAND\n\n", out);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		fprintf(out, "  %-8s %-20s %s\n", commands[i].name, commands[i].usage,
			commands[i].help);
	fputs("\n  --user NAME    when started as root: change to this user first\n"
	      "                 (default: the owner of the spool)\n"
	      "  --version      print the version\n"
	      "\nSettings come from the environment (SMCP_...) and from the file SMCP_ENV_FILE,\n"
	      "else " SYSCONFDIR "/spoolbox.env.\n",
	      out);
}

int admin_fail(const struct err *err)
{
	fprintf(stderr, "spoolbox: %s\n", err_message(err));
	if (err_next(err)[0] != '\0')
		fprintf(stderr, "  %s\n", err_next(err));
	if (err->trace[0] != '\0' || err->sys != 0)
		fprintf(stderr, "  (%s%s%s)\n", err->trace,
			err->trace[0] != '\0' && err->sys != 0 ? ": " : "",
			err->sys != 0 ? strerror(err->sys) : "");
	return ADMIN_FAILED;
}

int admin_misused(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	fputs("spoolbox: ", stderr);
	vfprintf(stderr, fmt, args);
	fputs("\n\n", stderr);
	va_end(args);
	print_usage(stderr);
	return ADMIN_USAGE;
}

static const struct admin_command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static int run_command(const struct admin_command *command, const char *user, int argc, char **argv)
{
	struct err err = ERR_INIT;
	struct conf conf;
	int status;
	bool loaded = conf_load(&conf, &err);
	/* On standard error, since standard output may be read by programs. doctor reports it
	 * itself. */
	if (conf.unknown != NULL && command->run != admin_doctor)
		fprintf(stderr,
			"spoolbox: there is no setting of the name %s; is it a typing error?\n",
			conf.unknown);
	if (!loaded || (!command->any_user && !admin_become(&conf, user, &err))) {
		status = admin_fail(&err);
	} else {
		struct admin admin = {.conf = &conf, .user = user};
		optind = 0; /* a subcommand parses its own options from the start, */
		opterr = 0; /* and says itself what it does not know */
		status = command->run(&admin, argc, argv);
	}
	conf_finish(&conf);
	return status;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"user", required_argument, NULL, 'u'},
		{"version", no_argument, NULL, 'V'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	const char *user = NULL;
	int c;
	log_open("spoolbox", LOG_WARN);
	while ((c = getopt_long(argc, argv, "+hV", options, NULL)) != -1) {
		switch (c) {
		case 'u':
			user = optarg;
			break;
		case 'V':
			puts("spoolbox " PACKAGE_VERSION);
			return ADMIN_OK;
		case 'h':
			print_usage(stdout);
			return ADMIN_OK;
		default:
			print_usage(stderr);
			return ADMIN_USAGE;
		}
	}
	if (optind == argc)
		return admin_misused("a subcommand is missing");
	const struct admin_command *command = find_command(argv[optind]);
	if (command == NULL)
		return admin_misused("there is no subcommand \"%s\"", argv[optind]);
	return run_command(command, user, argc - optind, argv + optind);
}
