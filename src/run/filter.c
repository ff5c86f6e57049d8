/*
 * Two filters rather than one with argument rules for each allowed call: a rule "all but these
 * values" cannot be said in an allow list without listing all other values, but is one line in
 * a list of refusals. And the kernel answers calls without argument rules from a bitmap, without
 * running a filter at all.
 *
 * Left out of the allow list on purpose: keyrings (they belong to the host's uid), bpf,
 * userfaultfd, io_uring, perf_event_open (kernel surface), ptrace, process_vm_*, pidfd_getfd, kcmp,
 * process_madvise (other processes), all of namespaces and mounts, file handles, openat2 and
 * fchmodat2 (a set-uid mode cannot be seen behind a pointer), modules, kexec, swap, quota,
 * accounting, clock setting, host names, syslog, NUMA placement. clone3 is missing as well, so that
 * libraries use clone, whose flags can be looked at.
 */
#include "run/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"

/* One name may stand here for several architectures: those without it skip it. */
static const char *const allowed[] = {
	/* clang-format off */
	/* files by name */
	"access", "chdir", "chmod", "chown", "creat", "faccessat", "faccessat2", "fchdir",
	"fchmod", "fchmodat", "fchown", "fchownat", "futimesat", "getcwd", "lchown", "link",
	"linkat", "mkdir", "mkdirat", "mknod", "mknodat", "open", "openat", "readlink",
	"readlinkat", "rename", "renameat", "renameat2", "rmdir", "symlink", "symlinkat",
	"truncate", "umask", "unlink", "unlinkat", "utime", "utimensat", "utimes",
	/* what is known of them */
	"fgetxattr", "flistxattr", "fremovexattr", "fsetxattr", "fstat", "fstatfs",
	"getdents", "getdents64", "getxattr", "lgetxattr", "listxattr", "llistxattr",
	"lremovexattr", "lsetxattr", "lstat", "newfstatat", "removexattr", "setxattr",
	"stat", "statfs", "statx",
	/* open files */
	"close", "close_range", "copy_file_range", "dup", "dup2", "dup3", "fadvise64",
	"fallocate", "fcntl", "fdatasync", "flock", "fsync", "ftruncate", "ioctl", "lseek",
	"pipe", "pipe2", "pread64", "preadv", "preadv2", "pwrite64", "pwritev", "pwritev2",
	"read", "readahead", "readv", "sendfile", "splice", "sync", "sync_file_range",
	"syncfs", "tee", "vmsplice", "write", "writev", "cachestat",
	/* waiting for them */
	"epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2",
	"epoll_wait", "eventfd", "eventfd2", "inotify_add_watch", "inotify_init",
	"inotify_init1", "inotify_rm_watch", "poll", "ppoll", "pselect6", "select",
	"signalfd", "signalfd4",
	/* memory */
	"brk", "get_mempolicy", "madvise", "map_shadow_stack", "membarrier", "memfd_create",
	"mincore", "mlock", "mlock2", "mlockall", "mmap", "mprotect", "mremap", "mseal",
	"msync", "munlock", "munlockall", "munmap", "pkey_alloc", "pkey_free",
	"pkey_mprotect", "remap_file_pages",
	/* processes */
	"arch_prctl", "capget", "capset", "clone", "execve", "execveat", "exit",
	"exit_group", "fork", "getegid", "geteuid", "getgid", "getgroups", "getpgid",
	"getpgrp", "getpid", "getppid", "getpriority", "getresgid", "getresuid",
	"getrlimit", "getrusage", "getsid", "gettid", "getuid", "ioprio_get", "ioprio_set",
	"kill", "pidfd_open", "pidfd_send_signal", "prctl", "process_mrelease",
	"seccomp", "set_tid_address", "setfsgid", "setfsuid", "setgid", "setgroups",
	"setpgid", "setpriority", "setregid", "setresgid", "setresuid", "setreuid",
	"setrlimit", "setsid", "setuid", "tgkill", "tkill", "vfork", "wait4", "waitid",
	"landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self",
	/* threads and their scheduling */
	"futex", "futex_requeue", "futex_wait", "futex_waitv", "futex_wake",
	"get_robust_list", "getcpu", "rseq", "sched_get_priority_max",
	"sched_get_priority_min", "sched_getaffinity", "sched_getattr", "sched_getparam",
	"sched_getscheduler", "sched_rr_get_interval", "sched_setaffinity", "sched_setattr",
	"sched_setparam", "sched_setscheduler", "sched_yield", "set_robust_list",
	/* signals */
	"pause", "restart_syscall", "rt_sigaction", "rt_sigpending", "rt_sigprocmask",
	"rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait",
	"rt_tgsigqueueinfo", "sigaltstack",
	/* time */
	"alarm", "clock_getres", "clock_gettime", "clock_nanosleep", "getitimer",
	"gettimeofday", "nanosleep", "setitimer", "time", "timer_create", "timer_delete",
	"timer_getoverrun", "timer_gettime", "timer_settime", "timerfd_create",
	"timerfd_gettime", "timerfd_settime", "times",
	/* sockets */
	"accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt",
	"listen", "recvfrom", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto",
	"setsockopt", "shutdown", "socket", "socketpair",
	/* System V and POSIX queues, in a namespace of their own */
	"mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend",
	"mq_unlink", "msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop",
	"semtimedop", "shmat", "shmctl", "shmdt", "shmget",
	/* the rest */
	"getrandom", "sysinfo", "uname",
	/* clang-format on */
};

