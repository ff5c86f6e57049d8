/*
 * The rule about directories of tasks without a row. A row comes before its directory and goes
 * before it, so such a directory is left over from a start that was taken back or from a removal,
 * unless a supervisor still holds its lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "box/reap_census.h"
#include "box/task_settle.h"
#include "store/task_dir.h"

#define NEW_PREFIX ".new-"

/* Walks along a sorted list, whose ids come in the same order from the database. */
struct marker {
	const struct id_list *list;
	size_t next;
	struct id_list unknown; /* those that did not come */
};

static void mark(void *ctx, const char *id)
{
	struct marker *marker = ctx;
	size_t count = id_list_count(marker->list);
	while (marker->next < count) {
		const char *at = id_list_at(marker->list, marker->next);
		int order = strcmp(at, id);
		if (order > 0)
			return;
		if (order < 0)
			id_list_add(&marker->unknown, at);
		marker->next++;
	}
}

/* What of list no row tells of. */
static bool find_unknown(struct reap *reap, const struct id_list *list, struct id_list *unknown)
{
	struct err err = ERR_INIT;
	struct marker marker = {.list = list, .unknown = {.ids = BUF_INIT}};
	bool ok = row_census_tasks(reap->app->db, mark, &marker, &err);
	for (; ok && marker.next < id_list_count(list); marker.next++)
		id_list_add(&marker.unknown, id_list_at(list, marker.next));
	*unknown = marker.unknown;
	if (!ok)
		reap_failed(reap, "orphan_tasks", &err);
	return ok;
}

/* Takes the lock of a task's directory; *dirfd and *lock are the caller's to close. 1: nobody has
 * it, or there is none to take; 0: somebody has, or the directory is gone; -1 with err. */
static int take_lock(int dirfd, bool dry_run, int *lock, struct err *err)
{
	struct err trouble = ERR_INIT;
	if (dry_run) {
		AUTO_TASK_ROW row = {0};
		enum task_verdict verdict = task_dir_verdict(dirfd, &row, err);
		return verdict == TASK_VERDICT_NONE ? -1 : verdict != TASK_VERDICT_RUNNING;
	}
	*lock = task_dir_take_lock(dirfd, &trouble);
	if (*lock >= 0 || trouble.sys == ENOENT)
		return 1;
	if (trouble.code == ERR_BUSY)
		return 0;
	*err = trouble;
	return -1;
}

/* The start of a task takes a moment from the directory to the lock. */
static bool is_young(const struct reap *reap, int dirfd)
{
	struct stat st;
	return fstat(dirfd, &st) != 0 ||
	       timeline_age(&reap->timeline, (int64_t)st.st_mtim.tv_sec * 1000) < TASK_STARTING_MS;
}

static void act_on(struct reap *reap, const char *id, const char *prefix, const char *why)
{
	struct err err = ERR_INIT;
	char name[sizeof(NEW_PREFIX) + ID_LEN];
	snprintf(name, sizeof(name), "%s%s", prefix, id);
	if (!reap_act(reap, &reap->report->orphans_removed, "remove_task", "id=%s why=\"%s\"", id,
		      why))
		return;
	reap_step(reap, "remove_task");
	if (!spool_drop_task(&reap->app->spool, name, &err))
		reap_failed(reap, id, &err);
}

static int open_task(const struct reap *reap, const char *prefix, const char *id)
{
	char name[sizeof(NEW_PREFIX) + ID_LEN];
	snprintf(name, sizeof(name), "%s%s", prefix, id);
	return openat(reap->app->spool.tasks_fd, name,
		      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void remove_orphan(struct reap *reap, const char *id, const char *prefix)
{
	struct err err = ERR_INIT;
	bool is_running = false;
	bool is_new = prefix[0] != '\0';
	AUTO_FD lock = -1;
	AUTO_FD dirfd = open_task(reap, prefix, id);
	if (dirfd < 0 || (is_new && is_young(reap, dirfd)))
		return;
	int is_free = take_lock(dirfd, reap->options->dry_run, &lock, &err);
	/* With the lock nobody publishes it any more. */
	int rc = is_free == 1 ? row_census_task(reap->app->db, id, &is_running, &err) : 0;
	if (is_free < 0 || rc < 0)
		reap_failed(reap, id, &err);
	else if (is_free == 0 && !is_new)
		reap_leave(reap, "task", "id=%s why=\"no task has this id, but it runs\"", id);
	else if (is_free == 1 && is_new && !is_running)
		act_on(reap, id, prefix, "its start was not finished, and nobody is at it");
	else if (is_free == 1 && !is_new && rc == 0)
		act_on(reap, id, prefix, "no task has this id");
}

void reap_orphan_tasks(struct reap *reap)
{
	struct err err = ERR_INIT;
	AUTO_ID_LIST visible = {.ids = BUF_INIT};
	AUTO_ID_LIST begun = {.ids = BUF_INIT};
	AUTO_ID_LIST unknown = {.ids = BUF_INIT};
	int tasks_fd = reap->app->spool.tasks_fd;
	if (!id_list_read(&visible, tasks_fd, "", &err) ||
	    !id_list_read(&begun, tasks_fd, NEW_PREFIX, &err)) {
		reap_failed(reap, "orphan_tasks", &err);
		return;
	}
	reap->report->looked_at += (int64_t)id_list_count(&visible);
	if (!find_unknown(reap, &visible, &unknown))
		return;
	for (size_t i = 0; i < id_list_count(&unknown) && !reap_is_late(reap); i++)
		remove_orphan(reap, id_list_at(&unknown, i), "");
	for (size_t i = 0; i < id_list_count(&begun) && !reap_is_late(reap); i++)
		remove_orphan(reap, id_list_at(&begun, i), NEW_PREFIX);
}
