/* spoolbox stdio: becomes spoolbox-stdio, which speaks MCP over standard input and output. This
 * program links up to box only, and by now is the service user. */
#include <stdio.h>
#include <unistd.h>

#include "base/proc.h"
#include "cmd/admin.h"

int admin_stdio(const struct admin *admin, int argc, char **argv)
{
	struct err err = ERR_INIT;
	AUTO_BUF program = BUF_INIT;
	(void)argv;
	if (argc != 1)
		return admin_misused("stdio takes no arguments; its settings are SMCP_...");
	if (!proc_find("spoolbox-stdio", &program, &err))
		return admin_fail(&err);
	admin_export_settings(admin->conf);
	execl(buf_str(&program), "spoolbox-stdio", (char *)NULL);
	err_sys(&err, "start spoolbox-stdio");
	return admin_fail(&err);
}
