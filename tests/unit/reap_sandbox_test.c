/* What the reaper does to sandboxes that nobody uses, and what it leaves alone. */
#include "reap_kit.h"

#include "base/lock.h"
#include "box/incarnation.h"
#include "box/task_reserve.h"

/* --- the frame ----------------------------------------------------------------------------- */

TEST(a_second_pass_leaves_while_one_runs)
{
	reap_begin();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = kit_named("work");
	reap_later(8 * DAY);
	AUTO_FD lock = lock_open(app.spool.root_fd, "reaper.lock", &err);
	ck_assert(lock_take(lock, LOCK_EXCLUSIVE, 0, &err));
	reap_now();
	ck_assert(report.other_runs);
	ck_assert(is_whole(&row));
	util_close(&lock);
	reap_now();
	ck_assert(!report.other_runs);
	ck_assert(is_away(&row));
	reap_end();
}
TEST_END

TEST(a_pass_without_anything_due_changes_nothing)
{
	reap_begin();
	AUTO_SANDBOX_ROW row = kit_named("work");
	reap_start(&row);
	reap_later(HOUR);
	reap_now();
	ck_assert(is_whole(&row) && is_up(&row));
	ck_assert_int_eq(report.removed + report.stopped + report.repaired, 0);
	ck_assert_int_eq(report.orphans_removed + report.orphans_adopted + report.left_alone, 0);
	reap_end();
}
TEST_END

TEST(a_pass_ends_with_its_budget)
{
	reap_begin();
	AUTO_SANDBOX_ROW row = kit_named("work");
	reap_later(8 * DAY);
	struct err err = ERR_INIT;
	struct reap_options options = {.budget_ms = 0};
	ck_assert(reap_pass(&app, &options, &report, &err));
	ck_assert(report.unfinished);
	ck_assert(is_whole(&row));
	reap_end();
}
TEST_END

TEST(the_trash_gets_emptier_even_when_the_budget_is_used_up)
{
	reap_begin();
	struct err err = ERR_INIT;
	struct reap_options options = {.budget_ms = 0};
	ck_assert_int_eq(mkdirat(app.spool.trash_fd, "left", 0700), 0);
	ck_assert(spool_has_trash(&app.spool));
	ck_assert(reap_pass(&app, &options, &report, &err));
	ck_assert(report.unfinished);
	ck_assert(!spool_has_trash(&app.spool));
	reap_end();
}
TEST_END

/* A clock on which ten looks take a millisecond: what a pass gets done is the same everywhere. */
static int64_t ticks;

static int64_t tick(void)
{
	return ticks++ / 10;
}

static const struct clock_source ticking = {reap_wall, tick, reap_boot,
					    "11111111-0000-4000-8000-000000000000"};

/* The names are those of one file: that takes a tenth of the time. */
static void fill_trash(int directories, int files)
{
	AUTO_FREE char *file = xasprintf("%s/.trash/one", conf.data_dir);
	close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	for (int i = 0; i < directories; i++) {
		AUTO_FREE char *path = xasprintf("%s/.trash/many-%d", conf.data_dir, i);
		ck_assert_int_eq(mkdir(path, 0700), 0);
		AUTO_FD dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		for (int k = 0; k < files; k++) {
			AUTO_FREE char *name = xasprintf("%d", k);
			ck_assert_int_eq(linkat(AT_FDCWD, file, dir, name, 0), 0);
		}
	}
}

TEST(fifty_thousand_files_are_deleted_in_slices_by_one_pass_after_the_other)
{
	reap_begin();
	fill_trash(50, 1000);
	clock_use(&ticking);
	int passes = 0;
	while (spool_has_trash(&app.spool)) {
		ck_assert(reap_try((struct reap_options){.budget_ms = 1000}));
		ck_assert_int_le(report.elapsed_ms, 1000 + 500 + 10);
		ck_assert_int_eq(report.unfinished, spool_has_trash(&app.spool));
		ck_assert_int_le(++passes, 10); /* each deletes a good part */
	}
	ck_assert_int_ge(passes, 4);
	reap_end();
}
TEST_END

