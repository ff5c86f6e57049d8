/*
 * The system call filters, loaded into a child of the test itself and asked call by call. A call
 * that passes fails later for a reason of its own, which must not be the filter's.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "run/filter.h"

static void load(int fd)
{
	static struct sock_filter code[4096];
	ssize_t len = read(fd, code, sizeof(code));
	if (len <= 0 || (size_t)len >= sizeof(code))
		_exit(100);
	struct sock_fprog program = {.len = (unsigned short)((size_t)len / sizeof(code[0])),
				     .filter = code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		_exit(101);
}

/* The errno of one system call under both filters, 0 when it succeeds; 1000 + N when signal N
 * ended it. */
static int ask(bool inet, long number, long a, long b, long c, long d)
{
	struct err err = ERR_INIT;
	int allow = filter_open(FILTER_ALLOW, inet, &err);
	ck_ok(allow >= 0, err);
	int refuse = filter_open(FILTER_REFUSE, inet, &err);
	ck_ok(refuse >= 0, err);
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		load(refuse);
		load(allow);
		errno = 0;
		long rc = syscall(number, a, b, c, d, 0, 0);
		_exit(rc < 0 ? errno : 0);
	}
	close(allow);
	close(refuse);
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

#define HIGH (1L << 32)

TEST(calls_that_are_not_listed_do_not_exist)
{
	static const long numbers[] = {
		SYS_keyctl,
		SYS_add_key,
		SYS_request_key,
		SYS_bpf,
		SYS_userfaultfd,
		SYS_perf_event_open,
		SYS_io_uring_setup,
		SYS_ptrace,
		SYS_kcmp,
		SYS_process_vm_readv,
		SYS_pidfd_getfd,
		SYS_mount,
		SYS_umount2,
		SYS_pivot_root,
		SYS_chroot,
		SYS_fsopen,
		SYS_open_tree,
		SYS_move_mount,
		SYS_mount_setattr,
		SYS_unshare,
		SYS_setns,
		SYS_clone3,
		SYS_openat2,
		SYS_name_to_handle_at,
		SYS_init_module,
		SYS_kexec_load,
		SYS_reboot,
		SYS_swapon,
		SYS_syslog,
		SYS_sethostname,
		SYS_settimeofday,
		SYS_clock_settime,
		SYS_fanotify_init,
		SYS_mbind,
		SYS_open_by_handle_at,
		SYS_quotactl,
		452 /* fchmodat2 */,
		467 /* open_tree_attr */,
		500,
		900,
	};
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		ck_assert_msg(ask(true, numbers[i], 0, 0, 0, 0) == ENOSYS, "system call %ld",
			      numbers[i]);
}
TEST_END

TEST(ordinary_calls_pass)
{
	ck_assert_int_eq(ask(true, SYS_getppid, 0, 0, 0, 0), 0);
	ck_assert_int_eq(ask(true, SYS_close, 999, 0, 0, 0), EBADF);
	ck_assert_int_eq(ask(true, SYS_openat, -1, (long)"x", O_RDONLY, 0), EBADF);
	ck_assert_int_eq(ask(true, SYS_execve, (long)"/nonexistent", 0, 0, 0), ENOENT);
	ck_assert_int_eq(ask(true, SYS_wait4, -1, 0, 0, 0), ECHILD);
	ck_assert_int_eq(ask(true, SYS_memfd_create, (long)"x", 0, 0, 0), 0);
}
TEST_END

TEST(clone_makes_processes_but_no_namespaces)
{
	static const long flags[] = {CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
				     CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET, 0x80};
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		ck_assert_int_eq(ask(true, SYS_clone, flags[i] | SIGCHLD, 0, 0, 0), EPERM);
		ck_assert_int_eq(ask(true, SYS_clone, flags[i] | CLONE_VM | HIGH, 0, 0, 0), EPERM);
	}
	ck_assert_int_eq(ask(true, SYS_clone, SIGCHLD, 0, 0, 0), 0);
	/* The kernel's own refusal, not ours. */
	ck_assert_int_eq(ask(true, SYS_clone, CLONE_THREAD, 0, 0, 0), EINVAL);
}
TEST_END

TEST(typing_into_a_terminal_is_refused_whatever_the_upper_half_says)
{
	ck_assert_int_eq(ask(true, SYS_ioctl, 999, TIOCSTI, 0, 0), EPERM);
	ck_assert_int_eq(ask(true, SYS_ioctl, 999, TIOCSTI | HIGH, 0, 0), EPERM);
	ck_assert_int_eq(ask(true, SYS_ioctl, 999, TIOCLINUX, 0, 0), EPERM);
	ck_assert_int_eq(ask(true, SYS_ioctl, 999, TIOCLINUX | (HIGH << 20), 0, 0), EPERM);
	ck_assert_int_eq(ask(true, SYS_ioctl, 999, TCGETS, 0, 0), EBADF);
}
TEST_END

