/*
 * Files of a sandbox seen from the host. The workspace is hostile: see base/fs.h. Paths are
 * relative to /workspace or absolute below it ("/workspace/a/b"); messages show paths as the
 * sandbox sees them.
 */
#ifndef SPOOLBOX_BOX_FILES_H
#define SPOOLBOX_BOX_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/util.h"
#include "box/sandbox.h"

#define FILES_PATH_MAX   4096  /* bytes, PATH_MAX of Linux */
#define FILES_LIST_REACH 65536 /* entries that listing a directory can get to */

/* Turns what a caller wrote into a relative path without empty, "." or ".." components: "" is
 * the workspace itself. ERR_INVALID for ".." that leaves it, for other absolute paths (the hint
 * says what is where), NUL, over-long paths. `what` names the argument in messages. Appends. */
bool files_path(const char *what, const char *path, size_t len, struct buf *out,
		struct err *err) MUST_USE;

/* Opens an existing regular file for reading, falling back to the GB18030 spelling of the name.
 * Refuses directories, FIFOs, devices, sockets. -1 with err. st may be NULL. */
int files_open(const struct sandbox_use *use, const char *path, struct stat *st, struct err *err);

/* Time of the last change of the content in ms; any stored time is safe. */
int64_t files_mtime_ms(const struct stat *st);

struct files_entry {
	const char *name; /* valid UTF-8; the raw name when it is, decoded otherwise */
	const char *raw;  /* as it is in the file system, in any bytes */
	const char *type; /* "file", "dir", "link", "other" */
	int64_t size;     /* files only; -1 otherwise */
	int64_t modified_at;
	unsigned mode;
	bool renamed; /* the raw name was not UTF-8 */
};
/* False: enough was seen. */
typedef bool files_visit(void *ctx, const struct files_entry *entry);
/* Sorted by name, from the offset'th entry on, at most limit; *total is the number of entries
 * (counted up to 1,000,000; entries beyond that are not seen). Reaches FILES_LIST_REACH entries, as
 * each window of names costs a pass over the directory: ERR_TOO_LARGE for an offset beyond. */
bool files_list(const struct sandbox_use *use, const char *path, int64_t offset, int64_t limit,
		files_visit *visit, void *ctx, int64_t *total, struct err *err) MUST_USE;
/* The same for the entries whose raw names begin with prefix, and of those the first by name that
 * fit into one pass over the directory (NAMES_WINDOW): for who is typing. */
bool files_list_prefix(const struct sandbox_use *use, const char *path, const char *prefix,
		       files_visit *visit, void *ctx, struct err *err) MUST_USE;

/* A file being written: invisible until published, gone when dropped. */
struct files_draft {
	int fd;
	char name[64]; /* in incoming/ */
	const struct sandbox_use *use;
};
#define FILES_DRAFT_INIT \
	{ \
		.fd = -1 \
	}
bool files_draft_open(const struct sandbox_use *use, struct files_draft *draft,
		      struct err *err) MUST_USE;
void files_draft_drop(struct files_draft *draft);
/* Makes the content durable: the slow part of publishing, for callers that must do something
 * quick right before it. */
bool files_draft_sync(struct files_draft *draft, struct err *err) MUST_USE;
#define AUTO_FILES_DRAFT __attribute__((cleanup(files_draft_drop))) struct files_draft
/* fsync, parents, rename over path, fsync of the directory. Keeps the permission bits of a file
 * that it replaces. ERR_CONFLICT when path is a directory, a link or no regular file. */
bool files_draft_publish(struct files_draft *draft, const char *path, struct err *err) MUST_USE;
/* Whether publish could work, before bytes are spent: parents are directories or missing, the
 * target is a regular file or missing. Changes nothing. */
bool files_can_write(const struct sandbox_use *use, const char *path, struct err *err) MUST_USE;

/* Writes a whole small file. */
bool files_write(const struct sandbox_use *use, const char *path, const char *data, size_t len,
		 struct err *err) MUST_USE;

/* Room on the data file system against SMCP_MIN_FREE_BYTES plus need; ERR_QUOTA. */
bool files_check_room(const struct app *app, const struct sandbox_use *use, int64_t need,
		      struct err *err) MUST_USE;

#endif
