/* Inputs of a run: files that lie beside the code. See python.h. */
#include "box/python.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "box/files.h"

#define PIECE      65536
#define INPUT_MODE 0444 /* what code changes by mistake is a copy; it may still delete it */

void python_stage_finish(struct python_stage *stage)
{
	for (size_t i = 0; i < stage->count; i++)
		free(stage->names[i]);
	free(stage->names);
	free(stage->changed_at);
	*stage = (struct python_stage){.count = 0};
}

static bool has(const struct python_stage *stage, const char *path)
{
	for (size_t i = 0; i < stage->count; i++)
		if (strcmp(stage->names[i], path) == 0)
			return true;
	return false;
}

static void add(struct python_stage *stage, const char *path, const struct stat *st)
{
	if (has(stage, path))
		return;
	size_t at = stage->count++;
	stage->names = xrealloc(stage->names, (at + 2) * sizeof(*stage->names));
	stage->names[at] = xstrdup(path);
	stage->names[at + 1] = NULL;
	stage->changed_at = xrealloc(stage->changed_at, (at + 1) * sizeof(*stage->changed_at));
	stage->changed_at[at] = st->st_ctim;
}

static bool check_count(const struct python_stage *stage, struct err *err)
{
	if (stage->count < PYTHON_INPUTS_MAX)
		return true;
	err_set(err, ERR_INVALID, "files names more than %d files; nothing was run",
		PYTHON_INPUTS_MAX);
	return err_hint(err, "Pack them into one archive, or let the code read them from the "
			     "sandbox that holds them.");
}

bool python_stage_own(struct python_stage *stage, const struct sandbox_use *use, const char *path,
		      struct err *err)
{
	struct stat st;
	AUTO_BUF relative = BUF_INIT;
	if (!check_count(stage, err) || !files_path("files", path, strlen(path), &relative, err))
		return false;
	AUTO_FD fd = files_open(use, buf_str(&relative), &st, err);
	if (fd < 0)
		return false;
	add(stage, buf_str(&relative), &st);
	return true;
}

/* --- from another sandbox ------------------------------------------------------------------ */

/* Reads a piece at an offset: its length, 0 at the end, -1 with err. */
static ssize_t read_piece(int fd, int64_t offset, char *piece, struct err *err)
{
	size_t got = 0;
	while (got < PIECE) {
		ssize_t n = pread(fd, piece + got, PIECE - got, offset + (int64_t)got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			err_sys(err, "read an input file");
			return -1;
		}
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

/* 1, 0 or -1 with err. */
static int same_content(int a, int b, struct err *err)
{
	AUTO_FREE char *one = xmalloc(PIECE);
	AUTO_FREE char *other = xmalloc(PIECE);
	for (int64_t offset = 0;; offset += PIECE) {
		ssize_t n = read_piece(a, offset, one, err);
		ssize_t m = n < 0 ? -1 : read_piece(b, offset, other, err);
		if (n < 0 || m < 0)
			return -1;
		if (n != m || memcmp(one, other, (size_t)n) != 0)
			return 0;
		if (n < PIECE)
			return 1;
	}
}

/* What has the name already: 1 the same content, of which st is filled, 0 nothing, -1 with err. */
static int look_at_target(const struct sandbox_use *to, const char *name, int from_fd, int64_t size,
			  struct stat *st, struct err *err)
{
	struct err trouble = ERR_INIT;
	AUTO_FD any = fs_open_beneath(to->workspace_fd, name, O_PATH | O_NOFOLLOW, 0);
	if (any < 0 && errno == ENOENT)
		return 0;
	AUTO_FD fd = any < 0 ? -1 : files_open(to, name, st, &trouble);
	if (fd >= 0 && st->st_size == size) {
		int same = same_content(from_fd, fd, err);
		if (same != 0)
			return same;
	}
	AUTO_BUF shown = BUF_INIT;
	text_quote(&shown, name, strlen(name), 160);
	err_set(err, ERR_EXISTS,
		"the sandbox of this run has something else with the name %s; nothing was run",
		buf_str(&shown));
	err_hint(err,
		 "Rename one of the two files, or leave it out of files and copy it with exec.");
	return -1;
}

/* The source may change meanwhile: no more is taken than was checked. */
static bool copy(struct app *app, const struct sandbox_use *to, int from_fd, int64_t size,
		 int to_fd, struct err *err)
{
	AUTO_FREE char *piece = xmalloc(PIECE);
	for (int64_t offset = 0; offset < size;) {
		ssize_t n = read_piece(from_fd, offset, piece, err);
		if (n < 0)
			return false;
		if (n > size - offset)
			n = (ssize_t)(size - offset);
		if (n == 0)
			return err_set(err, ERR_CONFLICT,
				       "an input file became shorter while it was copied; nothing "
				       "was run");
		/* Others fill the disk too. */
		if (offset % (256 * PIECE) == 0 && !files_check_room(app, to, size - offset, err))
			return false;
		if (!fs_write_all(to_fd, piece, (size_t)n, err))
			return false;
		offset += n;
	}
	return true;
}

static bool bring(struct app *app, const struct sandbox_use *to, const char *name, int from_fd,
		  int64_t size, struct stat *st, struct err *err)
{
	AUTO_FILES_DRAFT draft = FILES_DRAFT_INIT;
	if (!files_can_write(to, name, err) || !files_check_room(app, to, size, err) ||
	    !files_draft_open(to, &draft, err) || !copy(app, to, from_fd, size, draft.fd, err) ||
	    !files_draft_publish(&draft, name, err))
		return false;
	return (fchmod(draft.fd, INPUT_MODE) == 0 && fstat(draft.fd, st) == 0) ||
	       err_sys(err, "chmod an input file");
}

bool python_stage_copy(struct app *app, struct python_stage *stage, const struct sandbox_use *from,
		       const char *path, const struct sandbox_use *to, struct err *err)
{
	struct stat st;
	AUTO_BUF relative = BUF_INIT;
	if (!check_count(stage, err) || !files_path("files", path, strlen(path), &relative, err))
		return false;
	AUTO_FD fd = files_open(from, buf_str(&relative), &st, err);
	if (fd < 0)
		return false;
	if (st.st_size > app->conf->max_upload) {
		err_set(err, ERR_TOO_LARGE,
			"an input file has %" PRId64 " bytes; the limit is %" PRId64
			"; nothing was run",
			(int64_t)st.st_size, app->conf->max_upload);
		return err_hint(err,
				"Run the code in the sandbox that holds it (argument sandbox).");
	}
	const char *slash = strrchr(buf_str(&relative), '/');
	const char *name = slash == NULL ? buf_str(&relative) : slash + 1;
	struct stat staged;
	int there = look_at_target(to, name, fd, st.st_size, &staged, err);
	if (there < 0 || (there == 0 && !bring(app, to, name, fd, st.st_size, &staged, err)))
		return false;
	add(stage, name, &staged);
	return true;
}
