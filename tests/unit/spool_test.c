#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fs.h"
#include "base/id.h"
#include "store/spool.h"

static char *dir;
static struct conf conf;
static struct spool spool;

static void setup(void)
{
	struct err err = ERR_INIT;
	dir = unit_tempdir();
	conf = (struct conf){
		.spool = xasprintf("%s/spool", dir),
		.data_dir = xasprintf("%s/spool/data", dir),
	};
	ck_ok(spool_open(&spool, &conf, &err), err);
}

static void teardown(void)
{
	spool_close(&spool);
	free(conf.spool);
	free(conf.data_dir);
	unit_tempdir_remove(dir);
}

static mode_t mode_of(const char *below)
{
	AUTO_FREE char *path = xasprintf("%s/%s", conf.spool, below);
	struct stat st;
	return lstat(path, &st) == 0 ? st.st_mode & 07777 : 0;
}

static int entries(int dirfd)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY);
	DIR *listing = fdopendir(fd);
	int count = 0;
	while (readdir(listing) != NULL)
		count++;
	closedir(listing);
	return count - 2;
}

static void refused(const char *setting, const char *hint)
{
	struct err err = ERR_INIT;
	struct spool other;
	ck_assert(!spool_open(&other, &conf, &err));
	spool_close(&other);
	ck_assert_int_eq(err.code, ERR_UNAVAILABLE);
	ck_assert_msg(strstr(err.msg, setting) != NULL, "%s", err.msg);
	ck_assert_msg(strstr(err.hint, hint) != NULL, "%s", err.hint);
	ck_assert_ptr_null(strstr(err.msg, dir));
	ck_assert_ptr_null(strstr(err.hint, dir));
}

TEST(everything_is_made_private_at_the_first_start)
{
	setup();
	static const char *const names[] = {".",    "data",        "run",
					    "keys", "data/.trash", "run/.trash"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		ck_assert_int_eq(mode_of(names[i]), 0700);
	struct err err = ERR_INIT;
	spool_close(&spool);
	ck_ok(spool_open(&spool, &conf, &err), err);
	teardown();
}
TEST_END

TEST(a_spool_that_others_can_enter_is_refused)
{
	setup();
	static const mode_t modes[] = {0755, 0710, 0701, 0770, 0704};
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		chmod(conf.spool, modes[i]);
		refused("SMCP_SPOOL", "chmod 0700");
	}
	chmod(conf.spool, 0700);
	chmod(conf.data_dir, 0750);
	refused("data/ in the directory that SMCP_SPOOL names", "chmod 0700");
	chmod(conf.data_dir, 0700);
	teardown();
}
TEST_END

TEST(a_spool_of_another_user_is_refused)
{
	setup();
	AUTO_FREE char *own = conf.spool;
	if (geteuid() == 0)
		ck_assert_int_eq(chown(own, 65534, 65534), 0);
	conf.spool = geteuid() == 0 ? xstrdup(own) : xstrdup("/usr");
	refused("SMCP_SPOOL", "chown");
	if (geteuid() == 0)
		ck_assert_int_eq(chown(own, 0, 0), 0);
	teardown();
}
TEST_END

TEST(a_spool_that_cannot_be_made_says_which_setting)
{
	setup();
	free(conf.spool);
	conf.spool = xasprintf("%s/missing/spool", dir);
	refused("SMCP_SPOOL", "install -d");
	free(conf.spool);
	conf.spool = xstrdup("/dev/null");
	refused("SMCP_SPOOL", "install -d");
	conf.spool[0] = '\0';
	teardown();
}
TEST_END

