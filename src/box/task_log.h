/*
 * What a supervisor does with the output of its command: two pipes, masked, into the record of the
 * task's directory. A disk that is full does not block the command: its output is read and
 * dropped from there on.
 */
#ifndef SPOOLBOX_BOX_TASK_LOG_H
#define SPOOLBOX_BOX_TASK_LOG_H

#include "run/mask.h"
#include "run/record.h"

struct task_log {
	int fds[RECORD_STREAMS]; /* read ends of the pipes; -1: at its end */
	struct mask *mask;
	struct mask_stream masked[RECORD_STREAMS];
	struct record record;
	bool broken;        /* the record could not be written on; */
	struct err trouble; /* why, */
	int64_t dropped;    /* and how many bytes came after that */
};
#define TASK_LOG_INIT \
	{ \
		.fds = {-1, -1}, .record = RECORD_INIT \
	}

/* Begins a record in a task's directory. Takes mask over, in any case. The pipes are still to be
 * made. task_log_close is needed for both, also after a failure. */
bool task_log_create(struct task_log *log, int dirfd, struct mask *mask, struct err *err) MUST_USE;
/* Goes on with the record that is there and with what masking held back (run/handover.h). */
bool task_log_resume(struct task_log *log, int dirfd, struct mask *mask, int held_fd,
		     struct err *err) MUST_USE;
void task_log_close(struct task_log *log);

/* Makes both pipes; the write ends are for the command. */
bool task_log_pipes(struct task_log *log, int write_ends[RECORD_STREAMS], struct err *err) MUST_USE;

/* Takes what is there, at most one pipe full. False when there was nothing. */
bool task_log_read(struct task_log *log, enum record_stream stream);
/* After the command's end: takes what is in flight, until both pipes end or are quiet for a moment
 * (a child that was left running may keep them open), and what masking held back. Then the record
 * is on disk, as far as it goes. */
void task_log_end(struct task_log *log, int dirfd);

#endif
