/*
 * Python code run in a sandbox: checked, its files staged, run by the sandbox's kernel, and what it
 * made found. The caller chooses and enters the sandbox; python_pool.h has ready ones.
 */
#ifndef SPOOLBOX_BOX_PYTHON_H
#define SPOOLBOX_BOX_PYTHON_H

#include <time.h>

#include "box/sandbox.h"
#include "run/kernel.h"
#include "store/row_python.h"

#define PYTHON_CODE_MAX       (256 * 1024) /* bytes */
#define PYTHON_TIMEOUT_MS     10000        /* seed 003 */
#define PYTHON_TIMEOUT_MAX_MS 60000        /* likewise */
#define PYTHON_INPUTS_MAX     32
#define PYTHON_CHANGED_MAX    200 /* files that are named as changed */
#define PYTHON_ARTIFACTS_MAX  20  /* files that are handed out */

struct python_options {
	const char *code;
	size_t code_len;
	int64_t timeout_ms; /* 0: PYTHON_TIMEOUT_MS */
};

/* Checks all that can be checked before a sandbox is touched: empty, NUL, not UTF-8, too long. */
bool python_check(const struct python_options *options, struct err *err) MUST_USE;

/* A file that the code made or changed. */
struct python_file {
	char *path; /* relative to the workspace, raw bytes */
	int64_t size;
	bool is_artifact; /* matches SMCP_PYTHON_ARTIFACTS, or was made for the caller */
	char *about;      /* what it is, when the kernel made it; or NULL */
};
struct python_changes {
	struct python_file *files; /* artifacts first, then by path */
	size_t count;
	bool partial; /* there are more, or the tree was too large to look at all of it */
};
void python_changes_finish(struct python_changes *changes);

struct python_result {
	struct kernel_run run;
	struct python_changes changes;
	char session_id[ID_LEN + 1]; /* "": no session, or it is over (see run.state) */
};
void python_result_finish(struct python_result *result);
#define AUTO_PYTHON_RESULT __attribute__((cleanup(python_result_finish))) struct python_result

/* Runs in an entered sandbox, starting sandbox and kernel when needed; result needs no preparation.
 * False only when the code did not run. The working directory is /workspace. staged: as made by
 * python_stage; NULL: none. */
struct python_stage;
bool python_run(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
		const struct python_options *options, const struct python_stage *staged,
		kernel_tick *tick, void *ctx, struct python_result *result,
		struct err *err) MUST_USE;

/* The same with a session. A new one is bound to the principal: it is in the database before it
 * exists, and in result->session_id when it has survived the run. */
bool python_run_new(struct app *app, const char *principal, const struct sandbox_row *row,
		    struct sandbox_use *use, const struct python_options *options,
		    const struct python_stage *staged, kernel_tick *tick, void *ctx,
		    struct python_result *result, struct err *err) MUST_USE;
/* ERR_NOT_FOUND: no session of this principal has that id (those of others read the same).
 * ERR_GONE: it ended; the message says when and why. sandbox_id is filled in both of the good case
 * and ERR_GONE. */
bool python_find(struct app *app, const char *principal, const char *session_id,
		 struct python_row *session, struct err *err) MUST_USE;
/* Runs in a session that python_find found, whose sandbox was entered. ERR_BUSY (retryable):
 * another run of this session is going on. ERR_GONE: it is not there any more, which is noted.
 * Never makes a new one. */
bool python_run_in(struct app *app, const struct python_row *session, const struct sandbox_row *row,
		   struct sandbox_use *use, const struct python_options *options,
		   const struct python_stage *staged, kernel_tick *tick, void *ctx,
		   struct python_result *result, struct err *err) MUST_USE;
/* For the reaper. Whether a run of the session is going on; makes nothing. */
bool python_is_used(const struct app *app, const struct python_row *session);
/* Ends an idle session, unless it was used since it was read: 1 ended, 0 not, -1 with err. */
int python_end_idle(struct app *app, const struct python_row *session, struct err *err);

/* --- inputs -------------------------------------------------------------------------------- */

/* Input files beside the code. One of the same sandbox stays where it is; one of another is copied
 * into the workspace by its last name, read-only. */
struct python_stage {
	char **names;                /* NULL-terminated, relative to the workspace */
	struct timespec *changed_at; /* of each: st_ctim when the run was about to begin */
	size_t count;
};
void python_stage_finish(struct python_stage *stage);
#define AUTO_PYTHON_STAGE __attribute__((cleanup(python_stage_finish))) struct python_stage

/* Adds a file of the sandbox itself: it must be a regular file. ERR_NOT_FOUND and the like. */
bool python_stage_own(struct python_stage *stage, const struct sandbox_use *use, const char *path,
		      struct err *err) MUST_USE;
/* Copies one of another entered sandbox. ERR_EXISTS when the workspace has another file of that
 * name; the same content is fine. Bounded by SMCP_MAX_UPLOAD_BYTES and the free room. */
bool python_stage_copy(struct app *app, struct python_stage *stage, const struct sandbox_use *from,
		       const char *path, const struct sandbox_use *to, struct err *err) MUST_USE;

#endif
