/*
 * The files of a record as both sides see them: frames, the log, the two segments of the tail. The
 * format is described in record_file.c. Only record.c needs this.
 */
#ifndef SPOOLBOX_RUN_RECORD_FILE_H
#define SPOOLBOX_RUN_RECORD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/util.h"
#include "run/record.h"

#define RECORD_FRAME_MAX      (64 * 1024) /* bytes of output in one: what a pipe gives at once */
#define RECORD_FRAME_HEAD_MAX 3

/* Writes the head of a frame and returns its length. */
size_t record_frame_head(unsigned char head[static RECORD_FRAME_HEAD_MAX],
			 enum record_stream stream, size_t len);

struct record_frame {
	enum record_stream stream;
	const char *data;
	size_t len;
	size_t size; /* with its head */
};

/* Goes through the frames of a log. */
struct record_cursor {
	int fd;
	int64_t pos; /* in the file, of the next frame */
	char *block;
	size_t start, len; /* of the block: its next frame, its bytes */
	bool failed;
};
/* The next complete frame, valid until the next call. False at the end and on failure; then failed
 * and err are set. */
bool record_cursor_next(struct record_cursor *cursor, struct record_frame *frame, struct err *err);
void record_cursor_finish(struct record_cursor *cursor);
#define AUTO_RECORD_CURSOR __attribute__((cleanup(record_cursor_finish))) struct record_cursor

/* The head of a segment's file. */
struct record_segment {
	int64_t generation; /* 1 is the first */
	int64_t log_len;    /* where the log ended before the first byte of generation 1 */
	int64_t seen[RECORD_STREAMS]; /* what had arrived before this segment's first byte */
};

/* Both segments as they were at one moment. */
struct record_tail {
	int current;                  /* the newer file; -1: nothing is in the segments */
	struct record_segment oldest; /* of those that are there */
	struct record_segment newest;
	int64_t seen[RECORD_STREAMS];
	int64_t newest_len;   /* bytes of complete frames in the newer file, with its head */
	int64_t newest_bytes; /* bytes of output in the newer file */
	struct buf output;    /* of both streams, in order */
};
/* Fills a zeroed tail, again if need be. ERR_BUSY when the segments were replaced all the time.
 * log_is_full: the segments may be in use, so that finding both empty is looked at again: each is
 * empty for a moment when it is replaced, and a reader may meet one such moment after the other. */
bool record_tail_load(const int fds[2], bool log_is_full, struct record_tail *tail,
		      struct err *err) MUST_USE;
void record_tail_finish(struct record_tail *tail);
#define AUTO_RECORD_TAIL __attribute__((cleanup(record_tail_finish))) struct record_tail

/* Opens the files in a directory; ERR_NOT_FOUND when they are not there. */
bool record_files_open(struct record_files *files, int dirfd, int flags, struct err *err) MUST_USE;
/* Makes new ones, or none. */
bool record_files_create(struct record_files *files, int dirfd, struct err *err) MUST_USE;
/* Makes them in memory. */
bool record_files_in_memory(struct record_files *files, struct err *err) MUST_USE;
void record_files_remove(int dirfd);
void record_files_close(struct record_files *files);
#define AUTO_RECORD_FILES __attribute__((cleanup(record_files_close))) struct record_files

#endif
