/* Locks and child processes. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/lock.h"
#include "base/proc.h"

/* Runs a shell line in a spawned child and returns what it wrote to its standard output. */
static void shell_output(const char *line, const char *const *envp, struct buf *out)
{
	int ends[2];
	struct err err = ERR_INIT;
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	struct proc_spec spec = {
		.argv = (const char *const[]){"/bin/sh", "-c", line, NULL},
		.envp = envp,
		.fds = (struct proc_fd[]){{ends[1], 1}},
		.fd_count = 1,
	};
	pid_t pid = proc_spawn(&spec, &err);
	ck_ok(pid > 0, err);
	close(ends[1]);
	ck_ok(fs_read_all(ends[0], 65536, out, &err), err);
	close(ends[0]);
	int status;
	ck_assert_int_eq(proc_wait(pid, 5000, &status), 1);
}

static const char *const no_env[] = {"PATH=/usr/bin:/bin", NULL};

TEST(a_child_has_three_descriptors_default_signals_and_only_the_given_environment)
{
	/* What a web server leaves behind: ignored and blocked signals, stray descriptors, secrets.
	 */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	setenv("SMCP_TOKEN", "a secret of the server", 1);
	int stray = open("/dev/null", O_RDONLY); /* without close-on-exec, on purpose */
	ck_assert_int_ge(stray, 3);

	AUTO_BUF out = BUF_INIT;
	shell_output(
		"for fd in /proc/self/fd/*; do echo ${fd##*/}; done | sort -n | head -c 6; env; "
		"grep -E 'Sig(Blk|Ign|Cgt)' /proc/self/status; umask; pwd",
		no_env, &out);
	const char *text = buf_str(&out);
	/* The glob opens /proc/self/fd itself as 3. */
	ck_assert_msg(strncmp(text, "0\n1\n2\n", 6) == 0, "%s", text);
	ck_assert_ptr_null(strstr(text, "secret"));
	ck_assert_ptr_nonnull(strstr(text, "SigBlk:\t0000000000000000"));
	ck_assert_ptr_nonnull(strstr(text, "SigIgn:\t0000000000000000"));
	ck_assert_ptr_nonnull(strstr(text, "0022\n/\n"));
	char path[64];
	snprintf(path, sizeof(path), "test -e /proc/self/fd/%d && echo open", stray);
	buf_clear(&out);
	shell_output(path, no_env, &out);
	ck_assert_str_eq(buf_str(&out), "");
	close(stray);
}
TEST_END

TEST(a_program_that_does_not_exist_is_reported_by_the_starter)
{
	struct err err = ERR_INIT;
	struct proc_spec spec = {.argv = (const char *const[]){"/does/not/exist", NULL},
				 .envp = no_env};
	ck_assert_int_eq(proc_spawn(&spec, &err), -1);
	ck_assert_int_eq(err.sys, ENOENT);
	spec.detached = true;
	ck_assert_int_eq(proc_spawn(&spec, &err), -1);
	ck_assert_int_eq(err.sys, ENOENT);
}
TEST_END

