/*
 * One task from its start to its result: what the program spoolbox-task does. It owns the pipes,
 * masks secrets, keeps the output, watches for orders and the end, and publishes the result: first
 * in the task's directory, then in the row. It outlives the worker that started it; when it dies
 * itself, the connection to PID 1 closes and the command ends.
 */
#ifndef SPOOLBOX_BOX_SUPERVISE_H
#define SPOOLBOX_BOX_SUPERVISE_H

#include "box/app.h"

/* Command line: the id of the task, after SUPERVISE_ADOPT for a command that runs already. */
#define SUPERVISE_PROGRAM "spoolbox-task" /* in pkglibexec */
#define SUPERVISE_ADOPT   "--adopt"

/*
 * Descriptors that the submitter hands over, at these numbers in the new process; the environment
 * is its SMCP_* settings and PATH. Descriptor 2 is where log lines go.
 *
 * The answer on the ready pipe (or socket) is one of
 *	"\n"        the task runs and is visible. With an adopted command: it is the supervisor's
 *now. an object   {"code", "message", "hint", "trace"}, strings: nothing runs and nothing is
 *visible; directory and row were taken back as far as that went (doing it again is harmless). An
 *adopted command is still the submitter's; not one byte of it was read. the end     without either:
 *the supervisor was killed. A visible task is what its verdict says; else it is for the submitter
 *to take directory and row back. Before the command is started or taken over, nothing is visible;
 *see task_dir.h.
 */
enum {
	SUPERVISE_FD_READY = 3,
	/* Only with an adopted exec: */
	SUPERVISE_FD_EXEC = 4,   /* connection to the command's keeper */
	SUPERVISE_FD_STDOUT = 5, /* read ends of its pipes */
	SUPERVISE_FD_STDERR = 6,
	SUPERVISE_FD_HELD = 7, /* memory file: bytes that masking still holds back; see handover */
};

/* Runs the task in tasks/.new-<id> to its end. adopted: the command runs already and the record in
 * the directory holds its output so far. False with err when the task did not come to be; the
 * submitter was told over the ready pipe. For a process of its own: it blocks signals (TERM and INT
 * end the task like a cancel) and uses the descriptors above. */
bool supervise(struct app *app, const char *id, bool adopted, struct err *err) MUST_USE;

/* Tells the submitter why the task does not come to be, for faults before supervise(). */
void supervise_refuse(const struct err *err);

#endif
