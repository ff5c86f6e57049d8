/*
 * Paths against a workspace that was set up by somebody hostile: what they name is opened and
 * written in the workspace or not at all.
 *
 * Input: lines of a verb (open, list, walk, can, write, raw) and a path, worked through in order.
 */
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/fs.h"
#include "box/files.h"
#include "box/walk.h"

#define DEPTH 64 /* directories, of names of one letter */

static const char *root; /* holds outside/ and box/ */
static struct sandbox_use use = SANDBOX_USE_INIT;
static bool is_dirty; /* something was written */
static struct stat outside_before, canary_before;

/* --- the tree ------------------------------------------------------------------------------ */

static const struct {
	const char *name, *target;
} links[] = {
	{"to-file", "file"},
	{"to-dir", "dir"},
	{"dir/up", "../file"},
	{"up", ".."},
	{"out", "../../outside"},
	{"canary", "../../outside/canary"},
	{"dir/out", "../../../outside"},
	{"absolute", "/workspace/file"},
	{"slash", "/"},
	{"passwd", "/etc/passwd"},
	{"proc", "/proc/self/root"},
	{"cwd", "/proc/self/cwd"},
	{"fds", "/proc/self/fd"},
	{"self", "self"},
	{"ping", "pong"},
	{"pong", "ping/x"},
	{"nowhere", "missing/file"},
	{"made", "made-by-a-link"},
};

static void put(int at, const char *name)
{
	struct err err = ERR_INIT;
	AUTO_FD fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	assert(fd >= 0 && fs_write_all(fd, name, strlen(name), &err));
}

static void put_socket(int at)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	AUTO_FD fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/socket", at);
	assert(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
}

