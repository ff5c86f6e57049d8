/*
 * The durable output of a command: what a task's log is made of. One append-only file of frames
 * keeps the first bytes of both streams in the order in which they arrived, no byte twice; when a
 * stream is over its cap, two small segment files hold the newest output of both, so that a
 * tail is always current. A writer (worker or supervisor) is alone; readers are other processes,
 * need no lock and see a prefix of what was written.
 */
#ifndef SPOOLBOX_RUN_RECORD_H
#define SPOOLBOX_RUN_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/util.h"

#define RECORD_KEPT_MAX (1024 * 1024) /* of each stream, for reads by offset; seeds 000/001 */
#define RECORD_TAIL_MIN (64 * 1024)   /* newest bytes that are always there */

enum record_stream { RECORD_STDOUT = 0, RECORD_STDERR = 1, RECORD_STREAMS };

struct record_files {
	int log;
	int tail[2];
};
#define RECORD_FILES_INIT \
	{ \
		.log = -1, .tail = { -1, -1 } \
	}

struct record {
	struct record_files files;
	int tail_current;
	int64_t log_len;              /* bytes of the file */
	int64_t tail_len;             /* bytes of the current segment's file */
	int64_t tail_bytes;           /* bytes of output in the current segment */
	int64_t tail_generation;      /* of the current segment; 0: the log has everything so far */
	int64_t seen[RECORD_STREAMS]; /* bytes that arrived */
	int64_t kept[RECORD_STREAMS]; /* bytes in the log */
};
#define RECORD_INIT \
	{ \
		.files = RECORD_FILES_INIT \
	}

/* A new record in the directory (files "log", "tail.0", "tail.1"), or in memory with dirfd -1. A
 * record that is there already is left as it is: ERR_IO. */
bool record_create(struct record *record, int dirfd, struct err *err) MUST_USE;
/* Opens the record of a directory to go on writing where it ends (after a hand-over). A frame that
 * a killed writer left incomplete is cut off. */
bool record_resume(struct record *record, int dirfd, struct err *err) MUST_USE;
/* Copies a record into a directory where nobody reads yet; the record then writes there. On failure
 * nothing is left in the directory, and the record is as it was. */
bool record_move(struct record *record, int dirfd, struct err *err) MUST_USE;
void record_close(struct record *record);
#define AUTO_RECORD __attribute__((cleanup(record_close))) struct record

/* Appends bytes of one stream; never fails for being over the cap. On failure seen[] says how many
 * of them were taken; the others can be added again, or nothing more is to be added: bytes that
 * come after a gap would be taken for those that are missing. */
bool record_add(struct record *record, enum record_stream stream, const char *data, size_t len,
		struct err *err) MUST_USE;

/* What a reader learns of one stream. */
struct record_page {
	int64_t kept; /* bytes that can be read by offset */
	int64_t seen; /* bytes that arrived */
	int64_t next_offset;
};
/* Appends up to limit raw bytes of a stream from offset. Reading past the end gives none, and
 * next_offset is offset. ERR_NOT_FOUND when the directory has no record. */
bool record_read(int dirfd, enum record_stream stream, int64_t offset, size_t limit,
		 struct buf *out, struct record_page *page, struct err *err) MUST_USE;

/* Appends the newest output of both streams in order of arrival: at most max_bytes raw bytes and
 * max_lines lines (a line that is too long is cut at its front, also within a character). What is
 * there is everything while both streams are below their cap, and at least RECORD_TAIL_MIN bytes
 * after that. ERR_BUSY when the writer is too fast for the reader. */
bool record_tail(int dirfd, int64_t max_lines, size_t max_bytes, struct buf *out,
		 struct err *err) MUST_USE;

/* Total bytes that arrived on each stream. After the writer was killed the number may be short by
 * the bytes of the add that it was in. */
bool record_seen(int dirfd, int64_t seen[RECORD_STREAMS], struct err *err) MUST_USE;

#endif
