/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The rate of one direction over time, from the counts of a receiver over trials, one after the other: its levels, and
 * a burst at the begin, as a token bucket lets it pass.
 */
#ifndef KTRXER_METHODS_RATE_TRIALS_H
#define KTRXER_METHODS_RATE_TRIALS_H

#include "levels.h"
#include "shaper.h"

enum { RATE_TRIALS_MOST = 4096 };

struct rate_trial {
	uint64_t lasts_ns, ip_bytes; /* ip_bytes UINT64_MAX: the count was lost */
};

struct rate_trials {
	struct rate_trial of[RATE_TRIALS_MOST];
	uint32_t count;
};

/* Two neighbours become one where there are too many. */
void rate_trials_add(struct rate_trials *trials, uint64_t lasts_ns, uint64_t ip_bytes);
/* The mean rate of the last `lasts_ns`; 0: it is not known. */
double rate_trials_end(const struct rate_trials *trials, uint64_t lasts_ns);
/* As levels_of_rate(), without the first second, in which a search begins. */
size_t rate_trials_levels(const struct rate_trials *trials, struct rate_level found[RATE_LEVELS_MOST]);

struct rate_burst {
	struct shaper shaper; /* the line is as fast as the fastest trial, at least */
	uint64_t begin_ns, end_ns;
};

/*
 * The rate was higher in a first part than in any trial of the second half, in which it was constant. A path whose rate
 * falls in the first part looks the same: a second test has no burst then. `sustained_bit_s`: the later rate, where
 * another test has found it; 0: it is that of the second half.
 */
bool rate_trials_burst(const struct rate_trials *trials, double sustained_bit_s, struct rate_burst *burst);

/* The time in which a bucket of this burst fills again; 0: it is too long. */
uint64_t rate_trials_refill(const struct rate_burst *burst);

/* A second test, after this time, has the same burst: it is that of a token bucket. */
bool rate_trials_again(const struct rate_burst *first, const struct rate_trials *second);

#endif
