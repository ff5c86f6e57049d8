/*
 * The life of a supervisor: prepare, start or take over, publish, watch, settle. It holds no
 * database while it watches, so thousands of idle ones cost little and block nobody. What it holds
 * is the lock of the task, the shared lock of the sandbox (a running task is a use of it), the
 * connection to the command's keeper and the pipes; the kernel takes all of it away whenever
 * and however the process ends.
 */
#include "box/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

#include "base/clock.h"
#include "base/log.h"
#include "box/exec.h"
#include "box/sandbox.h"
#include "box/secrets.h"
#include "box/task_log.h"
#include "store/task_dir.h"

/* Timeout and cancel are carried out inside, within RUNTIME_GRACE_MS and the time that KILL takes.
 * This much later it can only be that the sandbox hangs. */
#define BACKSTOP_MS 5000
/* A result or a row that cannot be written (a full disk, a database that is being backed up) is
 * tried again; until then the task reads as running. */
#define RESULT_TRIES 30
#define ROW_TRIES    5
#define RETRY_MS     1000

struct supervisor {
	struct app *app;
	const char *id;
	bool adopted;
	bool visible;
	int dir_fd, lock_fd, order_fd, signal_fd;
	struct json_object *spec;
	struct sandbox_row sandbox;
	struct sandbox_use use;
	struct task_log log;
	struct runtime_exec exec;
	struct runtime_status status;
	int64_t timeout_ms;
	int64_t give_up_ms;  /* of the monotonic clock: the sandbox hangs */
	bool hung;           /* and it was that late */
	const char *stopped; /* why the command was cancelled; NULL: it was not */
	struct task_row row; /* the outcome */
};

static void supervisor_finish(struct supervisor *s)
{
	util_close(&s->exec.fd); /* ends the command, if nobody else holds the connection */
	task_log_close(&s->log);
	sandbox_leave(&s->use);
	sandbox_row_finish(&s->sandbox);
	task_row_finish(&s->row);
	json_object_put(s->spec);
	util_close(&s->order_fd);
	util_close(&s->signal_fd);
	util_close(&s->dir_fd);
	util_close(&s->lock_fd);
}
#define AUTO_SUPERVISOR __attribute__((cleanup(supervisor_finish))) struct supervisor

/* --- the submitter ------------------------------------------------------------------------- */

/* False when the submitter does not listen any more. */
static bool tell(const char *text, size_t len)
{
	ssize_t n = write(SUPERVISE_FD_READY, text, len);
	close(SUPERVISE_FD_READY);
	return n == (ssize_t)len;
}

void supervise_refuse(const struct err *err)
{
	AUTO_JSON *object = json_object_new_object();
	size_t len;
	json_add_str(object, "code", err_name(err->code));
	json_add_str(object, "message", err_message(err));
	json_add_str(object, "hint", err_next(err));
	json_add_str(object, "trace", err->trace);
	const char *text = json_text(object, &len);
	tell(text, len);
}

/* --- prepare ------------------------------------------------------------------------------- */

static bool open_signals(struct supervisor *s, struct err *err)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	/* Blocked until it is read; an early one is met by the first look. */
	if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
		return err_sys(err, "block signals");
	signal(SIGPIPE, SIG_IGN); /* the submitter or the keeper may be gone */
	signal(SIGXFSZ, SIG_IGN); /* a limit of the web server's: a log that cannot grow */
	signal(SIGHUP, SIG_IGN);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signal_fd >= 0 || err_sys(err, "signalfd");
}

static bool check_spec(struct supervisor *s, struct err *err)
{
	const char *id = json_get_str(s->spec, "id");
	s->timeout_ms = json_get_int(s->spec, "timeout_ms", 0);
	if (id != NULL && strcmp(id, s->id) == 0 && s->timeout_ms > 0 &&
	    json_get_bool(s->spec, "adopted", false) == s->adopted &&
	    json_get_str(s->spec, "command") != NULL &&
	    json_get_str(s->spec, "principal") != NULL &&
	    json_get_str(s->spec, "sandbox_id") != NULL)
		return true;
	return err_set(err, ERR_INTERNAL, "the spec of task %s is not complete", s->id);
}

static bool open_task(struct supervisor *s, struct err *err)
{
	return (s->dir_fd = task_dir_open_new(&s->app->spool, s->id, err)) >= 0 &&
	       (s->lock_fd = task_dir_take_lock(s->dir_fd, err)) >= 0 &&
	       (s->order_fd = task_dir_open_orders(s->dir_fd, err)) >= 0 &&
	       (s->spec = task_dir_spec(s->dir_fd, err)) != NULL && check_spec(s, err);
}

