/* Background tasks over real sandboxes and real supervisors. */
#include "box_kit.h"

#include <sys/prctl.h>

#include "base/json.h"
#include "base/lock.h"
#include "base/log.h"
#include "box/sandbox.h"
#include "box/supervise.h"
#include "box/task.h"
#include "box/task_settle.h"
#include "run/record.h"
#include "store/task_dir.h"

#define ALICE   "alice"
#define MINUTE  60000
#define WAIT_MS 20000

static char *dir;
static struct conf conf;
static struct app app;
static struct sandbox_row sandbox;
static struct sandbox_use use;

static void open_app(void)
{
	struct err err = ERR_INIT;
	ck_ok(app_open(&app, &conf, &err), err);
}

static void enter(void)
{
	struct err err = ERR_INIT;
	ck_ok(sandbox_enter(&app, &sandbox, &use, &err), err);
}

static void setup(void)
{
	struct err err = ERR_INIT;
	bool created;
	/* What lost its supervisor on purpose is a warning. */
	log_open("test", LOG_ERROR);
	dir = xasprintf("%s/app-XXXXXX", getenv(KIT_ENV));
	ck_assert_ptr_nonnull(mkdtemp(dir));
	setenv("SMCP_SPOOL", dir, 1);
	setenv("SMCP_TOKEN", "the-servers-own-token", 1);
	/* A random key may begin with a newline; then masking would hold the last one back. */
	setenv("SMCP_SIGNING_KEY", "the-servers-own-signing-key", 1);
	setenv("SMCP_ENV_FILE", "/dev/null", 1);
	setenv("SMCP_LOG_LEVEL", "error", 1);
	ck_ok(conf_load(&conf, &err), err);
	open_app();
	AUTO_JSON *env = json_literal("{\"API_KEY\":\"hunter2-hunter2\"}");
	const struct sandbox_options options = {.name = "work", .env = env};
	ck_ok(sandbox_create(&app, ALICE, &options, &sandbox, &created, &err), err);
	enter();
}

static void destroy(void)
{
	struct err err = ERR_INIT;
	struct sandbox_destroyed destroyed = {.name = NULL};
	if (!sandbox_destroy(&app, ALICE, "work", true, &destroyed, &err))
		ck_assert_msg(err.code == ERR_NOT_FOUND, "%s [%s]", err.msg, err.trace);
	free(destroyed.name);
}

static void teardown(void)
{
	sandbox_leave(&use);
	destroy();
	sandbox_row_finish(&sandbox);
	app_close(&app);
	conf_finish(&conf);
	unit_tempdir_remove(dir);
}

