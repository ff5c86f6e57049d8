/*
 * For tests of what waits: the monotonic clock can be put forward. The functions of the clock are
 * compiled into the test under names of its own, so the library's are not linked. Included by one
 * file of a program, before anything that includes base/clock.h.
 */
#ifndef SPOOLBOX_CLOCK_KIT_H
#define SPOOLBOX_CLOCK_KIT_H

#define clock_mono_ms clock_kit_real_ms
#include "base/clock.c"
#undef clock_mono_ms

int64_t clock_mono_ms(void);

static int64_t clock_kit_ahead_ms;

int64_t clock_mono_ms(void)
{
	return clock_kit_real_ms() + clock_kit_ahead_ms;
}

#endif
