/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Error bounds and sampling intervals of headline figures (docs/decisions/0077-verdict-by-effect.md). The error bound
 * is the largest distance between a figure and what the path did in this measurement. The sampling interval follows
 * from the number of samples, and does not enter a verdict. Pure. Delays are in nanoseconds, shares in thousandths of
 * a percent.
 */
#ifndef KTRXER_METHODS_ERROR_BOUND_H
#define KTRXER_METHODS_ERROR_BOUND_H

#include <ktrxer.h>

#include <stdbool.h>
#include <stddef.h>

#define BOUND_UNKNOWN INT64_MAX /* the error has no bound */

enum {
	BOUND_WHOLE = 100000,       /* all: 100 % in thousandths of a percent */
	BOUND_TOLERANCE = 5000,     /* of delays and rates: 5 % */
	BOUND_TOLERANCE_NS = 20000, /* of delays, at the least */
	BOUND_TOLERANCE_LOSS = 500, /* 0.5 percentage points */
	/*
	 * Fewer are "too few samples": with five values the range from the least to the largest one contains the
	 * median with a confidence of 1 - 2 / 2^5 = 94 %, so no interval of 95 % exists. A share of fewer trials has an
	 * interval of more than 43 percentage points, so the same limit holds for loss.
	 */
	BOUND_SAMPLES_MIN = 6,
};

#define BOUND_QUANTILE_95 1.9599639845400545 /* the normal distribution has 95 % between its negative and this value */

/* Numbers of values in ascending order, from 1. */
struct bound_ranks {
	uint64_t low, high;
};

/*
 * The median of `n` values and `k` unknown ones lies between the values of these ranks (the median of an even number is
 * the lower value of both in the middle). low 0: the unknown ones may be the most, and there is no bound.
 */
struct bound_ranks bound_median_ranks(uint64_t n, uint64_t k);

/* Largest distance between the p50 of the histogram and that with `k` unknown values. */
int64_t bound_of_p50(const struct ktrxer_hist *hist, uint64_t k);

struct bound_median {
	int64_t value, bound;
};

#define BOUND_LOST INT64_MAX /* the delay of a lost probe, longer than all others */

/*
 * The median of `n` delays in ascending order, and its bound if there are `unknown` others, and up to `delayed` of the
 * `n` are too long. A median of BOUND_LOST has a bound of 0: loss is then the figure.
 */
struct bound_median bound_of_median(const int64_t *values, size_t n, uint64_t unknown, uint64_t delayed);

/*
 * `k` of the `sent` probes count as lost, and may have passed; `unsent` further ones did not leave. BOUND_UNKNOWN:
 * none was sent.
 */
int64_t bound_of_loss(uint64_t sent, uint64_t k, uint64_t unsent);

/*
 * The rate is the mean over the time that counts cover. In the other time it is assumed to be between 0 and twice the
 * mean.
 */
int64_t bound_of_rate(int64_t rate, uint64_t uncovered_ns, uint64_t whole_ns);

/* part / whole, rounded up; BOUND_WHOLE if the part is not smaller. */
int64_t bound_share(uint64_t part, uint64_t whole);
/* `share` thousandths of a percent of the figure, at least `least`. */
int64_t bound_tolerance(int64_t value, int64_t share, int64_t least);

/*
 * The interval of the median of `n` independent values is from rank low to rank high, with the confidence of the normal
 * distribution within `quantile` on both sides (exact up to 1000 values). False: there is none.
 */
bool bound_sampling_ranks(struct bound_ranks *ranks, uint64_t n, double quantile);

struct bound_interval {
	bool known;
	int64_t low, high;
};

/* The confidence is 95 %. Fewer than BOUND_SAMPLES_MIN values have no interval. */
struct bound_interval bound_p50_interval(const struct ktrxer_hist *hist);
struct bound_interval bound_loss_interval(uint64_t sent, uint64_t lost); /* Wilson (1927) */

#endif
