/*
 * spoolbox serve: runs a lighttpd of its own in the foreground, for trying things out and for
 * machines without a web server, with a clean-up now and then. Everything it needs is in a run
 * directory below the spool (serve-XXXXXX, mode 0700): the configuration, the sockets, and a link
 * to spoolbox.fcgi, so that no path has to be quoted or fit into a socket address. lighttpd works
 * in that directory.
 *
 * Endings. TERM or INT, or the parent's end with --with-parent: lighttpd is told to stop, then its
 * whole process group (the workers; sandboxes have sessions of their own and live on) is ended and
 * the directory removed. kill -9 of this process: the kernel tells lighttpd (PR_SET_PDEATHSIG), and
 * workers watch their parent. The directory that then stays is removed by the next serve: it is
 * known to be dead by its lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/lock.h"
#include "cmd/admin.h"

#define RUN_PREFIX "serve-"
#define STOP_MS    5000 /* then KILL; lighttpd and workers need some 20 ms */

/* Two pools, so that long transfers do not starve calls. We keep them ourselves: lighttpd would
 * make a socket per worker and let calls wait at a busy one. Uploads are handed on as they come (1,
 * not 2: half the copies); other requests whole, so that they have a length even when the client
 * sent none. Downloads with 2, else lighttpd takes a whole file from the worker at once, and the
 * link would be used up however little of it the client got. No error log: with -D the workers' log
 * lines reach our standard error. */
static const char config_text[] =
	"server.bind = \"%s\"\n"
	"server.port = %s\n"
	"server.document-root = \"empty\"\n"
	"server.upload-dirs = ( \".\" )\n"
	"server.tag = \"spoolbox\"\n"
	"server.modules = ( \"mod_fastcgi\" )\n"
	"server.stream-response-body = 1\n"
	"$HTTP[\"url\"] =~ \"^/files/\" {\n"
	"  server.stream-request-body = 1\n"
	"  server.stream-response-body = 2\n"
	"}\n"
	"server.max-read-idle = 120\n"
	"fastcgi.server = (\n"
	"  \"/files\" => (( \"socket\" => \"files.sock\", \"check-local\" => \"disable\" )),\n"
	"  \"/\" => (( \"socket\" => \"mcp.sock\", \"check-local\" => \"disable\" ))\n"
	")\n";

/* Numeric forms of SMCP_HOST and SMCP_PORT, as getnameinfo writes them. */
struct address {
	char host[64];
	char port[16];
};

/* Workers on one socket. The socket is ours, so calls wait in its queue while the workers are
 * started anew, whoever killed them. */
struct pool {
	const char *socket; /* name in the run directory */
	int listen_fd;
	pid_t pid; /* of spoolbox.fcgi --workers N, which forks them */
	int64_t started_at_ms;
};

#define POOLS    2
#define BACKLOG  1024
#define PAUSE_MS 1000 /* before a pool that ended within as long is started again */
#define FIRST_MS 1000 /* from the start to the first clean-up: the workers come first */

/* Passes of spoolbox-reaper, one at a time, so that nobody needs cron. A pass may be ended
 * anywhere, so our own end does not wait for it. */
struct cleaner {
	const char *program;
	pid_t pid;       /* of the pass that runs; 0: none */
	int64_t next_ms; /* monotonic */
};

struct run_dir {
	int spool_fd; /* borrowed */
	int fd, lock_fd;
	char name[sizeof(RUN_PREFIX) + 6];
};

static bool bind_once(const struct addrinfo *ai, const struct conf *conf, struct err *err)
{
	AUTO_FD fd = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC, ai->ai_protocol);
	int on = 1;
	if (fd < 0)
		return err_sys(err, "socket");
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	    bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, 1) == 0)
		return true;
	if (errno == EADDRINUSE) {
		err_set(err, ERR_CONFLICT, "port %lld on %s is in use by another program",
			(long long)conf->port, conf->host);
		return err_hint(err, "stop that program or choose another port: SMCP_PORT=8001");
	}
	err_set(err, ERR_UNAVAILABLE, "cannot listen on %s port %lld: %s", conf->host,
		(long long)conf->port, strerror(errno));
	return err_hint(err, "set SMCP_HOST and SMCP_PORT to an address of this machine and a "
			     "port above 1023");
}

