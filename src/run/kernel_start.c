/*
 * Starting the kernel. A lock makes one of many start it; whether it lives is asked of its socket,
 * which the kernel alone holds once the start is over.
 */
#include "run/kernel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/text.h"
#include "run/session.h"
#include "run/sock.h"

#define DRIVER KERNEL_DIR_INSIDE "/kernel.py"

#define START_MS 15000 /* 60 ms; this is for a machine that swaps */
/* Longer than a start takes in the worst case: with the grace and the backstop of session.c. */
#define LOCK_MS  (START_MS + 10000)
#define BACKLOG  64  /* runs that wait to be taken at once */
#define SAID_MAX 160 /* bytes of what Python says that are shown */
#define KEPT_MAX 4096

/* What the shell line below exits with; the second one as shells do. */
#define EXIT_NO_DRIVER 126
#define EXIT_NO_PYTHON 127

void kernel_command(struct buf *out, int64_t idle_ms, bool preload)
{
	buf_printf(out,
		   "[ -r " DRIVER " ] || exit %d\n"
		   "for python in /usr/bin/python3 python3; do\n"
		   "command -v \"$python\" >/dev/null && "
		   "exec \"$python\" -I " DRIVER " --idle-ms %lld%s\n"
		   "done\n"
		   "exit %d\n",
		   EXIT_NO_DRIVER, (long long)idle_ms, preload ? " --preload" : "", EXIT_NO_PYTHON);
}

/* Whether somebody holds the socket. Asked with a socket of another type: that is refused, and the
 * error says whether there is anybody, who is not disturbed. */
static bool answers(const struct runtime_box *box)
{
	AUTO_FD fd = sock_connect(box->run_dir_fd, KERNEL_SOCKET, SOCK_STREAM);
	return fd < 0 && errno == EPROTOTYPE;
}

/* --- what went wrong ----------------------------------------------------------------------- */

static bool refuse_for_code(int code, struct err *err)
{
	if (code == EXIT_NO_PYTHON) {
		err_set(err, ERR_UNAVAILABLE,
			"there is no python3 in this sandbox; the code was "
			"not run");
		return err_hint(err, "The operator of this server should install it (on Debian: "
				     "apt-get install python3).");
	}
	err_set(err, ERR_UNAVAILABLE,
		"Spoolbox's own part of Python is missing in this sandbox; the code was not run");
	return err_hint(err, "A sandbox that was running while Spoolbox was installed has to be "
			     "made anew. Else the operator should install Spoolbox again.");
}

static bool refuse_with_words(const struct session *session, struct err *err)
{
	AUTO_BUF said = BUF_INIT;
	AUTO_BUF quoted = BUF_INIT;
	capture_last_line(&session->err, SAID_MAX, &said);
	text_quote(&quoted, buf_str(&said), said.len, SAID_MAX);
	if (said.len == 0)
		buf_puts(&quoted, "nothing");
	err_set(err, ERR_UNAVAILABLE,
		"Python could not be started in this sandbox, so the code was not run. It said: %s",
		buf_str(&quoted));
	return err_hint(err,
			"See with exec (ps, df /tmp) whether the sandbox is short of something. "
			"If it stays so, the operator should run 'spoolbox doctor'.");
}

static bool look_at_end(const struct session *session, const struct runtime_box *box,
			struct err *err)
{
	const struct runtime_status *status = &session->status;
	if (status->end == RUNTIME_END_LOST)
		return err_set(err, ERR_LOST,
			       "the sandbox went down while Python was started; the code was not "
			       "run");
	if (status->end == RUNTIME_END_TIMEOUT || status->end == RUNTIME_END_CANCELLED) {
		err_set(err, ERR_UNAVAILABLE,
			"Python in the sandbox was not ready within %d seconds; the code was not "
			"run",
			START_MS / 1000);
		return err_hint(err,
				"The server or the sandbox has too much to do: end what is not "
				"needed, and try again.");
	}
	if (status->end != RUNTIME_END_EXIT || (status->code == 0 && !answers(box)))
		return refuse_with_words(session, err);
	switch (status->code) {
	case 0:
		return true;
	case EXIT_NO_DRIVER:
	case EXIT_NO_PYTHON:
		return refuse_for_code(status->code, err);
	default:
		return refuse_with_words(session, err);
	}
}

/* --- start --------------------------------------------------------------------------------- */

static bool start(const struct runtime *runtime, const struct runtime_box *box,
		  struct runtime_command *command, struct err *err)
{
	__attribute__((cleanup(session_finish))) struct session session;
	session_init(&session, KEPT_MAX, KEPT_MAX);
	AUTO_FD listen_fd = sock_bind(box->run_dir_fd, KERNEL_SOCKET, SOCK_SEQPACKET, BACKLOG, err);
	command->timeout_ms = START_MS;
	if (listen_fd < 0 || !session_start_on(&session, runtime, box, command, listen_fd, err))
		return false;
	util_close(&listen_fd);
	session_wait(&session, INT64_MAX, NULL, NULL);
	return look_at_end(&session, box, err);
}

static bool take_lock(int lock, struct err *err)
{
	struct err busy = ERR_INIT;
	if (lock_take(lock, LOCK_EXCLUSIVE, LOCK_MS, &busy))
		return true;
	*err = busy;
	if (busy.code != ERR_BUSY)
		return false;
	err_set(err, ERR_BUSY,
		"Python is being started in this sandbox, which takes too long; the code was not "
		"run");
	return err_hint(err, "Send the code again in some seconds.");
}

bool kernel_start(const struct runtime *runtime, const struct runtime_box *box,
		  struct runtime_command *command, struct err *err)
{
	AUTO_FD lock = lock_open(box->run_dir_fd, KERNEL_LOCK, err);
	if (lock < 0)
		return false;
	/* While somebody starts it, the socket is his. */
	if (lock_is_held(lock) == 0 && answers(box))
		return true;
	return take_lock(lock, err) && (answers(box) || start(runtime, box, command, err));
}
