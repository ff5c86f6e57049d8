/* spoolbox token: prints the bearer token that clients must send, making it first if need be. */
#include <stdio.h>

#include "cmd/admin.h"

int admin_token(const struct admin *admin, int argc, char **argv)
{
	struct err err = ERR_INIT;
	struct app app;
	(void)argv;
	if (argc != 1)
		return admin_misused("token takes no arguments");
	if (!app_open(&app, admin->conf, &err))
		return admin_fail(&err);
	AUTO_BUF token = BUF_INIT;
	if (app.token != NULL)
		buf_puts(&token, app.token);
	bool ok = app.token != NULL || app_make_token(&app, &token, &err);
	app_close(&app);
	if (!ok)
		return admin_fail(&err);
	puts(buf_str(&token));
	return ADMIN_OK;
}
