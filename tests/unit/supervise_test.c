/*
 * Supervisors as real processes over real sandboxes. The tests are the submitter: they make the
 * directory and the row, start the program and read its answer.
 */
#include "box_kit.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/json.h"
#include "base/log.h"
#include "base/proc.h"
#include "box/sandbox.h"
#include "box/secrets.h"
#include "box/supervise.h"
#include "run/handover.h"
#include "store/task_dir.h"

#define ALICE  "alice"
#define SECRET "hunter2-hunter2"

static char *dir;
static struct conf conf;
static struct app app;
static struct sandbox_row sandbox;

/* A task from the submitter's side. */
struct task {
	char id[ID_LEN + 1];
	int dir_fd;
	pid_t pid; /* of its supervisor, which is our child here */
	char answer[2048];
	struct task_row row;
};

static void open_app(void)
{
	struct err err = ERR_INIT;
	ck_ok(app_open(&app, &conf, &err), err);
}

static void setup(void)
{
	struct err err = ERR_INIT;
	bool created;
	log_open("test", LOG_ERROR);
	dir = xasprintf("%s/app-XXXXXX", getenv(KIT_ENV));
	ck_assert_ptr_nonnull(mkdtemp(dir));
	setenv("SMCP_SPOOL", dir, 1);
	setenv("SMCP_TOKEN", "the-servers-own-token", 1);
	setenv("SMCP_ENV_FILE", "/dev/null", 1);
	setenv("SMCP_LOG_LEVEL", "error", 1);
	ck_ok(conf_load(&conf, &err), err);
	open_app();
	AUTO_JSON *env = json_literal("{\"My_Api_Key\":\"" SECRET "\",\"PLAIN\":\"plainvalue\"}");
	const struct sandbox_options options = {.name = "work", .env = env};
	ck_ok(sandbox_create(&app, ALICE, &options, &sandbox, &created, &err), err);
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
}

/* --- the submitter ------------------------------------------------------------------------- */

static struct json_object *make_spec(const char *id, const char *command, int64_t timeout_ms)
{
	struct json_object *spec = json_object_new_object();
	json_add_str(spec, "id", id);
	json_add_str(spec, "sandbox_id", sandbox.id);
	json_add_str(spec, "principal", ALICE);
	json_add_str(spec, "origin", "task");
	json_add_str(spec, "command", command);
	json_add_int(spec, "timeout_ms", timeout_ms);
	return spec;
}

static void insert_row(const struct task *task, const char *command, int64_t timeout_ms)
{
	struct err err = ERR_INIT;
	struct task_row row = {.principal = (char *)ALICE,
			       .origin = TASK_ORIGIN_TASK,
			       .command = (char *)command,
			       .timeout_ms = timeout_ms,
			       .state = TASK_RUNNING,
			       .created_at = clock_wall_ms()};
	memcpy(row.id, task->id, sizeof(row.id));
	memcpy(row.sandbox_id, sandbox.id, sizeof(row.sandbox_id));
	AUTO_TX tx = TX_INIT;
	ck_ok(db_begin(app.db, &tx, &err), err);
	ck_assert_int_eq(row_task_insert(app.db, &row, &err), 1);
	ck_ok(db_commit(&tx, &err), err);
}

static pid_t spawn(const struct task *task, const struct proc_fd *more, size_t more_count,
		   int ready_fd)
{
	struct err err = ERR_INIT;
	AUTO_FREE char *program = xasprintf("%s/" SUPERVISE_PROGRAM, getenv(KIT_ENV));
	const char *const adopt[] = {program, SUPERVISE_ADOPT, task->id, NULL};
	const char *const plain[] = {program, task->id, NULL};
	struct proc_fd fds[8] = {{ready_fd, SUPERVISE_FD_READY}, {STDERR_FILENO, STDERR_FILENO}};
	for (size_t i = 0; i < more_count; i++)
		fds[2 + i] = more[i];
	const struct proc_spec spec = {.argv = more_count > 0 ? adopt : plain,
				       .envp = (const char *const *)environ,
				       .fds = fds,
				       .fd_count = 2 + more_count};
	pid_t pid = proc_spawn(&spec, &err);
	ck_ok(pid > 0, err);
	return pid;
}

static void read_answer(struct task *task, int fd)
{
	size_t len = 0;
	for (ssize_t n; (n = read(fd, task->answer + len, sizeof(task->answer) - 1 - len)) > 0;)
		len += (size_t)n;
	task->answer[len] = '\0';
}

/* Whether the submitter stops listening before the supervisor's answer. */
static bool is_deaf;

