/* The reaper's rules about tasks. */
#include "rule_kit.h"

#include <poll.h>

#include "base/lock.h"
#include "box/task.h"

/* --- supervisors --------------------------------------------------------------------------- */

enum manner { OBEDIENT, DEAF, STOPPED };

static void obey(int dirfd, int ctl)
{
	struct err err = ERR_INIT;
	char order;
	struct pollfd fd = {.fd = ctl, .events = POLLIN};
	poll(&fd, 1, 20000);
	if (read(ctl, &order, 1) != 1 || order != TASK_ORDER_CANCEL)
		_exit(1);
	struct task_row row = {
		.state = TASK_CANCELLED, .signal = SIGTERM, .finished_at = rule_wall()};
	_exit(task_dir_write_result(dirfd, &row, &err) ? 0 : 1);
}

/* A process that holds the lock of a task. */
static pid_t supervise_as(int dirfd, enum manner manner)
{
	int ready[2];
	char c;
	ck_assert_int_eq(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct err err = ERR_INIT;
		int ctl = manner == OBEDIENT ? task_dir_open_orders(dirfd, &err) : -1;
		if (task_dir_take_lock(dirfd, &err) < 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		if (manner == OBEDIENT)
			obey(dirfd, ctl);
		for (;;)
			pause();
	}
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	if (manner == STOPPED)
		kill(pid, SIGSTOP);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static bool is_alive(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) == 0;
}

/* --- lost ---------------------------------------------------------------------------------- */

TEST(a_task_whose_supervisor_died_is_settled_as_unknown_and_one_that_runs_is_left_alone)
{
	rule_setup();
	struct task_row lost = rule_task(HOUR), runs = rule_task(HOUR);
	close(rule_task_dir(lost.id));
	AUTO_FD runs_fd = rule_task_dir(runs.id);
	pid_t pid = supervise_as(runs_fd, DEAF);

	rule_options.dry_run = true;
	ck_assert_int_eq(rule_run(reap_lost_tasks)->tasks_settled, 1);
	rule_task_is(lost.id, TASK_RUNNING);
	rule_options.dry_run = false;

	ck_assert_int_eq(rule_run(reap_lost_tasks)->tasks_settled, 1);
	ck_assert_int_eq(rule_report.looked_at, 2);
	ck_assert_int_eq(rule_report.failed, 0);
	AUTO_TASK_ROW row = rule_read_task(lost.id);
	ck_assert_int_eq(row.state, TASK_UNKNOWN);
	ck_assert_ptr_nonnull(strstr(row.reason, "was killed"));
	rule_task_is(runs.id, TASK_RUNNING);
	ck_assert_int_eq(rule_run(reap_lost_tasks)->tasks_settled, 0);
	ck_assert(is_alive(pid));
	end(pid);
	rule_teardown();
}
TEST_END

TEST(a_result_that_is_on_disk_reaches_its_row)
{
	rule_setup();
	struct err err = ERR_INIT;
	struct task_row task = rule_task(HOUR);
	AUTO_FD fd = rule_task_dir(task.id);
	struct task_row outcome = {.state = TASK_FAILED,
				   .has_exit_code = true,
				   .exit_code = 7,
				   .finished_at = clock_wall_ms()};
	ck_ok(task_dir_write_result(fd, &outcome, &err), err);
	ck_assert_int_eq(rule_run(reap_lost_tasks)->tasks_settled, 1);
	AUTO_TASK_ROW row = rule_read_task(task.id);
	ck_assert_int_eq(row.state, TASK_FAILED);
	ck_assert_int_eq(row.exit_code, 7);
	rule_teardown();
}
TEST_END

TEST(a_start_has_its_time_before_it_counts_as_dead)
{
	rule_setup();
	struct task_row task = rule_task(HOUR);
	rule_later_ms = 10 * SECOND;
	ck_assert_int_eq(rule_run(reap_lost_tasks)->tasks_settled, 0);
	rule_task_is(task.id, TASK_RUNNING);
	rule_later_ms = 20 * SECOND;
	ck_assert_int_eq(rule_run(reap_lost_tasks)->tasks_settled, 1);
	rule_task_is(task.id, TASK_UNKNOWN);
	rule_teardown();
}
TEST_END

/* --- overdue ------------------------------------------------------------------------------- */

TEST(nobody_is_disturbed_before_the_timeout_and_its_grace_are_over)
{
	rule_setup();
	struct task_row task = rule_task(10 * HOUR);
	AUTO_FD fd = rule_task_dir(task.id);
	pid_t pid = supervise_as(fd, STOPPED);
	static const int64_t times[] = {HOUR, 10 * HOUR, 10 * HOUR + 80 * SECOND};
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		rule_later_ms = times[i];
		ck_assert_int_eq(rule_run(reap_overdue_tasks)->tasks_ended, 0);
		ck_assert(is_alive(pid));
	}
	/* Nor when the machine slept meanwhile: the supervisor's clock stood still. */
	rule_later_ms = HOUR;
	rule_slept_ms = 20 * HOUR;
	ck_assert_int_eq(rule_run(reap_overdue_tasks)->tasks_ended, 0);
	ck_assert(is_alive(pid));
	rule_task_is(task.id, TASK_RUNNING);
	end(pid);
	rule_teardown();
}
TEST_END

