/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * This measures how far the kernel has adjusted a clock: CLOCK_REALTIME (steps and slews) or CLOCK_MONOTONIC (slews)
 * minus CLOCK_MONOTONIC_RAW, which is the bare oscillator. A stamp minus the adjustment is a stamp of the oscillator.
 */
#ifndef KTRXER_METHODS_CLOCK_ADJUST_H
#define KTRXER_METHODS_CLOCK_ADJUST_H

#include <ktrxer.h>

#include <time.h>

/* 500 ppm: the fastest slew of adjtime(3) and of the kernel's PLL. 100 ppm: the correction of the oscillator. */
#define CLOCK_ADJUST_RATE_PPM 600

struct clock_adjust {
	int64_t ns; /* only its changes have a meaning */
	uint32_t bound_ns;
	int64_t at_ns; /* by this clock */
};
void clock_adjust_read(struct clock_adjust *adjust, clockid_t clock);

/* Counts each time that one clock was stepped, or slewed by more than CLOCK_ADJUST_RATE_PPM. */
struct clock_watch {
	bool seen;
	struct clock_adjust last;
	int64_t moved_at_ns; /* the latest reading of the last change, and the adjustment before that change */
	int64_t before_ns;
	uint32_t changes;
	int64_t largest_ns; /* of the changes, signed */
};
/* A reading. True: the clock was changed since the last reading; a stamp in between may be of either time. */
bool clock_watch_take(struct clock_watch *watch, const struct clock_adjust *adjust);

#endif
