/* A workspace is hostile: what a sandbox can lay out must neither lead out of it nor hang the
 * host, and must be told by name. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/text.h"
#include "box/files.h"
#include "box/names.h"

static char *root;
static struct sandbox_use use;

static void make_box(void)
{
	root = unit_tempdir();
	ck_assert_int_eq(chdir(root), 0);
	ck_assert_int_eq(mkdir("workspace", 0755), 0);
	ck_assert_int_eq(mkdir("incoming", 0700), 0);
	ck_assert_int_eq(mkdir("outside", 0755), 0);
	int fd = open("outside/secret", O_WRONLY | O_CREAT, 0644);
	ck_assert_int_eq(write(fd, "secret", 6), 6);
	close(fd);
	use = (struct sandbox_use)SANDBOX_USE_INIT;
	use.workspace_fd = open("workspace", O_RDONLY | O_DIRECTORY);
	use.incoming_fd = open("incoming", O_RDONLY | O_DIRECTORY);
	ck_assert_int_eq(chdir("workspace"), 0);
}

static void remove_box(void)
{
	close(use.workspace_fd);
	close(use.incoming_fd);
	ck_assert_int_eq(chdir("/"), 0);
	unit_tempdir_remove(root);
}

/* Content of a file seen through the module, or NULL with err. */
static char *content(const char *path, struct err *err)
{
	AUTO_BUF out = BUF_INIT;
	AUTO_FD fd = files_open(&use, path, NULL, err);
	if (fd < 0)
		return NULL;
	ck_ok(fs_read_all(fd, 1 << 20, &out, err), *err);
	return buf_take(&out);
}

static void ck_content(const char *path, const char *expected)
{
	struct err err = ERR_INIT;
	AUTO_FREE char *text = content(path, &err);
	ck_assert_msg(text != NULL, "%s: %s", path, err.msg);
	ck_assert_str_eq(text, expected);
}

/* Reading fails with this code and a message that holds these words. */
static void ck_refused(const char *path, enum err_code code, const char *words)
{
	struct err err = ERR_INIT;
	AUTO_FREE char *text = content(path, &err);
	ck_assert_msg(text == NULL, "%s was read: %s", path, text);
	ck_assert_msg(err.code == code, "%s: %s: %s", path, err_name(err.code), err.msg);
	ck_assert_msg(strstr(err_message(&err), words) != NULL, "%s: %s", path, err_message(&err));
	ck_assert_ptr_null(strstr(err.msg, root));
}

static void ck_write_refused(const char *path, enum err_code code, const char *words)
{
	struct err err = ERR_INIT, looked = ERR_INIT;
	ck_assert(!files_write(&use, path, "x", 1, &err));
	ck_assert_msg(err.code == code, "%s: %s: %s", path, err_name(err.code), err.msg);
	ck_assert_msg(strstr(err_message(&err), words) != NULL, "%s: %s", path, err_message(&err));
	ck_assert(!files_can_write(&use, path, &looked));
	ck_assert_str_eq(looked.msg, err.msg);
}

static int count_entries(const char *dir)
{
	int count = 0;
	DIR *stream = opendir(dir);
	while (readdir(stream) != NULL)
		count++;
	closedir(stream);
	return count - 2;
}

/* --- paths ------------------------------------------------------------------------------- */

static const struct {
	const char *path, *result; /* NULL: refused */
} paths[] = {
	{"a", "a"},
	{"", ""},
	{".", ""},
	{"/workspace", ""},
	{"/workspace/", ""},
	{"/workspace/a//b/", "a/b"},
	{"./a/./b", "a/b"},
	{"a/../b", "b"},
	{"a/b/../../c", "c"},
	{"a/b/..", "a"},
	{"-rf", "-rf"},
	{"a\nb", "a\nb"},
	{"...", "..."},
	{"./~/x", "~/x"},
	{"~x", "~x"},
	{"..", NULL},
	{"a/../..", NULL},
	{"a/../../workspace/b", NULL},
	{"/workspace/..", NULL},
	{"/workspace/../etc/passwd", NULL},
	{"/workspaces/a", NULL},
	{"/etc/passwd", NULL},
	{"/", NULL},
	{"~/a", NULL},
	{"~", NULL},
	{"\xB2\xE2", NULL},
};

