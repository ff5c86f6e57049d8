/* Listing a directory of a workspace: one window of names after the other, each entry looked at
 * when it is shown. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "box/files_part.h"
#include "box/names.h"

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

static DIR *open_dir(const struct sandbox_use *use, const char *path, struct err *err)
{
	AUTO_BUF raw = BUF_INIT;
	files_spell(use, path, &raw);
	AUTO_FD fd = fs_open_beneath(use->workspace_fd, buf_str(&raw), O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0 && errno == ENOTDIR && files_is_there(use, buf_str(&raw))) {
		err_set(err, ERR_INVALID, "%s is not a directory", files_show(path).text);
		err_hint(err, "Read it with read_text or download_file, or list the directory that "
			      "holds it.");
		return NULL;
	}
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (dir == NULL)
		files_fail(use, path, err);
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
		files_show(path).text, total, FILES_LIST_REACH);
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
	AUTO_DIR *dir = open_dir(use, path, err);
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
	AUTO_DIR *dir = open_dir(use, path, err);
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
