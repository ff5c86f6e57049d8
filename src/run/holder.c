/*
 * The life of a local PID 1. Its lock says whether it lives, its socket leads to it. PID 1 itself
 * calls listen, so SO_PEERCRED on a connection names it, and a socket that takes connections
 * proves that the number still belongs to it: the kernel closes the socket of a dead process
 * before it gives the number away.
 */
#include "run/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/proc.h"
#include "run/exchange.h"
#include "run/sock.h"

#define ALIVE_NAME  "alive"
#define SOCKET_NAME "init.sock"

#define READY_MS   15000 /* bwrap takes 15 ms; this is for a machine that swaps */
#define CONNECT_MS 5000  /* somebody else's start, or a queue that is full */
#define STOP_MS    5000
#define FREE_MS    1000
#define RETRY_MS   5

void holder_start_finish(struct holder_start *start)
{
	util_close(&start->listen_fd);
	util_close(&start->alive_fd);
	util_close(&start->ready_fd);
	util_close(&start->wait_fd);
	*start = (struct holder_start)HOLDER_START_INIT;
}

/* A descriptor for the alive lock; -1 with errno, ENOENT when the sandbox never ran. */
static int open_alive(int run_dir_fd)
{
	return openat(run_dir_fd, ALIVE_NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
}

int holder_alive(const struct runtime_box *box, struct err *err)
{
	AUTO_FD fd = open_alive(box->run_dir_fd);
	if (fd < 0 && errno == ENOENT)
		return 0;
	int held = fd < 0 ? -1 : lock_is_held(fd);
	if (held < 0)
		err_sys(err, "look at the alive lock");
	return held;
}

/* 1: connected; 0: it is down; -1 with err, ERR_BUSY when it is up but does not answer. A lock that
 * is held while nobody listens belongs to a start under way, perhaps one whose starter was killed.
 */
static int connect_to(const struct runtime_box *box, int *fd, struct err *err)
{
	int64_t until_ms = clock_mono_ms() + CONNECT_MS;
	for (;;) {
		*fd = sock_connect(box->run_dir_fd, SOCKET_NAME, SOCK_STREAM);
		if (*fd >= 0)
			return 1;
		int code = errno;
		if (code != EAGAIN && code != EINTR) {
			int alive = holder_alive(box, err);
			if (alive <= 0)
				return alive;
			if (code != ENOENT && code != ECONNREFUSED) {
				errno = code;
				err_sys(err, "connect to init.sock");
				return -1;
			}
		}
		if (clock_mono_ms() >= until_ms) {
			err_set(err, ERR_BUSY, "the sandbox is up but does not answer");
			err_hint(err, "Try again in a few seconds; if it stays so, destroy the "
				      "sandbox and create it anew.");
			return -1;
		}
		clock_sleep_ms(RETRY_MS);
	}
}

static bool make_ready_pipe(struct holder_start *start, struct err *err)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(err, "pipe");
	start->wait_fd = ends[0];
	start->ready_fd = ends[1];
	return true;
}

int holder_prepare(const struct runtime_box *box, struct holder_start *start, struct err *err)
{
	int64_t until_ms = clock_mono_ms() + CONNECT_MS;
	start->alive_fd = lock_open(box->run_dir_fd, ALIVE_NAME, err);
	if (start->alive_fd < 0)
		return -1;
	for (;;) {
		struct err busy = ERR_INIT;
		if (lock_take(start->alive_fd, LOCK_EXCLUSIVE, 0, &busy))
			break;
		if (busy.code != ERR_BUSY) {
			*err = busy;
			return -1;
		}
		AUTO_FD fd = -1;
		int up = connect_to(box, &fd, err);
		if (up != 0)
			return up < 0 ? -1 : 0;
		/* It went down in between. */
		if (clock_mono_ms() >= until_ms) {
			err_set(err, ERR_BUSY, "the sandbox goes up and down all the time");
			return -1;
		}
	}
	start->listen_fd = sock_bind(box->run_dir_fd, SOCKET_NAME, SOCK_STREAM, 0, err);
	return start->listen_fd >= 0 && make_ready_pipe(start, err) ? 1 : -1;
}

/* The last holder of a start that failed has closed the pipe; the lock follows in an instant. */
static void await_free(const struct runtime_box *box)
{
	struct err ignored = ERR_INIT;
	for (int i = 0; i < FREE_MS && holder_alive(box, &ignored) == 1; i++)
		clock_sleep_ms(1);
}

