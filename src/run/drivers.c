/* The one array of drivers. */
#include "run/bwrap.h"
#include "run/runtime.h"

#include <string.h>

static const struct runtime *const drivers[] = {
	&bwrap_runtime,
};

const struct runtime *runtime_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(drivers); i++)
		if (strcmp(drivers[i]->name, name) == 0)
			return drivers[i];
	return NULL;
}

void runtime_names(struct buf *out)
{
	for (size_t i = 0; i < ARRAY_LEN(drivers); i++) {
		if (i > 0)
			buf_puts(out, ", ");
		buf_puts(out, drivers[i]->name);
	}
}
