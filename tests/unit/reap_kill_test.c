/*
 * A pass that is killed at any of its steps, with something to do for each rule at once and
 * something beside it that must stay: the next pass makes good what is missing, and a third finds
 * nothing to do.
 */
#include "reap_kit.h"

#include "box/about.h"
#include "box/task_settle.h"
#include "store/row_link.h"
#include "store/row_task.h"
#include "store/task_dir.h"

#define KILLED    50 /* exit status of a pass that died at its step */
#define STEPS_MAX 200
#define LOG_BYTES (10 * 1024 * 1024 + 1)

/* --- what there is ------------------------------------------------------------------------- */

/* Sandboxes by what becomes of them. */
enum {
	/* removed, and nothing of them is left */
	IDLE,                   /* not used for days, and it runs */
	BRIEF,                  /* its lifetime is over */
	KEPT,                   /* destroyed days ago, files kept */
	HALF_ENDED,             /* its row went, then the process that ended it died */
	NO_FILES,               /* its files are missing */
	OF_SESSION,             /* of a stdio session that died */
	LONG_GONE,              /* destroyed long ago: its row goes, too, with a task and a link */
	STRAY_RUN,              /* a holder without a row */
	STRAY_EMPTY,            /* files without a row that hold nothing */
	REMOVED_END_,           /* stay: */
	STOPPED = REMOVED_END_, /* not used for hours, and it runs */
	FUTURE,                 /* stamped in the future */
	YOUNG,                  /* used a moment ago, and it runs */
	USED,                   /* used for days by a process that lives */
	STRAY_FILES,            /* files without a row, with content and owner */
	STRAY_NAMELESS,         /* without an owner */
	SANDBOX_COUNT
};

enum {
	TASK_LOST,
	TASK_STUCK,
	TASK_OLD_LOG,
	TASK_OF_LONG_GONE,
	TASK_BUSY,
	TASK_NEW_LOG,
	TASK_COUNT
};
enum { LINK_EXPIRED, LINK_OF_LONG_GONE, LINK_OPEN, LINK_COUNT };

static struct sandbox_row boxes[SANDBOX_COUNT];
static char tasks[TASK_COUNT][ID_LEN + 1], links[LINK_COUNT][ID_LEN + 1];
static char stray_task[ID_LEN + 1], begun_task[ID_LEN + 1], session_id[ID_LEN + 1];
static pid_t user, stuck, busy;

static void make_dir(const char *directory, const char *id, const char *below)
{
	AUTO_FREE char *path = xasprintf("%s/%s/%s%s", conf.spool, directory, id, below);
	ck_assert_msg(mkdir(path, 0700) == 0, "%s", path);
}

/* As if it had been written that long ago by the clock of the test. */
static void make_old(const char *directory, const char *id, const char *below, int64_t age_ms)
{
	AUTO_FREE char *path = xasprintf("%s/%s/%s%s", conf.spool, directory, id, below);
	int64_t at_s = (clock_wall_ms() - age_ms) / 1000;
	const struct timespec times[2] = {{.tv_sec = at_s}, {.tv_sec = at_s}};
	ck_assert_msg(utimensat(AT_FDCWD, path, times, 0) == 0, "%s", path);
}

/* Runs "BEFORE 'ID'". */
static void sql_of(const char *before, const char *id)
{
	AUTO_FREE char *sql = xasprintf("%s '%s'", before, id);
	kit_sql(sql);
}

static void destroy(const char *name, bool delete_files)
{
	struct err err = ERR_INIT;
	struct sandbox_destroyed done = {.name = NULL};
	ck_ok(sandbox_destroy(&app, ALICE, name, delete_files, &done, &err), err);
	free(done.name);
}

static void make_link(int which, const struct sandbox_row *sandbox, int64_t lives_ms)
{
	struct err err = ERR_INIT;
	struct link_row link = {.principal = (char *)ALICE,
				.op = LINK_GET,
				.path = (char *)"file",
				.max_bytes = 1,
				.size = -1,
				.created_at = clock_wall_ms(),
				.expires_at = clock_wall_ms() + lives_ms};
	id_make(link.id);
	memcpy(link.sandbox_id, sandbox->id, sizeof(link.sandbox_id));
	ck_ok(row_link_insert(app.db, &link, &err) == 1, err);
	memcpy(links[which], link.id, sizeof(link.id));
}

static int make_task_dir(const char *id)
{
	struct err err = ERR_INIT;
	AUTO_JSON *spec = json_literal("{}");
	int fd = task_dir_make(&app.spool, id, spec, &err);
	ck_ok(fd >= 0 && task_dir_publish(&app.spool, id, &err), err);
	return fd;
}

