/*
 * PID 1's loop: accept, fork a keeper, reap. A keeper's connection stays open here as well, so
 * that PID 1 can say what happened when the keeper cannot any more.
 */
#include "init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEEPERS_MAX   256 /* commands at a time */
#define PAUSE_MS      20  /* when accept lacks descriptors or memory */
#define KEEPER_CONN   3   /* a keeper's own descriptors */
#define KEEPER_SIGNAL 4

struct keeper {
	pid_t pid; /* 0: the slot is free */
	int conn_fd;
	bool swept; /* its end is our doing */
};

static struct keeper keepers[KEEPERS_MAX];

static struct keeper *find_keeper(pid_t pid)
{
	for (int i = 0; i < KEEPERS_MAX; i++)
		if (keepers[i].pid == pid)
			return &keepers[i];
	return NULL;
}

/* Ends every process but this one and tells everybody who waits for one. */
static void sweep(void)
{
	kill(-1, SIGKILL);
	for (int i = 0; i < KEEPERS_MAX; i++) {
		if (keepers[i].pid == 0 || keepers[i].swept)
			continue;
		keepers[i].swept = true;
		init_send(keepers[i].conn_fd, &(struct wire_reply){.kind = WIRE_SWEPT});
	}
}

static void on_child(pid_t pid, int status)
{
	struct keeper *keeper = find_keeper(pid);
	if (!keeper)
		return; /* an orphan that ended, or one that was stopped */
	if (!WIFEXITED(status) && !keeper->swept)
		sweep();
	if (WIFSTOPPED(status))
		return; /* its end by the sweep comes next */
	close(keeper->conn_fd);
	*keeper = (struct keeper){0};
}

/* SIGCHLD is a hint, never a count. */
static void reap(int signal_fd)
{
	init_drain(signal_fd);
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED);
		if (pid > 0)
			on_child(pid, status);
		else if (pid == 0 || errno != EINTR)
			return;
	}
}

/* A peer outside of this pid namespace has no number here. Everybody inside has the same uid, and
 * so has the host's side: only the pid tells them apart. */
static bool is_from_host(int conn_fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	return getsockopt(conn_fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.pid == 0;
}

/* Keeps nothing of PID 1's: a copy of another connection would hide its end. */
static noreturn void become_keeper(int conn_fd, int signal_fd)
{
	/* The originals lie above the targets: 3 to 5 were taken when they were made. */
	if (dup3(signal_fd, KEEPER_SIGNAL, O_CLOEXEC) < 0 ||
	    dup3(conn_fd, KEEPER_CONN, O_CLOEXEC) < 0)
		_exit(3);
	init_close_from(KEEPER_SIGNAL + 1);
	keeper_run(KEEPER_CONN, KEEPER_SIGNAL);
}

static void refuse(int conn_fd, int error)
{
	init_send(conn_fd, &(struct wire_reply){
				   .kind = WIRE_FAILED, .step = WIRE_STEP_KEEPER, .error = error});
	close(conn_fd);
}

static void take_connection(int conn_fd, int signal_fd)
{
	if (!is_from_host(conn_fd)) {
		close(conn_fd);
		return;
	}
	struct keeper *slot = find_keeper(0);
	pid_t pid = slot ? fork() : -1;
	if (pid == 0)
		become_keeper(conn_fd, signal_fd);
	if (pid < 0) {
		refuse(conn_fd, slot ? errno : EAGAIN);
		return;
	}
	*slot = (struct keeper){.pid = pid, .conn_fd = conn_fd};
}

void serve_forever(int listen_fd, int signal_fd)
{
	bool pause = false;
	for (;;) {
		struct pollfd fds[] = {{.fd = signal_fd, .events = POLLIN},
				       {.fd = listen_fd, .events = POLLIN}};
		poll(fds, pause ? 1 : 2, pause ? PAUSE_MS : -1);
		reap(signal_fd);
		int conn_fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
		pause = conn_fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
		if (conn_fd >= 0)
			take_connection(conn_fd, signal_fd);
	}
}
