/* matplotlib's list of fonts: when it is made, and how it gets into a sandbox. Fonts and matplotlib
 * are this machine's own. */
#include "box_kit.h"

#include <glob.h>
#include <time.h>

#include "box/python_fonts.h"
#include "run/kernel.h"

#define MATPLOTLIB "/usr/lib/python3/dist-packages/matplotlib"
#define MAKE_MS    60000 /* two seconds; under valgrind, beside other tests, it is more */

static struct kit kit;
static struct app app;
static int fonts_fd;

static void begin(void)
{
	kit_make(&kit);
	app = (struct app){.spool = SPOOL_INIT};
	app.spool.root_fd = kit.box.run_dir_fd;
	app.fonts_path = xasprintf("%s/" SPOOL_FONTS_NAME, kit.dir);
	kit.box.fonts_path = app.fonts_path;
	python_fonts_refresh(&app);
	fonts_fd = open(app.fonts_path, O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(fonts_fd, 0);
}

static void end(void)
{
	close(fonts_fd);
	free(app.fonts_path);
	kit_end(&kit);
}

static struct stat look(const char *name)
{
	struct stat st;
	ck_assert_int_eq(fstatat(fonts_fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st;
}

static bool is_stamped(const struct timespec *at)
{
	struct timespec made = look("made").st_mtim;
	return made.tv_sec == at->tv_sec && made.tv_nsec == at->tv_nsec;
}

static struct timespec stamp(time_t seconds)
{
	const struct timespec times[2] = {{seconds, 0}, {seconds, 0}};
	ck_assert_int_eq(utimensat(fonts_fd, "made", times, 0), 0);
	return times[1];
}

/* Matches of a pattern in the directory; the first one's name goes to name. */
static size_t find(const char *pattern, char name[static 64])
{
	glob_t found;
	AUTO_FREE char *path = xasprintf("%s/%s", app.fonts_path, pattern);
	size_t count = glob(path, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
	name[0] = '\0';
	if (count > 0)
		snprintf(name, 64, "%s", strrchr(found.gl_pathv[0], '/') + 1);
	if (count > 0)
		globfree(&found);
	return count;
}

/* Waits for a list that is not the one of this inode, and for the end of what makes it. */
static struct stat wait_for_list(ino_t before, char name[static 64])
{
	char ignored[64];
	int64_t until_ms = clock_mono_ms() + MAKE_MS;
	while (find("fontlist-*.json", name) != 1 || look(name).st_ino == before ||
	       find(".new-*", ignored) > 0) {
		ck_assert_msg(clock_mono_ms() < until_ms, "no list was made");
		clock_sleep_ms(20);
	}
	return look(name);
}

TEST(a_list_is_made_that_only_the_service_can_read)
{
	char name[64], text[4096];
	begin();
	struct stat list = wait_for_list(0, name), dir;
	ck_assert_int_eq(fstat(fonts_fd, &dir), 0);
	ck_assert_int_eq(dir.st_mode & 07777, 0700);
	ck_assert_int_eq(look("made").st_mode & 07777, 0600);
	ck_assert_int_gt(list.st_size, 1000);
	int fd = openat(fonts_fd, name, O_RDONLY | O_CLOEXEC);
	ck_assert_int_gt(read(fd, text, sizeof(text)), 0);
	ck_assert_int_eq(text[0], '{');
	close(fd);
	end();
}
TEST_END

TEST(it_is_made_again_when_a_source_is_newer_and_not_before)
{
	char name[64];
	begin();
	struct stat list = wait_for_list(0, name);
	/* Younger than all that is installed. */
	struct timespec at = stamp(time(NULL));
	python_fonts_refresh(&app);
	ck_assert(is_stamped(&at));
	/* Older than all of it. */
	at = stamp(1000000000);
	python_fonts_refresh(&app);
	ck_assert(!is_stamped(&at));
	ck_assert_int_ne(wait_for_list(list.st_ino, name).st_ino, list.st_ino);
	end();
}
TEST_END

TEST(a_stamp_from_the_future_does_not_keep_it_from_being_made)
{
	char name[64];
	begin();
	struct stat list = wait_for_list(0, name);
	struct timespec at = stamp(time(NULL) + 100000);
	python_fonts_refresh(&app);
	ck_assert(!is_stamped(&at));
	wait_for_list(list.st_ino, name);
	end();
}
TEST_END

TEST(what_a_killed_run_left_goes_with_the_next_one)
{
	char name[64];
	static const struct timespec long_ago[2] = {{1000000000, 0}, {1000000000, 0}};
	begin();
	struct stat list = wait_for_list(0, name);
	ck_assert_int_eq(mkdirat(fonts_fd, ".new-killed", 0700), 0);
	ck_assert_int_eq(utimensat(fonts_fd, ".new-killed", long_ago, 0), 0);
	stamp(1000000000);
	python_fonts_refresh(&app);
	wait_for_list(list.st_ino, name);
	ck_assert_uint_eq(find(".new-*", name), 0);
	end();
}
TEST_END

/* Runs code in the sandbox and asserts what it prints. */
static void expect(const char *code, const char *output)
{
	struct err err = ERR_INIT;
	struct kernel_request request = {.code = code,
					 .code_len = strlen(code),
					 .cwd = "/workspace",
					 .save_dir = "/workspace/.python/save",
					 .timeout_ms = 30000,
					 .image_bytes = 1 << 20,
					 .idle_ms = 60000};
	AUTO_KERNEL_RUN run;
	AUTO_BUF out = BUF_INIT;
	kernel_run_init(&run, 10000, 10000);
	AUTO_FD fd = kernel_connect(&kit.box, &err);
	ck_assert_msg(fd >= 0, "%s", err.msg);
	ck_ok(kernel_run(fd, &kit.box, &request, NULL, NULL, NULL, &run, &err), err);
	capture_text(&run.out, &out);
	ck_assert_msg(run.end == KERNEL_END_DONE, "end %d: %s", run.end,
		      run.error == NULL ? "" : json_text(run.error, NULL));
	ck_assert_str_eq(buf_str(&out), output);
}

TEST(sandboxes_see_it_read_only_and_matplotlib_in_them_has_a_copy)
{
	static const char *const env[] = {"PATH=/usr/bin:/bin", "HOME=/workspace", NULL};
	struct err err = ERR_INIT;
	char name[64];
	AUTO_BUF line = BUF_INIT;
	begin();
	ck_ok(kit.runtime->start(&kit.box, &err), err);
	wait_for_list(0, name); /* one that is made later is seen as well */
	kit_expect(&kit, "ls /.python-fonts/fontlist-*.json | wc -l", "1\n");
	kit_expect(&kit, "touch /.python-fonts/x 2>/dev/null || echo refused", "refused\n");
	kit_expect(&kit, "rm -f /.python-fonts/font* 2>/dev/null || echo refused", "refused\n");

	kernel_command(&line, 60000, false);
	const char *const argv[] = {"/bin/bash", "-c", buf_str(&line), NULL};
	struct runtime_command command = {.argv = argv, .env = env, .cwd = "/workspace"};
	command.limits = (struct runtime_limits){200, 256, 64 << 20, -1};
	ck_ok(kernel_start(kit.runtime, &kit.box, &command, &err), err);
	expect("import filecmp, glob, matplotlib, os\n"
	       "made, = glob.glob('/.python-fonts/fontlist-*.json')\n"
	       "mine = os.path.join(matplotlib.get_cachedir(), os.path.basename(made))\n"
	       "print(filecmp.cmp(made, mine, shallow=False), os.access(mine, os.W_OK))\n",
	       "True True\n");
	end();
}
TEST_END

int main(int argc, char **argv)
{
	const TTest *const tests[] = {
		a_list_is_made_that_only_the_service_can_read,
		it_is_made_again_when_a_source_is_newer_and_not_before,
		a_stamp_from_the_future_does_not_keep_it_from_being_made,
		what_a_killed_run_left_goes_with_the_next_one,
		sandboxes_see_it_read_only_and_matplotlib_in_them_has_a_copy,
	};
	(void)argc;
	if (!getenv("STRICT") &&
	    (access(MATPLOTLIB, F_OK) != 0 || access("/usr/bin/python3", X_OK) != 0)) {
		printf("1..0 # SKIP matplotlib is not installed for /usr/bin/python3\n");
		return 0;
	}
	return kit_main(argv, "python_fonts", tests, ARRAY_LEN(tests));
}
