/* See sandbox_plan.h. Everything here happens before anything is touched. */
#include "box/sandbox_plan.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"

static const char *const networks[] = {
	[CONF_NETWORK_NONE] = "none",
	[CONF_NETWORK_LOOPBACK] = "loopback",
};

/* --- objects of strings -------------------------------------------------------------------- */

static bool is_variable_name(const char *s)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
	if (*s == '\0' || strchr(letters, *s) == NULL)
		return false;
	for (; *s != '\0'; s++) {
		if (strchr(letters, *s) == NULL && (*s < '0' || *s > '9'))
			return false;
	}
	return true;
}

static bool check_text(const char *what, const char *name, struct json_object *value,
		       bool names_are_variables, struct err *err)
{
	AUTO_BUF shown = BUF_INIT;
	text_quote(&shown, name, strlen(name), 64);
	if (*name == '\0' || (names_are_variables && !is_variable_name(name))) {
		err_set(err, ERR_INVALID, "%s has the name \"%s\", which cannot be used", what,
			buf_str(&shown));
		return err_hint(
			err,
			names_are_variables
				? "Names in %s are letters, digits and _, and do not start with "
				  "a digit. Nothing was changed."
				: "Names in %s must not be empty. Nothing was changed.",
			what);
	}
	const char *text = json_str(value);
	if (text == NULL) {
		err_set(err, ERR_INVALID, "%s.%s is not a string", what, buf_str(&shown));
		return err_hint(
			err,
			"Write every value of %s as a JSON string, numbers too. Nothing was "
			"changed.",
			what);
	}
	if (strlen(text) != json_str_len(value))
		return err_set(err, ERR_INVALID, "%s.%s holds a NUL character", what,
			       buf_str(&shown));
	return true;
}

bool sandbox_check_texts(const char *what, struct json_object *object, bool names_are_variables,
			 struct err *err)
{
	if (object == NULL)
		return true;
	if (!json_object_is_type(object, json_type_object))
		return err_set(err, ERR_INVALID, "%s is not an object of strings", what);
	if (names_are_variables && json_object_object_length(object) > SANDBOX_ENV_MAX) {
		err_set(err, ERR_TOO_LARGE, "%s has %d variables; the limit is %d", what,
			json_object_object_length(object), SANDBOX_ENV_MAX);
		return err_hint(err,
				"Put the data into a file in the sandbox (write_text) instead. "
				"Nothing was changed.");
	}
	json_object_object_foreach(object, name, value)
	{
		if (!check_text(what, name, value, names_are_variables, err))
			return false;
	}
	size_t len;
	json_text(object, &len);
	if (len <= SANDBOX_TEXTS_MAX)
		return true;
	err_set(err, ERR_TOO_LARGE, "%s has %zu bytes as JSON; the limit is %d", what, len,
		SANDBOX_TEXTS_MAX);
	return err_hint(err,
			"Put large values into a file in the sandbox (write_text) instead. Nothing "
			"was changed.");
}

static const char *texts_or_null(struct json_object *object)
{
	return object == NULL || json_object_object_length(object) == 0 ? NULL
									: json_text(object, NULL);
}

/* --- single options ------------------------------------------------------------------------ */

static bool is_given(const char *s)
{
	return s != NULL && *s != '\0';
}

static bool plan_name(const struct sandbox_options *options, struct sandbox_plan *plan,
		      struct err *err)
{
	plan->name_is_made_up = !is_given(options->name);
	if (plan->name_is_made_up)
		return true;
	/* A name that reads as an id would hide the sandbox with that id. */
	if (name_is_valid(options->name) && !id_is_valid(options->name)) {
		snprintf(plan->name, sizeof(plan->name), "%s", options->name);
		return true;
	}
	AUTO_BUF shown = BUF_INIT;
	text_quote(&shown, options->name, strlen(options->name), 64);
	err_set(err, ERR_INVALID, "\"%s\" cannot be the name of a new sandbox", buf_str(&shown));
	return err_hint(
		err,
		"Names have 1 to %d letters, digits, - and _, start with a letter or digit, and "
		"are not 32 hexadecimal digits. Nothing was changed.",
		NAME_MAX_LEN);
}

static bool plan_template(const struct sandbox_options *options, struct sandbox_plan *plan,
			  struct err *err)
{
	plan->template = SANDBOX_TEMPLATE_BASE;
	if (!is_given(options->template) || strcmp(options->template, SANDBOX_TEMPLATE_BASE) == 0)
		return true;
	AUTO_BUF shown = BUF_INIT;
	text_quote(&shown, options->template, strlen(options->template), 64);
	err_set(err, ERR_INVALID, "there is no template \"%s\"; this server has: %s",
		buf_str(&shown), SANDBOX_TEMPLATE_BASE);
	return err_hint(err, "Leave template out, or use \"%s\". Nothing was changed.",
			SANDBOX_TEMPLATE_BASE);
}

