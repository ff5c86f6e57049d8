/*
 * spoolbox config: all settings with their values. The table comes from base/conf_table.c, so this
 * output, the README and the error messages cannot disagree. And how settings get to programs that
 * others of our subcommands start.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cmd/admin.h"

static void print_plain(void *ctx, const struct conf_view *view)
{
	(void)ctx;
	printf("%s=%s  (%s)\n", view->name, view->value, view->source);
	if (view->note != NULL)
		printf("    note: %s\n", view->note);
}

/* For the README: what each setting is, whatever it is set to here. */
static void print_readme(void *ctx, const struct conf_view *view)
{
	(void)ctx;
	printf("| `%s` | %s | %s | %s%s%s |\n", view->name,
	       view->default_text[0] != '\0' ? view->default_text : "(none)", view->type,
	       view->help, view->note != NULL ? " " : "", view->note != NULL ? view->note : "");
}

static void add_json(void *ctx, const struct conf_view *view)
{
	struct json_object *one = json_object_new_object();
	json_add_str(one, "name", view->name);
	json_add_str(one, "value", view->value);
	json_add_str(one, "source", view->source);
	json_add_str(one, "type", view->type);
	json_add_str(one, "default", view->default_text);
	json_add_str(one, "help", view->help);
	json_add_str(one, "note", view->note);
	json_push(ctx, one);
}

static void export_setting(void *ctx, const struct conf_view *view)
{
	const struct conf *conf = ctx;
	const char *value = view->value;
	if (strcmp(view->source, "file") != 0)
		return;
	if (strcmp(view->name, "SMCP_TOKEN") == 0)
		value = conf->token;
	else if (strcmp(view->name, "SMCP_SIGNING_KEY") == 0)
		value = conf->signing_key;
	if (value != NULL)
		setenv(view->name, value, 1);
}

void admin_export_settings(const struct conf *conf)
{
	conf_each(conf, export_setting, (void *)conf);
	setenv("SMCP_ENV_FILE", "/dev/null", 1);
}

int admin_config(const struct admin *admin, int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"readme", no_argument, NULL, 'r'},
		{NULL, 0, NULL, 0},
	};
	int form = 0, c;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == '?')
			return admin_misused("%s has no option \"%s\"", argv[0], argv[optind - 1]);
		form = c;
	}
	if (optind != argc)
		return admin_misused("config takes no argument \"%s\"", argv[optind]);
	if (form == 'j') {
		AUTO_JSON *all = json_object_new_array();
		conf_each(admin->conf, add_json, all);
		size_t len;
		puts(json_text(all, &len));
	} else if (form == 'r') {
		puts("| variable | default | type | what it does |\n|---|---|---|---|");
		conf_each(admin->conf, print_readme, NULL);
	} else {
		conf_each(admin->conf, print_plain, NULL);
	}
	return ADMIN_OK;
}
