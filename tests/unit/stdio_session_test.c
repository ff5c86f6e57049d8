/* What goes at the end of a stdio session, what stays, and who cleans up after a killed one. */
#include "box/stdio_session.h"

#include <dirent.h>

#include "box/task_reserve.h"
#include "sandbox_kit.h"

static struct stdio_session session;

static void begin(void)
{
	struct err err = ERR_INIT;
	ck_ok(stdio_session_begin(&app, &session, &err), err);
}

static struct sandbox_row unnamed(void)
{
	return kit_create(&(struct sandbox_options){.is_explicit = true});
}

static enum sandbox_state state_of(const char *id)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	ck_assert_int_eq(row_sandbox_by_id(app.db, ALICE, id, &row, &err), 1);
	return row.state;
}

/* The row of a task as a start makes it. */
static void start_task(const struct sandbox_row *sandbox)
{
	struct err err = ERR_INIT;
	AUTO_TASK_ROW row = {0};
	task_row_make(sandbox, &(struct exec_options){.command = "true", .timeout_ms = 1000},
		      TASK_ORIGIN_TASK, NULL, &row);
	ck_ok(task_reserve(&app, sandbox, &row, &err) == 1, err);
}

/* A process that makes a sandbox in a session and is killed; its id goes to id. */
static void killed_session(char id[static ID_LEN + 1], bool with_task)
{
	int ends[2];
	ck_assert_int_eq(pipe(ends), 0);
	app_close(&app);
	pid_t pid = fork();
	if (pid == 0) {
		kit_reopen();
		begin();
		struct sandbox_row row = unnamed();
		if (with_task)
			start_task(&row);
		if (write(ends[1], row.id, ID_LEN + 1) != ID_LEN + 1)
			_exit(1);
		raise(SIGKILL);
	}
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(read(ends[0], id, ID_LEN + 1), ID_LEN + 1);
	close(ends[0]);
	close(ends[1]);
	kit_open();
}

/* Lock files of sessions. */
static int sessions(void)
{
	AUTO_FREE char *path = xasprintf("%s/sessions", conf.spool);
	int found = 0;
	DIR *dir = opendir(path);
	for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
		found += id_is_valid(entry->d_name);
	if (dir != NULL)
		closedir(dir);
	return found;
}

TEST(a_sandbox_without_a_name_goes_with_its_session)
{
	setup();
	struct err err = ERR_INIT;
	begin();
	AUTO_SANDBOX_ROW row = unnamed();
	ck_assert(row.ends_with_session);
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	ck_ok(sandbox_enter(&app, &row, &use, &err) && sandbox_start(&app, &row, &use, &err), err);
	sandbox_leave(&use);
	stdio_session_end(&app, &session);
	ck_assert_int_eq(state_of(row.id), SANDBOX_GONE);
	ck_assert(!kit_exists("data", row.files_id, ""));
	ck_assert(!kit_exists("run", row.id, ""));
	ck_assert_int_eq(kit_count('X'), 1);
	ck_assert_int_eq(sessions(), 0);
	teardown();
}
TEST_END

TEST(a_named_one_and_one_of_somebody_else_stay)
{
	setup();
	AUTO_SANDBOX_ROW before = unnamed();
	begin();
	AUTO_SANDBOX_ROW named = kit_named("work");
	ck_assert(!named.ends_with_session);
	stdio_session_end(&app, &session);
	ck_assert_int_eq(state_of(before.id), SANDBOX_LIVE);
	ck_assert_int_eq(state_of(named.id), SANDBOX_LIVE);
	teardown();
}
TEST_END

TEST(a_task_that_was_started_in_it_keeps_it)
{
	setup();
	begin();
	AUTO_SANDBOX_ROW row = unnamed();
	start_task(&row);
	stdio_session_end(&app, &session);
	ck_assert_int_eq(state_of(row.id), SANDBOX_LIVE);
	ck_assert(kit_exists("data", row.files_id, "/workspace"));
	ck_assert_int_eq(sessions(), 0);
	teardown();
}
TEST_END

TEST(the_default_sandbox_is_one_of_this_session)
{
	setup();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW found = {0};
	AUTO_SANDBOX_ROW other = unnamed();
	ck_assert(!other.ends_with_session);
	begin();
	ck_assert(!sandbox_find_default(&app, ALICE, &found, &err));
	ck_assert_int_eq(err.code, ERR_NOT_FOUND);
	ck_assert_ptr_nonnull(strstr(err.msg, "in this session"));
	AUTO_SANDBOX_ROW mine =
		kit_create(&(struct sandbox_options){.name = "mine", .is_explicit = true});
	ck_ok(sandbox_find_default(&app, ALICE, &found, &err), err);
	ck_assert_str_eq(found.id, mine.id);
	stdio_session_end(&app, &session);
	sandbox_row_finish(&found);
	clock_sleep_ms(2);
	AUTO_SANDBOX_ROW newest = unnamed();
	ck_ok(sandbox_find_default(&app, ALICE, &found, &err), err);
	ck_assert_str_eq(found.id, newest.id);
	teardown();
}
TEST_END

