/*
 * The rules about what takes room: links and rows that nobody asks for any more, caches when the
 * disk is nearly full, the trash, logs of the service, and the database itself. What is deleted
 * from the database goes in slices, so that no request waits for one.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "box/idle.h"
#include "box/reap_rule.h"
#include "box/sandbox_end.h"
#include "store/row_gone.h"
#include "store/row_link.h"
#include "store/row_task.h"
#include "store/task_dir.h"

#define DAY_MS       (86400 * 1000LL)
#define SLICE        100          /* rows in one transaction: some 5 ms */
#define LINK_AGE_MS  (8 * DAY_MS) /* no link lives longer than 7 days: SMCP_URL_TTL, ttl_seconds */
#define USED_KEPT_MS DAY_MS       /* so long a used link says that it was */
#define CACHE        ".cache"     /* XDG base directories; HOME is /workspace */
/* Nobody waits for a cache that was of no use for so long. */
#define CACHE_IDLE_MS (10 * 60 * 1000LL)
#define SWEEP_MIN_MS  500 /* the trash gets smaller even when other rules used the budget up */
#define TASKS_LOG     "tasks.log"
#define TASKS_LOG_MAX (10 * 1024 * 1024)

/* --- links --------------------------------------------------------------------------------- */

/* Expiry is a time of the wall clock, as in the link itself. When the clock jumped since a link was
 * made, it says nothing; then the link's age does. */
static struct link_stale stale_links(const struct reap *reap)
{
	const struct timeline *timeline = &reap->timeline;
	const struct clock_gap *newest = &timeline->gaps[0];
	return (struct link_stale){
		.now = timeline->now,
		.used_until = timeline_cutoff(timeline, USED_KEPT_MS),
		.exact_from = timeline->gap_count > 0 ? newest->from_at + newest->ms : 0,
		.made_until = timeline_cutoff(timeline, LINK_AGE_MS),
	};
}

/* Deletes one slice. The number of links, or -1 with err. */
static int64_t drop_links(struct reap *reap, const struct link_stale *stale, struct err *err)
{
	AUTO_BUF ids = BUF_INIT;
	AUTO_TX tx = TX_INIT;
	struct db *db = reap->app->db;
	int64_t count = row_link_ids_stale(db, stale, SLICE, &ids, err);
	if (count <= 0)
		return count;
	reap_step(reap, "drop_links");
	if (!db_begin(db, &tx, err))
		return -1;
	for (int64_t i = 0; i < count; i++)
		if (row_link_delete_stale(db, ids.data + i * (ID_LEN + 1), stale->now, err) < 0)
			return -1;
	return db_commit(&tx, err) ? count : -1;
}

/* Links from a time that is still to come would stay until then. */
static void reset_early_links(struct reap *reap)
{
	struct err err = ERR_INIT;
	int64_t now = reap->timeline.now;
	if (reap->options->dry_run)
		return;
	int count = row_link_reset(reap->app->db, now + TIMELINE_JUMP_MS, now, SLICE, &err);
	if (count < 0)
		reap_failed(reap, "early_links", &err);
	else if (count > 0 && reap_act(reap, &reap->report->repaired, "reset_links",
				       "count=%d why=\"they were made in the future\"", count))
		reap->report->repaired += count - 1;
}

void reap_links(struct reap *reap)
{
	struct err err = ERR_INIT;
	struct link_stale stale = stale_links(reap);
	int64_t *dropped = &reap->report->links_dropped;
	reset_early_links(reap);
	int64_t due = row_link_count_stale(reap->app->db, &stale, &err);
	if (due < 0)
		reap_failed(reap, "links", &err);
	if (due <= 0)
		return;
	bool really = reap_act(reap, dropped, "drop_links",
			       "count=%" PRId64 " why=\"expired, or used a day ago\"", due);
	*dropped += really ? -1 : due - 1; /* counted as they go */
	while (really && !reap_is_late(reap)) {
		int64_t count = drop_links(reap, &stale, &err);
		if (count < 0)
			reap_failed(reap, "links", &err);
		if (count <= 0)
			return;
		*dropped += count;
		reap_rest(reap);
	}
}

/* --- rows ---------------------------------------------------------------------------------- */