/* Runs SQL on the database directly. */
static void run_sql(const char *sql)
{
	sqlite3 *handle;
	ck_assert_int_eq(sqlite3_open(conf.state_db, &handle), SQLITE_OK);
	sqlite3_busy_timeout(handle, 5000);
	ck_assert_int_eq(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(handle);
}

/* --- short forms --------------------------------------------------------------------------- */

static struct task_options options_of(const char *command)
{
	return (struct task_options){.exec = {.command = command, .timeout_ms = MINUTE},
				     .origin = TASK_ORIGIN_TASK};
}

static bool try_start(const struct task_options *options, struct task_row *row, bool *existing,
		      struct err *err)
{
	*err = (struct err)ERR_INIT;
	*row = (struct task_row){.id = ""};
	return task_start(&app, &sandbox, &use, options, row, existing, err);
}

static struct task_row start_with(const struct task_options *options)
{
	struct err err;
	struct task_row row;
	bool existing;
	ck_ok(try_start(options, &row, &existing, &err), err);
	ck_assert(!existing);
	return row;
}

static struct task_row start(const char *command)
{
	struct task_options options = options_of(command);
	return start_with(&options);
}

static struct task_row find(const char *id)
{
	struct err err = ERR_INIT;
	struct task_row row = {.id = ""};
	ck_ok(task_find(&app, ALICE, id, NULL, &row, &err), err);
	return row;
}

static void wait_end(struct task_row *row)
{
	struct err err = ERR_INIT;
	ck_ok(task_wait(&app, row, WAIT_MS, -1, -1, NULL, NULL, &err), err);
	ck_assert_int_ne(row->state, TASK_RUNNING);
}

static const char *output(const struct task_row *row, enum record_stream stream)
{
	static struct buf out;
	struct err err = ERR_INIT;
	struct record_page page;
	AUTO_FD fd = task_log(&app, row, &err);
	ck_ok(fd >= 0, err);
	buf_clear(&out);
	ck_ok(record_read(fd, stream, 0, RECORD_KEPT_MAX, &out, &page, &err), err);
	return buf_str(&out);
}

static void expect_state(const struct task_row *row, enum task_state state)
{
	ck_assert_msg(row->state == state, "%s, not %s: %s", task_state_name(row->state),
		      task_state_name(state), row->reason == NULL ? "" : row->reason);
}

/* Asserts how a task ends, and that the database and a second look say the same. */
static void expect_end(const char *command, enum task_state state, int code, int signal)
{
	AUTO_TASK_ROW row = start(command);
	wait_end(&row);
	expect_state(&row, state);
	ck_assert_int_eq(row.has_exit_code, signal == 0);
	ck_assert_int_eq(row.exit_code, code);
	ck_assert_int_eq(row.signal, signal);
	ck_assert_int_gt(row.started_at, 0);
	ck_assert_int_ge(row.finished_at, row.started_at);
	AUTO_TASK_ROW again = find(row.id);
	expect_state(&again, state);
	ck_assert_int_eq(again.exit_code, code);
}

/* A process on the host whose command line has both words; 0 when there is none. */
static pid_t find_process(const char *first, const char *second)
{
	pid_t found = 0;
	DIR *proc = opendir("/proc");
	for (struct dirent *entry; (entry = readdir(proc)) != NULL;) {
		char path[300], line[4096];
		snprintf(path, sizeof(path), "/proc/%s/cmdline", entry->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t len = fd < 0 ? -1 : read(fd, line, sizeof(line));
		if (fd >= 0)
			close(fd);
		if (len > 0 && memmem(line, (size_t)len, first, strlen(first)) != NULL &&
		    memmem(line, (size_t)len, second, strlen(second)) != NULL)
			found = atoi(entry->d_name);
	}
	closedir(proc);
	return found;
}

static void kill_supervisor(const char *id)
{
	pid_t pid = find_process(SUPERVISE_PROGRAM, id);
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
}

static bool exists(const char *prefix, const char *id)
{
	AUTO_FREE char *path = xasprintf("%s/tasks/%s%s", dir, prefix, id);
	return access(path, F_OK) == 0;
}

/* --- start and end ------------------------------------------------------------------------- */

TEST(a_task_runs_and_its_outcome_and_output_are_kept)
{
	setup();
	AUTO_TASK_ROW row = start("echo out; echo problem >&2; echo $API_KEY; exit 0");
	ck_assert_int_eq((int)strlen(row.id), ID_LEN);
	ck_assert_str_eq(row.sandbox_id, sandbox.id);
	wait_end(&row);
	expect_state(&row, TASK_SUCCEEDED);
	ck_assert_str_eq(output(&row, RECORD_STDOUT), "out\n***\n");
	ck_assert_str_eq(output(&row, RECORD_STDERR), "problem\n");
	expect_end("exit 7", TASK_FAILED, 7, 0);
	expect_end("kill -9 $$", TASK_FAILED, 0, SIGKILL);
	teardown();
}
TEST_END

TEST(a_task_gets_its_directory_environment_and_timeout)
{
	setup();
	AUTO_JSON *env = json_literal("{\"WORD\":\"hello\"}");
	struct task_options options = options_of("pwd; echo $WORD; sleep 77");
	options.exec.cwd = "/tmp";
	options.exec.env = env;
	options.exec.timeout_ms = 1000;
	AUTO_TASK_ROW row = start_with(&options);
	wait_end(&row);
	expect_state(&row, TASK_TIMED_OUT);
	ck_assert_str_eq(output(&row, RECORD_STDOUT), "/tmp\nhello\n");
	teardown();
}
TEST_END

static enum err_code check(struct task_options *options)
{
	struct err err = ERR_INIT;
	return task_check(&app, options, &err) ? ERR_NONE : err.code;
}

TEST(bad_options_are_refused_before_anything_starts)
{
	setup();
	struct task_options options = options_of("true");
	ck_assert_int_eq(check(&options), ERR_NONE);
	static const int64_t bad_ms[] = {0, -1, TASK_TIMEOUT_MAX * 1000LL + 1, INT64_MAX};
	for (size_t i = 0; i < ARRAY_LEN(bad_ms); i++) {
		options.exec.timeout_ms = bad_ms[i];
		ck_assert_int_eq(check(&options), ERR_INVALID);
	}
	options.exec.timeout_ms = TASK_TIMEOUT_MAX * 1000LL;
	ck_assert_int_eq(check(&options), ERR_NONE);
	/* The setting may allow jobs more, not others. */
	conf.job_timeout = 2 * TASK_TIMEOUT_MAX;
	options.exec.timeout_ms = 2 * TASK_TIMEOUT_MAX * 1000LL;
	ck_assert_int_eq(check(&options), ERR_INVALID);
	options.origin = TASK_ORIGIN_JOB;
	ck_assert_int_eq(check(&options), ERR_NONE);
	options.exec.timeout_ms++;
	ck_assert_int_eq(check(&options), ERR_INVALID);
	options.exec.timeout_ms--;
	AUTO_TASK_ROW patient = start_with(&options);
	wait_end(&patient);
	expect_state(&patient, TASK_SUCCEEDED);
	options = options_of("");
	ck_assert_int_eq(check(&options), ERR_INVALID);
	char id[130];
	memset(id, 'x', sizeof(id));
	static const char *const bad_ids[] = {"", "tab\t", "\x7f", "\xc3\xa9"};
	options = options_of("true");
	for (size_t i = 0; i < ARRAY_LEN(bad_ids); i++) {
		options.request_id = bad_ids[i];
		ck_assert_int_eq(check(&options), ERR_INVALID);
	}
	options.request_id = id;
	id[129] = '\0';
	ck_assert_int_eq(check(&options), ERR_INVALID);
	id[128] = '\0';
	ck_assert_int_eq(check(&options), ERR_NONE);
	struct err err;
	struct task_row row;
	bool existing;
	options = options_of("true");
	options.exec.cwd = "/no/such/place";
	ck_assert(!try_start(&options, &row, &existing, &err));
	ck_assert_int_eq(err.code, ERR_INVALID);
	ck_assert_ptr_nonnull(strstr(err.msg, "/no/such/place"));
	ck_assert_int_eq(row_task_count(app.db, sandbox.id, &err), 1);
	teardown();
}
TEST_END

TEST(only_the_owner_finds_a_task_and_only_by_its_id)
{
	setup();
	AUTO_TASK_ROW row = start("true");
	struct task_row other = {.id = ""};
	struct err err = ERR_INIT;
	ck_assert(!task_find(&app, "bob", row.id, NULL, &other, &err));
	ck_assert_int_eq(err.code, ERR_NOT_FOUND);
	char unknown[384];
	ck_assert(!task_find(&app, ALICE, sandbox.id, NULL, &other, &err));
	ck_assert_int_eq(err.code, ERR_NOT_FOUND);
	snprintf(unknown, sizeof(unknown), "%s", err.hint);
	ck_assert(!task_find(&app, ALICE, row.id, row.id, &other, &err));
	ck_assert_int_eq(err.code, ERR_NOT_FOUND);
	ck_assert_str_eq(err.hint, unknown);
	ck_ok(task_find(&app, ALICE, row.id, sandbox.id, &other, &err), err);
	task_row_finish(&other);
	static const char *const bad[] = {"", "12", "../../../etc/passwd", NULL,
					  "0123456789ABCDEF0123456789ABCDEF"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		ck_assert(!task_find(&app, ALICE, bad[i], NULL, &other, &err));
		ck_assert_int_eq(err.code, ERR_INVALID);
	}
	wait_end(&row);
	teardown();
}
TEST_END

/* Runs work in count processes at once, each with an app of its own. */
typedef int worker(int index);
static void in_processes(int count, worker *work)
{
	sandbox_leave(&use);
	app_close(&app);
	for (int i = 0; i < count; i++) {
		if (fork() != 0)
			continue;
		open_app();
		enter();
		int status = work(i);
		sandbox_leave(&use);
		app_close(&app);
		_exit(status);
	}
	int status, failed = 0;
	while (wait(&status) > 0)
		failed += status != 0;
	ck_assert_int_eq(failed, 0);
	open_app();
	enter();
}

#define ROUNDS    3
#define AT_A_TIME 10

/* Starts ten, then looks at each; with ten processes that is a hundred at a time. */
static int run_short_tasks(int index)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct task_row rows[AT_A_TIME];
		for (int i = 0; i < AT_A_TIME; i++) {
			AUTO_FREE char *command =
				xasprintf("echo %d-%d-%d; exit %d", index, round, i, index + i);
			rows[i] = start(command);
		}
		for (int i = 0; i < AT_A_TIME; i++) {
			AUTO_FREE char *line = xasprintf("%d-%d-%d\n", index, round, i);
			wait_end(&rows[i]);
			ck_assert_int_eq(rows[i].has_exit_code, 1);
			ck_assert_int_eq(rows[i].exit_code, index + i);
			ck_assert_str_eq(output(&rows[i], RECORD_STDOUT), line);
			task_row_finish(&rows[i]);
		}
	}
	return 0;
}

