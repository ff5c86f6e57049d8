/*
 * spoolbox-stdio: MCP for a client that starts it as a local command; `spoolbox stdio` becomes it.
 * Whoever can start it is the owner of the sandboxes, so no token is asked for. The state is that
 * of the HTTP side. What is left of a session that was killed goes at the next start.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "box/python_fonts.h"
#include "box/python_pool.h"
#include "box/stdio_session.h"
#include "mcp/product.h"
#include "stdio/stdio.h"

#define PROGRAM  "spoolbox-stdio"
#define SWEEP_MS 3000 /* a client waits some 10 s at least for the first answer */

enum { EXIT_DONE = 0, EXIT_FAULT = 1, EXIT_USAGE = 2 };

struct channel {
	int in_fd, out_fd, stop_fd;
};

/* TERM, INT and HUP end the session in order: through a descriptor, so they wait until somebody
 * looks. Children get default signals. */
static int open_stop(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

/* Takes the client's descriptors away from 0 and 1, so that nothing but messages gets there and no
 * child does. */
static bool open_channel(struct channel *channel, struct err *err)
{
	int null_fd;
	do {
		null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	} while (null_fd >= 0 && null_fd <= STDERR_FILENO);
	if (null_fd < 0)
		return err_sys(err, "open /dev/null");
	channel->in_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	channel->out_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	channel->stop_fd = open_stop();
	if (channel->in_fd < 0 || channel->out_fd < 0 || channel->stop_fd < 0 ||
	    dup2(null_fd, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return err_sys(err, "take standard input and output");
	close(null_fd);
	return true;
}

static bool refuse_root(struct err *err)
{
	if (geteuid() != 0)
		return true;
	err_set(err, ERR_DENIED, "sandboxes must not be run by root");
	return err_hint(err, "Start it with 'spoolbox stdio', which changes to the service user.");
}

static void settle(void *app)
{
	python_pool_settle(app);
}

static bool serve(struct app *app, const struct channel *channel, struct err *err)
{
	struct endpoint endpoint;
	struct stdio_session session;
	python_fonts_refresh(app);
	product_endpoint(app, &endpoint);
	if (!endpoint_check(&endpoint, err))
		return false;
	bool ok = stdio_session_begin(app, &session, err);
	if (ok) {
		stdio_session_sweep(app, SWEEP_MS);
		stdio_serve(&endpoint, app_owner(), channel->in_fd, channel->out_fd,
			    channel->stop_fd, settle);
		stdio_session_end(app, &session);
	}
	endpoint_finish(&endpoint);
	return ok;
}

static bool run(struct conf *conf, const struct channel *channel, struct err *err)
{
	struct app app = {.spool = SPOOL_INIT};
	enum log_level level;
	if (!refuse_root(err) || !conf_load(conf, err))
		return false;
	if (log_level_parse(conf->log_level, &level))
		log_open(PROGRAM, level);
	if (!app_open(&app, conf, err))
		return false;
	bool ok = serve(&app, channel, err);
	app_close(&app);
	return ok;
}

/* For a person: clients show what is on standard error. */
static int fail(const struct err *err)
{
	log_err(LOG_ERROR, "start", err);
	fprintf(stderr, "spoolbox: %s\n  %s\n", err_message(err), err_next(err));
	return EXIT_FAULT;
}

int main(int argc, char **argv)
{
	struct err err = ERR_INIT;
	struct channel channel = {-1, -1, -1};
	struct conf conf = {0};
	(void)argv;
	log_open(PROGRAM, LOG_INFO);
	if (argc != 1) {
		fputs("usage: spoolbox stdio\n", stderr);
		return EXIT_USAGE;
	}
	umask(022); /* of directories and files in workspaces; our own have explicit modes */
	if (!open_channel(&channel, &err))
		return fail(&err);
	bool ok = run(&conf, &channel, &err);
	conf_finish(&conf);
	return ok ? EXIT_DONE : fail(&err);
}