TEST(paths_become_relative_and_never_lead_up)
{
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct err err = ERR_INIT;
		AUTO_BUF out = BUF_INIT;
		bool ok = files_path("path", paths[i].path, strlen(paths[i].path), &out, &err);
		ck_assert_msg(ok == (paths[i].result != NULL), "%s", paths[i].path);
		if (ok)
			ck_assert_str_eq(buf_str(&out), paths[i].result);
		else
			ck_assert_int_eq(err.code, ERR_INVALID);
	}
}
TEST_END

TEST(a_path_with_a_nul_or_of_too_many_bytes_is_refused)
{
	struct err err = ERR_INIT;
	AUTO_BUF out = BUF_INIT;
	ck_assert(!files_path("src", "a\0b", 3, &out, &err));
	ck_assert_ptr_nonnull(strstr(err.msg, "src"));

	char name[300];
	memset(name, 'n', sizeof(name));
	ck_assert(files_path("src", name, 255, &out, &err));
	ck_assert(!files_path("src", name, 256, &out, &err));
	ck_assert_ptr_nonnull(strstr(err.msg, "256"));

	AUTO_FREE char *deep = xmalloc(5000);
	memset(deep, 'd', 5000);
	for (size_t i = 1; i < 5000; i += 2)
		deep[i] = '/';
	ck_assert(files_path("src", deep, 4095, &out, &err));
	ck_assert(!files_path("src", deep, 4096, &out, &err));
}
TEST_END

/* --- reading ----------------------------------------------------------------------------- */

TEST(links_inside_are_followed_and_links_out_are_refused)
{
	make_box();
	ck_assert_int_eq(mkdir("d", 0755), 0);
	struct err err = ERR_INIT;
	ck_ok(files_write(&use, "d/file", "inside", 6, &err), err);
	static const char *const inside[][2] = {
		{"d/file", "l1"}, {"d", "l2"}, {"../d/file", "d/l3"}};
	for (size_t i = 0; i < ARRAY_LEN(inside); i++)
		ck_assert_int_eq(symlink(inside[i][0], inside[i][1]), 0);
	ck_content("l1", "inside");
	ck_content("l2/file", "inside");
	ck_content("d/l3", "inside");

	static const char *const out[] = {
		"/etc/passwd",        "../outside/secret",      "/proc/self/root/etc/passwd",
		"/proc/self/environ", "d/../../outside/secret", "/dev/stdin"};
	for (size_t i = 0; i < ARRAY_LEN(out); i++) {
		ck_assert_int_eq(symlink(out[i], "escape"), 0);
		ck_refused("escape", ERR_INVALID, "/workspace/escape leads out of /workspace");
		ck_assert_int_eq(unlink("escape"), 0);
	}
	ck_assert_int_eq(symlink("../outside", "dir"), 0);
	ck_refused("dir/secret", ERR_INVALID, "leads out of /workspace");
	ck_refused("../outside/secret", ERR_INVALID, "leads out");
	ck_assert_int_eq(symlink("loop", "loop"), 0);
	ck_refused("loop", ERR_INVALID, "symbolic links");
	ck_assert_int_eq(symlink("nowhere", "broken"), 0);
	ck_refused("broken", ERR_NOT_FOUND, "symbolic link to a file that does not exist");
	remove_box();
}
TEST_END

TEST(what_is_no_regular_file_is_refused_by_its_kind_and_at_once)
{
	make_box();
	ck_assert_int_eq(mkfifo("pipe", 0644), 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "sock"};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(mkdir("dir", 0755), 0);
	alarm(5); /* an open of a FIFO without O_NONBLOCK hangs */
	ck_refused("pipe", ERR_INVALID, "/workspace/pipe is a FIFO");
	ck_refused("sock", ERR_INVALID, "/workspace/sock is a socket");
	ck_refused("dir", ERR_INVALID, "/workspace/dir is a directory");
	ck_refused("", ERR_INVALID, "/workspace is a directory");
	ck_refused("none", ERR_NOT_FOUND, "/workspace/none does not exist");
	ck_refused("pipe/x", ERR_NOT_FOUND, "no directory");
	alarm(0);
	close(fd);
	remove_box();
}
TEST_END

