/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Schedules, and histograms of lateness. The conventions are in <ktrxer.h>, which includes this. */
#ifndef KTRXER_SCHEDULE_H
#define KTRXER_SCHEDULE_H

#include <ktrxer/base.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ktrxer_schedule_kind {
	KTRXER_SCHEDULE_PERIODIC = 1, /* start + i * gap, exactly */
	KTRXER_SCHEDULE_POISSON = 2,  /* exponential gaps by the generator of RFC 4656 section 5 */
	KTRXER_SCHEDULE_LIST = 3,     /* offsets given by the caller */
};

/*
 * Deadlines of probes. A train is `train` probes; trains begin at the schedule's times, probes in a train are
 * `train_gap_ns` apart (0: back to back, that is, one deadline for all).
 * A rational gap num/den ns makes 36,000 probes a second exact: num = 10^9, den = 36000.
 * Deadlines never decrease. A train that would overlap the next one is -EINVAL for periodic schedules and lists; a
 * Poisson train begins after the end of the train before it. The first Poisson train is due one deviate after start_ns.
 */
struct ktrxer_schedule_options {
	size_t size;
	enum ktrxer_schedule_kind kind;
	uint64_t start_ns;
	uint64_t gap_num; /* mean gap between trains in ns = gap_num / gap_den */
	uint64_t gap_den;
	uint32_t train; /* 0 and 1: single probes */
	uint64_t train_gap_ns;
	uint8_t seed[16];           /* Poisson: the SID of RFC 4656; the same seed gives the same times */
	const uint64_t *offsets_ns; /* list: non-decreasing, from start_ns; not copied: must exist until
				       ktrxer_schedule_free() */
	uint64_t offsets;           /* number of them */
};
#define KTRXER_SCHEDULE_OPTIONS_INIT { .size = sizeof(struct ktrxer_schedule_options), .gap_den = 1, .train = 1 }

struct ktrxer_schedule;
/* 0; -EINVAL: the options contradict themselves; -ENOMEM. */
KTRXER_API int ktrxer_schedule_new(struct ktrxer_schedule **schedule, const struct ktrxer_schedule_options *options,
				   struct ktrxer_error *err);
/* Afterwards the array of a list may go, too. */
KTRXER_API void ktrxer_schedule_free(struct ktrxer_schedule *schedule);

struct ktrxer_deadline {
	uint64_t at_ns;
	uint64_t index;     /* of the probe, from 0 */
	bool train_goes_on; /* the next probe belongs to the same back-to-back train */
};
/* The next probe. 0; -ENODATA: the list has ended; -EOVERFLOW: the time does not fit into 64 bits (584 years). */
KTRXER_API int ktrxer_schedule_next_sized(struct ktrxer_schedule *schedule, struct ktrxer_deadline *deadline,
					  size_t size);
static inline int ktrxer_schedule_next(struct ktrxer_schedule *schedule, struct ktrxer_deadline *deadline)
{
	return ktrxer_schedule_next_sized(schedule, deadline, sizeof *deadline);
}

/*
 * Percentiles of signed nanoseconds in fixed memory: log-linear buckets (as HdrHistogram has them) for each sign, exact
 * up to 2047 ns, within 0.1 % beyond.
 */
struct ktrxer_hist;
/* NULL: no memory. */
KTRXER_API struct ktrxer_hist *ktrxer_hist_new(void);
/* Frees the histogram. */
KTRXER_API void ktrxer_hist_free(struct ktrxer_hist *hist);
/* Adds one value, in nanoseconds. */
KTRXER_API void ktrxer_hist_record(struct ktrxer_hist *hist, int64_t value_ns);
/* Adds the values of `from` to `into`. */
KTRXER_API void ktrxer_hist_merge(struct ktrxer_hist *into, const struct ktrxer_hist *from);
/* The number of values. */
KTRXER_API uint64_t ktrxer_hist_count(const struct ktrxer_hist *hist);
/*
 * Nanoseconds; the quantile in parts of a million: 500000 is p50. 0 when empty. Type 1 (inverse of the empirical
 * distribution).
 */
KTRXER_API int64_t ktrxer_hist_quantile(const struct ktrxer_hist *hist, uint32_t parts_per_million);
/* Nanoseconds; 0 when empty. */
KTRXER_API int64_t ktrxer_hist_min(const struct ktrxer_hist *hist);
/* Nanoseconds; 0 when empty. */
KTRXER_API int64_t ktrxer_hist_max(const struct ktrxer_hist *hist);
/* Nanoseconds; 0 when empty. */
KTRXER_API double ktrxer_hist_mean(const struct ktrxer_hist *hist);

#ifdef __cplusplus
}
#endif
#endif
