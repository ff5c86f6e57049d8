/*
 * Files of a sandbox. Each operation resolves its path once, beneath the workspace, and then
 * works on descriptors; what a path names is looked at on the descriptor. The sandbox may
 * change any name at any instant, so a look before an open only serves better messages.
 *
 * Writes go to a draft in incoming/, which the sandbox cannot see, and appear by rename.
 */
#include "box/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/id.h"
#include "base/lock.h"
#include "base/text.h"
#include "box/names.h"

#define SHOWN_MAX      160              /* bytes of a path in a message */
#define NEW_FILE_MODE  0644             /* what a sandbox with umask 022 makes */
#define DRAFT_STALE_MS (60 * 60 * 1000) /* younger ones may not have taken their lock yet */

/* --- paths ------------------------------------------------------------------------------- */

/* A path as the sandbox sees it, by value so that it can stand in an argument list. */
struct shown {
	char text[SHOWN_MAX * 2];
};

static struct shown show(const char *path)
{
	struct shown shown;
	AUTO_BUF quoted = BUF_INIT;
	text_quote(&quoted, path, strlen(path), SHOWN_MAX);
	snprintf(shown.text, sizeof(shown.text), "/workspace%s%s", path[0] == '\0' ? "" : "/",
		 buf_str(&quoted));
	return shown;
}

static bool outside(const char *what, const char *path, size_t len, struct err *err)
{
	AUTO_BUF quoted = BUF_INIT;
	text_quote(&quoted, path, len, SHOWN_MAX);
	err_set(err, ERR_INVALID, "%s \"%s\" is outside of /workspace", what, buf_str(&quoted));
	return err_hint(err,
			"Give a path relative to /workspace, such as data/in.csv. Other places of "
			"the sandbox (/tmp, /etc, ...) are reached with exec; copy the file below "
			"/workspace first.");
}

/* Appends one component, or takes one off for "..". */
static bool path_step(struct buf *out, size_t start, const char *part, size_t len)
{
	if (len == 0 || (len == 1 && part[0] == '.'))
		return true;
	if (len == 2 && part[0] == '.' && part[1] == '.') {
		if (out->len == start)
			return false;
		while (out->len > start && out->data[out->len - 1] != '/')
			out->len--;
		if (out->len > start)
			out->len--;
		out->data[out->len] = '\0';
		return true;
	}
	if (out->len > start)
		buf_putc(out, '/');
	buf_append(out, part, len);
	return true;
}

bool files_path(const char *what, const char *path, size_t len, struct buf *out, struct err *err)
{
	if (memchr(path, '\0', len) != NULL || !text_is_utf8(path, len))
		return err_set(err, ERR_INVALID, "%s is not UTF-8 text without NUL bytes", what);
	if (len >= FILES_PATH_MAX)
		return err_set(err, ERR_INVALID, "%s is %zu bytes long; the limit is %d", what, len,
			       FILES_PATH_MAX - 1);
	if (len > 0 && path[0] == '~' && (len == 1 || path[1] == '/')) {
		err_set(err, ERR_INVALID, "%s starts with ~, which only a shell expands", what);
		return err_hint(err, "The home directory is /workspace: leave the ~/ out.");
	}

	const char *p = path, *end = path + len;
	static const char root[] = "/workspace";
	size_t root_len = sizeof(root) - 1;
	if (len > 0 && path[0] == '/') {
		if (len < root_len || memcmp(path, root, root_len) != 0 ||
		    (len > root_len && path[root_len] != '/'))
			return outside(what, path, len, err);
		p += root_len;
	}
	size_t start = out->len;
	while (p < end) {
		const char *slash = memchr(p, '/', (size_t)(end - p));
		size_t part = (size_t)((slash == NULL ? end : slash) - p);
		if (part > NAME_MAX)
			return err_set(err, ERR_INVALID,
				       "a name in %s is %zu bytes long; file systems allow %d",
				       what, part, NAME_MAX);
		if (!path_step(out, start, p, part))
			return outside(what, path, len, err);
		p += part + 1;
	}
	return true;
}

