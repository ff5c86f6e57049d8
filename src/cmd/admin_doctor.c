/*
 * spoolbox doctor: looks at this machine and says what is missing and what to do about it. A
 * table of checks; each writes one line. FAIL makes the exit status 1, WARN does not.
 */
#include <fcntl.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/num.h"
#include "box/exec.h"
#include "cmd/admin.h"
#include "cmd/doctor.h"
#include "store/row_clock.h"

void doctor_report(struct doctor *doctor, enum verdict verdict, const char *fmt, ...)
{
	static const char *const words[] = {
		[OK] = "OK  ", [NOTE] = "NOTE", [WARN] = "WARN", [FAIL] = "FAIL"};
	va_list args;
	va_start(args, fmt);
	char *text;
	if (vasprintf(&text, fmt, args) >= 0) {
		printf("%s %s\n", words[verdict], text);
		free(text);
	}
	va_end(args);
	doctor->failed |= verdict == FAIL;
}

static void report_err(struct doctor *doctor, const char *what, const struct err *err)
{
	AUTO_BUF details = BUF_INIT;
	buf_puts(&details, err->trace);
	if (err->sys != 0)
		buf_printf(&details, "%s%s", details.len > 0 ? ": " : "", strerror(err->sys));
	doctor_report(doctor, FAIL, "%s: %s%s%s%s. %s", what, err_message(err),
		      details.len > 0 ? " (" : "", buf_str(&details), details.len > 0 ? ")" : "",
		      err_next(err));
}

static void check_user(struct doctor *doctor)
{
	const struct passwd *pw = getpwuid(geteuid());
	doctor_report(doctor, OK, "user: %s (uid %u)", pw != NULL ? pw->pw_name : "without a name",
		      (unsigned)geteuid());
}

static void check_kernel(struct doctor *doctor)
{
	struct utsname name;
	unsigned major = 0, minor = 0;
	/* close_range came with 5.9, openat2 with 5.6, pidfds with 5.3. Four digits do not
	 * overflow. NOLINTNEXTLINE(cert-err34-c) */
	if (uname(&name) != 0 || sscanf(name.release, "%4u.%4u", &major, &minor) != 2)
		doctor_report(doctor, WARN, "kernel: version unknown; 5.9 or newer is needed");
	else if (major < 5 || (major == 5 && minor < 9))
		doctor_report(doctor, FAIL, "kernel: %s is too old; 5.9 or newer is needed",
			      name.release);
	else
		doctor_report(doctor, OK, "kernel: %s", name.release);
}

/* Value of a kernel setting, -1 when there is none. */
static int64_t kernel_setting(const char *path)
{
	char text[32] = "";
	int64_t value;
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
	if (n > 0 && text[n - 1] == '\n')
		text[n - 1] = '\0';
	return num_parse_int(text, 0, INT64_MAX, &value) ? value : -1;
}

