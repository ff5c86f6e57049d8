/*
 * The operator's program: what its subcommands share. Each subcommand is a function in a file
 * of its own and an entry of the table in admin.c; usage and help are printed from that table.
 */
#ifndef SPOOLBOX_CMD_ADMIN_H
#define SPOOLBOX_CMD_ADMIN_H

#include <stdbool.h>

#include "box/app.h"

enum { ADMIN_OK = 0, ADMIN_FAILED = 1, ADMIN_USAGE = 2 };

/* What main hands to a subcommand. */
struct admin {
	struct conf *conf;
	const char *user; /* --user, or NULL */
};

struct admin_command {
	const char *name;
	const char *usage; /* arguments, for the usage line */
	const char *help;  /* one line */
	bool any_user;     /* touches neither spool nor sandboxes: root may stay root */
	int (*run)(const struct admin *admin, int argc, char **argv);
};

int admin_config(const struct admin *admin, int argc, char **argv);
int admin_doctor(const struct admin *admin, int argc, char **argv);
int admin_ls(const struct admin *admin, int argc, char **argv);
int admin_serve(const struct admin *admin, int argc, char **argv);
int admin_stdio(const struct admin *admin, int argc, char **argv);
int admin_stop(const struct admin *admin, int argc, char **argv);
int admin_token(const struct admin *admin, int argc, char **argv);

/* Prints an error with its hint, and the details that only an operator may see. Returns
 * ADMIN_FAILED. */
int admin_fail(const struct err *err);

/* Says what is wrong with the arguments. Returns ADMIN_USAGE. */
int admin_misused(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Puts what the settings file said into the environment, for programs that load their settings from
 * there alone: the file may be readable for root only. No secret is on a command line or in a file.
 */
void admin_export_settings(const struct conf *conf);

/* A process started as root becomes the named user, or without a name the owner of the spool:
 * groups, gid, uid, HOME, USER and LOGNAME. Anybody else stays who they are. */
bool admin_become(const struct conf *conf, const char *user, struct err *err) MUST_USE;

/* The principal that the bearer token stands for; there is one token, so this is the owner of
 * all sandboxes. NULL when no token was made yet: then there are none. */
const char *admin_principal(const struct app *app);

/* Absolute path of a program of ours (beside this one, else in PKGLIBEXECDIR). */
bool admin_find_ours(const char *name, struct buf *out);
/* Absolute path of a system program, looked up in PATH and the sbin directories. */
bool admin_find_system(const char *name, struct buf *out);

#endif
