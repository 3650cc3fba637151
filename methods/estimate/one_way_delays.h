/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One-way delays of round trips, by the offset of the two clocks. No delay is negative, so each round trip also limits
 * the offset at its own time.
 */
#ifndef KTRXER_METHODS_ONE_WAY_DELAYS_H
#define KTRXER_METHODS_ONE_WAY_DELAYS_H

#include "clock_offset.h"

struct one_way_trip {
	uint64_t t1_ns, trip_ns; /* trip: T4 - T1 */
	int64_t up_ns, down_ns;  /* T2 - T1 and T4 - T3, each across the two clocks */
};
/*
 * The uncertainty of both delays. The offset is also known to lie between low_ns and high_ns (INT64_MIN, INT64_MAX: it
 * is not). UINT64_MAX: the round trip contradicts the offset.
 */
uint64_t one_way_delays(const struct clock_offset *clock, enum clock_offset_segment which,
			const struct one_way_trip *trip, int64_t low_ns, int64_t high_ns, int64_t *up_ns,
			int64_t *down_ns);

/* A recorded round trip. A wait, adjustment or time in the reflector that is not known is 0. */
struct one_way_row {
	int64_t sent_ns, rtt_ns; /* our clock; rtt_ns is without the time in the reflector */
	int64_t far_ns;          /* the far clock, at the arrival of the probe */
	int64_t own_queue_ns, far_queue_ns;
	int64_t adjusted_ns; /* adjustments of the far clock less those of ours */
	int64_t dwell_ns;    /* time in the reflector, by the far clock */
};
struct one_way_row_delays {
	int64_t up_ns, down_ns, bound_ns; /* INT64_MIN: the row contradicts the rows around it */
};
struct one_way_clocks {
	bool adjusted;     /* adjusted_ns is known: the stamps of the far clock are freed from it */
	bool free_running; /* it contains all adjustments */
};
/*
 * The delays of recorded round trips in the order of their arrivals, in each segment between two steps of the clocks.
 * Returns the number of steps, or -ENOMEM.
 */
int one_way_of_rows(const struct one_way_row *rows, size_t count, const struct one_way_clocks *clocks,
		    struct one_way_row_delays *delays);

#endif
