/*
 * Commands: checked, given their environment and started, in the foreground (to the end, or to a
 * limit after which box/task.h can take them over) or for a supervisor, which owns the pipes.
 */
#ifndef SPOOLBOX_BOX_EXEC_H
#define SPOOLBOX_BOX_EXEC_H

#include "box/sandbox.h"
#include "run/session.h"

#define EXEC_COMMAND_MAX 65536       /* characters; seeds 000/001 */
#define EXEC_REQUEST_MAX (96 * 1024) /* command, cwd and env together, as sent to init */
#define EXEC_TIMEOUT_MAX 3600        /* seconds */

#define EXEC_WAIT_TO_THE_END INT64_MAX /* as wait_ms */

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

/* A command made ready from options: argv, environment, directory and limits. */
struct exec_environment {
	char **items; /* NULL-terminated "NAME=value" */
	size_t count;
	size_t size; /* bytes, with the NULs */
};
struct exec_command {
	struct runtime_command run; /* its three descriptors are for the caller to set */
	const char *argv[5];
	struct exec_environment env;
	char *cwd;
};
/* Checks the options as well, but for the timeout: a background task may have more of it than a
 * foreground command. options must live as long as the command, which stays where it is:
 * run points into both. exec_command_finish is needed in both cases. */
bool exec_command_make(struct exec_command *command, const struct app *app,
		       const struct sandbox_row *row, const struct exec_options *options,
		       struct err *err) MUST_USE;
void exec_command_finish(struct exec_command *command);
#define AUTO_EXEC_COMMAND __attribute__((cleanup(exec_command_finish))) struct exec_command

/* Begins a command in a sandbox that was entered, starting the sandbox when needed. begin tells by
 * ERR_LOST that the sandbox was down and nothing ran; that is tried again some times. */
typedef bool exec_begin(void *ctx, const struct runtime_box *box, struct err *err);
bool exec_start(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
		exec_begin *begin, void *ctx, struct err *err) MUST_USE;

/* Runs in an entered sandbox, starting it when needed. Start races with its end (idle stop, crash)
 * are retried as long as the command did not start. */
bool exec_run(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
	      const struct exec_options *options, struct session *session,
	      struct err *err) MUST_USE;

/* The same for at most wait_ms, counted from the call. *ended false: it runs on, and can be given
 * to task_adopt, waited for with session_wait, or ended with session_finish. tick as of
 * session_wait; NULL: none. */
bool exec_run_for(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
		  const struct exec_options *options, int64_t wait_ms, session_tick *tick,
		  void *ctx, struct session *session, bool *ended, struct err *err) MUST_USE;

#endif
