/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How far is another host's clock from ours, and how fast does it move? From four stamps a round trip, and with proof.
 *
 * A probe leaves at T1 and arrives at T2, its answer leaves at T3 and arrives at T4 (T1, T4 by our clock, T2, T3 by theirs).
 * No delay is negative, so the offset (theirs minus ours) at T1 is at most T2 - T1, and at T4 at least T3 - T4. With a constant
 * rate the offset is a straight line that passes below all of the first and above all of the second: a corridor. Only the
 * convex hulls of both sets matter, so a run of any length takes little memory.
 *
 *   skew    the slope of the hull's edge over the mean of the times (it solves the linear programme of Moon, Skelly and Towsley
 *           1999), the mean of both directions; its bounds are the steepest and the flattest line that fit in the corridor
 *   offset  the middle of the corridor half way through the run, true to half its width there: half the smallest round trip,
 *           or less. No symmetry of the path is assumed for the bound, only for the middle.
 *
 * A clock that is stepped breaks the corridor: a new segment begins, with a result of its own. One that is bent (its rate
 * changes, as a time daemon does) may leave no line that fits; then the bounds grow by what is missing, and it is said.
 */
#ifndef KTRXER_METHODS_CLOCKEST_H
#define KTRXER_METHODS_CLOCKEST_H

#include <ktrxer.h>

enum { CLOCKEST_SEGMENTS = 32 };

struct clockest_result {
	uint64_t points;      /* round trips in it; 0: nothing is known */
	uint64_t from_ns, to_ns; /* our clock */
	uint64_t at_ns;       /* half way */
	int64_t offset_ns;    /* theirs minus ours, at at_ns */
	uint64_t offset_bound_ns;
	double skew_ppm;      /* theirs against ours */
	double skew_bound_ppm;
	bool skew_known;      /* the run was long enough for its round trips: the bound is below 1000 ppm */
	bool bent;            /* no constant rate fits */
	double slowest, fastest; /* rates, theirs against ours minus 1, that fit what has been seen */
};

struct clockest;
int clockest_new(struct clockest **est);
void clockest_free(struct clockest *est);

enum clockest_taken {
	CLOCKEST_TAKEN = 0,
	CLOCKEST_DOUBTED = 1, /* contradicts what was before: a step, or a wrong stamp. The next ones will tell */
	CLOCKEST_STEPPED = 2, /* it was a step, a new segment has begun */
	CLOCKEST_IGNORED = 3, /* older than the last one (reordered), or stamps that cannot be */
};
/* t2 and t3 on any clock, t1 and t4 on CLOCK_MONOTONIC. */
enum clockest_taken clockest_add(struct clockest *est, uint64_t t1_ns, int64_t t2_ns, int64_t t3_ns, uint64_t t4_ns);

/* The segment that is open now: 0, or the number of steps so far. */
uint32_t clockest_segment(const struct clockest *est);
/* Of a segment; the last CLOCKEST_SEGMENTS are remembered. */
void clockest_result(const struct clockest *est, uint32_t segment, struct clockest_result *result);
/* The offset at another time, and what it is true to. */
int64_t clockest_offset_at(const struct clockest_result *result, uint64_t at_ns);
uint64_t clockest_bound_at(const struct clockest_result *result, uint64_t at_ns);
/*
 * The same of the open segment, for who cannot wait for its end. `result` is its newest one. A queue that fills tells less and less, and a
 * rate guessed from a second of round trips leads astray within a minute. So the offset is the middle of what lines can reach whose rate is
 * that of usual clocks, and the bound covers all that clocks may do, as far as the corridor leaves room for it.
 */
int64_t clockest_live(const struct clockest *est, const struct clockest_result *result, uint64_t at_ns, uint64_t *bound_ns);

#endif