TEST(of_300_short_tasks_a_hundred_at_a_time_none_loses_its_output_or_exit_code)
{
	setup();
	in_processes(10, run_short_tasks);
	struct err err = ERR_INIT;
	ck_assert_int_eq(row_task_count(app.db, sandbox.id, &err), 300);
	ck_assert_int_eq(row_task_count_running(app.db, sandbox.id, &err), 0);
	/* When they are not fresh any more, there are too many of them. */
	run_sql("UPDATE task SET finished_at = finished_at - 100000");
	for (int i = 0; i < 3; i++) {
		AUTO_TASK_ROW row = start("true");
		wait_end(&row);
	}
	ck_assert_int_eq(row_task_count(app.db, sandbox.id, &err), 300 - 3 * 7);
	teardown();
}
TEST_END

/* --- request ids --------------------------------------------------------------------------- */

TEST(a_request_id_that_comes_again_is_the_same_task)
{
	setup();
	struct err err;
	bool existing;
	struct task_options options = options_of("echo x >> /workspace/runs; sleep 0.3");
	options.request_id = "r-1";
	AUTO_TASK_ROW row = start_with(&options);
	struct task_row again;
	ck_ok(try_start(&options, &again, &existing, &err), err);
	ck_assert(existing);
	ck_assert_str_eq(again.id, row.id);
	wait_end(&again);
	task_row_finish(&again);
	ck_ok(try_start(&options, &again, &existing, &err), err);
	ck_assert(existing);
	expect_state(&again, TASK_SUCCEEDED);
	task_row_finish(&again);
	options.exec.command = "echo other";
	ck_assert(!try_start(&options, &again, &existing, &err));
	ck_assert_int_eq(err.code, ERR_CONFLICT);
	options.request_id = "r-2";
	AUTO_TASK_ROW other = start_with(&options);
	ck_assert_str_ne(other.id, row.id);
	wait_end(&other);
	AUTO_TASK_ROW count = start("wc -l < /workspace/runs");
	wait_end(&count);
	ck_assert_str_eq(output(&count, RECORD_STDOUT), "1\n");
	teardown();
}
TEST_END

static int start_same(int index)
{
	struct err err;
	struct task_row row;
	bool existing;
	struct task_options options = options_of("echo x >> /workspace/runs; sleep 0.2");
	(void)index;
	options.request_id = "same";
	ck_ok(try_start(&options, &row, &existing, &err), err);
	ck_assert(row.state == TASK_RUNNING || row.state == TASK_SUCCEEDED);
	ck_assert_int_gt(row.started_at, 0);
	task_row_finish(&row);
	return 0;
}

TEST(of_many_starts_with_one_request_id_at_once_one_runs)
{
	setup();
	in_processes(12, start_same);
	struct err err = ERR_INIT;
	ck_assert_int_eq(row_task_count(app.db, sandbox.id, &err), 1);
	AUTO_TASK_ROW count = start("sleep 0.3; wc -l < /workspace/runs");
	wait_end(&count);
	ck_assert_str_eq(output(&count, RECORD_STDOUT), "1\n");
	teardown();
}
TEST_END

/* --- the limit ----------------------------------------------------------------------------- */

/* A row as a start makes it. */
static void insert(const char *id, int64_t created_at, enum task_state state)
{
	struct err err = ERR_INIT;
	struct task_row row = {.principal = (char *)ALICE,
			       .origin = TASK_ORIGIN_TASK,
			       .command = (char *)"true",
			       .timeout_ms = MINUTE,
			       .state = state,
			       .created_at = created_at};
	memcpy(row.id, id, sizeof(row.id));
	memcpy(row.sandbox_id, sandbox.id, sizeof(row.sandbox_id));
	AUTO_TX tx = TX_INIT;
	ck_ok(db_begin(app.db, &tx, &err), err);
	ck_assert_int_eq(row_task_insert(app.db, &row, &err), 1);
	ck_ok(db_commit(&tx, &err), err);
}

static void insert_many(int count, enum task_state state)
{
	for (int i = 0; i < count; i++) {
		char id[ID_LEN + 1];
		id_make(id);
		insert(id, clock_wall_ms(), state);
	}
}

static void age(const char *id)
{
	AUTO_FREE char *sql =
		xasprintf("UPDATE task SET finished_at = finished_at - 61000 WHERE id = '%s'", id);
	run_sql(sql);
}