/* Looks the address up and tries it, so that what is wrong is said in our words. */
static bool check_address(const struct conf *conf, struct address *address, struct err *err)
{
	struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
				 .ai_socktype = SOCK_STREAM};
	struct addrinfo *ai;
	snprintf(address->port, sizeof(address->port), "%lld", (long long)conf->port);
	int rc = getaddrinfo(conf->host, address->port, &hints, &ai);
	if (rc != 0) {
		err_set(err, ERR_INVALID, "SMCP_HOST=%s is no address of this machine: %s",
			conf->host, gai_strerror(rc));
		return err_hint(err, "use 127.0.0.1, or 0.0.0.0 for all addresses");
	}
	bool v6 = ai->ai_family == AF_INET6;
	char host[sizeof(address->host) - 2];
	rc = getnameinfo(ai->ai_addr, ai->ai_addrlen, host, sizeof(host), NULL, 0, NI_NUMERICHOST);
	bool ok = rc == 0 ? bind_once(ai, conf, err)
			  : err_set(err, ERR_INVALID, "SMCP_HOST=%s: %s", conf->host,
				    gai_strerror(rc));
	freeaddrinfo(ai);
	if (ok)
		snprintf(address->host, sizeof(address->host), v6 ? "[%s]" : "%s", host);
	return ok;
}

/* Whether dirfd/name is a run directory whose owner has ended. */
static bool is_dead(int dirfd, const char *name)
{
	struct err err = ERR_INIT;
	AUTO_FD dir = fs_open_dir(dirfd, name, &err);
	if (dir < 0)
		return false;
	AUTO_FD lock = lock_open(dir, "lock", &err);
	return lock >= 0 && lock_is_held(lock) == 0;
}

static void remove_dead(int spool_fd)
{
	struct err err = ERR_INIT;
	AUTO_DIR *dir = fs_open_listing(spool_fd, ".");
	if (dir == NULL)
		return;
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
		if (strncmp(entry->d_name, RUN_PREFIX, strlen(RUN_PREFIX)) == 0 &&
		    is_dead(spool_fd, entry->d_name) &&
		    !fs_remove_tree(spool_fd, entry->d_name, &err))
			admin_fail(&err);
}

/* Makes the directory and takes its lock while no other serve looks for dead ones. */
static bool make_run_dir(const struct app *app, struct run_dir *run, struct err *err)
{
	run->spool_fd = app->spool.root_fd;
	AUTO_FD guard = lock_open(run->spool_fd, "serve.lock", err);
	if (guard < 0 || !lock_take(guard, LOCK_EXCLUSIVE, STOP_MS, err))
		return false;
	remove_dead(run->spool_fd);
	if (fchdir(run->spool_fd) != 0)
		return err_sys(err, "enter the spool");
	strcpy(run->name, RUN_PREFIX "XXXXXX");
	if (mkdtemp(run->name) == NULL)
		return err_sys(err, "make a run directory in the spool");
	run->fd = fs_open_dir(run->spool_fd, run->name, err);
	if (run->fd < 0)
		return false;
	run->lock_fd = lock_open(run->fd, "lock", err);
	return run->lock_fd >= 0 && lock_take(run->lock_fd, LOCK_EXCLUSIVE, 0, err);
}

static void drop_run_dir(struct run_dir *run)
{
	struct err err = ERR_INIT;
	if (run->fd >= 0 && !fs_remove_tree(run->spool_fd, run->name, &err))
		admin_fail(&err);
	util_close(&run->fd);
	util_close(&run->lock_fd);
}

static bool fill_run_dir(const struct run_dir *run, const struct address *address, struct err *err)
{
	AUTO_BUF worker = BUF_INIT;
	AUTO_BUF text = BUF_INIT;
	if (!admin_find_ours("spoolbox.fcgi", &worker)) {
		err_set(err, ERR_UNAVAILABLE, "spoolbox.fcgi was not found");
		return err_hint(err, "it must lie beside spoolbox or in " PKGLIBEXECDIR
				     " (make install puts it there)");
	}
	if (symlinkat(buf_str(&worker), run->fd, "spoolbox.fcgi") != 0)
		return err_sys(err, "link to spoolbox.fcgi");
	if (mkdirat(run->fd, "empty", 0700) != 0)
		return err_sys(err, "make the document root");
	buf_printf(&text, config_text, address->host, address->port);
	return fs_write_atomic(run->fd, "lighttpd.conf", text.data, text.len, 0600, err);
}

/* In the child: runs a program in the run directory, as a member of a process group (0: its
 * leader), that ends with us. */
