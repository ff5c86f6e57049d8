/* The reaper's rules about Python sessions and about sandboxes that hold one. */
#include "rule_kit.h"

#include "base/lock.h"
#include "box/idle.h"
#include "box/python.h"

static void begin(void)
{
	rule_later_ms = rule_slept_ms = rule_jumped_ms = 0;
	rule_setup();
	conf.python_idle = 300;
	log_open("test", getenv("SHOW_LOG") != NULL ? LOG_DEBUG : LOG_ERROR);
}

static struct python_row make_session(void)
{
	struct err err = ERR_INIT;
	struct python_row row = {.created_at = clock_wall_ms(), .last_used_at = clock_wall_ms()};
	id_make(row.id);
	memcpy(row.sandbox_id, rule_sandbox.id, sizeof(row.sandbox_id));
	ck_ok(row_python_insert(app.db, &row, ALICE, &err) == 1, err);
	return row;
}

static struct python_row read_session(const char *id)
{
	struct err err = ERR_INIT;
	struct python_row row = {.why = PYTHON_WHY_NONE};
	ck_ok(row_python_by_id(app.db, ALICE, id, &row, &err) == 1, err);
	return row;
}

static bool is_known(const char *id)
{
	struct err err = ERR_INIT;
	struct python_row row;
	int rc = row_python_by_id(app.db, ALICE, id, &row, &err);
	ck_ok(rc >= 0, err);
	return rc == 1;
}

/* Makes the sandbox run, so that it has a run directory. */
static void start_sandbox(void)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	ck_ok(sandbox_enter(&app, &rule_sandbox, &use, &err) &&
		      sandbox_start(&app, &rule_sandbox, &use, &err),
	      err);
}

/* The lock of a session, held by another process until the test closes the pipe. */
static int hold_lock(const char *id, pid_t *pid)
{
	int ready[2], go[2];
	char c;
	struct err err = ERR_INIT;
	ck_assert_int_eq(pipe(ready), 0);
	ck_assert_int_eq(pipe(go), 0);
	*pid = fork();
	if (*pid == 0) {
		close(go[1]);
		AUTO_FREE char *name = xasprintf("py-%s.lock", id);
		int dir = spool_find_run_dir(&app.spool, rule_sandbox.id, &err);
		int fd = lock_open(dir, name, &err);
		if (fd < 0 || !lock_take(fd, LOCK_EXCLUSIVE, 0, &err) ||
		    write(ready[1], "", 1) != 1)
			_exit(1);
		_exit(read(go[0], &c, 1) == 0 ? 0 : 1);
	}
	close(go[0]);
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return go[1];
}

