/* Reads what the table of settings (conf_table.c) names, from the environment and the env file. */
#include "base/conf_part.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/env_file.h"
#include "base/log.h"
#include "base/num.h"
#include "base/text.h"

static const char *const type_names[] = {
	[CONF_TEXT] = "text",          [CONF_SECRET] = "secret",   [CONF_TOKEN] = "secret",
	[CONF_PATH] = "absolute path", [CONF_URL] = "http(s) URL", [CONF_COUNT] = "count",
	[CONF_SIZE] = "bytes",         [CONF_SECONDS] = "seconds", [CONF_CORES] = "cores",
	[CONF_NETWORK] = "level",      [CONF_CONFIRM] = "word",    [CONF_SWITCH] = "word",
	[CONF_LEVEL] = "log level",
};

#define ENV_FILE_SETTING "SMCP_ENV_FILE" /* where the env file is; from the environment only */

static bool is_secret(const struct conf_setting *s)
{
	return s->type == CONF_SECRET || s->type == CONF_TOKEN;
}

/* The value as a message may show it. */
static void quote(struct buf *out, const struct conf_setting *s, const char *text)
{
	if (is_secret(s))
		buf_printf(out, "(%zu characters)", strlen(text));
	else
		text_quote(out, text, strlen(text), 64);
}

static bool refuse(struct err *err, const struct conf_setting *s, const char *text,
		   const char *allowed)
{
	AUTO_BUF shown = BUF_INIT;
	quote(&shown, s, text);
	err_set(err, ERR_INVALID, "setting %s has the value \"%s\"; allowed is %s", s->name,
		buf_str(&shown), allowed);
	return err_hint(err, "Correct %s in the environment or the env file, then start again.",
			s->name);
}

static bool refuse_range(struct err *err, const struct conf_setting *s, const char *text,
			 const char *what)
{
	AUTO_BUF allowed = BUF_INIT;
	buf_printf(&allowed, "%s from %lld to %lld", what, (long long)s->min, (long long)s->max);
	return refuse(err, s, text, buf_str(&allowed));
}

static bool set_text(struct conf *conf, const struct conf_setting *s, const char *text,
		     struct err *err)
{
	size_t len = strlen(text);
	if ((int64_t)len < s->min || (int64_t)len > s->max)
		return refuse_range(err, s, text, "a text whose length is");
	*(char **)((char *)conf + s->offset) = xstrdup(text);
	return true;
}

/* b64token of RFC 6750: a client can send it as one word behind "Bearer". */
static bool set_token(struct conf *conf, const struct conf_setting *s, const char *text,
		      struct err *err)
{
	size_t len = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				  "-._~+/");
	if (len == 0 || text[len + strspn(text + len, "=")] != '\0')
		return refuse(err, s, text,
			      "a text of letters, digits and any of -._~+/ with = at its end only");
	return set_text(conf, s, text, err);
}

/* Sandboxes see the host's /usr and read it as the service user. */
static bool is_seen_by_sandboxes(const char *path)
{
	AUTO_FREE char *real = realpath(path, NULL);
	return strncmp(path, "/usr/", 5) == 0 || (real != NULL && strncmp(real, "/usr/", 5) == 0);
}

/* What runtime drivers put an empty directory over; see hidden_dirs in run/bwrap.c. */
static bool is_hidden_from_sandboxes(const char *path)
{
	AUTO_FREE char *real = realpath(path, NULL);
	const char *checked = real == NULL ? path : real;
	/* Configured without a word these are one. NOLINTNEXTLINE(misc-redundant-expression) */
	return strncmp(checked, SYSCONFDIR "/", strlen(SYSCONFDIR "/")) == 0 ||
	       strncmp(checked, "/usr/local/etc/", strlen("/usr/local/etc/")) == 0;
}

