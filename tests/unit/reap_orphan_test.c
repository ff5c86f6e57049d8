/* What the reaper does about things that do not fit together: rows, directories, holders. */
#include "reap_kit.h"

#include <dirent.h>

#include "base/fs.h"
#include "base/lock.h"
#include "box/task_reserve.h"
#include "store/task_dir.h"

static bool fake_spool_has(const char *path)
{
	return faccessat(app.spool.root_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Files and a database that lost their row. */
static void lose_row(const struct sandbox_row *row)
{
	AUTO_FREE char *sql = xasprintf("DELETE FROM sandbox WHERE id = '%s'", row->id);
	kit_sql(sql);
}

static void check_quiet(void)
{
	ck_assert_int_eq(report.orphans_removed + report.orphans_adopted + report.repaired, 0);
	ck_assert_int_eq(report.removed + report.left_alone, 0);
}

/* --- begun and not finished ---------------------------------------------------------------- */

TEST(a_destroy_that_died_after_the_row_is_finished)
{
	reap_begin();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW gone = kit_named("gone"), kept = kit_named("kept");
	reap_start(&gone);
	reap_start(&kept);
	ck_assert_int_eq(row_sandbox_move(app.db, gone.id, SANDBOX_LIVE, SANDBOX_GONE,
					  clock_wall_ms(), &err),
			 1);
	ck_assert_int_eq(row_sandbox_move(app.db, kept.id, SANDBOX_LIVE, SANDBOX_KEPT,
					  clock_wall_ms(), &err),
			 1);
	reap_dry();
	ck_assert_int_eq(report.orphans_removed, 2);
	ck_assert(kit_exists("data", gone.files_id, "/workspace"));
	ck_assert_int_eq(kit_count('X'), 0);
	reap_now();
	ck_assert_int_eq(report.orphans_removed, 2);
	ck_assert(is_away(&gone));
	ck_assert(!kit_exists("run", kept.id, ""));
	ck_assert(kit_exists("data", kept.files_id, "/workspace"));
	ck_assert_int_eq(state_of(kept.id), SANDBOX_KEPT);
	ck_assert_int_eq(kit_count('X'), 2);
	reap_now();
	check_quiet();
	reap_end();
}
TEST_END

TEST(files_that_a_later_sandbox_took_over_are_not_the_earlier_ones)
{
	reap_begin();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW first = kit_named("work");
	struct sandbox_destroyed done = {0};
	ck_ok(sandbox_destroy(&app, ALICE, "work", false, &done, &err), err);
	free(done.name);
	AUTO_SANDBOX_ROW second = kit_named("work");
	ck_assert_str_eq(first.files_id, second.files_id);
	ck_assert_int_eq(state_of(first.id), SANDBOX_GONE);
	reap_now();
	check_quiet();
	ck_assert(is_whole(&second));
	reap_end();
}
TEST_END

/* The row that made them is forgotten one day, and nothing else has their id. */
TEST(files_whose_first_row_was_forgotten_are_those_of_the_sandbox_that_took_them_over)
{
	reap_begin();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW first = kit_named("work");
	struct sandbox_destroyed done = {0};
	ck_ok(sandbox_destroy(&app, ALICE, "work", false, &done, &err), err);
	free(done.name);
	AUTO_SANDBOX_ROW second = kit_named("work");
	lose_row(&first);
	reap_later(2 * HOUR); /* and they are empty */
	reap_now();
	check_quiet();
	ck_assert(is_whole(&second));
	reap_write("data", second.files_id, "/workspace/file");
	reap_now();
	check_quiet();
	ck_assert(is_whole(&second));
	reap_end();
}
TEST_END

/* --- run/<id> ------------------------------------------------------------------------------ */

TEST(a_holder_without_a_row_is_ended)
{
	reap_begin();
	AUTO_SANDBOX_ROW row = kit_named("work");
	reap_start(&row);
	lose_row(&row);
	reap_dry();
	ck_assert(kit_exists("run", row.id, "/up"));
	reap_now();
	ck_assert_int_eq(kit_count('X'), 1);
	ck_assert(!kit_exists("run", row.id, ""));
	reap_end();
}
TEST_END

TEST(a_holder_without_a_row_that_is_in_use_is_left_to_its_user)
{
	reap_begin();
	AUTO_SANDBOX_ROW row = kit_named("work");
	pid_t pid = reap_user(&row);
	reap_write("data", row.files_id, "/workspace/file");
	lose_row(&row);
	reap_now();
	ck_assert_int_eq(report.left_alone, 1);
	ck_assert_int_eq(kit_count('X'), 0);
	ck_assert(kit_exists("run", row.id, "/up"));
	ck_assert_int_eq(report.orphans_adopted, 0);
	reap_kill(pid);
	reap_now();
	ck_assert(!kit_exists("run", row.id, ""));
	ck_assert_int_eq(report.orphans_adopted, 1);
	ck_assert(kit_exists("data", row.files_id, "/workspace/file"));
	reap_end();
}
TEST_END

/* --- data/<id> ----------------------------------------------------------------------------- */

TEST(a_holder_whose_lock_cannot_be_looked_at_is_left_alone)
{
	reap_begin();
	AUTO_SANDBOX_ROW row = kit_named("work");
	reap_start(&row);
	AUTO_FREE char *lock = xasprintf("%s/run/%s/use", conf.spool, row.id);
	lose_row(&row);
	ck_assert_int_eq(unlink(lock), 0);
	ck_assert_int_eq(symlink("elsewhere", lock), 0);
	reap_now();
	ck_assert_int_eq(report.left_alone, 1);
	ck_assert_int_eq(kit_count('X'), 0);
	ck_assert(kit_exists("run", row.id, "/up"));
	reap_end();
}
TEST_END

TEST(files_without_a_row_wait_for_the_next_sandbox_of_their_name)
{
	reap_begin();
	AUTO_SANDBOX_ROW row = kit_named("work");
	reap_write("data", row.files_id, "/workspace/file");
	lose_row(&row);
	reap_dry();
	ck_assert_int_eq(report.orphans_adopted, 1);
	ck_assert_int_eq(state_of(row.id), SANDBOX_NONE);
	reap_now();
	ck_assert_int_eq(report.orphans_adopted, 1);
	ck_assert_int_eq(state_of(row.id), SANDBOX_KEPT);
	reap_now();
	check_quiet();
	AUTO_SANDBOX_ROW next = kit_named("work");
	ck_assert_str_eq(next.files_id, row.files_id);
	ck_assert(kit_exists("data", next.files_id, "/workspace/file"));
	reap_later(6 * DAY);
	reap_now();
	ck_assert(is_whole(&next));
	reap_end();
}
TEST_END

/* The name of the one kept sandbox. */
static bool note_kept(void *ctx, const struct sandbox_row *row)
{
	if (row->state == SANDBOX_KEPT)
		snprintf(ctx, NAME_MAX_LEN + 1, "%s", row->name);
	return true;
}

TEST(where_the_name_is_taken_they_get_one_beside_it)
{
	reap_begin();
	struct err err = ERR_INIT;
	static const char longest[] =
		"a23456789012345678901234567890123456789012345678901234567890123";
	static const char *const names[] = {"work", longest};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		AUTO_SANDBOX_ROW row = kit_named(names[i]);
		reap_write("data", row.files_id, "/workspace/file");
		lose_row(&row);
		AUTO_SANDBOX_ROW other = kit_named(names[i]);
		reap_now();
		ck_assert_int_eq(report.orphans_adopted, 1);
		ck_assert(is_whole(&other));
		ck_assert_int_eq(state_of(row.id), SANDBOX_KEPT);
		char name[NAME_MAX_LEN + 1] = "";
		ck_assert(row_sandbox_each(app.db, ALICE, note_kept, name, &err));
		ck_assert(name_is_valid(name));
		ck_assert_str_ne(name, names[i]);
		ck_assert_int_eq(strncmp(name, names[i], 4), 0);
		kit_sql("DELETE FROM sandbox WHERE state = 'kept'");
		ck_ok(spool_retire_files(&app.spool, row.files_id, &err), err);
	}
	reap_end();
}
TEST_END

TEST(an_empty_leftover_of_a_create_goes_after_an_hour)
{
	reap_begin();
	AUTO_SANDBOX_ROW row = kit_named("work");
	lose_row(&row);
	reap_later(50 * MINUTE);
	reap_now();
	check_quiet();
	ck_assert(kit_exists("data", row.files_id, "/workspace"));
	reap_later(11 * MINUTE);
	reap_dry();
	ck_assert(kit_exists("data", row.files_id, "/workspace"));
	reap_now();
	ck_assert_int_eq(report.orphans_removed, 1);
	ck_assert(!kit_exists("data", row.files_id, ""));
	reap_end();
}
TEST_END

TEST(an_empty_leftover_does_not_become_old_by_a_jump)
{
	reap_begin();
	AUTO_SANDBOX_ROW row = kit_named("work");
	lose_row(&row);
	reap_jump(YEAR);
	reap_now();
	reap_now();
	ck_assert(kit_exists("data", row.files_id, "/workspace"));
	reap_end();
}
TEST_END

TEST(files_of_which_nothing_tells_whose_they_are_stay)
{
	reap_begin();
	AUTO_SANDBOX_ROW row = kit_named("work");
	AUTO_FREE char *about = xasprintf("data/%s/about", row.files_id);
	static const char *const damages[] = {
		"",
		"x",
		"{}",
		"{\"principal\":\"\",\"name\":\"a\"}",
		"{\"principal\":\"alice\",\"name\":\"../../x\"}",
		"{\"principal\":7,\"name\":\"a\"}",
	};
	reap_write("data", row.files_id, "/workspace/file");
	lose_row(&row);
	reap_later(30 * DAY);
	for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
		AUTO_FD fd = openat(app.spool.root_fd, about, O_WRONLY | O_TRUNC | O_CLOEXEC);
		ck_assert_int_eq(write(fd, damages[i], strlen(damages[i])),
				 (ssize_t)strlen(damages[i]));
		reap_now();
		ck_assert_msg(report.left_alone == 1 && report.orphans_adopted == 0, "%s",
			      damages[i]);
	}
	unlinkat(app.spool.root_fd, about, 0);
	ck_assert_int_eq(mkfifoat(app.spool.root_fd, about, 0600), 0);
	reap_now();
	ck_assert_int_eq(report.left_alone, 1);
	ck_assert(kit_exists("data", row.files_id, "/workspace/file"));
	reap_end();
}
TEST_END

