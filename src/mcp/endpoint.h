/*
 * /mcp: the POST pipeline for both eras, sessionless. Knows no tool by name and no FastCGI.
 */
#ifndef SPOOLBOX_MCP_ENDPOINT_H
#define SPOOLBOX_MCP_ENDPOINT_H

#include "mcp/event.h"
#include "mcp/http.h"
#include "mcp/peer.h"
#include "mcp/prompt.h"
#include "mcp/resource.h"
#include "mcp/tool.h"

struct endpoint {
	void *app; /* handed to tools */
	const struct tool_list *tools;
	const struct tool_tasks *tasks;       /* NULL: the tasks extension is not offered */
	const struct resource_set *resources; /* NULL: lists are empty and not advertised */
	const struct prompt_list *prompts;    /* likewise */
	const struct event_source *events;    /* NULL: nobody can listen */
	const struct peer *peer;              /* NULL: nothing is asked in the handshake era */
	bool logs;                            /* log messages are offered to clients */
	/* For what clients keep for us (requestState, cursors): the key, and the one before it. */
	struct sign_key state_keys[2];
	size_t state_key_count; /* 0: a key of this process alone */
	/* Checks an Authorization header value; see app_authenticate. NULL: no authentication. */
	bool (*authenticate)(void *app, const char *authorization, const char **principal,
			     struct err *err);
	const char *name, *title, *version;    /* serverInfo */
	const char *description, *website_url; /* may be NULL */
	/* Text for the model, generated from the live settings; may be NULL. The caller frees it.
	 */
	char *(*instructions)(void *app);
	const char *public_url;      /* origin of the server, for the Origin and Host checks */
	const char *allowed_origins; /* comma-separated, may be NULL */
	size_t max_body;
	struct catalog *catalog; /* the compiled tools: set by endpoint_check, NULL before */
};

/* Checks the tool list and compiles its schemas: unique valid names, flat object schemas, known
 * keywords only, valid x-mcp-header declarations. False: the program must not start. Once per
 * process, before the first request. */
bool endpoint_check(struct endpoint *endpoint, struct err *err) MUST_USE;
void endpoint_finish(struct endpoint *endpoint);

/* Serves one request to the endpoint whatever its method. */
void endpoint_serve(const struct endpoint *endpoint, const struct http_request *request,
		    const struct http_sink *sink);

#endif
