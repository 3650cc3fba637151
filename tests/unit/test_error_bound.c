/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "error_bound.h"
#include "hist.h"

#include <math.h>
#include <stdlib.h>

static struct ktrxer_hist *hist_of(const int64_t *values, size_t n)
{
	struct ktrxer_hist *hist = ktrxer_hist_new();

	assert_non_null(hist);
	for (size_t i = 0; i < n; i++)
		ktrxer_hist_record(hist, values[i]);
	return hist;
}

static void ranks_are(uint64_t n, uint64_t k, uint64_t low, uint64_t high)
{
	const struct bound_ranks ranks = bound_median_ranks(n, k);

	assert_int_equal(ranks.low, low);
	assert_int_equal(ranks.high, high);
}

TEST(ranks_of_a_median_with_unknown_values)
{
	ranks_are(0, 0, 0, 0);
	ranks_are(1, 0, 1, 1);
	ranks_are(2, 0, 1, 1);
	ranks_are(2, 1, 1, 2);
	ranks_are(1, 1, 0, 1);
	ranks_are(100, 1, 50, 51);
	ranks_are(101, 0, 51, 51);
	ranks_are(1000, 20, 490, 510);
	ranks_are(3, 100, 0, 3);
	ranks_are(UINT64_MAX, 1, UINT64_MAX / 2, UINT64_MAX / 2 + 1);
	ranks_are(1, UINT64_MAX, 0, 1);
}

/* Each way to fill in the unknown values gives a median within the bound, and one of them is at its end. */
TEST(the_bound_holds_for_any_unknown_values)
{
	for (size_t n = 1; n <= 9; n++)
		for (size_t k = 0; k < n; k++) {
			int64_t values[9], all[18];
			struct bound_median m;
			bool end = false;

			for (size_t i = 0; i < n; i++)
				values[i] = (int64_t)(i * i * 10);
			m = bound_of_median(values, n, k, 0);
			assert_true(m.bound != BOUND_UNKNOWN);
			for (size_t below = 0; below <= k; below++) {
				int64_t median;

				for (size_t i = 0; i < n + k; i++)
					all[i] = i < below ? 0 : i < below + n ? values[i - below] : 1000000;
				median = all[(n + k - 1) / 2];
				assert_true(llabs(median - m.value) <= m.bound);
				end |= llabs(median - m.value) == m.bound;
			}
			assert_true(end);
			assert_true(k || m.bound == 0);
		}
}

TEST(medians_of_few_and_of_huge_values)
{
	static const int64_t two[] = { 10, 20 }, huge[] = { INT64_MIN, INT64_MAX - 1 },
			     lost[] = { 10, BOUND_LOST, BOUND_LOST };
	struct bound_median m = bound_of_median(two, 0, 0, 0);

	assert_true(m.bound == BOUND_UNKNOWN);
	m = bound_of_median(two, 1, 0, 0);
	assert_true(m.value == 10 && m.bound == 0);
	m = bound_of_median(two, 2, 1, 0);
	assert_true(m.value == 10 && m.bound == 10);
	m = bound_of_median(two, 2, 2, 0);
	assert_true(m.bound == BOUND_UNKNOWN);
	m = bound_of_median(two, 2, UINT64_MAX, 0);
	assert_true(m.bound == BOUND_UNKNOWN);
	m = bound_of_median(huge, 2, 1, 0);
	assert_true(m.bound == BOUND_UNKNOWN);
	m = bound_of_median(lost, 3, 1, 0); /* half of the probes are lost */
	assert_true(m.value == BOUND_LOST && m.bound == 0);
	m = bound_of_median(lost, 2, 0, 0);
	assert_true(m.value == 10 && m.bound == 0);
	m = bound_of_median(lost, 2, 1, 0);
	assert_true(m.bound == BOUND_UNKNOWN);
}

TEST(delayed_values_move_the_median_down_only)
{
	static const int64_t values[] = { 10, 20, 30, 40, 50 };

	assert_int_equal(bound_of_median(values, 5, 0, 1).bound, 10);
	assert_int_equal(bound_of_median(values, 5, 1, 1).bound, 20);
	assert_int_equal(bound_of_median(values, 5, 0, 3).bound, 30); /* a delay is at least 0 */
	assert_int_equal(bound_of_median(values, 5, 0, UINT64_MAX).bound, 30);
}

TEST(p50_of_a_histogram)
{
	int64_t values[100];
	struct ktrxer_hist *hist;

	for (int i = 0; i < 100; i++)
		values[i] = 1000 + i; /* a bucket each */
	hist = hist_of(values, 100);
	assert_int_equal(bound_of_p50(hist, 0), 0);
	assert_int_equal(bound_of_p50(hist, 10), 5);
	assert_int_equal(bound_of_p50(hist, 98), 49);
	assert_true(bound_of_p50(hist, 100) == BOUND_UNKNOWN);
	ktrxer_hist_free(hist);
	hist = hist_of(values, 0);
	assert_true(bound_of_p50(hist, 0) == BOUND_UNKNOWN);
	assert_true(bound_of_p50(NULL, 0) == BOUND_UNKNOWN);
	assert_false(bound_p50_interval(hist).known);
	ktrxer_hist_free(hist);
	hist = hist_of((const int64_t[]){ -KTRXER_HIST_LIMIT, KTRXER_HIST_LIMIT }, 2);
	assert_true(bound_of_p50(hist, 1) == BOUND_UNKNOWN); /* 2^63 */
	ktrxer_hist_free(hist);
}

