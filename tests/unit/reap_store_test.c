/* The reaper's rules about what takes room. */
#include "rule_kit.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include "box/files.h"
#include "box/transfer.h"
#include "store/row_link.h"

/* --- links --------------------------------------------------------------------------------- */

static struct link_row make_link(int64_t lives_ms)
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
	memcpy(link.sandbox_id, rule_sandbox.id, sizeof(link.sandbox_id));
	ck_ok(row_link_insert(app.db, &link, &err) == 1, err);
	return link;
}

static bool has_link(const char *id)
{
	struct err err = ERR_INIT;
	AUTO_LINK_ROW row = {0};
	int rc = row_link_get(app.db, id, &row, &err);
	ck_ok(rc >= 0, err);
	return rc == 1;
}

TEST(links_go_when_they_expired_or_a_day_after_their_use)
{
	rule_setup();
	struct err err = ERR_INIT;
	struct link_row expires = make_link(HOUR), open = make_link(7 * DAY),
			used = make_link(7 * DAY);
	ck_assert_int_eq(row_link_claim(app.db, used.id, clock_wall_ms(), &err), 1);
	ck_assert_int_eq(rule_run(reap_links)->links_dropped, 0);
	rule_later_ms = HOUR;
	rule_options.dry_run = true;
	ck_assert_int_eq(rule_run(reap_links)->links_dropped, 1);
	ck_assert(has_link(expires.id));
	rule_options.dry_run = false;
	ck_assert_int_eq(rule_run(reap_links)->links_dropped, 1);
	ck_assert(!has_link(expires.id) && has_link(open.id) && has_link(used.id));
	rule_later_ms = DAY;
	ck_assert_int_eq(rule_run(reap_links)->links_dropped, 1);
	ck_assert(!has_link(used.id) && has_link(open.id));
	rule_later_ms = 7 * DAY;
	ck_assert_int_eq(rule_run(reap_links)->links_dropped, 1);
	ck_assert(!has_link(open.id));
	rule_teardown();
}
TEST_END

TEST(a_link_from_before_a_jump_of_the_clock_is_judged_by_its_age)
{
	rule_setup();
	struct link_row link = make_link(HOUR);
	rule_later_ms = 60 * SECOND;
	rule_record();
	rule_jumped_ms = 3650 * DAY;
	rule_record();
	rule_later_ms += SECOND;
	struct link_row fresh = make_link(HOUR);
	ck_assert_int_eq(rule_run(reap_links)->links_dropped, 0);
	rule_later_ms += HOUR;
	ck_assert_int_eq(rule_run(reap_links)->links_dropped, 1);
	ck_assert(has_link(link.id) && !has_link(fresh.id));
	rule_later_ms += 8 * DAY;
	ck_assert_int_eq(rule_run(reap_links)->links_dropped, 1);
	ck_assert(!has_link(link.id));
	rule_teardown();
}
TEST_END

TEST(a_link_that_was_made_in_the_future_lasts_as_long_as_it_was_to)
{
	rule_setup();
	rule_later_ms = 3650 * DAY;
	struct link_row link = make_link(HOUR);
	rule_later_ms = 0;
	ck_assert_int_eq(rule_run(reap_links)->repaired, 1);
	ck_assert(has_link(link.id));
	rule_later_ms = HOUR;
	ck_assert_int_eq(rule_run(reap_links)->links_dropped, 1);
	ck_assert(!has_link(link.id));
	rule_teardown();
}
TEST_END

/* --- rows ---------------------------------------------------------------------------------- */

static void destroy(const char *handle, bool delete_files)
{
	struct err err = ERR_INIT;
	struct sandbox_destroyed out = {.name = NULL};
	ck_ok(sandbox_destroy(&app, ALICE, handle, delete_files, &out, &err), err);
	free(out.name);
}

static bool has_row(const char *id)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	return row_sandbox_by_id(app.db, ALICE, id, &row, &err) == 1;
}