/* "测试" in GB18030 */
#define GB_TEST "\xB2\xE2\xCA\xD4"

TEST(names_in_gb18030_are_found_by_their_utf8_spelling)
{
	make_box();
	ck_assert_int_eq(mkdir(GB_TEST, 0755), 0);
	int fd = open(GB_TEST "/" GB_TEST ".txt", O_WRONLY | O_CREAT, 0644);
	ck_assert_int_eq(write(fd, "old", 3), 3);
	close(fd);
	ck_content("测试/测试.txt", "old");

	/* A write replaces that very file and makes no second one beside it. */
	struct err err = ERR_INIT;
	ck_ok(files_write(&use, "测试/测试.txt", "new", 3, &err), err);
	ck_ok(files_write(&use, "测试/b", "b", 1, &err), err);
	ck_assert_int_eq(count_entries("."), 1);
	ck_assert_int_eq(count_entries(GB_TEST), 2);
	ck_content("测试/测试.txt", "new");

	/* The spelling is looked up beneath the root as well (the link would be followed by a plain
	 * open). */
	ck_assert_int_eq(symlink("/etc/passwd", "\xC3\xD8"), 0);
	ck_refused("秘", ERR_INVALID, "leads out of /workspace");
	remove_box();
}
TEST_END

/* Flips "d" between a directory and a link out, and "f" between a file and a link out. */
static _Noreturn void flip_for_ever(void)
{
	for (;;) {
		rename("d", "d.real");
		(void)!symlink("../outside", "d");
		unlink("d");
		rename("d.real", "d");
		unlink("f");
		(void)!symlink("../outside/secret", "f");
		unlink("f");
		close(open("f", O_WRONLY | O_CREAT, 0644));
	}
}