static struct task submit_spec(struct json_object *spec, const struct proc_fd *more, size_t count)
{
	struct err err = ERR_INIT;
	struct task task = {.pid = -1};
	int ends[2];
	memcpy(task.id, json_get_str(spec, "id"), sizeof(task.id));
	if (count == 0) {
		task.dir_fd = task_dir_make(&app.spool, task.id, spec, &err);
		ck_ok(task.dir_fd >= 0, err);
	}
	insert_row(&task, json_get_str(spec, "command"), json_get_int(spec, "timeout_ms", 0));
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	if (is_deaf)
		util_close(&ends[0]);
	task.pid = spawn(&task, more, count, ends[1]);
	close(ends[1]);
	if (!is_deaf)
		read_answer(&task, ends[0]);
	util_close(&ends[0]);
	return task;
}

static struct task submit(const char *command, int64_t timeout_ms)
{
	char id[ID_LEN + 1];
	id_make(id);
	AUTO_JSON *spec = make_spec(id, command, timeout_ms);
	return submit_spec(spec, NULL, 0);
}

static struct task run(const char *command, int64_t timeout_ms)
{
	struct task task = submit(command, timeout_ms);
	ck_assert_str_eq(task.answer, "\n");
	return task;
}

static int wait_status(struct task *task)
{
	int status;
	while (waitpid(task->pid, &status, 0) < 0)
		ck_assert_int_eq(errno, EINTR);
	return status;
}

/* The row as the database has it; false when there is none. */
static bool find_row(const char *id, struct task_row *row)
{
	struct err err = ERR_INIT;
	int rc = row_task_by_id(app.db, ALICE, id, row, &err);
	ck_ok(rc >= 0, err);
	return rc == 1;
}

/* Waits for the supervisor's end and reads how the task ended: the same in the row. */
static void finish(struct task *task)
{
	struct err err = ERR_INIT;
	AUTO_TASK_ROW row = {.state = TASK_NONE};
	ck_assert_int_eq(wait_status(task), 0);
	ck_assert_int_eq(task_dir_verdict(task->dir_fd, &task->row, &err), TASK_VERDICT_FINAL);
	ck_assert(find_row(task->id, &row));
	ck_assert_int_eq(row.state, task->row.state);
	ck_assert_int_eq(row.has_exit_code, task->row.has_exit_code);
	ck_assert_int_eq(row.exit_code, task->row.exit_code);
	ck_assert_int_eq(row.signal, task->row.signal);
	ck_assert_int_eq(row.started_at, task->row.started_at);
	ck_assert_int_eq(row.finished_at, task->row.finished_at);
	ck_assert_int_ge(row.finished_at, row.started_at);
	ck_assert_int_gt(row.started_at, 0);
	ck_assert_str_eq(row.reason == NULL ? "" : row.reason,
			 task->row.reason == NULL ? "" : task->row.reason);
}

static void drop(struct task *task)
{
	close(task->dir_fd);
	task_row_finish(&task->row);
}

static char *output(const struct task *task, enum record_stream stream, struct record_page *page)
{
	struct err err = ERR_INIT;
	struct buf out = BUF_INIT;
	ck_ok(record_read(task->dir_fd, stream, 0, RECORD_KEPT_MAX, &out, page, &err), err);
	return buf_take(&out);
}

static void expect_output(const struct task *task, enum record_stream stream, const char *expected)
{
	struct record_page page;
	AUTO_FREE char *text = output(task, stream, &page);
	ck_assert_str_eq(text, expected);
	ck_assert_int_eq(page.seen, (int64_t)strlen(expected));
}

static void order_cancel(const struct task *task)
{
	struct err err = ERR_INIT;
	ck_ok(task_dir_order(task->dir_fd, TASK_ORDER_CANCEL, &err), err);
}

static void wait_for_output(const struct task *task, const char *text)
{
	for (int i = 0; i < 1000; i++) {
		struct record_page page;
		AUTO_FREE char *now = output(task, RECORD_STDOUT, &page);
		if (strstr(now, text) != NULL)
			return;
		clock_sleep_ms(10);
	}
	ck_abort_msg("\"%s\" did not come", text);
}

static bool has_reason(const struct task *task, const char *part)
{
	return task->row.reason != NULL && strstr(task->row.reason, part) != NULL;
}

/* --- ends ---------------------------------------------------------------------------------- */

TEST(a_command_that_succeeds_leaves_its_output_and_its_outcome)
{
	setup();
	struct task task = run("echo out; echo err >&2; echo out2", KIT_TIMEOUT);
	finish(&task);
	ck_assert_int_eq(task.row.state, TASK_SUCCEEDED);
	ck_assert(task.row.has_exit_code);
	ck_assert_int_eq(task.row.exit_code, 0);
	ck_assert_ptr_null(task.row.reason);
	ck_assert_int_gt(task.row.max_rss_kib, 0);
	expect_output(&task, RECORD_STDOUT, "out\nout2\n");
	expect_output(&task, RECORD_STDERR, "err\n");
	drop(&task);
	teardown();
}
TEST_END

