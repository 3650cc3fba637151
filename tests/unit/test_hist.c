/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "draw_here.h"
#include "hist.h"

#include <stdio.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int64_t clamp(int64_t v)
{
	return v > KTRXER_HIST_LIMIT ? KTRXER_HIST_LIMIT : v < -KTRXER_HIST_LIMIT ? -KTRXER_HIST_LIMIT : v;
}

static uint64_t distance(int64_t a, int64_t b)
{
	return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

static void assert_close(int64_t got, int64_t want)
{
	uint64_t magnitude = want < 0 ? (uint64_t)-want : (uint64_t)want;
	uint64_t off = distance(got, want), allowed = magnitude < 2048 ? 0 : magnitude / 1000;

	if (off > allowed) {
		fprintf(stderr, "got %lld, want %lld\n", (long long)got, (long long)want);
		fail();
	}
}

/* Type 1 by definition, on a sorted array. */
static int64_t exact_quantile(const int64_t *sorted, uint64_t n, uint32_t ppm)
{
	uint64_t rank = (n * ppm + 999999) / 1000000;

	return sorted[rank ? rank - 1 : 0];
}

static void compare(struct ktrxer_hist *hist, int64_t *values, uint64_t n)
{
	static const uint32_t ppm[] = { 0,      1,      10,     1000,   10000,  100000, 250000, 333333, 499999,
					500000, 500001, 750000, 900000, 990000, 999000, 999999, 1000000 };
	double sum = 0, largest = 1;

	for (uint64_t i = 0; i < n; i++) {
		double size = values[i] < 0 ? -(double)values[i] : (double)values[i];

		values[i] = clamp(values[i]);
		sum += (double)values[i];
		largest = size > largest ? size : largest;
	}
	qsort(values, n, sizeof(*values), by_value);
	assert_int_equal(ktrxer_hist_count(hist), n);
	assert_true(ktrxer_hist_min(hist) == values[0]);
	assert_true(ktrxer_hist_max(hist) == values[n - 1]);
	assert_true(ktrxer_hist_quantile(hist, 0) == values[0]);
	assert_true(ktrxer_hist_quantile(hist, 1000000) == values[n - 1]);
	for (size_t i = 0; i < sizeof(ppm) / sizeof(ppm[0]); i++)
		assert_close(ktrxer_hist_quantile(hist, ppm[i]), exact_quantile(values, n, ppm[i]));
	assert_true(ktrxer_hist_mean(hist) - sum / (double)n <= largest * 1e-9);
	assert_true(ktrxer_hist_mean(hist) - sum / (double)n >= -largest * 1e-9);
}

static int64_t shape(int kind, uint64_t i)
{
	uint64_t r = draw();

	switch (kind) {
	case 0:
		return (int64_t)(r % 2048); /* exact range */
	case 1:
		return (int64_t)(r % 100000); /* lateness */
	case 2:
		return (int64_t)(r % 200000) - 100000; /* signed */
	case 3:
		return (int64_t)(r >> (r % 64)); /* all magnitudes */
	case 4:
		return (int64_t)r >> (draw() % 64); /* and signs */
	case 5:
		return -(int64_t)(r % 5000) - 1; /* all negative */
	case 6:
		return i & 1 ? INT64_MAX : INT64_MIN; /* beyond the ends */
	case 7:
		return ((int64_t)1 << (r % 63)) - (int64_t)(draw() % 3) + 1; /* edges of buckets */
	case 8:
		return -(((int64_t)1 << (r % 63)) - (int64_t)(draw() % 3) + 1);
	case 9:
		return 123456789; /* one value */
	default:
		return i % 1000 ? 5 : 50000000; /* rare outliers */
	}
}

TEST(agrees_with_sorted_arrays)
{
	enum { MOST = 20000 };
	int64_t *values = malloc(MOST * sizeof(*values));

	assert_non_null(values);
	seed = 88172645463325252ULL;
	for (int kind = 0; kind <= 10; kind++) {
		for (uint64_t n = 1; n <= MOST; n = n * 3 + draw() % 3) {
			struct ktrxer_hist *hist = ktrxer_hist_new();

			assert_non_null(hist);
			for (uint64_t i = 0; i < n; i++) {
				values[i] = shape(kind, i);
				ktrxer_hist_record(hist, values[i]);
			}
			compare(hist, values, n);
			ktrxer_hist_free(hist);
		}
	}
	free(values);
}

TEST(empty_is_zero)
{
	struct ktrxer_hist *hist = ktrxer_hist_new();

	assert_int_equal(ktrxer_hist_count(hist), 0);
	assert_int_equal(ktrxer_hist_quantile(hist, 500000), 0);
	assert_int_equal(ktrxer_hist_min(hist), 0);
	assert_int_equal(ktrxer_hist_max(hist), 0);
	assert_int_equal(ktrxer_hist_iqr(hist), 0);
	assert_true(ktrxer_hist_mean(hist) == 0);
	ktrxer_hist_merge(hist, hist);
	assert_int_equal(ktrxer_hist_count(hist), 0);
	assert_int_equal(ktrxer_hist_max(hist), 0);
	ktrxer_hist_free(hist);
	ktrxer_hist_free(NULL);
}

TEST(one_value_is_itself)
{
	static const int64_t values[] = {
		0, 1, -1, 2047, 2048, -2047, -2048, 999999999, INT64_MAX, INT64_MIN, (int64_t)1 << 62
	};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct ktrxer_hist *hist = ktrxer_hist_new();

		ktrxer_hist_record(hist, values[i]);
		assert_true(ktrxer_hist_quantile(hist, 500000) == clamp(values[i]));
		assert_true(ktrxer_hist_quantile(hist, UINT32_MAX) == clamp(values[i]));
		assert_true(ktrxer_hist_mean(hist) == (double)clamp(values[i]));
		ktrxer_hist_free(hist);
	}
}

