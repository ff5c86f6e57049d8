/* See sandbox_room.h. */
#include "box/sandbox_room.h"

#include <string.h>

#include "base/clock.h"
#include "box/incarnation.h"
#include "box/sandbox_end.h"
#include "box/timeline.h"
#include "store/row_python.h"
#include "store/row_reserve.h"

#define PURGE_MAX 64 /* ended lifetimes that one create cleans up at most */
/* For who names it in the next call. More than the 5 s to which stamps are exact, and no more: else
 * calls that come one after the other are refused. */
#define GRACE_MS 10000

bool sandbox_room_none(const struct app *app, struct err *err)
{
	err_set(err, ERR_QUOTA, "all %lld sandboxes of this server are in use; none was created",
		(long long)app->conf->max_sandboxes);
	return err_hint(
		err, "Destroy one that is not needed any more (list_sandboxes, destroy_sandbox), "
		     "use an existing one, or try again later.");
}

/* --- what nobody named --------------------------------------------------------------------- */

struct leftovers {
	struct app *app;
	struct timeline timeline;
	struct err *err;
	bool ok;
	int64_t count;
	char oldest[ID_LEN + 1]; /* the one unused for longest */
};

/* One that is idle is over, be its row ended or not. */
static bool has_session(struct leftovers *found, const struct sandbox_row *row)
{
	int64_t idle_ms = found->app->conf->python_idle * 1000;
	int64_t used_at = row_python_last_used(found->app->db, row->id, found->err);
	found->ok = used_at >= 0;
	return used_at > 0 && timeline_age(&found->timeline, used_at) < idle_ms;
}

/* A long download is a use that was stamped long ago. */
static bool add_leftover(void *ctx, const struct sandbox_row *row)
{
	struct leftovers *found = ctx;
	if (!incarnation_is_used(found->app, row->id) && !has_session(found, row) && found->ok &&
	    found->count++ == 0)
		memcpy(found->oldest, row->id, sizeof(found->oldest));
	return found->ok;
}

/* Those that can go now. */
static bool find_leftovers(struct app *app, struct leftovers *found, struct err *err)
{
	*found = (struct leftovers){.app = app, .err = err, .ok = true};
	return timeline_read(app, &found->timeline, err) &&
	       row_sandbox_each_giving_way(app->db, timeline_cutoff(&found->timeline, GRACE_MS),
					   add_leftover, found, err) &&
	       found->ok;
}

/* --- places -------------------------------------------------------------------------------- */

/* Room is made by ending what is over, until there is some. */
struct purge {
	struct app *app;
	bool is_reserve;
	int left;
	bool ok, full;
	struct err *err;
};

static bool count_yielding(struct app *app, int64_t *count, struct err *err)
{
	struct leftovers leftovers;
	int64_t reserves = row_reserve_count(app->db, err);
	if (reserves < 0 || !find_leftovers(app, &leftovers, err))
		return false;
	*count = reserves + leftovers.count;
	return true;
}

static bool look(struct purge *purge)
{
	struct app *app = purge->app;
	int64_t live = row_sandbox_count_live(app->db, purge->err);
	int64_t yielding = 0;
	purge->ok = live >= 0;
	purge->full = live >= app->conf->max_sandboxes;
	if (purge->ok && purge->full && !purge->is_reserve) {
		purge->ok = count_yielding(app, &yielding, purge->err);
		purge->full = live - yielding >= app->conf->max_sandboxes;
	}
	return purge->ok && purge->full;
}

static bool purge_one(void *ctx, const struct sandbox_row *row)
{
	struct purge *purge = ctx;
	if (!sandbox_time_is_over(purge->app, row))
		return true;
	purge->ok = sandbox_expire(purge->app, row, purge->err);
	return purge->ok && look(purge) && --purge->left > 0;
}

bool sandbox_room_look(struct app *app, bool is_reserve, bool *full, struct err *err)
{
	struct purge purge = {.app = app, .is_reserve = is_reserve, .left = PURGE_MAX, .err = err};
	if (look(&purge) &&
	    !row_sandbox_each_over(app->db, clock_wall_ms(), purge_one, &purge, err))
		return false;
	*full = purge.full;
	return purge.ok;
}

/* Each moves one to gone: 1; 0 when there is none; -1 with err. */
static int end_reserve(struct app *app, int64_t now, struct sandbox_row *row, struct err *err)
{
	/* One whose lifetime is over gives way as well: 0 as the time. */
	int rc = row_reserve_oldest(app->db, NULL, 0, row, err);
	return rc == 1 ? row_reserve_end(app->db, row->id, now, err) : rc;
}

static int end_leftover(struct app *app, int64_t now, struct sandbox_row *row, struct err *err)
{
	struct leftovers found;
	if (!find_leftovers(app, &found, err))
		return -1;
	int rc = found.count > 0 ? row_sandbox_any(app->db, found.oldest, row, err) : 0;
	return rc == 1 ? row_sandbox_end(app->db, row, now, err) : rc;
}

bool sandbox_room_take(struct app *app, bool is_reserve, struct sandbox_row *gave_way,
		       struct err *err)
{
	int64_t now = clock_wall_ms();
	int64_t live = row_sandbox_count_live(app->db, err);
	if (live < 0)
		return false;
	if (live < app->conf->max_sandboxes)
		return true;
	if (is_reserve)
		return sandbox_room_none(app, err);
	int rc = end_reserve(app, now, gave_way, err);
	if (rc == 0)
		rc = end_leftover(app, now, gave_way, err);
	return rc == 1 || (rc == 0 && sandbox_room_none(app, err));
}

/* --- disk ---------------------------------------------------------------------------------- */

bool sandbox_room_disk(const struct app *app, struct err *err)
{
	int64_t available = spool_free_bytes(&app->spool, app->spool.data_fd, app->conf->min_free);
	bool has_bytes = available < 0 || available >= app->conf->min_free;
	if (has_bytes && spool_has_inodes(&app->spool, app->spool.data_fd))
		return true;
	if (has_bytes)
		err_set(err, ERR_QUOTA,
			"the server's disk has room for fewer than %d more files; none was created",
			SPOOL_MIN_FREE_INODES);
	else
		err_set(err, ERR_QUOTA,
			"the server's disk has less than %lld bytes left; none was created",
			(long long)app->conf->min_free);
	return err_hint(
		err,
		"Destroy sandboxes with delete_files, or delete files in them, then try again.");
}
