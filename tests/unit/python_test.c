/* Python code over real sandboxes and the real driver. */
#include "box_kit.h"

#include <sys/socket.h>

#include "base/log.h"
#include "box/exec.h"
#include "box/python.h"
#include "box/python_part.h"
#include "box/python_pool.h"
#include "box/sandbox_end.h"
#include "run/sock.h"
#include "store/row_reserve.h"

#define ALICE "alice"

static char *dir;
static struct conf conf;
static struct app app;
static struct sandbox_row sandbox;
static struct sandbox_use use;

static void enter(void)
{
	struct err err = ERR_INIT;
	ck_ok(sandbox_enter(&app, &sandbox, &use, &err), err);
}

static void setup(void)
{
	struct err err = ERR_INIT;
	bool created;
	log_open("test", getenv("SHOW_LOG") != NULL ? LOG_DEBUG : LOG_ERROR);
	dir = xasprintf("%s/app-XXXXXX", getenv(KIT_ENV));
	ck_assert_ptr_nonnull(mkdtemp(dir));
	setenv("SMCP_SPOOL", dir, 1);
	setenv("SMCP_TOKEN", "the-servers-own-token", 1);
	setenv("SMCP_ENV_FILE", "/dev/null", 1);
	setenv("SMCP_MIN_FREE_BYTES", "1m", 1);
	ck_ok(conf_load(&conf, &err), err);
	ck_ok(app_open(&app, &conf, &err), err);
	ck_ok(sandbox_create(&app, ALICE, &(struct sandbox_options){.name = "work"}, &sandbox,
			     &created, &err),
	      err);
	enter();
}

static void destroy(const char *name)
{
	struct err err = ERR_INIT;
	struct sandbox_destroyed destroyed = {.name = NULL};
	if (!sandbox_destroy(&app, ALICE, name, true, &destroyed, &err))
		ck_assert_msg(err.code == ERR_NOT_FOUND, "%s [%s]", err.msg, err.trace);
	free(destroyed.name);
}

static void teardown(void)
{
	sandbox_leave(&use);
	destroy("work");
	sandbox_row_finish(&sandbox);
	app_close(&app);
	conf_finish(&conf);
	unit_tempdir_remove(dir);
}

static struct python_options options_of(const char *code)
{
	return (struct python_options){.code = code, .code_len = strlen(code)};
}

static const char *out_of(const struct python_result *result)
{
	static struct buf text;
	buf_clear(&text);
	capture_text(&result->run.out, &text);
	return buf_str(&text);
}

/* What is listed, as "name name! name": those with ! are handed out. */
static const char *changes_of(const struct python_result *result)
{
	static struct buf text;
	buf_clear(&text);
	for (size_t i = 0; i < result->changes.count; i++)
		buf_printf(&text, "%s%s%s", i == 0 ? "" : " ", result->changes.files[i].path,
			   result->changes.files[i].is_artifact ? "!" : "");
	return buf_str(&text);
}

static void run_staged(const char *code, const struct python_stage *stage,
		       struct python_result *result)
{
	struct err err = ERR_INIT;
	struct python_options options = options_of(code);
	options.timeout_ms = PYTHON_TIMEOUT_MAX_MS; /* other tests may keep the machine busy */
	ck_ok(python_run(&app, &sandbox, &use, &options, stage, NULL, NULL, result, &err), err);
}

static void run(const char *code, struct python_result *result)
{
	run_staged(code, NULL, result);
}

/* Code that ends well and prints this. */
static void expect(const char *code, const char *out)
{
	AUTO_PYTHON_RESULT result;
	run(code, &result);
	ck_assert_int_eq(result.run.end, KERNEL_END_DONE);
	ck_assert_str_eq(out_of(&result), out);
}

static void shell(const char *line)
{
	struct err err = ERR_INIT;
	struct session session;
	struct exec_options options = {.command = line};
	session_init(&session, 4096, 4096);
	ck_ok(exec_run(&app, &sandbox, &use, &options, &session, &err), err);
	ck_assert_int_eq(session.status.code, 0);
	session_finish(&session);
}