TEST(an_overdue_task_is_cancelled_by_its_own_supervisor_if_that_listens)
{
	rule_setup();
	struct task_row task = rule_task(HOUR);
	AUTO_FD fd = rule_task_dir(task.id);
	pid_t pid = supervise_as(fd, OBEDIENT);
	rule_later_ms = 2 * HOUR;
	rule_options.dry_run = true;
	ck_assert_int_eq(rule_run(reap_overdue_tasks)->tasks_ended, 1);
	ck_assert(is_alive(pid));
	rule_options.dry_run = false;
	ck_assert_int_eq(rule_run(reap_overdue_tasks)->tasks_ended, 1);
	ck_assert_int_eq(rule_report.failed, 0);
	rule_task_is(task.id, TASK_CANCELLED);
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	rule_teardown();
}
TEST_END

TEST(an_overdue_task_whose_supervisor_is_dead_is_left_to_the_rule_about_those)
{
	rule_setup();
	struct task_row task = rule_task(HOUR);
	close(rule_task_dir(task.id));
	rule_later_ms = 2 * HOUR;
	ck_assert_int_eq(rule_run(reap_overdue_tasks)->tasks_ended, 0);
	rule_task_is(task.id, TASK_RUNNING);
	ck_assert_int_eq(rule_run(reap_lost_tasks)->tasks_settled, 1);
	AUTO_TASK_ROW row = rule_read_task(task.id);
	ck_assert_ptr_null(strstr(row.reason, "clean-up"));
	rule_later_ms = 0;
	rule_teardown();
}
TEST_END

