/*
 * The worker: settings, spool and database, then one request after the other. It keeps nothing
 * between requests, so it may be ended and started at any time. While it cannot start it
 * answers 503 and tries again with the next request: a process that ends at once would only be
 * started again in a loop, with its reason nowhere to be seen.
 */
#include <malloc.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/num.h"
#include "base/proc.h"
#include "base/user.h"
#include "box/python_fonts.h"
#include "box/python_pool.h"
#include "mcp/product.h"
#include "web/fcgi.h"
#include "web/prefork.h"
#include "web/refuse.h"
#include "web/route.h"

#define MMAP_MIN (32 * 1024) /* images of a result among them */

struct service {
	struct conf conf;
	struct app app;
	struct endpoint endpoint;
	bool ready;
};

static bool open_service(struct service *service, struct err *err)
{
	enum log_level level;
	if (!conf_load(&service->conf, err) || !user_become_owner(service->conf.spool, err))
		return false;
	if (log_level_parse(service->conf.log_level, &level))
		log_open("spoolbox.fcgi", level);
	if (service->conf.unknown != NULL)
		log_event(LOG_WARN, "unknown_settings", "names=%s", service->conf.unknown);
	if (!app_open(&service->app, &service->conf, err))
		return false;
	python_fonts_refresh(&service->app);
	product_endpoint(&service->app, &service->endpoint);
	return endpoint_check(&service->endpoint, err);
}

static void close_service(struct service *service)
{
	endpoint_finish(&service->endpoint);
	app_close(&service->app);
	conf_finish(&service->conf);
	service->ready = false;
}

/* Opens the service unless it is open; says why not in the log. */
static bool ensure_service(struct service *service)
{
	struct err err = ERR_INIT;
	if (!service->ready) {
		service->ready = open_service(service, &err);
		if (!service->ready) {
			log_err(LOG_ERROR, "start", &err);
			close_service(service);
		}
	}
	return service->ready;
}

static void serve(void *ctx, const struct http_request *request, const struct http_sink *sink)
{
	struct service *service = ctx;
	if (ensure_service(service))
		route_serve(&service->endpoint, request, sink);
	else
		refuse(sink, 503, err_name(ERR_UNAVAILABLE), "the service is not configured",
		       "Its operator should look at the web server's error log or run 'spoolbox "
		       "doctor'.",
		       NULL);
}

static void settle(void *ctx)
{
	struct service *service = ctx;
	if (service->ready)
		python_pool_settle(&service->app);
}

static int work(void *ctx)
{
	struct service *service = ctx;
	ensure_service(service);
	int status = fcgi_run(serve, settle, service);
	if (service->ready)
		close_service(service);
	return status;
}

/* spoolbox.fcgi [--workers N]: with N the process forks that many workers on its socket, for web
 * servers that do not do it. Settings stay out of it: one that starts processes itself (mod_fcgid)
 * may read the same settings file. */
int main(int argc, char **argv)
{
	struct service service = {.app = {.spool = SPOOL_INIT}};
	int64_t workers = 1;
	log_open("spoolbox.fcgi", LOG_INFO);
	umask(022); /* of directories and files in workspaces; our own files have explicit modes */
	proc_raise_open_files();
	/* Else glibc learns from each large block that is freed to keep the next ones for itself.
	 */
	mallopt(M_MMAP_THRESHOLD, MMAP_MIN);
	if (argc > 1 && (argc != 3 || strcmp(argv[1], "--workers") != 0 ||
			 !num_parse_int(argv[2], 1, PREFORK_MAX, &workers))) {
		log_event(LOG_ERROR, "usage", "spoolbox.fcgi [--workers 1..%d]", PREFORK_MAX);
		return 2;
	}
	if (workers > 1 && !fcgi_is_cgi())
		return prefork_run((int)workers, work, &service);
	return work(&service);
}
