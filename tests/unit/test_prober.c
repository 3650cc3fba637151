/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How long a prober spins before a send time, from made wake-ups. */
#include "cm.h"

#include "prober.h"

#define US ((uint64_t)1000)
#define MOST (200 * US)

/* The margin after many wake-ups of which `late[i % 4]` is the lateness. */
static uint64_t settled(const uint64_t late[4])
{
	uint64_t margin = MOST / 2;

	for (int i = 0; i < 2000; i++) {
		margin = prober_margin(margin, MOST, late[i % 4]);
		assert_in_range(margin, 1, MOST);
	}
	return margin;
}

TEST(three_of_four_wake_ups_keep_the_margin)
{
	assert_in_range(settled((uint64_t[]){ 10 * US, 20 * US, 40 * US, 40 * US }), 38 * US, 42 * US);
	assert_in_range(settled((uint64_t[]){ 60 * US, 60 * US, 60 * US, 60 * US }), 58 * US, 62 * US);
	assert_in_range(settled((uint64_t[]){ 10 * US, 180 * US, 180 * US, 180 * US }), 178 * US, 182 * US);
}

TEST(a_wake_up_that_no_margin_covers_does_not_count)
{
	assert_in_range(settled((uint64_t[]){ 30 * US, 5000 * US, 30 * US, 900 * US }), 28 * US, 32 * US);
	assert_int_equal(settled((uint64_t[]){ 201 * US, 201 * US, 300 * US, 5000 * US }), MOST / 2);
}