static bool enter_sandbox(struct supervisor *s, struct err *err)
{
	int found = row_sandbox_by_id(s->app->db, json_get_str(s->spec, "principal"),
				      json_get_str(s->spec, "sandbox_id"), &s->sandbox, err);
	if (found == 0)
		err_set(err, ERR_NOT_FOUND, "the sandbox of this task is not there any more");
	return found == 1 && sandbox_enter_for_task(s->app, &s->sandbox, &s->use, err);
}

static bool open_log(struct supervisor *s, struct err *err)
{
	struct mask *mask = secrets_mask(s->app, &s->sandbox, json_get(s->spec, "env"), err);
	if (mask == NULL)
		return false;
	return s->adopted ? task_log_resume(&s->log, s->dir_fd, mask, SUPERVISE_FD_HELD, err)
			  : task_log_create(&s->log, s->dir_fd, mask, err);
}

/* --- start --------------------------------------------------------------------------------- */

struct launch {
	struct supervisor *s;
	struct runtime_command *command;
};

static bool begin_command(void *ctx, const struct runtime_box *box, struct err *err)
{
	const struct launch *launch = ctx;
	struct supervisor *s = launch->s;
	return s->app->runtime->exec(box, launch->command, &s->exec, err);
}

static bool start_command(struct supervisor *s, int stdin_fd, const int ends[RECORD_STREAMS],
			  struct err *err)
{
	const struct exec_options options = {
		.command = json_get_str(s->spec, "command"),
		.command_len = json_str_len(json_get(s->spec, "command")),
		.cwd = json_get_str(s->spec, "cwd"),
		.env = json_get(s->spec, "env"),
	};
	AUTO_EXEC_COMMAND command;
	if (!exec_command_make(&command, s->app, &s->sandbox, &options, err))
		return false;
	command.run.timeout_ms =
		s->timeout_ms; /* may be longer than that of a foreground command */
	command.run.stdin_fd = stdin_fd;
	command.run.stdout_fd = ends[RECORD_STDOUT];
	command.run.stderr_fd = ends[RECORD_STDERR];
	struct launch launch = {s, &command.run};
	return exec_start(s->app, &s->sandbox, &s->use, begin_command, &launch, err);
}

static bool launch(struct supervisor *s, struct err *err)
{
	int ends[RECORD_STREAMS] = {-1, -1};
	AUTO_FD null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	bool ok = (null_fd >= 0 || err_sys(err, "open /dev/null")) &&
		  task_log_pipes(&s->log, ends, err) && start_command(s, null_fd, ends, err);
	/* From here on only the command holds them, so their end is its end. */
	util_close(&ends[RECORD_STDOUT]);
	util_close(&ends[RECORD_STDERR]);
	s->row.started_at = clock_wall_ms();
	return ok;
}

/* Nothing is read before the submitter was told that it has to let go. */
static bool take_over(struct supervisor *s, struct err *err)
{
	static const int fds[] = {SUPERVISE_FD_STDOUT, SUPERVISE_FD_STDERR};
	s->exec.fd = SUPERVISE_FD_EXEC;
	if (fcntl(s->exec.fd, F_SETFD, FD_CLOEXEC) != 0)
		return err_sys(err, "take over a command");
	for (int i = 0; i < RECORD_STREAMS; i++) {
		/* One that is at its end was not handed over; /dev/null is in its place. */
		s->log.fds[i] = fds[i];
		if (fcntl(fds[i], F_SETFD, FD_CLOEXEC) != 0 ||
		    fcntl(fds[i], F_SETFL, O_NONBLOCK) != 0)
			return err_sys(err, "take over a pipe");
	}
	s->row.started_at = json_get_int(s->spec, "started_at", clock_wall_ms());
	return true;
}

/* How long the command has run; the clock may have been set meanwhile. */
static int64_t elapsed_ms(const struct supervisor *s)
{
	int64_t elapsed = clock_wall_ms() - s->row.started_at;
	return elapsed < 0 ? 0 : elapsed > s->timeout_ms ? s->timeout_ms : elapsed;
}

static bool publish(struct supervisor *s, struct err *err)
{
	if (!task_dir_publish(&s->app->spool, s->id, err))
		return false;
	s->visible = true;
	struct err late = ERR_INIT; /* its result says it again */
	if (row_task_started(s->app->db, s->id, s->row.started_at, &late) < 0)
		log_err(LOG_WARN, "task_started", &late);
	return true;
}

static bool begin(struct supervisor *s, struct err *err)
{
	if (!open_signals(s, err) || !open_task(s, err) || !enter_sandbox(s, err) ||
	    !open_log(s, err) || !(s->adopted ? take_over(s, err) : launch(s, err)))
		return false;
	s->give_up_ms =
		clock_mono_ms() + s->timeout_ms - elapsed_ms(s) + RUNTIME_GRACE_MS + BACKSTOP_MS;
	return publish(s, err);
}

