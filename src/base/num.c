/* Strict numbers. */
#include "base/num.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The integer at the start of s; *end is where it stops. */
static bool leading_int(const char *s, int64_t *out, const char **end)
{
	if (!isdigit((unsigned char)s[0]) && !(s[0] == '-' && isdigit((unsigned char)s[1])))
		return false;
	char *stop;
	errno = 0;
	long long value = strtoll(s, &stop, 10);
	if (errno != 0)
		return false;
	*out = value;
	*end = stop;
	return true;
}

bool num_parse_int(const char *s, int64_t min, int64_t max, int64_t *out)
{
	int64_t value;
	const char *end;
	if (!leading_int(s, &value, &end) || *end != '\0' || value < min || value > max)
		return false;
	*out = value;
	return true;
}

/* log2 of the unit that a suffix names, or -1. */
static int size_shift(const char *suffix)
{
	static const char units[] = "kmgt";
	if (suffix[0] == '\0' || strcasecmp(suffix, "b") == 0)
		return 0;
	const char *unit = strchr(units, tolower((unsigned char)suffix[0]));
	if (unit == NULL)
		return -1;
	if (suffix[1] != '\0' && strcasecmp(suffix + 1, "b") != 0 &&
	    strcasecmp(suffix + 1, "ib") != 0)
		return -1;
	return 10 * (int)(unit - units + 1);
}

bool num_parse_size(const char *s, int64_t min, int64_t max, int64_t *out)
{
	int64_t value;
	const char *end;
	if (!leading_int(s, &value, &end) || value < 0)
		return false;
	int shift = size_shift(end);
	if (shift < 0 || value > (INT64_MAX >> shift))
		return false;
	value <<= shift;
	if (value < min || value > max)
		return false;
	*out = value;
	return true;
}
