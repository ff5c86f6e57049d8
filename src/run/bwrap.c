/*
 * A start is a plan, an argument vector put together from the tables below in the order of
 * mounting, which is then run. bwrap and PID 1 outlive whoever starts them: there is no
 * --die-with-parent, and nothing they inherit makes anybody wait.
 */
#include "run/bwrap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"
#include "base/text.h"
#include "run/filter.h"
#include "run/holder.h"
#include "run/kernel.h"
#include "run/wire.h"

#define INIT_NAME   "spoolbox-init"
#define INIT_INSIDE "/.init"
#define PROBE_MS    10000
#define WORDS_MAX   160 /* of a plan; checked */
#define FDS_MAX     12
#define NUMBER_LEN  24
#define STDERR_MAX  160 /* bytes of what bwrap says that go to the log */

/* Never looked up in PATH: a setting of somebody else's must not choose what isolates. */
static const char *const bwrap_paths[] = {"/usr/bin/bwrap", "/usr/local/bin/bwrap"};

static const char *const isolation[] = {
	"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net",
	"--unshare-cgroup-try", "--disable-userns", "--new-session", "--cap-drop", "ALL",
	/* The service user is the only one mapped. */
	"--uid", "1000", "--gid", "1000", "--hostname", "spoolbox", "--clearenv",
	/* Reaping is our PID 1's. */
	"--as-pid-1"};

/* The host's programs; and of its /etc what they need and nobody minds. */
static const char *const system_tree[] = {
	/* clang-format off */
	"--ro-bind", "/usr", "/usr",
	"--symlink", "usr/bin", "/bin",
	"--symlink", "usr/sbin", "/sbin",
	"--symlink", "usr/lib", "/lib",
	"--symlink", "usr/lib64", "/lib64",
	"--perms", "0755", "--dir", "/etc",
	"--ro-bind-try", "/etc/alternatives", "/etc/alternatives",
	"--ro-bind-try", "/etc/fonts", "/etc/fonts",
	"--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache",
	"--ro-bind-try", "/etc/localtime", "/etc/localtime",
	"--ro-bind-try", "/etc/matplotlibrc", "/etc/matplotlibrc",
	"--ro-bind-try", "/etc/mime.types", "/etc/mime.types",
	/* Not all of /etc/ssl: it has a folder for private keys. */
	"--perms", "0755", "--dir", "/etc/ssl",
	"--ro-bind-try", "/etc/ssl/certs", "/etc/ssl/certs",
	"--ro-bind-try", "/etc/ssl/openssl.cnf", "/etc/ssl/openssl.cnf",
	"--perms", "0755", "--dir", "/var",
	"--ro-bind-try", "/var/cache/fontconfig", "/var/cache/fontconfig",
	"--symlink", "../tmp", "/var/tmp",
	"--perms", "0755", "--dir", "/run",
	"--proc", "/proc",
	"--dev", "/dev",
	/* clang-format on */
};