/* Leaves nothing of a task that did not come to be. The command goes first, if it was started. */
static void take_back(struct supervisor *s)
{
	struct err err = ERR_INIT;
	util_close(&s->exec.fd);
	if (row_task_delete(s->app->db, s->id, &err) < 0)
		log_err(LOG_WARN, "task_take_back", &err);
	err = (struct err)ERR_INIT;
	if (!task_dir_discard(&s->app->spool, s->id, &err))
		log_err(LOG_WARN, "task_take_back", &err);
}

/* --- watch --------------------------------------------------------------------------------- */

static void stop(struct supervisor *s, const char *why)
{
	int64_t limit_ms = clock_mono_ms() + RUNTIME_GRACE_MS + BACKSTOP_MS;
	if (s->stopped != NULL)
		return;
	s->stopped = why;
	if (limit_ms < s->give_up_ms)
		s->give_up_ms = limit_ms;
	s->app->runtime->cancel(&s->exec);
}

static void take_orders(struct supervisor *s)
{
	char orders[64];
	ssize_t n = read(s->order_fd, orders, sizeof(orders));
	if (n > 0 && memchr(orders, TASK_ORDER_CANCEL, (size_t)n) != NULL)
		stop(s, "it was cancelled");
}

static void take_signals(struct supervisor *s)
{
	struct signalfd_siginfo info;
	while (read(s->signal_fd, &info, sizeof(info)) == sizeof(info))
		stop(s, "its supervisor was told to end, as when the server shuts down");
}

enum watched { WATCH_END, WATCH_STDOUT, WATCH_STDERR, WATCH_ORDERS, WATCH_SIGNALS, WATCH__MAX };

/* One wait. True when the command has ended or is given up. */
static bool watch_once(struct supervisor *s)
{
	struct pollfd fds[WATCH__MAX] = {
		[WATCH_END] = {.fd = s->exec.fd, .events = POLLIN},
		[WATCH_STDOUT] = {.fd = s->log.fds[RECORD_STDOUT], .events = POLLIN},
		[WATCH_STDERR] = {.fd = s->log.fds[RECORD_STDERR], .events = POLLIN},
		[WATCH_ORDERS] = {.fd = s->order_fd, .events = POLLIN},
		[WATCH_SIGNALS] = {.fd = s->signal_fd, .events = POLLIN},
	};
	int64_t left = s->give_up_ms - clock_mono_ms();
	if (left <= 0) {
		s->hung = true;
		return true;
	}
	if (poll(fds, WATCH__MAX, left > INT32_MAX ? INT32_MAX : (int)left) <= 0)
		return false;
	if (fds[WATCH_ORDERS].revents != 0)
		take_orders(s);
	if (fds[WATCH_SIGNALS].revents != 0)
		take_signals(s);
	if (fds[WATCH_STDOUT].revents != 0)
		task_log_read(&s->log, RECORD_STDOUT);
	if (fds[WATCH_STDERR].revents != 0)
		task_log_read(&s->log, RECORD_STDERR);
	return fds[WATCH_END].revents != 0;
}

static void watch(struct supervisor *s)
{
	while (!watch_once(s))
		;
	if (s->hung) {
		s->status = (struct runtime_status){.end = RUNTIME_END_LOST};
		util_close(&s->exec.fd);
	} else {
		s->app->runtime->finish(&s->exec, &s->status);
	}
	s->row.finished_at = clock_wall_ms();
	task_log_end(&s->log, s->dir_fd);
}

/* --- settle -------------------------------------------------------------------------------- */

static const char *why_lost(struct supervisor *s)
{
	struct err err = ERR_INIT;
	if (s->hung)
		return "the sandbox does not answer, so it is not known whether the command has "
		       "ended; destroy_sandbox ends everything in it";
	if (s->status.swept)
		return "a process in the sandbox killed or stopped what looks after the command; "
		       "all its processes were ended";
	AUTO_SANDBOX_ROW now = {0};
	int found = s->app->db == NULL ? -1
				       : row_sandbox_by_id(s->app->db, s->sandbox.principal,
							   s->sandbox.id, &now, &err);
	if (found == 0 || (found == 1 && now.state != SANDBOX_LIVE))
		return "its sandbox was destroyed while it ran";
	return "its sandbox was stopped while it ran, and all its processes with it";
}