TEST(finished_tasks_make_room_but_not_at_once)
{
	setup();
	struct err err = ERR_INIT;
	AUTO_TASK_ROW first = start("echo first");
	wait_end(&first);
	AUTO_TASK_ROW second = start("echo second");
	wait_end(&second);
	insert_many(TASKS_MAX - 2, TASK_RUNNING);
	AUTO_TASK_ROW third = start("true");
	wait_end(&third);
	ck_assert_str_eq(output(&first, RECORD_STDOUT), "first\n");
	ck_assert_int_eq(row_task_count(app.db, sandbox.id, &err), TASKS_MAX + 1);
	age(second.id);
	AUTO_TASK_ROW fourth = start("true");
	wait_end(&fourth);
	struct task_row gone = {.id = ""};
	ck_assert(!task_find(&app, ALICE, second.id, NULL, &gone, &err));
	ck_assert_int_eq(err.code, ERR_NOT_FOUND);
	ck_assert(!exists("", second.id));
	ck_assert_int_eq(task_log(&app, &second, &err), -1);
	ck_assert_int_eq(err.code, ERR_GONE);
	ck_assert_str_eq(output(&first, RECORD_STDOUT), "first\n");
	ck_assert_int_eq(row_task_count(app.db, sandbox.id, &err), TASKS_MAX + 1);
	teardown();
}
TEST_END

TEST(very_many_finished_tasks_make_room_at_once)
{
	setup();
	struct err err = ERR_INIT;
	insert_many(4 * TASKS_MAX, TASK_FAILED);
	run_sql("UPDATE task SET finished_at = created_at");
	for (int i = 0; i < 3; i++) {
		AUTO_TASK_ROW row = start("true");
		wait_end(&row);
	}
	ck_assert_int_eq(row_task_count(app.db, sandbox.id, &err), 4 * TASKS_MAX);
	teardown();
}
TEST_END

TEST(when_all_run_nothing_more_starts_until_one_ends_or_turns_out_lost)
{
	setup();
	struct err err;
	struct task_row row;
	bool existing;
	struct task_options options = options_of("true");
	insert_many(TASKS_MAX, TASK_RUNNING);
	ck_assert(!try_start(&options, &row, &existing, &err));
	ck_assert_int_eq(err.code, ERR_QUOTA);
	ck_assert_ptr_nonnull(strstr(err.msg, "128"));
	ck_assert_int_eq(row_task_count(app.db, sandbox.id, &err), TASKS_MAX);
	run_sql("UPDATE task SET created_at = created_at - 60000");
	AUTO_TASK_ROW started = start_with(&options);
	wait_end(&started);
	expect_state(&started, TASK_SUCCEEDED);
	teardown();
}
TEST_END

/* --- cancel -------------------------------------------------------------------------------- */

TEST(cancelling_ends_everything_and_can_be_repeated)
{
	setup();
	const char *marker = kit_marker();
	AUTO_FREE char *command =
		xasprintf("trap '' TERM; echo up; setsid sleep %s & (sleep %s & ) ; sleep %s",
			  marker, marker, marker);
	struct err err = ERR_INIT;
	AUTO_TASK_ROW row = start(command);
	ck_ok(task_wait(&app, &row, WAIT_MS, 0, -1, NULL, NULL, &err), err);
	expect_state(&row, TASK_RUNNING);
	int64_t start_ms = clock_mono_ms();
	ck_ok(task_cancel(&app, &row, &err), err);
	ck_assert_int_lt(clock_mono_ms() - start_ms, TASK_CANCEL_WAIT_MS + 500);
	expect_state(&row, TASK_CANCELLED);
	ck_assert_int_eq(kit_settle(marker, 0), 0);
	int64_t finished_at = row.finished_at;
	AUTO_TASK_ROW again = find(row.id);
	ck_ok(task_cancel(&app, &again, &err), err);
	expect_state(&again, TASK_CANCELLED);
	ck_assert_int_eq(again.finished_at, finished_at);
	ck_assert_str_eq(output(&again, RECORD_STDOUT), "up\n");
	AUTO_TASK_ROW done = start("exit 9");
	wait_end(&done);
	ck_ok(task_cancel(&app, &done, &err), err);
	expect_state(&done, TASK_FAILED);
	ck_assert_int_eq(done.exit_code, 9);
	teardown();
}
TEST_END

/* checklist 80 */
TEST(a_cancel_that_meets_the_end_changes_no_outcome)
{
	setup();
	struct err err = ERR_INIT;
	for (int i = 0; i < 20; i++) {
		AUTO_FREE char *command = xasprintf("sleep 0.0%d; exit 6", i % 10);
		AUTO_TASK_ROW row = start(command);
		clock_sleep_ms(i * 5);
		ck_ok(task_cancel(&app, &row, &err), err);
		ck_assert_int_ne(row.state, TASK_RUNNING);
		if (row.state == TASK_FAILED)
			ck_assert_int_eq(row.exit_code, 6);
		else
			expect_state(&row, TASK_CANCELLED);
		AUTO_TASK_ROW again = find(row.id);
		ck_assert_int_eq(again.state, row.state);
		ck_assert_int_eq(again.finished_at, row.finished_at);
	}
	teardown();
}
TEST_END

/* --- what is lost -------------------------------------------------------------------------- */

/* checklist 83 */
TEST(a_killed_supervisor_makes_its_task_unknown_and_ends_the_command)
{
	setup();
	const char *marker = kit_marker();
	AUTO_FREE char *command = xasprintf("echo seen; sleep %s", marker);
	struct err err = ERR_INIT;
	AUTO_TASK_ROW row = start(command);
	ck_ok(task_wait(&app, &row, WAIT_MS, 0, -1, NULL, NULL, &err), err);
	kill_supervisor(row.id);
	wait_end(&row);
	expect_state(&row, TASK_UNKNOWN);
	ck_assert_ptr_nonnull(row.reason);
	ck_assert(!row.has_exit_code);
	ck_assert_int_eq(kit_settle(marker, 0), 0);
	ck_assert_str_eq(output(&row, RECORD_STDOUT), "seen\n");
	ck_ok(task_cancel(&app, &row, &err), err);
	AUTO_TASK_ROW again = find(row.id);
	expect_state(&again, TASK_UNKNOWN);
	ck_assert_int_eq(again.finished_at, row.finished_at);
	teardown();
}
TEST_END

