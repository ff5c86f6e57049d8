/*
 * fixture: serves /mcp to whoever is let in by the web server, which must listen on loopback only.
 *
 *	FIXTURE_DB    the database, made when missing; keys lie beside it
 *	FIXTURE_URL   origin of the web server
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/log.h"
#include "fixture.h"
#include "store/sign.h"
#include "web/fcgi.h"
#include "web/refuse.h"

#define MAX_BODY  (1 << 20)
#define TOOLS_MAX 64

struct service {
	struct fixture fixture;
	struct endpoint endpoint;
	const struct tool *tools[TOOLS_MAX];
	struct tool_list list;
};

static void collect_tools(struct service *service)
{
	static const struct tool_family *const families[] = {&tools_content, &tools_stream,
							     &tools_ask, &tools_task};
	size_t count = 0;
	for (size_t i = 0; i < ARRAY_LEN(families); i++) {
		for (size_t j = 0; j < families[i]->count && count < TOOLS_MAX; j++)
			service->tools[count++] = &families[i]->tools[j];
	}
	service->list = (struct tool_list){service->tools, count};
}

/* The key that all workers share, beside the database. */
static bool read_key(const char *path, struct sign_key *key, struct err *err)
{
	const char *slash = strrchr(path, '/');
	AUTO_FREE char *dir = slash == NULL ? xstrdup(".") : xstrndup(path, slash - path);
	AUTO_FD fd = fs_open_dir(AT_FDCWD, dir, err);
	return fd >= 0 && sign_key_from_file(key, fd, "fixture.key", err);
}

static bool open_service(struct service *service, struct err *err)
{
	const char *path = getenv("FIXTURE_DB");
	const char *url = getenv("FIXTURE_URL");
	if (path == NULL || url == NULL)
		return err_set(err, ERR_INVALID, "FIXTURE_DB and FIXTURE_URL must be set");
	collect_tools(service);
	service->endpoint = (struct endpoint){
		.app = &service->fixture,
		.tools = &service->list,
		.tasks = &fixture_tasks,
		.resources = &fixture_resources,
		.prompts = &fixture_prompts,
		.events = &fixture_events,
		.peer = &fixture_mailbox,
		.logs = true,
		.state_key_count = 1,
		.name = "conformance-fixture",
		.title = "Conformance fixture",
		.version = PACKAGE_VERSION,
		.public_url = url,
		.max_body = MAX_BODY,
	};
	service->fixture.db = db_open(path, err);
	return service->fixture.db != NULL &&
	       read_key(path, &service->endpoint.state_keys[0], err) &&
	       endpoint_check(&service->endpoint, err);
}

static void serve(void *ctx, const struct http_request *request, const struct http_sink *sink)
{
	struct service *service = ctx;
	if (request->segment_count == 1 && strcmp(request->segments[0], "mcp") == 0)
		endpoint_serve(&service->endpoint, request, sink);
	else
		refuse(sink, 404, err_name(ERR_NOT_FOUND), "nothing is served under this URL",
		       "The MCP endpoint is /mcp.", NULL);
}

int main(void)
{
	struct service service = {.fixture = {NULL}};
	struct err err = ERR_INIT;
	int status = EXIT_FAILURE;
	log_open("fixture", LOG_INFO);
	if (open_service(&service, &err))
		status = fcgi_run(serve, NULL, &service);
	else
		log_err(LOG_ERROR, "start", &err);
	endpoint_finish(&service.endpoint);
	db_close(service.fixture.db);
	return status;
}