TEST(merges)
{
	enum { N = 5000 };
	static int64_t both[2 * N];
	struct ktrxer_hist *a = ktrxer_hist_new(), *b = ktrxer_hist_new();

	seed = 42;
	for (int i = 0; i < N; i++) {
		both[i] = shape(2, 0);
		ktrxer_hist_record(a, both[i]);
		both[N + i] = shape(4, 0);
		ktrxer_hist_record(b, both[N + i]);
	}
	ktrxer_hist_merge(a, b);
	compare(a, both, 2 * N);
	ktrxer_hist_free(a);
	ktrxer_hist_free(b);
}

TEST(counts_past_32_bits)
{
	struct ktrxer_hist *hist = ktrxer_hist_new();

	ktrxer_hist_record(hist, -100);
	ktrxer_hist_record(hist, 200);
	ktrxer_hist_record(hist, 200);
	ktrxer_hist_record(hist, 30000);
	for (int i = 0; i < 32; i++)
		ktrxer_hist_merge(hist, hist);
	/* counters stand at a multiple of 2^32 now, so these go past it by the path of record() too */
	for (int i = 0; i < 3; i++)
		ktrxer_hist_record(hist, 200);
	assert_true(ktrxer_hist_count(hist) == ((uint64_t)4 << 32) + 3);
	assert_int_equal(ktrxer_hist_quantile(hist, 249999), -100);
	assert_int_equal(ktrxer_hist_quantile(hist, 250000), 200);
	assert_int_equal(ktrxer_hist_quantile(hist, 750000), 200);
	assert_close(ktrxer_hist_quantile(hist, 750001), 30000);
	for (int i = 0; i < 31; i++)
		ktrxer_hist_merge(hist, hist); /* 2^65 would be next */
	ktrxer_hist_free(hist);
}

/* The wrap of a counter in record() itself: 2^32 - 1 by merging, then one more. */
TEST(record_carries)
{
	struct ktrxer_hist *hist = ktrxer_hist_new();

	for (int i = 0; i < 32; i++) {
		ktrxer_hist_merge(hist, hist);
		ktrxer_hist_record(hist, 9);
	}
	assert_true(ktrxer_hist_count(hist) == UINT32_MAX);
	ktrxer_hist_record(hist, 9);
	ktrxer_hist_record(hist, 9);
	ktrxer_hist_record(hist, 10);
	assert_int_equal(ktrxer_hist_quantile(hist, 999999), 9);
	assert_int_equal(ktrxer_hist_quantile(hist, 500000), 9);
	ktrxer_hist_free(hist);
}
