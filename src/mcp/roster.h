/* The live sandboxes of a principal by name, as far as they answer: a copy, so that each can be
 * entered while the others are gone through. */
#ifndef SPOOLBOX_MCP_ROSTER_H
#define SPOOLBOX_MCP_ROSTER_H

#include "base/json.h"
#include "box/app.h"

struct roster {
	char **names; /* in byte order */
	size_t count;
};
#define ROSTER_INIT \
	{ \
		NULL, 0 \
	}
void roster_finish(struct roster *roster);
#define AUTO_ROSTER __attribute__((cleanup(roster_finish))) struct roster

bool roster_read(struct app *app, const char *principal, struct roster *roster,
		 struct err *err) MUST_USE;

/* Pushes the names that begin with value, at most COMPLETE_MAX (mcp/resource.h); *more: others do,
 * too. app is a struct app. */
bool roster_complete(void *app, const char *principal, const char *value,
		     struct json_object *values, bool *more, struct err *err) MUST_USE;

#endif