TEST(what_is_gone_for_long_is_forgotten_with_its_tasks_and_links)
{
	rule_setup();
	struct task_row task = rule_ended_task();
	struct link_row link = make_link(DAY);
	destroy("work", true);
	rule_later_ms = 7 * DAY - SECOND;
	ck_assert_int_eq(rule_run(reap_old_rows)->rows_dropped, 0);
	ck_assert(has_row(rule_sandbox.id) && has_link(link.id));
	rule_later_ms = 7 * DAY;
	rule_options.dry_run = true;
	ck_assert_int_eq(rule_run(reap_old_rows)->rows_dropped, 1);
	ck_assert(has_row(rule_sandbox.id) && kit_exists("tasks", task.id, ""));
	rule_options.dry_run = false;
	ck_assert_int_eq(rule_run(reap_old_rows)->rows_dropped, 1);
	ck_assert_int_eq(rule_report.failed, 0);
	ck_assert(!has_row(rule_sandbox.id) && !has_link(link.id));
	ck_assert(!kit_exists("tasks", task.id, ""));
	rule_teardown();
}
TEST_END

TEST(a_row_stays_while_something_of_the_sandbox_is_there)
{
	rule_setup();
	destroy("work", true);
	rule_later_ms = 8 * DAY;
	static const char *const places[] = {"run", "data"};
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		AUTO_FREE char *path =
			xasprintf("%s/%s/%s", conf.spool, places[i], rule_sandbox.id);
		ck_assert_int_eq(mkdir(path, 0700), 0);
		ck_assert_int_eq(rule_run(reap_old_rows)->left_alone, 1);
		ck_assert(has_row(rule_sandbox.id));
		ck_assert_int_eq(rmdir(path), 0);
	}
	struct task_row task = rule_task(HOUR); /* a row that was not settled yet */
	ck_assert_int_eq(rule_run(reap_old_rows)->left_alone, 1);
	ck_assert(has_row(task.sandbox_id));
	rule_teardown();
}
TEST_END

TEST(files_that_a_later_sandbox_took_over_do_not_keep_the_row_of_the_first)
{
	rule_setup();
	destroy("work", false);
	struct sandbox_row second = kit_named("work");
	ck_assert_str_eq(second.files_id, rule_sandbox.files_id);
	rule_later_ms = 8 * DAY;
	ck_assert_int_eq(rule_run(reap_old_rows)->rows_dropped, 1);
	ck_assert(!has_row(rule_sandbox.id) && has_row(second.id));
	ck_assert(kit_exists("data", second.files_id, "/workspace"));
	sandbox_row_finish(&second);
	rule_teardown();
}
TEST_END

TEST(a_pass_that_dies_while_it_forgets_is_made_good_by_the_next)
{
	rule_setup();
	for (int step = 0;; step++) {
		sandbox_row_finish(&rule_sandbox);
		rule_sandbox = kit_named("again");
		struct task_row task = rule_ended_task();
		struct link_row link = make_link(DAY);
		destroy("again", true);
		rule_later_ms += 8 * DAY;
		bool died = rule_dies_at(reap_old_rows, step);
		rule_run(reap_old_rows);
		ck_assert_int_eq(rule_report.failed, 0);
		ck_assert(!has_row(rule_sandbox.id) && !has_link(link.id));
		ck_assert(!kit_exists("tasks", task.id, ""));
		if (!died) {
			ck_assert_int_ge(step, 3);
			break;
		}
	}
	rule_teardown();
}
TEST_END

/* --- disk ---------------------------------------------------------------------------------- */

