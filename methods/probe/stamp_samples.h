/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One-way delays wait here until the offset of the clocks is known, which is at the end. In bounded memory: when it is full,
 * every second sample goes, and from then on only every second one is kept.
 */
#ifndef KTRXER_METHODS_STAMP_SAMPLES_H
#define KTRXER_METHODS_STAMP_SAMPLES_H

#include "clock_offset.h"
#include "stamp_session.h"

struct stamp_samples;
struct stamp_samples *stamp_samples_new(void);
void stamp_samples_free(struct stamp_samples *samples);
/* False: no memory. */
bool stamp_samples_add(struct stamp_samples *samples, const struct stamp_sample *sample);
uint64_t stamp_samples_stride(const struct stamp_samples *samples);

/* A whole microsecond, or millisecond, in every one of the far end's stamps is its resolution, in ns. */
uint64_t stamp_samples_resolution(const struct stamp_samples *samples);

struct stamp_delays {
	struct ktrxer_hist *up, *down;
	uint64_t bound_ns;     /* the largest uncertainty of a delay that is in them */
	uint64_t contradicted; /* samples that contradict the offset: they are left out */
};
/* The delays of the longest segment, by its offset at the time of each. The synchronisation of the clocks limits the offset to low to high. */
void stamp_samples_delays(const struct stamp_samples *samples, const struct clock_offset *clock, int64_t low_ns,
			  int64_t high_ns, struct stamp_delays *delays);

#endif
