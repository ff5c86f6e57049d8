/* See roster.h. */
#include "mcp/roster.h"

#include <string.h>

#include "box/sandbox.h"
#include "mcp/resource.h"

struct reading {
	struct app *app;
	struct roster *roster;
};

static bool take_row(void *ctx, const struct sandbox_row *row)
{
	struct reading *reading = ctx;
	struct roster *roster = reading->roster;
	if (row->state != SANDBOX_LIVE || sandbox_is_over(reading->app, row))
		return true;
	roster->names = xrealloc(roster->names, (roster->count + 1) * sizeof(roster->names[0]));
	roster->names[roster->count++] = xstrdup(row->name);
	return true;
}

bool roster_read(struct app *app, const char *principal, struct roster *roster, struct err *err)
{
	struct reading reading = {app, roster};
	return row_sandbox_each(app->db, principal, take_row, &reading, err);
}

void roster_finish(struct roster *roster)
{
	for (size_t i = 0; i < roster->count; i++)
		free(roster->names[i]);
	free(roster->names);
	*roster = (struct roster)ROSTER_INIT;
}

bool roster_complete(void *app, const char *principal, const char *value,
		     struct json_object *values, bool *more, struct err *err)
{
	AUTO_ROSTER roster = ROSTER_INIT;
	*more = false;
	if (!roster_read(app, principal, &roster, err))
		return false;
	for (size_t i = 0; i < roster.count; i++) {
		if (strncmp(roster.names[i], value, strlen(value)) != 0)
			continue;
		*more = json_object_array_length(values) == COMPLETE_MAX;
		if (*more)
			return true;
		json_push_str(values, roster.names[i]);
	}
	return true;
}
