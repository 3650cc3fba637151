/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "send.h"

static struct replay fresh(void)
{
	return (struct replay){ .speed_num = 1, .speed_den = 1 };
}

TEST(distances_are_the_file_s)
{
	struct replay r = fresh();

	assert_int_equal(send_replay_advance(&r, true, 5000000000), 0);
	assert_int_equal(send_replay_advance(&r, true, 5000000001), 1);
	assert_int_equal(send_replay_advance(&r, true, 6000000000), 1000000000);
}

TEST(a_clock_that_is_set_back_adds_nothing_and_the_rest_follows_from_there)
{
	struct replay r = fresh();

	send_replay_advance(&r, true, 3000000001);
	assert_int_equal(send_replay_advance(&r, true, 3000001001), 1000);
	assert_int_equal(send_replay_advance(&r, true, 500), 1000);
	assert_int_equal(send_replay_advance(&r, true, 700), 1200);
	assert_int_equal(send_replay_advance(&r, true, 800), 1300);
	r = fresh();
	send_replay_advance(&r, true, 5001000000);
	assert_int_equal(send_replay_advance(&r, true, 4000000000), 0);
	assert_int_equal(send_replay_advance(&r, true, 4002000000), 2000000);
}

/* Each order of four times one millisecond apart: the file lasts as long as its times do, whatever their order. */
TEST(packets_in_another_order_than_their_times_do_not_make_the_file_longer)
{
	for (unsigned order = 0; order < 256; order++) {
		const unsigned at[4] = { order & 3, order >> 2 & 3, order >> 4 & 3, order >> 6 & 3 };
		struct replay r = fresh();
		uint64_t offset = 0, first;

		if ((1u << at[0] | 1u << at[1] | 1u << at[2] | 1u << at[3]) != 15)
			continue;
		first = at[0];
		for (int64_t block = 0; block < 50; block++)
			for (int i = 0; i < 4; i++)
				offset = send_replay_advance(&r, true, (4 * block + at[i]) * 1000000);
		assert_int_equal(offset, (199 - first) * 1000000);
	}
}

TEST(pairs_that_are_swapped_across_seconds)
{
	struct replay r = fresh();
	uint64_t offset = 0;

	for (int64_t pair = 0; pair < 10; pair++) {
		send_replay_advance(&r, true, (2 * pair + 1) * 5000000000);
		offset = send_replay_advance(&r, true, 2 * pair * 5000000000);
	}
	assert_int_equal(offset, 18 * 5000000000);
}

TEST(packets_without_a_time_leave_with_their_predecessor)
{
	struct replay r = fresh();

	assert_int_equal(send_replay_advance(&r, false, 0), 0);
	assert_int_equal(send_replay_advance(&r, true, 777), 0);
	assert_int_equal(send_replay_advance(&r, false, 0), 0);
	assert_int_equal(send_replay_advance(&r, true, 888), 111);
}

TEST(years_and_the_ends_of_time_do_not_overflow)
{
	struct replay r = fresh();

	send_replay_advance(&r, true, INT64_MIN);
	assert_true(send_replay_advance(&r, true, INT64_MAX) == UINT64_MAX);
	send_replay_advance(&r, true, 0);
	assert_true(send_replay_advance(&r, true, 1000) == UINT64_MAX);
	r = fresh();
	r.max_gap_ns = 1000000;
	send_replay_advance(&r, true, 0);
	assert_int_equal(send_replay_advance(&r, true, 3600LL * 24 * 366 * 1000000000), 1000000);
}

TEST(speed_is_an_exact_fraction)
{
	struct replay r = fresh();

	r.speed_num = 2;
	assert_int_equal(send_replay_scale(&r, 1000000001), 500000000);
	r.speed_num = 1;
	r.speed_den = 3;
	assert_int_equal(send_replay_scale(&r, 1000000001), 3000000003);
	assert_true(send_replay_scale(&r, UINT64_MAX) == UINT64_MAX);
	r.speed_num = 1000000007;
	r.speed_den = 1000000007;
	assert_true(send_replay_scale(&r, 1ULL << 62) == 1ULL << 62);
}