/* Allowed with these values of the first argument only. */
static const struct {
	const char *name;
	uint64_t value;
} allowed_values[] = {
	/* Not ADDR_NO_RANDOMIZE. */
	{"personality", PER_LINUX},
	{"personality", PER_LINUX32},
	{"personality", UNAME26},
	{"personality", PER_LINUX32 | UNAME26},
	{"personality", 0xffffffff}, /* asks */
	/* Its own limits; those of PID 1, which has the same uid, would take the sandbox down. */
	{"prlimit64", 0},
};

#define SET_ID      (S_ISUID | S_ISGID)
#define LOW_32_BITS 0xffffffffULL
#define NEWTIME     0x00000080 /* CLONE_NEWTIME, in none of clone's signals */
#define TMPFILE     (O_TMPFILE & ~O_DIRECTORY)

/* arg is refused when (arg & mask) == value; when second_mask is not 0, only if also
 * (second & second_mask) == second_mask. Values are compared as the kernel sees them: it drops the
 * upper half of an int, so a compare of 64 bits is passed by setting bits up there. */
struct refusal {
	const char *name;
	unsigned arg;
	uint64_t mask, value;
	int error;
	unsigned second;
	uint64_t second_mask;
};

#define REFUSE_FLAG(name, arg, flag) \
	{ \
		name, arg, flag, flag, EPERM, 0, 0 \
	}
#define REFUSE_SET_ID(name, arg) REFUSE_FLAG(name, arg, S_ISUID), REFUSE_FLAG(name, arg, S_ISGID)
#define REFUSE_SET_ID_IF(name, arg, flags, flag) \
	{name, arg, S_ISUID, S_ISUID, EPERM, flags, flag}, \
	{ \
		name, arg, S_ISGID, S_ISGID, EPERM, flags, flag \
	}

static const struct refusal refused[] = {
	REFUSE_FLAG("clone", 0, CLONE_NEWNS),
	REFUSE_FLAG("clone", 0, CLONE_NEWCGROUP),
	REFUSE_FLAG("clone", 0, CLONE_NEWUTS),
	REFUSE_FLAG("clone", 0, CLONE_NEWIPC),
	REFUSE_FLAG("clone", 0, CLONE_NEWUSER),
	REFUSE_FLAG("clone", 0, CLONE_NEWPID),
	REFUSE_FLAG("clone", 0, CLONE_NEWNET),
	REFUSE_FLAG("clone", 0, NEWTIME),
	/* Typing into a terminal that somebody else reads: CVE-2017-5226, CVE-2019-10063. */
	{"ioctl", 1, LOW_32_BITS, TIOCSTI, EPERM, 0, 0},
	{"ioctl", 1, LOW_32_BITS, TIOCLINUX, EPERM, 0, 0},
	/* A set-uid file would carry the service user's uid on the host. */
	REFUSE_SET_ID("chmod", 1),
	REFUSE_SET_ID("fchmod", 1),
	REFUSE_SET_ID("fchmodat", 2),
	REFUSE_SET_ID("creat", 1),
	REFUSE_SET_ID("mknod", 1),
	REFUSE_SET_ID("mknodat", 2),
	/* The mode means something only with these flags, and may be anything else without. */
	REFUSE_SET_ID_IF("open", 2, 1, O_CREAT),
	REFUSE_SET_ID_IF("open", 2, 1, TMPFILE),
	REFUSE_SET_ID_IF("openat", 3, 2, O_CREAT),
	REFUSE_SET_ID_IF("openat", 3, 2, TMPFILE),
};

/* Route netlink is what getaddrinfo and ip use; its other protocols reach into the kernel. */
#define FAMILY_MAX AF_NETLINK

static bool family_allowed(int family, bool inet)
{
	return family == AF_UNIX || family == AF_NETLINK ||
	       (inet && (family == AF_INET || family == AF_INET6));
}

