/*
 * fork and exec, and finding a process by a lock. The worker is single-threaded, so the child may
 * run ordinary code between the two; it still touches no lock, no database and no stdio.
 */
#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/num.h"

#define FD_MAX           16 /* descriptors a child may be given */
#define SIGNAL_SET_BYTES 8  /* of the kernel, for 64 signals */
#define FD_PARK          64 /* where they wait while the low numbers are filled */
#define WAIT_TICK_MS     2  /* pause between looks at a child on kernels without pidfd_open */

bool proc_find(const char *name, struct buf *path, struct err *err)
{
	if (fs_program_dir(path)) {
		buf_printf(path, "/%s", name);
		if (access(buf_str(path), X_OK) == 0)
			return true;
	}
	buf_clear(path);
	buf_printf(path, PKGLIBEXECDIR "/%s", name);
	if (access(buf_str(path), X_OK) == 0)
		return true;
	err_set(err, ERR_UNAVAILABLE, "the program %s is missing on this server", name);
	return err_hint(err, "Its operator should install Spoolbox again.");
}

/* By the system call itself: libc keeps two signals for its threads and refuses them, but a parent
 * may have left even those ignored. */
static void default_signals(void)
{
	/* Larger than the kernel's struct sigaction on any architecture; all zero is SIG_DFL. */
	static const char all_default[64];
	for (int sig = 1; sig < NSIG; sig++)
		syscall(SYS_rt_sigaction, sig, all_default, NULL, SIGNAL_SET_BYTES);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int close_from(unsigned first)
{
	return (int)syscall(SYS_close_range, first, ~0U, 0);
}

/* Puts the listed descriptors in place and closes all others. report_fd comes back as the number
 * it was moved to. */
static bool place_fds(const struct proc_spec *spec, int *report_fd)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd < 0)
		return false;
	int parked[FD_MAX];
	for (size_t i = 0; i < spec->fd_count; i++) {
		int from = spec->fds[i].from < 0 ? null_fd : spec->fds[i].from;
		parked[i] = fcntl(from, F_DUPFD_CLOEXEC, FD_PARK);
		if (parked[i] < 0)
			return false;
	}
	*report_fd = fcntl(*report_fd, F_DUPFD_CLOEXEC, FD_PARK);
	if (*report_fd < 0)
		return false;
	for (int fd = 0; fd <= 2; fd++) {
		if (dup2(null_fd, fd) < 0)
			return false;
	}
	for (size_t i = 0; i < spec->fd_count; i++) {
		if (dup2(parked[i], spec->fds[i].to) < 0)
			return false;
	}
	/* What is left above the given ones carries FD_CLOEXEC or is closed here. */
	int top = 2;
	for (size_t i = 0; i < spec->fd_count; i++)
		top = spec->fds[i].to > top ? spec->fds[i].to : top;
	if (dup2(*report_fd, top + 1) < 0)
		return false;
	*report_fd = top + 1;
	fcntl(*report_fd, F_SETFD, FD_CLOEXEC);
	for (int fd = 3; fd <= top; fd++) {
		bool wanted = false;
		for (size_t i = 0; i < spec->fd_count; i++)
			wanted |= spec->fds[i].to == fd;
		if (!wanted)
			close(fd);
	}
	return close_from((unsigned)top + 2) == 0;
}

static void report(int fd, int code)
{
	ssize_t n = write(fd, &code, sizeof(code));
	(void)n; /* the parent then sees the end of the pipe without exec: also an error */
	_exit(127);
}

static void child(const struct proc_spec *spec, int report_fd)
{
	setsid();
	default_signals();
	umask(022);
	if (!place_fds(spec, &report_fd) || chdir(spec->cwd == NULL ? "/" : spec->cwd) != 0)
		report(report_fd, errno);
	execve(spec->argv[0], (char *const *)spec->argv, (char *const *)spec->envp);
	report(report_fd, errno);
}

/* In the first child of a detached start: lets the grandchild go on without a parent to wait. */
static void detach(const struct proc_spec *spec, int report_fd)
{
	pid_t pid = fork();
	if (pid < 0)
		report(report_fd, errno);
	if (pid > 0)
		_exit(0);
	child(spec, report_fd);
}