static void make_cache(const struct sandbox_row *row, bool as_link)
{
	AUTO_FREE char *cache = xasprintf("%s/%s/workspace/.cache", conf.data_dir, row->files_id);
	AUTO_FREE char *file = xasprintf("%s/blob", cache);
	if (as_link) {
		AUTO_FREE char *target = xasprintf("%s/%s", conf.spool, "keys");
		ck_assert_int_eq(symlink(target, cache), 0);
		return;
	}
	ck_assert_int_eq(mkdir(cache, 0700), 0);
	close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

static bool has_cache(const struct sandbox_row *row)
{
	struct stat st;
	AUTO_FREE char *cache = xasprintf("%s/%s/workspace/.cache", conf.data_dir, row->files_id);
	return lstat(cache, &st) == 0;
}

TEST(on_a_full_disk_the_caches_of_idle_sandboxes_go_and_nothing_else)
{
	rule_setup();
	struct err err = ERR_INIT;
	struct sandbox_row used = kit_named("used"), linked = kit_named("linked");
	make_cache(&rule_sandbox, false);
	make_cache(&used, false);
	make_cache(&linked, true);
	AUTO_FREE char *work =
		xasprintf("%s/%s/workspace/work", conf.data_dir, rule_sandbox.files_id);
	close(open(work, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	ck_ok(sandbox_enter(&app, &used, &use, &err), err);
	rule_later_ms = HOUR;
	struct sandbox_row recent = kit_named("recent");
	make_cache(&recent, false);

	conf.min_free = 0;
	ck_assert_int_eq(rule_run(reap_disk_space)->caches_dropped, 0);
	conf.min_free = INT64_MAX; /* more than there can be */
	rule_options.dry_run = true;
	ck_assert_int_eq(rule_run(reap_disk_space)->caches_dropped, 1);
	ck_assert(has_cache(&rule_sandbox));
	rule_options.dry_run = false;
	ck_assert_int_eq(rule_run(reap_disk_space)->caches_dropped, 1);
	ck_assert_int_eq(rule_report.failed, 0);
	ck_assert(!has_cache(&rule_sandbox));
	ck_assert(has_cache(&used) && has_cache(&linked) && has_cache(&recent));
	ck_assert(access(work, F_OK) == 0);
	ck_assert(kit_exists("keys", "link", ""));
	sandbox_leave(&use);
	sandbox_row_finish(&used);
	sandbox_row_finish(&linked);
	sandbox_row_finish(&recent);
	rule_teardown();
}
TEST_END

TEST(a_workspace_whose_mode_forbids_it_keeps_its_cache_and_is_no_failure)
{
	rule_setup();
	struct stat st;
	make_cache(&rule_sandbox, false);
	AUTO_FREE char *workspace =
		xasprintf("%s/%s/workspace", conf.data_dir, rule_sandbox.files_id);
	rule_later_ms = HOUR;
	conf.min_free = INT64_MAX;
	ck_assert_int_eq(chmod(workspace, 0), 0);
	rule_options.dry_run = true;
	rule_run(reap_disk_space);
	ck_assert_int_eq(stat(workspace, &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0);
	rule_options.dry_run = false;
	ck_assert_int_eq(chmod(workspace, 0500), 0);
	rule_run(reap_disk_space);
	ck_assert_int_eq(rule_report.failed, 0);
	/* who runs the tests as root may do everything */
	ck_assert(geteuid() == 0 || (has_cache(&rule_sandbox) && rule_report.left_alone == 1));
	rule_teardown();
}
TEST_END

TEST(the_sandbox_that_is_idle_for_longest_gives_its_cache_first_and_enough_is_enough)
{
	rule_setup();
	struct statvfs st;
	make_cache(&rule_sandbox, false);
	rule_later_ms = HOUR;
	struct sandbox_row second = kit_named("second");
	make_cache(&second, false);
	rule_later_ms = 2 * HOUR;
	/* Room for all but the blob of the first, which takes 8 MiB. */
	AUTO_FREE char *blob =
		xasprintf("%s/%s/workspace/.cache/big", conf.data_dir, rule_sandbox.files_id);
	int fd = open(blob, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	ck_assert_int_eq(posix_fallocate(fd, 0, 64 << 20), 0);
	ck_assert_int_eq(fsync(fd), 0);
	close(fd);
	ck_assert_int_eq(statvfs(conf.data_dir, &st), 0);
	conf.min_free = (int64_t)st.f_bavail * (int64_t)st.f_frsize + (32 << 20);
	ck_assert_int_eq(rule_run(reap_disk_space)->caches_dropped, 1);
	ck_assert(!has_cache(&rule_sandbox) && has_cache(&second));
	sandbox_row_finish(&second);
	rule_teardown();
}
TEST_END

/* A file system that has bytes but hardly any inodes; false where nobody may mount one. */
static bool mount_small(const char *dir)
{
	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0)
		return false;
	return mount("tmpfs", dir, "tmpfs", 0, "size=64m,nr_inodes=1100,mode=0700") == 0;
}

/* The spool that is opened next is below dir. */
static void kit_move(const char *dir)
{
	free(conf.data_dir);
	conf.data_dir = xasprintf("%s/data", dir);
	free(conf.spool);
	conf.spool = xasprintf("%s/spool", dir);
	free(conf.state_db);
	conf.state_db = xasprintf("%s/state.db", dir);
}

/* ctx is the row of another sandbox than the one whose cache goes. */
static void use_other(void *ctx, const char *name)
{
	struct err err = ERR_INIT;
	const struct sandbox_row *row = ctx;
	if (strcmp(name, "drop_cache") == 0)
		ck_ok(row_sandbox_touch(app.db, row->id, clock_wall_ms(), 0, &err) == 1, err);
}

TEST(a_sandbox_that_is_used_while_room_is_made_keeps_its_cache)
{
	rule_setup();
	rule_later_ms = 1000; /* the one that is idle for longest comes first */
	AUTO_SANDBOX_ROW other = kit_named("other");
	make_cache(&rule_sandbox, false);
	make_cache(&other, false);
	rule_later_ms = HOUR;
	conf.min_free = INT64_MAX;
	rule_options.step = use_other;
	rule_options.ctx = &other;
	ck_assert_int_eq(rule_run(reap_disk_space)->caches_dropped, 1);
	ck_assert(!has_cache(&rule_sandbox) && has_cache(&other));
	rule_later_ms = 0;
	rule_teardown();
}
TEST_END

TEST(without_inodes_sandboxes_and_uploads_are_refused_with_the_reason)
{
	rule_setup();
	struct err err = ERR_INIT;
	app_close(&app);
	AUTO_FREE char *other = xasprintf("%s/other", kit_dir);
	ck_assert_int_eq(mkdir(other, 0700), 0);
	if (mount_small(other)) {
		kit_move(other);
		kit_open();
		struct sandbox_row row = kit_named("first"), refused = {0};
		AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
		ck_ok(sandbox_enter(&app, &row, &use, &err), err);
		ck_ok(files_check_room(&app, &use, 1, &err), err);
		ck_assert_int_eq(rule_run(reap_disk_space)->failed, 0);
		for (int i = 0; i < 100; i++) {
			AUTO_FREE char *path = xasprintf("%s/f%d", other, i);
			close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
		}
		bool created;
		const struct sandbox_options options = {.name = "second"};
		ck_assert(!sandbox_create(&app, ALICE, &options, &refused, &created, &err));
		ck_assert_int_eq(err.code, ERR_QUOTA);
		ck_assert_ptr_nonnull(strstr(err.msg, "fewer than 1000 more files"));
		ck_assert(!files_check_room(&app, &use, 1, &err));
		ck_assert_int_eq(err.code, ERR_QUOTA);
		ck_assert_ptr_nonnull(strstr(err.msg, "fewer than 1000 more files"));
		sandbox_leave(&use);
		make_cache(&row, false);
		rule_later_ms = HOUR;
		ck_assert_int_eq(rule_run(reap_disk_space)->caches_dropped, 1);
		ck_assert(!has_cache(&row));
		sandbox_row_finish(&row);
	} else {
		kit_open();
	}
	rule_teardown();
}
TEST_END

/* Writes until nothing goes any more. */
static void fill(const char *path)
{
	static const char page[4096];
	int fd = open(path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
	while (write(fd, page, sizeof(page)) > 0)
		;
	close(fd);
}

TEST(on_a_disk_that_is_entirely_full_a_pass_makes_room_before_it_writes)
{
	rule_setup();
	struct err err = ERR_INIT;
	app_close(&app);
	AUTO_FREE char *other = xasprintf("%s/other", kit_dir);
	ck_assert_int_eq(mkdir(other, 0700), 0);
	if (mount_small(other)) {
		kit_move(other);
		kit_open();
		conf.min_free = 1024 * 1024;
		struct sandbox_row row = kit_named("first");
		make_cache(&row, false);
		AUTO_FREE char *blob =
			xasprintf("%s/%s/workspace/.cache/blob", conf.data_dir, row.files_id);
		AUTO_FREE char *rest = xasprintf("%s/rest", other);
		int fd = open(blob, O_WRONLY | O_CLOEXEC);
		ck_assert_int_eq(posix_fallocate(fd, 0, 4 << 20), 0);
		close(fd);
		rule_later_ms = HOUR;
		AUTO_STMT *stmt = db_prepare(app.db, "PRAGMA wal_checkpoint(TRUNCATE)", &err);
		ck_assert_int_eq(db_step(app.db, stmt, &err), 1);
		db_release(&stmt);
		fill(rest);
		struct reap_report report;
		ck_ok(reap_pass(&app, &rule_options, &report, &err), err);
		ck_assert_int_eq(report.caches_dropped, 1);
		ck_assert(!has_cache(&row));
		sandbox_row_finish(&row);
	} else {
		kit_open();
	}
	rule_teardown();
}
TEST_END

/* --- trash, logs, database ----------------------------------------------------------------- */

TEST(the_trash_is_emptied_unless_it_is_only_looked_at)
{
	rule_setup();
	struct err err = ERR_INIT;
	struct task_row task = rule_ended_task();
	ck_ok(spool_drop_task(&app.spool, task.id, &err), err);
	ck_assert(spool_has_trash(&app.spool));
	rule_options.dry_run = true;
	rule_run(reap_trash);
	ck_assert(spool_has_trash(&app.spool));
	rule_options.dry_run = false;
	rule_run(reap_trash);
	ck_assert(!spool_has_trash(&app.spool));
	rule_teardown();
}
TEST_END

TEST(a_large_log_of_the_supervisors_is_put_aside_and_writers_go_on)
{
	rule_setup();
	struct stat st;
	AUTO_FREE char *log = xasprintf("%s/tasks.log", conf.spool);
	AUTO_FREE char *old = xasprintf("%s/tasks.log.1", conf.spool);
	AUTO_FD fd = open(log, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
	ck_assert_int_eq(ftruncate(fd, 10 << 20), 0);
	rule_run(reap_service_logs);
	ck_assert_int_eq(access(old, F_OK), -1);
	ck_assert_int_eq(ftruncate(fd, (10 << 20) + 1), 0);
	rule_options.dry_run = true;
	rule_run(reap_service_logs);
	ck_assert_int_eq(access(old, F_OK), -1);
	rule_options.dry_run = false;
	rule_run(reap_service_logs);
	ck_assert_int_eq(access(log, F_OK), -1);
	ck_assert_int_eq(write(fd, "x", 1), 1);
	ck_assert_int_eq(stat(old, &st), 0);
	ck_assert_int_eq(st.st_size, (10 << 20) + 2);
	rule_teardown();
}
TEST_END

static int64_t ask(const char *sql)
{
	sqlite3 *handle;
	sqlite3_stmt *stmt;
	ck_assert_int_eq(sqlite3_open(conf.state_db, &handle), SQLITE_OK);
	ck_assert_int_eq(sqlite3_prepare_v2(handle, sql, -1, &stmt, NULL), SQLITE_OK);
	ck_assert_int_eq(sqlite3_step(stmt), SQLITE_ROW);
	int64_t value = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	sqlite3_close(handle);
	return value;
}

TEST(the_database_gives_back_the_room_of_what_was_deleted)
{
	rule_setup();
	struct stat before, after;
	AUTO_FREE char *log = xasprintf("%s-wal", conf.state_db);
	ck_assert_int_eq(ask("PRAGMA auto_vacuum"), 2);
	kit_sql("CREATE TABLE big (text TEXT);"
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
		" INSERT INTO big SELECT printf('%01000d', i) FROM n; DROP TABLE big");
	ck_assert_int_gt(ask("PRAGMA freelist_count"), 4000);
	rule_run(reap_database);
	ck_assert_int_eq(rule_report.failed, 0);
	ck_assert_int_le(ask("PRAGMA freelist_count"), 256);
	rule_run(reap_database);
	ck_assert_int_eq(stat(conf.state_db, &after), 0);
	ck_assert_int_lt(after.st_size, 4 << 20);
	ck_assert_int_eq(stat(log, &before), 0);
	ck_assert_int_lt(before.st_size, 5 << 20);
	rule_teardown();
}
TEST_END

TEST(a_reader_who_takes_long_does_not_hold_the_rule_up)
{
	rule_setup();
	sqlite3 *reader;
	kit_sql("CREATE TABLE big (text TEXT);"
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)"
		" INSERT INTO big SELECT printf('%01000d', i) FROM n");
	ck_assert_int_eq(sqlite3_open(conf.state_db, &reader), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(reader, "BEGIN; SELECT * FROM big", NULL, NULL, NULL),
			 SQLITE_OK);
	kit_sql("DROP TABLE big");
	clock_use(NULL);
	int64_t start_ms = clock_mono_ms();
	clock_use(&rule_clock);
	rule_run(reap_database);
	clock_use(NULL);
	ck_assert_int_lt(clock_mono_ms() - start_ms, 5000);
	ck_assert_int_eq(rule_report.failed, 0);
	sqlite3_close(reader);
	clock_use(&rule_clock);
	rule_teardown();
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		links_go_when_they_expired_or_a_day_after_their_use,
		a_link_from_before_a_jump_of_the_clock_is_judged_by_its_age,
		a_link_that_was_made_in_the_future_lasts_as_long_as_it_was_to,
		what_is_gone_for_long_is_forgotten_with_its_tasks_and_links,
		a_row_stays_while_something_of_the_sandbox_is_there,
		files_that_a_later_sandbox_took_over_do_not_keep_the_row_of_the_first,
		a_pass_that_dies_while_it_forgets_is_made_good_by_the_next,
		on_a_full_disk_the_caches_of_idle_sandboxes_go_and_nothing_else,
		a_workspace_whose_mode_forbids_it_keeps_its_cache_and_is_no_failure,
		the_sandbox_that_is_idle_for_longest_gives_its_cache_first_and_enough_is_enough,
		a_sandbox_that_is_used_while_room_is_made_keeps_its_cache,
		without_inodes_sandboxes_and_uploads_are_refused_with_the_reason,
		on_a_disk_that_is_entirely_full_a_pass_makes_room_before_it_writes,
		the_trash_is_emptied_unless_it_is_only_looked_at,
		a_large_log_of_the_supervisors_is_put_aside_and_writers_go_on,
		the_database_gives_back_the_room_of_what_was_deleted,
		a_reader_who_takes_long_does_not_hold_the_rule_up,
	};
	return unit_run("reap_store", unit_tests, ARRAY_LEN(unit_tests));
}