TEST(what_is_not_ours_in_the_spool_is_not_followed_and_not_touched)
{
	reap_begin();
	char id[ID_LEN + 1], other[ID_LEN + 1], inner[ID_LEN + 1];
	AUTO_FREE char *outside = xasprintf("%s/outside", kit_dir);
	AUTO_FREE char *victim = xasprintf("%s/workspace", outside);
	id_make(id);
	id_make(other);
	id_make(inner);
	ck_assert(mkdir(outside, 0700) == 0 && mkdir(victim, 0700) == 0);
	ck_assert_int_eq(symlinkat(outside, app.spool.data_fd, id), 0);
	ck_assert_int_eq(symlinkat(outside, app.spool.run_fd, other), 0);
	ck_assert_int_eq(symlinkat(outside, app.spool.tasks_fd, other), 0);
	ck_assert_int_eq(mkdirat(app.spool.data_fd, "lost+found", 0700), 0);
	/* One whose workspace is a link. */
	ck_assert_int_eq(mkdirat(app.spool.data_fd, inner, 0700), 0);
	AUTO_FREE char *link = xasprintf("%s/workspace", inner);
	ck_assert_int_eq(symlinkat(outside, app.spool.data_fd, link), 0);
	reap_later(30 * DAY);
	reap_dry();
	reap_now();
	ck_assert(access(victim, F_OK) == 0);
	ck_assert_int_eq(report.left_alone, 3);
	AUTO_FREE char *data_link = xasprintf("data/%s", id);
	ck_assert(fake_spool_has(data_link));
	ck_assert(fake_spool_has("data/lost+found"));
	ck_assert(kit_exists("data", inner, ""));
	reap_end();
}
TEST_END