/* Written for the sandbox; the host's own would tell about its people and its network. */
static const struct {
	const char *path, *content;
} etc_files[] = {
	{"/etc/passwd", "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
			"user:x:1000:1000:user:/workspace:/bin/bash\n"
			"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
	{"/etc/group", "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n"},
	{"/etc/hosts", "127.0.0.1 localhost spoolbox\n::1 localhost spoolbox\n"},
	{"/etc/resolv.conf", "# There is no name server in this sandbox.\n"},
	{"/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"},
};

struct plan {
	const char *argv[WORDS_MAX + 1];
	size_t argc;
	struct proc_fd fds[FDS_MAX];
	size_t fd_count;
	char numbers[FDS_MAX][NUMBER_LEN];
	char tmp_bytes[NUMBER_LEN];
	int owned[FDS_MAX]; /* descriptors made for the plan */
	size_t owned_count;
};

static void plan_finish(struct plan *plan)
{
	for (size_t i = 0; i < plan->owned_count; i++)
		util_close(&plan->owned[i]);
	plan->owned_count = 0;
}
#define AUTO_PLAN __attribute__((cleanup(plan_finish))) struct plan

static void plan_words(struct plan *plan, const char *const *words, size_t count)
{
	if (count > WORDS_MAX - plan->argc)
		abort(); /* a table above grew: the first test notices */
	memcpy(&plan->argv[plan->argc], words, count * sizeof(*words));
	plan->argc += count;
	plan->argv[plan->argc] = NULL;
}

#define PLAN(plan, ...) \
	plan_words(plan, (const char *const[]){__VA_ARGS__}, \
		   ARRAY_LEN(((const char *const[]){__VA_ARGS__})))

/* bwrap gets fd under the number that is returned as text. */
static const char *plan_fd(struct plan *plan, int fd)
{
	if (plan->fd_count == FDS_MAX)
		abort(); /* likewise */
	/* After standard error and what PID 1 inherits. */
	int to = WIRE_FD_READY + (int)plan->fd_count - 3;
	char *text = plan->numbers[plan->fd_count];
	snprintf(text, NUMBER_LEN, "%d", to);
	plan->fds[plan->fd_count++] = (struct proc_fd){fd, to};
	return text;
}

/* A memory file that the plan owns; -1 with err. */
static int plan_memory(struct plan *plan, const char *content, struct err *err)
{
	AUTO_FD fd = memfd_create("plan", MFD_CLOEXEC);
	if (fd < 0) {
		err_sys(err, "memfd_create");
		return -1;
	}
	if (!fs_write_all(fd, content, strlen(content), err))
		return -1;
	if (lseek(fd, 0, SEEK_SET) < 0) {
		err_sys(err, "lseek");
		return -1;
	}
	plan->owned[plan->owned_count++] = fd;
	return TAKE_FD(fd);
}

static bool plan_etc(struct plan *plan, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(etc_files); i++) {
		int fd = plan_memory(plan, etc_files[i].content, err);
		if (fd < 0)
			return false;
		PLAN(plan, "--perms", "0444", "--file", plan_fd(plan, fd), etc_files[i].path);
	}
	return true;
}

static bool plan_filters(struct plan *plan, bool inet, struct err *err)
{
	static const enum filter_kind kinds[] = {FILTER_ALLOW, FILTER_REFUSE};
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		int fd = filter_open(kinds[i], inet, err);
		if (fd < 0)
			return false;
		plan->owned[plan->owned_count++] = fd;
		PLAN(plan, "--add-seccomp-fd", plan_fd(plan, fd));
	}
	return true;
}

/* Below the host's /usr, but not for sandboxes: settings of the host, ours among them, which the
 * service user can read and so could they. */
static const char *const hidden_dirs[] = {"/usr/local/etc", SYSCONFDIR};

static void plan_hidden(struct plan *plan)
{
	for (size_t i = 0; i < ARRAY_LEN(hidden_dirs); i++) {
		bool below_usr = strncmp(hidden_dirs[i], "/usr/", 5) == 0;
		bool again = i > 0 && strcmp(hidden_dirs[i], hidden_dirs[0]) == 0;
		if (below_usr && !again && access(hidden_dirs[i], F_OK) == 0)
			PLAN(plan, "--perms", "0555", "--tmpfs", hidden_dirs[i], "--remount-ro",
			     hidden_dirs[i]);
	}
}

/* Without it sandboxes do all but run Python code, and that says what is missing (kernel_start.c).
 * dir lives as long as the plan. */
static void plan_driver(struct plan *plan, struct buf *dir)
{
	struct err ignored = ERR_INIT;
	if (proc_find(KERNEL_DIR_NAME, dir, &ignored))
		PLAN(plan, "--ro-bind-try", buf_str(dir), KERNEL_DIR_INSIDE);
}