/* Whether a name is there, links not followed at its end. */
static bool is_there(const struct sandbox_use *use, const char *path)
{
	AUTO_FD fd = fs_open_beneath(use->workspace_fd, path, O_PATH | O_NOFOLLOW, 0);
	return fd >= 0;
}

/* Appends the spelling under which path exists. Archives made on Chinese Windows leave names in
 * GB18030, which listings show decoded; so a component that is not there in UTF-8 is looked up
 * in GB18030. This only chooses among spellings: whoever uses the result opens it beneath the
 * root like any other path. */
static void spell(const struct sandbox_use *use, const char *path, struct buf *out)
{
	size_t bytes = strlen(path);
	bool ascii = text_count(path, bytes) == bytes;
	if (ascii || is_there(use, path)) {
		buf_puts(out, path);
		return;
	}
	for (const char *p = path; *p != '\0';) {
		size_t len = strcspn(p, "/");
		size_t before = out->len;
		buf_append(out, p, len);
		AUTO_BUF other = BUF_INIT;
		if (!is_there(use, buf_str(out)) && text_to_gb18030(&other, p, len)) {
			out->len = before;
			buf_append(out, buf_str(&other), other.len);
			if (!is_there(use, buf_str(out))) {
				out->len = before;
				buf_puts(out, p);
				return;
			}
		}
		p += len;
		if (*p == '/')
			buf_putc(out, *p++);
	}
}

/* --- messages ---------------------------------------------------------------------------- */

static const char *kind(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "a regular file";
	case S_IFDIR:
		return "a directory";
	case S_IFLNK:
		return "a symbolic link";
	case S_IFIFO:
		return "a FIFO";
	case S_IFSOCK:
		return "a socket";
	default:
		return "a device";
	}
}

struct fault {
	int sys;
	enum err_code code;
	const char *what; /* follows the path */
	const char *hint; /* NULL: the code's own */
};

static const struct fault faults[] = {
	{ENOENT, ERR_NOT_FOUND, "does not exist", "Look with list_files what is there."},
	{ENOTDIR, ERR_NOT_FOUND, "does not exist: a part before the last one is no directory",
	 "Look with list_files what is there."},
	{EXDEV, ERR_INVALID, "leads out of /workspace by a symbolic link",
	 "From outside of the sandbox only relative links that stay below /workspace are followed. "
	 "Use the path of the file itself, or copy it below /workspace with exec."},
	{ELOOP, ERR_INVALID, "passes through too many symbolic links, or one of a special kind",
	 "Use the path of the file itself."},
	{EACCES, ERR_DENIED, "is closed by its permission bits",
	 "Open it up with exec, e.g. chmod u+rwX on it and on the directories above it."},
	{EPERM, ERR_DENIED, "is closed by its permission bits",
	 "Open it up with exec, e.g. chmod u+rwX on it and on the directories above it."},
	{ENXIO, ERR_INVALID, "is a socket or a device, not a regular file", NULL},
	{ENAMETOOLONG, ERR_INVALID, "is longer than the file system allows", NULL},
	{EAGAIN, ERR_BUSY, "is being renamed at the moment", NULL},
};

/* Turns errno of an open beneath the workspace into what the caller may know. */
static bool set_fault(const struct sandbox_use *use, const char *path, struct err *err)
{
	int sys = errno;
	if (sys == ENOENT && path[0] != '\0' && is_there(use, path)) {
		err_set(err, ERR_NOT_FOUND, "%s is a symbolic link to a file that does not exist",
			show(path).text);
		return err_hint(err, "Make what it points to, or use another path.");
	}
	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		if (faults[i].sys != sys)
			continue;
		err_set(err, faults[i].code, "%s %s", show(path).text, faults[i].what);
		err->sys = sys;
		return faults[i].hint == NULL ? false : err_hint(err, "%s", faults[i].hint);
	}
	errno = sys;
	return err_sys(err, "open in workspace");
}

static bool fail(const struct sandbox_use *use, const char *path, struct err *err)
{
	set_fault(use, path, err);
	return sandbox_explain(use, err);
}