static char lost_id[ID_LEN + 1];

static int look_at_lost(int index)
{
	(void)index;
	AUTO_TASK_ROW row = find(lost_id);
	wait_end(&row); /* for somebody else who just settles it */
	expect_state(&row, TASK_UNKNOWN);
	return 0;
}

TEST(many_that_find_a_lost_task_at_once_agree)
{
	setup();
	for (int i = 0; i < 5; i++) {
		AUTO_TASK_ROW row = start("sleep 100");
		memcpy(lost_id, row.id, sizeof(lost_id));
		kill_supervisor(row.id);
		while (find_process(SUPERVISE_PROGRAM, row.id) != 0)
			clock_sleep_ms(5);
		in_processes(8, look_at_lost);
	}
	teardown();
}
TEST_END

TEST(a_result_that_the_row_has_missed_is_taken_from_the_directory)
{
	setup();
	AUTO_TASK_ROW row = start("exit 4");
	wait_end(&row);
	run_sql("UPDATE task SET state = 'running', exit_code = NULL, finished_at = 0");
	AUTO_TASK_ROW again = find(row.id);
	expect_state(&again, TASK_FAILED);
	ck_assert_int_eq(again.exit_code, 4);
	ck_assert_int_eq(again.finished_at, row.finished_at);
	struct err err = ERR_INIT;
	ck_assert_int_eq(row_task_count_running(app.db, sandbox.id, &err), 0);
	teardown();
}
TEST_END

TEST(a_row_without_a_directory_is_starting_while_it_is_young_and_then_never_started)
{
	setup();
	char id[ID_LEN + 1];
	struct err err = ERR_INIT;
	id_make(id);
	insert(id, clock_wall_ms() - TASK_STARTING_MS + 5000, TASK_RUNNING);
	AUTO_TASK_ROW young = find(id);
	expect_state(&young, TASK_RUNNING);
	ck_assert_int_eq(task_log(&app, &young, &err), -1);
	ck_assert_int_eq(err.code, ERR_BUSY);
	id_make(id);
	insert(id, clock_wall_ms() - TASK_STARTING_MS - 1, TASK_RUNNING);
	AUTO_TASK_ROW old = find(id);
	expect_state(&old, TASK_UNKNOWN);
	ck_assert_ptr_nonnull(strstr(old.reason, "never started"));
	ck_assert_int_eq(task_log(&app, &old, &err), -1);
	ck_assert_int_eq(err.code, ERR_GONE);
	/* One from the future, after the clock was set back. */
	id_make(id);
	insert(id, clock_wall_ms() + 10LL * MINUTE, TASK_RUNNING);
	AUTO_TASK_ROW future = find(id);
	expect_state(&future, TASK_UNKNOWN);
	teardown();
}
TEST_END

TEST(a_directory_that_was_not_published_is_removed_unless_somebody_is_at_work_on_it)
{
	setup();
	char id[ID_LEN + 1];
	struct err err = ERR_INIT;
	AUTO_JSON *spec = json_object_new_object();
	id_make(id);
	insert(id, clock_wall_ms() - 10LL * MINUTE, TASK_RUNNING);
	AUTO_FD dirfd = task_dir_make(&app.spool, id, spec, &err);
	ck_ok(dirfd >= 0, err);
	AUTO_FD lock = task_dir_take_lock(dirfd, &err);
	AUTO_TASK_ROW slow = find(id);
	expect_state(&slow, TASK_RUNNING);
	/* It comes to be while it is looked at. */
	ck_ok(task_dir_publish(&app.spool, id, &err), err);
	AUTO_TASK_ROW visible = find(id);
	expect_state(&visible, TASK_RUNNING);
	util_close(&lock);
	AUTO_TASK_ROW lost = find(id);
	expect_state(&lost, TASK_UNKNOWN);
	ck_assert(exists("", id));
	id_make(id);
	insert(id, clock_wall_ms() - 10LL * MINUTE, TASK_RUNNING);
	AUTO_FD other = task_dir_make(&app.spool, id, spec, &err);
	ck_ok(other >= 0, err);
	AUTO_TASK_ROW dead = find(id);
	expect_state(&dead, TASK_UNKNOWN);
	ck_assert(!exists(".new-", id));
	teardown();
}
TEST_END

TEST(destroying_the_sandbox_ends_its_tasks_as_unknown_with_that_reason)
{
	setup();
	const char *marker = kit_marker();
	AUTO_FREE char *command = xasprintf("echo before; sleep %s", marker);
	struct err err = ERR_INIT;
	AUTO_TASK_ROW row = start(command);
	ck_ok(task_wait(&app, &row, WAIT_MS, 0, -1, NULL, NULL, &err), err);
	destroy();
	ck_assert_int_eq(kit_settle(marker, 0), 0);
	wait_end(&row);
	expect_state(&row, TASK_UNKNOWN);
	ck_assert_ptr_nonnull(strstr(row.reason, "destroyed"));
	ck_assert_str_eq(output(&row, RECORD_STDOUT), "before\n");
	struct task_options options = options_of("true");
	struct task_row late;
	bool existing;
	ck_assert(!try_start(&options, &late, &existing, &err));
	ck_assert_int_eq(err.code, ERR_DESTROYED);
	teardown();
}
TEST_END

/* --- wait ---------------------------------------------------------------------------------- */

static int ticks;

static bool two_ticks(void *ctx)
{
	ck_assert_ptr_eq(ctx, &ticks);
	return ++ticks < 2;
}

static int64_t wait_took(struct task_row *row, int64_t wait_ms, int64_t out, int64_t errors,
			 task_tick *tick)
{
	struct err err = ERR_INIT;
	int64_t start_ms = clock_mono_ms();
	ck_ok(task_wait(&app, row, wait_ms, out, errors, tick, &ticks, &err), err);
	return clock_mono_ms() - start_ms;
}

