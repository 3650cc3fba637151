/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Clock offset estimator: the offset of a far clock and its uncertainty, from the four stamps of each round trip.
 *
 * A probe leaves at T1 and arrives at T2, its answer leaves at T3 and arrives at T4 (T1, T4 by our clock, T2, T3 by the
 * far one). No delay is negative, so the offset (far minus ours) is at most T2 - T1 at T1, and at least T3 - T4 at T4.
 * How long such a limit stays useful depends on how fast the offset may change. Two models,
 * docs/decisions/0038-clock-offset.md:
 *
 *   disciplined   The offset changes by at most CLOCK_OFFSET_RATE_PPM at any time, in any pattern: a time daemon may
 *                 slew either clock. Each limit spreads from its time as a cone of that slope. Holds for stamps of
 *                 CLOCK_REALTIME and CLOCK_MONOTONIC.
 *   free running  In addition the rate changes by at most CLOCK_OFFSET_DRIFT_PPM_PER_S: two oscillators that nothing
 *                 adjusts. Holds only for stamps from which the adjustments of both kernels were removed.
 *
 * The uncertainty at each time is the interval of all offsets that the round trips and the model allow. It assumes no
 * symmetry of the path, and holds in every sample as long as the model does. Round trips that contradict the
 * free-running model set `drifts`: then the uncertainty is that of the disciplined model. Round trips that contradict
 * the disciplined model are a step: a new segment begins. Where the least delays show a rate beyond that of the model,
 * which no time daemon makes, that rate and a margin take its place: clock_offset_rate().
 */
#ifndef KTRXER_METHODS_CLOCK_OFFSET_H
#define KTRXER_METHODS_CLOCK_OFFSET_H

#include <ktrxer.h>

/* 500 ppm: the fastest slew of adjtime(3) and of the kernel's PLL. 100 ppm: the oscillators of both hosts. */
#define CLOCK_OFFSET_RATE_PPM 600
/* A crystal changes by up to 1 ppm for a kelvin; a host under load warms up by some kelvins a minute. */
#define CLOCK_OFFSET_DRIFT_PPM_PER_S 0.05

enum clock_offset_segment {
	CLOCK_OFFSET_OPEN,    /* since the last step */
	CLOCK_OFFSET_LONGEST, /* the segment with the most round trips */
};

struct clock_offset_result {
	uint64_t points;         /* round trips of the segment; 0: the offset is unknown */
	uint64_t from_ns, to_ns; /* our clock: T1 of the first and of the last */
	uint64_t at_ns;          /* half of the segment */
	int64_t offset_ns;       /* far minus ours, at at_ns */
	uint64_t offset_bound_ns;
	double skew_ppm; /* mean rate of the far clock against ours in the segment */
	double skew_bound_ppm;
	bool skew_known;   /* the bound is below 1000 ppm */
	bool free_running; /* all stamps are free of adjustments */
	bool drifts;       /* they contradict the free-running model */
};

struct clock_offset;
int clock_offset_new(struct clock_offset **est);
/* With room for so many limits of each kind, 96 bytes each: more keep the uncertainty of long runs small. */
int clock_offset_new_of(struct clock_offset **est, int vertices);
void clock_offset_free(struct clock_offset *est);

enum clock_offset_taken {
	CLOCK_OFFSET_TAKEN = 0,
	CLOCK_OFFSET_DOUBTED =
		1, /* contradicts the round trips before: a step or a wrong stamp, which the next round trips show */
	CLOCK_OFFSET_STEPPED = 2, /* it was a step: a new segment has begun */
	CLOCK_OFFSET_IGNORED = 3, /* out of order, or less than no time on the path */
};

struct clock_exchange {
	uint64_t t1_ns, t4_ns; /* our clock */
	int64_t t2_ns, t3_ns;  /* the far clock */
	uint64_t widen_ns;     /* error of the stamps */
	bool free_running;     /* no stamp contains an adjustment of its clock */
};
enum clock_offset_taken clock_offset_add(struct clock_offset *est, const struct clock_exchange *exchange);

/* The largest rate that the uncertainty allows for. */
double clock_offset_rate(const struct clock_offset *est, enum clock_offset_segment which);
uint32_t clock_offset_steps(const struct clock_offset *est);
/*
 * Call it after the last round trip. It looks for contradictions over the whole of both segments, and makes
 * clock_offset_at() fast.
 */
void clock_offset_settle(struct clock_offset *est);
void clock_offset_result(const struct clock_offset *est, enum clock_offset_segment which,
			 struct clock_offset_result *result);
/* The offset at a time, also beyond the segment, and its uncertainty. The segment has at least one round trip. */
int64_t clock_offset_at(const struct clock_offset *est, enum clock_offset_segment which, uint64_t at_ns,
			uint64_t *bound_ns);
/*
 * The same where the offset is also known to lie between two limits, those of a round trip at that time. *bound_ns
 * UINT64_MAX: they contradict the segment, one of the stamps is wrong.
 */
int64_t clock_offset_within(const struct clock_offset *est, enum clock_offset_segment which, uint64_t at_ns,
			    int64_t low_ns, int64_t high_ns, uint64_t *bound_ns);

int64_t clock_offset_line(const struct clock_offset_result *result, uint64_t at_ns);
uint64_t clock_offset_line_bound(const struct clock_offset *est, enum clock_offset_segment which, uint64_t from_ns,
				 uint64_t to_ns);

#endif
