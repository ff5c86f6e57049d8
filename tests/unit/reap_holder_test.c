/* The reaper and real sandboxes: what is stopped is really gone, and comes back. */
#include "box_kit.h"

#include "base/log.h"
#include "box/exec.h"
#include "box/reap.h"
#include "box/sandbox.h"
#include "reap_clock.h"

#define ALICE "alice"

static char *dir;
static struct conf conf;
static struct app app;
static struct sandbox_row sandbox;
static struct reap_report report;

static void reap(void)
{
	struct err err = ERR_INIT;
	struct reap_options options = {.budget_ms = 30000};
	ck_ok(reap_pass(&app, &options, &report, &err), err);
}

static void setup(void)
{
	struct err err = ERR_INIT;
	bool created;
	reap_passed = reap_jumped = 0;
	clock_use(&reap_clock);
	log_open("test", LOG_ERROR);
	dir = xasprintf("%s/app-XXXXXX", getenv(KIT_ENV));
	ck_assert_ptr_nonnull(mkdtemp(dir));
	setenv("SMCP_SPOOL", dir, 1);
	setenv("SMCP_TOKEN", "the-servers-own-token", 1);
	setenv("SMCP_ENV_FILE", "/dev/null", 1);
	ck_ok(conf_load(&conf, &err), err);
	ck_ok(app_open(&app, &conf, &err), err);
	reap();
	ck_ok(sandbox_create(&app, ALICE, &(struct sandbox_options){.name = "work"}, &sandbox,
			     &created, &err),
	      err);
}

static void teardown(void)
{
	struct err err = ERR_INIT;
	struct sandbox_destroyed destroyed = {.name = NULL};
	if (!sandbox_destroy(&app, ALICE, "work", true, &destroyed, &err))
		ck_assert_int_eq(err.code, ERR_NOT_FOUND);
	free(destroyed.name);
	sandbox_row_finish(&sandbox);
	app_close(&app);
	conf_finish(&conf);
	unit_tempdir_remove(dir);
	clock_use(NULL);
}

/* Runs a command in it, for at most wait_ms; what still runs then is in *session. */
static bool run(const char *command, struct sandbox_use *use, int64_t wait_ms,
		struct session *session)
{
	struct err err = ERR_INIT;
	struct exec_options options = {.command = command, .timeout_ms = 60000};
	bool ended = false;
	session_init(session, 4096, 4096);
	ck_ok(sandbox_enter(&app, &sandbox, use, &err), err);
	ck_ok(exec_run_for(&app, &sandbox, use, &options, wait_ms, NULL, NULL, session, &ended,
			   &err),
	      err);
	return ended;
}

/* Runs a command that ends with code 0. */
static void run_ok(const char *command)
{
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	struct session session;
	ck_assert(run(command, &use, KIT_TIMEOUT, &session));
	ck_assert_int_eq(session.status.end, RUNTIME_END_EXIT);
	ck_assert_int_eq(session.status.code, 0);
	session_finish(&session);
}

static bool is_up(void)
{
	struct err err = ERR_INIT;
	return sandbox_running(&app, &sandbox, &err) == 1;
}

TEST(an_idle_stop_ends_all_processes_and_the_next_command_finds_the_files)
{
	setup();
	const char *marker = kit_marker();
	AUTO_FREE char *line = xasprintf("echo kept > file; setsid sleep %s &", marker);
	run_ok(line);
	ck_assert_int_eq(kit_settle(marker, 1), 1);
	reap_later(HOUR);
	reap();
	ck_assert(is_up());
	reap_later(HOUR + MINUTE);
	reap();
	ck_assert_int_eq(report.stopped, 1);
	ck_assert(!is_up());
	ck_assert_int_eq(kit_settle(marker, 0), 0);
	run_ok("test \"$(cat file)\" = kept");
	ck_assert(is_up());
	teardown();
}
TEST_END

TEST(a_command_that_runs_keeps_its_sandbox_for_as_long_as_it_takes)
{
	setup();
	const char *marker = kit_marker();
	AUTO_FREE char *line = xasprintf("sleep %s", marker);
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	struct session session;
	ck_assert(!run(line, &use, 50, &session));
	reap_later(30 * DAY);
	reap();
	ck_assert_int_eq(report.stopped + report.removed, 0);
	ck_assert_int_eq(kit_count(marker), 1);
	session_finish(&session);
	sandbox_leave(&use);
	reap(); /* it was seen in use a moment ago */
	ck_assert(is_up());
	reap_later(8 * DAY);
	reap();
	ck_assert_int_eq(report.removed, 1);
	ck_assert(!is_up());
	ck_assert_int_eq(kit_settle(marker, 0), 0);
	teardown();
}
TEST_END

TEST(a_holder_whose_row_is_gone_is_ended)
{
	setup();
	const char *marker = kit_marker();
	AUTO_FREE char *line = xasprintf("setsid sleep %s &", marker);
	run_ok(line);
	ck_assert_int_eq(kit_settle(marker, 1), 1);
	sqlite3 *handle;
	ck_assert_int_eq(sqlite3_open(conf.state_db, &handle), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(handle, "DELETE FROM sandbox", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(handle);
	reap();
	ck_assert_int_ge(report.orphans_removed, 1);
	ck_assert_int_eq(kit_settle(marker, 0), 0);
	ck_assert(!is_up());
	teardown();
}
TEST_END

int main(int argc, char **argv)
{
	(void)argc;
	const TTest *const tests[] = {
		an_idle_stop_ends_all_processes_and_the_next_command_finds_the_files,
		a_command_that_runs_keeps_its_sandbox_for_as_long_as_it_takes,
		a_holder_whose_row_is_gone_is_ended,
	};
	return kit_main(argv, "reap_holder", tests, ARRAY_LEN(tests));
}
