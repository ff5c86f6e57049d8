/*
 * For tests of single rules of the reaper: a spool with a fake runtime (sandbox_kit.h), a clock
 * that moves only when a test says so, and what a rule is handed. To be included instead of
 * sandbox_kit.h.
 */
#ifndef SPOOLBOX_RULE_KIT_H
#define SPOOLBOX_RULE_KIT_H

#include "sandbox_kit.h"

#include "box/reap_rule.h"
#include "store/row_task.h"
#include "store/task_dir.h"

#define RULE_START 1790000000000LL /* 2026-09-21 */
#define SECOND     1000LL
#define HOUR       (3600 * SECOND)
#define DAY        (24 * HOUR)

static int64_t rule_later_ms;  /* on all clocks */
static int64_t rule_slept_ms;  /* on all but the monotonic one */
static int64_t rule_jumped_ms; /* on the wall clock alone */

static int64_t rule_wall(void)
{
	return RULE_START + rule_later_ms + rule_slept_ms + rule_jumped_ms;
}
static int64_t rule_mono(void)
{
	return HOUR + rule_later_ms;
}
static int64_t rule_boot(void)
{
	return HOUR + rule_later_ms + rule_slept_ms;
}
static const struct clock_source rule_clock = {rule_wall, rule_mono, rule_boot, "a-boot"};

static struct reap_options rule_options;
static struct reap_report rule_report;
static struct sandbox_row rule_sandbox; /* made at the start */

static inline void rule_setup(void)
{
	clock_use(&rule_clock);
	setup();
	log_open("test", LOG_ERROR);
	conf.idle_stop = 2 * 3600;
	conf.idle_remove = 7 * 86400;
	conf.job_log_retention = 86400;
	conf.url_ttl = 3600;
	rule_options = (struct reap_options){.budget_ms = HOUR};
	rule_sandbox = kit_named("work");
}

static inline void rule_teardown(void)
{
	sandbox_row_finish(&rule_sandbox);
	teardown();
	clock_use(NULL);
}

/* Runs one rule as a pass would, and returns what it reported. */
typedef void rule_function(struct reap *reap);
static inline struct reap_report *rule_run(rule_function *rule)
{
	struct err err = ERR_INIT;
	rule_report = (struct reap_report){.failed = 0};
	struct reap reap = {.app = &app,
			    .options = &rule_options,
			    .report = &rule_report,
			    .until_ms = clock_mono_ms() + rule_options.budget_ms};
	ck_ok(timeline_read(&app, &reap.timeline, &err), err);
	rule(&reap);
	return &rule_report;
}

/* What the clocks say now is recorded, as at the beginning of a pass. */
static inline void rule_record(void)
{
	struct err err = ERR_INIT;
	struct timeline timeline;
	ck_ok(timeline_record(&app, &timeline, &err), err);
}

/* --- tasks --------------------------------------------------------------------------------- */

/* A row that reads running, started now. */
static inline struct task_row rule_task(int64_t timeout_ms)
{
	struct err err = ERR_INIT;
	struct task_row row = {.principal = (char *)ALICE,
			       .origin = TASK_ORIGIN_JOB,
			       .command = (char *)"make",
			       .timeout_ms = timeout_ms,
			       .state = TASK_RUNNING,
			       .created_at = clock_wall_ms(),
			       .started_at = clock_wall_ms()};
	id_make(row.id);
	memcpy(row.sandbox_id, rule_sandbox.id, sizeof(row.sandbox_id));
	ck_ok(row_task_insert(app.db, &row, &err) == 1, err);
	return row;
}

/* Its directory, visible; nobody holds its lock. */
static inline int rule_task_dir(const char *id)
{
	struct err err = ERR_INIT;
	AUTO_JSON *spec = json_literal("{}");
	int fd = task_dir_make(&app.spool, id, spec, &err);
	ck_ok(fd >= 0, err);
	ck_ok(task_dir_publish(&app.spool, id, &err), err);
	return fd;
}

/* One that ended now, with its directory. */
static inline struct task_row rule_ended_task(void)
{
	struct err err = ERR_INIT;
	struct task_row row = rule_task(HOUR);
	AUTO_FD fd = rule_task_dir(row.id);
	row.state = TASK_SUCCEEDED;
	row.has_exit_code = true;
	row.finished_at = clock_wall_ms();
	ck_ok(task_dir_write_result(fd, &row, &err), err);
	ck_ok(row_task_finish(app.db, &row, &err) == 1, err);
	return row;
}

/* The row as it is now; the caller finishes it. */
static inline struct task_row rule_read_task(const char *id)
{
	struct err err = ERR_INIT;
	struct task_row row = {.id = ""};
	ck_ok(row_task_by_id(app.db, ALICE, id, &row, &err) == 1, err);
	return row;
}

#define rule_task_is(task_id, wanted) \
	do { \
		AUTO_TASK_ROW is_ = rule_read_task(task_id); \
		ck_assert_str_eq(task_state_name(is_.state), task_state_name(wanted)); \
	} while (0)

/* --- dying at each step -------------------------------------------------------------------- */

static int rule_steps_left;
static inline void rule_die(void *ctx, const char *name)
{
	(void)ctx;
	(void)name;
	if (rule_steps_left-- == 0)
		_exit(50);
}

/* Runs the rule in a child that dies at its n-th step. False when it came to its end. */
static inline bool rule_dies_at(rule_function *rule, int step)
{
	app_close(&app);
	pid_t pid = fork();
	if (pid == 0) {
		kit_reopen();
		rule_steps_left = step;
		rule_options.step = rule_die;
		rule_run(rule);
		app_close(&app);
		_exit(rule_report.failed > 0 ? 51 : 0);
	}
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) != 51 && WEXITSTATUS(status) != 99);
	kit_open();
	return WEXITSTATUS(status) == 50;
}

#endif
