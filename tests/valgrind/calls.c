/*
 * Preloaded into a program under valgrind: lends it the system calls that valgrind (3.19 of
 * Debian 12) does not know and answers with ENOSYS. Each of them is made by tests/valgrind/lend.c
 * in a process of its own, which valgrind does not follow, and its result handed back. The call is
 * the kernel's own, with all its flags, so that what stands on openat2 is tested and not imitated.
 *
 * lend lies beside this library.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUMBER_LEN 24

/* The real one. */
static long (*next)(long number, ...);
static char lend[4096];

__attribute__((constructor)) static void find_lend(void)
{
	Dl_info self;
	next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	if (dladdr((void *)find_lend, &self) == 0)
		_exit(127);
	const char *slash = strrchr(self.dli_fname, '/');
	int dir_len = slash == NULL ? 0 : (int)(slash + 1 - self.dli_fname);
	snprintf(lend, sizeof(lend), "%.*slend", dir_len, self.dli_fname);
}

/* Takes what lend answers: 0 or the number of an error, and a descriptor when the call made one. */
static long take_answer(int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} space = {.bytes = {0}};
	int error = EIO;
	struct iovec iov = {&error, sizeof(error)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = space.bytes,
			     .msg_controllen = sizeof(space.bytes)};
	ssize_t n;
	do {
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	const struct cmsghdr *control = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	int made = 0;
	if (control != NULL)
		memcpy(&made, CMSG_DATA(control), sizeof(made));
	if (error != 0)
		errno = error;
	return error == 0 ? made : -1;
}

/* The child has no signal for its end: a program that waits for its own children does not see it.
 * kept is the descriptor that the call works on. */
static long borrow(char *const argv[], int kept)
{
	int pair[2], before = errno;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return -1;
	long pid = next(SYS_clone, 0L, 0L, 0L, 0L, 0L);
	if (pid == 0) {
		if (kept >= 0)
			fcntl(kept, F_SETFD, 0);
		dup2(pair[1], STDIN_FILENO);          /* without the flag that closes it */
		execve(lend, argv, (char *[]){NULL}); /* this library is not preloaded into it */
		_exit(127);
	}
	close(pair[1]);
	long result = pid < 0 ? -1 : take_answer(pair[0]);
	int error = result < 0 ? errno : before; /* success leaves it alone */
	close(pair[0]);
	while (pid > 0 && waitpid((pid_t)pid, NULL, __WCLONE) < 0 && errno == EINTR)
		;
	errno = error;
	return result;
}

static char *number(char out[static NUMBER_LEN], unsigned long long value)
{
	snprintf(out, NUMBER_LEN, "%lld", (long long)value);
	return out;
}

static long borrow_openat2(int fd, char *path, const struct open_how *how)
{
	char at[NUMBER_LEN], flags[NUMBER_LEN], mode[NUMBER_LEN], resolve[NUMBER_LEN];
	char *const argv[] = {lend,
			      "openat2",
			      number(at, (unsigned long long)fd),
			      number(flags, how->flags),
			      number(mode, how->mode),
			      number(resolve, how->resolve),
			      path,
			      NULL};
	return borrow(argv, fd);
}

/* libseccomp asks whether the kernel knows an action, and, with no pointer, a flag. */
static long borrow_seccomp(long operation, long flags, const unsigned *action)
{
	char what[NUMBER_LEN], how[NUMBER_LEN], about[NUMBER_LEN];
	if (operation != SECCOMP_GET_ACTION_AVAIL && action != NULL) {
		errno = ENOSYS;
		return -1;
	}
	char *const argv[] = {lend,
			      "seccomp",
			      number(what, (unsigned long long)operation),
			      number(how, (unsigned long long)flags),
			      action == NULL ? NULL : number(about, *action),
			      NULL};
	return borrow(argv, -1);
}

static long borrow_two(char *what, long first, long second, int kept)
{
	char one[NUMBER_LEN], two[NUMBER_LEN];
	char *const argv[] = {lend, what, number(one, (unsigned long long)first),
			      number(two, (unsigned long long)second), NULL};
	return borrow(argv, kept);
}

long syscall(long what, ...)
{
	long arg[6];
	va_list args;
	va_start(args, what);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	switch (what) {
	case SYS_openat2:
		return borrow_openat2((int)arg[0], (char *)arg[1], (const struct open_how *)arg[2]);
	case SYS_pidfd_open:
		return borrow_two("pidfd_open", arg[0], arg[1], -1);
	case SYS_pidfd_send_signal:
		return borrow_two("pidfd_send_signal", arg[0], arg[1], (int)arg[0]);
	case SYS_seccomp:
		return borrow_seccomp(arg[0], arg[1], (const unsigned *)arg[2]);
	default:
		return next(what, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
	}
}