TEST(a_dry_run_tells_and_changes_nothing)
{
	reap_begin();
	AUTO_SANDBOX_ROW old = kit_named("old"), kept = kit_named("kept");
	AUTO_SANDBOX_ROW brief =
		kit_create(&(struct sandbox_options){.name = "brief", .ttl_ms = HOUR});
	struct err err = ERR_INIT;
	struct sandbox_destroyed done = {0};
	ck_ok(sandbox_destroy(&app, ALICE, "kept", false, &done, &err), err);
	free(done.name);
	reap_later(8 * DAY);
	unlinkat(app.spool.root_fd, "reaper.lock", 0);
	reap_dry();
	ck_assert_int_eq(report.removed, 3);
	ck_assert(is_whole(&old) && is_whole(&brief));
	ck_assert_int_eq(state_of(kept.id), SANDBOX_KEPT);
	ck_assert(!kit_exists("run", old.id, ""));
	ck_assert_int_ne(faccessat(app.spool.root_fd, "reaper.lock", F_OK, 0), 0);
	reap_now();
	ck_assert_int_eq(report.removed, 3);
	ck_assert(is_away(&old) && is_away(&brief) && is_away(&kept));
	reap_end();
}
TEST_END

/* --- idle ---------------------------------------------------------------------------------- */

TEST(an_idle_sandbox_is_stopped_and_its_next_use_starts_it)
{
	reap_begin();
	AUTO_SANDBOX_ROW row = kit_named("work");
	reap_start(&row);
	reap_write("data", row.files_id, "/workspace/file");
	reap_later(2 * HOUR + MINUTE);
	reap_dry();
	ck_assert_int_eq(report.stopped, 1);
	ck_assert(is_up(&row));
	reap_now();
	ck_assert_int_eq(report.stopped, 1);
	ck_assert(!is_up(&row) && is_whole(&row));
	ck_assert(kit_exists("run", row.id, "/use")); /* others may wait for it */
	ck_assert(kit_exists("data", row.files_id, "/workspace/file"));
	reap_now();
	ck_assert_int_eq(report.stopped, 0);
	reap_start(&row);
	ck_assert(is_up(&row));
	reap_end();
}
TEST_END

TEST(an_idle_sandbox_is_removed_with_its_files)
{
	reap_begin();
	AUTO_SANDBOX_ROW old = kit_named("old");
	reap_start(&old);
	reap_later(7 * DAY - HOUR);
	AUTO_SANDBOX_ROW young = kit_named("young");
	reap_now();
	ck_assert(is_whole(&old));
	reap_later(HOUR + MINUTE);
	reap_now();
	ck_assert_int_eq(report.removed, 1);
	ck_assert(is_away(&old));
	ck_assert(is_whole(&young));
	reap_end();
}
TEST_END

TEST(a_sandbox_in_use_is_left_alone_however_long)
{
	reap_begin();
	AUTO_SANDBOX_ROW row = kit_named("work");
	AUTO_SANDBOX_ROW brief =
		kit_create(&(struct sandbox_options){.name = "brief", .ttl_ms = HOUR});
	pid_t pid = reap_user(&row), other = reap_user(&brief);
	for (int i = 0; i < 4; i++) {
		reap_later(30 * DAY);
		reap_now();
		ck_assert_int_eq(report.removed + report.stopped, 0);
		ck_assert(is_whole(&row) && is_up(&row));
		ck_assert(is_whole(&brief) && is_up(&brief));
	}
	reap_kill(pid);
	reap_kill(other);
	/* A use that was killed counts from when it was last seen. */
	reap_now();
	ck_assert(is_whole(&row) && is_up(&row));
	reap_later(HOUR + MINUTE);
	reap_now();
	ck_assert(is_whole(&row) && is_up(&row));
	ck_assert(is_away(&brief));
	reap_later(HOUR);
	reap_now();
	ck_assert(is_whole(&row) && !is_up(&row));
	reap_later(7 * DAY);
	reap_now();
	ck_assert(is_away(&row));
	reap_end();
}
TEST_END

TEST(a_use_between_the_look_and_the_end_wins)
{
	reap_begin();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = kit_named("work");
	AUTO_SANDBOX_ROW stale = {0};
	reap_later(8 * DAY);
	ck_assert_int_eq(row_sandbox_any(app.db, row.id, &stale, &err), 1);
	sandbox_touch(&app, &row);
	ck_assert_int_eq(row_sandbox_end(app.db, &stale, clock_wall_ms(), &err), 0);
	reap_now();
	ck_assert(is_whole(&row));
	reap_end();
}
TEST_END

/* A use of another sandbox before the first change; ctx is its row. */
static int uses_left;

static void use_other(void *ctx, const char *name)
{
	struct err err = ERR_INIT;
	const struct sandbox_row *row = ctx;
	if ((strcmp(name, "move_row") == 0 || strcmp(name, "stop") == 0) && uses_left-- > 0)
		ck_ok(row_sandbox_touch(app.db, row->id, clock_wall_ms(), 0, &err) == 1, err);
}