TEST(a_stuck_supervisor_is_killed_and_the_reason_says_so)
{
	rule_setup();
	struct task_row task = rule_task(HOUR), other = rule_task(HOUR);
	AUTO_FD fd = rule_task_dir(task.id);
	AUTO_FD other_fd = rule_task_dir(other.id);
	kit_sql("UPDATE task SET timeout_ms = 36000000 WHERE id > ''");
	pid_t pid = supervise_as(fd, STOPPED), other_pid = supervise_as(other_fd, DEAF);
	AUTO_FREE char *sql =
		xasprintf("UPDATE task SET timeout_ms = 3600000 WHERE id = '%s'", task.id);
	kit_sql(sql);
	/* Who only has the lock file open is nobody to kill. */
	AUTO_FD looks = openat(fd, "alive", O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(lock_is_held(looks), 1);
	rule_later_ms = 2 * HOUR;
	ck_assert_int_eq(rule_run(reap_overdue_tasks)->tasks_ended, 1);
	ck_assert_int_eq(rule_report.failed, 0);
	AUTO_TASK_ROW row = rule_read_task(task.id);
	ck_assert_int_eq(row.state, TASK_UNKNOWN);
	ck_assert_ptr_nonnull(strstr(row.reason, "timeout passed"));
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	ck_assert(is_alive(other_pid));
	rule_task_is(other.id, TASK_RUNNING);
	end(other_pid);
	rule_teardown();
}
TEST_END

TEST(a_pass_that_dies_while_it_ends_a_task_is_made_good_by_the_next)
{
	bool died = true;
	for (int step = 0; died; step++) {
		rule_setup();
		struct task_row task = rule_task(HOUR);
		AUTO_FD fd = rule_task_dir(task.id);
		pid_t pid = supervise_as(fd, STOPPED);
		rule_later_ms = 2 * HOUR;
		died = rule_dies_at(reap_overdue_tasks, step);
		ck_assert(died || step >= 3);
		rule_run(reap_overdue_tasks);
		rule_run(reap_lost_tasks);
		rule_task_is(task.id, TASK_UNKNOWN);
		ck_assert(!is_alive(pid));
		rule_later_ms = 0;
		rule_teardown();
	}
}
TEST_END

/* --- starts -------------------------------------------------------------------------------- */

TEST(what_a_start_left_stays_until_its_row_does_not_read_running_any_more)
{
	rule_setup();
	struct err err = ERR_INIT;
	struct task_row task = rule_task(HOUR);
	AUTO_JSON *spec = json_literal("{}");
	AUTO_FD dir = task_dir_make(&app.spool, task.id, spec, &err);
	ck_ok(dir >= 0, err);
	const struct timespec long_ago[2] = {{.tv_sec = RULE_START / 1000 - 86400},
					     {.tv_sec = RULE_START / 1000 - 86400}};
	ck_assert_int_eq(futimens(dir, long_ago), 0);
	ck_assert_int_eq(rule_run(reap_orphan_tasks)->orphans_removed, 0);
	kit_sql("UPDATE task SET state = 'unknown'");
	ck_assert_int_eq(rule_run(reap_orphan_tasks)->orphans_removed, 1);
	rule_teardown();
}
TEST_END

/* --- logs ---------------------------------------------------------------------------------- */

TEST(a_log_goes_when_its_time_is_over_and_the_task_still_tells_how_it_ended)
{
	rule_setup();
	struct err err = ERR_INIT;
	struct task_row task = rule_ended_task(), runs = rule_task(365 * DAY);
	AUTO_FD runs_fd = rule_task_dir(runs.id);
	pid_t pid = supervise_as(runs_fd, DEAF);

	rule_later_ms = DAY - SECOND;
	ck_assert_int_eq(rule_run(reap_task_logs)->logs_pruned, 0);
	ck_assert(kit_exists("tasks", task.id, "/result"));
	rule_later_ms = DAY;
	rule_options.dry_run = true;
	ck_assert_int_eq(rule_run(reap_task_logs)->logs_pruned, 1);
	ck_assert(kit_exists("tasks", task.id, "/result"));
	rule_options.dry_run = false;
	ck_assert_int_eq(rule_run(reap_task_logs)->logs_pruned, 1);
	ck_assert(!kit_exists("tasks", task.id, ""));
	ck_assert_int_eq(rule_run(reap_task_logs)->logs_pruned, 0);
	ck_assert(kit_exists("tasks", runs.id, "/alive"));

	AUTO_TASK_ROW row = {.id = ""};
	ck_ok(task_find(&app, ALICE, task.id, NULL, &row, &err), err);
	ck_assert_int_eq(row.state, TASK_SUCCEEDED);
	ck_assert_int_eq(task_log(&app, &row, &err), -1);
	ck_assert_int_eq(err.code, ERR_GONE);
	ck_assert_ptr_nonnull(strstr(err.msg, "86400 s"));
	end(pid);
	rule_teardown();
}
TEST_END

TEST(many_logs_go_in_slices_and_a_pass_that_dies_among_them_is_made_good_by_the_next)
{
	rule_setup();
	struct task_row tasks[3];
	for (int step = 0;; step++) {
		for (size_t i = 0; i < ARRAY_LEN(tasks); i++)
			tasks[i] = rule_ended_task();
		rule_later_ms += 2 * DAY;
		bool died = rule_dies_at(reap_task_logs, step);
		rule_run(reap_task_logs);
		ck_assert_int_eq(rule_report.failed, 0);
		for (size_t i = 0; i < ARRAY_LEN(tasks); i++) {
			ck_assert(!kit_exists("tasks", tasks[i].id, ""));
			rule_task_is(tasks[i].id, TASK_SUCCEEDED);
		}
		ck_assert_int_eq(rule_run(reap_task_logs)->logs_pruned, 0);
		if (!died) {
			ck_assert_int_ge(step, 4);
			break;
		}
	}
	rule_teardown();
}
TEST_END

TEST(a_pass_without_time_leaves_the_logs_for_the_next)
{
	rule_setup();
	struct task_row task = rule_ended_task();
	rule_later_ms = 2 * DAY;
	rule_options.budget_ms = 0;
	ck_assert_int_eq(rule_run(reap_task_logs)->logs_pruned, 0);
	ck_assert(rule_report.unfinished);
	ck_assert(kit_exists("tasks", task.id, "/result"));
	rule_teardown();
}
TEST_END

TEST(a_task_that_ended_in_the_future_keeps_its_log_for_the_retention_and_not_for_ever)
{
	rule_setup();
	rule_later_ms = 3650 * DAY;
	struct task_row task = rule_ended_task();
	rule_later_ms = 0; /* the clock was set right */
	ck_assert_int_eq(rule_run(reap_task_logs)->logs_pruned, 0);
	ck_assert_int_eq(rule_report.repaired, 1);
	ck_assert(kit_exists("tasks", task.id, "/result"));
	rule_later_ms = 2 * DAY;
	ck_assert_int_eq(rule_run(reap_task_logs)->logs_pruned, 1);
	ck_assert(!kit_exists("tasks", task.id, ""));
	rule_teardown();
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		a_task_whose_supervisor_died_is_settled_as_unknown_and_one_that_runs_is_left_alone,
		a_result_that_is_on_disk_reaches_its_row,
		a_start_has_its_time_before_it_counts_as_dead,
		nobody_is_disturbed_before_the_timeout_and_its_grace_are_over,
		an_overdue_task_is_cancelled_by_its_own_supervisor_if_that_listens,
		an_overdue_task_whose_supervisor_is_dead_is_left_to_the_rule_about_those,
		a_stuck_supervisor_is_killed_and_the_reason_says_so,
		a_pass_that_dies_while_it_ends_a_task_is_made_good_by_the_next,
		what_a_start_left_stays_until_its_row_does_not_read_running_any_more,
		a_log_goes_when_its_time_is_over_and_the_task_still_tells_how_it_ended,
		many_logs_go_in_slices_and_a_pass_that_dies_among_them_is_made_good_by_the_next,
		a_pass_without_time_leaves_the_logs_for_the_next,
		a_task_that_ended_in_the_future_keeps_its_log_for_the_retention_and_not_for_ever,
	};
	return unit_run("reap_task", unit_tests, ARRAY_LEN(unit_tests));
}