static bool is_there(int dirfd, const char *name)
{
	return faccessat(dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

/* 1: something of it is on disk, or of its tasks runs; 0: not; -1 with err. */
static int is_left(struct reap *reap, const struct gone_row *row, struct err *err)
{
	const struct app *app = reap->app;
	if (row->running > 0 || is_there(app->spool.run_fd, row->id))
		return 1;
	if (!is_there(app->spool.data_fd, row->files_id))
		return 0;
	int in_use = row_gone_files_in_use(app->db, row->files_id, err);
	return in_use < 0 ? -1 : !in_use; /* those of a later incarnation are not its own */
}

/* Some tasks with their directories; directories first, as for logs. Their number or -1. */
static int64_t forget_tasks(struct reap *reap, const char *sandbox_id, struct err *err)
{
	AUTO_BUF ids = BUF_INIT;
	AUTO_TX tx = TX_INIT;
	struct app *app = reap->app;
	int64_t count = row_task_ids_of_sandbox(app->db, sandbox_id, SLICE, &ids, err);
	if (count <= 0)
		return count;
	for (int64_t i = 0; i < count; i++) {
		reap_step(reap, "drop_task");
		if (!spool_drop_task(&app->spool, ids.data + i * (ID_LEN + 1), err))
			return -1;
	}
	reap_step(reap, "forget_tasks");
	if (!db_begin(app->db, &tx, err))
		return -1;
	for (int64_t i = 0; i < count; i++)
		if (row_task_delete(app->db, ids.data + i * (ID_LEN + 1), err) < 0)
			return -1;
	if (!db_commit(&tx, err))
		return -1;
	reap_rest(reap);
	return count;
}

/* Its links, and the row with the last of them. 1 done, 0 there is more, -1 with err. */
static int forget_row(struct reap *reap, const char *id, struct err *err)
{
	AUTO_TX tx = TX_INIT;
	struct db *db = reap->app->db;
	reap_step(reap, "forget_sandbox");
	if (!db_begin(db, &tx, err))
		return -1;
	int links = row_link_delete_of_sandbox(db, id, SLICE, err);
	if (links < 0 || (links < SLICE && row_gone_forget(db, id, err) < 0) ||
	    !db_commit(&tx, err))
		return -1;
	reap_rest(reap);
	return links < SLICE;
}

static bool forget(struct reap *reap, const struct gone_row *row, struct err *err)
{
	int64_t tasks = 1;
	int done = 0;
	while (tasks > 0 && !reap_is_late(reap))
		tasks = forget_tasks(reap, row->id, err);
	while (tasks == 0 && done == 0 && !reap_is_late(reap))
		done = forget_row(reap, row->id, err);
	return tasks >= 0 && done >= 0;
}

struct gone_walk {
	struct reap *reap;
	struct gone_row last;
	int64_t seen;
};

static bool forget_if_nothing_is_left(void *ctx, const struct gone_row *row)
{
	struct gone_walk *walk = ctx;
	struct reap *reap = walk->reap;
	struct err err = ERR_INIT;
	char ended[CLOCK_RFC3339_LEN];
	if (reap_is_late(reap))
		return false;
	walk->last = *row;
	walk->seen++;
	reap->report->looked_at++;
	int left = is_left(reap, row, &err);
	if (left > 0)
		reap_leave(reap, "row", "id=%s why=\"it is gone for long, but not all of it went\"",
			   row->id);
	else if (left == 0 && reap_act(reap, &reap->report->rows_dropped, "forget_sandbox",
				       "id=%s ended=%s why=\"gone for long\"", row->id,
				       clock_rfc3339(row->ended_at, ended)))
		left = forget(reap, row, &err) ? 0 : -1;
	if (left < 0)
		reap_failed(reap, row->id, &err);
	return true;
}

void reap_old_rows(struct reap *reap)
{
	struct gone_walk walk = {.reap = reap};
	struct err err = ERR_INIT;
	int64_t until = timeline_cutoff(&reap->timeline, reap->app->conf->idle_remove * 1000);
	do {
		walk.seen = 0;
		if (!row_gone_each(reap->app->db, until, &walk.last, SLICE,
				   forget_if_nothing_is_left, &walk, &err)) {
			reap_failed(reap, "gone_sandboxes", &err);
			return;
		}
	} while (walk.seen == SLICE);
}

/* --- room on the disk ---------------------------------------------------------------------- */

static bool has_room(const struct app *app)
{
	int64_t bytes = fs_free_bytes(app->spool.data_fd);
	int64_t inodes = fs_free_inodes(app->spool.data_fd);
	return (bytes < 0 || bytes >= app->conf->min_free) &&
	       (inodes < 0 || inodes >= SPOOL_MIN_FREE_INODES);
}

/* The workspace is hostile: a link of that name is none of ours, and the rename takes what has the
 * name, whatever it has become meanwhile. -1: there is no such directory. Who only looks must not
 * change the mode of a closed workspace, as opening it does. */
static int open_cache_parent(const struct reap *reap, const struct sandbox_row *row)
{
	struct err err = ERR_INIT;
	const struct app *app = reap->app;
	char path[ID_LEN + sizeof("/workspace/" CACHE)];
	snprintf(path, sizeof(path), "%s/workspace/" CACHE, row->files_id);
	if (reap->options->dry_run)
		return openat(app->spool.data_fd, path,
			      O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_FD workspace = spool_workspace(&app->spool, row->files_id, &err);
	AUTO_FD cache = workspace < 0 ? -1
				      : fs_open_beneath(workspace, CACHE,
							O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	return cache < 0 ? -1 : TAKE_FD(workspace);
}

static void drop_cache(struct reap *reap, struct sandbox_hold *hold, int workspace_fd)
{
	struct err err = ERR_INIT;
	reap_step(reap, "drop_cache");
	if (spool_drop_file(&reap->app->spool, workspace_fd, CACHE, &err))
		return;
	/* A sandbox that closed its workspace is no failure of ours. */
	if (err.sys == EACCES)
		reap_leave(reap, "cache", "id=%s why=\"the mode of its workspace forbids it\"",
			   hold->row.id);
	else
		reap_failed(reap, hold->row.id, &err);
}

/* Whether it is idle for so long, with what is known of it now. */
static bool is_idle(const struct reap *reap, const struct sandbox_row *row)
{
	return idle_doubt(row) == NULL && row->last_used_at <= reap->timeline.now &&
	       timeline_age(&reap->timeline, row->last_used_at) >= CACHE_IDLE_MS;
}

static bool drop_idle_cache(void *ctx, const struct sandbox_row *row)
{
	struct reap *reap = ctx;
	struct err err = ERR_INIT;
	AUTO_SANDBOX_HOLD hold = SANDBOX_HOLD_INIT;
	if (reap_is_late(reap))
		return false;
	reap->report->looked_at++;
	AUTO_FD workspace = open_cache_parent(reap, row);
	if (workspace < 0)
		return true;
	enum sandbox_held held = reap->options->dry_run ? sandbox_peek(reap->app, row, &hold, &err)
							: sandbox_hold(reap->app, row, &hold, &err);
	if (held == SANDBOX_HELD_NONE)
		reap_failed(reap, row->id, &err);
	if (held != SANDBOX_HELD || !is_idle(reap, &hold.row))
		return true;
	if (!reap_act(reap, &reap->report->caches_dropped, "drop_cache",
		      "id=%s idle_s=%" PRId64 " free_bytes=%" PRId64 " free_inodes=%" PRId64
		      " why=\"the disk is nearly full\"",
		      row->id, timeline_age(&reap->timeline, hold.row.last_used_at) / 1000,
		      fs_free_bytes(reap->app->spool.data_fd),
		      fs_free_inodes(reap->app->spool.data_fd)))
		return true;
	drop_cache(reap, &hold, workspace);
	sandbox_unhold(&hold); /* nobody waits while it is deleted */
	spool_sweep(&reap->app->spool, reap->until_ms - clock_mono_ms());
	return !has_room(reap->app);
}

void reap_disk_space(struct reap *reap)
{
	struct app *app = reap->app;
	struct err err = ERR_INIT;
	if (has_room(app))
		return;
	if (!reap->options->dry_run)
		spool_sweep(&app->spool, reap->until_ms - clock_mono_ms());
	if (has_room(app))
		return;
	int64_t until = timeline_cutoff(&reap->timeline, CACHE_IDLE_MS);
	if (!row_sandbox_each_unused(app->db, until, drop_idle_cache, reap, &err))
		reap_failed(reap, "disk_space", &err);
	else if (!has_room(app))
		log_event(LOG_WARN, "reap_disk_full",
			  "free_bytes=%" PRId64 " free_inodes=%" PRId64
			  " hint=\"new sandboxes and uploads are refused; make room\"",
			  fs_free_bytes(app->spool.data_fd), fs_free_inodes(app->spool.data_fd));
}

/* --- trash, logs, database ----------------------------------------------------------------- */

void reap_trash(struct reap *reap)
{
	int64_t left_ms = reap->until_ms - clock_mono_ms();
	if (reap->options->dry_run || !spool_has_trash(&reap->app->spool))
		return;
	reap_step(reap, "sweep_trash");
	if (spool_sweep(&reap->app->spool, left_ms > SWEEP_MIN_MS ? left_ms : SWEEP_MIN_MS))
		return;
	log_event(LOG_INFO, "reap_trash", "left=1 why=\"%s\"",
		  reap_is_late(reap) ? "more than there was time for" : "some cannot be deleted");
}

/* Writers go on with the file that they have open, and end with their tasks. */
void reap_service_logs(struct reap *reap)
{
	int root = reap->app->spool.root_fd;
	int64_t rotated = 0;
	struct err err = ERR_INIT;
	struct stat st;
	if (fstatat(root, TASKS_LOG, &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_size <= TASKS_LOG_MAX)
		return;
	if (!reap_act(reap, &rotated, "rotate_log", "name=" TASKS_LOG " bytes=%lld",
		      (long long)st.st_size))
		return;
	reap_step(reap, "rotate_log");
	if (renameat(root, TASKS_LOG, root, TASKS_LOG ".1") == 0)
		return;
	err_sys(&err, "rotate " TASKS_LOG);
	reap_failed(reap, TASKS_LOG, &err);
}

void reap_database(struct reap *reap)
{
	struct err err = ERR_INIT;
	struct db_tidied tidied;
	if (reap->options->dry_run)
		return;
	reap_step(reap, "tidy_database");
	if (!db_tidy(reap->app->db, reap->until_ms, &tidied, &err))
		reap_failed(reap, "database", &err);
	else if (tidied.truncated || tidied.freed_pages > 0)
		log_event(LOG_INFO, "reap_database",
			  "wal_bytes=%" PRId64 " truncated=%d freed_pages=%" PRId64
			  " free_pages=%" PRId64,
			  tidied.wal_bytes, tidied.truncated, tidied.freed_pages,
			  tidied.free_pages);
}
