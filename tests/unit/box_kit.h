/*
 * Real sandboxes for unit tests. A test program with this kit copies itself and spoolbox-init
 * into a directory of its own and runs there as an ordinary user, since root may not run
 * sandboxes; on a machine that cannot run any it says why and skips (a failure when STRICT is set).
 *
 *	int main(int argc, char **argv) { return kit_main(argv, "bwrap", tests, ARRAY_LEN(tests)); }
 */
#ifndef SPOOLBOX_UNIT_BOX_KIT_H
#define SPOOLBOX_UNIT_BOX_KIT_H

#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fs.h"
#include "run/session.h"

#define KIT_USER    65534 /* nobody */
#define KIT_ENV     "SPOOLBOX_TEST_DIR"
#define KIT_TIMEOUT 20000

struct kit {
	char *dir;
	char *workspace;
	const struct runtime *runtime;
	struct runtime_box box;
	struct runtime_limits limits;
};

/* A sandbox that is not started yet. */
static inline void kit_make(struct kit *kit)
{
	kit->dir = xasprintf("%s/box-XXXXXX", getenv(KIT_ENV));
	ck_assert_ptr_nonnull(mkdtemp(kit->dir));
	kit->workspace = xasprintf("%s/workspace", kit->dir);
	ck_assert_int_eq(mkdir(kit->workspace, 0700), 0);
	kit->runtime = runtime_find("bwrap");
	ck_assert_ptr_nonnull(kit->runtime);
	kit->box = (struct runtime_box){.run_dir_fd = open(kit->dir, O_DIRECTORY | O_CLOEXEC),
					.workspace_path = kit->workspace,
					.inet = true,
					.tmp_bytes = 4 << 20};
	ck_assert_int_ge(kit->box.run_dir_fd, 0);
	kit->limits = (struct runtime_limits){200, 256, 64 << 20, -1};
}

static inline void kit_start(struct kit *kit)
{
	struct err err = ERR_INIT;
	kit_make(kit);
	ck_ok(kit->runtime->start(&kit->box, &err), err);
}

static inline void kit_end(struct kit *kit)
{
	struct err err = ERR_INIT;
	ck_ok(kit->runtime->stop(&kit->box, &err), err);
	close(kit->box.run_dir_fd);
	free(kit->workspace);
	unit_tempdir_remove(kit->dir);
}

/* A command's result; the buffers are good until the next one. */
struct kit_result {
	bool started;
	struct err err;
	struct runtime_status status;
	int64_t duration_ms, out_total, err_total;
	const char *out, *err_text;
};

static inline struct kit_result kit_run(struct kit *kit, const char *const *argv, const char *cwd,
					const char *input, int64_t timeout_ms)
{
	static const char *const env[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/workspace",
					  "LANG=C.UTF-8", NULL};
	static struct buf out, err_text;
	struct kit_result result = {.err = ERR_INIT};
	struct runtime_command command = {.argv = argv,
					  .env = env,
					  .cwd = cwd,
					  .timeout_ms = timeout_ms,
					  .limits = kit->limits};
	struct session session;
	session_init(&session, 32768, 8192);
	result.started = session_run(&session, kit->runtime, &kit->box, &command, input,
				     input ? strlen(input) : 0, &result.err);
	buf_clear(&out);
	buf_clear(&err_text);
	capture_text(&session.out, &out);
	capture_text(&session.err, &err_text);
	result.status = session.status;
	result.duration_ms = session.duration_ms;
	result.out_total = session.out.total;
	result.err_total = session.err.total;
	result.out = buf_str(&out);
	result.err_text = buf_str(&err_text);
	session_finish(&session);
	return result;
}

static inline struct kit_result kit_shell_for(struct kit *kit, const char *line, int64_t timeout_ms)
{
	const char *const argv[] = {"/bin/bash", "-c", line, NULL};
	struct kit_result result = kit_run(kit, argv, "/workspace", NULL, timeout_ms);
	ck_ok(result.started, result.err);
	return result;
}

static inline struct kit_result kit_shell(struct kit *kit, const char *line)
{
	return kit_shell_for(kit, line, KIT_TIMEOUT);
}

/* Asserts that a shell line ends with exit code 0 and this output. */
#define kit_expect(kit, line, expected) \
	do { \
		struct kit_result expect_ = kit_shell(kit, line); \
		ck_assert_msg(expect_.status.end == RUNTIME_END_EXIT && expect_.status.code == 0, \
			      "end %d code %d: %s%s", expect_.status.end, expect_.status.code, \
			      expect_.out, expect_.err_text); \
		ck_assert_str_eq(expect_.out, expected); \
	} while (0)