TEST(a_wait_ends_with_output_the_end_the_time_or_the_callers_patience)
{
	setup();
	AUTO_TASK_ROW row = start("echo 12345; sleep 1; echo problem >&2; sleep 3");
	ck_assert_int_lt(wait_took(&row, WAIT_MS, 0, 0, NULL), 800);
	ck_assert_str_eq(output(&row, RECORD_STDOUT), "12345\n");
	ck_assert_int_ge(wait_took(&row, 200, 6, -1, NULL), 200);
	ck_assert_int_ge(wait_took(&row, 200, 1000, 1000, NULL), 200);
	ck_assert_int_lt(wait_took(&row, WAIT_MS, 6, 0, NULL), 2000);
	ck_assert_str_eq(output(&row, RECORD_STDERR), "problem\n");
	expect_state(&row, TASK_RUNNING);
	ticks = 0;
	int64_t took_ms = wait_took(&row, WAIT_MS, 6, 8, two_ticks);
	ck_assert_int_eq(ticks, 2);
	ck_assert_int_ge(took_ms, 950);
	ck_assert_int_lt(took_ms, 1500);
	expect_state(&row, TASK_RUNNING);
	ck_assert_int_lt(wait_took(&row, WAIT_MS, 6, 8, NULL), 5000);
	expect_state(&row, TASK_SUCCEEDED);
	ck_assert_int_lt(wait_took(&row, WAIT_MS, 6, 8, NULL), 50);
	teardown();
}
TEST_END

TEST(nobody_waits_for_output_that_is_not_kept)
{
	setup();
	struct err err = ERR_INIT;
	AUTO_TASK_ROW row = start("yes | head -c 3000000; sleep 2");
	ck_assert_int_lt(wait_took(&row, WAIT_MS, RECORD_KEPT_MAX - 1, -1, NULL), 1900);
	ck_assert_int_ge(wait_took(&row, 300, RECORD_KEPT_MAX, -1, NULL), 300);
	ck_ok(task_cancel(&app, &row, &err), err);
	expect_state(&row, TASK_CANCELLED);
	teardown();
}
TEST_END

/* --- a foreground command that takes long -------------------------------------------------- */

static struct session session;

static bool run_foreground(const char *command, int64_t wait_ms)
{
	struct err err = ERR_INIT;
	bool ended = true;
	const struct exec_options options = {.command = command};
	session_init(&session, 32768, 8192);
	ck_ok(exec_run_for(&app, &sandbox, &use, &options, wait_ms, NULL, NULL, &session, &ended,
			   &err),
	      err);
	return ended;
}

static bool adopt(const char *command, struct task_row *row, struct err *err)
{
	const struct exec_options options = {.command = command};
	*err = (struct err)ERR_INIT;
	*row = (struct task_row){.id = ""};
	return task_adopt(&app, &sandbox, &session, &options, row, err);
}

/* Lines 1 to n, each once and in order. */
static void expect_lines(const char *text, int n)
{
	AUTO_BUF expected = BUF_INIT;
	for (int i = 1; i <= n; i++)
		buf_printf(&expected, "%d\n", i);
	ck_assert_str_eq(text, buf_str(&expected));
}

TEST(a_long_foreground_command_becomes_a_task_without_losing_or_repeating_a_line)
{
	setup();
	struct err err;
	struct task_row row;
	const char *command =
		"for i in {1..300}; do echo $i; echo $i >&2; sleep 0.01; done; exit 3";
	ck_assert(!run_foreground(command, 1000));
	ck_assert_int_gt(session.out.total, 0);
	ck_ok(adopt(command, &row, &err), err);
	expect_state(&row, TASK_RUNNING);
	ck_assert_int_eq(row.origin, TASK_ORIGIN_EXEC);
	ck_assert_int_eq(row.timeout_ms, conf.exec_timeout * 1000);
	ck_assert_int_eq(session.exec.fd, -1);
	ck_assert_int_gt(session.out.total, 0);
	session_finish(&session);
	wait_end(&row);
	expect_state(&row, TASK_FAILED);
	ck_assert_int_eq(row.exit_code, 3);
	ck_assert_int_ge(row.finished_at - row.started_at, 3000);
	expect_lines(output(&row, RECORD_STDOUT), 300);
	expect_lines(output(&row, RECORD_STDERR), 300);
	task_row_finish(&row);
	teardown();
}
TEST_END

TEST(masking_goes_on_across_the_hand_over)
{
	setup();
	struct err err;
	struct task_row row;
	const char *command = "printf 'x hunter2-'; exec 2>&-; sleep 1; echo hunter2 y";
	ck_assert(!run_foreground(command, 500));
	ck_ok(adopt(command, &row, &err), err);
	session_finish(&session);
	wait_end(&row);
	ck_assert_str_eq(output(&row, RECORD_STDOUT), "x *** y\n");
	ck_assert_str_eq(output(&row, RECORD_STDERR), "");
	task_row_finish(&row);
	teardown();
}
TEST_END

TEST(a_command_that_became_a_task_keeps_its_timeout_and_can_be_cancelled)
{
	setup();
	struct err err;
	struct task_row row;
	conf.exec_timeout = 2;
	ck_assert(!run_foreground("sleep 78", 1000));
	ck_ok(adopt("sleep 78", &row, &err), err);
	session_finish(&session);
	int64_t start_ms = clock_mono_ms();
	wait_end(&row);
	ck_assert_int_lt(clock_mono_ms() - start_ms, 1900);
	expect_state(&row, TASK_TIMED_OUT);
	task_row_finish(&row);
	ck_assert(!run_foreground("sleep 78", 200));
	ck_ok(adopt("sleep 78", &row, &err), err);
	session_finish(&session);
	ck_ok(task_cancel(&app, &row, &err), err);
	expect_state(&row, TASK_CANCELLED);
	task_row_finish(&row);
	teardown();
}
TEST_END

/* Puts a script in the place of the supervisor. NULL: nothing. */
static void replace_supervisor(const char *script)
{
	AUTO_FREE char *program = xasprintf("%s/" SUPERVISE_PROGRAM, getenv(KIT_ENV));
	AUTO_FREE char *aside = xasprintf("%s.aside", program);
	ck_assert_int_eq(rename(program, aside), 0);
	if (script == NULL)
		return;
	FILE *f = fopen(program, "w");
	fprintf(f, "#!/bin/bash\n%s\n", script);
	fclose(f);
	ck_assert_int_eq(chmod(program, 0755), 0);
}

