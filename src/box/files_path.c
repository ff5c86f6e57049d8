/* Paths of callers: which place they name, how it is spelled, and what is said when it cannot be
 * opened. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "box/files_part.h"

/* --- paths ------------------------------------------------------------------------------- */

struct files_shown files_show(const char *path)
{
	struct files_shown shown;
	AUTO_BUF quoted = BUF_INIT;
	text_quote(&quoted, path, strlen(path), FILES_SHOWN_MAX);
	snprintf(shown.text, sizeof(shown.text), "/workspace%s%s", path[0] == '\0' ? "" : "/",
		 buf_str(&quoted));
	return shown;
}

static bool outside(const char *what, const char *path, size_t len, struct err *err)
{
	AUTO_BUF quoted = BUF_INIT;
	text_quote(&quoted, path, len, FILES_SHOWN_MAX);
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

bool files_is_there(const struct sandbox_use *use, const char *path)
{
	AUTO_FD fd = fs_open_beneath(use->workspace_fd, path, O_PATH | O_NOFOLLOW, 0);
	return fd >= 0;
}

void files_spell(const struct sandbox_use *use, const char *path, struct buf *out)
{
	size_t bytes = strlen(path);
	bool ascii = text_count(path, bytes) == bytes;
	if (ascii || files_is_there(use, path)) {
		buf_puts(out, path);
		return;
	}
	for (const char *p = path; *p != '\0';) {
		size_t len = strcspn(p, "/");
		size_t before = out->len;
		buf_append(out, p, len);
		AUTO_BUF other = BUF_INIT;
		if (!files_is_there(use, buf_str(out)) && text_to_gb18030(&other, p, len)) {
			out->len = before;
			buf_append(out, buf_str(&other), other.len);
			if (!files_is_there(use, buf_str(out))) {
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

const char *files_kind(mode_t mode)
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

static bool set_fault(const struct sandbox_use *use, const char *path, struct err *err)
{
	int sys = errno;
	if (sys == ENOENT && path[0] != '\0' && files_is_there(use, path)) {
		err_set(err, ERR_NOT_FOUND, "%s is a symbolic link to a file that does not exist",
			files_show(path).text);
		return err_hint(err, "Make what it points to, or use another path.");
	}
	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		if (faults[i].sys != sys)
			continue;
		err_set(err, faults[i].code, "%s %s", files_show(path).text, faults[i].what);
		err->sys = sys;
		return faults[i].hint == NULL ? false : err_hint(err, "%s", faults[i].hint);
	}
	errno = sys;
	return err_sys(err, "open in workspace");
}

bool files_fail(const struct sandbox_use *use, const char *path, struct err *err)
{
	set_fault(use, path, err);
	return sandbox_explain(use, err);
}

bool files_not_writable(const char *path, mode_t mode, struct err *err)
{
	err_set(err, ERR_CONFLICT, "%s is %s and is not replaced by a file", files_show(path).text,
		files_kind(mode));
	return err_hint(err, S_ISDIR(mode) ? "Name the file too, as in DIRECTORY/name.txt."
					   : "Choose another path, or remove it with exec first.");
}

bool files_fail_write(const struct sandbox_use *use, const char *path, struct err *err)
{
	int sys = errno;
	if (sys == ENOTDIR || sys == ENOENT) {
		err_set(err, ERR_CONFLICT, "%s cannot be made: a part before the last one is %s",
			files_show(path).text,
			sys == ENOTDIR ? "no directory" : "a broken link or was removed meanwhile");
		err_hint(err, "Look with list_files what is there, or choose another path.");
		return sandbox_explain(use, err);
	}
	if (sys == EISDIR || sys == ENOTEMPTY || sys == EEXIST)
		return files_not_writable(path, S_IFDIR, err);
	errno = sys;
	return files_fail(use, path, err);
}
