/*
 * A walk holds one descriptor and the names of one directory for each level. Each directory is
 * opened beneath the one above it, without following a link, so a tree that is moved about while
 * we are in it leads nowhere else.
 */
#include "box/walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/util.h"

struct walk {
	const struct walk_options *options;
	walk_visit *visit;
	void *ctx;
	struct buf path; /* of the directory or entry that is looked at */
	bool is_whole;   /* nothing was left out so far */
	bool is_over;    /* the visitor has enough */
};

struct level {
	DIR *dir;
	char *names[WALK_ENTRIES_MAX];
	size_t count;
};

static void level_close(struct level **level)
{
	if (*level == NULL)
		return;
	for (size_t i = 0; i < (*level)->count; i++)
		free((*level)->names[i]);
	closedir((*level)->dir);
	free(*level);
}
#define AUTO_LEVEL __attribute__((cleanup(level_close))) struct level

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_wanted(const struct walk *walk, const char *name)
{
	if (name[0] != '.')
		return true;
	return walk->options->hidden && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Collects the names of a directory. False when there are too many; hidden ones count, as they are
 * read as well, and the two that every directory has do not. */
static bool read_names(const struct walk *walk, struct level *level)
{
	const struct dirent *entry;
	for (int seen = 0; (entry = readdir(level->dir)) != NULL; seen++) {
		bool wanted = is_wanted(walk, entry->d_name);
		if (seen == WALK_ENTRIES_MAX + 2 || (wanted && level->count == WALK_ENTRIES_MAX))
			return false;
		if (wanted)
			level->names[level->count++] = xstrdup(entry->d_name);
	}
	qsort(level->names, level->count, sizeof(level->names[0]), by_name);
	return true;
}

/* NULL when it is gone, no directory any more, closed, or too large. */
static struct level *level_open(const struct walk *walk, int parent_fd, const char *name)
{
	AUTO_FD fd = fs_open_beneath(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (dir == NULL)
		return NULL;
	(void)TAKE_FD(fd); /* dir owns it */
	AUTO_LEVEL *level = xcalloc(1, sizeof(*level));
	level->dir = dir;
	return read_names(walk, level) ? TAKE_PTR(level) : NULL;
}

static void show(struct walk *walk, const char *name, const struct stat *st)
{
	struct walk_entry entry = {
		.path = buf_str(&walk->path),
		.name = name,
		.is_dir = S_ISDIR(st->st_mode),
		.st = st,
	};
	if (!walk->visit(walk->ctx, &entry))
		walk->is_over = true;
}

/* What a walk does at a name, given the path behind which it continues in this directory. */
enum place { BEFORE, WITHIN, BEHIND };

static enum place place_of(const char *name, const char *after, const char **below)
{
	*below = "";
	size_t len = strcspn(after, "/");
	if (len == 0)
		return BEHIND;
	AUTO_FREE char *first = xstrndup(after, len);
	int order = strcmp(name, first);
	if (order == 0)
		*below = after + len + strspn(after + len, "/");
	return order < 0 ? BEFORE : order == 0 ? WITHIN : BEHIND;
}

static void walk_level(struct walk *walk, int parent_fd, const char *name, const char *after,
		       int depth);

static void walk_name(struct walk *walk, int dir_fd, const char *name, const char *after, int depth)
{
	struct stat st;
	const char *below;
	enum place place = place_of(name, after, &below);
	if (place == BEFORE || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return;
	if (place == BEHIND && (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)))
		show(walk, name, &st);
	if (S_ISDIR(st.st_mode) && !walk->is_over)
		walk_level(walk, dir_fd, name, below, depth + 1);
}

static void walk_level(struct walk *walk, int parent_fd, const char *name, const char *after,
		       int depth)
{
	AUTO_LEVEL *level = depth < WALK_DEPTH_MAX ? level_open(walk, parent_fd, name) : NULL;
	if (level == NULL)
		walk->is_whole = false;
	size_t start = walk->path.len;
	for (size_t i = 0; level != NULL && i < level->count && !walk->is_over; i++) {
		if (start > 0)
			buf_putc(&walk->path, '/');
		buf_puts(&walk->path, level->names[i]);
		walk_name(walk, dirfd(level->dir), level->names[i], after, depth);
		walk->path.len = start;
		walk->path.data[start] = '\0';
	}
}

bool walk_tree(int root_fd, const struct walk_options *options, walk_visit *visit, void *ctx)
{
	struct walk walk = {options, visit, ctx, BUF_INIT, true, false};
	walk_level(&walk, root_fd, ".", options->after == NULL ? "" : options->after, 0);
	buf_finish(&walk.path);
	return walk.is_whole && !walk.is_over;
}
