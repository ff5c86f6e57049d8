/* Table sandbox: one row per incarnation of a name. */
#ifndef SPOOLBOX_STORE_ROW_SANDBOX_H
#define SPOOLBOX_STORE_ROW_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"
#include "store/db.h"

enum sandbox_state {
	SANDBOX_NONE = 0, /* none of these, or a row whose ids are none: visited by nobody */
	SANDBOX_LIVE,     /* can be used; whether it runs is told by its lock, not here */
	SANDBOX_KEPT,     /* destroyed, files kept for the next sandbox of this name */
	SANDBOX_GONE,     /* destroyed with its files; the row answers for old links */
	SANDBOX_STATE__MAX
};

struct sandbox_row {
	char id[ID_LEN + 1];
	char files_id[ID_LEN + 1]; /* data/<files_id>; differs from id after files were kept */
	char *principal;
	char *name;
	enum sandbox_state state;
	char *template;
	char *network; /* level: "loopback" or "none" */
	char *env;     /* JSON object of strings, or NULL */
	char *labels;  /* JSON object of strings, or NULL */
	int64_t created_at;
	int64_t last_used_at;
	int64_t ttl_ms;              /* 0: persistent */
	int64_t expires_at;          /* 0: persistent */
	int64_t ended_at;            /* when it left LIVE; 0: it did not, or nobody knows */
	bool is_explicit;            /* made by create_sandbox, not by the first use of its name */
	char session_id[ID_LEN + 1]; /* the stdio session that made it; "": none */
	bool ends_with_session;      /* it goes at the end of that one */
	bool is_reserve;             /* it waits to be taken; see row_reserve.h */
	bool gives_way;              /* nobody named it yet: it goes when its place is needed */
};

void sandbox_row_finish(struct sandbox_row *row);
#define AUTO_SANDBOX_ROW __attribute__((cleanup(sandbox_row_finish))) struct sandbox_row

/* Each returns 1 found / changed, 0 not, -1 with err set. Those that fill a row want it zeroed. */
int row_sandbox_by_id(struct db *db, const char *principal, const char *id, struct sandbox_row *row,
		      struct err *err);
/* Of any principal: for the clean-up. */
int row_sandbox_any(struct db *db, const char *id, struct sandbox_row *row, struct err *err);
/* The live or kept incarnation of a name; reserves have none that anybody knows. */
int row_sandbox_by_name(struct db *db, const char *principal, const char *name,
			struct sandbox_row *row, struct err *err);
/* Inside a transaction of the caller. 0: the name is taken. */
int row_sandbox_insert(struct db *db, const struct sandbox_row *row, struct err *err);
/* Compare-and-set of the state; ended_at is stamped when it leaves LIVE. */
int row_sandbox_move(struct db *db, const char *id, enum sandbox_state from, enum sandbox_state to,
		     int64_t now, struct err *err);
/* Stamps last_used_at and renews expires_at from ttl_ms, only when the stamp is older than
 * every_ms: most calls then write nothing. */
int row_sandbox_touch(struct db *db, const char *id, int64_t now, int64_t every_ms,
		      struct err *err);
/* The same without renewing expires_at: for tasks, which do not make a sandbox live longer. */
int row_sandbox_stamp(struct db *db, const char *id, int64_t now, int64_t every_ms,
		      struct err *err);
/* Number of live sandboxes of all principals, reserves included; -1 with err. */
int64_t row_sandbox_count_live(struct db *db, struct err *err);

/* Lets a live sandbox stay when its session ends. Inside a transaction of the caller: what it stays
 * for is to be decided together with this. */
int row_sandbox_retain(struct db *db, const char *id, struct err *err);
/* Makes a live sandbox stay that gives way. */
int row_sandbox_stay(struct db *db, const char *id, struct err *err);
/* The end of a session for one of its sandboxes: live -> gone unless it is to stay (0). Then, when
 * what was in it is gone as well, _settled; who dies in between leaves the rest to the next look.
 */
int row_sandbox_end_with_session(struct db *db, const char *id, int64_t now, struct err *err);
int row_sandbox_settled(struct db *db, const char *id, struct err *err);
/* Calls visit for each sandbox that goes with a session: live ones, and gone ones not settled. */
typedef bool row_sandbox_visit(void *ctx, const struct sandbox_row *row);
bool row_sandbox_each_of_session(struct db *db, const char *session_id, row_sandbox_visit *visit,
				 void *ctx, struct err *err) MUST_USE;

/* Calls visit for each live or kept sandbox of a principal by name, but not for reserves; visit
 * returns false to stop. */
bool row_sandbox_each(struct db *db, const char *principal, row_sandbox_visit *visit, void *ctx,
		      struct err *err) MUST_USE;

/* What is due, of any principal, the oldest first. The cutoffs are for stamps; ages are judged by
 * the caller. Live ones whose expires_at is past: */
bool row_sandbox_each_over(struct db *db, int64_t now, row_sandbox_visit *visit, void *ctx,
			   struct err *err) MUST_USE;
/* Live ones last used at until or before; at since or after it. */
bool row_sandbox_each_unused(struct db *db, int64_t until, row_sandbox_visit *visit, void *ctx,
			     struct err *err) MUST_USE;
bool row_sandbox_each_used(struct db *db, int64_t since, row_sandbox_visit *visit, void *ctx,
			   struct err *err) MUST_USE;
/* Live ones that give way, last used at until or before; the one unused for longest is the first.
 */
bool row_sandbox_each_giving_way(struct db *db, int64_t until, row_sandbox_visit *visit, void *ctx,
				 struct err *err) MUST_USE;
/* Kept ones that ended at until or before, or at a time that nobody knows. */
bool row_sandbox_each_kept(struct db *db, int64_t until, row_sandbox_visit *visit, void *ctx,
			   struct err *err) MUST_USE;
/* Those with a stamp after limit, or a lifetime that is over after limit and a whole lifetime. */
bool row_sandbox_each_future(struct db *db, int64_t limit, row_sandbox_visit *visit, void *ctx,
			     struct err *err) MUST_USE;

/* live -> gone, unless the row was used since it was read. */
int row_sandbox_end(struct db *db, const struct sandbox_row *seen, int64_t now, struct err *err);
/* Stamps that are later than now become now, a lifetime that is over too late a whole one from now;
 * unless the row was used since it was read. */
int row_sandbox_unfuture(struct db *db, const struct sandbox_row *seen, int64_t now,
			 struct err *err);

#endif
