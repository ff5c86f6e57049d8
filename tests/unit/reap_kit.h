/*
 * For tests of the reaper: an app with a fake runtime (sandbox_kit.h) and a clock that the test
 * sets (reap_clock.h).
 */
#ifndef SPOOLBOX_UNIT_REAP_KIT_H
#define SPOOLBOX_UNIT_REAP_KIT_H

#include "box/reap.h"
#include "sandbox_kit.h"

#include "reap_clock.h"

static struct reap_report report;

/* A pass; what it came to is in report. */
static inline bool reap_try(struct reap_options options)
{
	struct err err = ERR_INIT;
	options.budget_ms = options.budget_ms > 0 ? options.budget_ms : 30000;
	bool ok = reap_pass(&app, &options, &report, &err);
	ck_assert_msg(err.code == ERR_NONE, "%s [%s]", err.msg, err.trace);
	return ok;
}

static inline void reap_now(void)
{
	ck_assert(reap_try((struct reap_options){.dry_run = false}));
	ck_assert_int_eq(report.failed, 0);
}

static inline void reap_dry(void)
{
	ck_assert(reap_try((struct reap_options){.dry_run = true}));
}

/* The first pass is over: it only took note of the time. */
static inline void reap_begin(void)
{
	reap_passed = reap_jumped = 0;
	clock_use(&reap_clock);
	setup();
	conf.job_log_retention = 86400;
	log_open("test", getenv("SHOW_LOG") != NULL ? LOG_DEBUG : LOG_ERROR);
	reap_now();
}

static inline void reap_end(void)
{
	teardown();
	clock_use(NULL);
}

static inline enum sandbox_state state_of(const char *id)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	ck_assert_int_ge(row_sandbox_any(app.db, id, &row, &err), 0);
	return row.state;
}

static inline bool is_whole(const struct sandbox_row *row)
{
	return state_of(row->id) == SANDBOX_LIVE && kit_exists("data", row->files_id, "/workspace");
}

/* Its row may be forgotten as well, when that ended long ago. */
static inline bool is_away(const struct sandbox_row *row)
{
	enum sandbox_state state = state_of(row->id);
	return (state == SANDBOX_GONE || state == SANDBOX_NONE) &&
	       !kit_exists("data", row->files_id, "") && !kit_exists("run", row->id, "");
}

static inline void reap_write(const char *directory, const char *id, const char *below)
{
	AUTO_FREE char *path = xasprintf("%s/%s/%s%s", conf.spool, directory, id, below);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_msg(fd >= 0, "%s", path);
	ck_assert_int_eq(write(fd, "x", 1), 1);
	close(fd);
}

/* Makes it run, and leaves it. */
static inline void reap_start(const struct sandbox_row *row)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	ck_ok(sandbox_enter(&app, row, &use, &err) && sandbox_start(&app, row, &use, &err), err);
}

static inline bool is_up(const struct sandbox_row *row)
{
	struct err err = ERR_INIT;
	return sandbox_running(&app, row, &err) == 1;
}

/* A process of its own that uses a sandbox until it is killed. */
static inline pid_t reap_user(const struct sandbox_row *row)
{
	int ends[2];
	char c;
	ck_assert_int_eq(pipe(ends), 0);
	app_close(&app);
	pid_t pid = fork();
	if (pid == 0) {
		struct err err = ERR_INIT;
		AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
		kit_reopen();
		if (sandbox_enter(&app, row, &use, &err) && sandbox_start(&app, row, &use, &err) &&
		    write(ends[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ends[1]);
	ck_assert_int_eq(read(ends[0], &c, 1), 1);
	close(ends[0]);
	kit_open();
	return pid;
}

static inline void reap_kill(pid_t pid)
{
	int status;
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
}

#endif
