/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One-way delays wait here until the offset of the clocks is known, which is at the end. In bounded memory: when it is full,
 * every second sample goes, and from then on only every second one is kept.
 */
#ifndef KTRXER_METHODS_STAMP_SAMPLES_H
#define KTRXER_METHODS_STAMP_SAMPLES_H

#include "clockest.h"
#include "stamp_session.h"

struct stamp_samples;
struct stamp_samples *stamp_samples_new(void);
void stamp_samples_free(struct stamp_samples *samples);
/* False: no memory. `segment` of the clock that it belongs to. */
bool stamp_samples_add(struct stamp_samples *samples, const struct stamp_sample *sample, uint32_t segment);
uint64_t stamp_samples_stride(const struct stamp_samples *samples);

/* A whole microsecond, or millisecond, in every one of the far end's stamps is its resolution, in ns. */
uint64_t stamp_samples_resolution(const struct stamp_samples *samples);

/* The delays of one segment, by its offset. */
void stamp_samples_delays(const struct stamp_samples *samples, uint32_t segment, const struct clockest_result *clock,
			  struct ktrxer_hist *up, struct ktrxer_hist *down);

#endif
