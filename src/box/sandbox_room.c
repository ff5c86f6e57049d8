/* See sandbox_room.h. */
#include "box/sandbox_room.h"

#include "base/clock.h"
#include "box/sandbox_end.h"
#include "store/row_reserve.h"

#define PURGE_MAX 64 /* ended lifetimes that one create cleans up at most */

bool sandbox_room_none(const struct app *app, struct err *err)
{
	err_set(err, ERR_QUOTA, "all %lld sandboxes of this server are in use; none was created",
		(long long)app->conf->max_sandboxes);
	return err_hint(
		err, "Destroy one that is not needed any more (list_sandboxes, destroy_sandbox), "
		     "use an existing one, or try again later.");
}

/* Room is made by ending what is over, until there is some. */
struct purge {
	struct app *app;
	bool is_reserve;
	int left;
	bool ok, full;
	struct err *err;
};

static bool look(struct purge *purge)
{
	struct db *db = purge->app->db;
	int64_t live = row_sandbox_count_live(db, purge->err);
	int64_t yield = live < 0 || purge->is_reserve ? 0 : row_reserve_count(db, purge->err);
	purge->ok = live >= 0 && yield >= 0;
	purge->full = live - yield >= purge->app->conf->max_sandboxes;
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
	/* One whose lifetime is over gives way as well: 0 as the time. */
	int rc = row_reserve_oldest(app->db, NULL, 0, gave_way, err);
	if (rc == 1)
		rc = row_reserve_end(app->db, gave_way->id, now, err);
	return rc == 1 || (rc == 0 && sandbox_room_none(app, err));
}

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
