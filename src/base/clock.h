/*
 * Time. Wall times are integer milliseconds since the Unix epoch and are named *_at or
 * *_at_ms; durations come from the monotonic clock and are named *_ms.
 */
#ifndef SPOOLBOX_BASE_CLOCK_H
#define SPOOLBOX_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

int64_t clock_wall_ms(void);
int64_t clock_mono_ms(void);

/* Time since the machine started, the time of suspends included; it never jumps. */
int64_t clock_boot_ms(void);

#define CLOCK_BOOT_ID_LEN 37 /* a UUID and NUL */
/* The kernel's id of this run of the machine; "" where it does not tell. */
void clock_boot_id(char out[static CLOCK_BOOT_ID_LEN]);

/* Another source of time, for tests; NULL: the system's clocks again. source is borrowed. Not for
 * programs: nothing else may set it. */
struct clock_source {
	int64_t (*wall_ms)(void);
	int64_t (*mono_ms)(void);
	int64_t (*boot_ms)(void);
	const char *boot_id;
};
void clock_use(const struct clock_source *source);

/* Sleeps; returns early on a signal. */
void clock_sleep_ms(int64_t ms);

#define CLOCK_RFC3339_LEN 25 /* "2026-11-29T19:26:01.123Z" and NUL */
#define CLOCK_HTTP_LEN    30 /* "Sun, 29 Nov 2026 19:26:01 GMT" and NUL */

/* Formats into out and returns it. Any int64 is safe; years beyond 9999 are clamped. */
const char *clock_rfc3339(int64_t wall_ms, char out[static CLOCK_RFC3339_LEN]);
const char *clock_http_date(int64_t wall_ms, char out[static CLOCK_HTTP_LEN]);

/* Reads the fixed HTTP date form only. */
bool clock_parse_http_date(const char *s, int64_t *wall_ms);

#endif
