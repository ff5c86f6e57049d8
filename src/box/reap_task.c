/*
 * The rules about background tasks. A task is believed as everybody believes it (task_settle.h):
 * by its directory and its lock. What runs within its time is left alone, whoever looks.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/proc.h"
#include "box/reap_rule.h"
#include "box/task_settle.h"
#include "store/task_dir.h"

#define ROW_SLICE 100 /* rows in memory at a time; a command may have 128 KiB */
#define LOG_SLICE 100 /* logs in one transaction: some 5 ms */

/* A timeout is carried out inside of the sandbox within seconds; a supervisor that has to write its
 * result on a full disk tries for half a minute, and for as long again with the row (supervise.c).
 * Who holds the lock for longer than all that does not get on. */
#define OVERDUE_GRACE_MS 90000
/* From the order to the confirmed end: the grace of a command, and a little. */
#define ORDER_WAIT_MS 4000
#define KILL_WAIT_MS  2000
#define PAUSE_MS      10

static const char stuck_reason[] =
	"its timeout passed long ago and what looks after it did not react any more, so that was "
	"killed by the clean-up, and the command was ended with it; how far it came is not known";

/* Calls visit for all rows that read running, until the budget is used up. */
struct running_walk {
	struct reap *reap;
	void (*each)(struct reap *reap, const struct task_row *row);
	char last[ID_LEN + 1];
	int64_t seen;
};

static bool walk_row(void *ctx, const struct task_row *row)
{
	struct running_walk *walk = ctx;
	if (reap_is_late(walk->reap))
		return false;
	memcpy(walk->last, row->id, sizeof(walk->last));
	walk->seen++;
	walk->reap->report->looked_at++;
	/* Ids become names of directories. */
	if (id_is_valid(row->id) && id_is_valid(row->sandbox_id))
		walk->each(walk->reap, row);
	else
		reap_leave(walk->reap, "task", "id=%s why=\"its row is damaged\"", row->id);
	return true;
}

static void walk_running(struct reap *reap, void (*each)(struct reap *, const struct task_row *))
{
	struct running_walk walk = {.reap = reap, .each = each};
	struct err err = ERR_INIT;
	do {
		walk.seen = 0;
		if (!row_task_each_running(reap->app->db, walk.last, ROW_SLICE, walk_row, &walk,
					   &err)) {
			reap_failed(reap, "running_tasks", &err);
			return;
		}
	} while (walk.seen == ROW_SLICE);
}

/* A row of our own, which settling may change. */
static void copy_row(struct task_row *to, const struct task_row *from)
{
	*to = *from;
	to->principal = xstrdup(from->principal);
	to->request_id = from->request_id == NULL ? NULL : xstrdup(from->request_id);
	to->command = xstrdup(from->command);
	to->reason = from->reason == NULL ? NULL : xstrdup(from->reason);
}

/* --- supervisor dead ----------------------------------------------------------------------- */

static const char *const due_words[] = {
	[TASK_DUE_BEHIND] = "it ended and only its row was not written",
	[TASK_DUE_LOST] = "its supervisor is dead",
	[TASK_DUE_UNSTARTED] = "its supervisor died before it began",
};

static void settle_if_lost(struct reap *reap, const struct task_row *row)
{
	struct err err = ERR_INIT;
	AUTO_TASK_ROW mine = {0};
	enum task_due due = task_settle_due(reap->app, row, &err);
	if (err.code != ERR_NONE)
		reap_failed(reap, row->id, &err);
	if (due == TASK_DUE_NONE)
		return;
	if (!reap_act(reap, &reap->report->tasks_settled, "settle_task", "id=%s why=\"%s\"",
		      row->id, due_words[due]))
		return;
	reap_step(reap, "settle_task");
	copy_row(&mine, row);
	/* Its row may have gone meanwhile: a start that was taken back. */
	if (!task_settle(reap->app, &mine, &err) && err.code != ERR_NOT_FOUND)
		reap_failed(reap, row->id, &err);
}

void reap_lost_tasks(struct reap *reap)
{
	walk_running(reap, settle_if_lost);
}

/* --- supervisor stuck ---------------------------------------------------------------------- */

/* By how much its time is over, beyond all grace; 0 or less: it is not. The supervisor's own clock
 * stands still while the machine sleeps, ages do not: so it gets as much again as that was. */
static int64_t overdue_ms(const struct reap *reap, const struct task_row *row)
{
	int64_t since = row->started_at > 0 ? row->started_at : row->created_at;
	int64_t slept_ms = clock_boot_ms() - clock_mono_ms();
	if (since <= 0 || row->timeout_ms <= 0)
		return 0;
	return timeline_age(&reap->timeline, since) - row->timeout_ms - OVERDUE_GRACE_MS -
	       (slept_ms > 0 ? slept_ms : 0);
}

static bool still_runs(int dirfd)
{
	struct err err = ERR_INIT;
	AUTO_TASK_ROW outcome = {0};
	return task_dir_verdict(dirfd, &outcome, &err) == TASK_VERDICT_RUNNING;
}

/* False when it still runs after wait_ms. Real time passes here, whatever a test's clock says. */
static bool wait_for_end(int dirfd, int64_t wait_ms)
{
	for (int64_t waited = 0; still_runs(dirfd); waited += PAUSE_MS) {
		if (waited >= wait_ms)
			return false;
		clock_sleep_ms(PAUSE_MS);
	}
	return true;
}