TEST(a_row_whose_files_are_missing_goes_unless_it_is_in_use)
{
	reap_begin();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW lost = kit_named("lost"), used = kit_named("used");
	AUTO_SANDBOX_ROW kept = kit_named("kept"), fine = kit_named("fine");
	struct sandbox_destroyed done = {0};
	ck_ok(sandbox_destroy(&app, ALICE, "kept", false, &done, &err), err);
	free(done.name);
	reap_start(&lost);
	pid_t pid = reap_user(&used);
	const struct sandbox_row *const rows[] = {&lost, &used, &kept};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ck_ok(fs_remove_tree(app.spool.data_fd, rows[i]->files_id, &err), err);
	reap_dry();
	ck_assert_int_eq(report.repaired, 2);
	ck_assert_int_eq(state_of(lost.id), SANDBOX_LIVE);
	reap_now();
	ck_assert_int_eq(report.repaired, 2);
	ck_assert(is_away(&lost) && is_away(&kept));
	ck_assert_int_eq(state_of(used.id), SANDBOX_LIVE);
	ck_assert(kit_exists("run", used.id, "/up"));
	ck_assert(is_whole(&fine));
	reap_kill(pid);
	reap_now();
	ck_assert(is_away(&used));
	reap_end();
}
TEST_END

/* --- tasks/<id> ---------------------------------------------------------------------------- */