/* False only for a fault of ours: a call that is not there needs no rule. */
static bool add_rule(scmp_filter_ctx filter, uint32_t action, const char *name, unsigned count,
		     const struct scmp_arg_cmp *args, struct err *err)
{
	int number = seccomp_syscall_resolve_name(name);
	if (number < 0)
		return true;
	int rc = seccomp_rule_add_array(filter, action, number, count, args);
	if (rc == 0)
		return true;
	errno = -rc;
	return err_sys(err, "seccomp rule for %s", name);
}

static bool add_allowed(scmp_filter_ctx filter, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
		if (!add_rule(filter, SCMP_ACT_ALLOW, allowed[i], 0, NULL, err))
			return false;
	for (size_t i = 0; i < ARRAY_LEN(allowed_values); i++) {
		struct scmp_arg_cmp arg = SCMP_A0(SCMP_CMP_EQ, allowed_values[i].value);
		if (!add_rule(filter, SCMP_ACT_ALLOW, allowed_values[i].name, 1, &arg, err))
			return false;
	}
	return true;
}

static bool add_refusal(scmp_filter_ctx filter, const struct refusal *refusal, struct err *err)
{
	struct scmp_arg_cmp args[] = {
		SCMP_CMP(refusal->arg, SCMP_CMP_MASKED_EQ, refusal->mask, refusal->value),
		SCMP_CMP(refusal->second, SCMP_CMP_MASKED_EQ, refusal->second_mask,
			 refusal->second_mask),
	};
	return add_rule(filter, SCMP_ACT_ERRNO((uint32_t)refusal->error), refusal->name,
			refusal->second_mask ? 2 : 1, args, err);
}

static bool add_socket_refusals(scmp_filter_ctx filter, bool inet, struct err *err)
{
	const uint32_t refuse = SCMP_ACT_ERRNO(EAFNOSUPPORT);
	struct scmp_arg_cmp above = SCMP_A0(SCMP_CMP_GT, FAMILY_MAX);
	struct scmp_arg_cmp pair = SCMP_A0(SCMP_CMP_NE, AF_UNIX);
	struct scmp_arg_cmp netlink[] = {SCMP_A0(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2(SCMP_CMP_NE, 0)};
	if (!add_rule(filter, refuse, "socket", 1, &above, err) ||
	    !add_rule(filter, refuse, "socketpair", 1, &pair, err) ||
	    !add_rule(filter, SCMP_ACT_ERRNO(EPROTONOSUPPORT), "socket", 2, netlink, err))
		return false;
	for (int family = 0; family <= FAMILY_MAX; family++) {
		struct scmp_arg_cmp arg = SCMP_A0(SCMP_CMP_EQ, (uint64_t)family);
		if (!family_allowed(family, inet) &&
		    !add_rule(filter, refuse, "socket", 1, &arg, err))
			return false;
	}
	return true;
}

static bool add_refused(scmp_filter_ctx filter, bool inet, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(refused); i++)
		if (!add_refusal(filter, &refused[i], err))
			return false;
	return add_socket_refusals(filter, inet, err);
}

static void release_filter(scmp_filter_ctx *filter)
{
	if (*filter)
		seccomp_release(*filter);
}

int filter_build(enum filter_kind kind, bool inet, struct err *err)
{
	__attribute__((cleanup(release_filter))) scmp_filter_ctx filter =
		seccomp_init(kind == FILTER_ALLOW ? SCMP_ACT_ERRNO(ENOSYS) : SCMP_ACT_ALLOW);
	if (!filter) {
		err_set(err, ERR_INTERNAL, "no system call filter could be made");
		return -1;
	}
	/* A binary tree; without it the newest calls would wait for all others. */
	int rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (rc == 0)
		rc = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (rc == 0 &&
	    !(kind == FILTER_ALLOW ? add_allowed(filter, err) : add_refused(filter, inet, err)))
		return -1;
	AUTO_FD fd = memfd_create("filter", MFD_CLOEXEC);
	if (rc == 0 && fd >= 0)
		rc = seccomp_export_bpf(filter, fd);
	if (rc != 0 || fd < 0 || lseek(fd, 0, SEEK_SET) < 0) {
		if (rc != 0)
			errno = -rc;
		err_sys(err, "system call filter");
		return -1;
	}
	return TAKE_FD(fd);
}

int filter_open(enum filter_kind kind, bool inet, struct err *err)
{
	static int built[2][2] = {{-1, -1}, {-1, -1}}; /* 3 ms to build, for the process's life */
	int *slot = &built[kind][inet];
	if (*slot < 0)
		*slot = filter_build(kind, inet, err);
	if (*slot < 0)
		return -1;
	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", *slot);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		err_sys(err, "open system call filter");
	return fd;
}