static int read_report(int fd)
{
	int code = 0;
	ssize_t n;
	do {
		n = read(fd, &code, sizeof(code));
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(code) ? code : 0;
}

static void reap(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

pid_t proc_spawn(const struct proc_spec *spec, struct err *err)
{
	int ends[2];
	if (spec->fd_count > FD_MAX) {
		err_set(err, ERR_INTERNAL, "too many descriptors for a child");
		return -1;
	}
	if (pipe2(ends, O_CLOEXEC) != 0) {
		err_sys(err, "pipe");
		return -1;
	}
	AUTO_FD from = ends[0];
	AUTO_FD to = ends[1];
	/* Blocked so that no handler of ours runs in the child before it resets them. */
	sigset_t all, before;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid_t pid = fork();
	if (pid == 0) {
		if (spec->detached)
			detach(spec, to);
		else
			child(spec, to);
	}
	int fork_errno = errno;
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid < 0) {
		errno = fork_errno;
		err_sys(err, "fork");
		return -1;
	}
	util_close(&to);
	int failure = read_report(from);
	if (spec->detached || failure != 0)
		reap(pid);
	if (failure != 0) {
		errno = failure;
		err_sys(err, "start %s", spec->argv[0]);
		return -1;
	}
	return spec->detached ? 0 : pid;
}

int proc_wait(pid_t pid, int64_t timeout_ms, int *status)
{
	int64_t deadline = clock_mono_ms() + timeout_ms;
	AUTO_FD pidfd = proc_pidfd(pid);
	for (;;) {
		pid_t got = waitpid(pid, status, WNOHANG);
		if (got == pid)
			return 1;
		if (got < 0 && errno != EINTR)
			return -1;
		int64_t left = deadline - clock_mono_ms();
		if (left <= 0)
			return 0;
		if (pidfd < 0) {
			clock_sleep_ms(left < WAIT_TICK_MS ? left : WAIT_TICK_MS);
			continue;
		}
		struct pollfd poll_fd = {.fd = pidfd, .events = POLLIN};
		poll(&poll_fd, 1, left > 60000 ? 60000 : (int)left);
	}
}

void proc_raise_open_files(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* --- who holds a lock ---------------------------------------------------------------------- */

struct open_file {
	dev_t dev;
	ino_t ino;
};

/* Whether /proc/PID/fdinfo/N, with /proc/PID open, tells of a lock: others may have the file open
 * just to look. */
static bool has_lock(int proc_fd, const char *number)
{
	char path[64], text[4096];
	snprintf(path, sizeof(path), "fdinfo/%s", number);
	AUTO_FD fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return strstr(text, "\nlock:") != NULL;
}

/* Whether a process, by its open /proc/PID, has the file open and a lock through that. */
static bool holds(int proc_fd, const struct open_file *file)
{
	AUTO_DIR *dir = fs_open_listing(proc_fd, "fd");
	const struct dirent *entry;
	bool found = false;
	while (dir != NULL && !found && (entry = readdir(dir)) != NULL) {
		struct stat st;
		found = fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 && S_ISREG(st.st_mode) &&
			st.st_dev == file->dev && st.st_ino == file->ino &&
			has_lock(proc_fd, entry->d_name);
	}
	return found;
}

/* A pidfd of the process if it is one of ours that holds the lock. */
static int pin_holder(int all_fd, const char *number, pid_t pid, const struct open_file *file)
{
	struct stat st;
	AUTO_FD proc_fd = openat(all_fd, number, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (proc_fd < 0 || fstat(proc_fd, &st) != 0 || st.st_uid != geteuid() ||
	    !holds(proc_fd, file))
		return -1;
	AUTO_FD pidfd = proc_pidfd(pid);
	/* An open /proc/PID stays that of its process, and says ESRCH after its end. */
	return pidfd >= 0 && holds(proc_fd, file) ? TAKE_FD(pidfd) : -1;
}

int proc_lock_holder(int fd, pid_t *pid)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return -1;
	const struct open_file file = {st.st_dev, st.st_ino};
	AUTO_DIR *dir = fs_open_listing(AT_FDCWD, "/proc");
	const struct dirent *entry;
	int pidfd = -1;
	while (dir != NULL && pidfd < 0 && (entry = readdir(dir)) != NULL) {
		int64_t number;
		if (!num_parse_int(entry->d_name, 1, INT32_MAX, &number) ||
		    number == (int64_t)getpid())
			continue;
		*pid = (pid_t)number;
		pidfd = pin_holder(dirfd(dir), entry->d_name, *pid, &file);
	}
	return pidfd;
}

int proc_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

int proc_pidfd_signal(int pidfd, int sig)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}
