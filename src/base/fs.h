/*
 * Files. Two kinds of tree are kept apart:
 *   - our own (the spool): names are ours, plain *at calls from a directory descriptor;
 *   - hostile (a workspace): every path goes through openat2 with RESOLVE_BENEATH and
 *     RESOLVE_NO_MAGICLINKS from a root descriptor, is opened O_NONBLOCK | O_NOCTTY, and is
 *     looked at on the descriptor afterwards. Check-then-open does not occur.
 * Every descriptor is O_CLOEXEC.
 */
#ifndef SPOOLBOX_BASE_FS_H
#define SPOOLBOX_BASE_FS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/util.h"

/* Opens a directory of ours by name below dirfd (or an absolute path with AT_FDCWD), without
 * following a link in the last component. -1 with err set. */
int fs_open_dir(int dirfd, const char *name, struct err *err);

/* Makes a directory of ours with mode 0700 unless it is there, and opens it. */
int fs_make_dir(int dirfd, const char *name, struct err *err);

/* Opens a directory of ours, in the same way, to read its entries from the first on. NULL with
 * errno. */
DIR *fs_open_listing(int dirfd, const char *name);
void fs_close_listing(DIR **dir);
#define AUTO_DIR __attribute__((cleanup(fs_close_listing))) DIR
/* "." and "..", which every directory has. */
bool fs_is_dots(const char *name);

/* Opens path below rootfd as openat2 with the flags above. Returns the descriptor, or -1 with
 * errno set as openat2 gives it: EXDEV for an escape, ELOOP for a magic link, ENOENT, ENOTDIR…
 * EAGAIN from a concurrent rename is retried a bounded number of times. */
int fs_open_beneath(int rootfd, const char *path, int flags, mode_t mode);

/* Opens the directory that holds path's last component, beneath rootfd, making missing
 * parents (mode 0755) when make is true. *base is set to the last component inside path. -1
 * with errno. path is relative, non-empty, without "." or ".." components. */
int fs_open_parent(int rootfd, const char *path, bool make, const char **base);

/* Reads up to max bytes from the current offset to the end; appends to out. ERR_TOO_LARGE when
 * there are more. */
bool fs_read_all(int fd, size_t max, struct buf *out, struct err *err) MUST_USE;
bool fs_write_all(int fd, const void *data, size_t len, struct err *err) MUST_USE;

/* Writes a file of ours: temporary name in dirfd, fsync, rename, fsync of the directory. */
bool fs_write_atomic(int dirfd, const char *name, const void *data, size_t len, mode_t mode,
		     struct err *err) MUST_USE;

/* fsync of a directory opened without O_PATH. */
bool fs_sync_dir(int dirfd, struct err *err) MUST_USE;

/* Removes dirfd/name and everything below it without following links or crossing into another
 * file system; a missing name is success. Makes directories writable as it goes. */
bool fs_remove_tree(int dirfd, const char *name, struct err *err) MUST_USE;

/* Bytes free to an unprivileged writer on fd's file system; -1 when unknown. */
int64_t fs_free_bytes(int fd);
/* Files that can still be made there; -1 when it is unknown or not bounded (btrfs, network). */
int64_t fs_free_inodes(int fd);

/* Directory of the running executable, e.g. to find spoolbox-init beside it. False when
 * unknown. */
bool fs_program_dir(struct buf *out);

#endif
