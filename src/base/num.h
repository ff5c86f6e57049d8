/* Numbers written by people: strict, the whole string or nothing. */
#ifndef SPOOLBOX_BASE_NUM_H
#define SPOOLBOX_BASE_NUM_H

#include <stdbool.h>
#include <stdint.h>

/* A decimal integer within [min, max]; no sign but '-', no spaces, no leading '+'. */
bool num_parse_int(const char *s, int64_t min, int64_t max, int64_t *out);

/* A byte count: an integer with an optional suffix k, m, g or t (powers of 1024, either case,
 * an optional "b" or "ib" after it). False on overflow or outside [min, max]. */
bool num_parse_size(const char *s, int64_t min, int64_t max, int64_t *out);

#endif
