/* See product.h. */
#include "mcp/product.h"

#include "mcp/instructions.h"
#include "mcp/toolset.h"

static bool authenticate(void *app, const char *authorization, const char **principal,
			 struct err *err)
{
	return app_authenticate(app, authorization, principal, err);
}

void product_endpoint(struct app *app, struct endpoint *endpoint)
{
	*endpoint = (struct endpoint){
		.app = app,
		.tools = &toolset,
		.tasks = &toolset_tasks,
		.resources = &resource_files,
		.prompts = &promptset,
		.state_keys = {app->state_keys[0], app->state_keys[1]},
		.state_key_count = app->state_key_count,
		.authenticate = authenticate,
		.name = "spoolbox",
		.title = "Spoolbox",
		.version = PACKAGE_VERSION,
		.description = "Sandboxes to run commands and process files in",
		.instructions = instructions_make,
		.public_url = app->conf->public_url,
		.allowed_origins = app->conf->allowed_origins,
		.max_body = (size_t)app->conf->max_body,
	};
}