TEST(a_spool_that_was_used_before_is_given_no_empty_data_directory)
{
	setup();
	AUTO_FREE char *mark = xasprintf("%s/spool.id", conf.spool);
	AUTO_FREE char *away = xasprintf("%s/elsewhere", conf.spool);
	close(open(mark, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	ck_assert_int_eq(rename(conf.data_dir, away), 0);
	refused("data/ in the directory that SMCP_SPOOL names", "put it back");
	ck_assert_int_ne(access(conf.data_dir, F_OK), 0);
	ck_assert_int_eq(rename(away, conf.data_dir), 0);
	teardown();
}
TEST_END

TEST(files_of_a_sandbox_are_closed_to_others_and_open_to_itself)
{
	setup();
	struct err err = ERR_INIT;
	char id[ID_LEN + 1];
	id_make(id);
	mode_t old = umask(077);
	ck_ok(spool_make_files(&spool, id, &err), err);
	umask(old);
	AUTO_FREE char *top = xasprintf("data/%s", id);
	AUTO_FREE char *workspace = xasprintf("data/%s/workspace", id);
	AUTO_FREE char *incoming = xasprintf("data/%s/incoming", id);
	ck_assert_int_eq(mode_of(top), 0700);
	ck_assert_int_eq(mode_of(workspace), 0755);
	ck_assert_int_eq(mode_of(incoming), 0700);
	AUTO_FD a = spool_workspace(&spool, id, &err);
	ck_ok(a >= 0, err);
	AUTO_FD b = spool_incoming(&spool, id, &err);
	ck_ok(b >= 0, err);
	ck_assert(fcntl(a, F_GETFD) & FD_CLOEXEC);
	AUTO_FREE char *path = spool_workspace_path(&spool, &conf, id);
	struct stat by_path, by_fd;
	ck_assert_int_eq(stat(path, &by_path), 0);
	ck_assert_int_eq(fstat(a, &by_fd), 0);
	ck_assert_uint_eq(by_path.st_ino, by_fd.st_ino);
	teardown();
}
TEST_END

/* Runs work as an ordinary user on a spool that is open for it: root may open everything. */
static void as_ordinary_user(void (*work)(void))
{
	if (geteuid() == 0) {
		spool_close(&spool);
		AUTO_FREE char *command = xasprintf("chown -R 65534:65534 %s", dir);
		ck_assert_int_eq(system(command), 0);
	}
	pid_t pid = fork();
	if (pid == 0) {
		struct err err = ERR_INIT;
		if (geteuid() == 0) {
			if (setgid(65534) != 0 || setuid(65534) != 0)
				_exit(1);
			ck_ok(spool_open(&spool, &conf, &err), err);
		}
		work();
		_exit(0);
	}
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

static void close_and_open_workspace(void)
{
	struct err err = ERR_INIT;
	char id[ID_LEN + 1];
	id_make(id);
	ck_ok(spool_make_files(&spool, id, &err), err);
	AUTO_FREE char *below = xasprintf("data/%s/workspace", id);
	AUTO_FREE char *workspace = spool_workspace_path(&spool, &conf, id);
	static const mode_t closed[] = {0, 0600, 0300, 0077};
	for (size_t i = 0; i < ARRAY_LEN(closed); i++) {
		ck_assert_int_eq(chmod(workspace, closed[i]), 0);
		AUTO_FD fd = spool_workspace(&spool, id, &err);
		ck_ok(fd >= 0, err);
		ck_assert_int_eq(mode_of(below), (int)(closed[i] | 0700));
		ck_assert_int_eq(mkdirat(fd, "sub", 0700), 0);
		ck_assert_int_eq(unlinkat(fd, "sub", AT_REMOVEDIR), 0);
	}
	/* What does not shut anybody out stays. */
	ck_assert_int_eq(chmod(workspace, 0500), 0);
	AUTO_FD fd = spool_workspace(&spool, id, &err);
	ck_ok(fd >= 0, err);
	ck_assert_int_eq(mode_of(below), 0500);
	/* A link in its place is not followed. */
	ck_assert_int_eq(rmdir(workspace), 0);
	ck_assert_int_eq(symlink("../..", workspace), 0);
	ck_assert_int_eq(spool_workspace(&spool, id, &err), -1);
}

TEST(a_workspace_that_its_sandbox_closed_is_opened_up_again)
{
	setup();
	as_ordinary_user(close_and_open_workspace);
	teardown();
}
TEST_END

TEST(missing_files_are_not_found)
{
	setup();
	struct err err = ERR_INIT;
	char id[ID_LEN + 1];
	id_make(id);
	ck_assert_int_eq(spool_workspace(&spool, id, &err), -1);
	ck_assert_int_eq(err.code, ERR_NOT_FOUND);
	err = (struct err)ERR_INIT;
	ck_assert_int_eq(spool_find_run_dir(&spool, id, &err), -1);
	ck_assert_int_eq(err.code, ERR_NOT_FOUND);
	err = (struct err)ERR_INIT;
	ck_ok(spool_retire_files(&spool, id, &err), err);
	ck_ok(spool_retire_run(&spool, id, &err), err);
	teardown();
}
TEST_END

/* A tree as a hostile sandbox would leave it; ends in a directory far below any path limit. */
static void make_nasty_tree(int workspace, int depth)
{
	ck_assert_int_eq(symlinkat("/", workspace, "root"), 0);
	ck_assert_int_eq(symlinkat("../../..", workspace, "up"), 0);
	ck_assert_int_eq(mkfifoat(workspace, "fifo", 0), 0);
	ck_assert_int_eq(mkdirat(workspace, "closed", 0700), 0);
	ck_assert_int_eq(mkdirat(workspace, "closed/inside", 0700), 0);
	int file = openat(workspace, "closed/inside/file", O_CREAT | O_WRONLY, 0);
	close(file);
	ck_assert_int_eq(fchmodat(workspace, "closed/inside", 0, 0), 0);
	ck_assert_int_eq(fchmodat(workspace, "closed", 0, 0), 0);
	int at = dup(workspace);
	for (int i = 0; i < depth; i++) {
		ck_assert_int_eq(mkdirat(at, "deep", 0700), 0);
		int next = openat(at, "deep", O_RDONLY | O_DIRECTORY);
		file = openat(next, "f", O_CREAT | O_WRONLY, 0600);
		close(file);
		close(at);
		at = next;
	}
	close(at);
}

static void retire_nasty_tree(void)
{
	struct err err = ERR_INIT;
	AUTO_FREE char *victim = xasprintf("%s/victim", dir);
	ck_assert_int_eq(mkdir(victim, 0755), 0);
	AUTO_FREE char *precious = xasprintf("%s/precious", victim);
	close(open(precious, O_CREAT | O_WRONLY, 0600));
	char id[ID_LEN + 1];
	id_make(id);
	ck_ok(spool_make_files(&spool, id, &err), err);
	{
		AUTO_FD workspace = spool_workspace(&spool, id, &err);
		make_nasty_tree(workspace, 1200);
		ck_assert_int_eq(symlinkat(victim, workspace, "victim"), 0);
		ck_assert_int_eq(fchmod(workspace, 0), 0);
	}
	ck_ok(spool_retire_files(&spool, id, &err), err);
	ck_assert_int_eq(faccessat(spool.data_fd, id, F_OK, 0), -1);
	for (int i = 0; i < 20 && !spool_sweep(&spool, 1000); i++)
		;
	ck_assert_int_eq(entries(spool.trash_fd), 0);
	ck_assert_int_eq(access(precious, F_OK), 0);
}

TEST(a_hostile_tree_is_deleted_whole_with_few_descriptors)
{
	setup();
	struct rlimit few = {64, 64};
	setrlimit(RLIMIT_NOFILE, &few);
	retire_nasty_tree();
	teardown();
}
TEST_END

TEST(a_tree_without_permissions_is_deleted_by_an_ordinary_user)
{
	setup();
	as_ordinary_user(retire_nasty_tree);
	teardown();
}
TEST_END

static void drop_closed_directory(void)
{
	struct err err = ERR_INIT;
	char id[ID_LEN + 1];
	id_make(id);
	ck_ok(spool_make_files(&spool, id, &err), err);
	AUTO_FD workspace = spool_workspace(&spool, id, &err);
	ck_assert_int_eq(mkdirat(workspace, ".cache", 0700), 0);
	ck_assert_int_eq(fchmodat(workspace, ".cache", 0500, 0), 0);
	ck_ok(spool_drop_file(&spool, workspace, ".cache", &err), err);
	ck_assert_int_eq(faccessat(workspace, ".cache", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	ck_assert(spool_sweep(&spool, 1000));
}

TEST(a_directory_that_its_sandbox_closed_can_be_moved_away)
{
	setup();
	as_ordinary_user(drop_closed_directory);
	teardown();
}
TEST_END

TEST(deleting_stops_in_time_and_goes_on_later)
{
	setup();
	struct err err = ERR_INIT;
	char id[ID_LEN + 1];
	id_make(id);
	ck_ok(spool_make_files(&spool, id, &err), err);
	{
		AUTO_FD workspace = spool_workspace(&spool, id, &err);
		for (int i = 0; i < 20000; i++) {
			char name[16];
			snprintf(name, sizeof(name), "f%d", i);
			close(openat(workspace, name, O_CREAT | O_WRONLY, 0600));
		}
	}
	ck_assert_int_eq(renameat(spool.data_fd, id, spool.trash_fd, id), 0);
	ck_assert(!spool_sweep(&spool, 5));
	ck_assert_int_gt(entries(spool.trash_fd), 0);
	for (int i = 0; i < 20 && !spool_sweep(&spool, 1000); i++)
		;
	ck_assert_int_eq(entries(spool.trash_fd), 0);
	teardown();
}
TEST_END

TEST(who_finds_too_little_room_has_the_trash_emptied)
{
	setup();
	struct err err = ERR_INIT;
	char id[ID_LEN + 1];
	id_make(id);
	ck_ok(spool_make_files(&spool, id, &err), err);
	ck_assert_int_eq(renameat(spool.data_fd, id, spool.trash_fd, id), 0);
	ck_assert_int_ge(spool_free_bytes(&spool, spool.data_fd, 0), 0);
	ck_assert_int_eq(entries(spool.trash_fd), 1);
	ck_assert_int_ge(spool_free_bytes(&spool, spool.data_fd, INT64_MAX), 0);
	ck_assert_int_eq(entries(spool.trash_fd), 0);
	ck_assert_int_eq(spool_free_bytes(&spool, -1, 1), -1);
	teardown();
}
TEST_END

TEST(two_that_sweep_at_once_do_not_disturb_each_other)
{
	setup();
	struct err err = ERR_INIT;
	for (int i = 0; i < 50; i++) {
		char id[ID_LEN + 1];
		id_make(id);
		ck_ok(spool_make_files(&spool, id, &err), err);
		ck_assert_int_eq(renameat(spool.data_fd, id, spool.trash_fd, id), 0);
	}
	for (int i = 0; i < 4; i++) {
		if (fork() == 0) {
			spool_sweep(&spool, 5000);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	spool_sweep(&spool, 1000);
	ck_assert_int_eq(entries(spool.trash_fd), 0);
	teardown();
}
TEST_END

TEST(a_run_directory_is_made_and_retired)
{
	setup();
	struct err err = ERR_INIT;
	char id[ID_LEN + 1];
	id_make(id);
	{
		AUTO_FD run = spool_run_dir(&spool, id, &err);
		ck_ok(run >= 0, err);
		close(openat(run, "use", O_CREAT | O_WRONLY, 0600));
		AUTO_FD again = spool_find_run_dir(&spool, id, &err);
		ck_ok(again >= 0, err);
	}
	ck_ok(spool_retire_run(&spool, id, &err), err);
	ck_assert_int_eq(faccessat(spool.run_fd, id, F_OK, 0), -1);
	ck_assert_int_eq(entries(spool.run_trash_fd), 0);
	teardown();
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		everything_is_made_private_at_the_first_start,
		a_spool_that_others_can_enter_is_refused,
		a_spool_of_another_user_is_refused,
		a_spool_that_cannot_be_made_says_which_setting,
		a_spool_that_was_used_before_is_given_no_empty_data_directory,
		files_of_a_sandbox_are_closed_to_others_and_open_to_itself,
		a_workspace_that_its_sandbox_closed_is_opened_up_again,
		missing_files_are_not_found,
		a_hostile_tree_is_deleted_whole_with_few_descriptors,
		a_tree_without_permissions_is_deleted_by_an_ordinary_user,
		a_directory_that_its_sandbox_closed_can_be_moved_away,
		deleting_stops_in_time_and_goes_on_later,
		who_finds_too_little_room_has_the_trash_emptied,
		two_that_sweep_at_once_do_not_disturb_each_other,
		a_run_directory_is_made_and_retired,
	};
	return unit_run("spool", unit_tests, ARRAY_LEN(unit_tests));
}
