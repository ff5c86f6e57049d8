/*
 * What a run made or changed: what the kernel named, and files of the workspace whose inode changed
 * since it began. Both are the sandbox's word; only that such a file is there is ours. The
 * workspace itself comes first, however many entries it has, as that is where results are written;
 * then what is below it.
 */
#include "box/python_part.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>

#include "base/fs.h"
#include "box/files.h"
#include "box/walk.h"

/* Who has more is told that not all were looked at. */
#define ENTRIES_MAX      20000  /* some 50 ms */
#define ROOT_ENTRIES_MAX 100000 /* some 180 ms */
/* Changed ones of the workspace itself, of each kind, that are put in order before any is left out.
 */
#define ROOT_CHANGED_MAX 4096

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

static void append(struct python_changes *changes, const char *path, int64_t size, bool is_artifact,
		   const char *about)
{
	changes->files = xrealloc(changes->files, (changes->count + 1) * sizeof(*changes->files));
	changes->files[changes->count++] = (struct python_file){
		.path = xstrdup(path),
		.size = size,
		.is_artifact = is_artifact,
		.about = about == NULL ? NULL : xstrdup(about),
	};
}

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
	append(changes, path, size, is_artifact, about);
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
static bool is_changed(const struct python_work *work, const char *path, const struct stat *st)
{
	const struct python_stage *staged = work->staged;
	const struct timespec *at = &st->st_ctim;
	for (size_t i = 0; staged != NULL && i < staged->count; i++)
		if (strcmp(staged->names[i], path) == 0)
			return is_before(&staged->changed_at[i], at);
	return !is_before(at, &work->began);
}

static int by_rank(const void *a, const void *b)
{
	const struct python_file *one = a, *other = b;
	if (one->is_artifact != other->is_artifact)
		return one->is_artifact ? -1 : 1;
	return strcmp(one->path, other->path);
}

static void put_in_order(struct python_changes *changes)
{
	if (changes->count > 0)
		qsort(changes->files, changes->count, sizeof(*changes->files), by_rank);
}

/* --- the workspace itself ------------------------------------------------------------------ */

/* What a pass over it finds. */
struct root {
	struct python_changes artifacts, others;
	bool has_dirs;
};

static void root_finish(struct root *root)
{
	python_changes_finish(&root->artifacts);
	python_changes_finish(&root->others);
}
#define AUTO_ROOT __attribute__((cleanup(root_finish))) struct root

static void look_at_name(const struct python_work *work, int dir_fd, const char *name,
			 struct root *root)
{
	struct stat st;
	if (name[0] == '.' || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return;
	root->has_dirs |= S_ISDIR(st.st_mode);
	if (!S_ISREG(st.st_mode) || !is_changed(work, name, &st))
		return;
	bool is_artifact = is_wanted(work->app->conf, name);
	struct python_changes *changes = is_artifact ? &root->artifacts : &root->others;
	changes->partial = changes->count == ROOT_CHANGED_MAX;
	if (!changes->partial)
		append(changes, name, st.st_size, is_artifact, NULL);
}

static void closedir_of(DIR **dir)
{
	if (*dir != NULL)
		closedir(*dir);
}

/* False when not all of it could be looked at. */
static bool read_root(const struct python_work *work, struct root *root)
{
	AUTO_FD fd = fs_open_beneath(work->use->workspace_fd, ".",
				     O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	__attribute__((cleanup(closedir_of))) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	if (dir == NULL)
		return false;
	(void)TAKE_FD(fd); /* dir owns it */
	for (int seen = 0; (entry = readdir(dir)) != NULL; seen++) {
		if (seen == ROOT_ENTRIES_MAX)
			return false;
		look_at_name(work, dirfd(dir), entry->d_name, root);
	}
	return !root->artifacts.partial && !root->others.partial;
}

static void add_all(struct finder *finder, struct python_changes *found)
{
	put_in_order(found);
	for (size_t i = 0; i < found->count; i++) {
		const struct python_file *file = &found->files[i];
		if (!is_listed(finder->changes, file->path))
			add(finder, file->path, file->size, file->is_artifact, NULL);
	}
}

/* True when there are directories, which may hold more. */
static bool add_root(struct finder *finder)
{
	AUTO_ROOT root = {.has_dirs = false};
	if (!read_root(finder->work, &root)) {
		root.has_dirs = true; /* for all we know */
		finder->changes->partial = true;
	}
	add_all(finder, &root.artifacts);
	add_all(finder, &root.others);
	return root.has_dirs;
}

/* --- below it ------------------------------------------------------------------------------ */

static bool visit(void *ctx, const struct walk_entry *entry)
{
	struct finder *finder = ctx;
	const struct python_work *work = finder->work;
	if (++finder->entries > ENTRIES_MAX)
		return false;
	bool is_below = strchr(entry->path, '/') != NULL;
	if (is_below && !entry->is_dir && is_changed(work, entry->path, entry->st) &&
	    !is_listed(finder->changes, entry->path))
		add(finder, entry->path, entry->st->st_size,
		    is_wanted(work->app->conf, entry->name), NULL);
	return true;
}

void python_find_changes(const struct python_work *work)
{
	const struct kernel_run *run = &work->result->run;
	struct python_changes *changes = &work->result->changes;
	struct finder finder = {.work = work, .changes = changes};
	for (size_t i = 0; i < run->file_count; i++)
		add_named(&finder, &run->files[i]);
	if (add_root(&finder) &&
	    !walk_tree(work->use->workspace_fd, &(struct walk_options){.hidden = false}, visit,
		       &finder))
		changes->partial = true;
	put_in_order(changes);
}