static bool is_in_workspace(const char *path)
{
	return faccessat(use.workspace_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* --- checks -------------------------------------------------------------------------------- */

static void expect_refused(const char *code, size_t len, int64_t timeout_ms, enum err_code wanted)
{
	struct err err = ERR_INIT;
	struct python_options options = {code, len, timeout_ms};
	ck_assert(!python_check(&options, &err));
	ck_assert_int_eq(err.code, wanted);
	ck_assert_int_gt(strlen(err.msg), 0);
}

TEST(code_that_cannot_be_run_is_refused_before_anything_is_touched)
{
	struct err err = ERR_INIT;
	AUTO_FREE char *large = xmalloc(PYTHON_CODE_MAX + 1);
	memset(large, '#', PYTHON_CODE_MAX + 1);
	expect_refused(NULL, 0, 0, ERR_INVALID);
	expect_refused("", 0, 0, ERR_INVALID);
	expect_refused("a\0b", 3, 0, ERR_INVALID);
	expect_refused("x = '\xff'", 7, 0, ERR_INVALID);
	expect_refused(large, PYTHON_CODE_MAX + 1, 0, ERR_TOO_LARGE);
	expect_refused("1", 1, -1, ERR_INVALID);
	expect_refused("1", 1, PYTHON_TIMEOUT_MAX_MS + 1, ERR_INVALID);
	struct python_options largest = {large, PYTHON_CODE_MAX, PYTHON_TIMEOUT_MAX_MS};
	ck_ok(python_check(&largest, &err), err);
	/* A result is made ready in any case. */
	setup();
	AUTO_PYTHON_RESULT result;
	struct python_options options = options_of("");
	memset(&result, 0xff, sizeof(result));
	ck_assert(!python_run(&app, &sandbox, &use, &options, NULL, NULL, NULL, &result, &err));
	teardown();
}
TEST_END

/* --- one run ------------------------------------------------------------------------------- */

TEST(code_runs_in_the_workspace_and_starts_what_it_needs)
{
	setup();
	AUTO_PYTHON_RESULT result;
	run("import os\nprint(os.getcwd())\n6 * 7", &result);
	ck_assert_int_eq(result.run.end, KERNEL_END_DONE);
	ck_assert_str_eq(out_of(&result), "/workspace\n");
	ck_assert_ptr_nonnull(result.run.value);
	ck_assert_str_eq(json_get_str(result.run.value, "text"), "42");
	ck_assert_str_eq(result.session_id, "");
	ck_assert_int_eq(result.changes.count, 0);
	ck_assert(!result.changes.partial);
	teardown();
}
TEST_END

TEST(a_sandbox_or_a_kernel_that_went_down_is_started_again)
{
	setup();
	struct err err = ERR_INIT;
	expect("print(1)", "1\n");
	ck_ok(app.runtime->stop(&use.box, &err), err);
	expect("print(2)", "2\n");
	shell("pkill -KILL -f /.python/kernel.py");
	expect("print(3)", "3\n");
	teardown();
}
TEST_END

TEST(a_kernel_that_takes_no_code_is_not_tried_for_ever_and_the_code_did_not_run)
{
	struct err err = ERR_INIT;
	struct python_options options = options_of("open('ran', 'w')");
	setup();
	/* One that lets go of each connection, as the real one without room for a process. */
	int fd = sock_bind(use.run_dir_fd, KERNEL_SOCKET, SOCK_SEQPACKET, 8, &err);
	ck_assert_int_ge(fd, 0);
	pid_t pid = fork();
	while (pid == 0)
		close(accept(fd, NULL, NULL));
	close(fd);
	AUTO_PYTHON_RESULT result;
	ck_assert(!python_run(&app, &sandbox, &use, &options, NULL, NULL, NULL, &result, &err));
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_int_eq(err.code, ERR_LOST);
	ck_assert_ptr_nonnull(strstr(err.msg, "was not run"));
	ck_assert_ptr_nonnull(strstr(err.hint, "ps"));
	ck_assert(!is_in_workspace("ran") && !app.python_used);
	expect("print(1)", "1\n");
	ck_assert(app.python_used); /* and so is settled */
	teardown();
}
TEST_END

/* Monotonic time that goes a thousand times as fast. */
static int64_t mono_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t fast_ms(void)
{
	return 1000 * mono_ms();
}

static int64_t wall_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static const struct clock_source fast_clock = {
	.wall_ms = wall_ms, .mono_ms = fast_ms, .boot_ms = mono_ms, .boot_id = ""};

TEST(a_kernel_that_was_stopped_is_replaced_by_the_next_call)
{
	struct err err = ERR_INIT;
	struct python_options options = options_of("open('ran', 'w')");
	setup();
	expect("print(1)", "1\n");
	shell("pkill -STOP -f /.python/kernel.py");
	AUTO_PYTHON_RESULT result;
	clock_use(&fast_clock);
	bool ok = python_run(&app, &sandbox, &use, &options, NULL, NULL, NULL, &result, &err);
	clock_use(NULL);
	ck_assert(!ok);
	ck_assert_int_eq(err.code, ERR_BUSY);
	ck_assert_ptr_nonnull(strstr(err.hint, "Python is started anew"));
	expect("print(2)", "2\n");
	/* The old one finds nobody to run anything for. */
	shell("pkill -CONT -f /.python/kernel.py");
	expect("print(3)", "3\n");
	ck_assert(!is_in_workspace("ran"));
	teardown();
}
TEST_END

TEST(a_run_renews_the_lifetime_of_its_sandbox)
{
	setup();
	struct err err = ERR_INIT;
	expect("1", "");
	sqlite3 *handle;
	ck_assert_int_eq(sqlite3_open(conf.state_db, &handle), SQLITE_OK);
	ck_assert_int_eq(
		sqlite3_exec(handle, "UPDATE sandbox SET last_used_at = 1", NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(handle);
	expect("1", "");
	AUTO_SANDBOX_ROW row = {0};
	ck_assert_int_eq(row_sandbox_any(app.db, sandbox.id, &row, &err), 1);
	ck_assert_int_gt(row.last_used_at, 1);
	teardown();
}
TEST_END

/* --- changes ------------------------------------------------------------------------------- */

TEST(files_that_were_made_or_changed_are_found_and_those_of_before_are_not)
{
	setup();
	expect("for n in 'old.txt', 'changed.txt', 'touched.bin':\n"
	       "    open(n, 'w').write('before')\n",
	       "");
	clock_sleep_ms(50);
	AUTO_PYTHON_RESULT result;
	run("import os\n"
	    "os.makedirs('out/deep')\n"
	    "open('out/deep/a.CSV', 'w').write('1,2')\n"
	    "open('plot.png', 'wb').write(b'x' * 10)\n"
	    "open('changed.txt', 'a').write('!')\n"
	    "os.utime('touched.bin', (0, 0))\n"
	    "open('.hidden.png', 'w').write('x')\n"
	    "open('png', 'w').write('x')\n"
	    "os.symlink('/etc/passwd', 'link.txt')\n"
	    "os.mkfifo('fifo.txt')\n",
	    &result);
	ck_assert_int_eq(result.run.end, KERNEL_END_DONE);
	ck_assert_str_eq(changes_of(&result),
			 "changed.txt! out/deep/a.CSV! plot.png! png touched.bin");
	ck_assert_int_eq(result.changes.files[2].size, 10);
	ck_assert(!result.changes.partial);
	teardown();
}
TEST_END

TEST(which_files_are_handed_out_is_a_setting)
{
	setup();
	free(conf.python_artifacts);
	conf.python_artifacts = xstrdup(".tar.gz, .dat");
	AUTO_PYTHON_RESULT some;
	run("for n in 'a.tar.gz', 'b.gz', 'c.DAT', 'd.png': open(n, 'w').close()", &some);
	ck_assert_str_eq(changes_of(&some), "a.tar.gz! c.DAT! b.gz d.png");
	free(conf.python_artifacts);
	conf.python_artifacts = xstrdup("*");
	clock_sleep_ms(50);
	AUTO_PYTHON_RESULT all;
	run("open('e', 'w').close()", &all);
	ck_assert_str_eq(changes_of(&all), "e!");
	free(conf.python_artifacts);
	conf.python_artifacts = xstrdup("");
	clock_sleep_ms(50);
	AUTO_PYTHON_RESULT none;
	run("open('f.png', 'w').close()", &none);
	ck_assert_str_eq(changes_of(&none), "f.png");
	teardown();
}
TEST_END

TEST(many_changes_are_cut_and_artifacts_are_not_lost_among_them)
{
	setup();
	AUTO_PYTHON_RESULT result;
	run("for i in range(300): open('%03d.bin' % i, 'w').close()\n"
	    "for i in range(30): open('z%02d.csv' % i, 'w').close()\n",
	    &result);
	ck_assert(result.changes.partial);
	ck_assert_int_eq(result.changes.count, PYTHON_ARTIFACTS_MAX + PYTHON_CHANGED_MAX);
	size_t artifacts = 0;
	for (size_t i = 0; i < result.changes.count; i++)
		artifacts += result.changes.files[i].is_artifact;
	ck_assert_int_eq(artifacts, PYTHON_ARTIFACTS_MAX);
	ck_assert_str_eq(result.changes.files[0].path, "z00.csv");
	ck_assert_str_eq(result.changes.files[PYTHON_ARTIFACTS_MAX].path, "000.bin");
	teardown();
}
TEST_END

TEST(the_workspace_itself_is_looked_at_first_however_many_files_it_has)
{
	setup();
	AUTO_PYTHON_RESULT plot, many, below;
	expect("for i in range(1500): open('%04d.csv' % i, 'w').close()", "");
	clock_sleep_ms(50);
	run("open('plot.png', 'w').close()\nopen('0100.csv', 'w').close()", &plot);
	ck_assert_str_eq(changes_of(&plot), "0100.csv! plot.png!");
	ck_assert(!plot.changes.partial);
	clock_sleep_ms(50);
	run("for i in range(5000): open('%04d.bin' % i, 'w').close()\n"
	    "open('plot.png', 'w').close()\n",
	    &many);
	ck_assert(many.changes.partial);
	ck_assert_int_eq(many.changes.count, 1 + PYTHON_CHANGED_MAX);
	ck_assert(many.changes.files[0].is_artifact);
	ck_assert_str_eq(many.changes.files[0].path, "plot.png");
	/* Of too many entries at the top, what is below is not known. */
	clock_sleep_ms(50);
	run("import os\nos.mkdir('d')\nopen('d/a.png', 'w').close()\nopen('b.png', 'w').close()",
	    &below);
	ck_assert_str_eq(changes_of(&below), "b.png!");
	ck_assert(below.changes.partial);
	teardown();
}
TEST_END

TEST(a_tree_that_is_too_large_to_look_at_all_of_it_is_said_to_be)
{
	setup();
	AUTO_PYTHON_RESULT result;
	run("import os\n"
	    "for d in range(22):\n"
	    "    os.mkdir('d%02d' % d)\n"
	    "    for i in range(990): os.mknod('d%02d/%d' % (d, i))\n"
	    "open('zz.png', 'w').close()\n",
	    &result);
	ck_assert_msg(result.run.end == KERNEL_END_DONE, "%s",
		      result.run.error == NULL ? "" : json_text(result.run.error, NULL));
	ck_assert(result.changes.partial);
	ck_assert_int_eq(result.changes.count, 1 + PYTHON_CHANGED_MAX);
	ck_assert(result.changes.files[0].is_artifact);
	ck_assert_str_eq(result.changes.files[0].path, "zz.png");
	teardown();
}
TEST_END

static void name_file(struct kernel_run *named, const char *path, const char *about)
{
	named->files[named->file_count++] = (struct kernel_file){
		.path = xstrdup(path), .about = about == NULL ? NULL : xstrdup(about)};
}

TEST(what_the_kernel_names_is_believed_only_as_far_as_it_is_a_file_of_the_workspace)
{
	setup();
	AUTO_PYTHON_RESULT result;
	run("import os\n"
	    "os.makedirs('.python/1f2e3d4c')\n"
	    "open('.python/1f2e3d4c/figure.png', 'w').write('full')\n"
	    "open('data.bin', 'w').write('1')\n"
	    "os.symlink('/etc/passwd', 'passwd.txt')\n"
	    "os.symlink('.python', 'inside')\n"
	    "os.mkfifo('fifo')\n",
	    &result);
	struct kernel_run *named = &result.run;
	python_changes_finish(&result.changes);
	name_file(named, "/workspace/.python/1f2e3d4c/figure.png", "figure 1");
	name_file(named, "/workspace/.python/1f2e3d4c/figure.png", "again");
	name_file(named, "data.bin", NULL);
	name_file(named, "/workspace/passwd.txt", NULL);
	name_file(named, "/etc/passwd", NULL);
	name_file(named, "../../spool.id", NULL);
	name_file(named, "/workspace/fifo", NULL);
	name_file(named, "/workspace", NULL);
	name_file(named, "/workspace/missing.png", NULL);
	name_file(named, "", NULL);
	struct python_work work = {&app, &sandbox, &use, NULL, NULL, NULL, NULL, &result, {0, 0}};
	python_find_changes(&work);
	ck_assert_str_eq(changes_of(&result), ".python/1f2e3d4c/figure.png! data.bin!");
	ck_assert_str_eq(result.changes.files[0].about, "figure 1");
	ck_assert_int_eq(result.changes.files[0].size, 4);
	teardown();
}
TEST_END

/* --- inputs -------------------------------------------------------------------------------- */

static struct sandbox_row other;
static struct sandbox_use other_use;

static void setup_other(void)
{
	struct err err = ERR_INIT;
	bool created;
	ck_ok(sandbox_create(&app, ALICE, &(struct sandbox_options){.name = "other"}, &other,
			     &created, &err),
	      err);
	ck_ok(sandbox_enter(&app, &other, &other_use, &err), err);
}

static void teardown_other(void)
{
	sandbox_leave(&other_use);
	destroy("other");
	sandbox_row_finish(&other);
}

static void put(const struct sandbox_use *to, const char *path, const char *text)
{
	struct err err = ERR_INIT;
	AUTO_FD fd = openat(to->workspace_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	ck_assert_int_ge(fd, 0);
	ck_ok(fs_write_all(fd, text, strlen(text), &err), err);
}

TEST(inputs_of_the_same_sandbox_stay_where_they_are_and_others_are_copied_for_reading)
{
	setup();
	setup_other();
	struct err err = ERR_INIT;
	put(&use, "own.csv", "own");
	ck_assert_int_eq(mkdirat(other_use.workspace_fd, "deep", 0755), 0);
	put(&other_use, "deep/data.csv", "other");
	AUTO_PYTHON_STAGE stage = {.count = 0};
	ck_ok(python_stage_own(&stage, &use, "/workspace/own.csv", &err), err);
	ck_ok(python_stage_own(&stage, &use, "own.csv", &err), err);
	ck_ok(python_stage_copy(&app, &stage, &other_use, "deep/data.csv", &use, &err), err);
	/* The same once more is no conflict. */
	ck_ok(python_stage_copy(&app, &stage, &other_use, "/workspace/deep/data.csv", &use, &err),
	      err);
	ck_assert_int_eq(stage.count, 2);
	ck_assert_str_eq(stage.names[0], "own.csv");
	ck_assert_str_eq(stage.names[1], "data.csv");
	ck_assert_ptr_null(stage.names[2]);
	AUTO_PYTHON_RESULT result;
	run_staged("import os\n"
		   "print(open('own.csv').read(), open('data.csv').read(),"
		   " oct(os.stat('data.csv').st_mode)[-3:])\n"
		   "open('new.csv', 'w').close()\n",
		   &stage, &result);
	ck_assert_str_eq(out_of(&result), "own other 444\n");
	ck_assert_str_eq(changes_of(&result), "new.csv!");
	teardown_other();
	teardown();
}
TEST_END

TEST(an_input_is_a_change_only_when_the_code_changed_it)
{
	setup();
	struct err err = ERR_INIT;
	put(&use, "in.csv", "1");
	put(&use, "kept.csv", "1");
	AUTO_PYTHON_STAGE stage = {.count = 0};
	ck_ok(python_stage_own(&stage, &use, "in.csv", &err), err);
	ck_ok(python_stage_own(&stage, &use, "kept.csv", &err), err);
	AUTO_PYTHON_RESULT result;
	run_staged("import time\ntime.sleep(0.05)\nopen('in.csv', 'a').write('2')", &stage,
		   &result);
	ck_assert_str_eq(changes_of(&result), "in.csv!");
	/* As if it had been staged at the very moment at which the run began. */
	struct stat st;
	ck_assert_int_eq(fstatat(use.workspace_fd, "kept.csv", &st, 0), 0);
	struct python_work work = {&app, &sandbox, &use,    NULL,      &stage,
				   NULL, NULL,     &result, st.st_ctim};
	python_changes_finish(&result.changes);
	python_find_changes(&work);
	ck_assert_str_eq(changes_of(&result), "in.csv!");
	work.staged = NULL;
	python_changes_finish(&result.changes);
	python_find_changes(&work);
	ck_assert_str_eq(changes_of(&result), "in.csv! kept.csv!");
	teardown();
}
TEST_END

TEST(an_input_does_not_replace_what_has_its_name)
{
	setup();
	setup_other();
	struct err err = ERR_INIT;
	AUTO_PYTHON_STAGE stage = {.count = 0};
	put(&other_use, "a", "one");
	put(&use, "a", "two");
	ck_assert(!python_stage_copy(&app, &stage, &other_use, "a", &use, &err));
	ck_assert_int_eq(err.code, ERR_EXISTS);
	put(&other_use, "d", "one");
	ck_assert_int_eq(mkdirat(use.workspace_fd, "d", 0755), 0);
	ck_assert(!python_stage_copy(&app, &stage, &other_use, "d", &use, &err));
	ck_assert_int_eq(err.code, ERR_EXISTS);
	/* A link is not followed out of the workspace to compare. */
	put(&other_use, "l", "one");
	ck_assert_int_eq(symlinkat("/etc/hostname", use.workspace_fd, "l"), 0);
	ck_assert(!python_stage_copy(&app, &stage, &other_use, "l", &use, &err));
	ck_assert_int_eq(err.code, ERR_EXISTS);
	ck_assert_int_eq(stage.count, 0);
	teardown_other();
	teardown();
}
TEST_END

TEST(inputs_that_are_no_files_too_large_or_too_many_are_refused)
{
	setup();
	setup_other();
	struct err err = ERR_INIT;
	AUTO_PYTHON_STAGE stage = {.count = 0};
	ck_assert(!python_stage_own(&stage, &use, "missing", &err));
	ck_assert_int_eq(err.code, ERR_NOT_FOUND);
	ck_assert_int_eq(mkfifoat(use.workspace_fd, "fifo", 0644), 0);
	ck_assert(!python_stage_own(&stage, &use, "fifo", &err));
	ck_assert_int_eq(err.code, ERR_INVALID);
	ck_assert(!python_stage_own(&stage, &use, "../data", &err));
	ck_assert_int_eq(err.code, ERR_INVALID);
	put(&other_use, "big", "12345");
	conf.max_upload = 4;
	ck_assert(!python_stage_copy(&app, &stage, &other_use, "big", &use, &err));
	ck_assert_int_eq(err.code, ERR_TOO_LARGE);
	ck_assert(!is_in_workspace("big"));
	conf.max_upload = 5;
	ck_ok(python_stage_copy(&app, &stage, &other_use, "big", &use, &err), err);
	for (int i = 1; i < PYTHON_INPUTS_MAX; i++) {
		AUTO_FREE char *name = xasprintf("%d", i);
		put(&use, name, "x");
		ck_ok(python_stage_own(&stage, &use, name, &err), err);
	}
	put(&use, "one-more", "x");
	ck_assert(!python_stage_own(&stage, &use, "one-more", &err));
	ck_assert_int_eq(err.code, ERR_INVALID);
	teardown_other();
	teardown();
}
TEST_END

/* --- sessions ------------------------------------------------------------------------------ */

static void new_session(const char *code, char id[static ID_LEN + 1])
{
	struct err err = ERR_INIT;
	AUTO_PYTHON_RESULT result;
	struct python_options options = options_of(code);
	ck_ok(python_run_new(&app, ALICE, &sandbox, &use, &options, NULL, NULL, NULL, &result,
			     &err),
	      err);
	ck_assert_int_eq(result.run.state, KERNEL_STATE_KEPT);
	ck_assert(id_is_valid(result.session_id));
	memcpy(id, result.session_id, ID_LEN + 1);
}

static struct python_row find(const char *id)
{
	struct err err = ERR_INIT;
	struct python_row row;
	ck_ok(python_find(&app, ALICE, id, &row, &err), err);
	return row;
}

/* ERR_NONE: it ran. */
static enum err_code try_in(const struct python_row *session, const char *code, int64_t timeout_ms,
			    struct python_result *result)
{
	struct err err = ERR_INIT;
	struct python_options options = options_of(code);
	options.timeout_ms = timeout_ms;
	return python_run_in(&app, session, &sandbox, &use, &options, NULL, NULL, NULL, result,
			     &err)
		       ? ERR_NONE
		       : err.code;
}

static void expect_in(const char *id, const char *code, const char *out)
{
	AUTO_PYTHON_RESULT result;
	struct python_row session = find(id);
	ck_assert_int_eq(try_in(&session, code, 0, &result), ERR_NONE);
	ck_assert_str_eq(result.session_id, id);
	ck_assert_str_eq(out_of(&result), out);
}

/* What is said of a session that ended. */
static const char *gone_text(const char *id, enum python_why why)
{
	static struct err err;
	struct python_row row = {.why = PYTHON_WHY_NONE};
	ck_assert(!python_find(&app, ALICE, id, &row, &err));
	ck_assert_int_eq(err.code, ERR_GONE);
	ck_assert_int_eq(row.why, why);
	ck_assert_str_eq(row.sandbox_id, sandbox.id);
	ck_assert_ptr_nonnull(strstr(err.msg, id));
	ck_assert_ptr_nonnull(strstr(err.hint, "\"new\""));
	return err.msg;
}

TEST(a_session_keeps_its_variables_and_two_do_not_share_them)
{
	setup();
	char one[ID_LEN + 1], two[ID_LEN + 1];
	new_session("x = 1", one);
	new_session("x = 2", two);
	expect_in(one, "x += 10\nprint(x)", "11\n");
	expect_in(two, "print(x)", "2\n");
	expect_in(one, "print(x)", "11\n");
	expect("print('x' in globals())", "False\n");
	/* Each run is a use. */
	struct err err = ERR_INIT;
	ck_assert_int_eq(row_python_touch(app.db, one, 1, &err), 1);
	expect_in(one, "print(x)", "11\n");
	ck_assert_int_gt(find(one).last_used_at, 1);
	teardown();
}
TEST_END

TEST(a_session_that_is_unknown_or_anothers_is_not_found_and_not_made)
{
	setup();
	struct err err = ERR_INIT;
	struct python_row row;
	char id[ID_LEN + 1];
	new_session("x = 1", id);
	static const char *const bad[] = {"", "x", "0123456789abcdef0123456789abcdef",
					  "0123456789ABCDEF0123456789ABCDEF"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		ck_assert(!python_find(&app, ALICE, bad[i], &row, &err));
		ck_assert_int_eq(err.code, ERR_NOT_FOUND);
	}
	ck_assert(!python_find(&app, "bob", id, &row, &err));
	ck_assert_int_eq(err.code, ERR_NOT_FOUND);
	teardown();
}
TEST_END

/* A child that runs code in a session until it is killed or the code ends. */
static pid_t run_in_child(const char *id, const char *code)
{
	pid_t pid;
	struct python_row session = find(id);
	sandbox_leave(&use);
	app_close(&app);
	pid = fork();
	struct err err = ERR_INIT;
	if (pid == 0) {
		AUTO_PYTHON_RESULT result;
		if (!app_open(&app, &conf, &err) || !sandbox_enter(&app, &sandbox, &use, &err))
			_exit(1);
		_exit(try_in(&session, code, 30000, &result) == ERR_NONE ? 0 : 2);
	}
	ck_ok(app_open(&app, &conf, &err), err);
	enter();
	return pid;
}

static void wait_for(const char *path)
{
	for (int i = 0; i < 1000 && !is_in_workspace(path); i++)
		clock_sleep_ms(10);
	ck_assert(is_in_workspace(path));
}

TEST(a_second_run_of_a_session_is_busy_and_a_worker_that_dies_leaves_the_session_usable)
{
	setup();
	AUTO_PYTHON_RESULT result;
	char id[ID_LEN + 1];
	int status;
	new_session("x = 5", id);
	pid_t pid = run_in_child(id, "import time\nopen('begun', 'w').close()\ntime.sleep(20)");
	wait_for("begun");
	struct python_row session = find(id);
	ck_assert_int_eq(try_in(&session, "print(x)", 0, &result), ERR_BUSY);
	ck_assert(python_is_used(&app, &session));
	struct err err = ERR_INIT;
	ck_assert_int_eq(python_end_idle(&app, &session, &err), 0);
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(!python_is_used(&app, &session));
	expect_in(id, "print(x)", "5\n");
	teardown();
}
TEST_END

TEST(a_session_that_was_stopped_is_busy_and_goes_on_afterwards)
{
	setup();
	struct err err = ERR_INIT;
	AUTO_PYTHON_RESULT result;
	char id[ID_LEN + 1];
	new_session("x = 5", id);
	struct python_row session = find(id);
	struct python_options options = options_of("x = 6");
	shell("pkill -STOP -f /.python/kernel.py");
	clock_use(&fast_clock);
	bool ok = python_run_in(&app, &session, &sandbox, &use, &options, NULL, NULL, NULL, &result,
				&err);
	clock_use(NULL);
	ck_assert(!ok);
	ck_assert_int_eq(err.code, ERR_BUSY);
	ck_assert_ptr_nonnull(strstr(err.hint, "session_id \"new\" and sandbox \"work\""));
	shell("pkill -CONT -f /.python/kernel.py");
	expect_in(id, "print(x)", "5\n");
	teardown();
}
TEST_END

TEST(a_timeout_is_an_interrupt_first_and_the_session_goes_on)
{
	setup();
	AUTO_PYTHON_RESULT result;
	char id[ID_LEN + 1];
	new_session("x = 7", id);
	struct python_row session = find(id);
	ck_assert_int_eq(try_in(&session, "while True: pass", 300, &result), ERR_NONE);
	ck_assert(result.run.timed_out);
	ck_assert_int_eq(result.run.state, KERNEL_STATE_KEPT);
	ck_assert_str_eq(result.session_id, id);
	expect_in(id, "print(x)", "7\n");
	teardown();
}
TEST_END

static void expect_end(const char *code, int64_t timeout_ms, enum python_why why, const char *word)
{
	AUTO_PYTHON_RESULT result;
	char id[ID_LEN + 1];
	new_session("x = 1", id);
	struct python_row session = find(id);
	ck_assert_int_eq(try_in(&session, code, timeout_ms, &result), ERR_NONE);
	ck_assert_int_ne(result.run.state, KERNEL_STATE_KEPT);
	ck_assert_str_eq(result.session_id, "");
	const char *text = gone_text(id, why);
	ck_assert_msg(strstr(text, word) != NULL, "%s", text);
	ck_assert_ptr_nonnull(strstr(text, "sandbox work"));
	AUTO_FREE char *lock = xasprintf("py-%s.lock", id);
	AUTO_FREE char *sock = xasprintf("py-%s.sock", id);
	ck_assert_int_ne(faccessat(use.run_dir_fd, lock, F_OK, 0), 0);
	ck_assert_int_ne(faccessat(use.run_dir_fd, sock, F_OK, 0), 0);
	/* Who found it before is told the same. */
	AUTO_PYTHON_RESULT late;
	ck_assert_int_eq(try_in(&session, "1", 0, &late), ERR_GONE);
	ck_assert_int_ne(faccessat(use.run_dir_fd, lock, F_OK, 0), 0);
}

TEST(a_session_that_its_code_ended_says_so_afterwards)
{
	setup();
	expect_end("import os\nos._exit(3)", 0, PYTHON_WHY_EXITED, "ended the interpreter");
	expect_end("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", 0, PYTHON_WHY_CRASHED,
		   "crashed");
	expect_end("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
		   "while True: pass",
		   200, PYTHON_WHY_KILLED, "killed");
	teardown();
}
TEST_END

TEST(a_new_session_that_ends_with_its_first_run_has_no_id)
{
	setup();
	struct err err = ERR_INIT;
	AUTO_PYTHON_RESULT result;
	struct python_options options = options_of("import os\nos._exit(3)");
	ck_ok(python_run_new(&app, ALICE, &sandbox, &use, &options, NULL, NULL, NULL, &result,
			     &err),
	      err);
	ck_assert_int_eq(result.run.end, KERNEL_END_EXIT);
	ck_assert_int_eq(result.run.code, 3);
	ck_assert_str_eq(result.session_id, "");
	teardown();
}
TEST_END

TEST(a_session_whose_sandbox_was_stopped_or_destroyed_is_gone_and_not_made_anew)
{
	setup();
	struct err err = ERR_INIT;
	AUTO_PYTHON_RESULT result;
	char id[ID_LEN + 1], other_id[ID_LEN + 1];
	new_session("x = 1", id);
	new_session("x = 1", other_id);
	struct python_row session = find(id);
	ck_ok(app.runtime->stop(&use.box, &err), err);
	ck_assert_int_eq(try_in(&session, "print(x)", 0, &result), ERR_GONE);
	ck_assert_int_eq(app.runtime->alive(&use.box, &err), 0);
	ck_assert_ptr_nonnull(strstr(gone_text(id, PYTHON_WHY_LOST), "went away"));
	sandbox_leave(&use);
	destroy("work");
	struct python_row row;
	ck_assert(!python_find(&app, ALICE, other_id, &row, &err));
	ck_assert_int_eq(err.code, ERR_GONE);
	ck_assert_ptr_nonnull(strstr(err.msg, "removed"));
	teardown();
}
TEST_END

TEST(a_session_ends_by_itself_when_it_is_idle_and_says_so)
{
	setup();
	AUTO_PYTHON_RESULT result;
	char id[ID_LEN + 1];
	conf.python_idle = 1;
	new_session("x = 1", id);
	struct python_row session = find(id);
	clock_sleep_ms(1500);
	ck_assert_int_eq(try_in(&session, "print(x)", 0, &result), ERR_GONE);
	ck_assert_ptr_nonnull(strstr(gone_text(id, PYTHON_WHY_IDLE), "not used for 1 seconds"));
	teardown();
}
TEST_END

TEST(a_session_whose_row_ended_is_over_even_where_its_processes_are_not)
{
	setup();
	struct err err = ERR_INIT;
	AUTO_PYTHON_RESULT result;
	char id[ID_LEN + 1];
	new_session("x = 1", id);
	struct python_row session = find(id);
	/* A clean-up that died behind its first step. */
	ck_assert_int_eq(row_python_end(app.db, id, PYTHON_WHY_IDLE, clock_wall_ms(), &err), 1);
	ck_assert_int_eq(try_in(&session, "open('ran', 'w').close()", 0, &result), ERR_GONE);
	ck_assert(!is_in_workspace("ran"));
	gone_text(id, PYTHON_WHY_IDLE);
	teardown();
}
TEST_END

TEST(the_clean_up_ends_the_processes_of_an_idle_session)
{
	setup();
	struct err err = ERR_INIT;
	char id[ID_LEN + 1];
	const char *marker = kit_marker();
	AUTO_FREE char *code =
		xasprintf("import subprocess\np = subprocess.Popen(['sleep', '%s'])", marker);
	new_session(code, id);
	ck_assert_int_eq(kit_settle(marker, 1), 1);
	struct python_row session = find(id);
	ck_assert_int_eq(python_end_idle(&app, &session, &err), 1);
	ck_assert_int_eq(kit_settle(marker, 0), 0);
	gone_text(id, PYTHON_WHY_IDLE);
	AUTO_FREE char *sock = xasprintf("py-%s.sock", id);
	ck_assert_int_ne(faccessat(use.run_dir_fd, sock, F_OK, 0), 0);
	teardown();
}
TEST_END

/* --- ready sandboxes ----------------------------------------------------------------------- */

static int64_t run_pooled(const char *code, bool keep, char name[static 64])
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	AUTO_SANDBOX_USE mine = SANDBOX_USE_INIT;
	AUTO_PYTHON_RESULT result = {.session_id = ""};
	struct python_options options = options_of(code);
	int64_t began_ms = clock_mono_ms();
	ck_ok(python_pool_take(&app, ALICE, 60000, &row, &err), err);
	ck_ok(sandbox_enter(&app, &row, &mine, &err), err);
	ck_ok(python_run(&app, &row, &mine, &options, NULL, NULL, NULL, &result, &err), err);
	int64_t took_ms = clock_mono_ms() - began_ms;
	ck_assert_int_eq(result.run.end, KERNEL_END_DONE);
	snprintf(name, 64, "%s", row.name);
	sandbox_leave(&mine);
	python_pool_release(&app, &row, keep);
	python_pool_settle(&app);
	return took_ms;
}

TEST(a_ready_sandbox_is_used_once_and_nothing_of_it_is_left)
{
	setup();
	struct err err = ERR_INIT;
	char first[64], second[64];
	int64_t cold_ms = run_pooled("open('a.txt', 'w').write('1')", true, first);
	int64_t warm_ms = run_pooled("import os\nassert os.listdir('.') == [], os.listdir('.')",
				     false, second);
	printf("# cold %lld ms, ready %lld ms\n", (long long)cold_ms, (long long)warm_ms);
	ck_assert_str_ne(first, second);
	AUTO_SANDBOX_ROW kept = {0}, gone = {0}, reserve = {0};
	ck_ok(sandbox_find(&app, ALICE, first, &kept, &err), err);
	ck_assert_int_eq(sandbox_running(&app, &kept, &err), 0);
	ck_assert(!sandbox_find(&app, ALICE, second, &gone, &err));
	destroy(first);
	ck_assert_int_eq(row_reserve_oldest(app.db, ALICE, clock_wall_ms(), &reserve, &err), 1);
	ck_assert_int_eq(sandbox_running(&app, &reserve, &err), 1);
	ck_assert_int_eq(row_reserve_end(app.db, reserve.id, clock_wall_ms(), &err), 1);
	ck_ok(sandbox_remove(&app, &reserve, true, NULL, &err), err);
	teardown();
}
TEST_END

int main(int argc, char **argv)
{
	const TTest *const tests[] = {
		code_that_cannot_be_run_is_refused_before_anything_is_touched,
		code_runs_in_the_workspace_and_starts_what_it_needs,
		a_sandbox_or_a_kernel_that_went_down_is_started_again,
		a_kernel_that_takes_no_code_is_not_tried_for_ever_and_the_code_did_not_run,
		a_kernel_that_was_stopped_is_replaced_by_the_next_call,
		a_run_renews_the_lifetime_of_its_sandbox,
		files_that_were_made_or_changed_are_found_and_those_of_before_are_not,
		which_files_are_handed_out_is_a_setting,
		many_changes_are_cut_and_artifacts_are_not_lost_among_them,
		the_workspace_itself_is_looked_at_first_however_many_files_it_has,
		a_tree_that_is_too_large_to_look_at_all_of_it_is_said_to_be,
		what_the_kernel_names_is_believed_only_as_far_as_it_is_a_file_of_the_workspace,
		inputs_of_the_same_sandbox_stay_where_they_are_and_others_are_copied_for_reading,
		an_input_is_a_change_only_when_the_code_changed_it,
		an_input_does_not_replace_what_has_its_name,
		inputs_that_are_no_files_too_large_or_too_many_are_refused,
		a_session_keeps_its_variables_and_two_do_not_share_them,
		a_session_that_is_unknown_or_anothers_is_not_found_and_not_made,
		a_second_run_of_a_session_is_busy_and_a_worker_that_dies_leaves_the_session_usable,
		a_session_that_was_stopped_is_busy_and_goes_on_afterwards,
		a_timeout_is_an_interrupt_first_and_the_session_goes_on,
		a_session_that_its_code_ended_says_so_afterwards,
		a_new_session_that_ends_with_its_first_run_has_no_id,
		a_session_whose_sandbox_was_stopped_or_destroyed_is_gone_and_not_made_anew,
		a_session_ends_by_itself_when_it_is_idle_and_says_so,
		a_session_whose_row_ended_is_over_even_where_its_processes_are_not,
		the_clean_up_ends_the_processes_of_an_idle_session,
		a_ready_sandbox_is_used_once_and_nothing_of_it_is_left,
	};
	(void)argc;
	return kit_main(argv, "python", tests, ARRAY_LEN(tests));
}
