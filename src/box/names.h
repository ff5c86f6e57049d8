/*
 * The names in a directory in order, in bounded memory: window after window of them, each found
 * by reading the whole directory. All but huge directories fit into the first.
 */
#ifndef SPOOLBOX_BOX_NAMES_H
#define SPOOLBOX_BOX_NAMES_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/util.h"

#define NAMES_WINDOW      8192    /* names held at once: 2 MiB at 255 bytes each */
#define NAMES_COUNTED_MAX 1000000 /* entries read of one directory */

struct names;

/* Only names that begin with prefix are taken, if it is not NULL; borrowed. */
struct names *names_create(const char *prefix);
void names_destroy(struct names **names);
#define AUTO_NAMES __attribute__((cleanup(names_destroy)))

/* Replaces the window by the names that follow it; at first by the smallest ones. *total is the
 * number of entries, without "." and "..", whatever their names begin with. */
bool names_next(struct names *names, DIR *dir, int64_t *total, struct err *err) MUST_USE;

size_t names_count(const struct names *names);
/* The i'th name of the window; valid until the next window. */
const char *names_at(const struct names *names, size_t i);
/* Whether no names follow the window. */
bool names_are_last(const struct names *names);

#endif