static void exec_in_run_dir(const struct run_dir *run, pid_t parent, pid_t group, int stdin_fd,
			    const char *program, const char *const *argv)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (setpgid(0, group) != 0 || dup2(stdin_fd, STDIN_FILENO) < 0 || fchdir(run->fd) != 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent)
		_exit(127);
	execv(program, (char *const *)argv);
	_exit(127);
}

static bool open_pool(const struct run_dir *run, struct pool *pool, struct err *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	/* Short whatever the spool's name: we are in it. */
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", run->name, pool->socket);
	pool->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (pool->listen_fd < 0 ||
	    bind(pool->listen_fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(pool->listen_fd, BACKLOG) != 0)
		return err_sys(err, "listen on %s", pool->socket);
	return true;
}

static void start_pool(const struct run_dir *run, struct pool *pool, pid_t group, int64_t workers)
{
	char count[24];
	snprintf(count, sizeof(count), "%lld", (long long)workers);
	const char *const argv[] = {"spoolbox.fcgi", "--workers", count, NULL};
	pid_t parent = getpid();
	pool->started_at_ms = clock_mono_ms();
	pool->pid = fork();
	if (pool->pid == 0)
		exec_in_run_dir(run, parent, group, pool->listen_fd, "./spoolbox.fcgi", argv);
}

/* Starts the pools that have ended again. */
static void tend_pools(const struct run_dir *run, struct pool pools[POOLS], pid_t group,
		       int64_t workers)
{
	for (int i = 0; i < POOLS; i++) {
		if (pools[i].pid > 0 && waitpid(pools[i].pid, NULL, WNOHANG) == 0)
			continue;
		int64_t lived_ms = clock_mono_ms() - pools[i].started_at_ms;
		if (lived_ms < PAUSE_MS)
			clock_sleep_ms(PAUSE_MS - lived_ms);
		start_pool(run, &pools[i], group, workers);
	}
}

/* Starts a pass when it is time and the last one is through. */
static void tend_cleaner(const struct run_dir *run, struct cleaner *cleaner, pid_t group,
			 int64_t interval_s)
{
	static const char *const argv[] = {"spoolbox-reaper", NULL};
	int64_t now_ms = clock_mono_ms();
	pid_t parent = getpid();
	if (cleaner->pid > 0 && waitpid(cleaner->pid, NULL, WNOHANG) == 0)
		return;
	cleaner->pid = 0;
	if (now_ms < cleaner->next_ms)
		return;
	cleaner->next_ms = now_ms + interval_s * 1000;
	AUTO_FD null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	cleaner->pid = fork();
	if (cleaner->pid == 0)
		exec_in_run_dir(run, parent, group, null, cleaner->program, argv);
}

/* While one runs its end is told by SIGCHLD. */
static struct timespec time_until_pass(const struct cleaner *cleaner)
{
	int64_t left_ms = cleaner->next_ms - clock_mono_ms();
	int64_t min_ms = cleaner->pid > 0 ? PAUSE_MS : 0;
	int64_t wait_ms = left_ms > min_ms ? left_ms : min_ms;
	return (struct timespec){.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000};
}

static pid_t start_lighttpd(const struct run_dir *run, struct err *err)
{
	AUTO_BUF program = BUF_INIT;
	if (!admin_find_system("lighttpd", &program)) {
		err_set(err, ERR_UNAVAILABLE, "lighttpd was not found");
		err_hint(err, "install it: apt-get install lighttpd (or use a web server that you "
			      "have: see contrib/apache and contrib/lighttpd)");
		return -1;
	}
	static const char *const argv[] = {"lighttpd", "-D", "-f", "lighttpd.conf", NULL};
	AUTO_FD null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	pid_t parent = getpid();
	pid_t pid = fork();
	if (pid < 0)
		err_sys(err, "fork");
	if (pid == 0)
		exec_in_run_dir(run, parent, 0, null, buf_str(&program), argv);
	if (pid > 0)
		setpgid(pid, pid); /* here as well: the pools join this group at once */
	return pid;
}

/* Reaps lighttpd, by force when it does not end. */
static int reap_lighttpd(pid_t pid)
{
	int status = 0;
	int64_t until = clock_mono_ms() + STOP_MS;
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (clock_mono_ms() >= until)
			kill(-pid, SIGKILL);
		clock_sleep_ms(10);
	}
	return status;
}

