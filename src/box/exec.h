/* Foreground commands. */
#ifndef SPOOLBOX_BOX_EXEC_H
#define SPOOLBOX_BOX_EXEC_H

#include "box/sandbox.h"
#include "run/session.h"

#define EXEC_COMMAND_MAX 65536       /* characters; seeds 000/001 */
#define EXEC_REQUEST_MAX (96 * 1024) /* command, cwd and env together, as sent to init */
#define EXEC_TIMEOUT_MAX 3600        /* seconds */

struct exec_options {
	const char *command;    /* run by /bin/bash -c, or /bin/sh without bash */
	size_t command_len;     /* bytes, so that a NUL is seen; 0: up to the NUL */
	const char *cwd;        /* NULL: /workspace; relative paths are below it */
	const char *stdin_data; /* NULL: /dev/null */
	size_t stdin_len;
	struct json_object *env; /* object of strings or NULL, over the sandbox's own */
	int64_t timeout_ms;      /* 0: SMCP_EXEC_TIMEOUT */
};

/* Checks everything that can be checked before a sandbox is touched. */
bool exec_check(const struct app *app, const struct exec_options *options,
		struct err *err) MUST_USE;

/* Runs in an entered sandbox, starting it when needed. Start races with its end (idle stop, crash)
 * are retried as long as the command did not start. */
bool exec_run(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
	      const struct exec_options *options, struct session *session,
	      struct err *err) MUST_USE;

#endif
