/*
 * Files of ours and hostile files. See fs.h for the two kinds; the difference is which call
 * opens them.
 */
#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#define READ_CHUNK     (64 * 1024)
#define RENAME_RETRIES 64 /* EAGAIN of openat2: a rename elsewhere in the tree raced with ".." */
#define TREE_DEPTH_MAX 2048

int fs_open_dir(int dirfd, const char *name, struct err *err)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		err_sys(err, "open directory %s", name);
	return fd;
}

DIR *fs_open_listing(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (dir == NULL && fd >= 0) {
		int sys = errno;
		close(fd);
		errno = sys;
	}
	return dir;
}

void fs_close_listing(DIR **dir)
{
	if (*dir != NULL)
		closedir(*dir);
}

bool fs_is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

int fs_make_dir(int dirfd, const char *name, struct err *err)
{
	if (mkdirat(dirfd, name, 0700) != 0 && errno != EEXIST) {
		err_sys(err, "make directory %s", name);
		return -1;
	}
	return fs_open_dir(dirfd, name, err);
}

int fs_open_beneath(int rootfd, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC),
		.mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? mode : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	/* O_PATH takes no other flags but these two. */
	if ((flags & O_PATH) == 0)
		how.flags |= O_NONBLOCK | O_NOCTTY;
	for (int i = 0;; i++) {
		int fd = (int)syscall(SYS_openat2, rootfd, path[0] == '\0' ? "." : path, &how,
				      sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR) || i == RENAME_RETRIES)
			return fd;
	}
}

static int open_dir_beneath(int rootfd, const char *path)
{
	return fs_open_beneath(rootfd, path, O_RDONLY | O_DIRECTORY, 0);
}

/* Opens a directory beneath rootfd, making it and its parents when they are missing. Each is
 * resolved from the root, since what exists of the path may hold links. */
static int make_dir_beneath(int rootfd, const char *path)
{
	int fd = open_dir_beneath(rootfd, path);
	if (fd >= 0 || errno != ENOENT)
		return fd;
	const char *name;
	AUTO_FD parent = fs_open_parent(rootfd, path, true, &name);
	if (parent < 0 || (mkdirat(parent, name, 0755) != 0 && errno != EEXIST))
		return -1;
	/* Else a power cut could take the directory away under a file that was acknowledged. */
	if (fsync(parent) != 0)
		return -1;
	return open_dir_beneath(parent, name);
}

int fs_open_parent(int rootfd, const char *path, bool make, const char **base)
{
	const char *slash = strrchr(path, '/');
	*base = slash == NULL ? path : slash + 1;
	if (slash == NULL)
		return open_dir_beneath(rootfd, ".");
	AUTO_FREE char *parent = xstrndup(path, (size_t)(slash - path));
	return make ? make_dir_beneath(rootfd, parent) : open_dir_beneath(rootfd, parent);
}

bool fs_read_all(int fd, size_t max, struct buf *out, struct err *err)
{
	size_t got = 0;
	for (;;) {
		size_t want = max - got < READ_CHUNK ? max - got + 1 : READ_CHUNK;
		char *to = buf_reserve(out, want);
		ssize_t n = read(fd, to, want);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "read");
		got += (size_t)n;
		if (got > max)
			return err_set(err, ERR_TOO_LARGE,
				       "it is larger than the limit of %zu bytes", max);
		out->len += (size_t)n;
		out->data[out->len] = '\0';
		if (n == 0)
			return true;
	}
}

bool fs_write_all(int fd, const void *data, size_t len, struct err *err)
{
	const char *p = data;
	while (len > 0) {
		ssize_t n = write(fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "write");
		p += n;
		len -= (size_t)n;
	}
	return true;
}

bool fs_sync_dir(int dirfd, struct err *err)
{
	return fsync(dirfd) == 0 || err_sys(err, "fsync directory");
}

bool fs_write_atomic(int dirfd, const char *name, const void *data, size_t len, mode_t mode,
		     struct err *err)
{
	char temp[64];
	snprintf(temp, sizeof(temp), ".new-%08x%08x", (unsigned)randombytes_random(),
		 (unsigned)randombytes_random());
	AUTO_FD fd = openat(dirfd, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return err_sys(err, "create %s", name);
	if (!fs_write_all(fd, data, len, err)) {
		unlinkat(dirfd, temp, 0);
		return false;
	}
	if (fsync(fd) != 0 || renameat(dirfd, temp, dirfd, name) != 0) {
		err_sys(err, "publish %s", name);
		unlinkat(dirfd, temp, 0);
		return false;
	}
	return fs_sync_dir(dirfd, err);
}

static bool remove_below(int dirfd, const char *name, dev_t device, int depth, struct err *err);

/* Removes every entry of a directory; what a concurrent process adds is seen by another pass. */
static bool remove_entries(int fd, dev_t device, int depth, struct err *err)
{
	AUTO_DIR *dir = fs_open_listing(fd, ".");
	if (dir == NULL)
		return err_sys(err, "read directory");
	bool ok = true;
	const struct dirent *entry;
	while (ok && (entry = readdir(dir)) != NULL) {
		if (!fs_is_dots(entry->d_name))
			ok = remove_below(fd, entry->d_name, device, depth + 1, err);
	}
	return ok;
}

static bool remove_below(int dirfd, const char *name, dev_t device, int depth, struct err *err)
{
	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return true;
	if (errno != EISDIR && errno != EPERM && errno != EACCES)
		return err_sys(err, "remove");
	if (depth > TREE_DEPTH_MAX)
		return err_set(err, ERR_IO, "directories nested too deeply");
	AUTO_FD fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == EACCES) {
		/* A directory without permissions: it is ours, so open it up. A link swapped in is
		 * refused by O_NOFOLLOW of the second open. */
		AUTO_FD path = openat(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		char proc[64];
		snprintf(proc, sizeof(proc), "/proc/self/fd/%d", path);
		if (path >= 0 && chmod(proc, 0700) == 0)
			fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	struct stat st;
	if (fd < 0 || fstat(fd, &st) != 0)
		return err_sys(err, "open for removal");
	if (st.st_dev != device)
		return err_set(err, ERR_IO, "another file system is mounted below");
	if ((st.st_mode & 0700) != 0700 && fchmod(fd, 0700) != 0)
		return err_sys(err, "chmod for removal");
	if (!remove_entries(fd, device, depth, err))
		return false;
	if (unlinkat(dirfd, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
		return err_sys(err, "remove directory");
	return true;
}

bool fs_remove_tree(int dirfd, const char *name, struct err *err)
{
	struct stat st;
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT || err_sys(err, "stat for removal");
	return remove_below(dirfd, name, st.st_dev, 0, err);
}

int64_t fs_free_bytes(int fd)
{
	struct statvfs st;
	if (fstatvfs(fd, &st) != 0)
		return -1;
	return (int64_t)st.f_bavail * (int64_t)st.f_frsize;
}

int64_t fs_free_inodes(int fd)
{
	struct statvfs st;
	if (fstatvfs(fd, &st) != 0 || st.f_files == 0)
		return -1;
	return (int64_t)st.f_favail;
}

bool fs_program_dir(struct buf *out)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (n <= 0)
		return false;
	path[n] = '\0';
	char *slash = strrchr(path, '/');
	if (slash == NULL)
		return false;
	buf_append(out, path, (size_t)(slash - path));
	return true;
}
