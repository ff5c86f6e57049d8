/* See prefork.h. The parent does nothing but wait: it can fail in no request. */
#include "web/prefork.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "web/fcgi.h"

#define LOOK_S        10   /* between two looks at the web server, as the workers themselves do */
#define SHORT_LIFE_MS 1000 /* a worker that ends sooner is started again only after as long */

struct pool {
	pid_t pids[PREFORK_MAX]; /* 0: none */
	int64_t started_at[PREFORK_MAX];
	int count;
	pid_t server; /* 0: not watched */
};

static const int stop_signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};

static sigset_t waited_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(stop_signals); i++)
		sigaddset(&set, stop_signals[i]);
	sigaddset(&set, SIGCHLD);
	return set;
}

static void start(struct pool *pool, int slot, int (*work)(void *ctx), void *ctx)
{
	pid_t parent = getpid();
	pid_t pid = fork();
	if (pid == 0) {
		/* The worker reads TERM between two requests, so this lets it finish. */
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			_exit(0);
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		prctl(PR_SET_NAME, "spoolbox.fcgi");
		_exit(work(ctx));
	}
	if (pid < 0)
		log_event(LOG_ERROR, "fork", "errno=%d", errno);
	pool->pids[slot] = pid > 0 ? pid : 0;
	pool->started_at[slot] = clock_mono_ms();
}

static int alive(const struct pool *pool)
{
	int n = 0;
	for (int i = 0; i < pool->count; i++)
		n += pool->pids[i] != 0;
	return n;
}

static void reap(struct pool *pool)
{
	pid_t pid;
	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
		for (int i = 0; i < pool->count; i++) {
			if (pool->pids[i] == pid)
				pool->pids[i] = 0;
		}
	}
}

/* Starts what is missing. Returns how many seconds to wait until the next look. */
static int fill(struct pool *pool, int (*work)(void *ctx), void *ctx)
{
	int wait_s = LOOK_S;
	for (int i = 0; i < pool->count; i++) {
		if (pool->pids[i] != 0)
			continue;
		if (pool->started_at[i] != 0 &&
		    clock_mono_ms() - pool->started_at[i] < SHORT_LIFE_MS)
			wait_s = 1;
		else
			start(pool, i, work, ctx);
	}
	return wait_s;
}

static void finish(struct pool *pool, const sigset_t *signals)
{
	for (int i = 0; i < pool->count; i++) {
		if (pool->pids[i] != 0)
			kill(pool->pids[i], SIGTERM);
	}
	while (alive(pool) > 0) {
		sigtimedwait(signals, NULL, &(struct timespec){.tv_sec = 1});
		reap(pool);
	}
}

int prefork_run(int count, int (*work)(void *ctx), void *ctx)
{
	struct pool pool = {.count = count, .server = fcgi_watched_parent()};
	sigset_t signals = waited_signals();
	sigprocmask(SIG_BLOCK, &signals, NULL);
	prctl(PR_SET_NAME, "spoolbox-pool"); /* so that ps tells it from the workers */
	for (;;) {
		int wait_s = fill(&pool, work, ctx);
		int sig = sigtimedwait(&signals, NULL, &(struct timespec){.tv_sec = wait_s});
		reap(&pool);
		bool server_gone = pool.server != 0 && getppid() != pool.server;
		if ((sig > 0 && sig != SIGCHLD) || server_gone)
			break;
	}
	finish(&pool, &signals);
	return 0;
}