TEST(what_was_due_when_the_pass_looked_and_was_used_since_stays)
{
	static const struct {
		int64_t ttl_ms, later_ms;
		bool removes;
	} cases[] = {{HOUR, 2 * HOUR, true}, {0, 8 * DAY, true}, {0, 3 * HOUR, false}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		reap_begin();
		struct sandbox_options options = {.name = "first", .ttl_ms = cases[i].ttl_ms};
		AUTO_SANDBOX_ROW first = kit_create(&options);
		reap_start(&first);
		reap_later(1000); /* the oldest comes first */
		options.name = "second";
		AUTO_SANDBOX_ROW second = kit_create(&options);
		reap_start(&second);
		reap_later(cases[i].later_ms);
		uses_left = 1;
		ck_assert(reap_try((struct reap_options){.step = use_other, .ctx = &second}));
		ck_assert_int_lt(uses_left, 1);
		ck_assert(cases[i].removes ? is_away(&first) : !is_up(&first));
		ck_assert_msg(is_whole(&second) && is_up(&second), "case %zu", i);
		reap_end();
	}
}
TEST_END

TEST(what_is_used_in_the_last_moment_stays)
{
	reap_begin();
	AUTO_SANDBOX_ROW row = kit_named("work");
	reap_later(8 * DAY);
	uses_left = 1;
	ck_assert(reap_try((struct reap_options){.step = use_other, .ctx = &row}));
	ck_assert_int_lt(uses_left, 1);
	ck_assert(is_whole(&row));
	reap_end();
}
TEST_END

static void destroy_second(void *ctx, const char *name)
{
	struct err err = ERR_INIT;
	struct sandbox_destroyed done = {.name = NULL};
	if (strcmp(name, "move_row") != 0 || uses_left-- <= 0)
		return;
	ck_ok(sandbox_destroy(&app, ALICE, ctx, true, &done, &err), err);
	free(done.name);
}

TEST(of_what_was_destroyed_since_the_pass_looked_nothing_is_made_anew)
{
	reap_begin();
	AUTO_SANDBOX_ROW first = kit_named("first");
	reap_later(1000);
	AUTO_SANDBOX_ROW second = kit_named("second");
	reap_later(8 * DAY);
	uses_left = 1;
	struct reap_options options = {.step = destroy_second, .ctx = second.name};
	ck_assert(reap_try(options));
	ck_assert_int_lt(uses_left, 1);
	ck_assert_int_eq(report.removed, 1);
	ck_assert(is_away(&first) && is_away(&second));
	reap_end();
}
TEST_END

TEST(a_task_that_is_about_to_run_keeps_its_sandbox)
{
	reap_begin();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = kit_named("work");
	reap_start(&row);
	reap_later(8 * DAY);
	AUTO_TASK_ROW task = {0};
	task_row_make(&row, &(struct exec_options){.command = "true", .timeout_ms = HOUR},
		      TASK_ORIGIN_TASK, NULL, &task);
	ck_ok(task_reserve(&app, &row, &task, &err) == 1, err);
	reap_now();
	ck_assert_int_eq(report.removed + report.stopped, 0);
	ck_assert(is_whole(&row) && is_up(&row));
	reap_end();
}
TEST_END

TEST(who_waits_for_a_sandbox_that_is_being_stopped_gets_it)
{
	reap_begin();
	AUTO_SANDBOX_ROW row = kit_named("work");
	reap_start(&row);
	reap_later(3 * HOUR);
	kit_slow_ms = 300;
	app_close(&app);
	pid_t pid = fork();
	if (pid == 0) {
		struct err err = ERR_INIT;
		AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
		kit_reopen();
		while (kit_count('X') == 0)
			clock_sleep_ms(1);
		bool ok = sandbox_enter(&app, &row, &use, &err) &&
			  sandbox_start(&app, &row, &use, &err) &&
			  app.runtime->alive(&use.box, &err) == 1;
		_exit(ok ? 0 : 1);
	}
	kit_open();
	reap_now();
	ck_assert_int_eq(report.stopped, 1);
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	ck_assert(is_up(&row));
	reap_end();
}
TEST_END