TEST(sockets_are_of_few_families)
{
	static const int refused[] = {
		3, AF_NETLINK + 1, 31 /* bluetooth */, 38 /* alg */, 40 /* vsock */, 44 /* xdp */};
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		ck_assert_int_eq(ask(true, SYS_socket, refused[i], SOCK_STREAM, 0, 0),
				 EAFNOSUPPORT);
		ck_assert_int_eq(ask(true, SYS_socket, refused[i] | HIGH, SOCK_STREAM, 0, 0),
				 EAFNOSUPPORT);
	}
	ck_assert_int_eq(ask(true, SYS_socket, AF_UNIX, SOCK_STREAM, 0, 0), 0);
	ck_assert_int_eq(ask(true, SYS_socket, AF_INET, SOCK_STREAM, 0, 0), 0);
	ck_assert_int_ne(ask(true, SYS_socket, AF_INET6, 99, 0, 0), EAFNOSUPPORT);
	ck_assert_int_eq(ask(true, SYS_socket, AF_NETLINK, SOCK_RAW, 0, 0), 0);
	ck_assert_int_eq(ask(true, SYS_socket, AF_NETLINK, SOCK_RAW, 12, 0), EPROTONOSUPPORT);
	ck_assert_int_eq(ask(true, SYS_socketpair, AF_INET, SOCK_STREAM, 0, 0), EAFNOSUPPORT);
}
TEST_END

TEST(without_inet_only_local_sockets_remain)
{
	ck_assert_int_eq(ask(false, SYS_socket, AF_INET, SOCK_STREAM, 0, 0), EAFNOSUPPORT);
	ck_assert_int_eq(ask(false, SYS_socket, AF_INET6, SOCK_DGRAM, 0, 0), EAFNOSUPPORT);
	ck_assert_int_eq(ask(false, SYS_socket, AF_INET | HIGH, SOCK_STREAM, 0, 0), EAFNOSUPPORT);
	ck_assert_int_eq(ask(false, SYS_socket, AF_UNIX, SOCK_STREAM, 0, 0), 0);
	ck_assert_int_eq(ask(false, SYS_socket, AF_NETLINK, SOCK_RAW, 0, 0), 0);
}
TEST_END

TEST(files_do_not_become_set_uid)
{
	static const long modes[] = {04755, 02755, 06000};
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		long mode = modes[i];
		ck_assert_int_eq(ask(true, SYS_fchmod, 999, mode, 0, 0), EPERM);
		ck_assert_int_eq(ask(true, SYS_fchmodat, -1, (long)"x", mode, 0), EPERM);
		ck_assert_int_eq(ask(true, SYS_mknodat, -1, (long)"x", S_IFREG | mode, 0), EPERM);
		ck_assert_int_eq(ask(true, SYS_openat, -1, (long)"x", O_CREAT, mode), EPERM);
		ck_assert_int_eq(ask(true, SYS_openat, -1, (long)".", O_TMPFILE | O_RDWR, mode),
				 EPERM);
		/* Without O_CREAT the argument means nothing. */
		ck_assert_int_eq(ask(true, SYS_openat, -1, (long)"x", O_RDONLY, mode), EBADF);
		ck_assert_int_eq(ask(true, SYS_openat, -1, (long)".", O_DIRECTORY, mode), EBADF);
#ifdef SYS_chmod
		ck_assert_int_eq(ask(true, SYS_chmod, (long)"/nonexistent", mode, 0, 0), EPERM);
		ck_assert_int_eq(ask(true, SYS_open, (long)"/nonexistent/x", O_CREAT, mode, 0),
				 EPERM);
		ck_assert_int_eq(ask(true, SYS_creat, (long)"/nonexistent/x", mode, 0, 0), EPERM);
#endif
	}
	ck_assert_int_eq(ask(true, SYS_fchmod, 999, 01777, 0, 0), EBADF);
	ck_assert_int_eq(ask(true, SYS_openat, -1, (long)"x", O_CREAT, 0644), EBADF);
}
TEST_END

TEST(address_randomisation_cannot_be_switched_off)
{
	ck_assert_int_eq(ask(true, SYS_personality, 0x40000, 0, 0, 0), ENOSYS);
	ck_assert_int_eq(ask(true, SYS_personality, 0xffffffff, 0, 0, 0), 0);
	ck_assert_int_eq(ask(true, SYS_personality, 0, 0, 0, 0), 0);
}
TEST_END

#ifdef __x86_64__
TEST(calls_of_another_architecture_kill)
{
	ck_assert_int_eq(ask(true, SYS_getppid | 0x40000000, 0, 0, 0, 0), 1000 + SIGSYS);
}
TEST_END
#endif

TEST(each_opening_starts_at_the_beginning)
{
	struct err err = ERR_INIT;
	int one = filter_open(FILTER_ALLOW, true, &err),
	    two = filter_open(FILTER_ALLOW, true, &err);
	char a[64], b[64];
	ck_assert_int_eq(read(one, a, sizeof(a)), sizeof(a));
	ck_assert_int_eq(read(two, b, sizeof(b)), sizeof(b));
	ck_assert_mem_eq(a, b, sizeof(a));
	ck_assert_int_ne(fcntl(one, F_GETFD) & FD_CLOEXEC, 0);
	close(one);
	close(two);
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		calls_that_are_not_listed_do_not_exist,
		ordinary_calls_pass,
		clone_makes_processes_but_no_namespaces,
		typing_into_a_terminal_is_refused_whatever_the_upper_half_says,
		sockets_are_of_few_families,
		without_inet_only_local_sockets_remain,
		files_do_not_become_set_uid,
		address_randomisation_cannot_be_switched_off,
#ifdef __x86_64__
		calls_of_another_architecture_kill,
#endif
		each_opening_starts_at_the_beginning,
	};
	return unit_run("filter", tests, ARRAY_LEN(tests));
}