TEST(what_a_killed_session_left_goes_at_the_next_sweep)
{
	setup();
	char id[ID_LEN + 1], kept[ID_LEN + 1];
	killed_session(id, false);
	killed_session(kept, true);
	ck_assert_int_eq(state_of(id), SANDBOX_LIVE);
	ck_assert_int_eq(sessions(), 2);
	stdio_session_sweep(&app, 5000);
	ck_assert_int_eq(state_of(id), SANDBOX_GONE);
	ck_assert(!kit_exists("data", id, ""));
	ck_assert_int_eq(state_of(kept), SANDBOX_LIVE);
	ck_assert_int_eq(sessions(), 0);
	teardown();
}
TEST_END

TEST(a_session_that_lives_is_not_swept)
{
	setup();
	begin();
	AUTO_SANDBOX_ROW row = unnamed();
	struct app here = app;
	ck_assert_int_eq(sessions(), 1);
	/* The lock is another process's for whoever opens the file anew. */
	stdio_session_sweep(&here, 5000);
	ck_assert_int_eq(state_of(row.id), SANDBOX_LIVE);
	ck_assert_int_eq(sessions(), 1);
	stdio_session_end(&app, &session);
	teardown();
}
TEST_END

TEST(a_sweep_without_time_leaves_all_to_the_next)
{
	setup();
	char id[ID_LEN + 1];
	killed_session(id, false);
	stdio_session_sweep(&app, 0);
	ck_assert_int_eq(state_of(id), SANDBOX_LIVE);
	ck_assert_int_eq(sessions(), 1);
	stdio_session_sweep(&app, 5000);
	ck_assert_int_eq(state_of(id), SANDBOX_GONE);
	teardown();
}
TEST_END

TEST(a_clean_up_that_was_killed_half_way_is_finished_by_the_next)
{
	setup();
	struct err err = ERR_INIT;
	char id[ID_LEN + 1];
	killed_session(id, false);
	ck_assert_int_eq(row_sandbox_end_with_session(app.db, id, 1, &err), 1);
	ck_assert(kit_exists("data", id, "/workspace"));
	stdio_session_sweep(&app, 5000);
	ck_assert(!kit_exists("data", id, ""));
	ck_assert_int_eq(sessions(), 0);
	teardown();
}
TEST_END

TEST(files_that_a_newer_sandbox_took_over_are_not_removed)
{
	setup();
	struct err err = ERR_INIT;
	struct sandbox_destroyed done = {0};
	begin();
	AUTO_SANDBOX_ROW old = unnamed();
	ck_ok(sandbox_destroy(&app, ALICE, old.name, false, &done, &err), err);
	AUTO_FREE char *name = done.name;
	AUTO_SANDBOX_ROW heir = kit_named(name);
	ck_assert_str_eq(heir.files_id, old.files_id);
	stdio_session_end(&app, &session);
	ck_assert_int_eq(state_of(heir.id), SANDBOX_LIVE);
	ck_assert(kit_exists("data", heir.files_id, "/workspace"));
	teardown();
}
TEST_END

/* Each begins, makes one, ends; half of them are killed instead. */
static int come_and_go(int index)
{
	begin();
	struct sandbox_row row = unnamed();
	sandbox_row_finish(&row);
	stdio_session_sweep(&app, 5000);
	if (index % 2 == 0)
		stdio_session_end(&app, &session);
	return 0;
}

TEST(sessions_that_come_and_go_at_once_leave_nothing)
{
	setup();
	int statuses[100];
	conf.max_sandboxes = 1000;
	kit_run(16, come_and_go, statuses);
	ck_assert_int_eq(statuses[0], 16);
	stdio_session_sweep(&app, 20000);
	struct err err = ERR_INIT;
	ck_assert_int_eq(row_sandbox_count_live(app.db, &err), 0);
	ck_assert_int_eq(sessions(), 0);
	teardown();
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		a_sandbox_without_a_name_goes_with_its_session,
		a_named_one_and_one_of_somebody_else_stay,
		a_task_that_was_started_in_it_keeps_it,
		the_default_sandbox_is_one_of_this_session,
		what_a_killed_session_left_goes_at_the_next_sweep,
		a_session_that_lives_is_not_swept,
		a_sweep_without_time_leaves_all_to_the_next,
		a_clean_up_that_was_killed_half_way_is_finished_by_the_next,
		files_that_a_newer_sandbox_took_over_are_not_removed,
		sessions_that_come_and_go_at_once_leave_nothing,
	};
	return unit_run("stdio_session", unit_tests, ARRAY_LEN(unit_tests));
}
