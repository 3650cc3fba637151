/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "capacity.h"
#include "cm.h"
#include "random_here.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define COUNT 1000
#define BITS (8 * 1500)

/* 100 Mbit/s, where cross traffic makes a denser mode at 60 Mbit/s, and a sparse one above. */
TEST(modes_of_cross_traffic_and_of_the_link)
{
	struct capacity_modes m;
	int64_t gaps[COUNT];

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
}

TEST(modes_of_bad_gaps)
{
	int64_t none[] = { 0, -5, INT64_MIN }, one[] = { 120000, 0 }, equal[] = { 7, 7, 7, 7 };
	struct capacity_modes m;

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
