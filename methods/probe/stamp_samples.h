/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One-way delays wait here until the offset of the clocks is known. In bounded memory: when it is full, the delays of
 * the oldest samples are computed by the offset that is known then, and recorded. Later round trips can only narrow the
 * offset's interval, so the uncertainty of these delays holds. Every sample is in the delays.
 */
#ifndef KTRXER_METHODS_STAMP_SAMPLES_H
#define KTRXER_METHODS_STAMP_SAMPLES_H

#include "clock_offset.h"
#include "stamp_session.h"

struct stamp_samples;
struct stamp_samples *stamp_samples_new(void);
void stamp_samples_free(struct stamp_samples *samples);
/* False: no memory, or full. */
bool stamp_samples_add(struct stamp_samples *samples, const struct stamp_sample *sample);
bool stamp_samples_full(const struct stamp_samples *samples);

/* A whole microsecond, or millisecond, in every one of the far end's stamps is its resolution, in ns. */
uint64_t stamp_samples_resolution(const struct stamp_samples *samples);

/* Delays of one segment of the clock offset. */
struct stamp_delays {
	struct ktrxer_hist *up, *down;
	uint64_t bound_ns;     /* the largest uncertainty of a delay that is in them */
	uint64_t unclaimed_ns; /* the same where what the clocks report proves wrong */
	uint64_t contradicted; /* samples that contradict the offset: they are left out */
	uint64_t from_ns;      /* where the segment begins */
	bool claims_wrong;     /* a round trip proves wrong what the clocks report */
};
/*
 * Records the delays of all samples, or of the oldest ones to make room, by the offset at the time of each. The
 * synchronisation of the clocks limits the offset to low to high (INT64_MIN, INT64_MAX: it does not). False: no memory.
 */
bool stamp_samples_settle(struct stamp_samples *samples, const struct clock_offset *clock, int64_t low_ns,
			  int64_t high_ns, bool all);
/* Of the segment with the most round trips, after the last stamp_samples_settle(). They belong to the samples. */
const struct stamp_delays *stamp_samples_delays(const struct stamp_samples *samples);

#endif