static void put_deep(int at)
{
	AUTO_FD here = fcntl(at, F_DUPFD_CLOEXEC, 0);
	for (int i = 0; i < DEPTH; i++) {
		assert(mkdirat(here, "d", 0755) == 0);
		int next = openat(here, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		util_close(&here);
		here = next;
	}
	assert(symlinkat("../d/../../d", here, "back") == 0);
}

static void make_workspace(int at)
{
	put(at, "file");
	put(at, "\xD6\xD0\xCE\xC4.txt"); /* GB18030 */
	put(at, "中.txt");
	assert(mkdirat(at, "dir", 0755) == 0 && mkdirat(at, "closed", 0) == 0);
	put(at, "dir/file");
	assert(mkfifoat(at, "fifo", 0644) == 0);
	put_socket(at);
	put_deep(at);
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		assert(symlinkat(links[i].target, at, links[i].name) == 0);
}

static int make_dir(int at, const char *name)
{
	struct err err = ERR_INIT;
	int fd = fs_make_dir(at, name, &err);
	assert(fd >= 0);
	return fd;
}

static void stat_outside(struct stat *outside, struct stat *canary)
{
	AUTO_FREE char *path = xasprintf("%s/outside", root), *file = xasprintf("%s/canary", path);
	assert(stat(path, outside) == 0 && stat(file, canary) == 0);
}

static void make_outside(void)
{
	root = fuzz_tempdir();
	AUTO_FD fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_FD outside = make_dir(fd, "outside");
	put(outside, "canary");
	stat_outside(&outside_before, &canary_before);
}

/* A new one when the last input wrote into it. */
static void make_tree(void)
{
	struct err err = ERR_INIT;
	if (root == NULL)
		make_outside();
	else if (!is_dirty)
		return;
	AUTO_FD fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sandbox_leave(&use);
	assert(fs_remove_tree(fd, "box", &err));
	AUTO_FD box = make_dir(fd, "box");
	use.workspace_fd = make_dir(box, "workspace");
	use.incoming_fd = make_dir(box, "incoming");
	make_workspace(use.workspace_fd);
	is_dirty = false;
}

/* --- what must hold ------------------------------------------------------------------------ */

static void check_inside(int fd)
{
	AUTO_FREE char *link = xasprintf("/proc/self/fd/%d", fd);
	AUTO_FREE char *workspace = xasprintf("%s/box/workspace", root);
	char path[PATH_MAX] = "";
	ssize_t len = readlink(link, path, sizeof(path) - 1);
	size_t inside = strlen(workspace);
	/* The deepest places are too long for the kernel to spell. */
	assert(len > 0 || errno == ENAMETOOLONG);
	assert(len < 0 || (strncmp(path, workspace, inside) == 0 &&
			   (path[inside] == '\0' || path[inside] == '/')));
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static void check_outside(void)
{
	struct stat outside, canary;
	stat_outside(&outside, &canary);
	assert(same_file(&outside, &outside_before) && same_file(&canary, &canary_before));
}

/* Of a normal form: no component leads up or says nothing, and it is its own normal form. */
static void check_form(const char *path)
{
	struct err err = ERR_INIT;
	AUTO_BUF again = BUF_INIT;
	AUTO_FREE char *below = xasprintf("/workspace/%s", path);
	AUTO_FREE char *framed = xasprintf("/%s/", path);
	assert(path[0] == '\0' || strstr(framed, "//") == NULL);
	assert(strstr(framed, "/./") == NULL && strstr(framed, "/../") == NULL);
	if (strlen(below) < FILES_PATH_MAX)
		assert(files_path("path", below, strlen(below), &again, &err) &&
		       strcmp(buf_str(&again), path) == 0);
}

/* No path of the host, unless the caller knew it. */
static void check_err(const struct err *err, const char *given)
{
	fuzz_check_err(err);
	if (strstr(given, root) == NULL)
		assert(strstr(err->msg, root) == NULL && strstr(err->hint, root) == NULL);
}

/* --- verbs --------------------------------------------------------------------------------- */

static bool open_path(const char *path, struct err *err)
{
	struct stat st;
	AUTO_FD fd = files_open(&use, path, &st, err);
	if (fd < 0)
		return false;
	assert(S_ISREG(st.st_mode));
	check_inside(fd);
	return true;
}

static bool visit(void *ctx, const struct files_entry *entry)
{
	(void)ctx;
	assert(text_is_utf8(entry->name, strlen(entry->name)));
	assert(strcmp(entry->name, "canary") != 0 || strcmp(entry->type, "link") == 0);
	return true;
}

static bool list_path(const char *path, struct err *err)
{
	int64_t total;
	return files_list(&use, path, 0, 100, visit, NULL, &total, err);
}

/* Byte order of names, directory by directory: a slash comes before all other bytes. */
static bool comes_before(const char *a, const char *b)
{
	while (*a == *b && *a != '\0')
		a++, b++;
	unsigned x = *a == '/' ? 1 : (unsigned char)*a * 2U;
	unsigned y = *b == '/' ? 1 : (unsigned char)*b * 2U;
	return x < y;
}

static bool visit_walk(void *ctx, const struct walk_entry *entry)
{
	char *last = ctx;
	assert(comes_before(last, entry->path));
	assert(strlen(entry->path) < PATH_MAX);
	assert(S_ISDIR(entry->st->st_mode) == entry->is_dir);
	assert(entry->is_dir || S_ISREG(entry->st->st_mode));
	assert(entry->st->st_ino != canary_before.st_ino);
	snprintf(last, PATH_MAX, "%s", entry->path);
	return true;
}

static bool walk_path(const char *path, struct err *err)
{
	char last[PATH_MAX] = "";
	(void)err;
	const struct walk_options options = {.after = path[0] == '\0' ? NULL : path,
					     .hidden = true};
	snprintf(last, sizeof(last), "%s", path);
	walk_tree(use.workspace_fd, &options, visit_walk, last);
	return true;
}

static bool can_write(const char *path, struct err *err)
{
	return files_can_write(&use, path, err);
}

static bool write_path(const char *path, struct err *err)
{
	is_dirty = true;
	return files_write(&use, path, "written", 7, err) && open_path(path, err);
}

static const struct {
	const char *name;
	bool (*run)(const char *path, struct err *err);
} verbs[] = {{"open", open_path},
	     {"list", list_path},
	     {"walk", walk_path},
	     {"can", can_write},
	     {"write", write_path}};

/* As it stands, without a normal form. */
static void open_raw(const char *path)
{
	AUTO_FD fd = fs_open_beneath(use.workspace_fd, path, O_PATH, 0);
	if (fd >= 0)
		check_inside(fd);
}

static void run_line(char *line)
{
	struct err err = ERR_INIT;
	AUTO_BUF path = BUF_INIT;
	char *given = strchr(line, ' ');
	if (given == NULL)
		return;
	*given++ = '\0';
	if (strcmp(line, "raw") == 0)
		open_raw(given);
	if (!files_path("path", given, strlen(given), &path, &err)) {
		check_err(&err, given);
		return;
	}
	check_form(buf_str(&path));
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (strcmp(line, verbs[i].name) == 0 && !verbs[i].run(buf_str(&path), &err))
			check_err(&err, given);
	check_outside();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = fuzz_input(data, size);
	make_tree();
	while (in.len > 0) {
		AUTO_FREE char *line = fuzz_line(&in);
		run_line(line);
	}
	return 0;
}
