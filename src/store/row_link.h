/* Table link: what a signed URL stands for. The URL itself holds only id, expiry and HMAC. */
#ifndef SPOOLBOX_STORE_ROW_LINK_H
#define SPOOLBOX_STORE_ROW_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/id.h"
#include "store/db.h"

enum link_op { LINK_NONE = 0, LINK_PUT, LINK_GET };

struct link_row {
	char id[ID_LEN + 1];
	char sandbox_id[ID_LEN + 1];
	char *principal;
	enum link_op op;
	char *path;        /* relative to the workspace */
	int64_t max_bytes; /* PUT: cap of the body */
	int64_t size;      /* PUT: promised size, -1 when none */
	bool used;
	int64_t created_at;
	int64_t expires_at;
	int64_t used_at; /* 0: not yet */
};

void link_row_finish(struct link_row *row);
#define AUTO_LINK_ROW __attribute__((cleanup(link_row_finish))) struct link_row

/* 1/0/-1 as in row_sandbox.h. insert: 0 when the sandbox is not live (any more). */
int row_link_insert(struct db *db, const struct link_row *row, struct err *err);
int row_link_get(struct db *db, const char *id, struct link_row *row, struct err *err);
/* Compare-and-set open -> used; also requires that the link's sandbox is still live. 0 means
 * another transfer won or the sandbox went. */
int row_link_claim(struct db *db, const char *id, int64_t now, struct err *err);
/* Takes a claim back when the transfer behind it failed after all. */
int row_link_unclaim(struct db *db, const char *id, int64_t claimed_at, struct err *err);

/* --- for the reaper ------------------------------------------------------------------------ */

/* Which links nobody needs any more: those used at used_until or earlier, and those that have
 * expired by now. A link from before exact_from was made when the wall clock was another; of
 * these an expiry counts only if they were made at made_until or earlier. */
struct link_stale {
	int64_t used_until, now, exact_from, made_until;
};
/* Appends ids, each with its NUL, at most limit. Their number, or -1 with err. */
int64_t row_link_ids_stale(struct db *db, const struct link_stale *stale, int64_t limit,
			   struct buf *ids, struct err *err);
/* How many there are; -1 with err. */
int64_t row_link_count_stale(struct db *db, const struct link_stale *stale, struct err *err);
/* 1/0/-1; 0 also when it is neither used nor expired. */
int row_link_delete_stale(struct db *db, const char *id, int64_t now, struct err *err);
/* At most limit of a sandbox. How many, or -1 with err. */
int row_link_delete_of_sandbox(struct db *db, const char *sandbox_id, int64_t limit,
			       struct err *err);
/* Links that were made after latest, which is still to come: by a clock that was set back since.
 * They count from now on and last as long as they were to, at most limit of them. How many, or -1
 * with err. Nothing is written when there is none. */
int row_link_reset(struct db *db, int64_t latest, int64_t now, int64_t limit, struct err *err);

#endif
