/*
 * Files of a sandbox. Each operation resolves its path once, beneath the workspace, and then
 * works on descriptors; what a path names is looked at on the descriptor. The sandbox may
 * change any name at any instant, so a look before an open only serves better messages.
 *
 * Paths and what is said of them are in files_path.c, listings in files_list.c. Writes go to a
 * draft in incoming/, which the sandbox cannot see, and appear by rename.
 */
#include "box/files_part.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/id.h"
#include "base/lock.h"

#define NEW_FILE_MODE  0644             /* what a sandbox with umask 022 makes */
#define DRAFT_STALE_MS (60 * 60 * 1000) /* younger ones may not have taken their lock yet */

/* --- reading ----------------------------------------------------------------------------- */

int files_open(const struct sandbox_use *use, const char *path, struct stat *st, struct err *err)
{
	AUTO_BUF raw = BUF_INIT;
	files_spell(use, path, &raw);
	AUTO_FD fd = fs_open_beneath(use->workspace_fd, buf_str(&raw), O_RDONLY, 0);
	if (fd < 0) {
		files_fail(use, path, err);
		return -1;
	}
	struct stat own;
	if (fstat(fd, &own) != 0) {
		err_sys(err, "stat in workspace");
		return -1;
	}
	if (!S_ISREG(own.st_mode)) {
		err_set(err, ERR_INVALID, "%s is %s, not a regular file", files_show(path).text,
			files_kind(own.st_mode));
		if (S_ISDIR(own.st_mode))
			err_hint(err, "Look into it with list_files, or pack it into one file with "
				      "exec, e.g. tar czf out.tgz DIRECTORY.");
		return -1;
	}
	if (st != NULL)
		*st = own;
	return TAKE_FD(fd);
}

int64_t files_mtime_ms(const struct stat *st)
{
	/* A sandbox can set any time that the file system stores. */
	const int64_t limit = INT64_MAX / 1000 - 1;
	int64_t s = st->st_mtim.tv_sec;
	s = s > limit ? limit : s < -limit ? -limit : s;
	return s * 1000 + st->st_mtim.tv_nsec / 1000000;
}

/* --- writing ----------------------------------------------------------------------------- */

