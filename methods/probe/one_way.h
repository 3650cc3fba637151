/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One-way delays (RFC 7679) from STAMP round trips. The offset of the two clocks is bounded by the round trips
 * themselves (clock_offset.h); where both clocks report how well they are synchronised, that bounds it further. No
 * clock is read here.
 */
#ifndef KTRXER_METHODS_ONE_WAY_H
#define KTRXER_METHODS_ONE_WAY_H

#include "clock_offset.h"
#include "clock_sync.h"
#include "stamp_samples.h"

struct one_way_result {
	bool known;                 /* else nothing below but the delays (empty), steps and synchronised is valid */
	struct stamp_delays delays; /* ns; of every sample of the longest segment */
	/*
	 * The parts of the uncertainty of each delay, in ns: offset at the middle of the run, what its change until
	 * each delay adds, the conversion of T1 and T4, the resolution of the reflector's stamps; and their sum.
	 */
	uint64_t clock_ns, skew_ns, host_ns, resolution_ns, total_ns;
	int64_t offset_ns; /* reflector's CLOCK_REALTIME minus this host's, at clock.at_ns */
	/* reflector's CLOCK_REALTIME minus this host's CLOCK_MONOTONIC; the segment with the most round trips */
	struct clock_offset_result clock;
	/* The kernels' adjustments of the two clocks; with `adjusted` the delays do not contain them. */
	bool adjusted; /* the reflector reported the adjustments of its clock with each answer */
	struct clock_watch own_clock, far_clock;
	bool claimed;      /* the clocks' reports made the bound smaller */
	bool contradicted; /* both clocks claim to be synchronised, and the round trips prove the opposite */
	bool synchronised; /* both clocks report so */
	uint32_t steps;    /* of the clocks against each other */
};

struct one_way;
/* real_minus_mono_ns: CLOCK_REALTIME - CLOCK_MONOTONIC of this host. NULL: no memory. */
struct one_way *one_way_new(int64_t real_minus_mono_ns);
void one_way_free(struct one_way *one_way);
/* The report of this host's clock, before and after the round trips: the worst counts. */
void one_way_own_clock(struct one_way *one_way, const struct clock_sync *own);
/* Call it before one_way_add(): the sample gets the adjustments of both clocks since the first one. */
void one_way_clocks(struct one_way *one_way, struct stamp_sample *sample);
/* 1: the clocks were stepped against each other, 0, or -ENOMEM. */
int one_way_add(struct one_way *one_way, const struct stamp_sample *sample);
/* Call it after the last round trip. -ENOMEM, or 0. The delays belong to one_way. */
int one_way_result(struct one_way *one_way, struct one_way_result *result);

#endif
