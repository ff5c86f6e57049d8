/* spoolbox ls: the sandboxes, with what its lock says about each. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "box/idle.h"
#include "box/sandbox.h"
#include "cmd/admin.h"

#define LINE "%-32s  %-24s  %-8s  %-24s  %s\n"

struct listing {
	struct app *app;
	struct timeline timeline;
	struct json_object *json; /* NULL: print lines */
	int count;
};

static const char *state_word(struct app *app, const struct sandbox_row *row)
{
	struct err err = ERR_INIT;
	if (row->state != SANDBOX_LIVE)
		return "kept";
	int running = sandbox_running(app, row, &err);
	return running < 0 ? "unknown" : running ? "running" : "stopped";
}

static void add_time(struct json_object *one, const char *name, int64_t at)
{
	char text[CLOCK_RFC3339_LEN];
	if (at > 0)
		json_add_str(one, name, clock_rfc3339(at, text));
}

static bool show(void *ctx, const struct sandbox_row *row)
{
	struct listing *listing = ctx;
	char used[CLOCK_RFC3339_LEN], ends[CLOCK_RFC3339_LEN] = "never";
	struct idle idle;
	idle_of(listing->app, &listing->timeline, row, &idle);
	const char *state = state_word(listing->app, row);
	clock_rfc3339(idle.since, used);
	if (idle.remove_at > 0)
		clock_rfc3339(idle.remove_at, ends);
	else if (idle.in_use)
		strcpy(ends, "in use");
	if (listing->json == NULL) {
		if (listing->count++ == 0)
			printf(LINE, "ID", "NAME", "STATE", "LAST USED", "REMOVED AT");
		printf(LINE, row->id, row->name, state, used, ends);
		return true;
	}
	struct json_object *one = json_object_new_object();
	json_add_str(one, "sandbox_id", row->id);
	json_add_str(one, "name", row->name);
	json_add_str(one, "state", state);
	json_add_str(one, "last_used", used);
	json_add_bool(one, "in_use", idle.in_use);
	add_time(one, "will_stop_at", idle.stop_at);
	add_time(one, "will_remove_at", idle.remove_at);
	json_push(listing->json, one);
	return true;
}

static bool list(struct app *app, bool as_json, struct err *err)
{
	const char *principal = admin_principal(app);
	AUTO_JSON *all = as_json ? json_object_new_array() : NULL;
	struct listing listing = {.app = app, .json = all};
	if (!timeline_read(app, &listing.timeline, err))
		return false;
	if (principal != NULL && !row_sandbox_each(app->db, principal, show, &listing, err))
		return false;
	size_t len;
	if (as_json)
		puts(json_text(all, &len));
	else if (listing.count == 0)
		puts("no sandboxes");
	return true;
}

int admin_ls(const struct admin *admin, int argc, char **argv)
{
	static const struct option options[] = {{"json", no_argument, NULL, 'j'},
						{NULL, 0, NULL, 0}};
	struct err err = ERR_INIT;
	struct app app;
	bool as_json = false;
	int c;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == '?')
			return admin_misused("%s has no option \"%s\"", argv[0], argv[optind - 1]);
		as_json = true;
	}
	if (optind != argc)
		return admin_misused("ls takes no argument \"%s\"", argv[optind]);
	if (!app_open(&app, admin->conf, &err))
		return admin_fail(&err);
	bool ok = list(&app, as_json, &err);
	app_close(&app);
	return ok ? ADMIN_OK : admin_fail(&err);
}
