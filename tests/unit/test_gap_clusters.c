/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "estimate_sort.h"
#include "gap_clusters.h"
#include "random_here.h"

#define COUNT 400

static void make(int64_t *gaps, double share_low, double low, double low_sigma, double high, double high_sigma)
{
	for (int i = 0; i < COUNT; i++) {
		bool is_low = random_uniform() < share_low;

		gaps[i] = (int64_t)(is_low ? low + low_sigma * random_normal() : high + high_sigma * random_normal());
	}
	estimate_sort(gaps, COUNT);
}

TEST(the_period_of_a_timer)
{
	static const double periods[] = { 20000, 50000, 125000, 250000 };
	struct gap_clusters c;
	int64_t gaps[COUNT];

	for (int i = 0; i < 4; i++) {
		make(gaps, 0.7, 800, 200, periods[i], 1500);
		gap_clusters(gaps, COUNT, &c);
		assert_true(c.separate);
		assert_true(c.high_ns > periods[i] - 1000 && c.high_ns < periods[i] + 1000);
		assert_int_equal(c.low_count + c.high_count, COUNT);
	}
}

TEST(outliers_are_left_out)
{
	struct gap_clusters c;
	int64_t gaps[COUNT];

	make(gaps, 0.5, 900, 200, 125000, 2000);
	for (int i = COUNT - 5; i < COUNT; i++)
		gaps[i] = 90000000 + i;
	gap_clusters(gaps, COUNT, &c);
	assert_int_equal(c.left_out, 5);
	assert_true(c.separate && c.high_ns > 124000 && c.high_ns < 126000);
}

TEST(one_group_is_no_coalescing)
{
	struct gap_clusters c;
	int64_t gaps[COUNT];

	make(gaps, 1, 79000, 1500, 0, 0);
	gap_clusters(gaps, COUNT, &c);
	assert_false(c.separate);
	for (int i = 0; i < COUNT; i++)
		gaps[i] = 1000 + 300 * i; /* spread evenly */
	gap_clusters(gaps, COUNT, &c);
	assert_false(c.separate);
	for (int i = 0; i < COUNT; i++)
		gaps[i] = 5;
	gap_clusters(gaps, COUNT, &c);
	assert_false(c.separate);
}

/* Pairs that cross traffic parts: two groups, but the lower one is the link's transmission time. */
TEST(cross_traffic_makes_two_groups)
{
	struct gap_clusters c;
	int64_t gaps[COUNT];

	make(gaps, 0.6, 12100, 100, 250000, 3000);
	gap_clusters(gaps, COUNT, &c);
	assert_true(c.separate);
	assert_true(c.low_ns > 12000 && c.low_ns < 12200);
}

TEST(few_gaps)
{
	const int64_t gaps[] = { 1, 2, 100000, 100001, 100002, 100003 };
	struct gap_clusters c;

	for (size_t count = 0; count <= 6; count++) {
		gap_clusters(gaps, count, &c);
		assert_false(c.separate);
	}
}
