/*
 * A clock for tests of the reaper. It runs, and is set forward in an instant: reap_later is time
 * that passes, reap_jump a wall clock that somebody set.
 */
#ifndef SPOOLBOX_UNIT_REAP_CLOCK_H
#define SPOOLBOX_UNIT_REAP_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "base/clock.h"

#define MINUTE (60 * 1000LL)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
#define YEAR   (365 * DAY)

static int64_t reap_passed, reap_jumped;

static inline int64_t reap_real(clockid_t clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int64_t reap_wall(void)
{
	return reap_real(CLOCK_REALTIME) + reap_passed + reap_jumped;
}

static int64_t reap_boot(void)
{
	return reap_real(CLOCK_BOOTTIME) + reap_passed;
}

static int64_t reap_mono(void)
{
	return reap_real(CLOCK_MONOTONIC) + reap_passed;
}

static const struct clock_source reap_clock = {reap_wall, reap_mono, reap_boot,
					       "11111111-0000-4000-8000-000000000000"};

static inline void reap_later(int64_t ms)
{
	reap_passed += ms;
}

static inline void reap_jump(int64_t ms)
{
	reap_jumped += ms;
}

#endif