TEST(loss)
{
	assert_true(bound_of_loss(0, 0, 0) == BOUND_UNKNOWN);
	assert_true(bound_of_loss(0, 0, 5) == BOUND_UNKNOWN);
	assert_int_equal(bound_of_loss(1, 0, 0), 0);
	assert_int_equal(bound_of_loss(1000, 5, 0), 500);
	assert_int_equal(bound_of_loss(995, 0, 5), 500);
	assert_int_equal(bound_of_loss(3, 1, 0), 33334);
	assert_int_equal(bound_of_loss(2, 1, 2), BOUND_WHOLE);
	assert_int_equal(bound_of_loss(2, 5, 0), BOUND_WHOLE);
	assert_int_equal(bound_of_loss(UINT64_MAX, 1, UINT64_MAX), BOUND_WHOLE);
	assert_int_equal(bound_of_loss(UINT64_MAX, 1, 0), 1);
}

TEST(rates_and_tolerances)
{
	assert_int_equal(bound_of_rate(100000, 0, 10), 0);
	assert_int_equal(bound_of_rate(100000, 1, 10), 10000);
	assert_int_equal(bound_of_rate(1, 1, UINT64_MAX), 1);
	assert_true(bound_of_rate(100000, 10, 10) == BOUND_UNKNOWN);
	assert_true(bound_of_rate(100000, 0, 0) == BOUND_UNKNOWN);
	assert_int_equal(bound_of_rate(INT64_MAX, 1, 2), INT64_MAX / 2 + 1);
	assert_int_equal(bound_tolerance(1000000, BOUND_TOLERANCE, BOUND_TOLERANCE_NS), 50000);
	assert_int_equal(bound_tolerance(1000, BOUND_TOLERANCE, BOUND_TOLERANCE_NS), 20000);
	assert_int_equal(bound_tolerance(-1000000, BOUND_TOLERANCE, BOUND_TOLERANCE_NS), 50000);
	assert_int_equal(bound_tolerance(0, BOUND_TOLERANCE, 0), 0);
	assert_true(bound_tolerance(INT64_MIN, BOUND_WHOLE, 0) == INT64_MAX);
}

/* 95 % by the binomial distribution, and no narrower interval has that. */
TEST(sampling_interval_of_a_median)
{
	struct bound_ranks ranks;

	for (uint64_t n = 0; n < BOUND_SAMPLES_MIN; n++)
		assert_false(bound_sampling_ranks(&ranks, n, BOUND_QUANTILE_95));
	for (uint64_t n = BOUND_SAMPLES_MIN; n <= 200; n++) {
		double outside = 0, term = ldexp(1, -(int)n);

		assert_true(bound_sampling_ranks(&ranks, n, BOUND_QUANTILE_95));
		assert_int_equal(ranks.low + ranks.high, n + 1);
		for (uint64_t i = 0; i < ranks.low; i++) {
			outside += 2 * term;
			term *= (double)(n - i) / (double)(i + 1);
		}
		assert_true(outside <= 0.05);
		assert_true(outside + 2 * term > 0.05);
	}
	assert_true(bound_sampling_ranks(&ranks, 10000, BOUND_QUANTILE_95));
	assert_in_range(ranks.low, 4900, 4904);
}

TEST(intervals)
{
	struct bound_interval i;

	assert_false(bound_loss_interval(0, 0).known);
	assert_false(bound_loss_interval(5, 0).known);
	i = bound_loss_interval(100, 0);
	assert_true(i.known && i.low == 0);
	assert_in_range(i.high, 3690, 3710); /* 3.7 % */
	i = bound_loss_interval(10, 10);
	assert_true(i.high == BOUND_WHOLE);
	assert_in_range(i.low, 72200, 72300);
	assert_true(bound_loss_interval(10, 11).high == BOUND_WHOLE);
}

TEST(values_of_ranks)
{
	struct ktrxer_hist *hist = hist_of((const int64_t[]){ -5, -3, 0, 7, 7, 9 }, 6);
	static const int64_t by_rank[] = { -5, -5, -3, 0, 7, 7, 9, 9 };

	for (uint64_t rank = 0; rank < 8; rank++)
		assert_int_equal(ktrxer_hist_at(hist, rank), by_rank[rank]);
	assert_int_equal(ktrxer_hist_at(NULL, 1), 0);
	ktrxer_hist_free(hist);
}
