/*
 * One command in a sandbox, seen from whoever waits for it: pipes, capture, and a wait that can be
 * broken off and taken up again. Output is read until the command's own process has ended and its
 * pipes are at end of file, or have been quiet for a short drain when a child that was left
 * running keeps them open.
 *
 * A session that may be handed over to another process keeps a record of its output as well, with
 * secrets masked, in memory. Most commands are short and say little, so both are made only when
 * there is much output, or when a wait ends before the command does.
 */
#ifndef SPOOLBOX_RUN_SESSION_H
#define SPOOLBOX_RUN_SESSION_H

#include "run/capture.h"
#include "run/mask.h"
#include "run/record.h"
#include "run/runtime.h"

#define SESSION_LINE_MAX 200 /* bytes of session_last_line */

/* Makes the mask; NULL with err. */
typedef struct mask *session_mask(void *ctx, struct err *err);

enum session_keep {
	SESSION_KEEP_NONE = 0,
	SESSION_KEEP_LATER, /* so far in early */
	SESSION_KEEPS,
	SESSION_KEEP_FAILED, /* no hand-over any more */
	SESSION_KEEP__MAX
};

struct session {
	struct capture out, err;
	struct runtime_status status; /* once it ended */
	int64_t duration_ms;          /* likewise */

	const struct runtime *runtime;
	struct runtime_exec exec; /* fd -1: nothing runs */
	int fds[RECORD_STREAMS];  /* our ends of the pipes; -1: at its end */
	int64_t start_ms, give_up_ms;
	enum record_stream newest; /* which stream the newest output came on */

	enum session_keep keep;
	struct buf early; /* raw output, see session.c */
	session_mask *make_mask;
	void *mask_ctx;
	struct mask *mask;
	struct mask_stream masked[RECORD_STREAMS];
	struct record record;
};

void session_init(struct session *session, size_t stdout_max, size_t stderr_max);
/* Ends what still runs, by hanging up. */
void session_finish(struct session *session);

/* Before the start: the command may be handed over, so its output is kept. ctx is used until the
 * first session_wait has returned. */
void session_keep_output(struct session *session, session_mask *make_mask, void *ctx);

/* The command's three descriptors are filled in here: stdin is the given bytes (a sealed memory
 * file) or /dev/null when data is NULL. False when it could not be started. */
bool session_start(struct session *session, const struct runtime *runtime,
		   const struct runtime_box *box, struct runtime_command *command,
		   const char *stdin_data, size_t stdin_len, struct err *err) MUST_USE;
/* The same with standard input of the caller's own, which stays the caller's. */
bool session_start_on(struct session *session, const struct runtime *runtime,
		      const struct runtime_box *box, struct runtime_command *command, int stdin_fd,
		      struct err *err) MUST_USE;

/* Waits for the end until until_ms of the monotonic clock. True: it ended, session->status says
 * how. False: it still runs; wait again, hand it over, or finish the session. tick (may be NULL) is
 * asked about twice a second, and up to four times when there is output; when it returns false the
 * command is cancelled, and its end is waited for whatever until_ms says. */
typedef bool session_tick(void *ctx);
bool session_wait(struct session *session, int64_t until_ms, session_tick *tick, void *ctx);

/* session_start and session_wait to the end. */
bool session_run(struct session *session, const struct runtime *runtime,
		 const struct runtime_box *box, struct runtime_command *command,
		 const char *stdin_data, size_t stdin_len, struct err *err) MUST_USE;

/* Appends the newest complete line that the command wrote and that is not blank, for people: UTF-8
 * without control characters, at most SESSION_LINE_MAX bytes. Nothing when there is none. */
void session_last_line(const struct session *session, struct buf *out);

/* A hand-over, first half: moves the record into the directory of a task and packs what masking
 * holds back (run/handover.h) into a memory file, which is returned; -1 with err. The session can
 * go on as if nothing had been, whatever becomes of the directory. */
int session_prepare_handover(struct session *session, int dirfd, struct err *err);
/* Second half, when the other process has the command: lets go of everything that runs. The
 * captures stay readable. */
void session_let_go(struct session *session);

#endif
