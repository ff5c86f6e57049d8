/*
 * Sandboxes: create, find, use, list, destroy.
 *
 * State machine of a row (compare-and-set in the database, see doc/design.md):
 *   live -> kept   destroy that keeps the files
 *   live -> gone, kept -> gone   destroy with the files, end of the lifetime or of the idle time
 *                                (sandbox_end.h)
 *   kept -> gone   also when a new incarnation of the name takes the files over
 * Whether a live sandbox runs is told by its lock alone; it is started on first use.
 */
#ifndef SPOOLBOX_BOX_SANDBOX_H
#define SPOOLBOX_BOX_SANDBOX_H

#include "box/app.h"
#include "store/row_sandbox.h"

#define SANDBOX_TEMPLATE_BASE "base"          /* the host's /usr */
#define SANDBOX_TTL_MAX_S     (365 * 86400LL) /* longest lifetime; conf_table.c allows as much */
#define SANDBOX_TEXTS_MAX     (64 * 1024)     /* bytes of env, and of labels, as JSON */
#define SANDBOX_ENV_MAX       1000            /* variables of a sandbox, and of a call */

struct sandbox_options {
	const char *name;           /* NULL: made up, and the default lifetime applies */
	const char *template;       /* NULL: base */
	const char *network;        /* NULL: the setting's level */
	int64_t ttl_ms;             /* 0: none given */
	struct json_object *env;    /* object of strings or NULL; borrowed */
	struct json_object *labels; /* likewise */
	bool is_explicit;           /* asked for as such: see sandbox_find_default */
	bool is_reserve;            /* waits to be taken: see python_pool.h */
	bool gives_way;             /* when its place is needed, until somebody names it */
};

/* Makes a sandbox; nothing runs in it yet. Fails with ERR_QUOTA (retryable) at SMCP_MAX_SANDBOXES;
 * before that others give way (sandbox_room.h). A live one that gives way stays, as in
 * sandbox_ensure.
 * When the name is live already: *created is false and the row is filled, provided that no other
 * option asks for something else (then ERR_EXISTS). */
bool sandbox_create(struct app *app, const char *principal, const struct sandbox_options *options,
		    struct sandbox_row *row, bool *created, struct err *err) MUST_USE;

/* Finds a live sandbox by id or name. ERR_NOT_FOUND (another principal's reads the same),
 * ERR_INVALID for a handle that can be neither. An expired one is not found. */
bool sandbox_find(struct app *app, const char *principal, const char *handle,
		  struct sandbox_row *row, struct err *err) MUST_USE;

/* The sandbox that is meant when none is named: the newest live one that was made explicitly, over
 * stdio in this session. Those that came to be by the first use of a name do not count.
 * ERR_NOT_FOUND when there is none. */
bool sandbox_find_default(struct app *app, const char *principal, struct sandbox_row *row,
			  struct err *err) MUST_USE;

/* Makes a sandbox stay that gives way: somebody who named it is about to write or run something in
 * it. When it gave way just now, sandbox_enter says so. */
bool sandbox_stay(struct app *app, struct sandbox_row *row, struct err *err) MUST_USE;

/* As sandbox_find, but a missing name is created; *created tells. For who writes or runs something:
 * does what sandbox_stay does. */
bool sandbox_ensure(struct app *app, const char *principal, const char *handle,
		    struct sandbox_row *row, bool *created, struct err *err) MUST_USE;

/* Whether a live sandbox's lifetime is over: it does not answer then. One that is being used is
 * not over; its lifetime counts from the end of the use. For lists. */
bool sandbox_is_over(struct app *app, const struct sandbox_row *row);

/* In use: holds the shared use lock and descriptors until sandbox_leave. */
struct sandbox_use {
	int run_dir_fd, use_fd;
	int workspace_fd, incoming_fd;
	char *workspace_path;
	struct runtime_box box; /* borrows from this struct */
	struct app *app;        /* borrowed, like row; NULL until entered */
	const struct sandbox_row *row;
};
#define SANDBOX_USE_INIT \
	{ \
		-1, -1, -1, -1, NULL, {0}, NULL, NULL \
	}

/* Enters a live sandbox: takes the use lock, stamps the activity, opens its directories. Does not
 * start it. ERR_DESTROYED when it was destroyed meanwhile. row must outlive use. */
bool sandbox_enter(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
		   struct err *err) MUST_USE;
/* The same for a task: the sandbox is used, but does not live longer for it (seeds 000/001). */
bool sandbox_enter_for_task(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
			    struct err *err) MUST_USE;
/* The same for a look at many sandboxes, which is no use of each: no time is stamped. */
bool sandbox_enter_to_look(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
			   struct err *err) MUST_USE;
void sandbox_leave(struct sandbox_use *use);
#define AUTO_SANDBOX_USE __attribute__((cleanup(sandbox_leave))) struct sandbox_use

/* False with ERR_DESTROYED when an entered sandbox was destroyed meanwhile; doubt counts as live. A
 * destroy takes the directories away under their users, who may have seen half of the files. */
bool sandbox_confirm(const struct sandbox_use *use, struct err *err) MUST_USE;
/* The same for an error: a destroy meanwhile is the reason to tell, not what was met in its course.
 * Always false. */
bool sandbox_explain(const struct sandbox_use *use, struct err *err);
/* Sets ERR_DESTROYED: row was destroyed meanwhile. Always false. */
bool sandbox_gone(const struct sandbox_row *row, struct err *err);

/* Stamps the activity (at most every few seconds) and so renews the lifetime. sandbox_enter does
 * it; do it again at the end of what took long. A failure is logged and nothing else: the work it
 * belongs to was done. */
void sandbox_touch(struct app *app, const struct sandbox_row *row);

/* Checks an object of strings such as env: no NUL, together at most SANDBOX_TEXTS_MAX; when
 * names_are_variables, names as in a shell and at most SANDBOX_ENV_MAX of them. what names the
 * argument. NULL is fine. */
bool sandbox_check_texts(const char *what, struct json_object *object, bool names_are_variables,
			 struct err *err) MUST_USE;

/* Starts an entered sandbox unless it runs. Many may try at once: it is started once. */
bool sandbox_start(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
		   struct err *err) MUST_USE;

/* Whether it runs: 1, 0, or -1 with err. Touches nothing. */
int sandbox_running(struct app *app, const struct sandbox_row *row, struct err *err);

/* What became of a destroy. */
struct sandbox_destroyed {
	char id[ID_LEN + 1];
	char *name; /* xstrdup'ed; the caller frees it */
	bool was_running;
	bool files_deleted; /* false: they wait for the next sandbox of that name */
};
/* What sandbox_destroy with delete_files would remove: a live or a kept one. */
bool sandbox_find_to_destroy(struct app *app, const char *principal, const char *handle,
			     struct sandbox_row *row, struct err *err) MUST_USE;
/* Ends everything in it and removes it. Works on live sandboxes, and with delete_files on kept
 * ones. */
bool sandbox_destroy(struct app *app, const char *principal, const char *handle, bool delete_files,
		     struct sandbox_destroyed *out, struct err *err) MUST_USE;

/* Removes, with their files, the sandboxes that go at the end of a stdio session: those whose names
 * were made up in it and in which no task was started. Can be repeated, also by another process.
 * False when something is left, be it that until_ms (monotonic; 0: no limit) was reached. */
bool sandbox_end_session(struct app *app, const char *session_id, int64_t until_ms,
			 struct err *err) MUST_USE;

#endif
