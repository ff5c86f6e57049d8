/*
 * All files and directories below a directory of a sandbox, depth first and each directory in the
 * byte order of its names, from any place on. The tree may change meanwhile: what is there all the
 * time is met exactly once by walks that continue each other.
 */
#ifndef SPOOLBOX_BOX_WALK_H
#define SPOOLBOX_BOX_WALK_H

#include <stdbool.h>
#include <sys/stat.h>

#define WALK_DEPTH_MAX 16 /* names of 255 bytes fill the longest path that can be opened */
/* Entries of a directory that is walked through; who has more keeps data there, not documents,
 * and each would cost its part of every walk that passes. */
#define WALK_ENTRIES_MAX 1000

struct walk_entry {
	const char *path; /* from where the walk began; any bytes */
	const char *name; /* its last component */
	bool is_dir;      /* else a regular file */
	const struct stat *st;
};
/* False: enough was seen. */
typedef bool walk_visit(void *ctx, const struct walk_entry *entry);

struct walk_options {
	const char *after; /* continue behind this path, be it there or not; NULL: from the start */
	bool hidden;       /* names that begin with a dot as well */
};

/* Walks below root_fd. Links are neither followed nor shown, nor is what is no file. True when
 * nothing was left out: the visitor wanted all, and no directory was too large, too deep or
 * closed by its permission bits. */
bool walk_tree(int root_fd, const struct walk_options *options, walk_visit *visit, void *ctx);

#endif