/* Removes drafts whose writer was killed: old, and their lock is free. */
static void sweep_drafts(const struct sandbox_use *use)
{
	AUTO_DIR *dir = fs_open_listing(use->incoming_fd, ".");
	if (dir == NULL)
		return;
	const struct dirent *entry;
	while ((entry = readdir(dir)) != NULL) {
		struct stat st;
		AUTO_FD draft = openat(use->incoming_fd, entry->d_name,
				       O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (draft >= 0 && fstat(draft, &st) == 0 && S_ISREG(st.st_mode) &&
		    clock_wall_ms() - files_mtime_ms(&st) > DRAFT_STALE_MS &&
		    lock_is_held(draft) == 0)
			unlinkat(use->incoming_fd, entry->d_name, 0);
	}
}

bool files_draft_open(const struct sandbox_use *use, struct files_draft *draft, struct err *err)
{
	sweep_drafts(use);
	char name[ID_LEN + 1];
	id_make(name);
	draft->use = use;
	draft->name[0] = '\0';
	draft->fd = openat(use->incoming_fd, name,
			   O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (draft->fd < 0) {
		err_sys(err, "create draft");
		return sandbox_explain(use, err);
	}
	memcpy(draft->name, name, sizeof(name));
	return lock_take(draft->fd, LOCK_EXCLUSIVE, 0, err);
}

void files_draft_drop(struct files_draft *draft)
{
	if (draft->fd >= 0 && draft->name[0] != '\0')
		unlinkat(draft->use->incoming_fd, draft->name, 0);
	draft->name[0] = '\0';
	util_close(&draft->fd);
	draft->fd = -1;
}

bool files_draft_sync(struct files_draft *draft, struct err *err)
{
	return fsync(draft->fd) == 0 || err_sys(err, "fsync draft");
}

/* Whether base in parent may be replaced, and with which permission bits its successor starts. */
static bool look_at_target(int parent, const char *base, const char *path, mode_t *mode,
			   struct err *err)
{
	struct stat st;
	*mode = NEW_FILE_MODE;
	if (fstatat(parent, base, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT || err_sys(err, "stat target in workspace");
	if (!S_ISREG(st.st_mode))
		return files_not_writable(path, st.st_mode, err);
	*mode = st.st_mode & 0777;
	return true;
}

bool files_draft_publish(struct files_draft *draft, const char *path, struct err *err)
{
	const struct sandbox_use *use = draft->use;
	if (path[0] == '\0')
		return files_not_writable(path, S_IFDIR, err);
	if (!files_draft_sync(draft, err))
		return false;
	AUTO_BUF raw = BUF_INIT;
	files_spell(use, path, &raw);
	const char *base;
	AUTO_FD parent = fs_open_parent(use->workspace_fd, buf_str(&raw), true, &base);
	if (parent < 0)
		return files_fail_write(use, path, err);
	mode_t mode;
	if (!look_at_target(parent, base, path, &mode, err))
		return false;
	if (fchmod(draft->fd, mode) != 0)
		return err_sys(err, "chmod draft");
	if (!files_draft_sync(draft, err))
		return false;
	lock_release(draft->fd);
	/* A link or file swapped in since the look is replaced, not followed. */
	if (renameat(use->incoming_fd, draft->name, parent, base) != 0)
		return errno == EXDEV ? err_sys(err, "publish draft")
				      : files_fail_write(use, path, err);
	draft->name[0] = '\0';
	return fs_sync_dir(parent, err);
}

/* Whether the directories above path's last component are there or can be made. */
static bool can_make_parents(const struct sandbox_use *use, const char *raw, const char *path,
			     struct err *err)
{
	for (const char *slash = strchr(raw, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		AUTO_FREE char *prefix = xstrndup(raw, (size_t)(slash - raw));
		AUTO_FD fd = fs_open_beneath(use->workspace_fd, prefix, O_PATH | O_DIRECTORY, 0);
		if (fd >= 0)
			continue;
		if (errno == ENOENT && !files_is_there(use, prefix))
			return true;
		return files_fail_write(use, path, err);
	}
	return true;
}

bool files_can_write(const struct sandbox_use *use, const char *path, struct err *err)
{
	if (path[0] == '\0')
		return files_not_writable(path, S_IFDIR, err);
	AUTO_BUF raw = BUF_INIT;
	files_spell(use, path, &raw);
	const char *base;
	AUTO_FD parent = fs_open_parent(use->workspace_fd, buf_str(&raw), false, &base);
	mode_t mode;
	if (parent >= 0)
		return look_at_target(parent, base, path, &mode, err);
	if (errno != ENOENT)
		return files_fail_write(use, path, err);
	return can_make_parents(use, buf_str(&raw), path, err);
}

bool files_write(const struct sandbox_use *use, const char *path, const char *data, size_t len,
		 struct err *err)
{
	AUTO_FILES_DRAFT draft = FILES_DRAFT_INIT;
	return files_draft_open(use, &draft, err) && fs_write_all(draft.fd, data, len, err) &&
	       files_draft_publish(&draft, path, err);
}

bool files_check_room(const struct app *app, const struct sandbox_use *use, int64_t need,
		      struct err *err)
{
	int64_t min_free = app->conf->min_free;
	int64_t wanted = need < INT64_MAX - min_free ? min_free + need : INT64_MAX;
	int64_t free_bytes = spool_free_bytes(&app->spool, use->workspace_fd, wanted);
	bool has_bytes = free_bytes < 0 || free_bytes >= wanted;
	if (has_bytes && spool_has_inodes(&app->spool, use->workspace_fd))
		return true;
	if (has_bytes)
		err_set(err, ERR_QUOTA,
			"the server's disk has room for fewer than %d more files; nothing was "
			"stored",
			SPOOL_MIN_FREE_INODES);
	else if (free_bytes <= min_free)
		err_set(err, ERR_QUOTA,
			"the server's disk is full: the %" PRId64 " bytes that it keeps free are "
			"all that is left; nothing was stored",
			min_free);
	else
		err_set(err, ERR_QUOTA,
			"%" PRId64 " bytes are needed and the server has room for %" PRId64
			"; nothing was stored",
			need, free_bytes - min_free);
	return err_hint(err, "Delete files that are not needed any more, or destroy_sandbox with "
			     "delete_files, then try again.");
}