static bool set_path(struct conf *conf, const struct conf_setting *s, const char *text,
		     struct err *err)
{
	if (text[0] != '/')
		return refuse(err, s, text, "an absolute path");
	if (is_seen_by_sandboxes(text))
		return refuse(err, s, text, "a path outside of /usr, which sandboxes can read");
	return set_text(conf, s, text, err);
}

static bool set_url(struct conf *conf, const struct conf_setting *s, const char *text,
		    struct err *err)
{
	bool http = strncmp(text, "http://", 7) == 0;
	bool https = strncmp(text, "https://", 8) == 0;
	size_t len = strlen(text);
	while (len > 0 && text[len - 1] == '/')
		len--;
	if ((!http && !https) || len <= (http ? 7u : 8u) || len > 1024 ||
	    strpbrk(text, " \t\"'<>\\?#") != NULL)
		return refuse(err, s, text,
			      "http://HOST[:PORT] or https://HOST[:PORT], with a path if any");
	*(char **)((char *)conf + s->offset) = xstrndup(text, len);
	return true;
}

static bool set_number(struct conf *conf, const struct conf_setting *s, const char *text,
		       struct err *err)
{
	int64_t *to = (int64_t *)((char *)conf + s->offset);
	if (s->type == CONF_SIZE)
		return num_parse_size(text, s->min, s->max, to) ||
		       refuse_range(err, s, text, "a number of bytes (suffix k, m, g or t)");
	return num_parse_int(text, s->min, s->max, to) ||
	       refuse_range(err, s, text,
			    s->type == CONF_SECONDS ? "a number of seconds" : "a number");
}

/* "2" or "0.5": kept in thousandths. */
static bool set_cores(struct conf *conf, const struct conf_setting *s, const char *text,
		      struct err *err)
{
	AUTO_FREE char *whole = xstrdup(text);
	int64_t units = 0, thousandths = 0;
	char *dot = strchr(whole, '.');
	if (dot != NULL)
		*dot++ = '\0';
	bool ok = num_parse_int(whole, 0, 1024, &units);
	if (ok && dot != NULL) {
		char padded[4] = "000";
		size_t len = strlen(dot);
		ok = len >= 1 && len <= 3 && strspn(dot, "0123456789") == len;
		if (ok)
			memcpy(padded, dot, len);
		ok = ok && num_parse_int(padded, 0, 999, &thousandths);
	}
	int64_t milli = units * 1000 + thousandths;
	if (!ok || milli < s->min || milli > s->max)
		return refuse(err, s, text, "a number of cores from 0.01 to 1024");
	*(int64_t *)((char *)conf + s->offset) = milli;
	return true;
}

static const struct {
	const char *word;
	enum conf_network level;
	const char *note;
} networks[] = {
	{"loopback", CONF_NETWORK_LOOPBACK, NULL},
	{"none", CONF_NETWORK_NONE, NULL},
	{"bridge", CONF_NETWORK_LOOPBACK,
	 "Accepted from the settings of other programs; sandboxes get loopback, not the internet."},
};

static bool set_network(struct conf *conf, const struct conf_setting *s, const char *text,
			struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(networks); i++) {
		if (strcmp(text, networks[i].word) == 0) {
			conf->network = networks[i].level;
			return true;
		}
	}
	return refuse(err, s, text, "loopback or none (bridge is read as loopback)");
}

static bool set_confirm(struct conf *conf, const struct conf_setting *s, const char *text,
			struct err *err)
{
	bool files = strcmp(text, "files") == 0;
	if (!files && strcmp(text, "never") != 0)
		return refuse(err, s, text, "never or files");
	conf->confirm_destroy = files ? CONF_CONFIRM_FILES : CONF_CONFIRM_NEVER;
	return true;
}

static bool set_switch(struct conf *conf, const struct conf_setting *s, const char *text,
		       struct err *err)
{
	bool on = strcmp(text, "on") == 0;
	if (!on && strcmp(text, "off") != 0)
		return refuse(err, s, text, "off or on");
	*(bool *)((char *)conf + s->offset) = on;
	return true;
}