TEST(other_exit_codes_and_signals_are_failures)
{
	setup();
	struct task task = run("exit 7", KIT_TIMEOUT);
	finish(&task);
	ck_assert_int_eq(task.row.state, TASK_FAILED);
	ck_assert_int_eq(task.row.exit_code, 7);
	drop(&task);
	task = run("kill -SEGV $$", KIT_TIMEOUT);
	finish(&task);
	ck_assert_int_eq(task.row.state, TASK_FAILED);
	ck_assert(!task.row.has_exit_code);
	ck_assert_int_eq(task.row.signal, SIGSEGV);
	drop(&task);
	teardown();
}
TEST_END

TEST(the_spec_says_directory_and_environment)
{
	setup();
	char id[ID_LEN + 1];
	id_make(id);
	AUTO_JSON *spec = make_spec(id, "pwd; echo $A $PLAIN; cat; umask", KIT_TIMEOUT);
	json_add_str(spec, "cwd", "/tmp");
	json_add(spec, "env", json_literal("{\"A\":\"of the call\"}"));
	struct task task = submit_spec(spec, NULL, 0);
	ck_assert_str_eq(task.answer, "\n");
	finish(&task);
	expect_output(&task, RECORD_STDOUT, "/tmp\nof the call plainvalue\n0022\n");
	drop(&task);
	teardown();
}
TEST_END

TEST(a_command_that_runs_is_visible_and_locked_before_the_answer)
{
	setup();
	struct err err = ERR_INIT;
	AUTO_TASK_ROW row = {.state = TASK_NONE};
	struct task task = run("echo begun; sleep 30", KIT_TIMEOUT);
	AUTO_FD visible = task_dir_open(&app.spool, task.id, &err);
	ck_ok(visible >= 0, err);
	ck_assert_int_eq(task_dir_verdict(visible, &task.row, &err), TASK_VERDICT_RUNNING);
	ck_assert(find_row(task.id, &row));
	ck_assert_int_eq(row.state, TASK_RUNNING);
	ck_assert_int_gt(row.started_at, 0);
	wait_for_output(&task, "begun");
	order_cancel(&task);
	finish(&task);
	drop(&task);
	teardown();
}
TEST_END

TEST(a_timeout_ends_every_process_of_the_command)
{
	setup();
	const char *marker = kit_marker();
	AUTO_FREE char *command =
		xasprintf("trap '' TERM; setsid sleep %s & sleep %s", marker, marker);
	struct task task = run(command, 300);
	finish(&task);
	ck_assert_int_eq(task.row.state, TASK_TIMED_OUT);
	ck_assert(!task.row.has_exit_code);
	ck_assert(has_reason(&task, "0.3 seconds"));
	ck_assert_int_eq(kit_settle(marker, 0), 0);
	drop(&task);
	teardown();
}
TEST_END

TEST(a_timeout_may_be_longer_than_that_of_a_foreground_command)
{
	setup();
	struct task task = run("true", 7200000);
	finish(&task);
	ck_assert_int_eq(task.row.state, TASK_SUCCEEDED);
	drop(&task);
	teardown();
}
TEST_END

TEST(an_order_to_cancel_ends_what_ignores_it_made_sessions_or_was_orphaned)
{
	setup();
	const char *marker = kit_marker();
	AUTO_FREE char *command = xasprintf(
		"(setsid sh -c \"trap '' TERM; sleep %s; sleep %s\" &) ; trap '' TERM; echo up; "
		"sleep %s",
		marker, marker, marker);
	struct task task = run(command, KIT_TIMEOUT);
	wait_for_output(&task, "up");
	ck_assert_int_ge(kit_settle(marker, 4), 2);
	order_cancel(&task);
	order_cancel(&task);
	finish(&task);
	ck_assert_int_eq(task.row.state, TASK_CANCELLED);
	ck_assert(has_reason(&task, "cancelled"));
	ck_assert_int_eq(kit_settle(marker, 0), 0);
	struct err err = ERR_INIT;
	ck_assert(!task_dir_order(task.dir_fd, TASK_ORDER_CANCEL, &err));
	ck_assert_int_eq(err.code, ERR_CONFLICT);
	drop(&task);
	teardown();
}
TEST_END

TEST(a_supervisor_that_is_told_to_end_cancels_and_says_so)
{
	setup();
	struct task task = run("echo up; sleep 30", KIT_TIMEOUT);
	wait_for_output(&task, "up");
	kill(task.pid, SIGHUP); /* not this one */
	kill(task.pid, SIGTERM);
	finish(&task);
	ck_assert_int_eq(task.row.state, TASK_CANCELLED);
	ck_assert(has_reason(&task, "supervisor"));
	drop(&task);
	teardown();
}
TEST_END

TEST(children_that_were_left_running_are_counted_and_keep_running)
{
	setup();
	const char *marker = kit_marker();
	AUTO_FREE char *command = xasprintf("sleep %s & echo done", marker);
	struct task task = run(command, KIT_TIMEOUT);
	finish(&task);
	ck_assert_int_eq(task.row.state, TASK_SUCCEEDED);
	ck_assert_int_eq(task.row.survivors, 1);
	ck_assert_int_eq(kit_count(marker), 1);
	expect_output(&task, RECORD_STDOUT, "done\n");
	drop(&task);
	teardown();
}
TEST_END