static bool can_make_user_namespace(void)
{
	int status = 1;
	pid_t pid = fork();
	if (pid == 0)
		_exit(unshare(CLONE_NEWUSER) == 0 ? 0 : 1);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void check_namespaces(struct doctor *doctor)
{
	if (can_make_user_namespace())
		doctor_report(doctor, OK, "user namespaces: this user can make them");
	else if (kernel_setting("/proc/sys/kernel/unprivileged_userns_clone") == 0)
		doctor_report(doctor, FAIL,
			      "user namespaces: switched off. As root: "
			      "sysctl -w kernel.unprivileged_userns_clone=1");
	else if (kernel_setting("/proc/sys/user/max_user_namespaces") == 0)
		doctor_report(doctor, FAIL,
			      "user namespaces: none allowed. As root: "
			      "sysctl -w user.max_user_namespaces=15000");
	else
		doctor_report(doctor, FAIL,
			      "user namespaces: refused. In a container, allow them there "
			      "(Docker: a seccomp profile that permits unshare)");
}

static void check_spool(struct doctor *doctor)
{
	if (doctor->app == NULL)
		report_err(doctor, "spool", &doctor->app_err);
	else
		doctor_report(doctor, OK, "spool: %s is ours alone, database version %d",
			      doctor->conf->spool, db_schema_version(doctor->app->db));
}

static void check_room(struct doctor *doctor)
{
	int64_t room = doctor->app != NULL ? fs_free_bytes(doctor->app->spool.data_fd) : -1;
	long long mib = (long long)(room >> 20);
	if (room < 0)
		doctor_report(doctor, WARN, "disk room: unknown");
	else if (room < doctor->conf->min_free)
		doctor_report(doctor, FAIL,
			      "disk room: %lld MiB free, less than SMCP_MIN_FREE_BYTES "
			      "(%lld MiB): nothing can be written. Make room",
			      mib, (long long)(doctor->conf->min_free >> 20));
	else if (!spool_has_inodes(&doctor->app->spool, doctor->app->spool.data_fd))
		doctor_report(
			doctor, FAIL,
			"disk room: fewer than %d more files can be made: nothing can be written. "
			"Delete files",
			SPOOL_MIN_FREE_INODES);
	else
		doctor_report(doctor, OK, "disk room: %lld MiB free for sandboxes", mib);
}

static void check_runtime(struct doctor *doctor)
{
	struct err err = ERR_INIT;
	const struct runtime *runtime = runtime_find(doctor->conf->runtime);
	if (runtime == NULL)
		doctor_report(doctor, FAIL, "runtime: there is no runtime \"%s\"",
			      doctor->conf->runtime);
	else if (!runtime->probe(&err))
		report_err(doctor, "runtime", &err);
	else
		doctor_report(doctor, OK, "runtime: %s can be used", runtime->name);
}

/* Runs a command in an own sandbox and appends what it wrote. */
static bool run_command(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
			const struct exec_options *options, struct buf *out, struct err *err)
{
	AUTO_BUF complaint = BUF_INIT;
	struct session session;
	session_init(&session, 16384, 4096);
	bool ok = exec_run(app, row, use, options, &session, err);
	if (ok) {
		capture_text(&session.out, out);
		capture_text(&session.err, &complaint);
		ok = session.status.end == RUNTIME_END_EXIT && session.status.code == 0;
		if (!ok)
			err_set(err, ERR_UNAVAILABLE, "a test command ended with status %d: %s",
				session.status.code, buf_str(&complaint));
	}
	session_finish(&session);
	return ok;
}

/* Runs a real command, describes what isolated it, and asks Python what it has. */
static bool try_sandbox(struct app *app, const struct sandbox_row *row, struct buf *isolation,
			struct buf *python, struct err *err)
{
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	AUTO_BUF text = BUF_INIT;
	struct exec_options options = {.command = "printf fine", .timeout_ms = 20000};
	struct err silent = ERR_INIT;
	size_t len;
	if (!sandbox_enter(app, row, &use, err) ||
	    !run_command(app, row, &use, &options, &text, err))
		return false;
	if (strcmp(buf_str(&text), "fine") != 0)
		return err_set(err, ERR_UNAVAILABLE, "a test command did not write what it should");
	AUTO_JSON *about = app->runtime->describe(&use.box);
	buf_puts(isolation, json_text(about, &len));
	options = (struct exec_options){.command = doctor_python_command, .timeout_ms = 60000};
	/* What it did not say is told as missing. */
	(void)!run_command(app, row, &use, &options, python, &silent);
	return true;
}

static void check_sandbox(struct doctor *doctor)
{
	struct err err = ERR_INIT, ignored = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	AUTO_BUF isolation = BUF_INIT;
	AUTO_BUF python = BUF_INIT;
	struct sandbox_destroyed gone = {0};
	bool created;
	if (doctor->app == NULL) {
		doctor_report(doctor, FAIL, "sandbox: not tried, the spool comes first");
		return;
	}
	const struct sandbox_options options = {.ttl_ms = 60000};
	if (!sandbox_create(doctor->app, "doctor", &options, &row, &created, &err)) {
		report_err(doctor, "sandbox", &err);
		return;
	}
	bool ok = try_sandbox(doctor->app, &row, &isolation, &python, &err);
	if (sandbox_destroy(doctor->app, "doctor", row.id, true, &gone, &ignored))
		free(gone.name);
	if (ok)
		doctor_report(doctor, OK, "sandbox: a command ran in it: %s", buf_str(&isolation));
	else
		report_err(doctor, "sandbox", &err);
	if (ok)
		doctor_python(doctor, &python);
}

#define PASS_AGE_MIN_S 3600 /* a pass per hour is enough for what it does */

/* Who runs it says how it is to be run again. */
static void report_no_reaper(struct doctor *doctor, const char *since)
{
	AUTO_BUF path = BUF_INIT;
	if (!admin_find_ours("spoolbox-reaper", &path)) {
		doctor_report(doctor, FAIL,
			      "clean-up: spoolbox-reaper was not found beside spoolbox. make "
			      "install puts "
			      "it there");
		return;
	}
	doctor_report(
		doctor, WARN,
		"clean-up: no pass %s, so nothing idle or old is removed. spoolbox serve does "
		"them; "
		"otherwise add to the crontab of this user (crontab -e), or see contrib/cron: "
		"*/5 * * * * SMCP_SPOOL=%s %s 2>/dev/null || echo spoolbox-reaper failed",
		since, doctor->conf->spool, buf_str(&path));
}

static void check_reaper(struct doctor *doctor)
{
	struct err err = ERR_INIT;
	struct clock_record record;
	char at[CLOCK_RFC3339_LEN], since[64];
	int64_t limit_s = 3 * doctor->conf->gc_interval;
	int rc = doctor->app == NULL ? 0 : row_clock_read(doctor->app->db, &record, &err);
	if (doctor->app == NULL)
		return; /* the spool comes first */
	if (rc < 0) {
		report_err(doctor, "clean-up", &err);
		return;
	}
	if (rc == 0) {
		report_no_reaper(doctor, "yet");
		return;
	}
	if (limit_s < PASS_AGE_MIN_S)
		limit_s = PASS_AGE_MIN_S;
	int64_t age_s = (clock_wall_ms() - record.reading.wall_at) / 1000;
	clock_rfc3339(record.reading.wall_at, at);
	snprintf(since, sizeof(since), "since %s", at);
	if (age_s > limit_s)
		report_no_reaper(doctor, since);
	else
		doctor_report(doctor, OK, "clean-up: the last pass of spoolbox-reaper was at %s",
			      at);
}

static void check_worker(struct doctor *doctor)
{
	AUTO_BUF path = BUF_INIT;
	if (admin_find_ours("spoolbox.fcgi", &path))
		doctor_report(doctor, OK, "worker: %s", buf_str(&path));
	else
		doctor_report(doctor, FAIL,
			      "worker: spoolbox.fcgi was not found beside spoolbox or in %s. "
			      "make install puts it there",
			      PKGLIBEXECDIR);
}

static void check_lighttpd(struct doctor *doctor)
{
	AUTO_BUF path = BUF_INIT;
	if (admin_find_system("lighttpd", &path))
		doctor_report(doctor, OK, "lighttpd: %s", buf_str(&path));
	else
		doctor_report(doctor, WARN,
			      "lighttpd: not found; only `spoolbox serve` needs it. "
			      "apt-get install lighttpd");
}

static void check_token(struct doctor *doctor)
{
	if (doctor->app == NULL)
		return; /* the spool comes first */
	if (doctor->app->token != NULL)
		doctor_report(doctor, OK, "token: set");
	else
		doctor_report(doctor, WARN,
			      "token: none yet, every call is refused. Run: spoolbox token");
}

static void note_setting(void *ctx, const struct conf_view *view)
{
	if (view->note != NULL && strcmp(view->source, "default") != 0)
		doctor_report(ctx, NOTE, "setting %s=%s: %s", view->name, view->value, view->note);
}

static void check_settings(struct doctor *doctor)
{
	if (doctor->conf->unknown != NULL)
		doctor_report(doctor, WARN,
			      "settings: there is no setting of the name %s; is it a typing error?",
			      doctor->conf->unknown);
	else
		doctor_report(doctor, OK, "settings: all understood");
	conf_each(doctor->conf, note_setting, doctor);
}

static void (*const checks[])(struct doctor *doctor) = {
	check_user,       check_kernel,  check_settings, check_spool,  check_room,     check_token,
	check_namespaces, check_runtime, check_sandbox,  check_worker, check_lighttpd, check_reaper,
};

int admin_doctor(const struct admin *admin, int argc, char **argv)
{
	struct app app;
	struct doctor doctor = {.conf = admin->conf, .app_err = ERR_INIT};
	(void)argv;
	if (argc != 1)
		return admin_misused("doctor takes no arguments");
	/* Ctrl-C waits until the test's sandbox is gone, which nobody else would end. */
	sigset_t set, before;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, &before);
	if (app_open(&app, admin->conf, &doctor.app_err))
		doctor.app = &app;
	for (size_t i = 0; i < ARRAY_LEN(checks); i++)
		checks[i](&doctor);
	if (doctor.app != NULL)
		app_close(&app);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return doctor.failed ? ADMIN_FAILED : ADMIN_OK;
}
