/*
 * Becoming PID 1: close what is not ours, hide from the processes to come, then listen and say
 * so. Until the byte on the ready pipe a fault may end the program; from then on nothing may.
 */
#include "init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BACKLOG 128

int64_t init_now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void init_send(int conn_fd, const struct wire_reply *reply)
{
	unsigned char bytes[WIRE_REPLY_SIZE];
	wire_put_reply(reply, bytes);
	/* A few replies of this size always fit into a socket's buffer. */
	while (send(conn_fd, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
	       errno == EINTR)
		;
}

void init_drain(int signal_fd)
{
	struct signalfd_siginfo info[8];
	while (read(signal_fd, info, sizeof(info)) > 0)
		;
}

void init_close_from(int first)
{
	if (syscall(SYS_close_range, (unsigned)first, ~0u, 0u) == 0)
		return;
	struct rlimit limit; /* a kernel before 5.9 */
	int end = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 65536
			  ? (int)limit.rlim_cur
			  : 65536;
	for (int fd = first; fd < end; fd++)
		close(fd);
}

static void adopt_descriptors(void)
{
	init_close_from(WIRE_FD_READY + 1);
	for (int fd = WIRE_FD_LISTEN; fd <= WIRE_FD_READY; fd++)
		if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
			_exit(3);
	/* 0, 1 and 2 may lead to the host's files; from here on they lead nowhere. */
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3; fd++)
		if (null_fd < 0 || (null_fd != fd && dup2(null_fd, fd) < 0))
			_exit(3);
	if (null_fd > 2)
		close(null_fd);
}

/* All signals wait; SIGCHLD is read from a descriptor. Dispositions are the defaults, so that
 * commands inherit those. */
static int adopt_signals(void)
{
	sigset_t all, child;
	sigfillset(&all);
	/* libc keeps some signals to itself and would refuse those; all zero is SIG_DFL. */
	static const char all_default[64];
	for (int sig = 1; sig <= 64; sig++)
		syscall(SYS_rt_sigaction, sig, all_default, NULL, 8);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	return signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
}

int main(void)
{
	/* kill(-1) would mean something else anywhere else. */
	if (getpid() != 1)
		return 2;
	/* /proc/1/fd, root, mem and environ are closed to commands, which have the same uid. */
	prctl(PR_SET_DUMPABLE, 0);
	adopt_descriptors();
	int signal_fd = adopt_signals();
	if (signal_fd < 0 || fcntl(WIRE_FD_LISTEN, F_SETFL, O_NONBLOCK) < 0 ||
	    listen(WIRE_FD_LISTEN, BACKLOG) < 0)
		return 3;
	if (write(WIRE_FD_READY, "1", 1) < 0) {
		/* Whoever started this is gone; the next one finds the socket. */
	}
	close(WIRE_FD_READY);
	serve_forever(WIRE_FD_LISTEN, signal_fd);
}