static bool plan_network(const struct app *app, const struct sandbox_options *options,
			 struct sandbox_plan *plan, struct err *err)
{
	plan->network = networks[app->conf->network];
	if (!is_given(options->network))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(networks); i++) {
		if (strcmp(options->network, networks[i]) == 0) {
			plan->network = networks[i];
			return true;
		}
	}
	AUTO_BUF shown = BUF_INIT;
	text_quote(&shown, options->network, strlen(options->network), 64);
	err_set(err, ERR_INVALID,
		"this server does not offer the network level \"%s\"; it offers \"none\" and "
		"\"loopback\"",
		buf_str(&shown));
	return err_hint(
		err, "\"loopback\" lets programs in the sandbox talk to each other; \"bridge\" and "
		     "\"full\" mean access to the internet, which sandboxes here do not get. "
		     "Bring files in with upload_file or write_text. Nothing was changed.");
}

static bool plan_ttl(const struct app *app, const struct sandbox_options *options,
		     struct sandbox_plan *plan, struct err *err)
{
	int64_t ttl_ms = options->ttl_ms;
	if (ttl_ms == 0) {
		plan->ttl_ms = plan->name_is_made_up ? app->conf->sandbox_ttl * 1000 : 0;
		return true;
	}
	if (ttl_ms < 1000 || ttl_ms > SANDBOX_TTL_MAX_S * 1000) {
		err_set(err, ERR_INVALID,
			"timeout is %lld ms; a lifetime is from 1 to %lld seconds",
			(long long)ttl_ms, (long long)SANDBOX_TTL_MAX_S);
		return err_hint(err,
				"Leave timeout out for a named sandbox that lives as long as it is "
				"used now and then. Nothing was changed.");
	}
	plan->ttl_ms = ttl_ms;
	return true;
}

bool sandbox_plan_make(const struct app *app, const struct sandbox_options *options,
		       struct sandbox_plan *plan, struct err *err)
{
	*plan = (struct sandbox_plan){.asked = options};
	if (!plan_name(options, plan, err) || !plan_template(options, plan, err) ||
	    !plan_network(app, options, plan, err) || !plan_ttl(app, options, plan, err) ||
	    !sandbox_check_texts("env", options->env, true, err) ||
	    !sandbox_check_texts("labels", options->labels, false, err))
		return false;
	plan->env = texts_or_null(options->env);
	plan->labels = texts_or_null(options->labels);
	return true;
}

void sandbox_plan_new_name(struct sandbox_plan *plan)
{
	_Static_assert(NAME_MADE_LEN <= sizeof(plan->name), "room for a made-up name");
	if (plan->name_is_made_up)
		name_make(plan->name);
}

/* --- rows ---------------------------------------------------------------------------------- */

static bool same_texts(const char *wanted, const char *have)
{
	struct err err = ERR_INIT;
	if (wanted == NULL)
		return true;
	if (have == NULL)
		return false;
	AUTO_JSON *a = json_parse(wanted, strlen(wanted), &err);
	AUTO_JSON *b = json_parse(have, strlen(have), &err);
	return json_object_equal(a, b) != 0;
}

bool sandbox_plan_fits(const struct sandbox_plan *plan, const struct sandbox_row *row,
		       struct err *err)
{
	const struct sandbox_options *asked = plan->asked;
	const char *other = NULL;
	if (is_given(asked->template) && strcmp(plan->template, row->template) != 0)
		other = "template";
	else if (is_given(asked->network) && strcmp(plan->network, row->network) != 0)
		other = "network";
	else if (asked->ttl_ms != 0 && asked->ttl_ms != row->ttl_ms)
		other = "timeout";
	else if (!same_texts(plan->env, row->env))
		other = "env";
	else if (!same_texts(plan->labels, row->labels))
		other = "labels";
	if (other == NULL)
		return true;
	err_set(err, ERR_EXISTS, "sandbox %s exists already and has another %s", row->name, other);
	return err_hint(err,
			"Use it as it is (create_sandbox without %s), destroy it first, or choose "
			"another name. Nothing was changed.",
			other);
}

static char *dup_or_null(const char *s)
{
	return s == NULL ? NULL : xstrdup(s);
}

void sandbox_plan_row(const struct app *app, const struct sandbox_plan *plan, const char *principal,
		      const char *files_id, struct sandbox_row *row)
{
	int64_t now = clock_wall_ms();
	id_make(row->id);
	memcpy(row->files_id, files_id == NULL ? row->id : files_id, sizeof(row->files_id));
	row->principal = xstrdup(principal);
	row->name = xstrdup(plan->name);
	row->state = SANDBOX_LIVE;
	row->template = xstrdup(plan->template);
	row->network = xstrdup(plan->network);
	row->env = dup_or_null(plan->env);
	row->labels = dup_or_null(plan->labels);
	row->created_at = now;
	row->last_used_at = now;
	row->ttl_ms = plan->ttl_ms;
	row->expires_at = plan->ttl_ms > 0 ? now + plan->ttl_ms : 0;
	row->is_explicit = plan->asked->is_explicit;
	row->is_reserve = plan->asked->is_reserve;
	row->gives_way = plan->asked->gives_way;
	/* A reserve is for whoever comes, be it after the end of this session. */
	if (app->session_id != NULL && !row->is_reserve) {
		snprintf(row->session_id, sizeof(row->session_id), "%s", app->session_id);
		row->ends_with_session = plan->name_is_made_up;
	}
}
