/*
 * What masking holds back of both streams, in a memory file that goes along when a running command
 * is handed over to another process (box/supervise.h: SUPERVISE_FD_HELD).
 *
 * The order of a hand-over. Giver: stops reading, moves the record into .new-<id>, packs, starts
 * the taker with its copies of connection, pipes and this file, and waits on the ready descriptor,
 * which is a stream socket. Taker: resumes the record, unpacks, locks, publishes, writes "\n" to
 * the ready descriptor, and only then, and only if that write succeeded, reads from a pipe. The
 * write is the one instant in which the command changes hands: a giver that stops waiting shuts its
 * end down first, so that a later write fails (EPIPE; the taker has SIGPIPE ignored, retires its
 * directory and ends without touching the pipes or the connection), and an earlier one is still
 * read. A stream that was at its end already comes as /dev/null.
 */
#ifndef SPOOLBOX_RUN_HANDOVER_H
#define SPOOLBOX_RUN_HANDOVER_H

#include "run/mask.h"
#include "run/record.h"

/* A memory file with what masking holds back of both streams, at its beginning; -1 with err. */
int handover_save(const struct mask_stream streams[RECORD_STREAMS], struct err *err);

/* The streams go on where the saved ones were; they are not initialised before. mask must hold the
 * same values: ERR_INTERNAL when it shows that it does not, or that the file is of another version.
 * mask_stream_finish is needed in both cases. */
bool handover_load(int fd, const struct mask *mask, struct mask_stream streams[RECORD_STREAMS],
		   struct err *err) MUST_USE;

#endif