static void release(int fd, pid_t pid)
{
	int status;
	close(fd);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

TEST(a_session_is_ended_when_it_was_not_used_for_the_time_of_the_setting)
{
	begin();
	start_sandbox();
	struct python_row row = make_session();
	rule_later_ms = 299 * SECOND;
	ck_assert_int_eq(rule_run(reap_python_sessions)->sessions_ended, 0);
	rule_later_ms = 300 * SECOND;
	rule_options.dry_run = true;
	ck_assert_int_eq(rule_run(reap_python_sessions)->sessions_ended, 1);
	ck_assert_int_eq(read_session(row.id).ended_at, 0);
	rule_options.dry_run = false;
	ck_assert_int_eq(rule_run(reap_python_sessions)->sessions_ended, 1);
	ck_assert_int_eq(read_session(row.id).ended_at, clock_wall_ms());
	ck_assert_int_eq(read_session(row.id).why, PYTHON_WHY_IDLE);
	ck_assert_int_eq(rule_run(reap_python_sessions)->sessions_ended, 0);
	AUTO_FREE char *lock = xasprintf("/py-%s.lock", row.id);
	ck_assert(!kit_exists("run", rule_sandbox.id, lock));
	rule_teardown();
}
TEST_END

TEST(a_session_in_a_sandbox_that_never_ran_or_is_gone_is_ended_as_well)
{
	begin();
	struct python_row row = make_session();
	rule_later_ms = HOUR;
	ck_assert_int_eq(rule_run(reap_python_sessions)->sessions_ended, 1);
	ck_assert_int_eq(read_session(row.id).why, PYTHON_WHY_IDLE);
	ck_assert(!kit_exists("run", rule_sandbox.id, ""));
	rule_teardown();
}
TEST_END

TEST(a_session_in_which_code_runs_is_left_alone_however_old_its_stamp)
{
	begin();
	pid_t pid;
	start_sandbox();
	struct python_row row = make_session();
	int go = hold_lock(row.id, &pid);
	rule_later_ms = DAY;
	rule_options.dry_run = true;
	ck_assert_int_eq(rule_run(reap_python_sessions)->sessions_ended, 0);
	rule_options.dry_run = false;
	ck_assert_int_eq(rule_run(reap_python_sessions)->sessions_ended, 0);
	struct err err = ERR_INIT;
	ck_assert_int_eq(python_end_idle(&app, &row, &err), 0);
	ck_assert_int_eq(read_session(row.id).ended_at, 0);
	release(go, pid);
	ck_assert_int_eq(rule_run(reap_python_sessions)->sessions_ended, 1);
	rule_teardown();
}
TEST_END

TEST(a_session_that_was_used_since_it_was_seen_is_not_ended)
{
	begin();
	struct err err = ERR_INIT;
	struct python_row seen = make_session();
	rule_later_ms = HOUR;
	ck_assert_int_eq(row_python_touch(app.db, seen.id, clock_wall_ms(), &err), 1);
	ck_assert_int_eq(python_end_idle(&app, &seen, &err), 0);
	ck_assert_int_eq(err.code, ERR_NONE);
	ck_assert_int_eq(read_session(seen.id).ended_at, 0);
	rule_teardown();
}
TEST_END

TEST(a_clock_that_was_set_forward_ends_no_session)
{
	begin();
	rule_record();
	struct python_row row = make_session();
	rule_jumped_ms = 365 * DAY;
	rule_record();
	ck_assert_int_eq(rule_run(reap_python_sessions)->sessions_ended, 0);
	rule_later_ms = 300 * SECOND;
	ck_assert_int_eq(rule_run(reap_python_sessions)->sessions_ended, 1);
	ck_assert_int_eq(read_session(row.id).why, PYTHON_WHY_IDLE);
	rule_teardown();
}
TEST_END

TEST(a_session_that_was_used_in_the_future_ends_all_the_same)
{
	begin();
	struct err err = ERR_INIT;
	struct python_row row = make_session();
	ck_assert_int_eq(row_python_touch(app.db, row.id, clock_wall_ms() + DAY, &err), 1);
	ck_assert_int_eq(rule_run(reap_python_sessions)->repaired, 1);
	ck_assert_int_eq(read_session(row.id).last_used_at, clock_wall_ms());
	rule_later_ms = 300 * SECOND;
	ck_assert_int_eq(rule_run(reap_python_sessions)->sessions_ended, 1);
	rule_teardown();
}
TEST_END

TEST(a_pass_that_dies_at_any_step_leaves_what_the_next_one_ends)
{
	begin();
	start_sandbox();
	struct python_row row = make_session();
	rule_later_ms = HOUR;
	for (int step = 0; rule_dies_at(reap_python_sessions, step); step++)
		ck_assert_int_lt(step, 10);
	rule_run(reap_python_sessions);
	ck_assert_int_eq(read_session(row.id).why, PYTHON_WHY_IDLE);
	rule_later_ms = 3 * DAY;
	for (int step = 0; rule_dies_at(reap_python_rows, step); step++)
		ck_assert_int_lt(step, 10);
	ck_assert(!is_known(row.id));
	rule_teardown();
}
TEST_END

TEST(an_ended_session_is_remembered_for_as_long_as_the_log_of_a_task)
{
	begin();
	struct err err = ERR_INIT;
	struct python_row row = make_session(), live = make_session();
	ck_assert_int_eq(row_python_end(app.db, row.id, PYTHON_WHY_CRASHED, clock_wall_ms(), &err),
			 1);
	rule_later_ms = DAY - 1;
	ck_assert_int_eq(rule_run(reap_python_rows)->rows_dropped, 0);
	rule_later_ms = DAY;
	rule_options.dry_run = true;
	ck_assert_int_eq(rule_run(reap_python_rows)->rows_dropped, 1);
	ck_assert(is_known(row.id));
	rule_options.dry_run = false;
	ck_assert_int_eq(rule_run(reap_python_rows)->rows_dropped, 1);
	ck_assert(!is_known(row.id) && is_known(live.id));
	ck_assert_int_eq(row_sandbox_move(app.db, rule_sandbox.id, SANDBOX_LIVE, SANDBOX_GONE,
					  clock_wall_ms(), &err),
			 1);
	ck_assert_int_eq(rule_run(reap_python_rows)->rows_dropped, 1);
	ck_assert(!is_known(live.id));
	rule_teardown();
}
TEST_END

static struct idle look(void)
{
	struct err err = ERR_INIT;
	struct timeline timeline;
	struct idle idle;
	AUTO_SANDBOX_ROW row = {0};
	ck_assert_int_eq(row_sandbox_any(app.db, rule_sandbox.id, &row, &err), 1);
	ck_ok(timeline_read(&app, &timeline, &err), err);
	idle_of(&app, &timeline, &row, &idle);
	return idle;
}

TEST(a_sandbox_is_not_stopped_while_a_session_in_it_is_not_idle_yet)
{
	begin();
	struct err err = ERR_INIT;
	conf.idle_stop = 60;
	start_sandbox();
	struct python_row row = make_session();
	int64_t used_at = row.last_used_at;
	ck_assert_int_eq(look().stop_at, used_at + 300 * SECOND);
	rule_later_ms = 299 * SECOND;
	ck_assert(!look().stop_due);
	ck_assert_int_eq(rule_run(reap_idle_stops)->stopped, 0);
	ck_assert_int_eq(sandbox_running(&app, &rule_sandbox, &err), 1);
	rule_later_ms = 300 * SECOND;
	ck_assert(look().stop_due);
	ck_assert_int_eq(rule_run(reap_idle_stops)->stopped, 1);
	ck_assert_int_eq(sandbox_running(&app, &rule_sandbox, &err), 0);
	rule_teardown();
}
TEST_END

TEST(a_session_that_ended_spares_no_sandbox)
{
	begin();
	struct err err = ERR_INIT;
	conf.idle_stop = 60;
	start_sandbox();
	struct python_row row = make_session();
	ck_assert_int_eq(row_python_end(app.db, row.id, PYTHON_WHY_EXITED, clock_wall_ms(), &err),
			 1);
	rule_later_ms = 61 * SECOND;
	ck_assert(look().stop_due);
	ck_assert_int_eq(rule_run(reap_idle_stops)->stopped, 1);
	rule_teardown();
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		a_session_is_ended_when_it_was_not_used_for_the_time_of_the_setting,
		a_session_in_a_sandbox_that_never_ran_or_is_gone_is_ended_as_well,
		a_session_in_which_code_runs_is_left_alone_however_old_its_stamp,
		a_session_that_was_used_since_it_was_seen_is_not_ended,
		a_clock_that_was_set_forward_ends_no_session,
		a_session_that_was_used_in_the_future_ends_all_the_same,
		a_pass_that_dies_at_any_step_leaves_what_the_next_one_ends,
		an_ended_session_is_remembered_for_as_long_as_the_log_of_a_task,
		a_sandbox_is_not_stopped_while_a_session_in_it_is_not_idle_yet,
		a_session_that_ended_spares_no_sandbox,
	};
	return unit_run("reap_python", unit_tests, ARRAY_LEN(unit_tests));
}
