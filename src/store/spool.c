/*
 * Owns the layout of the state directory. All names in it are ours; the content of a workspace
 * is not, so deleting one never follows a link and never goes deeper than one level: a directory
 * that is not empty is moved up into the trash itself. That needs two descriptors for a tree of
 * any depth, and can stop and go on anywhere.
 */
#include "store/spool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/id.h"

#define SWEEP_MS 1000 /* what a call that removes a sandbox or needs room may spend on deleting */

/* --- opening ------------------------------------------------------------------------------- */

/* Opens a directory that a setting names, or a part of it ("data/ in "), making its last component.
 * What the descriptor shows is checked, so nothing can be swapped in between. */
static int open_setting(const char *path, const char *part, const char *setting, bool may_make,
			struct err *err)
{
	bool made = may_make && mkdir(path, 0700) == 0;
	if (made)
		chmod(path, 0700); /* whatever the umask took away */
	AUTO_FD fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 && errno == ENOENT && !may_make) {
		err_set(err, ERR_UNAVAILABLE,
			"%sthe directory that %s names is missing, though this spool had one; "
			"nothing was changed",
			part, setting);
		err_hint(err, "Mount its disk or put it back where it was.");
		return -1;
	}
	if (fd < 0 || fstat(fd, &st) != 0) {
		err_set(err, ERR_UNAVAILABLE, "%sthe directory that %s names cannot be opened: %s",
			part, setting, strerror(errno));
		err_hint(err,
			 "Make it with 'install -d -m 0700 -o USER DIRECTORY', where USER is whom "
			 "Spoolbox runs as, or correct %s.",
			 setting);
		return -1;
	}
	if (st.st_uid != geteuid()) {
		err_set(err, ERR_UNAVAILABLE,
			"%sthe directory that %s names belongs to user %d, but Spoolbox runs as "
			"user %d",
			part, setting, (int)st.st_uid, (int)geteuid());
		err_hint(err,
			 "Run Spoolbox as the owner, or change it with 'chown -R %d DIRECTORY'.",
			 (int)geteuid());
		return -1;
	}
	if ((st.st_mode & 077) != 0) {
		err_set(err, ERR_UNAVAILABLE,
			"%sthe directory that %s names has mode %04o: other users could reach keys "
			"and files",
			part, setting, (unsigned)st.st_mode & 07777);
		err_hint(err, "Close it with 'chmod 0700 DIRECTORY'.");
		return -1;
	}
	return TAKE_FD(fd);
}

/* A spool that was used before is not given an empty data directory: then a disk is not mounted, or
 * somebody is just moving it. Without SMCP_DATA_DIR it is SMCP_SPOOL/data: then that is the setting
 * that people know of. */
