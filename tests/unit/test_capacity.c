/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "capacity.h"
#include "cm.h"
#include "random_here.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define COUNT 1000
#define BITS (8 * 1500)

/*
 * Pairs over a link of 100 Mbit/s: both packets wait behind cross traffic in half of the cases, each for its own time.
 */
static void make_pairs(struct capacity_pair *pairs, int64_t offset_ns)
{
	for (int i = 0; i < COUNT; i++) {
		double first = random_uniform() < 0.5 ? 0 : 500000 * random_uniform(),
		       last = random_uniform() < 0.5 ? 0 : 300000 * random_uniform();
		double gap = fmax(120000, 120000 + last - first * 0.3);

		pairs[i].first_delay_ns = offset_ns + 2000000 + (int64_t)first;
		pairs[i].last_delay_ns = pairs[i].first_delay_ns + (int64_t)gap;
		pairs[i].gap_ns = (int64_t)gap;
	}
}

static void the_pair_without_queue(void **state)
{
	struct capacity_minimum r;
	struct capacity_pair pairs[COUNT];

	(void)state;
	for (int64_t offset = -4000000000000000000; offset <= 4000000000000000000; offset += 4000000000000000000) {
		make_pairs(pairs, offset);
		assert_int_equal(capacity_minimum_delay(pairs, COUNT, BITS, 2000, 1, &r), 0);
		assert_true(r.accepted);
		assert_int_equal(pairs[r.index].gap_ns, 120000);
		assert_true(fabs(r.capacity.bit_s - 100e6) < 1);
		assert_true(r.capacity.low_bit_s < 100e6 && r.capacity.high_bit_s > 100e6 &&
			    r.capacity.high_bit_s < 100.01e6);
	}
}

static void no_pair_without_queue(void **state)
{
	/* The least delays belong to different pairs. */
	const struct capacity_pair pairs[] = { { 1000, 900000, 899000 },
					       { 500000, 620000, 120000 },
					       { 400000, 700000, 300000 } };
	struct capacity_minimum r;

	(void)state;
	assert_int_equal(capacity_minimum_delay(pairs, 3, BITS, 10000, 1, &r), 0);
	assert_false(r.accepted);
	assert_int_equal(r.excess_ns, 901000 - 1000 - 620000);
}

static void gaps_that_are_none(void **state)
{
	const struct capacity_pair pairs[] = { { 5, 5, 0 }, { 7, 3, -4 }, { 10, 20, 10 } };
	struct capacity_minimum r;

	(void)state;
	assert_int_equal(capacity_minimum_delay(pairs, 2, BITS, 0, 1, &r), -EINVAL);
	assert_int_equal(capacity_minimum_delay(pairs, 0, BITS, 0, 1, &r), -EINVAL);
	assert_int_equal(capacity_minimum_delay(pairs, 3, 0, 0, 1, &r), -EINVAL);
	assert_int_equal(capacity_minimum_delay(pairs, 3, BITS, 0, 10, &r), 0);
	assert_int_equal(r.left_out, 2);
	assert_int_equal(r.index, 2);
	assert_true(isinf(r.capacity.high_bit_s)); /* the clock does not resolve the gap */
}

static void bulks_grow(void **state)
{
	(void)state;
	assert_int_equal(capacity_bulk_length(1, 999, 1000, 200), 10);
	assert_int_equal(capacity_bulk_length(10, 999, 1000, 200), 100);
	assert_int_equal(capacity_bulk_length(100, 999, 1000, 200), 200);
	assert_int_equal(capacity_bulk_length(200, 999, 1000, 200), 200);
	assert_int_equal(capacity_bulk_length(10, 1000, 1000, 200), 10);
	assert_int_equal(capacity_bulk_length(1, -5, 1000, 4294967295u), 10);
	assert_int_equal(capacity_bulk_length(4000000000u, 0, 1000, 4294967295u), 4294967295u);
}

/* 100 Mbit/s, where cross traffic makes a denser mode at 60 Mbit/s, and a sparse one above. */
static void the_mode_above_the_asymptotic_rate(void **state)
{
	struct capacity_modes m;
	int64_t gaps[COUNT];
	const struct capacity_mode *chosen;

	(void)state;
	for (int i = 0; i < COUNT; i++) {
		double u = random_uniform(), rate = u < 0.5   ? 60 + 0.5 * random_normal()
						    : u < 0.9 ? 100 + 0.5 * random_normal()
							      : 30 + 150 * random_uniform();

		gaps[i] = (int64_t)(BITS * 1e3 / rate);
	}
	assert_int_equal(capacity_find_modes(gaps, COUNT, BITS, 1, &m), 0);
	assert_true(m.count >= 2);
	assert_true(fabs(m.modes[0].bit_s - 60e6) < 1e6 && fabs(m.modes[1].bit_s - 100e6) < 1e6);
	assert_true(m.modes[0].densest >= m.modes[1].densest);
	for (size_t i = 0; i < m.count; i++)
		assert_true(m.modes[i].low_bit_s <= m.modes[i].bit_s && m.modes[i].bit_s <= m.modes[i].high_bit_s);
	chosen = capacity_choose_mode(&m, 75e6);
	assert_non_null(chosen);
	assert_true(fabs(chosen->bit_s - 100e6) < 1e6);
	assert_null(capacity_choose_mode(&m, 1e9));
}

static void modes_of_bad_gaps(void **state)
{
	int64_t none[] = { 0, -5, INT64_MIN }, one[] = { 120000, 0 }, equal[] = { 7, 7, 7, 7 };
	struct capacity_modes m;

	(void)state;
	assert_int_equal(capacity_find_modes(none, 3, BITS, 1, &m), -EINVAL);
	assert_int_equal(m.left_out, 3);
	assert_int_equal(capacity_find_modes(none, 0, BITS, 1, &m), -EINVAL);
	assert_int_equal(capacity_find_modes(one, 2, BITS, 1, &m), 0);
	assert_int_equal(m.count, 1);
	assert_true(fabs(m.modes[0].bit_s - 100e6) < 1);
	assert_int_equal(capacity_find_modes(equal, 4, BITS, 1, &m), 0);
	assert_int_equal(m.count, 1);
	assert_int_equal(m.modes[0].count, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_pair_without_queue),
		cmocka_unit_test(no_pair_without_queue),
		cmocka_unit_test(gaps_that_are_none),
		cmocka_unit_test(bulks_grow),
		cmocka_unit_test(the_mode_above_the_asymptotic_rate),
		cmocka_unit_test(modes_of_bad_gaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