/* All but the workspace and the program to run: what a probe tries as well. */
static bool plan_base(struct plan *plan, const char *bwrap, const struct runtime_box *box,
		      struct err *err)
{
	PLAN(plan, bwrap);
	plan_words(plan, isolation, ARRAY_LEN(isolation));
	plan_words(plan, system_tree, ARRAY_LEN(system_tree));
	plan_hidden(plan);
	snprintf(plan->tmp_bytes, sizeof(plan->tmp_bytes), "%lld", (long long)box->tmp_bytes);
	/* Memory file systems without a size would be memory without a bound; so /dev itself
	 * becomes read-only, as / does in the end. */
	PLAN(plan, "--size", plan->tmp_bytes, "--perms", "1777", "--tmpfs", "/dev/shm");
	PLAN(plan, "--remount-ro", "/dev");
	PLAN(plan, "--size", plan->tmp_bytes, "--perms", "1777", "--tmpfs", "/tmp");
	return plan_etc(plan, err) && plan_filters(plan, box->inet, err);
}

static const char *find_bwrap(struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(bwrap_paths); i++)
		if (access(bwrap_paths[i], X_OK) == 0)
			return bwrap_paths[i];
	err_set(err, ERR_UNAVAILABLE, "bubblewrap is not installed on this server");
	err_hint(err, "Its operator should install it (on Debian: apt-get install bubblewrap).");
	return NULL;
}

/* With the real root outside, uid 1000 inside would be root's: no sandbox at all. */
static bool refuse_root(struct err *err)
{
	if (geteuid() != 0 && getuid() != 0)
		return true;
	err_set(err, ERR_UNAVAILABLE, "sandboxes cannot be run by root");
	return err_hint(err, "The operator should run Spoolbox as an ordinary user.");
}

static int make_stderr(struct err *err)
{
	int fd = memfd_create("stderr", MFD_CLOEXEC);
	if (fd < 0)
		err_sys(err, "memfd_create");
	return fd;
}

/* What bwrap said, for the log. A memory file rather than a pipe: bwrap stays for as long as the
 * sandbox does and must neither be waited for nor meet a closed pipe. */
static void trace_stderr(int fd, struct err *err)
{
	char text[STDERR_MAX];
	ssize_t len = pread(fd, text, sizeof(text), 0);
	AUTO_BUF quoted = BUF_INIT;
	text_quote(&quoted, text, len > 0 ? (size_t)len : 0, sizeof(text));
	err_in(err, "%s", buf_str(&quoted));
}

static bool run_detached(const struct plan *plan, struct err *err)
{
	static const char *const no_env[] = {NULL};
	struct proc_spec spec = {.argv = plan->argv,
				 .envp = no_env,
				 .fds = plan->fds,
				 .fd_count = plan->fd_count,
				 .detached = true};
	return proc_spawn(&spec, err) >= 0;
}

static bool start_prepared(const struct runtime_box *box, struct holder_start *start,
			   const char *bwrap, const char *init, struct err *err)
{
	AUTO_FD stderr_fd = make_stderr(err);
	if (stderr_fd < 0)
		return false;
	AUTO_PLAN plan = {.fds = {{stderr_fd, STDERR_FILENO},
				  {start->listen_fd, WIRE_FD_LISTEN},
				  {start->alive_fd, WIRE_FD_ALIVE},
				  {start->ready_fd, WIRE_FD_READY}},
			  .fd_count = 4};
	if (!plan_base(&plan, bwrap, box, err))
		return false;
	AUTO_BUF driver = BUF_INIT;
	plan_driver(&plan, &driver);
	if (box->fonts_path != NULL)
		PLAN(&plan, "--ro-bind-try", box->fonts_path, KERNEL_FONTS_INSIDE);
	PLAN(&plan, "--bind", box->workspace_path, "/workspace", "--chdir", "/workspace");
	PLAN(&plan, "--ro-bind", init, INIT_INSIDE, "--remount-ro", "/", "--", INIT_INSIDE);
	if (!run_detached(&plan, err))
		return false;
	plan_finish(&plan);
	if (holder_await(box, start, err))
		return true;
	trace_stderr(stderr_fd, err);
	return false;
}