static bool set_level(struct conf *conf, const struct conf_setting *s, const char *text,
		      struct err *err)
{
	enum log_level level;
	if (!log_level_parse(text, &level))
		return refuse(err, s, text, "error, warn, info or debug");
	conf->log_level = xstrdup(text);
	return true;
}

static bool set(struct conf *conf, const struct conf_setting *s, const char *text, struct err *err)
{
	static bool (*const setters[])(struct conf *, const struct conf_setting *, const char *,
				       struct err *) = {
		[CONF_TEXT] = set_text,       [CONF_SECRET] = set_text,
		[CONF_TOKEN] = set_token,     [CONF_PATH] = set_path,
		[CONF_URL] = set_url,         [CONF_COUNT] = set_number,
		[CONF_SIZE] = set_number,     [CONF_SECONDS] = set_number,
		[CONF_CORES] = set_cores,     [CONF_NETWORK] = set_network,
		[CONF_CONFIRM] = set_confirm, [CONF_SWITCH] = set_switch,
		[CONF_LEVEL] = set_level,
	};
	return setters[s->type](conf, s, text, err);
}

/* --- where values come from
 * -------------------------------------------------------------------------- */

static const struct conf_setting *find(const char *name, size_t *index)
{
	for (size_t i = 0; i < conf_setting_count; i++) {
		if (strcmp(conf_settings[i].name, name) == 0) {
			*index = i;
			return &conf_settings[i];
		}
	}
	return NULL;
}

/* Notes a name that looks like a setting and is none: most often a typing error. */
static void note_unknown(struct conf *conf, const char *name)
{
	if (strncmp(name, "SMCP_", 5) != 0 || strcmp(name, ENV_FILE_SETTING) == 0)
		return;
	char *longer =
		conf->unknown == NULL ? xstrdup(name) : xasprintf("%s, %s", conf->unknown, name);
	free(conf->unknown);
	conf->unknown = longer;
}

static void keep(struct conf *conf, size_t index, const char *value, enum conf_source source)
{
	free(conf->texts[index]);
	conf->texts[index] = xstrdup(value);
	conf->sources[index] = source;
}

static void take_line(void *ctx, const char *name, const char *value)
{
	struct conf *conf = ctx;
	size_t index;
	if (find(name, &index) != NULL)
		keep(conf, index, value, CONF_FILE);
	else
		note_unknown(conf, name);
}

static bool read_file(struct conf *conf, struct err *err)
{
	const char *named = getenv(ENV_FILE_SETTING);
	const char *path = named == NULL || *named == '\0' ? SYSCONFDIR "/spoolbox.env" : named;
	if (is_seen_by_sandboxes(path) && !is_hidden_from_sandboxes(path)) {
		err_set(err, ERR_INVALID,
			ENV_FILE_SETTING "=%s lies below /usr, which sandboxes can read", path);
		return err_hint(err, "Move it to /etc and name it with " ENV_FILE_SETTING ".");
	}
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0 && named == NULL && errno != EACCES)
		return true;
	if (fd < 0) {
		int reason = errno;
		err_set(err, ERR_INVALID, "the env file %s cannot be read: %s", path,
			strerror(reason));
		return err_hint(err, "Make it readable for the user that runs Spoolbox, or "
				     "correct " ENV_FILE_SETTING ".");
	}
	return env_file_read(fd, take_line, conf, err);
}

static void read_environment(struct conf *conf)
{
	for (char **entry = environ; *entry != NULL; entry++) {
		const char *equals = strchr(*entry, '=');
		if (strncmp(*entry, "SMCP_", 5) != 0 || equals == NULL)
			continue;
		AUTO_FREE char *name = xstrndup(*entry, (size_t)(equals - *entry));
		size_t index;
		if (find(name, &index) == NULL)
			note_unknown(conf, name);
		else if (equals[1] != '\0') /* NAME= in an .env means: not set */
			keep(conf, index, equals + 1, CONF_ENVIRONMENT);
	}
}

