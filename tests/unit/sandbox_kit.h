/*
 * For tests of sandboxes: an app on a fresh spool whose runtime is a fake. The fake keeps "up"
 * as a file in run/<id>, is slow enough for races to happen, and notes its calls in a file that
 * all processes share.
 */
#ifndef SPOOLBOX_UNIT_SANDBOX_KIT_H
#define SPOOLBOX_UNIT_SANDBOX_KIT_H

#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "box/sandbox.h"

#define ALICE "alice"

static char *kit_dir;
static struct conf conf;
static struct app app;
static int kit_notes = -1; /* one letter a call: S start, X stop, E exec */
static int kit_slow_ms;

static inline void kit_note(char c)
{
	if (write(kit_notes, &c, 1) != 1)
		abort();
}

static inline int kit_count(char c)
{
	char text[4096];
	ssize_t n = pread(kit_notes, text, sizeof(text), 0);
	int count = 0;
	for (ssize_t i = 0; i < n; i++)
		count += text[i] == c;
	return count;
}

static bool fake_start(const struct runtime_box *box, struct err *err)
{
	kit_note('S');
	clock_sleep_ms(kit_slow_ms);
	AUTO_FD fd = openat(box->run_dir_fd, "up", O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	return fd >= 0 || err_set(err, ERR_INTERNAL, "started twice");
}

static bool fake_stop(const struct runtime_box *box, struct err *err)
{
	(void)err;
	kit_note('X');
	clock_sleep_ms(kit_slow_ms);
	unlinkat(box->run_dir_fd, "up", 0);
	return true;
}

static int fake_alive(const struct runtime_box *box, struct err *err)
{
	(void)err;
	return faccessat(box->run_dir_fd, "up", F_OK, 0) == 0;
}

static struct runtime fake = {
	.name = "fake",
	.start = fake_start,
	.stop = fake_stop,
	.alive = fake_alive,
};

/* A child does this: SQLite connections do not survive a fork. */
static inline void kit_reopen(void)
{
	struct err err = ERR_INIT;
	if (!app_open(&app, &conf, &err)) {
		fprintf(stderr, "# %s: %s [%s]\n", err_name(err.code), err.msg, err.trace);
		_exit(99);
	}
	app.runtime = &fake;
}

static inline void kit_open(void)
{
	struct err err = ERR_INIT;
	ck_ok(app_open(&app, &conf, &err), err);
	app.runtime = &fake;
}

static inline void setup(void)
{
	log_open("test", LOG_ERROR);
	kit_dir = unit_tempdir();
	conf = (struct conf){
		.spool = xasprintf("%s/spool", kit_dir),
		.data_dir = xasprintf("%s/spool/data", kit_dir),
		.state_db = xasprintf("%s/spool/state.db", kit_dir),
		.token = xstrdup("a-token-of-16-chars"),
		.runtime = xstrdup("bwrap"),
		.network = CONF_NETWORK_LOOPBACK,
		.mem_limit = 2LL << 30,
		.pids_limit = 512,
		.open_files = 4096,
		.file_size = 10LL << 30,
		.tmp_size = 1 << 20,
		.max_sandboxes = 20,
		.sandbox_ttl = 3600,
		.idle_stop = 7200,
		.idle_remove = 604800,
		.exec_timeout = 60,
	};
	AUTO_FREE char *notes = xasprintf("%s/notes", kit_dir);
	kit_notes = open(notes, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	kit_slow_ms = 0;
	kit_open();
}

static inline void teardown(void)
{
	app_close(&app);
	close(kit_notes);
	free(conf.spool);
	free(conf.data_dir);
	free(conf.state_db);
	free(conf.token);
	free(conf.runtime);
	unit_tempdir_remove(kit_dir);
}

/* Runs work in count children, each with an app of its own; gathers their exit statuses, which
 * work returns (0 to 98). */
typedef int kit_work(int index);
static inline void kit_run(int count, kit_work *work, int statuses[static 100])
{
	memset(statuses, 0, 100 * sizeof(*statuses));
	app_close(&app);
	for (int i = 0; i < count; i++) {
		if (fork() == 0) {
			kit_reopen();
			int status = work(i);
			app_close(&app);
			_exit(status);
		}
	}
	int status;
	while (wait(&status) > 0) {
		ck_assert(WIFEXITED(status) && WEXITSTATUS(status) < 100);
		statuses[WEXITSTATUS(status)]++;
	}
	ck_assert_int_eq(statuses[99], 0);
	kit_open();
}

static inline struct sandbox_row kit_create(const struct sandbox_options *options)
{
	struct err err = ERR_INIT;
	struct sandbox_row row = {0};
	bool created = false;
	ck_ok(sandbox_create(&app, ALICE, options, &row, &created, &err), err);
	ck_assert(created);
	return row;
}

static inline struct sandbox_row kit_named(const char *name)
{
	return kit_create(&(struct sandbox_options){.name = name});
}

/* The same when the row is of no interest. */
static inline void kit_make(const char *name)
{
	struct sandbox_row row = kit_named(name);
	sandbox_row_finish(&row);
}

/* Runs SQL on the database directly. */
static inline void kit_sql(const char *sql)
{
	sqlite3 *handle;
	ck_assert_int_eq(sqlite3_open(conf.state_db, &handle), SQLITE_OK);
	sqlite3_busy_timeout(handle, 5000);
	ck_assert_int_eq(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(handle);
}

static inline bool kit_exists(const char *directory, const char *id, const char *below)
{
	AUTO_FREE char *path = xasprintf("%s/%s/%s%s", conf.spool, directory, id, below);
	return access(path, F_OK) == 0;
}

#endif