TEST(who_waits_for_a_sandbox_that_is_being_removed_is_told)
{
	reap_begin();
	AUTO_SANDBOX_ROW row = kit_named("work");
	reap_start(&row);
	reap_later(8 * DAY);
	kit_slow_ms = 300;
	app_close(&app);
	pid_t pid = fork();
	if (pid == 0) {
		struct err err = ERR_INIT;
		AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
		kit_reopen();
		while (kit_count('X') == 0)
			clock_sleep_ms(1);
		int64_t start = clock_mono_ms();
		bool ok = sandbox_enter(&app, &row, &use, &err);
		_exit(!ok && err.code == ERR_DESTROYED && clock_mono_ms() - start < 2000 ? 0 : 1);
	}
	kit_open();
	reap_now();
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	reap_now();
	ck_assert(is_away(&row));
	reap_end();
}
TEST_END

static void expect_free_lock(void *ctx, const char *name)
{
	if (strcmp(name, "row_moved") == 0)
		ck_assert(!incarnation_is_used(&app, ctx));
}

TEST(nobody_waits_for_the_removal_itself)
{
	reap_begin();
	AUTO_SANDBOX_ROW row = kit_named("work");
	reap_later(8 * DAY);
	ck_assert(reap_try((struct reap_options){.step = expect_free_lock, .ctx = row.id}));
	ck_assert(is_away(&row));
	reap_end();
}
TEST_END

/* --- lifetimes, kept files ----------------------------------------------------------------- */

TEST(a_lifetime_that_is_over_ends_a_sandbox_and_one_that_is_not_keeps_it)
{
	reap_begin();
	AUTO_SANDBOX_ROW brief =
		kit_create(&(struct sandbox_options){.name = "brief", .ttl_ms = HOUR});
	AUTO_SANDBOX_ROW lasting =
		kit_create(&(struct sandbox_options){.name = "lasting", .ttl_ms = 30 * DAY});
	reap_later(59 * MINUTE);
	reap_now();
	ck_assert(is_whole(&brief));
	reap_later(2 * MINUTE);
	reap_now();
	ck_assert(is_away(&brief));
	reap_later(20 * DAY);
	reap_now();
	ck_assert(is_whole(&lasting)); /* not for being idle */
	reap_later(11 * DAY);
	reap_now();
	ck_assert(is_away(&lasting));
	reap_end();
}
TEST_END

TEST(kept_files_go_a_while_after_the_destroy_however_old_they_were)
{
	reap_begin();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = kit_named("work");
	struct sandbox_destroyed done = {0};
	reap_later(6 * DAY);
	ck_ok(sandbox_destroy(&app, ALICE, "work", false, &done, &err), err);
	free(done.name);
	reap_later(6 * DAY);
	reap_now();
	ck_assert_int_eq(state_of(row.id), SANDBOX_KEPT);
	ck_assert(kit_exists("data", row.files_id, "/workspace"));
	reap_later(DAY + HOUR);
	reap_now();
	ck_assert(is_away(&row));
	reap_end();
}
TEST_END

TEST(kept_files_that_were_taken_over_stay)
{
	reap_begin();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = kit_named("work");
	struct sandbox_destroyed done = {0};
	ck_ok(sandbox_destroy(&app, ALICE, "work", false, &done, &err), err);
	free(done.name);
	reap_later(6 * DAY);
	AUTO_SANDBOX_ROW next = kit_named("work");
	ck_assert_str_eq(next.files_id, row.files_id);
	reap_later(6 * DAY);
	reap_now();
	ck_assert(is_whole(&next));
	ck_assert_int_eq(report.removed + report.orphans_removed, 0);
	reap_end();
}
TEST_END

/* --- clocks and damage --------------------------------------------------------------------- */

TEST(a_jump_of_ten_years_is_waited_out_and_makes_nothing_old)
{
	reap_begin();
	AUTO_SANDBOX_ROW row = kit_named("work");
	AUTO_SANDBOX_ROW brief =
		kit_create(&(struct sandbox_options){.name = "brief", .ttl_ms = HOUR});
	reap_jump(10 * YEAR);
	reap_now();
	ck_assert(report.jumped);
	ck_assert(is_whole(&row) && is_whole(&brief));
	reap_now();
	ck_assert(!report.jumped);
	ck_assert(is_whole(&row) && is_whole(&brief));
	reap_later(2 * HOUR);
	reap_now();
	ck_assert(is_whole(&row) && is_away(&brief)); /* nor does it keep for ever */
	reap_jump(-10 * YEAR);
	reap_now();
	ck_assert(report.jumped && is_whole(&row));
	reap_later(6 * DAY);
	reap_now();
	ck_assert(is_whole(&row));
	reap_later(DAY);
	reap_now();
	ck_assert(is_away(&row));
	reap_end();
}
TEST_END

