/* A bounded window over a directory: a heap with the greatest name on top, so that a smaller
 * one can take its place, sorted when the directory has been read. */
#include "box/names.h"

#include <errno.h>
#include <string.h>

struct names {
	char *at[NAMES_WINDOW];
	size_t count;
	const char *prefix; /* NULL: any */
	char *after;        /* last name of the window before; NULL at first */
};

struct names *names_create(const char *prefix)
{
	struct names *names = xcalloc(1, sizeof(*names));
	names->prefix = prefix;
	return names;
}

size_t names_count(const struct names *names)
{
	return names->count;
}

const char *names_at(const struct names *names, size_t i)
{
	return names->at[i];
}

bool names_are_last(const struct names *names)
{
	return names->count < NAMES_WINDOW;
}

static void clear(struct names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->at[i]);
	names->count = 0;
}

void names_destroy(struct names **names)
{
	clear(*names);
	free((*names)->after);
	free(*names);
}

static void swap(struct names *names, size_t a, size_t b)
{
	char *name = names->at[a];
	names->at[a] = names->at[b];
	names->at[b] = name;
}

static void sink(struct names *names)
{
	for (size_t i = 0, child; (child = 2 * i + 1) < names->count; i = child) {
		if (child + 1 < names->count && strcmp(names->at[child + 1], names->at[child]) > 0)
			child++;
		if (strcmp(names->at[i], names->at[child]) >= 0)
			return;
		swap(names, i, child);
	}
}

static void add(struct names *names, const char *name)
{
	if (names->prefix != NULL && strncmp(name, names->prefix, strlen(names->prefix)) != 0)
		return;
	if (names->after != NULL && strcmp(name, names->after) <= 0)
		return;
	if (names->count == NAMES_WINDOW) {
		if (strcmp(name, names->at[0]) >= 0)
			return;
		free(names->at[0]);
		names->at[0] = xstrdup(name);
		sink(names);
		return;
	}
	size_t i = names->count++;
	names->at[i] = xstrdup(name);
	for (; i > 0 && strcmp(names->at[i], names->at[(i - 1) / 2]) > 0; i = (i - 1) / 2)
		swap(names, i, (i - 1) / 2);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

bool names_next(struct names *names, DIR *dir, int64_t *total, struct err *err)
{
	if (names->count > 0) {
		free(names->after);
		names->after = names->at[--names->count];
	}
	clear(names);
	rewinddir(dir);
	*total = 0;
	const struct dirent *entry;
	errno = 0;
	while (*total < NAMES_COUNTED_MAX && (entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		++*total;
		add(names, entry->d_name);
		errno = 0;
	}
	if (errno != 0)
		return err_sys(err, "read directory in workspace");
	qsort(names->at, names->count, sizeof(names->at[0]), by_name);
	return true;
}