static int open_data(int root_fd, const struct conf *conf, struct err *err)
{
	bool may_make = faccessat(root_fd, SPOOL_ID_FILE, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
	size_t len = strlen(conf->spool);
	if (strncmp(conf->data_dir, conf->spool, len) == 0 &&
	    strcmp(conf->data_dir + len, "/data") == 0)
		return open_setting(conf->data_dir, "data/ in ", "SMCP_SPOOL", may_make, err);
	return open_setting(conf->data_dir, "", "SMCP_DATA_DIR", may_make, err);
}

bool spool_open(struct spool *spool, const struct conf *conf, struct err *err)
{
	*spool = (struct spool)SPOOL_INIT;
	return (spool->root_fd = open_setting(conf->spool, "", "SMCP_SPOOL", true, err)) >= 0 &&
	       (spool->data_fd = open_data(spool->root_fd, conf, err)) >= 0 &&
	       (spool->run_fd = fs_make_dir(spool->root_fd, "run", err)) >= 0 &&
	       (spool->tasks_fd = fs_make_dir(spool->root_fd, "tasks", err)) >= 0 &&
	       (spool->keys_fd = fs_make_dir(spool->root_fd, "keys", err)) >= 0 &&
	       (spool->trash_fd = fs_make_dir(spool->data_fd, ".trash", err)) >= 0 &&
	       (spool->run_trash_fd = fs_make_dir(spool->run_fd, ".trash", err)) >= 0 &&
	       (spool->tasks_trash_fd = fs_make_dir(spool->tasks_fd, ".trash", err)) >= 0;
}

void spool_close(struct spool *spool)
{
	util_close(&spool->root_fd);
	util_close(&spool->data_fd);
	util_close(&spool->run_fd);
	util_close(&spool->tasks_fd);
	util_close(&spool->keys_fd);
	util_close(&spool->trash_fd);
	util_close(&spool->run_trash_fd);
	util_close(&spool->tasks_trash_fd);
	*spool = (struct spool)SPOOL_INIT;
}

/* --- directories of a sandbox -------------------------------------------------------------- */

/* A workspace is 0755: a program in the sandbox that changes to another uid must get in. The
 * directory around it is 0700, so nobody else on the host can. */
static bool make_workspace(int files_fd, struct err *err)
{
	AUTO_FD fd = fs_make_dir(files_fd, "workspace", err);
	return fd >= 0 && (fchmod(fd, 0755) == 0 || err_sys(err, "chmod workspace"));
}

bool spool_make_files(const struct spool *spool, const char *files_id, struct err *err)
{
	assert(id_is_valid(files_id));
	AUTO_FD files = fs_make_dir(spool->data_fd, files_id, err);
	if (files < 0 || !make_workspace(files, err))
		return false;
	AUTO_FD incoming = fs_make_dir(files, "incoming", err);
	return incoming >= 0 && fs_sync_dir(files, err) && fs_sync_dir(spool->data_fd, err);
}

/* Opens a directory that the sandbox may have closed: "chmod 000 /workspace" must not shut out the
 * host, nor the next command, which starts there. It is ours, and no entry of a directory that the
 * sandbox can change, so path stays what it is. */
static int open_ours(int dirfd, const char *path)
{
	AUTO_FD at = openat(dirfd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	if (at < 0 || fstat(at, &st) != 0)
		return -1;
	char self[64];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", at);
	if ((st.st_mode & 0500) != 0500 && chmod(self, (st.st_mode & 07777) | 0700) != 0)
		return -1;
	return openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int open_files(const struct spool *spool, const char *files_id, const char *name,
		      struct err *err)
{
	assert(id_is_valid(files_id));
	char path[ID_LEN + 16];
	snprintf(path, sizeof(path), "%s/%s", files_id, name);
	int fd = open_ours(spool->data_fd, path);
	if (fd >= 0)
		return fd;
	if (errno != ENOENT) {
		err_sys(err, "open data/%s", path);
		return -1;
	}
	err_set(err, ERR_NOT_FOUND, "the files of this sandbox are not on the server any more");
	err_hint(err, "Remove it with destroy_sandbox and make a new one.");
	return -1;
}

int spool_workspace(const struct spool *spool, const char *files_id, struct err *err)
{
	return open_files(spool, files_id, "workspace", err);
}

int spool_incoming(const struct spool *spool, const char *files_id, struct err *err)
{
	return open_files(spool, files_id, "incoming", err);
}

int spool_run_dir(const struct spool *spool, const char *id, struct err *err)
{
	assert(id_is_valid(id));
	return fs_make_dir(spool->run_fd, id, err);
}

int spool_find_run_dir(const struct spool *spool, const char *id, struct err *err)
{
	assert(id_is_valid(id));
	int fd = openat(spool->run_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		err_set(err, ERR_NOT_FOUND, "the sandbox does not run");
	else if (fd < 0)
		err_sys(err, "open run/%s", id);
	return fd;
}

int spool_sessions(const struct spool *spool, struct err *err)
{
	return fs_make_dir(spool->root_fd, "sessions", err);
}

int spool_fonts(const struct spool *spool, struct err *err)
{
	return fs_make_dir(spool->root_fd, SPOOL_FONTS_NAME, err);
}

char *spool_workspace_path(const struct spool *spool, const struct conf *conf, const char *files_id)
{
	(void)spool;
	return xasprintf("%s/%s/workspace", conf->data_dir, files_id);
}

/* --- deleting ------------------------------------------------------------------------------ */

struct sweep {
	int trash_fd;
	int64_t deadline;
	bool progress; /* something went away in this pass */
	bool left;     /* something did not */
};

static bool time_is_up(struct sweep *sweep)
{
	if (clock_mono_ms() < sweep->deadline)
		return false;
	sweep->left = true;
	return true;
}

/* Moving a directory writes its "..", so it needs the permission to write it, which a program in
 * the sandbox may have taken away. */
static bool move_to_trash(int dirfd, const char *name, int trash_fd)
{
	char fresh[ID_LEN + 1];
	id_make(fresh);
	return renameat(dirfd, name, trash_fd, fresh) == 0 ||
	       (errno == EACCES && fchmodat(dirfd, name, 0700, AT_SYMLINK_NOFOLLOW) == 0 &&
		renameat(dirfd, name, trash_fd, fresh) == 0);
}

/* Deletes dirfd/name when it is no directory or an empty one. 1 done, 0 it is a directory with
 * entries, -1 it cannot go. */
static int remove_simple(int dirfd, const char *name)
{
	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 1;
	if (errno != EISDIR && errno != EPERM)
		return -1;
	if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 1;
	return errno == ENOTEMPTY || errno == EEXIST ? 0 : -1;
}

/* A directory of ours can have lost its permissions; nobody else reaches the trash, so name
 * cannot change meanwhile, and a link is refused anyway. */
static DIR *open_listing(int dirfd, const char *name)
{
	DIR *dir = fs_open_listing(dirfd, name);
	if (dir == NULL && errno == EACCES && fchmodat(dirfd, name, 0700, AT_SYMLINK_NOFOLLOW) == 0)
		dir = fs_open_listing(dirfd, name);
	return dir;
}

/* Takes one entry of a directory in the trash away: deleted, or moved up into the trash. */
static bool take_entry(struct sweep *sweep, int dirfd, const char *name)
{
	int rc = remove_simple(dirfd, name);
	if (rc != 0)
		return rc == 1;
	return move_to_trash(dirfd, name, sweep->trash_fd);
}

static void empty_directory(struct sweep *sweep, const char *name)
{
	DIR *dir = open_listing(sweep->trash_fd, name);
	if (dir == NULL)
		return;
	fchmod(dirfd(dir), 0700);
	const struct dirent *entry;
	while (!time_is_up(sweep) && (entry = readdir(dir)) != NULL) {
		if (!fs_is_dots(entry->d_name) && take_entry(sweep, dirfd(dir), entry->d_name))
			sweep->progress = true;
	}
	closedir(dir);
}

/* One pass over the top level of the trash. */
static void sweep_pass(struct sweep *sweep)
{
	DIR *dir = open_listing(sweep->trash_fd, ".");
	if (dir == NULL) {
		sweep->left = true;
		return;
	}
	const struct dirent *entry;
	while (!time_is_up(sweep) && (entry = readdir(dir)) != NULL) {
		if (fs_is_dots(entry->d_name))
			continue;
		if (remove_simple(sweep->trash_fd, entry->d_name) == 0)
			empty_directory(sweep, entry->d_name);
		if (remove_simple(sweep->trash_fd, entry->d_name) == 1)
			sweep->progress = true;
		else
			sweep->left = true;
	}
	closedir(dir);
}

/* Passes until one finds nothing, changes nothing, or time is up. What cannot be deleted (an
 * immutable file, a mount) stays and is tried again by the next sweep. */
static bool sweep_trash(int trash_fd, int64_t deadline)
{
	struct sweep sweep = {.trash_fd = trash_fd, .deadline = deadline};
	do {
		sweep.progress = false;
		sweep.left = false;
		sweep_pass(&sweep);
	} while (sweep.progress && clock_mono_ms() < deadline);
	return !sweep.left && !sweep.progress;
}

int64_t spool_free_bytes(const struct spool *spool, int fd, int64_t wanted)
{
	int64_t free_bytes = fs_free_bytes(fd);
	if (free_bytes < 0 || free_bytes >= wanted)
		return free_bytes;
	spool_sweep(spool, SWEEP_MS);
	return fs_free_bytes(fd);
}

static bool lacks_inodes(int fd)
{
	int64_t inodes = fs_free_inodes(fd);
	return inodes >= 0 && inodes < SPOOL_MIN_FREE_INODES;
}

bool spool_has_inodes(const struct spool *spool, int fd)
{
	if (!lacks_inodes(fd))
		return true;
	spool_sweep(spool, SWEEP_MS);
	return !lacks_inodes(fd);
}

static bool is_empty(int trash_fd)
{
	DIR *dir = open_listing(trash_fd, ".");
	const struct dirent *entry = NULL;
	if (dir == NULL)
		return false;
	while ((entry = readdir(dir)) != NULL && fs_is_dots(entry->d_name))
		;
	closedir(dir);
	return entry == NULL;
}

bool spool_has_trash(const struct spool *spool)
{
	return !is_empty(spool->tasks_trash_fd) || !is_empty(spool->run_trash_fd) ||
	       !is_empty(spool->trash_fd);
}

bool spool_sweep(const struct spool *spool, int64_t budget_ms)
{
	int64_t deadline = clock_mono_ms() + budget_ms;
	bool tasks = sweep_trash(spool->tasks_trash_fd, deadline);
	bool run = sweep_trash(spool->run_trash_fd, deadline);
	bool data = sweep_trash(spool->trash_fd, deadline);
	return tasks && run && data;
}

static bool drop(int dirfd, const char *name, int trash_fd, struct err *err)
{
	return move_to_trash(dirfd, name, trash_fd) || errno == ENOENT ||
	       err_sys(err, "retire %s", name);
}

/* The rename is the removal; deleting is tidying up, and its failures show in the next sweep. */
static bool retire(int dirfd, const char *name, int trash_fd, struct err *err)
{
	if (!drop(dirfd, name, trash_fd, err))
		return false;
	sweep_trash(trash_fd, clock_mono_ms() + SWEEP_MS);
	return true;
}

bool spool_drop_task(const struct spool *spool, const char *name, struct err *err)
{
	assert(strchr(name, '/') == NULL && strlen(name) >= ID_LEN);
	return drop(spool->tasks_fd, name, spool->tasks_trash_fd, err);
}

bool spool_drop_file(const struct spool *spool, int dirfd, const char *name, struct err *err)
{
	assert(strchr(name, '/') == NULL);
	return drop(dirfd, name, spool->trash_fd, err);
}

bool spool_retire_files(const struct spool *spool, const char *files_id, struct err *err)
{
	assert(id_is_valid(files_id));
	return retire(spool->data_fd, files_id, spool->trash_fd, err);
}

bool spool_retire_run(const struct spool *spool, const char *id, struct err *err)
{
	assert(id_is_valid(id));
	return retire(spool->run_fd, id, spool->run_trash_fd, err);
}

bool spool_retire_task(const struct spool *spool, const char *name, struct err *err)
{
	assert(strchr(name, '/') == NULL && strlen(name) >= ID_LEN);
	return retire(spool->tasks_fd, name, spool->tasks_trash_fd, err);
}
