/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "error_bound.h"

#include "hist.h"
#include "tcp_pair.h"
#include "wide.h"

#include <math.h>

enum { EXACT_MAX = 1000 /* 2^-n is a normal number */ };

/* The median of n + k values has the rank ceil((n + k) / 2). The sum is not computed, because it may overflow. */
struct bound_ranks bound_median_ranks(uint64_t n, uint64_t k)
{
	const uint64_t more = n > k ? n - k : 0;

	return (struct bound_ranks){ .low = more / 2 + more % 2, .high = n - more / 2 };
}

static int64_t distance(int64_t a, int64_t b)
{
	const uint64_t d = a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;

	return d < BOUND_UNKNOWN ? (int64_t)d : BOUND_UNKNOWN;
}

static int64_t farther(int64_t value, int64_t low, int64_t high)
{
	const int64_t below = distance(value, low), above = distance(value, high);

	return below > above ? below : above;
}

int64_t bound_of_p50(const struct ktrxer_hist *hist, uint64_t k)
{
	const struct bound_ranks ranks = bound_median_ranks(ktrxer_hist_count(hist), k);

	if (!ranks.low)
		return BOUND_UNKNOWN;
	return farther(ktrxer_hist_quantile(hist, 500000), ktrxer_hist_at(hist, ranks.low),
		       ktrxer_hist_at(hist, ranks.high));
}

struct bound_median bound_of_median(const int64_t *values, size_t n, uint64_t unknown, uint64_t delayed)
{
	const struct bound_ranks ranks = bound_median_ranks(n, unknown);
	struct bound_median m = { .bound = BOUND_UNKNOWN };
	int64_t low, high;

	if (!n)
		return m;
	m.value = values[bound_median_ranks(n, 0).low - 1];
	if (m.value == BOUND_LOST)
		m.bound = 0;
	if (m.value == BOUND_LOST || !ranks.low || values[ranks.high - 1] == BOUND_LOST)
		return m;
	low = ranks.low > delayed ? values[ranks.low - delayed - 1] : 0;
	high = values[ranks.high - 1];
	m.bound = farther(m.value, low, high);
	return m;
}

int64_t bound_share(uint64_t part, uint64_t whole)
{
	uint64_t rest;

	if (part >= whole)
		return BOUND_WHOLE;
	return (int64_t)wide_divide(wide_add(wide_multiply(part, BOUND_WHOLE), whole - 1), whole, &rest);
}

int64_t bound_of_loss(uint64_t sent, uint64_t k, uint64_t unsent)
{
	int64_t bound;

	if (!sent)
		return BOUND_UNKNOWN;
	bound = bound_share(k, sent) + bound_share(unsent, sent <= UINT64_MAX - unsent ? sent + unsent : UINT64_MAX);
	return bound < BOUND_WHOLE ? bound : BOUND_WHOLE;
}

/* value * part / whole, rounded up, for a part that is not larger. */
static int64_t part_of(int64_t value, uint64_t part, uint64_t whole)
{
	const uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
	uint64_t rest, made;

	if (part >= whole)
		return magnitude < BOUND_UNKNOWN ? (int64_t)magnitude : BOUND_UNKNOWN;
	made = wide_divide(wide_add(wide_multiply(magnitude, part), whole - 1), whole, &rest);
	return made < BOUND_UNKNOWN ? (int64_t)made : BOUND_UNKNOWN;
}

int64_t bound_of_rate(int64_t rate, uint64_t uncovered_ns, uint64_t whole_ns)
{
	return uncovered_ns >= whole_ns ? BOUND_UNKNOWN : part_of(rate, uncovered_ns, whole_ns);
}

int64_t bound_tolerance(int64_t value, int64_t share, int64_t least)
{
	const int64_t part = part_of(value, share > 0 ? (uint64_t)share : 0, BOUND_WHOLE);

	return part > least ? part : least;
}

/*
 * The largest k with 2 P(B <= k - 1) <= 1 - level, where B is binomial with n trials of 1/2: the interval of a median
 * may leave out k - 1 values at each end.
 */
bool bound_sampling_ranks(struct bound_ranks *ranks, uint64_t n, double quantile)
{
	const double outside = erfc(quantile / sqrt(2));
	double term, sum = 0;
	uint64_t k = 0;

	if (n > EXACT_MAX) {
		k = (uint64_t)(((double)n - quantile * sqrt((double)n)) / 2);
	} else {
		term = ldexp(1, -(int)n);
		while (2 * (sum + term) <= outside) {
			sum += term;
			term *= (double)(n - k) / (double)(k + 1);
			k++;
		}
	}
	*ranks = (struct bound_ranks){ .low = k, .high = n + 1 - k };
	return k;
}

struct bound_interval bound_p50_interval(const struct ktrxer_hist *hist)
{
	struct bound_ranks ranks;

	if (!bound_sampling_ranks(&ranks, ktrxer_hist_count(hist), BOUND_QUANTILE_95))
		return (struct bound_interval){ 0 };
	return (struct bound_interval){ true, ktrxer_hist_at(hist, ranks.low), ktrxer_hist_at(hist, ranks.high) };
}

struct bound_interval bound_loss_interval(uint64_t sent, uint64_t lost)
{
	const struct tcp_pair_share share = tcp_pair_share(lost < sent ? lost : sent, sent);

	if (sent < BOUND_SAMPLES_MIN)
		return (struct bound_interval){ 0 };
	return (struct bound_interval){ true, (int64_t)floor(share.low * BOUND_WHOLE),
					(int64_t)ceil(share.high * BOUND_WHOLE) };
}