TEST(descriptors_are_placed_even_when_their_numbers_cross)
{
	int a[2], b[2];
	struct err err = ERR_INIT;
	ck_assert_int_eq(pipe2(a, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(b, O_CLOEXEC), 0);
	struct proc_spec spec = {
		.argv = (const char *const[]){"/bin/sh", "-c", "echo one >&3; echo two >&4", NULL},
		.envp = no_env,
		.fds = (struct proc_fd[]){{a[1], 4}, {b[1], 3}},
		.fd_count = 2,
	};
	pid_t pid = proc_spawn(&spec, &err);
	ck_ok(pid > 0, err);
	close(a[1]);
	close(b[1]);
	AUTO_BUF from_a = BUF_INIT, from_b = BUF_INIT;
	ck_ok(fs_read_all(a[0], 100, &from_a, &err), err);
	ck_ok(fs_read_all(b[0], 100, &from_b, &err), err);
	ck_assert_str_eq(buf_str(&from_a), "two\n");
	ck_assert_str_eq(buf_str(&from_b), "one\n");
	int status;
	ck_assert_int_eq(proc_wait(pid, 5000, &status), 1);
	ck_assert_int_eq(status, 0);
}
TEST_END

TEST(a_detached_child_is_nobodys_to_wait_for_and_leads_its_session)
{
	int ends[2];
	struct err err = ERR_INIT;
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	struct proc_spec spec = {
		.argv = (const char *const[]){"/bin/sh", "-c", "echo $(ps -o sid= $$) $$", NULL},
		.envp = no_env,
		.fds = (struct proc_fd[]){{ends[1], 1}},
		.fd_count = 1,
		.detached = true,
	};
	ck_ok(proc_spawn(&spec, &err) == 0, err);
	close(ends[1]);
	AUTO_BUF out = BUF_INIT;
	ck_ok(fs_read_all(ends[0], 100, &out, &err), err);
	int session = 0, pid = 0;
	ck_assert_int_eq(sscanf(buf_str(&out), "%d %d", &session, &pid), 2);
	ck_assert_int_eq(session, pid);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
}
TEST_END

TEST(waiting_ends_at_the_time_limit)
{
	struct err err = ERR_INIT;
	struct proc_spec spec = {.argv = (const char *const[]){"/bin/sleep", "30", NULL},
				 .envp = no_env};
	pid_t pid = proc_spawn(&spec, &err);
	ck_ok(pid > 0, err);
	int status;
	ck_assert_int_eq(proc_wait(pid, 50, &status), 0);
	AUTO_FD pidfd = proc_pidfd(pid);
	ck_assert_int_eq(proc_pidfd_signal(pidfd, SIGKILL), 0);
	ck_assert_int_eq(proc_wait(pid, 5000, &status), 1);
	ck_assert(WIFSIGNALED(status));
}
TEST_END

TEST(a_lock_is_seen_without_being_taken_and_lives_with_its_descriptor)
{
	struct err err = ERR_INIT;
	char *dir = unit_tempdir();
	AUTO_FD root = fs_open_dir(AT_FDCWD, dir, &err);
	int first = lock_open(root, "l", &err);
	AUTO_FD second = lock_open(root, "l", &err);
	ck_assert_int_eq(lock_is_held(second), 0);
	ck_ok(lock_take(first, LOCK_EXCLUSIVE, 0, &err), err);
	ck_assert_int_eq(lock_is_held(second), 1);
	ck_assert(!lock_take(second, LOCK_SHARED, 20, &err));
	ck_assert_int_eq(err.code, ERR_BUSY);
	ck_ok(lock_take(first, LOCK_SHARED, 0, &err), err);
	ck_ok(lock_take(second, LOCK_SHARED, 0, &err), err);
	ck_assert(!lock_take(second, LOCK_EXCLUSIVE, 0, &err));
	lock_release(second);

	/* A child that inherits the descriptor holds the lock after we closed ours. */
	fcntl(first, F_SETFD, 0);
	ck_ok(lock_take(first, LOCK_EXCLUSIVE, 0, &err), err);
	struct proc_spec spec = {.argv = (const char *const[]){"/bin/sleep", "30", NULL},
				 .envp = no_env,
				 .fds = (struct proc_fd[]){{first, 3}},
				 .fd_count = 1};
	pid_t pid = proc_spawn(&spec, &err);
	ck_ok(pid > 0, err);
	close(first);
	ck_assert_int_eq(lock_is_held(second), 1);
	kill(pid, SIGKILL);
	int status;
	ck_assert_int_eq(proc_wait(pid, 5000, &status), 1);
	ck_assert_int_eq(lock_is_held(second), 0);
	unit_tempdir_remove(dir);
}
TEST_END

/* A child that has a file open, with a lock or without. */
static pid_t hold_open(int root, bool with_lock)
{
	int ready[2];
	char c;
	ck_assert_int_eq(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct err err = ERR_INIT;
		int fd = lock_open(root, "l", &err);
		if ((with_lock && !lock_take(fd, LOCK_EXCLUSIVE, 0, &err)) ||
		    write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

TEST(the_holder_of_a_lock_is_found_and_not_who_only_has_the_file_open)
{
	struct err err = ERR_INIT;
	char *dir = unit_tempdir();
	pid_t found = 0;
	AUTO_FD root = fs_open_dir(AT_FDCWD, dir, &err);
	AUTO_FD mine = lock_open(root, "l", &err);
	pid_t looks = hold_open(root, false);
	ck_assert_int_eq(proc_lock_holder(mine, &found), -1);
	pid_t holds = hold_open(root, true);
	AUTO_FD pidfd = proc_lock_holder(mine, &found);
	ck_assert_int_ge(pidfd, 0);
	ck_assert_int_eq(found, holds);
	ck_assert_int_eq(proc_pidfd_signal(pidfd, SIGKILL), 0);
	ck_assert_int_eq(waitpid(holds, NULL, 0), holds);
	ck_assert_int_eq(lock_is_held(mine), 0);
	ck_assert_int_eq(proc_lock_holder(mine, &found), -1);
	kill(looks, SIGKILL);
	waitpid(looks, NULL, 0);
	unit_tempdir_remove(dir);
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		a_child_has_three_descriptors_default_signals_and_only_the_given_environment,
		a_program_that_does_not_exist_is_reported_by_the_starter,
		descriptors_are_placed_even_when_their_numbers_cross,
		a_detached_child_is_nobodys_to_wait_for_and_leads_its_session,
		waiting_ends_at_the_time_limit,
		a_lock_is_seen_without_being_taken_and_lives_with_its_descriptor,
		the_holder_of_a_lock_is_found_and_not_who_only_has_the_file_open,
	};
	return unit_run("proc", unit_tests, ARRAY_LEN(unit_tests));
}