TEST(a_sandbox_that_is_destroyed_makes_the_end_unknown)
{
	setup();
	struct err err = ERR_INIT;
	struct sandbox_destroyed destroyed = {.name = NULL};
	struct task task = run("echo up; sleep 30", KIT_TIMEOUT);
	wait_for_output(&task, "up");
	ck_ok(sandbox_destroy(&app, ALICE, "work", true, &destroyed, &err), err);
	free(destroyed.name);
	finish(&task);
	ck_assert_int_eq(task.row.state, TASK_UNKNOWN);
	ck_assert(has_reason(&task, "destroyed"));
	expect_output(&task, RECORD_STDOUT, "up\n");
	drop(&task);
	teardown();
}
TEST_END

TEST(a_sandbox_that_is_stopped_makes_the_end_unknown)
{
	setup();
	struct err err = ERR_INIT;
	struct task task = run("echo up; sleep 30", KIT_TIMEOUT);
	wait_for_output(&task, "up");
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	ck_ok(sandbox_enter(&app, &sandbox, &use, &err), err);
	ck_ok(app.runtime->stop(&use.box, &err), err);
	finish(&task);
	ck_assert_int_eq(task.row.state, TASK_UNKNOWN);
	ck_assert(has_reason(&task, "stopped"));
	drop(&task);
	teardown();
}
TEST_END

static pid_t parent_of(pid_t pid)
{
	char path[64], line[512];
	int parent = -1;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *file = fopen(path, "re");
	if (file != NULL && fgets(line, sizeof(line), file) != NULL)
		ck_assert_int_eq(sscanf(strrchr(line, ')'), ") %*c %d", &parent), 1);
	if (file != NULL)
		fclose(file);
	return parent;
}

/* The process whose command line holds a text. */
static pid_t find_process(const char *text)
{
	pid_t found = -1;
	DIR *entries = opendir("/proc");
	ck_assert_ptr_nonnull(entries);
	for (struct dirent *entry; found < 0 && (entry = readdir(entries)) != NULL;) {
		char path[300], line[4096];
		snprintf(path, sizeof(path), "/proc/%s/cmdline", entry->d_name);
		AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t len = fd < 0 ? -1 : read(fd, line, sizeof(line));
		if (len > 0 && memmem(line, (size_t)len, text, strlen(text)) != NULL)
			found = (pid_t)strtol(entry->d_name, NULL, 10);
	}
	closedir(entries);
	return found;
}

TEST(a_sandbox_that_does_not_answer_is_given_up)
{
	setup();
	const char *marker = kit_marker();
	AUTO_FREE char *command = xasprintf("echo up; exec sleep %s", marker);
	struct task task = run(command, KIT_TIMEOUT);
	wait_for_output(&task, "up");
	pid_t keeper = parent_of(find_process(marker));
	ck_assert_int_gt(keeper, 1);
	pid_t first = parent_of(keeper);
	/* PID 1 first, as it looks after the keeper. */
	ck_assert_int_eq(kill(first, SIGSTOP) | kill(keeper, SIGSTOP), 0);
	order_cancel(&task);
	finish(&task);
	ck_assert_int_eq(task.row.state, TASK_UNKNOWN);
	ck_assert(has_reason(&task, "does not answer"));
	kill(keeper, SIGCONT);
	kill(first, SIGCONT);
	drop(&task);
	teardown();
}
TEST_END

/* --- output -------------------------------------------------------------------------------- */

static int64_t resident_kib(pid_t pid)
{
	char path[64], line[256];
	int64_t kib = -1;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *file = fopen(path, "re");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, "VmHWM:", 6) == 0)
			kib = strtoll(line + 6, NULL, 10);
	if (file != NULL)
		fclose(file);
	return kib;
}

static int64_t disk_bytes(int dir_fd)
{
	static const char *const files[] = {"spec", "alive", "log", "tail.0", "tail.1"};
	int64_t sum = 0;
	struct stat st;
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (fstatat(dir_fd, files[i], &st, 0) == 0)
			sum += st.st_blocks * 512;
	return sum;
}

TEST(three_hundred_megabytes_of_output_cost_little_memory_and_disk)
{
	setup();
	struct record_page page;
	struct task task =
		run("yes spoolbox | head -c 300M; echo end; echo waiting >&2; sleep 60", 60000);
	do {
		free(output(&task, RECORD_STDERR, &page));
		clock_sleep_ms(20);
	} while (page.seen == 0);
	int64_t kib = resident_kib(task.pid);
	order_cancel(&task);
	finish(&task);
	AUTO_FREE char *text = output(&task, RECORD_STDOUT, &page);
	ck_assert_int_eq(strncmp(text, "spoolbox\nspoolbox\n", 18), 0);
	ck_assert_int_eq(page.seen, (300LL << 20) + 4);
	ck_assert_int_eq(page.kept, RECORD_KEPT_MAX);
	AUTO_BUF tail = BUF_INIT;
	struct err err = ERR_INIT;
	ck_ok(record_tail(task.dir_fd, 10, 1000, &tail, &err), err);
	ck_assert_ptr_nonnull(strstr(buf_str(&tail), "end\n"));
	ck_assert_int_gt(kib, 0);
	ck_assert_msg(UNIT_SANITIZED || kib < 16 * 1024, "%lld KiB", (long long)kib);
	ck_assert_int_lt(disk_bytes(task.dir_fd), 3 << 20);
	drop(&task);
	teardown();
}
TEST_END

