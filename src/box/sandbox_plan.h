/* What a new sandbox will be: the options of a caller, checked and completed. Used by sandbox.c. */
#ifndef SPOOLBOX_BOX_SANDBOX_PLAN_H
#define SPOOLBOX_BOX_SANDBOX_PLAN_H

#include "box/sandbox.h"

struct sandbox_plan {
	const struct sandbox_options *asked; /* borrowed, as are all texts below */
	char name[NAME_MAX_LEN + 1];
	bool name_is_made_up;
	const char *template;
	const char *network;
	const char *env;    /* JSON text; NULL: none */
	const char *labels; /* likewise */
	int64_t ttl_ms;
};

/* ERR_INVALID or ERR_TOO_LARGE for options that cannot be. A name that was not given stays empty:
 * see sandbox_plan_new_name. */
bool sandbox_plan_make(const struct app *app, const struct sandbox_options *options,
		       struct sandbox_plan *plan, struct err *err) MUST_USE;
/* Makes up a (new) name when the caller gave none. */
void sandbox_plan_new_name(struct sandbox_plan *plan);

/* Whether an existing sandbox is what the options ask for; else ERR_EXISTS. */
bool sandbox_plan_fits(const struct sandbox_plan *plan, const struct sandbox_row *row,
		       struct err *err) MUST_USE;

/* Fills a zeroed row for a new incarnation with the given files (NULL: files of its own). */
void sandbox_plan_row(const struct app *app, const struct sandbox_plan *plan, const char *principal,
		      const char *files_id, struct sandbox_row *row);

#endif