static bool not_writable(const char *path, mode_t mode, struct err *err)
{
	err_set(err, ERR_CONFLICT, "%s is %s and is not replaced by a file", show(path).text,
		kind(mode));
	return err_hint(err, S_ISDIR(mode) ? "Name the file too, as in DIRECTORY/name.txt."
					   : "Choose another path, or remove it with exec first.");
}

/* As fail, for a path that is to be written. */
static bool fail_write(const struct sandbox_use *use, const char *path, struct err *err)
{
	int sys = errno;
	if (sys == ENOTDIR || sys == ENOENT) {
		err_set(err, ERR_CONFLICT, "%s cannot be made: a part before the last one is %s",
			show(path).text,
			sys == ENOTDIR ? "no directory" : "a broken link or was removed meanwhile");
		err_hint(err, "Look with list_files what is there, or choose another path.");
		return sandbox_explain(use, err);
	}
	if (sys == EISDIR || sys == ENOTEMPTY || sys == EEXIST)
		return not_writable(path, S_IFDIR, err);
	errno = sys;
	return fail(use, path, err);
}

/* --- reading ----------------------------------------------------------------------------- */

int files_open(const struct sandbox_use *use, const char *path, struct stat *st, struct err *err)
{
	AUTO_BUF raw = BUF_INIT;
	spell(use, path, &raw);
	AUTO_FD fd = fs_open_beneath(use->workspace_fd, buf_str(&raw), O_RDONLY, 0);
	if (fd < 0) {
		fail(use, path, err);
		return -1;
	}
	struct stat own;
	if (fstat(fd, &own) != 0) {
		err_sys(err, "stat in workspace");
		return -1;
	}
	if (!S_ISREG(own.st_mode)) {
		err_set(err, ERR_INVALID, "%s is %s, not a regular file", show(path).text,
			kind(own.st_mode));
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

/* Shows one entry; one that has gone meanwhile is left out. False when the visitor has enough. */
static bool visit_entry(int dirfd, const char *raw, files_visit *visit, void *ctx)
{
	struct stat st;
	if (fstatat(dirfd, raw, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return true;
	AUTO_BUF decoded = BUF_INIT;
	bool renamed = !text_is_utf8(raw, strlen(raw));
	if (renamed)
		text_decode(&decoded, raw, strlen(raw), false, false);
	struct files_entry entry = {
		.name = renamed ? buf_str(&decoded) : raw,
		.raw = raw,
		.type = S_ISREG(st.st_mode)   ? "file"
			: S_ISDIR(st.st_mode) ? "dir"
			: S_ISLNK(st.st_mode) ? "link"
					      : "other",
		.size = S_ISREG(st.st_mode) ? (int64_t)st.st_size : -1,
		.modified_at = files_mtime_ms(&st),
		.mode = st.st_mode & 0777,
		.renamed = renamed,
	};
	return visit(ctx, &entry);
}

static void close_dir(DIR **dir)
{
	if (*dir != NULL)
		closedir(*dir);
}

static DIR *open_dir(const struct sandbox_use *use, const char *path, struct err *err)
{
	AUTO_BUF raw = BUF_INIT;
	spell(use, path, &raw);
	AUTO_FD fd = fs_open_beneath(use->workspace_fd, buf_str(&raw), O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0 && errno == ENOTDIR && is_there(use, buf_str(&raw))) {
		err_set(err, ERR_INVALID, "%s is not a directory", show(path).text);
		err_hint(err, "Read it with read_text or download_file, or list the directory that "
			      "holds it.");
		return NULL;
	}
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (dir == NULL)
		fail(use, path, err);
	else
		(void)TAKE_FD(fd); /* dir owns it */
	return dir;
}

/* Whether an entry can be shown without a pass over the directory for each window before it. */
static bool is_in_reach(const char *path, int64_t offset, int64_t total, struct err *err)
{
	if (offset < FILES_LIST_REACH || offset >= total)
		return true;
	err_set(err, ERR_TOO_LARGE,
		"%s has %" PRId64 " entries; only the first %d by name can be listed",
		show(path).text, total, FILES_LIST_REACH);
	return err_hint(err, "Use exec with find and a pattern, or ls | sed -n FROM,TOp, and sort "
			     "the files into subdirectories.");
}

/* Shows names from the offset'th on, window after window; the first is there already. */
static bool visit_names(struct names *names, DIR *dir, int64_t offset, int64_t limit,
			files_visit *visit, void *ctx, struct err *err)
{
	for (int64_t reach = NAMES_WINDOW;; reach += NAMES_WINDOW) {
		int64_t end = (int64_t)names_count(names);
		for (int64_t i = offset; i < end && limit > 0; i++, limit--) {
			if (!visit_entry(dirfd(dir), names_at(names, (size_t)i), visit, ctx))
				return true;
		}
		offset = offset > end ? offset - end : 0;
		if (names_are_last(names) || limit <= 0 || reach >= FILES_LIST_REACH)
			return true;
		int64_t seen;
		if (!names_next(names, dir, &seen, err))
			return false;
	}
}

bool files_list(const struct sandbox_use *use, const char *path, int64_t offset, int64_t limit,
		files_visit *visit, void *ctx, int64_t *total, struct err *err)
{
	__attribute__((cleanup(close_dir))) DIR *dir = open_dir(use, path, err);
	if (dir == NULL)
		return false;
	AUTO_NAMES struct names *names = names_create(NULL);
	if (!names_next(names, dir, total, err) || !is_in_reach(path, offset, *total, err))
		return false;
	if (offset < *total && !visit_names(names, dir, offset, limit, visit, ctx, err))
		return false;
	return sandbox_confirm(use, err);
}

bool files_list_prefix(const struct sandbox_use *use, const char *path, const char *prefix,
		       files_visit *visit, void *ctx, struct err *err)
{
	__attribute__((cleanup(close_dir))) DIR *dir = open_dir(use, path, err);
	if (dir == NULL)
		return false;
	AUTO_NAMES struct names *names = names_create(prefix);
	int64_t total;
	if (!names_next(names, dir, &total, err))
		return false;
	for (size_t i = 0; i < names_count(names); i++) {
		if (!visit_entry(dirfd(dir), names_at(names, i), visit, ctx))
			break;
	}
	return sandbox_confirm(use, err);
}

/* --- writing ----------------------------------------------------------------------------- */

/* Removes drafts whose writer was killed: old, and their lock is free. */
static void sweep_drafts(const struct sandbox_use *use)
{
	AUTO_FD fd = fs_open_beneath(use->incoming_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	__attribute__((cleanup(close_dir))) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (dir == NULL)
		return;
	(void)TAKE_FD(fd); /* dir owns it */
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
		return not_writable(path, st.st_mode, err);
	*mode = st.st_mode & 0777;
	return true;
}

bool files_draft_publish(struct files_draft *draft, const char *path, struct err *err)
{
	const struct sandbox_use *use = draft->use;
	if (path[0] == '\0')
		return not_writable(path, S_IFDIR, err);
	if (!files_draft_sync(draft, err))
		return false;
	AUTO_BUF raw = BUF_INIT;
	spell(use, path, &raw);
	const char *base;
	AUTO_FD parent = fs_open_parent(use->workspace_fd, buf_str(&raw), true, &base);
	if (parent < 0)
		return fail_write(use, path, err);
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
		return errno == EXDEV ? err_sys(err, "publish draft") : fail_write(use, path, err);
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
		if (errno == ENOENT && !is_there(use, prefix))
			return true;
		return fail_write(use, path, err);
	}
	return true;
}

bool files_can_write(const struct sandbox_use *use, const char *path, struct err *err)
{
	if (path[0] == '\0')
		return not_writable(path, S_IFDIR, err);
	AUTO_BUF raw = BUF_INIT;
	spell(use, path, &raw);
	const char *base;
	AUTO_FD parent = fs_open_parent(use->workspace_fd, buf_str(&raw), false, &base);
	mode_t mode;
	if (parent >= 0)
		return look_at_target(parent, base, path, &mode, err);
	if (errno != ENOENT)
		return fail_write(use, path, err);
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