static bool bwrap_start(const struct runtime_box *box, struct err *err)
{
	AUTO_BUF init = BUF_INIT;
	const char *bwrap = NULL;
	if (!refuse_root(err) || !(bwrap = find_bwrap(err)) || !proc_find(INIT_NAME, &init, err))
		return false;
	AUTO_HOLDER_START start = HOLDER_START_INIT;
	int todo = holder_prepare(box, &start, err);
	if (todo <= 0)
		return todo == 0;
	return start_prepared(box, &start, bwrap, buf_str(&init), err);
}

/* Trying it is the only probe that does not lie: some systems let a user make namespaces and then
 * refuse to mount in them. */
static bool try_plan(const char *bwrap, struct err *err)
{
	static const char *const no_env[] = {NULL};
	static const struct runtime_box box = {.run_dir_fd = -1, .tmp_bytes = 1 << 20};
	AUTO_FD stderr_fd = make_stderr(err);
	if (stderr_fd < 0)
		return false;
	AUTO_PLAN plan = {.fds = {{stderr_fd, STDERR_FILENO},
				  {-1, WIRE_FD_LISTEN},
				  {-1, WIRE_FD_ALIVE},
				  {-1, WIRE_FD_READY}},
			  .fd_count = 4};
	if (!plan_base(&plan, bwrap, &box, err))
		return false;
	PLAN(&plan, "--remount-ro", "/", "--", "/usr/bin/true");
	struct proc_spec spec = {
		.argv = plan.argv, .envp = no_env, .fds = plan.fds, .fd_count = plan.fd_count};
	pid_t pid = proc_spawn(&spec, err);
	if (pid < 0)
		return false;
	int status;
	int ended = proc_wait(pid, PROBE_MS, &status);
	if (ended == 0) {
		kill(pid, SIGKILL); /* not reaped yet, so the number is still its own */
		proc_wait(pid, PROBE_MS, &status);
	}
	if (ended == 1 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	err_set(err, ERR_UNAVAILABLE, "bubblewrap cannot make a sandbox on this server");
	err_hint(err, "Its operator should allow unprivileged user namespaces: "
		      "kernel.unprivileged_userns_clone, user.max_user_namespaces, or AppArmor's "
		      "restriction of them.");
	trace_stderr(stderr_fd, err);
	return false;
}

static bool bwrap_probe(struct err *err)
{
	AUTO_BUF init = BUF_INIT;
	const char *bwrap = NULL;
	return refuse_root(err) && (bwrap = find_bwrap(err)) && proc_find(INIT_NAME, &init, err) &&
	       try_plan(bwrap, err);
}

static struct json_object *bwrap_describe(const struct runtime_box *box)
{
	struct json_object *isolation_object = json_object_new_object();
	json_add_str(isolation_object, "runtime", bwrap_runtime.name);
	json_add_str(isolation_object, "kernel", "shared with the host");
	json_add_str(isolation_object, "namespaces", "user pid mount network ipc uts cgroup");
	json_add_str(isolation_object, "capabilities", "none");
	json_add_str(isolation_object, "system_calls", "allow list");
	json_add_str(isolation_object, "network", box->inet ? "loopback" : "none");
	json_add_str(isolation_object, "limits", "per process (rlimits); no cgroup bounds the sum");
	return isolation_object;
}

const struct runtime bwrap_runtime = {
	.name = "bwrap",
	.probe = bwrap_probe,
	.start = bwrap_start,
	.stop = holder_stop,
	.alive = holder_alive,
	.exec = holder_exec,
	.cancel = holder_cancel,
	.finish = holder_finish,
	.describe = bwrap_describe,
};