static void explain(struct supervisor *s, struct buf *reason)
{
	switch (s->status.end) {
	case RUNTIME_END_LOST:
		buf_puts(reason, why_lost(s));
		break;
	case RUNTIME_END_TIMEOUT:
		buf_printf(reason, "its time of %g seconds was over", (double)s->timeout_ms / 1000);
		break;
	case RUNTIME_END_CANCELLED:
		buf_puts(reason, s->stopped == NULL ? "it was cancelled" : s->stopped);
		break;
	default:
		break;
	}
	if (!s->log.broken)
		return;
	buf_printf(reason, "%s%s: at least %lld bytes at the end of its output were not kept",
		   reason->len > 0 ? "; " : "",
		   s->log.trouble.code == ERR_QUOTA ? "the server's disk was full"
						    : "the server's disk failed",
		   (long long)s->log.dropped);
}

static enum task_state state_of(const struct runtime_status *status)
{
	static const enum task_state states[] = {
		[RUNTIME_END_SIGNAL] = TASK_FAILED,
		[RUNTIME_END_TIMEOUT] = TASK_TIMED_OUT,
		[RUNTIME_END_CANCELLED] = TASK_CANCELLED,
		[RUNTIME_END_LOST] = TASK_UNKNOWN,
	};
	if (status->end == RUNTIME_END_EXIT)
		return status->code == 0 ? TASK_SUCCEEDED : TASK_FAILED;
	return status->end == RUNTIME_END_NONE ? TASK_UNKNOWN : states[status->end];
}

static void fill_row(struct supervisor *s)
{
	const struct runtime_status *status = &s->status;
	AUTO_BUF reason = BUF_INIT;
	memcpy(s->row.id, s->id, sizeof(s->row.id));
	s->row.state = state_of(status);
	s->row.has_exit_code = status->end == RUNTIME_END_EXIT;
	s->row.exit_code = status->code;
	s->row.signal = status->signal;
	s->row.cpu_ms = (status->user_us + status->system_us) / 1000;
	s->row.max_rss_kib = status->max_rss_kib;
	s->row.survivors = status->survivors;
	explain(s, &reason);
	if (reason.len > 0)
		s->row.reason = buf_take(&reason);
}

/* It was used until now, so it is not idle; its lifetime is not renewed. */
static void stamp_sandbox(struct supervisor *s)
{
	struct err err = ERR_INIT;
	if (row_sandbox_stamp(s->app->db, s->sandbox.id, s->row.finished_at, 0, &err) < 0)
		log_err(LOG_WARN, "task_stamp", &err);
}

/* The result first, then the row: a reader who finds the row behind brings it up to date. */
static void settle(struct supervisor *s)
{
	struct err err = ERR_INIT;
	bool written = false;
	int rc = -1;
	for (int i = 0; i < RESULT_TRIES && !written; i++) {
		if (i > 0)
			clock_sleep_ms(RETRY_MS);
		written = task_dir_write_result(s->dir_fd, &s->row, &err);
	}
	if (!written)
		log_err(LOG_ERROR, "task_result", &err);
	for (int i = 0; i < ROW_TRIES && rc < 0; i++) {
		if (i > 0)
			clock_sleep_ms(RETRY_MS);
		if (s->app->db != NULL || app_open_db(s->app, &err))
			rc = row_task_finish(s->app->db, &s->row, &err);
	}
	if (rc < 0)
		log_err(written ? LOG_WARN : LOG_ERROR, "task_row", &err);
	else
		stamp_sandbox(s);
	log_event(LOG_INFO, "task_end", "task=%s sandbox=%s state=%s", s->id, s->sandbox.id,
		  task_state_name(s->row.state));
}

/* Lets go of what only the start needed, and gives its memory back to the system. */
static void slim(struct supervisor *s)
{
	db_close(s->app->db);
	s->app->db = NULL;
	json_object_put(s->spec);
	s->spec = NULL;
	malloc_trim(0);
}

static void open_database(struct supervisor *s)
{
	struct err err = ERR_INIT;
	if (!app_open_db(s->app, &err))
		log_err(LOG_WARN, "task_database", &err);
}

bool supervise(struct app *app, const char *id, bool adopted, struct err *err)
{
	AUTO_SUPERVISOR s = {.app = app,
			     .id = id,
			     .adopted = adopted,
			     .dir_fd = -1,
			     .lock_fd = -1,
			     .order_fd = -1,
			     .signal_fd = -1,
			     .use = SANDBOX_USE_INIT,
			     .log = TASK_LOG_INIT,
			     .exec = {.fd = -1}};
	if (!begin(&s, err)) {
		take_back(&s);
		supervise_refuse(err);
		return false;
	}
	/* A task goes on without its submitter. A command that was to be taken over is still the
	 * submitter's if that did not wait for us, and ends with it if it is dead. */
	if (!tell("\n", 1) && adopted) {
		take_back(&s);
		return err_set(err, ERR_GONE, "nobody waited for the command to be taken over");
	}
	slim(&s);
	watch(&s);
	open_database(&s);
	fill_row(&s);
	settle(&s);
	return true;
}
