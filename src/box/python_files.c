/*
 * What a run made or changed: files of the workspace whose inode changed since it began, and what
 * the kernel named. Both are the sandbox's word; only that such a file is there is ours.
 */
#include "box/python_part.h"

#include <string.h>
#include <strings.h>

#include "box/files.h"
#include "box/walk.h"

#define ENTRIES_MAX 20000 /* some 50 ms; who has more is told that not all were looked at */

void python_changes_finish(struct python_changes *changes)
{
	for (size_t i = 0; i < changes->count; i++) {
		free(changes->files[i].path);
		free(changes->files[i].about);
	}
	free(changes->files);
	*changes = (struct python_changes){.count = 0};
}

/* --- which are handed out ------------------------------------------------------------------ */

static bool ends_with(const char *name, const char *ending, size_t len)
{
	size_t name_len = strlen(name);
	return name_len > len && strncasecmp(name + name_len - len, ending, len) == 0;
}

static bool is_wanted(const struct conf *conf, const char *name)
{
	static const char separators[] = " ,\t";
	const char *at = conf->python_artifacts + strspn(conf->python_artifacts, separators);
	while (*at != '\0') {
		size_t len = strcspn(at, separators);
		if ((len == 1 && *at == '*') || ends_with(name, at, len))
			return true;
		at += len + strspn(at + len, separators);
	}
	return false;
}

/* --- the list ------------------------------------------------------------------------------ */

struct finder {
	const struct python_work *work;
	struct python_changes *changes;
	size_t artifacts;
	int entries;
};

/* Ones that cannot be handed out are still named. */
static void add(struct finder *finder, const char *path, int64_t size, bool is_artifact,
		const char *about)
{
	struct python_changes *changes = finder->changes;
	is_artifact = is_artifact && finder->artifacts < PYTHON_ARTIFACTS_MAX;
	if (!is_artifact && changes->count - finder->artifacts >= PYTHON_CHANGED_MAX) {
		changes->partial = true;
		return;
	}
	finder->artifacts += is_artifact;
	changes->files = xrealloc(changes->files, (changes->count + 1) * sizeof(*changes->files));
	changes->files[changes->count++] = (struct python_file){
		.path = xstrdup(path),
		.size = size,
		.is_artifact = is_artifact,
		.about = about == NULL ? NULL : xstrdup(about),
	};
}

static bool is_listed(const struct python_changes *changes, const char *path)
{
	for (size_t i = 0; i < changes->count; i++)
		if (strcmp(changes->files[i].path, path) == 0)
			return true;
	return false;
}

static void add_named(struct finder *finder, const struct kernel_file *file)
{
	struct err err = ERR_INIT;
	struct stat st;
	AUTO_BUF path = BUF_INIT;
	if (!files_path("file", file->path, strlen(file->path), &path, &err) ||
	    is_listed(finder->changes, buf_str(&path)))
		return;
	AUTO_FD fd = files_open(finder->work->use, buf_str(&path), &st, &err);
	if (fd >= 0)
		add(finder, buf_str(&path), st.st_size, true, file->about);
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* Whatever is done to a file stamps this time, which nobody inside can set. It is as fine as a tick
 * of the kernel, or finer, so one that was staged a moment before the run is told by its own. */
static bool is_changed(const struct python_work *work, const struct walk_entry *entry)
{
	const struct python_stage *staged = work->staged;
	const struct timespec *at = &entry->st->st_ctim;
	for (size_t i = 0; staged != NULL && i < staged->count; i++)
		if (strcmp(staged->names[i], entry->path) == 0)
			return is_before(&staged->changed_at[i], at);
	return !is_before(at, &work->began);
}

static bool visit(void *ctx, const struct walk_entry *entry)
{
	struct finder *finder = ctx;
	const struct python_work *work = finder->work;
	if (++finder->entries > ENTRIES_MAX)
		return false;
	if (!entry->is_dir && is_changed(work, entry) && !is_listed(finder->changes, entry->path))
		add(finder, entry->path, entry->st->st_size,
		    is_wanted(work->app->conf, entry->name), NULL);
	return true;
}

static int by_rank(const void *a, const void *b)
{
	const struct python_file *one = a, *other = b;
	if (one->is_artifact != other->is_artifact)
		return one->is_artifact ? -1 : 1;
	return strcmp(one->path, other->path);
}

void python_find_changes(const struct python_work *work)
{
	const struct kernel_run *run = &work->result->run;
	struct python_changes *changes = &work->result->changes;
	struct finder finder = {.work = work, .changes = changes};
	for (size_t i = 0; i < run->file_count; i++)
		add_named(&finder, &run->files[i]);
	if (!walk_tree(work->use->workspace_fd, &(struct walk_options){.hidden = false}, visit,
		       &finder))
		changes->partial = true;
	if (changes->count > 0)
		qsort(changes->files, changes->count, sizeof(*changes->files), by_rank);
}