/* The directory of a task as a start makes it. */
static int make_task(const char *id, bool publish)
{
	struct err err = ERR_INIT;
	AUTO_JSON *spec = json_object_new_object();
	json_add_str(spec, "id", id);
	int fd = task_dir_make(&app.spool, id, spec, &err);
	ck_ok(fd >= 0, err);
	if (publish)
		ck_ok(task_dir_publish(&app.spool, id, &err), err);
	return fd;
}

TEST(a_task_directory_without_a_row_goes_unless_it_runs)
{
	reap_begin();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = kit_named("work");
	char dead[ID_LEN + 1], running[ID_LEN + 1];
	id_make(dead);
	id_make(running);
	AUTO_FD a = make_task(dead, true), b = make_task(running, true);
	AUTO_FD lock = task_dir_take_lock(b, &err);
	AUTO_TASK_ROW known = {0};
	task_row_make(&row, &(struct exec_options){.command = "true", .timeout_ms = HOUR},
		      TASK_ORIGIN_TASK, NULL, &known);
	ck_ok(task_reserve(&app, &row, &known, &err) == 1, err);
	AUTO_FD c = make_task(known.id, true);
	AUTO_FD known_lock = task_dir_take_lock(c, &err);
	ck_assert(a >= 0 && lock >= 0 && known_lock >= 0);
	reap_dry();
	ck_assert_int_eq(report.orphans_removed, 1);
	ck_assert(kit_exists("tasks", dead, ""));
	reap_now();
	ck_assert_int_eq(report.orphans_removed, 1);
	ck_assert_int_eq(report.left_alone, 1);
	ck_assert(!kit_exists("tasks", dead, ""));
	ck_assert(kit_exists("tasks", running, "/spec"));
	ck_assert(kit_exists("tasks", known.id, "/spec"));
	util_close(&lock);
	reap_now();
	ck_assert(!kit_exists("tasks", running, ""));
	ck_assert(kit_exists("tasks", known.id, "/spec"));
	reap_end();
}
TEST_END

TEST(a_start_that_died_leaves_nothing_and_one_that_goes_on_is_left_alone)
{
	reap_begin();
	struct err err = ERR_INIT;
	char dead[ID_LEN + 1], starting[ID_LEN + 1];
	id_make(dead);
	id_make(starting);
	AUTO_FD a = make_task(dead, false), b = make_task(starting, false);
	AUTO_FD lock = task_dir_take_lock(b, &err);
	ck_assert(a >= 0 && lock >= 0);
	AUTO_FREE char *dead_name = xasprintf("tasks/.new-%s", dead);
	AUTO_FREE char *starting_name = xasprintf("tasks/.new-%s", starting);
	reap_now();
	check_quiet(); /* young */
	ck_assert(fake_spool_has(dead_name));
	reap_later(MINUTE);
	reap_now();
	ck_assert_int_eq(report.orphans_removed, 1);
	ck_assert(!fake_spool_has(dead_name));
	ck_assert(fake_spool_has(starting_name));
	reap_end();
}
TEST_END