static void restore_supervisor(void)
{
	AUTO_FREE char *program = xasprintf("%s/" SUPERVISE_PROGRAM, getenv(KIT_ENV));
	AUTO_FREE char *aside = xasprintf("%s.aside", program);
	ck_assert_int_eq(rename(aside, program), 0);
}

TEST(when_nobody_takes_a_command_over_the_call_goes_on_waiting)
{
	setup();
	log_open("test", LOG_ERROR);
	static const char *const scripts[] = {
		NULL,
		"exit 0",
		"kill -9 $$",
		"echo '{\"code\":\"quota\",\"message\":\"full\",\"hint\":\"wait\"}' >&3",
		"echo nonsense >&3",
		"mv $SMCP_SPOOL/tasks/.new-$2 $SMCP_SPOOL/tasks/$2; kill -9 $$",
	};
	static const enum err_code codes[] = {ERR_UNAVAILABLE, ERR_UNAVAILABLE, ERR_UNAVAILABLE,
					      ERR_QUOTA,       ERR_INTERNAL,    ERR_UNAVAILABLE};
	const char *command = "for i in {1..150}; do echo $i; sleep 0.01; done; exit 8";
	struct err err;
	struct task_row row;
	ck_assert(!run_foreground(command, 100));
	for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
		replace_supervisor(scripts[i]);
		ck_assert(!adopt(command, &row, &err));
		ck_assert_msg(err.code == codes[i], "%zu: %s", i, err.msg);
		restore_supervisor();
		ck_assert_int_eq(row_task_count(app.db, sandbox.id, &err), 0);
		ck_assert(!session_wait(&session, clock_mono_ms() + 50, NULL, NULL));
	}
	ck_ok(adopt(command, &row, &err), err);
	ck_assert_int_eq(row_task_count(app.db, sandbox.id, &err), 1);
	session_finish(&session);
	wait_end(&row);
	ck_assert_int_eq(row.exit_code, 8);
	expect_lines(output(&row, RECORD_STDOUT), 150);
	task_row_finish(&row);
	teardown();
}
TEST_END

TEST(who_does_not_answer_in_time_gets_no_command)
{
	setup();
	const char *command = "for i in {1..12}; do echo $i; sleep 1; done; exit 8";
	struct err err;
	struct task_row row;
	ck_assert(!run_foreground(command, 100));
	/* It would answer right after the time. */
	replace_supervisor("trap '' PIPE; sleep 10.5; echo >&3 || touch $SMCP_SPOOL/refused");
	ck_assert(!adopt(command, &row, &err));
	restore_supervisor();
	ck_assert_int_eq(err.code, ERR_UNAVAILABLE);
	ck_assert(session_wait(&session, INT64_MAX, NULL, NULL));
	ck_assert_int_eq(session.status.code, 8);
	AUTO_BUF out = BUF_INIT;
	capture_text(&session.out, &out);
	expect_lines(buf_str(&out), 12);
	AUTO_FREE char *refused = xasprintf("%s/refused", dir);
	ck_assert_int_eq(access(refused, F_OK), 0);
	session_finish(&session);
	teardown();
}
TEST_END

TEST(a_start_whose_supervisor_dies_is_unknown_or_was_not)
{
	setup();
	struct err err;
	bool existing;
	struct task_options options = options_of("true");
	struct task_row row;
	replace_supervisor(NULL);
	ck_assert(!try_start(&options, &row, &existing, &err));
	ck_assert_int_eq(err.code, ERR_UNAVAILABLE);
	ck_assert_int_eq(row_task_count(app.db, sandbox.id, &err), 0);
	restore_supervisor();
	replace_supervisor("kill -9 $$");
	AUTO_TASK_ROW killed = start_with(&options);
	restore_supervisor();
	expect_state(&killed, TASK_UNKNOWN);
	ck_assert(!exists(".new-", killed.id));
	AUTO_TASK_ROW again = find(killed.id);
	expect_state(&again, TASK_UNKNOWN);
	teardown();
}
TEST_END

/* --- kill -9 ------------------------------------------------------------------------------- */

static void start_one(void)
{
	struct task_row row = start("echo begun; sleep 0.2; echo done");
	task_row_finish(&row);
}

static void promote_one(void)
{
	struct err err;
	struct task_row row;
	const char *command = "echo begun; sleep 0.4; echo done";
	if (run_foreground(command, 100) || !adopt(command, &row, &err))
		return;
	task_row_finish(&row);
	session_finish(&session);
}

static bool check_one(void *ctx, const struct task_row *seen)
{
	int *counts = ctx;
	AUTO_TASK_ROW row = find(seen->id);
	wait_end(&row);
	counts[row.state]++;
	if (row.state == TASK_SUCCEEDED)
		ck_assert_str_eq(output(&row, RECORD_STDOUT), "begun\ndone\n");
	else
		expect_state(&row, TASK_UNKNOWN);
	return true;
}

/* Kills a process that does something at a random moment, many times; then everything must have
 * come to an end that is true. */
static void kill_rounds(int rounds, void (*work)(void), int around_ms)
{
	sandbox_leave(&use);
	app_close(&app);
	for (int i = 0; i < rounds; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			open_app();
			enter();
			work();
			_exit(0);
		}
		usleep((useconds_t)(around_ms * 1000 * (i + 1) / rounds));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	open_app();
	enter();
	clock_sleep_ms(500);
	/* What was cut off before it was visible is old by now. */
	run_sql("UPDATE task SET created_at = created_at - 60000");
	int counts[TASK_STATE__MAX] = {0};
	struct err err = ERR_INIT;
	ck_ok(row_task_each(app.db, ALICE, NULL, 1000, check_one, counts, &err), err);
	ck_assert_int_eq(find_process(SUPERVISE_PROGRAM, dir), 0);
	ck_assert_int_gt(counts[TASK_SUCCEEDED], 0);
	AUTO_TASK_ROW left = start("ls /proc | grep -c '^[0-9]'");
	wait_end(&left);
	/* PID 1, the keeper, the shell, ls and grep. */
	ck_assert_int_le(atoi(output(&left, RECORD_STDOUT)), 5);
}