TEST(secrets_are_masked_before_they_reach_the_disk)
{
	setup();
	struct task task = run("printf 'a%sb %s\\n' \"$My_Api_Key\" $PLAIN; printf hunter2-; "
			       "sleep 0.2; printf 'hunter2|the-servers-'; sleep 0.2; "
			       "printf 'own-token.hunter2-'",
			       KIT_TIMEOUT);
	finish(&task);
	expect_output(&task, RECORD_STDOUT, "a***b plainvalue\n***|***.hunter2-");
	drop(&task);
	teardown();
}
TEST_END

TEST(a_log_that_cannot_grow_does_not_stop_the_command)
{
	setup();
	struct record_page page;
	const struct rlimit limit = {100000, RLIM_INFINITY}, none = {RLIM_INFINITY, RLIM_INFINITY};
	/* The command waits for a pipe in its workspace that we fill when the limit is in place. */
	struct task task = run(
		"mkfifo go; echo up; read x < go; head -c 3000000 /dev/zero | tr '\\0' x; exit 5",
		KIT_TIMEOUT);
	wait_for_output(&task, "up");
	ck_assert_int_eq(prlimit(task.pid, RLIMIT_FSIZE, &limit, NULL), 0);
	struct err err = ERR_INIT;
	AUTO_FD workspace = spool_workspace(&app.spool, sandbox.files_id, &err);
	AUTO_FD go = openat(workspace, "go", O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(write(go, "go\n", 3), 3);
	/* The database cannot grow either, so the row is late. */
	while (task_dir_verdict(task.dir_fd, &task.row, &err) == TASK_VERDICT_RUNNING)
		clock_sleep_ms(10);
	ck_assert_int_eq(prlimit(task.pid, RLIMIT_FSIZE, &none, NULL), 0);
	finish(&task);
	ck_assert_int_eq(task.row.state, TASK_FAILED);
	ck_assert_int_eq(task.row.exit_code, 5);
	ck_assert(has_reason(&task, "not kept"));
	AUTO_FREE char *text = output(&task, RECORD_STDOUT, &page);
	ck_assert_int_lt(page.seen, 100000);
	ck_assert_int_eq(strncmp(text, "up\nxxx", 6), 0);
	drop(&task);
	teardown();
}
TEST_END

/* --- what does not come to be -------------------------------------------------------------- */

static bool exists(const char *path, const char *id)
{
	AUTO_FREE char *full = xasprintf("%s/%s%s", dir, path, id);
	return access(full, F_OK) == 0;
}

static void expect_refusal(struct task *task, const char *code, const char *part)
{
	struct err err = ERR_INIT;
	AUTO_TASK_ROW row = {.state = TASK_NONE};
	AUTO_JSON *answer = json_parse(task->answer, strlen(task->answer), &err);
	ck_ok(answer != NULL, err);
	ck_assert_str_eq(json_get_str(answer, "code"), code);
	ck_assert_msg(strstr(json_get_str(answer, "message"), part) != NULL, "%s", task->answer);
	ck_assert_str_ne(json_get_str(answer, "hint"), "");
	ck_assert_int_ne(wait_status(task), 0);
	ck_assert(!exists("tasks/", task->id));
	ck_assert(!exists("tasks/.new-", task->id));
	ck_assert(!find_row(task->id, &row));
	close(task->dir_fd);
}

TEST(a_command_that_cannot_be_started_leaves_nothing)
{
	setup();
	char id[ID_LEN + 1];
	id_make(id);
	AUTO_JSON *spec = make_spec(id, "echo x > ran", KIT_TIMEOUT);
	json_add_str(spec, "cwd", "missing");
	struct task task = submit_spec(spec, NULL, 0);
	expect_refusal(&task, "invalid", "missing");
	AUTO_FREE char *ran = xasprintf("data/%s/workspace/ran", sandbox.files_id);
	ck_assert(!exists(ran, ""));
	teardown();
}
TEST_END

TEST(a_task_of_a_destroyed_sandbox_leaves_nothing)
{
	setup();
	struct err err = ERR_INIT;
	struct sandbox_destroyed destroyed = {.name = NULL};
	ck_ok(sandbox_destroy(&app, ALICE, "work", true, &destroyed, &err), err);
	free(destroyed.name);
	struct task task = submit("true", KIT_TIMEOUT);
	expect_refusal(&task, "destroyed", "destroyed");
	teardown();
}
TEST_END

TEST(settings_that_cannot_be_read_are_answered)
{
	setup();
	setenv("SMCP_PIDS_LIMIT", "many", 1);
	struct task task = submit("true", KIT_TIMEOUT);
	ck_assert_ptr_nonnull(strstr(task.answer, "SMCP_PIDS_LIMIT"));
	ck_assert_int_ne(wait_status(&task), 0);
	ck_assert(!exists("tasks/", task.id));
	close(task.dir_fd);
	teardown();
}
TEST_END

/* --- taking over --------------------------------------------------------------------------- */

/* A command of ours that a supervisor takes over: what a worker does with a long exec. */
struct foreground {
	struct sandbox_use use;
	struct runtime_exec exec;
	int pipes[RECORD_STREAMS];
	struct mask *mask;
	struct mask_stream masked[RECORD_STREAMS];
	struct record record;
};

static void make_pipe(int *read_fd, int *write_fd)
{
	int ends[2];
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	ck_assert_int_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	*read_fd = ends[0];
	*write_fd = ends[1];
}

static void begin_foreground(struct foreground *f, const char *line)
{
	struct err err = ERR_INIT;
	const char *const argv[] = {"/bin/sh", "-c", line, NULL};
	static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
	int ends[RECORD_STREAMS];
	AUTO_FD null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	*f = (struct foreground){.use = SANDBOX_USE_INIT, .record = RECORD_INIT};
	ck_ok(sandbox_enter(&app, &sandbox, &f->use, &err), err);
	ck_ok(sandbox_start(&app, &sandbox, &f->use, &err), err);
	f->mask = secrets_mask(&app, &sandbox, NULL, &err);
	ck_ok(f->mask != NULL, err);
	for (int i = 0; i < RECORD_STREAMS; i++) {
		make_pipe(&f->pipes[i], &ends[i]);
		mask_stream_init(&f->masked[i], f->mask);
	}
	const struct runtime_command command = {.argv = argv,
						.env = env,
						.cwd = "/workspace",
						.stdin_fd = null_fd,
						.stdout_fd = ends[0],
						.stderr_fd = ends[1],
						.timeout_ms = KIT_TIMEOUT,
						.limits = {-1, -1, -1, -1}};
	ck_ok(app.runtime->exec(&f->use.box, &command, &f->exec, &err), err);
	close(ends[0]);
	close(ends[1]);
	ck_ok(record_create(&f->record, -1, &err), err);
}

/* Reads exactly len bytes of standard output into the record. */
static void read_foreground(struct foreground *f, size_t len)
{
	struct err err = ERR_INIT;
	AUTO_BUF masked = BUF_INIT;
	char data[64];
	for (size_t got = 0; got < len;) {
		ssize_t n = read(f->pipes[RECORD_STDOUT], data, len - got);
		if (n < 0 && errno == EAGAIN) {
			clock_sleep_ms(1);
			continue;
		}
		ck_assert_int_gt(n, 0);
		got += (size_t)n;
		mask_feed(&f->masked[RECORD_STDOUT], data, (size_t)n, &masked);
	}
	ck_ok(record_add(&f->record, RECORD_STDOUT, buf_str(&masked), masked.len, &err), err);
}

static struct task hand_over(struct foreground *f, struct json_object *spec)
{
	struct err err = ERR_INIT;
	json_add_bool(spec, "adopted", true);
	json_add_int(spec, "started_at", clock_wall_ms());
	int dir_fd = task_dir_make(&app.spool, json_get_str(spec, "id"), spec, &err);
	ck_ok(dir_fd >= 0, err);
	AUTO_FD held = handover_save(f->masked, &err);
	ck_ok(held >= 0, err);
	ck_ok(record_move(&f->record, dir_fd, &err), err);
	const struct proc_fd fds[] = {{f->exec.fd, SUPERVISE_FD_EXEC},
				      {f->pipes[RECORD_STDOUT], SUPERVISE_FD_STDOUT},
				      {f->pipes[RECORD_STDERR], SUPERVISE_FD_STDERR},
				      {held, SUPERVISE_FD_HELD}};
	struct task task = submit_spec(spec, fds, ARRAY_LEN(fds));
	task.dir_fd = dir_fd;
	return task;
}

static void end_foreground(struct foreground *f)
{
	util_close(&f->exec.fd);
	for (int i = 0; i < RECORD_STREAMS; i++) {
		util_close(&f->pipes[i]);
		mask_stream_finish(&f->masked[i]);
	}
	mask_free(f->mask);
	record_close(&f->record);
	sandbox_leave(&f->use);
}

TEST(a_running_command_is_taken_over_without_a_byte_lost_or_a_secret_shown)
{
	setup();
	static const char first[] = "before hunter2-",
			  line[] = "printf 'before hunter2-'; sleep 0.3; printf 'hunter2 after'; "
				   "echo e >&2; exit 9";
	for (size_t cut = 0; cut <= strlen(first); cut += 3) {
		char id[ID_LEN + 1];
		struct foreground f;
		id_make(id);
		AUTO_JSON *spec = make_spec(id, line, KIT_TIMEOUT);
		begin_foreground(&f, line);
		read_foreground(&f, cut);
		struct task task = hand_over(&f, spec);
		ck_assert_str_eq(task.answer, "\n");
		end_foreground(&f); /* the supervisor's connection keeps the command */
		finish(&task);
		ck_assert_int_eq(task.row.state, TASK_FAILED);
		ck_assert_int_eq(task.row.exit_code, 9);
		expect_output(&task, RECORD_STDOUT, "before *** after");
		expect_output(&task, RECORD_STDERR, "e\n");
		drop(&task);
	}
	teardown();
}
TEST_END

TEST(a_hand_over_that_fails_leaves_the_command_with_its_owner)
{
	setup();
	char id[ID_LEN + 1];
	struct foreground f;
	struct runtime_status status;
	id_make(id);
	AUTO_JSON *spec = make_spec(id, "x", KIT_TIMEOUT);
	json_add_str(spec, "sandbox_id", id); /* no sandbox is called that */
	begin_foreground(&f, "printf start; sleep 0.5; printf end; exit 4");
	read_foreground(&f, 5);
	struct task task = hand_over(&f, spec);
	expect_refusal(&task, "not_found", "sandbox");
	read_foreground(&f, 3);
	app.runtime->finish(&f.exec, &status);
	ck_assert_int_eq(status.end, RUNTIME_END_EXIT);
	ck_assert_int_eq(status.code, 4);
	end_foreground(&f);
	teardown();
}
TEST_END

TEST(a_command_that_nobody_waits_to_hand_over_stays_with_its_owner)
{
	setup();
	char id[ID_LEN + 1];
	struct foreground f;
	struct runtime_status status;
	AUTO_TASK_ROW row = {.state = TASK_NONE};
	id_make(id);
	AUTO_JSON *spec = make_spec(id, "x", KIT_TIMEOUT);
	begin_foreground(&f, "printf start; sleep 0.5; printf end; exit 4");
	is_deaf = true;
	struct task task = hand_over(&f, spec);
	ck_assert_int_ne(wait_status(&task), 0);
	ck_assert(!exists("tasks/", task.id));
	ck_assert(!exists("tasks/.new-", task.id));
	ck_assert(!find_row(task.id, &row));
	read_foreground(&f, 8);
	app.runtime->finish(&f.exec, &status);
	ck_assert_int_eq(status.end, RUNTIME_END_EXIT);
	ck_assert_int_eq(status.code, 4);
	end_foreground(&f);
	drop(&task);
	teardown();
}
TEST_END

TEST(a_task_goes_on_when_its_submitter_is_gone)
{
	setup();
	is_deaf = true;
	struct task task = submit("echo alone; exit 3", KIT_TIMEOUT);
	finish(&task);
	ck_assert_int_eq(task.row.exit_code, 3);
	expect_output(&task, RECORD_STDOUT, "alone\n");
	drop(&task);
	teardown();
}
TEST_END

/* --- sudden death -------------------------------------------------------------------------- */

TEST(a_supervisor_that_is_killed_is_lost_and_its_command_ends)
{
	setup();
	struct err err = ERR_INIT;
	const char *marker = kit_marker();
	AUTO_FREE char *command = xasprintf("echo up; setsid sleep %s & sleep %s", marker, marker);
	struct task task = run(command, KIT_TIMEOUT);
	wait_for_output(&task, "up");
	ck_assert_int_gt(kit_count(marker), 0);
	kill(task.pid, SIGKILL);
	wait_status(&task);
	ck_assert_int_eq(task_dir_verdict(task.dir_fd, &task.row, &err), TASK_VERDICT_LOST);
	ck_assert_int_eq(kit_settle(marker, 0), 0);
	expect_output(&task, RECORD_STDOUT, "up\n");
	drop(&task);
	teardown();
}
TEST_END

/* Starts a task, kills its supervisor some time later, and looks. Returns the verdict. */
static enum task_verdict killed_after(int64_t us, int round, const char *marker)
{
	struct err err = ERR_INIT;
	char id[ID_LEN + 1];
	int ends[2];
	struct task task = {.pid = -1};
	id_make(id);
	AUTO_FREE char *command =
		xasprintf("sleep 0.0%d; echo %s > done-%d; echo out", round % 10, marker, round);
	AUTO_JSON *spec = make_spec(id, command, KIT_TIMEOUT);
	memcpy(task.id, id, sizeof(id));
	task.dir_fd = task_dir_make(&app.spool, id, spec, &err);
	ck_ok(task.dir_fd >= 0, err);
	insert_row(&task, command, KIT_TIMEOUT);
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	task.pid = spawn(&task, NULL, 0, ends[1]);
	close(ends[1]);
	usleep((useconds_t)us);
	kill(task.pid, SIGKILL);
	wait_status(&task);
	read_answer(&task, ends[0]);
	close(ends[0]);
	enum task_verdict verdict = task_dir_verdict(task.dir_fd, &task.row, &err);
	AUTO_FREE char *done = xasprintf("data/%s/workspace/done-%d", sandbox.files_id, round);
	bool is_done = exists(done, "");
	if (verdict == TASK_VERDICT_FINAL) {
		ck_assert_int_eq(task.row.state, TASK_SUCCEEDED);
		ck_assert_int_eq(task.row.exit_code, 0);
		ck_assert(is_done);
		expect_output(&task, RECORD_STDOUT, "out\n");
	}
	if (strcmp(task.answer, "\n") == 0)
		ck_assert(exists("tasks/", id));
	AUTO_TASK_ROW row = {.state = TASK_NONE};
	ck_assert(find_row(id, &row));
	ck_assert_int_ne(row.state, TASK_NONE);
	if (row.state != TASK_RUNNING)
		ck_assert_int_eq(verdict, TASK_VERDICT_FINAL);
	drop(&task);
	return verdict;
}

TEST(no_success_is_made_up_however_a_supervisor_is_killed)
{
	setup();
	int counts[TASK_VERDICT_LOST + 1] = {0};
	const char *marker = kit_marker();
	struct task warm = run("true", KIT_TIMEOUT);
	finish(&warm);
	drop(&warm);
	unsigned seed = (unsigned)getpid();
	for (int round = 0; round < 60; round++)
		counts[killed_after(rand_r(&seed) % 150000, round, marker)]++;
	ck_assert_int_eq(counts[TASK_VERDICT_RUNNING], 0);
	ck_assert_int_eq(counts[TASK_VERDICT_NONE], 0);
	ck_assert_int_gt(counts[TASK_VERDICT_LOST], 0);
	ck_assert_int_eq(kit_settle(marker, 0), 0);
	teardown();
}
TEST_END

/* What failed tests left running. */
static void sweep_apps(const char *root)
{
	DIR *entries = opendir(root);
	for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
		if (strncmp(entry->d_name, "app-", 4) != 0)
			continue;
		AUTO_FREE char *run_dir = xasprintf("%s/%s/run", root, entry->d_name);
		DIR *boxes = opendir(run_dir);
		for (struct dirent *box; boxes != NULL && (box = readdir(boxes)) != NULL;) {
			struct err err = ERR_INIT;
			AUTO_FD fd = openat(dirfd(boxes), box->d_name, O_DIRECTORY | O_CLOEXEC);
			const struct runtime_box found = {.run_dir_fd = fd};
			if (id_is_valid(box->d_name) && !runtime_find("bwrap")->stop(&found, &err))
				fprintf(stderr, "%s is left running: %s\n", run_dir, err.msg);
		}
		if (boxes != NULL)
			closedir(boxes);
	}
	if (entries != NULL)
		closedir(entries);
}