TEST(many_orphans_among_many_tasks_are_told_apart)
{
	reap_begin();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = kit_named("work");
	char orphans[20][ID_LEN + 1], known[20][ID_LEN + 1];
	for (int i = 0; i < 20; i++) {
		AUTO_TASK_ROW task = {0};
		task_row_make(&row, &(struct exec_options){.command = "true", .timeout_ms = HOUR},
			      TASK_ORIGIN_TASK, NULL, &task);
		ck_ok(task_reserve(&app, &row, &task, &err) == 1, err);
		memcpy(known[i], task.id, sizeof(known[i]));
		id_make(orphans[i]);
		AUTO_FD a = make_task(known[i], true), b = make_task(orphans[i], true);
		ck_assert(a >= 0 && b >= 0);
	}
	kit_sql("UPDATE task SET state = 'succeeded', finished_at = 1, exit_code = 0");
	reap_now();
	ck_assert_int_eq(report.orphans_removed, 20);
	for (int i = 0; i < 20; i++) {
		ck_assert(!kit_exists("tasks", orphans[i], ""));
		ck_assert(kit_exists("tasks", known[i], "/spec"));
	}
	reap_end();
}
TEST_END

/* --- uploads ------------------------------------------------------------------------------- */

TEST(an_upload_that_was_broken_off_goes_after_an_hour)
{
	reap_begin();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = kit_named("work"), used = kit_named("used");
	AUTO_FREE char *outside = xasprintf("%s/outside", kit_dir);
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	reap_write("data", row.files_id, "/incoming/part");
	reap_write("data", used.files_id, "/incoming/part");
	reap_write("data", row.files_id, "/workspace/file");
	ck_assert_int_eq(mkdir(outside, 0700), 0);
	AUTO_FD incoming = spool_incoming(&app.spool, row.files_id, &err);
	ck_assert_int_eq(symlinkat(outside, incoming, "link"), 0);
	ck_ok(sandbox_enter(&app, &used, &use, &err), err);
	reap_later(50 * MINUTE);
	reap_now();
	ck_assert_int_eq(report.uploads_dropped, 0);
	reap_later(11 * MINUTE);
	reap_write("data", row.files_id, "/incoming/fresh");
	AUTO_FREE char *fresh = xasprintf("%s/data/%s/incoming/fresh", conf.spool, row.files_id);
	struct timespec now[2] = {{.tv_sec = clock_wall_ms() / 1000},
				  {.tv_sec = clock_wall_ms() / 1000}};
	ck_assert_int_eq(utimensat(AT_FDCWD, fresh, now, 0), 0);
	reap_dry();
	ck_assert_int_eq(report.uploads_dropped, 2);
	ck_assert(kit_exists("data", row.files_id, "/incoming/part"));
	reap_now();
	ck_assert_int_eq(report.uploads_dropped, 2);
	ck_assert(!kit_exists("data", row.files_id, "/incoming/part"));
	ck_assert(kit_exists("data", row.files_id, "/incoming/fresh"));
	ck_assert(kit_exists("data", row.files_id, "/workspace/file"));
	ck_assert(kit_exists("data", used.files_id, "/incoming/part"));
	ck_assert(access(outside, F_OK) == 0);
	sandbox_leave(&use);
	reap_now();
	ck_assert(!kit_exists("data", used.files_id, "/incoming/part"));
	reap_end();
}
TEST_END

/* --- many ---------------------------------------------------------------------------------- */

/* A create that is killed anywhere, with passes at once: in the end there is a sandbox or nothing.
 */
TEST(a_create_that_is_killed_anywhere_leaves_a_sandbox_or_nothing)
{
	reap_begin();
	app_close(&app);
	for (int i = 0; i < 40; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			struct err err = ERR_INIT;
			kit_reopen();
			for (int n = 0;; n++) {
				AUTO_FREE char *name = xasprintf("box-%d-%d", i, n);
				AUTO_SANDBOX_ROW row = {0};
				bool created;
				(void)!sandbox_create(&app, ALICE,
						      &(struct sandbox_options){.name = name}, &row,
						      &created, &err);
			}
		}
		clock_sleep_ms(20 + i % 7);
		reap_kill(pid);
	}
	conf.max_sandboxes = 100000;
	kit_open();
	reap_now();
	reap_later(2 * HOUR);
	reap_now();
	reap_now();
	check_quiet();
	int64_t directories = 0;
	AUTO_FREE char *data = xasprintf("%s/data", conf.spool);
	DIR *dir = opendir(data);
	for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
		directories += id_is_valid(entry->d_name);
	closedir(dir);
	struct err err = ERR_INIT;
	ck_assert_int_eq(directories, row_sandbox_count_live(app.db, &err));
	reap_end();
}
TEST_END