TEST(a_swap_between_directory_and_link_never_lets_a_read_or_write_out)
{
	make_box();
	ck_assert_int_eq(mkdir("d", 0755), 0);
	struct err err = ERR_INIT;
	ck_ok(files_write(&use, "d/secret", "inside", 6, &err), err);
	pid_t pid = fork();
	if (pid == 0)
		flip_for_ever();
	int reads = 0, refused = 0, writes = 0;
	for (int64_t end = clock_mono_ms() + 1000; clock_mono_ms() < end;) {
		static const char *const names[] = {"d/secret", "f"};
		for (size_t i = 0; i < ARRAY_LEN(names); i++) {
			AUTO_FREE char *text = content(names[i], &err);
			if (text == NULL)
				refused++;
			else
				reads++;
			ck_assert(text == NULL || strcmp(text, "secret") != 0);
			writes += files_write(&use, i == 0 ? "d/made" : "f", "mine", 4, &err);
		}
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ck_assert_int_gt(reads, 0);
	ck_assert_int_gt(refused, 0);
	ck_assert_int_gt(writes, 0);
	ck_assert_int_eq(count_entries("../outside"), 1);
	AUTO_FD fd = open("../outside/secret", O_RDONLY);
	char text[16] = "";
	ck_assert_int_eq(read(fd, text, sizeof(text) - 1), 6);
	ck_assert_str_eq(text, "secret");
	ck_assert_int_eq(count_entries("../incoming"), 0);
	remove_box();
}
TEST_END

/* --- writing ----------------------------------------------------------------------------- */

TEST(a_write_makes_parents_and_replaces_whole_files_with_their_mode)
{
	make_box();
	struct err err = ERR_INIT;
	struct stat st;
	ck_ok(files_can_write(&use, "a/b/c.txt", &err), err);
	ck_assert_int_eq(count_entries("."), 0);
	ck_ok(files_write(&use, "a/b/c.txt", "one", 3, &err), err);
	ck_assert_int_eq(stat("a/b/c.txt", &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0644);

	ck_assert_int_eq(chmod("a/b/c.txt", 04751), 0);
	ck_ok(files_write(&use, "a/b/c.txt", "two\0!", 5, &err), err);
	ck_assert_int_eq(stat("a/b/c.txt", &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0751);
	ck_assert_int_eq(st.st_size, 5);
	ck_assert_int_eq(count_entries("../incoming"), 0);
	remove_box();
}
TEST_END

TEST(a_write_over_a_hard_link_leaves_the_other_name_alone)
{
	make_box();
	ck_assert_int_eq(link("../outside/secret", "shared"), 0);
	struct err err = ERR_INIT;
	ck_ok(files_write(&use, "shared", "mine", 4, &err), err);
	ck_content("shared", "mine");
	struct stat st;
	ck_assert_int_eq(stat("../outside/secret", &st), 0);
	ck_assert_int_eq(st.st_size, 6);
	remove_box();
}
TEST_END

TEST(a_write_does_not_replace_what_is_no_regular_file)
{
	make_box();
	ck_assert_int_eq(mkdir("dir", 0755), 0);
	ck_assert_int_eq(symlink("../outside/secret", "link"), 0);
	ck_assert_int_eq(symlink("../outside", "out"), 0);
	ck_assert_int_eq(symlink("nowhere", "broken"), 0);
	ck_assert_int_eq(mkfifo("pipe", 0644), 0);
	struct err err = ERR_INIT;
	ck_ok(files_write(&use, "file", "x", 1, &err), err);
	ck_write_refused("dir", ERR_CONFLICT, "/workspace/dir is a directory");
	ck_write_refused("", ERR_CONFLICT, "/workspace is a directory");
	ck_write_refused("link", ERR_CONFLICT, "/workspace/link is a symbolic link");
	ck_write_refused("pipe", ERR_CONFLICT, "/workspace/pipe is a FIFO");
	ck_write_refused("file/x", ERR_CONFLICT, "no directory");
	ck_write_refused("broken/x/y", ERR_CONFLICT, "broken link");
	ck_write_refused("out/new", ERR_INVALID, "leads out of /workspace");
	ck_write_refused("out/new/deeper", ERR_INVALID, "leads out of /workspace");
	ck_assert_int_eq(count_entries("../outside"), 1);
	ck_assert_int_eq(count_entries("../incoming"), 0);
	remove_box();
}
TEST_END

TEST(a_dropped_draft_leaves_nothing_and_an_abandoned_one_is_swept)
{
	make_box();
	struct err err = ERR_INIT;
	struct files_draft kept = FILES_DRAFT_INIT;
	ck_ok(files_draft_open(&use, &kept, &err), err);
	ck_assert_int_eq(count_entries("../incoming"), 1);
	ck_assert_int_eq(count_entries("."), 0);

	/* Two hours old and nobody holds its lock; the one that is held is as old. */
	close(open("../incoming/dead", O_WRONLY | O_CREAT, 0600));
	struct timespec old[2] = {{.tv_sec = time(NULL) - 7200}, {.tv_sec = time(NULL) - 7200}};
	ck_assert_int_eq(utimensat(AT_FDCWD, "../incoming/dead", old, 0), 0);
	ck_assert_int_eq(futimens(kept.fd, old), 0);
	close(open("../incoming/young", O_WRONLY | O_CREAT, 0600));
	ck_ok(files_write(&use, "f", "x", 1, &err), err);
	ck_assert_int_ne(access("../incoming/dead", F_OK), 0);
	ck_assert_int_eq(access("../incoming/young", F_OK), 0);
	ck_assert_int_eq(count_entries("../incoming"), 2);

	files_draft_drop(&kept);
	files_draft_drop(&kept);
	ck_assert_int_eq(count_entries("../incoming"), 1);
	remove_box();
}
TEST_END

TEST(too_little_room_is_refused_with_both_numbers)
{
	make_box();
	struct conf conf = {.min_free = 0};
	struct app app = {.conf = &conf, .spool = SPOOL_INIT};
	struct err err = ERR_INIT;
	ck_ok(files_check_room(&app, &use, 1, &err), err);
	ck_assert(!files_check_room(&app, &use, INT64_MAX, &err));
	ck_assert_int_eq(err.code, ERR_QUOTA);
	ck_assert_ptr_nonnull(strstr(err.msg, "9223372036854775807"));
	conf.min_free = INT64_MAX;
	ck_assert(!files_check_room(&app, &use, 0, &err));
	ck_assert_int_eq(err.code, ERR_QUOTA);
	ck_assert_ptr_nonnull(strstr(err.msg, "disk is full"));
	ck_assert_ptr_null(strstr(err.msg, "0 bytes are needed"));
	remove_box();
}
TEST_END

/* --- listing ----------------------------------------------------------------------------- */

struct listing {
	struct buf text;
	int64_t stop_after, count;
};

static bool note_entry(void *ctx, const struct files_entry *entry)
{
	struct listing *listing = ctx;
	ck_assert(text_is_utf8(entry->name, strlen(entry->name)));
	buf_printf(&listing->text, "%s:%s:%lld%s|", entry->name, entry->type,
		   (long long)entry->size, entry->renamed ? ":renamed" : "");
	return ++listing->count != listing->stop_after;
}

TEST(a_listing_shows_every_kind_of_entry_and_every_name_as_utf8)
{
	make_box();
	struct err err = ERR_INIT;
	char longest[256];
	memset(longest, 'z', 255);
	longest[255] = '\0';
	ck_ok(files_write(&use, "a\nb", "x", 1, &err), err);
	ck_ok(files_write(&use, longest, "xyz", 3, &err), err);
	ck_assert_int_eq(mkdir(GB_TEST, 0755), 0);
	close(open("\xFF\xFE!", O_WRONLY | O_CREAT, 0644));
	ck_assert_int_eq(symlink("/etc", "l"), 0);
	ck_assert_int_eq(mkfifo("p", 0644), 0);
	struct timespec odd[2] = {{.tv_sec = 0}, {.tv_sec = -86400}};
	ck_assert_int_eq(utimensat(use.workspace_fd, "p", odd, 0), 0);

	struct listing listing = {.text = BUF_INIT};
	int64_t total;
	ck_ok(files_list(&use, "", 0, 100, note_entry, &listing, &total, &err), err);
	ck_assert_int_eq(total, 6);
	ck_assert_int_eq(listing.count, 6);
	const char *text = buf_str(&listing.text);
	ck_assert_ptr_nonnull(strstr(text, "a\nb:file:1|l:link:-1|p:other:-1|zzz"));
	ck_assert_ptr_nonnull(strstr(text, "zzz:file:3|"));
	ck_assert_ptr_nonnull(strstr(text, "|测试:dir:-1:renamed|"));
	ck_assert_ptr_nonnull(strstr(text, "!:file:0:renamed|"));
	buf_finish(&listing.text);
	remove_box();
}
TEST_END

TEST(a_listing_is_sorted_and_cut_into_pages)
{
	make_box();
	struct err err = ERR_INIT;
	for (int i = 9; i >= 0; i--) {
		char name[16];
		snprintf(name, sizeof(name), "n%d", i);
		close(open(name, O_WRONLY | O_CREAT, 0644));
	}
	struct listing page = {.text = BUF_INIT};
	int64_t total;
	ck_ok(files_list(&use, "", 3, 2, note_entry, &page, &total, &err), err);
	ck_assert_str_eq(buf_str(&page.text), "n3:file:0|n4:file:0|");
	ck_assert_int_eq(total, 10);
	buf_clear(&page.text);
	ck_ok(files_list(&use, "", 10, 2, note_entry, &page, &total, &err), err);
	ck_assert_str_eq(buf_str(&page.text), "");
	page.stop_after = page.count + 1;
	ck_ok(files_list(&use, "", 8, 9, note_entry, &page, &total, &err), err);
	ck_assert_str_eq(buf_str(&page.text), "n8:file:0|");
	buf_finish(&page.text);

	ck_assert(!files_list(&use, "n1", 0, 9, note_entry, &page, &total, &err));
	ck_assert_int_eq(err.code, ERR_INVALID);
	ck_assert_ptr_nonnull(strstr(err.msg, "/workspace/n1 is not a directory"));
	ck_assert(!files_list(&use, "none", 0, 9, note_entry, &page, &total, &err));
	ck_assert_int_eq(err.code, ERR_NOT_FOUND);
	ck_assert_int_eq(symlink("/etc", "etc"), 0);
	ck_assert(!files_list(&use, "etc", 0, 9, note_entry, &page, &total, &err));
	ck_assert_ptr_nonnull(strstr(err.msg, "leads out"));
	remove_box();
}
TEST_END

TEST(a_directory_beyond_one_window_is_listed_in_order_across_the_edge)
{
	make_box();
	struct err err = ERR_INIT;
	int count = NAMES_WINDOW + 5;
	for (int i = 0; i < count; i++) {
		char name[16];
		snprintf(name, sizeof(name), "%05d", i * 7919 % count);
		close(open(name, O_WRONLY | O_CREAT, 0644));
	}
	struct listing page = {.text = BUF_INIT};
	int64_t total;
	ck_ok(files_list(&use, "", NAMES_WINDOW - 1, 3, note_entry, &page, &total, &err), err);
	ck_assert_str_eq(buf_str(&page.text), "08191:file:0|08192:file:0|08193:file:0|");
	ck_assert_int_eq(total, count);
	buf_clear(&page.text);
	ck_ok(files_list(&use, "", NAMES_WINDOW + 4, 3, note_entry, &page, &total, &err), err);
	ck_assert_str_eq(buf_str(&page.text), "08196:file:0|");
	buf_finish(&page.text);
	remove_box();
}
TEST_END

/* Each window costs a pass over the directory, so a caller must not choose how many. */
TEST(a_listing_reaches_so_far_and_says_when_it_ends_there)
{
	make_box();
	struct err err = ERR_INIT;
	for (int i = 0; i <= FILES_LIST_REACH; i++) {
		char name[16];
		snprintf(name, sizeof(name), "%06d", i);
		close(open(name, O_WRONLY | O_CREAT, 0644));
	}
	struct listing page = {.text = BUF_INIT};
	int64_t total;
	ck_ok(files_list(&use, "", FILES_LIST_REACH - 1, 9, note_entry, &page, &total, &err), err);
	ck_assert_str_eq(buf_str(&page.text), "065535:file:0|");
	ck_assert_int_eq(total, FILES_LIST_REACH + 1);
	ck_assert(!files_list(&use, "", FILES_LIST_REACH, 9, note_entry, &page, &total, &err));
	ck_assert_int_eq(err.code, ERR_TOO_LARGE);
	ck_assert_ptr_nonnull(strstr(err.msg, "65537"));
	/* Beyond the end is simply the end. */
	err = (struct err)ERR_INIT;
	buf_clear(&page.text);
	ck_ok(files_list(&use, "", INT64_MAX, 9, note_entry, &page, &total, &err), err);
	ck_assert_uint_eq(page.text.len, 0);
	buf_finish(&page.text);
	remove_box();
}
TEST_END

TEST(times_beyond_all_dates_do_not_overflow)
{
	struct stat st = {.st_mtim = {.tv_sec = INT64_MAX, .tv_nsec = 999999999}};
	ck_assert_int_gt(files_mtime_ms(&st), 0);
	st.st_mtim.tv_sec = INT64_MIN;
	ck_assert_int_lt(files_mtime_ms(&st), 0);
	st.st_mtim = (struct timespec){.tv_sec = 1, .tv_nsec = 5000000};
	ck_assert_int_eq(files_mtime_ms(&st), 1005);
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		paths_become_relative_and_never_lead_up,
		a_path_with_a_nul_or_of_too_many_bytes_is_refused,
		links_inside_are_followed_and_links_out_are_refused,
		what_is_no_regular_file_is_refused_by_its_kind_and_at_once,
		names_in_gb18030_are_found_by_their_utf8_spelling,
		a_swap_between_directory_and_link_never_lets_a_read_or_write_out,
		a_write_makes_parents_and_replaces_whole_files_with_their_mode,
		a_write_over_a_hard_link_leaves_the_other_name_alone,
		a_write_does_not_replace_what_is_no_regular_file,
		a_dropped_draft_leaves_nothing_and_an_abandoned_one_is_swept,
		too_little_room_is_refused_with_both_numbers,
		a_listing_shows_every_kind_of_entry_and_every_name_as_utf8,
		a_listing_is_sorted_and_cut_into_pages,
		a_directory_beyond_one_window_is_listed_in_order_across_the_edge,
		a_listing_reaches_so_far_and_says_when_it_ends_there,
		times_beyond_all_dates_do_not_overflow,
	};
	return unit_run("files", tests, ARRAY_LEN(tests));
}
