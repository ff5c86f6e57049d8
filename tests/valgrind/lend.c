/*
 * One system call for a program under valgrind: see tests/valgrind/calls.c. Standard input is the
 * socket that the answer goes to: the number of the error or 0, and the descriptor if one was made.
 */
#include <errno.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static long make_call(char **arg)
{
	if (strcmp(arg[0], "openat2") == 0) {
		struct open_how how = {.flags = strtoull(arg[2], NULL, 10),
				       .mode = strtoull(arg[3], NULL, 10),
				       .resolve = strtoull(arg[4], NULL, 10)};
		return syscall(SYS_openat2, atoi(arg[1]), arg[5], &how, sizeof(how));
	}
	if (strcmp(arg[0], "pidfd_open") == 0)
		return syscall(SYS_pidfd_open, atoi(arg[1]), atoi(arg[2]));
	if (strcmp(arg[0], "seccomp") == 0) {
		unsigned action = arg[3] == NULL ? 0 : (unsigned)strtoul(arg[3], NULL, 10);
		return syscall(SYS_seccomp, atoi(arg[1]), atoi(arg[2]),
			       arg[3] == NULL ? NULL : &action);
	}
	return syscall(SYS_pidfd_send_signal, atoi(arg[1]), atoi(arg[2]), NULL, 0);
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	long made = make_call(argv + 1);
	int error = made < 0 ? errno : 0, fd = (int)made;
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} space = {.header = {.cmsg_level = SOL_SOCKET,
			      .cmsg_type = SCM_RIGHTS,
			      .cmsg_len = CMSG_LEN(sizeof(int))}};
	struct iovec iov = {&error, sizeof(error)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	if (fd > 0) {
		memcpy(CMSG_DATA(&space.header), &fd, sizeof(fd));
		msg.msg_control = space.bytes;
		msg.msg_controllen = sizeof(space.bytes);
	}
	return sendmsg(STDIN_FILENO, &msg, MSG_NOSIGNAL) == sizeof(error) ? 0 : 1;
}