TEST(a_worker_killed_anywhere_in_a_start_leaves_no_task_running_for_ever)
{
	setup();
	AUTO_TASK_ROW warm = start("echo begun; echo done");
	wait_end(&warm);
	kill_rounds(60, start_one, 60);
	teardown();
}
TEST_END

TEST(a_worker_killed_anywhere_in_a_hand_over_leaves_no_task_running_for_ever)
{
	setup();
	AUTO_TASK_ROW warm = start("echo begun; echo done");
	wait_end(&warm);
	kill_rounds(60, promote_one, 200);
	teardown();
}
TEST_END

/* The supervisor is killed within some 20 ms after its program began. */
static void doom_supervisor(void)
{
	replace_supervisor("(for ((i = RANDOM % 12000; i > 0; i--)); do :; done; kill -9 $$) "
			   "3>&- 4>&- 5>&- 6>&- 7>&- & exec $0.aside \"$@\"");
}

static void nothing_is_left(void)
{
	struct err err = ERR_INIT;
	ck_assert_int_eq(row_task_count_running(app.db, sandbox.id, &err), 0);
	AUTO_TASK_ROW left = start("ls /proc | grep -c '^[0-9]'");
	wait_end(&left);
	ck_assert_int_le(atoi(output(&left, RECORD_STDOUT)), 5);
}

TEST(a_supervisor_killed_anywhere_in_a_start_is_never_taken_for_success)
{
	setup();
	struct task_options options = options_of("echo begun; sleep 0.01; echo done");
	int counts[TASK_STATE__MAX] = {0};
	doom_supervisor();
	for (int i = 0; i < 60; i++) {
		AUTO_TASK_ROW row = start_with(&options);
		if (row.state == TASK_RUNNING)
			wait_end(&row);
		AUTO_TASK_ROW again = find(row.id);
		ck_assert_int_eq(again.state, row.state);
		counts[row.state]++;
		if (row.state == TASK_SUCCEEDED)
			ck_assert_str_eq(output(&row, RECORD_STDOUT), "begun\ndone\n");
	}
	restore_supervisor();
	ck_assert_int_eq(counts[TASK_UNKNOWN] + counts[TASK_SUCCEEDED], 60);
	ck_assert_int_gt(counts[TASK_UNKNOWN], 0);
	nothing_is_left();
	teardown();
}
TEST_END

TEST(a_supervisor_killed_anywhere_in_a_hand_over_loses_no_output)
{
	setup();
	const char *command = "for i in {1..20}; do echo $i; sleep 0.01; done; exit 5";
	int adopted = 0, kept = 0;
	doom_supervisor();
	for (int i = 0; i < 40; i++) {
		struct err err;
		struct task_row row;
		ck_assert(!run_foreground(command, 50));
		if (adopt(command, &row, &err)) {
			session_finish(&session);
			wait_end(&row);
			ck_assert(row.state == TASK_UNKNOWN || row.exit_code == 5);
			ck_assert_int_eq(strncmp(output(&row, RECORD_STDOUT), "1\n2\n3\n", 6), 0);
			task_row_finish(&row);
			adopted++;
			continue;
		}
		AUTO_BUF out = BUF_INIT;
		ck_assert_int_eq(err.code, ERR_UNAVAILABLE);
		ck_assert(session_wait(&session, INT64_MAX, NULL, NULL));
		ck_assert_int_eq(session.status.code, 5);
		capture_text(&session.out, &out);
		expect_lines(buf_str(&out), 20);
		session_finish(&session);
		kept++;
	}
	restore_supervisor();
	ck_assert_int_gt(adopted, 0);
	ck_assert_int_gt(kept, 0);
	nothing_is_left();
	teardown();
}
TEST_END

int main(int argc, char **argv)
{
	const TTest *const tests[] = {
		a_task_runs_and_its_outcome_and_output_are_kept,
		a_task_gets_its_directory_environment_and_timeout,
		bad_options_are_refused_before_anything_starts,
		only_the_owner_finds_a_task_and_only_by_its_id,
		of_300_short_tasks_a_hundred_at_a_time_none_loses_its_output_or_exit_code,
		a_request_id_that_comes_again_is_the_same_task,
		of_many_starts_with_one_request_id_at_once_one_runs,
		finished_tasks_make_room_but_not_at_once,
		very_many_finished_tasks_make_room_at_once,
		when_all_run_nothing_more_starts_until_one_ends_or_turns_out_lost,
		cancelling_ends_everything_and_can_be_repeated,
		a_cancel_that_meets_the_end_changes_no_outcome,
		a_killed_supervisor_makes_its_task_unknown_and_ends_the_command,
		many_that_find_a_lost_task_at_once_agree,
		a_result_that_the_row_has_missed_is_taken_from_the_directory,
		a_row_without_a_directory_is_starting_while_it_is_young_and_then_never_started,
		a_directory_that_was_not_published_is_removed_unless_somebody_is_at_work_on_it,
		destroying_the_sandbox_ends_its_tasks_as_unknown_with_that_reason,
		a_wait_ends_with_output_the_end_the_time_or_the_callers_patience,
		nobody_waits_for_output_that_is_not_kept,
		a_long_foreground_command_becomes_a_task_without_losing_or_repeating_a_line,
		masking_goes_on_across_the_hand_over,
		a_command_that_became_a_task_keeps_its_timeout_and_can_be_cancelled,
		when_nobody_takes_a_command_over_the_call_goes_on_waiting,
		who_does_not_answer_in_time_gets_no_command,
		a_start_whose_supervisor_dies_is_unknown_or_was_not,
		a_worker_killed_anywhere_in_a_start_leaves_no_task_running_for_ever,
		a_worker_killed_anywhere_in_a_hand_over_leaves_no_task_running_for_ever,
		a_supervisor_killed_anywhere_in_a_start_is_never_taken_for_success,
		a_supervisor_killed_anywhere_in_a_hand_over_loses_no_output,
	};
	(void)argc;
	return kit_main(argv, "task", tests, ARRAY_LEN(tests));
}