/* Runs SQL as somebody would by hand. */
static void by_hand(const char *sql)
{
	struct err err = ERR_INIT;
	AUTO_STMT *stmt = db_prepare(app.db, sql, &err);
	ck_ok(stmt != NULL && db_run(app.db, stmt, NULL, &err), err);
}

#define DAMAGED_SANDBOX(id, files, state) \
	"INSERT INTO sandbox (id, files_id, principal, name, state, template, network," \
	" created_at, last_used_at, ended_at) VALUES ('" id "', '" files "', 'default', 'n" id \
	"', '" state "', 'base', 'none', 1600000000000, 1600000000000, 1600000000000)"

/* Ids become names of directories: none of these may be taken for one, nor end the pass. */
TEST(rows_whose_ids_are_none_are_told_and_left_alone)
{
	static const char *const damaged[] = {
		DAMAGED_SANDBOX("../../x", "../../x", "live"),
		DAMAGED_SANDBOX("", "", "kept"),
		DAMAGED_SANDBOX("00000000000000000000000000000001", "spool.id", "kept"),
		DAMAGED_SANDBOX("00000000000000000000000000000002", "..", "live"),
		DAMAGED_SANDBOX("00000000000000000000000000000003f",
				"00000000000000000000000000000003f", "live"),
		("INSERT INTO task (id, sandbox_id, principal, origin, command, timeout_ms, state,"
		 " created_at, log_since) VALUES ('../../x', '../../x', 'default', 'job', 'x', 1,"
		 " 'running', 1, 0), ('../../y', '../../x', 'default', 'job', 'x', 1, 'failed', 1, "
		 "1)"),
		("INSERT INTO link (id, sandbox_id, principal, op, path, max_bytes, created_at,"
		 " expires_at) VALUES ('../x', '../../x', 'default', 'get', 'x', 1, 1, 1)"),
	};
	reap_begin();
	struct sandbox_row sound = kit_named("sound");
	for (size_t i = 0; i < ARRAY_LEN(damaged); i++)
		by_hand(damaged[i]);
	reap_dry();
	ck_assert_int_eq(report.left_alone, 7); /* 5 sandboxes; a task that two rules look at */
	ck_assert(reap_try((struct reap_options){.budget_ms = 10000}));
	ck_assert_int_eq(report.left_alone, 7);
	ck_assert_int_eq(report.removed + report.links_dropped + report.failed, 0);
	ck_assert(!report.unfinished);
	ck_assert(kit_exists("data", "spool.id", "") && is_whole(&sound));
	sandbox_row_finish(&sound);
	reap_end();
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		a_destroy_that_died_after_the_row_is_finished,
		files_that_a_later_sandbox_took_over_are_not_the_earlier_ones,
		files_whose_first_row_was_forgotten_are_those_of_the_sandbox_that_took_them_over,
		a_holder_without_a_row_is_ended,
		a_holder_without_a_row_that_is_in_use_is_left_to_its_user,
		a_holder_whose_lock_cannot_be_looked_at_is_left_alone,
		files_without_a_row_wait_for_the_next_sandbox_of_their_name,
		where_the_name_is_taken_they_get_one_beside_it,
		an_empty_leftover_of_a_create_goes_after_an_hour,
		an_empty_leftover_does_not_become_old_by_a_jump,
		files_of_which_nothing_tells_whose_they_are_stay,
		what_is_not_ours_in_the_spool_is_not_followed_and_not_touched,
		rows_whose_ids_are_none_are_told_and_left_alone,
		a_row_whose_files_are_missing_goes_unless_it_is_in_use,
		a_task_directory_without_a_row_goes_unless_it_runs,
		a_start_that_died_leaves_nothing_and_one_that_goes_on_is_left_alone,
		many_orphans_among_many_tasks_are_told_apart,
		an_upload_that_was_broken_off_goes_after_an_hour,
		a_create_that_is_killed_anywhere_leaves_a_sandbox_or_nothing,
	};
	return unit_run("reap_orphan", tests, ARRAY_LEN(tests));
}
