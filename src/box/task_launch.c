/*
 * The answer comes over a stream socket rather than a pipe. A submitter that does not wait any
 * longer shuts its end down and then looks once more: what was written before is still read, and
 * what would be written after fails. So both sides agree about who has a command that was to be
 * handed over.
 */
#include "box/task_launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/proc.h"
#include "box/supervise.h"
#include "store/task_dir.h"

#define ANSWER_MAX 4096 /* a struct err as JSON */

/* --- what the supervisor gets -------------------------------------------------------------- */

static struct json_object *make_spec(const struct task_row *row, const struct exec_options *options,
				     bool adopted)
{
	struct json_object *spec = json_object_new_object();
	json_add_str(spec, "id", row->id);
	json_add_str(spec, "sandbox_id", row->sandbox_id);
	json_add_str(spec, "principal", row->principal);
	json_add_str(spec, "origin", task_origin_name(row->origin));
	json_add_str(spec, "command", options->command);
	json_add_str(spec, "cwd", options->cwd);
	if (options->env != NULL)
		json_add(spec, "env", json_copy(options->env));
	json_add_int(spec, "timeout_ms", row->timeout_ms);
	if (adopted) {
		json_add_bool(spec, "adopted", true);
		json_add_int(spec, "started_at", row->started_at);
	}
	return spec;
}

/* Its settings, and nothing else of what a web server put into ours. */
static const char **make_environment(void)
{
	size_t count = 0, kept = 0;
	while (environ[count] != NULL)
		count++;
	const char **envp = xcalloc(count + 1, sizeof(*envp));
	for (size_t i = 0; i < count; i++)
		if (strncmp(environ[i], "SMCP_", 5) == 0 || strncmp(environ[i], "PATH=", 5) == 0)
			envp[kept++] = environ[i];
	return envp;
}

static bool spawn(const struct task_row *row, const struct proc_fd *fds, size_t fd_count,
		  bool adopted, struct err *err)
{
	AUTO_BUF program = BUF_INIT;
	if (!proc_find(SUPERVISE_PROGRAM, &program, err))
		return false;
	AUTO_FREE const char **envp = make_environment();
	const char *const plain[] = {buf_str(&program), row->id, NULL};
	const char *const adopting[] = {buf_str(&program), SUPERVISE_ADOPT, row->id, NULL};
	struct proc_spec spec = {.argv = adopted ? adopting : plain,
				 .envp = envp,
				 .fds = fds,
				 .fd_count = fd_count,
				 .detached = true};
	return proc_spawn(&spec, err) == 0;
}

/* --- its answer ---------------------------------------------------------------------------- */

static bool read_refusal(const char *text, size_t len, struct err *err)
{
	struct err parsing = ERR_INIT;
	AUTO_JSON *object = json_parse(text, len, &parsing);
	const char *name = json_get_str(object, "code");
	enum err_code code = ERR_INTERNAL;
	for (int i = ERR_NONE + 1; name != NULL && i < ERR__MAX; i++)
		if (strcmp(err_name((enum err_code)i), name) == 0)
			code = (enum err_code)i;
	if (json_get_str(object, "message") == NULL)
		return err_set(err, ERR_INTERNAL, "the answer of a supervisor is damaged");
	err_set(err, code, "%s", json_get_str(object, "message"));
	if (json_get_str(object, "hint") != NULL)
		err_hint(err, "%s", json_get_str(object, "hint"));
	if (json_get_str(object, "trace") != NULL)
		err_in(err, "supervisor: %s", json_get_str(object, "trace"));
	return false;
}

/* Reads on until the time is over or the other side closes; what counts is in answer then. */
static bool read_answer(int fd, int64_t until_ms, struct buf *answer)
{
	for (;;) {
		int64_t left = until_ms - clock_mono_ms();
		struct pollfd readable = {.fd = fd, .events = POLLIN};
		int ready = poll(&readable, 1, left > 0 ? (int)left : 0);
		if (ready == 0)
			return false;
		if (ready < 0)
			continue; /* a signal */
		ssize_t n = recv(fd, buf_reserve(answer, ANSWER_MAX), ANSWER_MAX, MSG_DONTWAIT);
		if (n > 0)
			answer->len += (size_t)n;
		else if (n == 0 || (errno != EAGAIN && errno != EINTR))
			return true;
		if (answer->len > 0 && answer->data[0] == '\n')
			return true;
		if (answer->len > ANSWER_MAX)
			return true;
	}
}

