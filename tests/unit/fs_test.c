#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/fs.h"

static char *dir;
static int root;

static void setup(void)
{
	struct err err = ERR_INIT;
	dir = unit_tempdir();
	root = fs_open_dir(AT_FDCWD, dir, &err);
	ck_assert_int_ge(root, 0);
}

static void teardown(void)
{
	close(root);
	unit_tempdir_remove(dir);
}

TEST(nothing_outside_of_the_root_can_be_opened)
{
	setup();
	mkdirat(root, "in", 0755);
	ck_assert_int_eq(symlinkat("/etc/passwd", root, "abs"), 0);
	ck_assert_int_eq(symlinkat("../../../../etc/passwd", root, "in/up"), 0);
	ck_assert_int_eq(symlinkat("/proc/self/root", root, "magic"), 0);
	static const char *const escapes[] = {"abs",  "in/up",       "magic/etc/passwd",
					      "../x", "/etc/passwd", "in/../../x"};
	for (size_t i = 0; i < ARRAY_LEN(escapes); i++) {
		int fd = fs_open_beneath(root, escapes[i], O_RDONLY, 0);
		ck_assert_msg(fd < 0 && (errno == EXDEV || errno == ELOOP), "%s: %s", escapes[i],
			      strerror(errno));
	}
	teardown();
}
TEST_END

TEST(a_fifo_does_not_hang_the_opener)
{
	setup();
	ck_assert_int_eq(mkfifoat(root, "fifo", 0600), 0);
	AUTO_FD fd = fs_open_beneath(root, "fifo", O_RDONLY, 0);
	ck_assert_int_ge(fd, 0);
	teardown();
}
TEST_END

TEST(parents_are_made_only_when_asked_and_never_through_an_escape)
{
	setup();
	const char *base;
	ck_assert_int_eq(fs_open_parent(root, "a/b/c.txt", false, &base), -1);
	ck_assert_int_eq(errno, ENOENT);
	AUTO_FD fd = fs_open_parent(root, "a/b/c.txt", true, &base);
	ck_assert_int_ge(fd, 0);
	ck_assert_str_eq(base, "c.txt");
	struct stat st;
	ck_assert_int_eq(fstatat(root, "a/b", &st, 0), 0);
	AUTO_FD top = fs_open_parent(root, "plain", false, &base);
	ck_assert_int_ge(top, 0);
	ck_assert_str_eq(base, "plain");

	char *outside = unit_tempdir();
	ck_assert_int_eq(symlinkat(outside, root, "out"), 0);
	ck_assert_int_eq(fs_open_parent(root, "out/made/x", true, &base), -1);
	AUTO_BUF path = BUF_INIT;
	buf_printf(&path, "%s/made", outside);
	ck_assert_int_ne(access(buf_str(&path), F_OK), 0);
	unit_tempdir_remove(outside);

	AUTO_FD file = openat(root, "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	ck_assert_int_ge(file, 0);
	ck_assert_int_eq(fs_open_parent(root, "file/x/y", true, &base), -1);
	ck_assert_int_eq(errno, ENOTDIR);
	teardown();
}
TEST_END

static atomic_bool stop;

/* Flips "sub" between a directory and a link that leads out. */
static void *swapper(void *arg)
{
	(void)arg;
	while (!stop) {
		if (renameat(root, "sub", root, "kept") != 0 ||
		    symlinkat("/etc", root, "sub") != 0 || unlinkat(root, "sub", 0) != 0 ||
		    renameat(root, "kept", root, "sub") != 0)
			abort();
	}
	return NULL;
}

TEST(a_directory_swapped_with_a_link_never_leads_out)
{
	setup();
	mkdirat(root, "sub", 0755);
	AUTO_FD mark = openat(root, "sub/passwd", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	ck_assert_int_eq(write(mark, "mine", 4), 4);
	pthread_t thread;
	ck_assert_int_eq(pthread_create(&thread, NULL, swapper, NULL), 0);
	int reached = 0;
	/* A busy machine may run the swapper alone for long: go on until the file was there, too.
	 */
	int64_t deadline = clock_mono_ms() + 20000;
	for (int i = 0; i < 20000 || (reached == 0 && clock_mono_ms() < deadline); i++) {
		AUTO_FD fd = fs_open_beneath(root, "sub/passwd", O_RDONLY, 0);
		if (fd < 0)
			continue;
		char text[4];
		ck_assert_int_eq(read(fd, text, 4), 4);
		ck_assert_int_eq(memcmp(text, "mine", 4), 0);
		reached++;
	}
	stop = true;
	pthread_join(thread, NULL);
	ck_assert_int_gt(reached, 0);
	teardown();
}
TEST_END

TEST(an_atomic_write_shows_the_old_or_the_new_content)
{
	setup();
	struct err err = ERR_INIT;
	ck_ok(fs_write_atomic(root, "f", "old", 3, 0600, &err), err);
	AUTO_FD before = openat(root, "f", O_RDONLY | O_CLOEXEC);
	ck_ok(fs_write_atomic(root, "f", "newer", 5, 0600, &err), err);
	AUTO_FD after = openat(root, "f", O_RDONLY | O_CLOEXEC);
	AUTO_BUF text = BUF_INIT;
	ck_ok(fs_read_all(before, 100, &text, &err), err);
	ck_assert_str_eq(buf_str(&text), "old");
	buf_clear(&text);
	ck_assert(!fs_read_all(after, 4, &text, &err));
	ck_assert_int_eq(err.code, ERR_TOO_LARGE);
	teardown();
}
TEST_END

TEST(removing_a_tree_takes_unreadable_directories_and_leaves_link_targets)
{
	setup();
	struct err err = ERR_INIT;
	char *outside = unit_tempdir();
	AUTO_BUF kept = BUF_INIT;
	buf_printf(&kept, "%s/kept", outside);
	mkdirat(root, "t", 0755);
	mkdirat(root, "t/closed", 0755);
	close(open(buf_str(&kept), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	close(openat(root, "t/closed/x", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	ck_assert_int_eq(symlinkat(outside, root, "t/link"), 0);
	ck_assert_int_eq(fchmodat(root, "t/closed", 0, 0), 0);
	ck_ok(fs_remove_tree(root, "t", &err), err);
	struct stat st;
	ck_assert_int_ne(fstatat(root, "t", &st, AT_SYMLINK_NOFOLLOW), 0);
	ck_assert_int_eq(access(buf_str(&kept), F_OK), 0);
	ck_ok(fs_remove_tree(root, "never was", &err), err);
	unit_tempdir_remove(outside);
	teardown();
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		nothing_outside_of_the_root_can_be_opened,
		a_fifo_does_not_hang_the_opener,
		parents_are_made_only_when_asked_and_never_through_an_escape,
		a_directory_swapped_with_a_link_never_leads_out,
		an_atomic_write_shows_the_old_or_the_new_content,
		removing_a_tree_takes_unreadable_directories_and_leaves_link_targets,
	};
	return unit_run("fs", unit_tests, ARRAY_LEN(unit_tests));
}
