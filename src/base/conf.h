/*
 * Settings. One table (conf_table.c) names each setting, its type, default, range and help text;
 * parsing, `spoolbox config`, the README table and the error messages come from it. Values
 * come from the environment, then from the env file (SMCP_ENV_FILE, else
 * SYSCONFDIR/spoolbox.env when it is there), then from the default.
 */
#ifndef SPOOLBOX_BASE_CONF_H
#define SPOOLBOX_BASE_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/util.h"

#define CONF_SETTINGS_MAX 64

enum conf_source { CONF_DEFAULT = 0, CONF_FILE, CONF_ENVIRONMENT };

enum conf_network { CONF_NETWORK_NONE, CONF_NETWORK_LOOPBACK };
enum conf_confirm { CONF_CONFIRM_NEVER, CONF_CONFIRM_FILES };

/* All strings are owned by the struct. Sizes are bytes, times are seconds unless the name says
 * otherwise. */
struct conf {
	char *token;       /* secret; NULL: the file keys/token of the spool is used */
	char *signing_key; /* secret; NULL: the file keys/link of the spool is used */
	char *public_url;  /* without a trailing slash */
	char *allowed_origins;
	char *host;
	int64_t port;
	int64_t workers;
	char *spool;
	char *data_dir;
	char *state_db;
	char *runtime;
	char *base_image;
	enum conf_network network;
	int64_t mem_limit;
	int64_t cpus_milli; /* thousandths of a core */
	int64_t pids_limit;
	int64_t open_files;
	int64_t file_size;
	int64_t tmp_size;
	int64_t max_sandboxes;
	int64_t sandbox_ttl; /* of a sandbox whose name was made up */
	int64_t idle_stop;
	int64_t idle_remove;
	int64_t gc_interval;
	int64_t exec_timeout;
	int64_t exec_wait;
	int64_t job_timeout;
	int64_t job_log_retention;
	int64_t url_ttl;
	int64_t read_text_max;
	int64_t stdout_max;
	int64_t stderr_max;
	int64_t python_warm;
	int64_t python_idle;
	int64_t python_images;
	char *python_artifacts; /* endings, separated by blanks or commas */
	bool python_guard;
	int64_t max_body;
	int64_t max_upload;
	int64_t min_free;
	enum conf_confirm confirm_destroy;
	char *log_level;

	/* As given, by position in the table; for conf_each. */
	char *texts[CONF_SETTINGS_MAX];
	enum conf_source sources[CONF_SETTINGS_MAX];
	char *unknown; /* names starting with SMCP_ that are no setting, separated by ", "; or NULL
			*/
};

/* Loads all settings. On failure err names the variable, the value and what is allowed.
 * conf_finish is needed in both cases. */
bool conf_load(struct conf *conf, struct err *err) MUST_USE;
/* Frees everything; secrets are wiped. */
void conf_finish(struct conf *conf);

/* One setting as people see it. note says that a value is accepted but does something else than
 * in the program it comes from, or has no effect; NULL when it means what it says. */
struct conf_view {
	const char *name;   /* SMCP_… */
	const char *value;  /* as text; secrets show "(set)" or "(not set)" */
	const char *source; /* "environment", "file" or "default" */
	const char *type;   /* e.g. "bytes", "seconds", "text" */
	const char *default_text;
	const char *help;
	const char *note; /* NULL: none */
};
typedef void conf_visit(void *ctx, const struct conf_view *view);
void conf_each(const struct conf *conf, conf_visit *visit, void *ctx);

#endif