/* Ends what is left of lighttpd's process group: the pools. The kernel
 * gives the group's number to nobody else while it has a member. */
static void end_group(pid_t pid)
{
	int64_t until = clock_mono_ms() + STOP_MS;
	if (kill(-pid, SIGTERM) != 0)
		return;
	while (kill(-pid, 0) == 0) {
		/* The pools are our children: what ended stays a member until it is reaped. */
		while (waitpid(-pid, NULL, WNOHANG) > 0)
			;
		if (clock_mono_ms() >= until)
			kill(-pid, SIGKILL);
		clock_sleep_ms(10);
	}
}

/* Keeps the pools and cleans up until lighttpd ends or a signal asks for our end. True when we were
 * asked. */
static bool wait_for_end(const struct run_dir *run, struct pool pools[POOLS],
			 struct cleaner *cleaner, const struct conf *conf, pid_t pid,
			 const sigset_t *set)
{
	for (;;) {
		siginfo_t info = {0};
		struct timespec wait = time_until_pass(cleaner);
		int sig = sigtimedwait(set, NULL, &wait);
		if (sig == SIGTERM || sig == SIGINT || sig == SIGHUP) {
			kill(pid, SIGTERM);
			return true;
		}
		if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
		    info.si_pid == pid)
			return false;
		tend_pools(run, pools, pid, conf->workers);
		tend_cleaner(run, cleaner, pid, conf->gc_interval);
	}
}

static bool find_reaper(struct buf *program, struct err *err)
{
	if (admin_find_ours("spoolbox-reaper", program))
		return true;
	err_set(err, ERR_UNAVAILABLE, "spoolbox-reaper was not found");
	return err_hint(err, "it must lie beside spoolbox (make install puts it there)");
}

static bool run_lighttpd(const struct run_dir *run, const struct conf *conf,
			 const struct address *address, struct err *err)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	struct pool pools[POOLS] = {{.socket = "files.sock"}, {.socket = "mcp.sock"}};
	AUTO_BUF reaper = BUF_INIT;
	if (!find_reaper(&reaper, err))
		return false;
	struct cleaner cleaner = {.program = buf_str(&reaper),
				  .next_ms = clock_mono_ms() + FIRST_MS};
	for (int i = 0; i < POOLS; i++)
		if (!open_pool(run, &pools[i], err))
			return false;
	pid_t pid = start_lighttpd(run, err);
	if (pid < 0)
		return false;
	for (int i = 0; i < POOLS; i++)
		start_pool(run, &pools[i], pid, conf->workers);
	printf("Spoolbox serves http://%s:%s/mcp (spool %s). The token: spoolbox token\n",
	       address->host, address->port, conf->spool);
	fflush(stdout);
	bool asked = wait_for_end(run, pools, &cleaner, conf, pid, &set);
	int status = reap_lighttpd(pid);
	end_group(pid);
	if (asked)
		return true;
	err_set(err, ERR_UNAVAILABLE, "lighttpd ended by itself (%s %d)",
		WIFSIGNALED(status) ? "signal" : "status",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return err_hint(err, "its own message is above this one");
}

static bool serve(struct app *app, const struct conf *conf, struct err *err)
{
	struct address address = {0};
	struct run_dir run = {.fd = -1, .lock_fd = -1};
	AUTO_BUF token = BUF_INIT;
	if (app->token == NULL && !app_make_token(app, &token, err))
		return false;
	if (!check_address(conf, &address, err))
		return false;
	bool ok = make_run_dir(app, &run, err) && fill_run_dir(&run, &address, err);
	if (ok) {
		admin_export_settings(conf);
		ok = run_lighttpd(&run, conf, &address, err);
	}
	drop_run_dir(&run);
	return ok;
}

int admin_serve(const struct admin *admin, int argc, char **argv)
{
	struct err err = ERR_INIT;
	struct app app;
	if (argc == 2 && strcmp(argv[1], "--with-parent") == 0)
		prctl(PR_SET_PDEATHSIG, SIGTERM);
	else if (argc != 1)
		return admin_misused("serve takes no argument \"%s\"; set SMCP_HOST and SMCP_PORT",
				     argv[1]);
	if (!app_open(&app, admin->conf, &err))
		return admin_fail(&err);
	bool ok = serve(&app, admin->conf, &err);
	app_close(&app);
	return ok ? ADMIN_OK : admin_fail(&err);
}
