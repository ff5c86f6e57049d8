/*
 * Names in the state directory; see doc/spool.md for what each is. Holds descriptors of the
 * directories; every path below is opened from them.
 */
#ifndef SPOOLBOX_STORE_SPOOL_H
#define SPOOLBOX_STORE_SPOOL_H

#include <stdbool.h>

#include "base/conf.h"
#include "base/err.h"
#include "base/util.h"

#define SPOOL_ID_FILE    "spool.id" /* of a spool that was used before; see identity.h */
#define SPOOL_FONTS_NAME "fonts"

struct spool {
	int root_fd;        /* SMCP_SPOOL */
	int data_fd;        /* SMCP_DATA_DIR */
	int run_fd;         /* run/ */
	int tasks_fd;       /* tasks/ */
	int keys_fd;        /* keys/ */
	int trash_fd;       /* data dir's .trash/, in the file system of the data */
	int run_trash_fd;   /* run/.trash/ */
	int tasks_trash_fd; /* tasks/.trash/ */
};

#define SPOOL_INIT \
	{ \
		-1, -1, -1, -1, -1, -1, -1, -1 \
	}

/* Opens all, making what is missing (mode 0700). Refuses a spool that another user owns or that
 * others can enter. spool_close is needed in both cases; it is safe on SPOOL_INIT. */
bool spool_open(struct spool *spool, const struct conf *conf, struct err *err) MUST_USE;
void spool_close(struct spool *spool);

/* Makes data/<id>/{workspace,incoming}, on disk when it returns. incoming holds uploads and
 * writes that are not complete: in the file system of the workspace, out of the sandbox's sight. */
bool spool_make_files(const struct spool *spool, const char *files_id, struct err *err) MUST_USE;
/* Descriptor of data/<id>/workspace or data/<id>/incoming; -1 with ERR_NOT_FOUND or ERR_IO. One
 * that the sandbox closed by its permission bits is opened up for its owner again. */
int spool_workspace(const struct spool *spool, const char *files_id, struct err *err);
int spool_incoming(const struct spool *spool, const char *files_id, struct err *err);
/* run/<id>, made when missing. */
int spool_run_dir(const struct spool *spool, const char *id, struct err *err);
/* run/<id> if it is there; -1 with err, ERR_NOT_FOUND when it is not. */
int spool_find_run_dir(const struct spool *spool, const char *id, struct err *err);

/* sessions/, made when missing: the lock files of stdio sessions. */
int spool_sessions(const struct spool *spool, struct err *err);
/* fonts/, made when missing: matplotlib's list of fonts. */
int spool_fonts(const struct spool *spool, struct err *err);

/* Renames data/<files_id>, run/<id> or tasks/<name> out of sight and deletes it as far as that goes
 * in a short time, together with what earlier calls left; the rest waits for the next call. A
 * missing directory is success. */
bool spool_retire_files(const struct spool *spool, const char *files_id, struct err *err) MUST_USE;
bool spool_retire_run(const struct spool *spool, const char *id, struct err *err) MUST_USE;
bool spool_retire_task(const struct spool *spool, const char *name, struct err *err) MUST_USE;

/* The renames alone, for whoever removes many and sweeps afterwards; a missing name is success.
 * spool_drop_file takes any entry of a directory in the file system of the data, as it is: a link
 * goes itself, and a directory that was closed by its permission bits gets 0700. */
bool spool_drop_task(const struct spool *spool, const char *name, struct err *err) MUST_USE;
bool spool_drop_file(const struct spool *spool, int dirfd, const char *name,
		     struct err *err) MUST_USE;

/* Whether something waits to be deleted. */
bool spool_has_trash(const struct spool *spool);
/* Deletes what is in the trash for at most budget_ms. True when nothing is left. */
bool spool_sweep(const struct spool *spool, int64_t budget_ms);
/* Free bytes of the file system of fd, -1 when it does not tell. When they are fewer than wanted,
 * after a short sweep: nobody is refused for what only waits to be deleted. */
int64_t spool_free_bytes(const struct spool *spool, int fd, int64_t wanted);

/* Fewer files than this that can still be made count as a full disk: a sandbox and a task take some
 * ten, an unpacked archive hundreds. */
#define SPOOL_MIN_FREE_INODES 1000
/* Whether there are as many, after a short sweep if there are not. */
bool spool_has_inodes(const struct spool *spool, int fd);

/* Absolute path of data/<files_id>/workspace for a runtime's command line; the caller frees it. */
char *spool_workspace_path(const struct spool *spool, const struct conf *conf,
			   const char *files_id);

#endif