static enum task_launch await_answer(int fd, struct err *err)
{
	AUTO_BUF answer = BUF_INIT;
	bool in_time = read_answer(fd, clock_mono_ms() + TASK_READY_MS, &answer);
	if (!in_time) {
		shutdown(fd, SHUT_RD);
		read_answer(fd, clock_mono_ms(), &answer);
	}
	if (answer.len > 0 && answer.data[0] == '\n')
		return TASK_LAUNCH_READY;
	if (answer.len > 0) {
		buf_putc(&answer, '\0');
		read_refusal(answer.data, answer.len - 1, err);
		return TASK_LAUNCH_NONE;
	}
	return in_time ? TASK_LAUNCH_DIED : TASK_LAUNCH_LATE;
}

/* --- launch -------------------------------------------------------------------------------- */

/* Where supervisors say what went wrong. Not our own standard error: some web servers wait until
 * nobody has that open any more. */
static int open_log(const struct app *app)
{
	return openat(app->spool.root_fd, "tasks.log", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC,
		      0600);
}

static enum task_launch start_supervisor(const struct app *app, const struct task_row *row,
					 const struct session *session, int held_fd,
					 struct err *err)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
		err_sys(err, "socketpair");
		return TASK_LAUNCH_NONE;
	}
	AUTO_FD ours = ends[0];
	AUTO_FD theirs = ends[1];
	AUTO_FD log_fd = open_log(app); /* -1 is /dev/null then */
	struct proc_fd fds[] = {{log_fd, STDERR_FILENO},   {theirs, SUPERVISE_FD_READY},
				{-1, SUPERVISE_FD_EXEC},   {-1, SUPERVISE_FD_STDOUT},
				{-1, SUPERVISE_FD_STDERR}, {held_fd, SUPERVISE_FD_HELD}};
	if (session != NULL) {
		fds[2].from = session->exec.fd;
		fds[3].from = session->fds[RECORD_STDOUT];
		fds[4].from = session->fds[RECORD_STDERR];
	}
	if (!spawn(row, fds, session == NULL ? 2 : ARRAY_LEN(fds), session != NULL, err))
		return TASK_LAUNCH_NONE;
	util_close(&theirs); /* so that its end is seen */
	return await_answer(ours, err);
}

/* The supervisor did this as well, if it could. */
static void take_back(struct app *app, const struct task_row *row)
{
	struct err err = ERR_INIT;
	if (row_task_delete(app->db, row->id, &err) < 0)
		log_err(LOG_WARN, "task_take_back", &err);
	err = (struct err)ERR_INIT;
	if (!task_dir_discard(&app->spool, row->id, &err))
		log_err(LOG_WARN, "task_take_back", &err);
}

static enum task_launch launch(struct app *app, const struct task_row *row,
			       const struct exec_options *options, struct session *session,
			       struct err *err)
{
	AUTO_JSON *spec = make_spec(row, options, session != NULL);
	AUTO_FD dirfd = task_dir_make(&app->spool, row->id, spec, err);
	if (dirfd < 0)
		return TASK_LAUNCH_NONE;
	AUTO_FD held = -1;
	if (session != NULL && (held = session_prepare_handover(session, dirfd, err)) < 0)
		return TASK_LAUNCH_NONE;
	return start_supervisor(app, row, session, held, err);
}

enum task_launch task_launch(struct app *app, const struct task_row *row,
			     const struct exec_options *options, struct session *session,
			     struct err *err)
{
	enum task_launch result = launch(app, row, options, session, err);
	if (session != NULL && (result == TASK_LAUNCH_DIED || result == TASK_LAUNCH_LATE)) {
		err_set(err, ERR_UNAVAILABLE,
			"the command could not be handed over to the background: %s",
			result == TASK_LAUNCH_LATE ? "what was to look after it did not answer"
						   : "what was to look after it was killed");
		result = TASK_LAUNCH_NONE;
	}
	if (result == TASK_LAUNCH_NONE)
		take_back(app, row);
	else if (session != NULL)
		session_let_go(session);
	return result;
}
