/*
 * Runs one command in a sandbox to its end: pipes, capture, and a wait that lets other
 * descriptors be watched. Output is read until the command's own process has ended and its
 * pipes are at end of file, or have been quiet for a short drain when a child that was left
 * running keeps them open.
 */
#ifndef SPOOLBOX_RUN_SESSION_H
#define SPOOLBOX_RUN_SESSION_H

#include "run/capture.h"
#include "run/runtime.h"

struct session {
	struct capture out, err;
	struct runtime_status status;
	int64_t duration_ms;
};

void session_init(struct session *session, size_t stdout_max, size_t stderr_max);
void session_finish(struct session *session);

/* The command's three descriptors are filled in here: stdin is the given bytes (a sealed memory
 * file) or /dev/null when data is NULL. False when it could not be started; else how it ended
 * is in session->status. */
bool session_run(struct session *session, const struct runtime *runtime,
		 const struct runtime_box *box, struct runtime_command *command,
		 const char *stdin_data, size_t stdin_len, struct err *err) MUST_USE;

#endif