/* A row and its directory; with state running nobody holds its lock yet. */
static int make_task(int which, const struct sandbox_row *sandbox, enum task_state state,
		     int64_t timeout_ms)
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
	memcpy(row.sandbox_id, sandbox->id, sizeof(row.sandbox_id));
	memcpy(tasks[which], row.id, sizeof(row.id));
	ck_ok(row_task_insert(app.db, &row, &err) == 1, err);
	AUTO_FD fd = make_task_dir(row.id);
	if (state != TASK_RUNNING) {
		row.state = state;
		row.finished_at = clock_wall_ms();
		ck_ok(task_dir_write_result(fd, &row, &err) &&
			      row_task_finish(app.db, &row, &err) == 1,
		      err);
	}
	return TAKE_FD(fd);
}

/* A process that holds the lock of a task and hears no orders. */
static pid_t supervise(int dirfd)
{
	int ends[2];
	char c;
	ck_assert_int_eq(pipe(ends), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct err err = ERR_INIT;
		if (task_dir_take_lock(dirfd, &err) >= 0 && write(ends[1], "", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	close(ends[1]);
	ck_assert_int_eq(read(ends[0], &c, 1), 1);
	close(ends[0]);
	return pid;
}

/* Eight days ago. */
static void make_oldest(void)
{
	boxes[IDLE] = kit_named("idle");
	boxes[KEPT] = kit_named("kept");
	boxes[LONG_GONE] = kit_named("long-gone");
	boxes[USED] = kit_named("used");
	reap_start(&boxes[IDLE]);
	close(make_task(TASK_OF_LONG_GONE, &boxes[LONG_GONE], TASK_FAILED, HOUR));
	make_link(LINK_OF_LONG_GONE, &boxes[LONG_GONE], 30 * DAY);
	destroy("kept", false);
	destroy("long-gone", true);
	user = reap_user(&boxes[USED]);
	reap_later(8 * DAY);
}

/* Three hours ago. */
static void make_older(void)
{
	boxes[BRIEF] = kit_create(&(struct sandbox_options){.name = "brief", .ttl_ms = HOUR});
	boxes[STOPPED] = kit_named("stopped");
	reap_start(&boxes[BRIEF]);
	reap_start(&boxes[STOPPED]);
	make_dir("data", boxes[STOPPED].files_id, "/workspace/.cache");
	reap_write("data", boxes[STOPPED].files_id, "/workspace/.cache/blob");
	reap_write("data", boxes[STOPPED].files_id, "/workspace/file");
	boxes[YOUNG] = kit_named("young");
	make_link(LINK_EXPIRED, &boxes[YOUNG], MINUTE);
	close(make_task(TASK_LOST, &boxes[YOUNG], TASK_RUNNING, DAY));
	AUTO_FD dir = make_task(TASK_STUCK, &boxes[YOUNG], TASK_RUNNING, HOUR);
	stuck = supervise(dir);
	close(make_task(TASK_OLD_LOG, &boxes[YOUNG], TASK_SUCCEEDED, HOUR));
	sql_of("UPDATE task SET log_since = log_since - 2 * 86400000 WHERE id =",
	       tasks[TASK_OLD_LOG]);
	reap_later(3 * HOUR);
}

static void make_row_of_session(void)
{
	struct err err = ERR_INIT;
	boxes[OF_SESSION] = kit_named("of-session");
	id_make(session_id);
	int sessions = spool_sessions(&app.spool, &err);
	ck_ok(sessions >= 0, err);
	close(sessions);
	AUTO_FREE char *sql =
		xasprintf("UPDATE sandbox SET session_id = '%s', ends_with_session = 1 "
			  "WHERE id = '%s'",
			  session_id, boxes[OF_SESSION].id);
	kit_sql(sql);
	reap_write("sessions", session_id, "");
}

static void lose_row(int which, const char *name)
{
	boxes[which] = kit_named(name);
	sql_of("DELETE FROM sandbox WHERE id =", boxes[which].id);
}

static void make_strays(void)
{
	lose_row(STRAY_RUN, "stray-run");
	lose_row(STRAY_EMPTY, "stray-empty");
	lose_row(STRAY_FILES, "stray-files");
	lose_row(STRAY_NAMELESS, "stray-nameless");
	AUTO_FREE char *files = xasprintf("%s/%s", conf.data_dir, boxes[STRAY_RUN].files_id);
	ck_assert_int_eq(nftw(files, unit_remove_, 16, FTW_DEPTH | FTW_PHYS), 0);
	make_dir("run", boxes[STRAY_RUN].id, "");
	reap_write("run", boxes[STRAY_RUN].id, "/up");
	make_old("data", boxes[STRAY_EMPTY].files_id, "", 2 * HOUR);
	reap_write("data", boxes[STRAY_FILES].files_id, "/workspace/file");
	reap_write("data", boxes[STRAY_NAMELESS].files_id, "/workspace/file");
	AUTO_FREE char *about =
		xasprintf("%s/%s/" ABOUT_FILE, conf.data_dir, boxes[STRAY_NAMELESS].files_id);
	ck_assert_int_eq(unlink(about), 0);
	id_make(stray_task);
	close(make_task_dir(stray_task));
	id_make(begun_task);
	make_dir("tasks", ".new-", begun_task);
	make_old("tasks", ".new-", begun_task, DAY);
}

static void make_newest(void)
{
	struct err err = ERR_INIT;
	ck_ok(row_sandbox_touch(app.db, boxes[YOUNG].id, clock_wall_ms(), 0, &err) == 1, err);
	reap_start(&boxes[YOUNG]);
	reap_write("data", boxes[YOUNG].files_id, "/workspace/file");
	reap_write("data", boxes[YOUNG].files_id, "/incoming/broken");
	reap_write("data", boxes[YOUNG].files_id, "/incoming/going-on");
	make_old("data", boxes[YOUNG].files_id, "/incoming/broken", 2 * HOUR);
	make_old("data", boxes[YOUNG].files_id, "/incoming/going-on", MINUTE);
	make_link(LINK_OPEN, &boxes[YOUNG], DAY);
	AUTO_FD dir = make_task(TASK_BUSY, &boxes[YOUNG], TASK_RUNNING, DAY);
	busy = supervise(dir);
	close(make_task(TASK_NEW_LOG, &boxes[YOUNG], TASK_SUCCEEDED, HOUR));
	boxes[FUTURE] = kit_named("future");
	sql_of("UPDATE sandbox SET last_used_at = last_used_at + 30 * 86400000 WHERE id =",
	       boxes[FUTURE].id);
	boxes[HALF_ENDED] = kit_named("half-ended");
	reap_start(&boxes[HALF_ENDED]);
	ck_ok(row_sandbox_move(app.db, boxes[HALF_ENDED].id, SANDBOX_LIVE, SANDBOX_GONE,
			       clock_wall_ms(), &err) == 1,
	      err);
	boxes[NO_FILES] = kit_named("no-files");
	AUTO_FREE char *files = xasprintf("%s/%s", conf.data_dir, boxes[NO_FILES].files_id);
	ck_assert_int_eq(nftw(files, unit_remove_, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void make_all(void)
{
	reap_begin();
	conf.max_sandboxes = 100;
	make_oldest();
	make_older();
	make_newest();
	make_row_of_session();
	make_strays();
	reap_write("data", ".trash", "/waits");
	reap_write("", "tasks.log", "");
	AUTO_FREE char *log = xasprintf("%s/tasks.log", conf.spool);
	ck_assert_int_eq(truncate(log, LOG_BYTES), 0);
	conf.min_free = INT64_MAX; /* the disk is nearly full from now on */
}

static void end_process(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void drop_all(void)
{
	end_process(user);
	end_process(stuck);
	end_process(busy);
	for (size_t i = 0; i < SANDBOX_COUNT; i++)
		sandbox_row_finish(&boxes[i]);
	reap_end();
}

/* --- what must be true --------------------------------------------------------------------- */

static enum task_state task_state_of(int which)
{
	struct err err = ERR_INIT;
	AUTO_TASK_ROW row = {0};
	ck_ok(row_task_by_id(app.db, ALICE, tasks[which], &row, &err) >= 0, err);
	return row.state;
}

static bool has_link(int which)
{
	struct err err = ERR_INIT;
	AUTO_LINK_ROW row = {0};
	ck_ok(row_link_get(app.db, links[which], &row, &err) >= 0, err);
	return row.id[0] != '\0';
}

static bool keeps_file(int which)
{
	return kit_exists("data", boxes[which].files_id, "/workspace/file");
}

static int step_now = -1, box_now = -1; /* what is being checked; for messages */
#define must(what) ck_assert_msg(what, "step %d, sandbox %d: " #what, step_now, box_now)

/* Whether the pass was killed or not, before anything made it good. */
static void check_what_stays(void)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW future = {0};
	must(is_whole(&boxes[YOUNG]) && is_up(&boxes[YOUNG]) && keeps_file(YOUNG));
	must(is_whole(&boxes[USED]) && is_up(&boxes[USED]));
	must(is_whole(&boxes[STOPPED]) && keeps_file(STOPPED));
	must(is_whole(&boxes[FUTURE]));
	must(keeps_file(STRAY_FILES) && keeps_file(STRAY_NAMELESS));
	must(kit_exists("data", boxes[YOUNG].files_id, "/incoming/going-on"));
	must(task_state_of(TASK_BUSY) == TASK_RUNNING);
	must(task_state_of(TASK_OLD_LOG) == TASK_SUCCEEDED);
	must(task_state_of(TASK_NEW_LOG) == TASK_SUCCEEDED);
	must(kit_exists("tasks", tasks[TASK_NEW_LOG], "/result"));
	must(waitpid(busy, NULL, WNOHANG) == 0);
	must(has_link(LINK_OPEN));
	ck_ok(row_sandbox_any(app.db, boxes[FUTURE].id, &future, &err) == 1, err);
}

static void check_what_goes(void)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	for (box_now = 0; box_now < REMOVED_END_; box_now++)
		must(is_away(&boxes[box_now]));
	box_now = -1;
	must(state_of(boxes[LONG_GONE].id) == SANDBOX_NONE);
	must(!is_up(&boxes[STOPPED]));
	must(!kit_exists("data", boxes[STOPPED].files_id, "/workspace/.cache"));
	must(state_of(boxes[STRAY_FILES].id) == SANDBOX_KEPT);
	must(state_of(boxes[STRAY_NAMELESS].id) == SANDBOX_NONE);
	ck_ok(row_sandbox_any(app.db, boxes[FUTURE].id, &row, &err) == 1, err);
	must(row.last_used_at <= clock_wall_ms());
	must(!kit_exists("data", boxes[YOUNG].files_id, "/incoming/broken"));
	must(task_state_of(TASK_LOST) == TASK_UNKNOWN);
	must(task_state_of(TASK_STUCK) == TASK_UNKNOWN);
	must(waitpid(stuck, NULL, WNOHANG) != 0);
	must(task_state_of(TASK_OF_LONG_GONE) == TASK_NONE);
	must(!kit_exists("tasks", tasks[TASK_OLD_LOG], ""));
	must(!kit_exists("tasks", tasks[TASK_OF_LONG_GONE], ""));
	must(!kit_exists("tasks", stray_task, ""));
	must(!kit_exists("tasks", ".new-", begun_task));
	must(!has_link(LINK_EXPIRED) && !has_link(LINK_OF_LONG_GONE));
	must(!kit_exists("sessions", session_id, ""));
	must(!spool_has_trash(&app.spool));
	must(kit_exists("", "tasks.log.1", "") && !kit_exists("", "tasks.log", ""));
}

/* Nothing of it is done twice; what is in doubt is said again. */
static void check_quiet(void)
{
	reap_now();
	const struct reap_report quiet = {
		.looked_at = report.looked_at, .left_alone = 1, .elapsed_ms = report.elapsed_ms};
	must(memcmp(&report, &quiet, sizeof(quiet)) == 0);
}

static void check_counts(void)
{
	ck_assert_int_eq(report.stopped, 1);
	ck_assert_int_eq(report.removed, 3); /* IDLE, BRIEF, KEPT */
	ck_assert_int_eq(report.tasks_settled, 1);
	ck_assert_int_eq(report.tasks_ended, 1);
	ck_assert_int_eq(report.logs_pruned, 2); /* TASK_OLD_LOG, TASK_OF_LONG_GONE */
	ck_assert_int_eq(report.links_dropped, 1);
	ck_assert_int_eq(report.uploads_dropped, 1);
	/* HALF_ENDED, STRAY_RUN, STRAY_EMPTY, and two directories of tasks */
	ck_assert_int_eq(report.orphans_removed, 5);
	ck_assert_int_eq(report.orphans_adopted, 1);
	ck_assert_int_eq(report.rows_dropped, 2); /* KEPT, LONG_GONE */
	ck_assert_int_eq(report.repaired, 2);     /* FUTURE, NO_FILES */
	ck_assert_int_eq(report.caches_dropped, 1);
	ck_assert_int_eq(report.left_alone, 1);
	ck_assert_int_eq(report.failed, 0);
}

/* --- killing ------------------------------------------------------------------------------- */

/* Steps that change something; a rule that has none is named itself. The trash is emptied as soon
 * as the disk is found full, so its own rule finds none. */
static const char *const changes[] = {
	"set_stamps",   "settle_task",  "order_cancel",   "kill_supervisor", "settle_overdue",
	"row_moved",    "holder_ended", "files_retired",  "end_holder",      "stdio_sessions",
	"move_row",     "stop",         "remove_empty",   "adopt",           "remove_task",
	"drop_upload",  "drop_log",     "note_logs",      "drop_links",      "drop_task",
	"forget_tasks", "drop_cache",   "forget_sandbox", "rotate_log",      "tidy_database",
};

static int steps_left;
static bool was_seen[ARRAY_LEN(changes)];

static void step(void *ctx, const char *name)
{
	(void)ctx;
	for (size_t i = 0; i < ARRAY_LEN(changes); i++)
		was_seen[i] = was_seen[i] || strcmp(changes[i], name) == 0;
	if (steps_left-- == 0)
		_exit(KILLED);
}

/* A pass in a process that dies at its n-th step. False when it came to its end. */
static bool dies_at(int n)
{
	int status;
	app_close(&app);
	pid_t pid = fork();
	if (pid == 0) {
		kit_reopen();
		struct err err = ERR_INIT;
		struct reap_options options = {.budget_ms = 30000, .step = step};
		steps_left = n;
		_exit(reap_pass(&app, &options, &report, &err) ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	kit_open();
	ck_assert_msg(WIFEXITED(status) &&
			      (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == KILLED),
		      "step %d: %d", n, status);
	return WEXITSTATUS(status) == KILLED;
}

/* Every n-th step from first on, until a pass is not killed. */
static void kill_at_each(int first, int by)
{
	bool died = true;
	for (int n = first; died; n += by) {
		ck_assert_int_lt(n, STEPS_MAX);
		make_all();
		step_now = n;
		died = dies_at(n);
		check_what_stays();
		reap_now();
		check_what_stays();
		check_what_goes();
		check_quiet();
		drop_all();
	}
}

TEST(one_pass_does_all_that_is_due_and_each_once)
{
	make_all();
	steps_left = -1;
	ck_assert(reap_try((struct reap_options){.step = step}));
	check_counts();
	for (size_t i = 0; i < ARRAY_LEN(changes); i++)
		ck_assert_msg(was_seen[i], "no step %s", changes[i]);
	check_what_stays();
	check_what_goes();
	check_quiet();
	drop_all();
}
TEST_END

TEST(a_dry_run_counts_the_same_and_changes_nothing)
{
	make_all();
	reap_dry();
	ck_assert_int_eq(report.removed, 3);
	check_what_stays();
	ck_assert(is_whole(&boxes[IDLE]) && is_up(&boxes[IDLE]) && is_whole(&boxes[BRIEF]));
	ck_assert(is_up(&boxes[STOPPED]) && has_link(LINK_EXPIRED));
	ck_assert(task_state_of(TASK_LOST) == TASK_RUNNING);
	ck_assert_int_eq(waitpid(stuck, NULL, WNOHANG), 0);
	ck_assert(kit_exists("tasks", stray_task, "") && kit_exists("", "tasks.log", ""));
	ck_assert(kit_exists("data", boxes[STRAY_EMPTY].files_id, ""));
	reap_now();
	check_counts();
	check_what_goes();
	drop_all();
}
TEST_END

/* In parts, as a test has its time. */
#define PARTS 8
#define PART(n) \
	TEST(a_pass_that_is_killed_at_step_##n##_and_each_8th_after_it_is_made_good_by_the_next) \
	{ \
		kill_at_each(n, PARTS); \
	} \
	TEST_END

PART(0)
PART(1)
PART(2)
PART(3)
PART(4)
PART(5)
PART(6)
PART(7)

int main(void)
{
	const TTest *const tests[] = {
		one_pass_does_all_that_is_due_and_each_once,
		a_dry_run_counts_the_same_and_changes_nothing,
		a_pass_that_is_killed_at_step_0_and_each_8th_after_it_is_made_good_by_the_next,
		a_pass_that_is_killed_at_step_1_and_each_8th_after_it_is_made_good_by_the_next,
		a_pass_that_is_killed_at_step_2_and_each_8th_after_it_is_made_good_by_the_next,
		a_pass_that_is_killed_at_step_3_and_each_8th_after_it_is_made_good_by_the_next,
		a_pass_that_is_killed_at_step_4_and_each_8th_after_it_is_made_good_by_the_next,
		a_pass_that_is_killed_at_step_5_and_each_8th_after_it_is_made_good_by_the_next,
		a_pass_that_is_killed_at_step_6_and_each_8th_after_it_is_made_good_by_the_next,
		a_pass_that_is_killed_at_step_7_and_each_8th_after_it_is_made_good_by_the_next,
	};
	return unit_run("reap_kill", tests, ARRAY_LEN(tests));
}