/* Defaults that depend on other settings. */
static void derive(struct conf *conf)
{
	if (conf->public_url == NULL)
		conf->public_url = xasprintf("http://127.0.0.1:%lld", (long long)conf->port);
	if (conf->data_dir == NULL)
		conf->data_dir = xasprintf("%s/data", conf->spool);
	if (conf->state_db == NULL)
		conf->state_db = xasprintf("%s/state.db", conf->spool);
}

bool conf_load(struct conf *conf, struct err *err)
{
	memset(conf, 0, sizeof(*conf));
	if (sodium_init() < 0)
		return err_set(err, ERR_UNAVAILABLE, "libsodium could not be initialised");
	if (!read_file(conf, err))
		return false;
	read_environment(conf);
	for (size_t i = 0; i < conf_setting_count; i++) {
		const char *text = conf->texts[i];
		if (text == NULL || *text == '\0')
			text = conf_settings[i].fallback;
		if (text != NULL && !set(conf, &conf_settings[i], text, err))
			return false;
	}
	derive(conf);
	return true;
}

static void wipe(char *s)
{
	if (s != NULL)
		sodium_memzero(s, strlen(s));
	free(s);
}

void conf_finish(struct conf *conf)
{
	for (size_t i = 0; i < conf_setting_count; i++) {
		enum conf_type type = conf_settings[i].type;
		wipe(conf->texts[i]);
		if (is_secret(&conf_settings[i]) || type == CONF_TEXT || type == CONF_PATH ||
		    type == CONF_URL || type == CONF_LEVEL)
			wipe(*(char **)((char *)conf + conf_settings[i].offset));
	}
	free(conf->unknown);
	memset(conf, 0, sizeof(*conf));
}

/* --- what people see ----------------------------------------------------------------------- */

static const char *note_of(const struct conf *conf, size_t index)
{
	const struct conf_setting *s = &conf_settings[index];
	const char *text = conf->texts[index];
	if (text == NULL)
		return s->note;
	if (s->type == CONF_NETWORK) {
		for (size_t i = 0; i < ARRAY_LEN(networks); i++) {
			if (strcmp(text, networks[i].word) == 0)
				return networks[i].note;
		}
	}
	if (s->offset == CONF_FIELD(base_image) && strcmp(text, "base") != 0)
		return "Names a container image in other programs; here every sandbox gets the "
		       "template base.";
	return s->note;
}

static const char *value_of(const struct conf *conf, size_t index, struct buf *scratch)
{
	const struct conf_setting *s = &conf_settings[index];
	const char *text = conf->texts[index];
	bool given = text != NULL && *text != '\0';
	if (is_secret(s))
		return given ? "(set)" : "(not set)";
	if (given)
		return text;
	if (s->fallback != NULL)
		return s->fallback;
	const char *derived = *(char *const *)((const char *)conf + s->offset);
	buf_puts(scratch, derived == NULL ? "" : derived);
	return buf_str(scratch);
}

void conf_each(const struct conf *conf, conf_visit *visit, void *ctx)
{
	static const char *const source_names[] = {[CONF_DEFAULT] = "default",
						   [CONF_FILE] = "file",
						   [CONF_ENVIRONMENT] = "environment"};
	for (size_t i = 0; i < conf_setting_count; i++) {
		const struct conf_setting *s = &conf_settings[i];
		AUTO_BUF scratch = BUF_INIT;
		struct conf_view view = {
			.name = s->name,
			.value = value_of(conf, i, &scratch),
			.source = source_names[conf->sources[i]],
			.type = type_names[s->type],
			.default_text = s->shown != NULL ? s->shown : s->fallback,
			.help = s->help,
			.note = note_of(conf, i),
		};
		visit(ctx, &view);
	}
}