TEST(a_clock_set_back_keeps_nothing_for_ever)
{
	reap_begin();
	reap_later(2 * DAY);
	reap_now();
	AUTO_SANDBOX_ROW row = kit_named("work");
	AUTO_SANDBOX_ROW brief =
		kit_create(&(struct sandbox_options){.name = "brief", .ttl_ms = HOUR});
	reap_jump(-DAY);
	reap_now();
	ck_assert(report.jumped);
	ck_assert_int_eq(report.repaired, 0);
	reap_now();
	ck_assert_int_eq(report.repaired, 2);
	ck_assert(is_whole(&row) && is_whole(&brief));
	reap_later(HOUR + MINUTE);
	reap_now();
	ck_assert(is_whole(&row) && is_away(&brief));
	reap_later(7 * DAY);
	reap_now();
	ck_assert(is_away(&row));
	reap_end();
}
TEST_END

TEST(a_stamp_from_the_future_becomes_now)
{
	reap_begin();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = kit_named("work");
	AUTO_SANDBOX_ROW now = {0};
	kit_sql("UPDATE sandbox SET last_used_at = last_used_at + 86400000000");
	reap_dry();
	ck_assert_int_eq(report.repaired, 1);
	reap_now();
	ck_assert_int_eq(report.repaired, 1);
	ck_assert_int_eq(row_sandbox_any(app.db, row.id, &now, &err), 1);
	ck_assert_int_le(now.last_used_at, clock_wall_ms());
	ck_assert_int_ge(now.last_used_at, row.last_used_at);
	reap_now();
	ck_assert_int_eq(report.repaired, 0);
	ck_assert(is_whole(&row));
	reap_end();
}
TEST_END

TEST(a_damaged_row_is_left_alone_and_said)
{
	reap_begin();
	static const char *const damages[] = {
		"last_used_at = 0",
		"last_used_at = -1",
		"last_used_at = 86400000",
		"ttl_ms = 1000, expires_at = 1",
		"ttl_ms = -1000, expires_at = 1",
		"state = 'kept', ended_at = NULL",
		"state = 'kept', ended_at = 0",
		"state = 'kept', ended_at = -77",
	};
	AUTO_SANDBOX_ROW row = kit_named("work");
	reap_later(30 * DAY);
	for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
		AUTO_FREE char *sql = xasprintf("UPDATE sandbox SET %s", damages[i]);
		AUTO_FREE char *fine =
			xasprintf("UPDATE sandbox SET state = 'live', ttl_ms = 0, expires_at = 0,"
				  " ended_at = NULL, last_used_at = %lld",
				  (long long)clock_wall_ms());
		kit_sql(fine);
		kit_sql(sql);
		reap_now();
		ck_assert_msg(report.left_alone == 1 && report.removed == 0, "%s: %d left, %d gone",
			      damages[i], (int)report.left_alone, (int)report.removed);
		ck_assert(kit_exists("data", row.files_id, "/workspace"));
	}
	reap_end();
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		a_second_pass_leaves_while_one_runs,
		a_pass_without_anything_due_changes_nothing,
		a_pass_ends_with_its_budget,
		the_trash_gets_emptier_even_when_the_budget_is_used_up,
		fifty_thousand_files_are_deleted_in_slices_by_one_pass_after_the_other,
		a_dry_run_tells_and_changes_nothing,
		an_idle_sandbox_is_stopped_and_its_next_use_starts_it,
		an_idle_sandbox_is_removed_with_its_files,
		a_sandbox_in_use_is_left_alone_however_long,
		a_use_between_the_look_and_the_end_wins,
		what_was_due_when_the_pass_looked_and_was_used_since_stays,
		what_is_used_in_the_last_moment_stays,
		of_what_was_destroyed_since_the_pass_looked_nothing_is_made_anew,
		a_task_that_is_about_to_run_keeps_its_sandbox,
		who_waits_for_a_sandbox_that_is_being_stopped_gets_it,
		who_waits_for_a_sandbox_that_is_being_removed_is_told,
		nobody_waits_for_the_removal_itself,
		a_lifetime_that_is_over_ends_a_sandbox_and_one_that_is_not_keeps_it,
		kept_files_go_a_while_after_the_destroy_however_old_they_were,
		kept_files_that_were_taken_over_stay,
		a_jump_of_ten_years_is_waited_out_and_makes_nothing_old,
		a_clock_set_back_keeps_nothing_for_ever,
		a_stamp_from_the_future_becomes_now,
		a_damaged_row_is_left_alone_and_said,
	};
	return unit_run("reap_sandbox", tests, ARRAY_LEN(tests));
}