/* Processes on the host whose command line holds a text. */
static inline int kit_count(const char *text)
{
	int count = 0;
	DIR *dir = opendir("/proc");
	ck_assert_ptr_nonnull(dir);
	for (struct dirent *entry; (entry = readdir(dir));) {
		char path[300], line[4096];
		snprintf(path, sizeof(path), "/proc/%s/cmdline", entry->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		ssize_t len = read(fd, line, sizeof(line));
		close(fd);
		count += len > 0 && memmem(line, (size_t)len, text, strlen(text)) != NULL;
	}
	closedir(dir);
	return count;
}

/* Waits until that many are left; returns how many there are in the end. */
static inline int kit_settle(const char *text, int wanted)
{
	int count = kit_count(text);
	for (int i = 0; i < 200 && count != wanted; i++) {
		clock_sleep_ms(10);
		count = kit_count(text);
	}
	return count;
}

/* An argument of sleep that nobody else on this machine has. */
static inline const char *kit_marker(void)
{
	static char marker[32];
	snprintf(marker, sizeof(marker), "7%d.%d", (int)getpid(), (int)(clock_mono_ms() % 100000));
	return marker;
}

static inline void kit_copy(const char *from, const char *to, bool chown_it)
{
	char data[65536];
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	if (in < 0 || out < 0) {
		fprintf(stderr, "cannot copy %s to %s\n", from, to);
		exit(2);
	}
	for (ssize_t n; (n = read(in, data, sizeof(data))) > 0;)
		if (write(out, data, (size_t)n) != n)
			exit(2);
	if (chown_it && fchown(out, KIT_USER, KIT_USER) < 0)
		exit(2);
	close(in);
	close(out);
}

/* Ends what a failed test left running. */
static inline void kit_sweep(const char *dir)
{
	DIR *entries = opendir(dir);
	for (struct dirent *entry; entries && (entry = readdir(entries));) {
		struct err err = ERR_INIT;
		struct runtime_box box = {.run_dir_fd = openat(dirfd(entries), entry->d_name,
							       O_DIRECTORY | O_CLOEXEC)};
		if (box.run_dir_fd >= 0 && strncmp(entry->d_name, "box-", 4) == 0 &&
		    !runtime_find("bwrap")->stop(&box, &err))
			fprintf(stderr, "%s is left running: %s\n", entry->d_name, err.msg);
		if (box.run_dir_fd >= 0)
			close(box.run_dir_fd);
	}
	if (entries)
		closedir(entries);
}

/* Copies a program of the build tree, seen from tests/unit. */
static inline void kit_bring(const char *program, const char *dir, bool chown_it)
{
	AUTO_BUF from = BUF_INIT;
	AUTO_FREE char *to = xasprintf("%s/%s", dir, program);
	if (!fs_program_dir(&from))
		exit(2);
	buf_printf(&from, "/../../%s", program);
	kit_copy(buf_str(&from), to, chown_it);
}

/* The Python side, as a directory beside the programs. */
static inline void kit_bring_python(const char *dir, bool chown_it)
{
	AUTO_BUF from = BUF_INIT;
	AUTO_FREE char *to = xasprintf("%s/python", dir);
	if (!fs_program_dir(&from))
		exit(2);
	buf_puts(&from, "/../../python");
	DIR *entries = opendir(buf_str(&from));
	if (mkdir(to, 0755) < 0 || (chown_it && chown(to, KIT_USER, KIT_USER) < 0))
		exit(2);
	for (struct dirent *entry; entries && (entry = readdir(entries));) {
		AUTO_FREE char *name = xasprintf("python/%s", entry->d_name);
		if (entry->d_name[0] != '.')
			kit_bring(name, dir, chown_it);
	}
	if (entries)
		closedir(entries);
}

static inline int kit_rerun(char **argv)
{
	bool is_root = geteuid() == 0;
	/* No ck_assert out here: Check takes it only inside of a test. */
	char *dir = mkdtemp(xstrdup("/tmp/spoolbox-unit-XXXXXX"));
	if (!dir)
		return 2;
	char *self = xasprintf("%s/test", dir);
	kit_copy("/proc/self/exe", self, is_root);
	kit_bring("spoolbox-init", dir, is_root);
	kit_bring("spoolbox-task", dir, is_root);
	kit_bring_python(dir, is_root);
	if (is_root && chown(dir, KIT_USER, KIT_USER) < 0)
		return 2;
	pid_t pid = fork();
	if (pid == 0) {
		if (is_root &&
		    (setgroups(0, NULL) < 0 || setresgid(KIT_USER, KIT_USER, KIT_USER) < 0 ||
		     setresuid(KIT_USER, KIT_USER, KIT_USER) < 0))
			_exit(2);
		if (chdir("/") < 0 || setenv(KIT_ENV, dir, 1) < 0)
			_exit(2);
		execv(self, argv);
		_exit(2);
	}
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	kit_sweep(dir);
	unit_tempdir_remove(dir);
	free(self);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

static inline int kit_main(char **argv, const char *module, const TTest *const *tests, size_t count)
{
	struct err err = ERR_INIT;
	if (!getenv(KIT_ENV))
		return kit_rerun(argv);
	if (!runtime_find("bwrap")->probe(&err) && !getenv("STRICT")) {
		printf("1..0 # SKIP %s [%s]\n", err.msg, err.trace);
		return 0;
	}
	return unit_run(module, tests, count);
}

#endif