int main(int argc, char **argv)
{
	const TTest *const tests[] = {
		a_command_that_succeeds_leaves_its_output_and_its_outcome,
		other_exit_codes_and_signals_are_failures,
		the_spec_says_directory_and_environment,
		a_command_that_runs_is_visible_and_locked_before_the_answer,
		a_timeout_ends_every_process_of_the_command,
		a_timeout_may_be_longer_than_that_of_a_foreground_command,
		an_order_to_cancel_ends_what_ignores_it_made_sessions_or_was_orphaned,
		a_supervisor_that_is_told_to_end_cancels_and_says_so,
		children_that_were_left_running_are_counted_and_keep_running,
		a_sandbox_that_is_destroyed_makes_the_end_unknown,
		a_sandbox_that_is_stopped_makes_the_end_unknown,
		a_sandbox_that_does_not_answer_is_given_up,
		three_hundred_megabytes_of_output_cost_little_memory_and_disk,
		secrets_are_masked_before_they_reach_the_disk,
		a_log_that_cannot_grow_does_not_stop_the_command,
		a_command_that_cannot_be_started_leaves_nothing,
		a_task_of_a_destroyed_sandbox_leaves_nothing,
		settings_that_cannot_be_read_are_answered,
		a_running_command_is_taken_over_without_a_byte_lost_or_a_secret_shown,
		a_hand_over_that_fails_leaves_the_command_with_its_owner,
		a_command_that_nobody_waits_to_hand_over_stays_with_its_owner,
		a_task_goes_on_when_its_submitter_is_gone,
		a_supervisor_that_is_killed_is_lost_and_its_command_ends,
		no_success_is_made_up_however_a_supervisor_is_killed,
	};
	(void)argc;
	int status = kit_main(argv, "supervise", tests, ARRAY_LEN(tests));
	if (getenv(KIT_ENV) != NULL)
		sweep_apps(getenv(KIT_ENV));
	return status;
}