/* Kills who holds the lock of a task. False with err when nobody was found, or lives on. */
static bool kill_supervisor(const char *id, int dirfd, struct err *err)
{
	pid_t pid = 0;
	AUTO_FD lock = openat(dirfd, "alive", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_FD pidfd = lock < 0 ? -1 : proc_lock_holder(lock, &pid);
	if (pidfd < 0)
		return err_set(err, ERR_UNAVAILABLE,
			       "the process that holds the lock of task %s was not found", id);
	if (proc_pidfd_signal(pidfd, SIGKILL) != 0 && errno != ESRCH)
		return err_sys(err, "kill the supervisor %d", (int)pid);
	log_event(LOG_WARN, "supervisor_killed", "task=%s pid=%d", id, (int)pid);
	struct pollfd ended = {.fd = pidfd, .events = POLLIN};
	if (poll(&ended, 1, KILL_WAIT_MS) == 1)
		return true;
	return err_set(err, ERR_BUSY, "process %d does not end", (int)pid);
}

/* An order first; who does not follow it is killed. */
static bool end_stuck(struct reap *reap, const struct task_row *row, int dirfd, struct err *err)
{
	struct err ignored = ERR_INIT;
	AUTO_TASK_ROW mine = {0};
	const char *reason = NULL;
	if (!task_dir_order(dirfd, TASK_ORDER_CANCEL, &ignored) ||
	    !wait_for_end(dirfd, ORDER_WAIT_MS)) {
		reap_step(reap, "kill_supervisor");
		if (still_runs(dirfd) && !kill_supervisor(row->id, dirfd, err))
			return false;
		reason = stuck_reason;
	}
	reap_step(reap, "settle_overdue");
	copy_row(&mine, row);
	if (reason != NULL ? task_settle_killed(reap->app, &mine, reason, err)
			   : task_settle(reap->app, &mine, err))
		return true;
	return err->code == ERR_NOT_FOUND;
}

static void end_if_overdue(struct reap *reap, const struct task_row *row)
{
	struct err err = ERR_INIT;
	int64_t over_ms = overdue_ms(reap, row);
	if (over_ms <= 0)
		return;
	AUTO_FD dirfd = task_dir_open(&reap->app->spool, row->id, &err);
	if (dirfd < 0 || !still_runs(dirfd))
		return; /* the rule about lost ones sees to it */
	if (!reap_act(reap, &reap->report->tasks_ended, "end_task",
		      "id=%s timeout_s=%" PRId64 " overdue_s=%" PRId64
		      " why=\"past its timeout and its supervisor did not end it\"",
		      row->id, row->timeout_ms / 1000, (over_ms + OVERDUE_GRACE_MS) / 1000))
		return;
	reap_step(reap, "order_cancel");
	if (!end_stuck(reap, row, dirfd, &err))
		reap_failed(reap, row->id, &err);
}

void reap_overdue_tasks(struct reap *reap)
{
	walk_running(reap, end_if_overdue);
}

/* --- logs ---------------------------------------------------------------------------------- */

/* Notes that these directories are gone. */
static bool note_gone(struct app *app, const char *ids, int64_t count, struct err *err)
{
	AUTO_TX tx = TX_INIT;
	if (!db_begin(app->db, &tx, err))
		return false;
	for (int64_t i = 0; i < count; i++)
		if (row_task_log_gone(app->db, ids + i * (ID_LEN + 1), err) < 0)
			return false;
	return db_commit(&tx, err);
}

/* Directories first: a pass that dies in between finds the rows again, and no directory. The number
 * of them, or -1 with err. */
static int64_t prune_slice(struct reap *reap, int64_t until, struct err *err)
{
	AUTO_BUF ids = BUF_INIT;
	struct app *app = reap->app;
	int64_t count = row_task_ids_of_logs(app->db, until, LOG_SLICE, &ids, err);
	for (int64_t i = 0; i < count; i++) {
		reap_step(reap, "drop_log");
		if (!spool_drop_task(&app->spool, ids.data + i * (ID_LEN + 1), err))
			return -1;
	}
	if (count > 0)
		reap_step(reap, "note_logs");
	return count <= 0 || note_gone(app, ids.data, count, err) ? count : -1;
}

/* A task that ended while the clock was ahead would keep its log until the clock is there again. */
static void reset_early_logs(struct reap *reap)
{
	struct err err = ERR_INIT;
	int64_t now = reap->timeline.now;
	if (reap->options->dry_run)
		return;
	int count =
		row_task_reset_logs(reap->app->db, now + TIMELINE_JUMP_MS, now, LOG_SLICE, &err);
	if (count < 0)
		reap_failed(reap, "early_logs", &err);
	else if (count > 0 && reap_act(reap, &reap->report->repaired, "reset_logs",
				       "count=%d why=\"they ended in the future\"", count))
		reap->report->repaired += count - 1;
}

void reap_task_logs(struct reap *reap)
{
	struct err err = ERR_INIT;
	int64_t age_ms = reap->app->conf->job_log_retention * 1000;
	int64_t until = timeline_cutoff(&reap->timeline, age_ms);
	reset_early_logs(reap);
	int64_t due = row_task_count_logs(reap->app->db, until, &err);
	if (due < 0)
		reap_failed(reap, "task_logs", &err);
	if (due <= 0)
		return;
	if (!reap_act(reap, &reap->report->logs_pruned, "prune_logs",
		      "count=%" PRId64 " why=\"ended more than %" PRId64 " s ago\"", due,
		      age_ms / 1000)) {
		reap->report->logs_pruned += due - 1;
		return;
	}
	reap->report->logs_pruned--; /* counted as they go */
	while (!reap_is_late(reap)) {
		int64_t pruned = prune_slice(reap, until, &err);
		if (pruned < 0)
			reap_failed(reap, "task_logs", &err);
		if (pruned <= 0)
			return;
		reap->report->logs_pruned += pruned;
		reap_rest(reap);
	}
}
