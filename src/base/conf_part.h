/* What the table of settings says, between conf_table.c and conf.c. Private to the two. */
#ifndef SPOOLBOX_BASE_CONF_PART_H
#define SPOOLBOX_BASE_CONF_PART_H

#include <stddef.h>

#include "base/conf.h"

#define CONF_TEXT_MAX 4096 /* longest value of a setting */

enum conf_type {
	CONF_TEXT,
	CONF_SECRET,
	CONF_TOKEN,
	CONF_PATH,
	CONF_URL,
	CONF_COUNT,
	CONF_SIZE,
	CONF_SECONDS,
	CONF_CORES,
	CONF_NETWORK,
	CONF_CONFIRM,
	CONF_SWITCH,
	CONF_LEVEL
};

struct conf_setting {
	const char *name;
	enum conf_type type;
	size_t offset;
	const char *fallback; /* text that is parsed like a given value; NULL: none */
	const char *shown;    /* default as shown when fallback does not say it */
	int64_t min, max;
	const char *help;
	const char *note; /* always true of this setting; see conf_view */
};

#define CONF_FIELD(member) offsetof(struct conf, member)

extern const struct conf_setting conf_settings[];
extern const size_t conf_setting_count;

#endif