bool holder_await(const struct runtime_box *box, struct holder_start *start, struct err *err)
{
	util_close(&start->listen_fd);
	util_close(&start->alive_fd);
	util_close(&start->ready_fd);
	int64_t until_ms = clock_mono_ms() + READY_MS;
	for (;;) {
		int64_t left = until_ms - clock_mono_ms();
		struct pollfd ready = {.fd = start->wait_fd, .events = POLLIN};
		int n = poll(&ready, 1, left > 0 ? (int)left : 0);
		char byte;
		if (n > 0 && read(start->wait_fd, &byte, 1) == 1)
			return true;
		if (n > 0) {
			await_free(box);
			return err_set(err, ERR_UNAVAILABLE, "the sandbox could not be started");
		}
		if (n == 0 && left <= 0)
			return err_set(err, ERR_BUSY, "the sandbox was not ready within %d seconds",
				       READY_MS / 1000);
	}
}

/* Connects and reads who listens. As connect_to. */
static int find_pid(const struct runtime_box *box, pid_t *pid, struct err *err)
{
	AUTO_FD fd = -1;
	int up = connect_to(box, &fd, err);
	if (up <= 0)
		return up;
	struct ucred peer;
	socklen_t len = sizeof(peer);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0) {
		err_sys(err, "SO_PEERCRED");
		return -1;
	}
	*pid = peer.pid;
	if (*pid <= 0) {
		err_set(err, ERR_UNAVAILABLE,
			"the sandbox runs in a pid namespace that this program cannot see");
		return -1;
	}
	return 1;
}

/* Kills PID 1 if it is up. 1: done, *pidfd is its own; 0: look again; -1 with err. The second look
 * comes after the pidfd was opened: who listens now was alive then, so the pidfd is its own. (That
 * the first connection is still up would not do: PID 1 hangs up at once when it cannot fork.) */
static int kill_once(const struct runtime_box *box, int *pidfd, struct err *err)
{
	pid_t pid, again;
	int up = find_pid(box, &pid, err);
	if (up <= 0)
		return up;
	AUTO_FD fd = proc_pidfd(pid);
	if (fd < 0 && errno != ESRCH) {
		err_sys(err, "pidfd_open");
		return -1;
	}
	up = fd < 0 ? 0 : find_pid(box, &again, err);
	if (up <= 0 || again != pid)
		return up < 0 ? -1 : 0;
	if (proc_pidfd_signal(fd, SIGKILL) != 0 && errno != ESRCH) {
		err_sys(err, "kill PID 1");
		return -1;
	}
	*pidfd = TAKE_FD(fd);
	return 1;
}

static bool late_to_stop(struct err *err)
{
	err_set(err, ERR_BUSY, "the sandbox did not end within %d seconds", STOP_MS / 1000);
	return err_hint(err, "Its processes were told to end; try again.");
}

/* The lock is free a moment before the processes are gone: the kernel closes PID 1's files, ends
 * all the others, and only then is PID 1 dead, which the pidfd shows. */
bool holder_stop(const struct runtime_box *box, struct err *err)
{
	int64_t until_ms = clock_mono_ms() + STOP_MS;
	for (;;) {
		int alive = holder_alive(box, err);
		if (alive <= 0)
			return alive == 0;
		AUTO_FD pidfd = -1;
		int killed = kill_once(box, &pidfd, err);
		if (killed < 0)
			return false;
		struct pollfd dead = {.fd = pidfd, .events = POLLIN};
		int64_t left = until_ms - clock_mono_ms();
		/* Without a pidfd this is the pause before the next look. */
		poll(&dead, 1, killed == 0 ? 1 : left > 0 ? (int)left : 0);
		if (clock_mono_ms() >= until_ms)
			return late_to_stop(err);
	}
}

bool holder_exec(const struct runtime_box *box, const struct runtime_command *command,
		 struct runtime_exec *exec, struct err *err)
{
	__attribute__((cleanup(exchange_free))) struct exchange exchange;
	if (!exchange_encode(&exchange, command, err))
		return false;
	AUTO_FD fd = -1;
	int up = connect_to(box, &fd, err);
	if (up == 0)
		err_set(err, ERR_LOST, "the sandbox is not running; the command was not started");
	if (up <= 0 || !exchange_start(&exchange, fd, err))
		return false;
	exec->fd = TAKE_FD(fd);
	return true;
}

void holder_cancel(struct runtime_exec *exec)
{
	exchange_cancel(exec->fd);
}

void holder_finish(struct runtime_exec *exec, struct runtime_status *status)
{
	exchange_status(exec->fd, status);
	util_close(&exec->fd);
}
