/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "clock.h"
#include "cm.h"

#include <stdlib.h>

TEST(conversion_agrees_with_both_clocks)
{
	struct ktrxer_clock_map map;
	struct ktrxer_clock_pair pair;

	ktrxer_clock_map_init(&map);
	for (int i = 0; i < 1000; i++)
		assert_false(ktrxer_clock_map_sample(&map));
	ktrxer_clock_pair_read(&pair);
	assert_true(llabs((int64_t)(ktrxer_clock_map_mono(&map, pair.real_ns) - pair.mono_ns)) <=
		    (int64_t)pair.bound_ns + ktrxer_clock_map_bound(&map) + 2);
	assert_int_equal(map.steps, 0);
}

TEST(samples_narrow_the_bound)
{
	struct ktrxer_clock_map map;
	uint32_t before;

	ktrxer_clock_map_init(&map);
	before = ktrxer_clock_map_bound(&map);
	for (int i = 0; i < 2000; i++)
		ktrxer_clock_map_sample(&map);
	assert_true(ktrxer_clock_map_bound(&map) <= before);
	assert_true(ktrxer_clock_map_bound(&map) >= 1);
}

/* A stamp converted by the one and a stamp converted by the other have the distance that the kernel gave them. */
TEST(all_maps_convert_alike)
{
	struct ktrxer_clock_map first;

	ktrxer_clock_map_init(&first);
	for (int i = 0; i < 1000; i++) {
		struct ktrxer_clock_map map;

		ktrxer_clock_map_init(&map);
		ktrxer_clock_map_sample(&map);
		assert_int_equal(ktrxer_clock_map_offset(&map), ktrxer_clock_map_offset(&first));
	}
}

TEST(a_step_is_found_and_both_sides_of_it_convert)
{
	struct ktrxer_clock_map map;
	const int64_t step = 5 * KTRXER_NS_PER_S;
	struct ktrxer_clock_pair pair;

	ktrxer_clock_map_init(&map);
	/* as if CLOCK_REALTIME had been 5 s behind until now */
	map.low_ns -= step;
	map.high_ns -= step;
	ktrxer_clock_pair_read(&pair);
	assert_true(ktrxer_clock_map_sample(&map));
	assert_int_equal(map.steps, 1);
	assert_true(llabs((int64_t)(ktrxer_clock_map_mono(&map, pair.real_ns) - pair.mono_ns)) < 100000);
	/* a stamp from before the step */
	assert_true(llabs((int64_t)(ktrxer_clock_map_mono_within(&map, pair.real_ns - step, pair.mono_ns - 1000,
								 pair.mono_ns + 1000) -
				    pair.mono_ns)) < 100000);
	assert_true(llabs((int64_t)(ktrxer_clock_map_mono_within(&map, pair.real_ns, pair.mono_ns - 1000,
								 pair.mono_ns + 1000) -
				    pair.mono_ns)) < 100000);
}

/* A reading before the sample that found the step is as near to it as a later one. */
TEST(a_step_is_near_on_both_sides_of_it)
{
	const struct ktrxer_clock_map map = { .steps = 1, .stepped_ns = 10 * (uint64_t)KTRXER_NS_PER_S };

	assert_true(ktrxer_clock_map_stepped(&map, map.stepped_ns - 100));
	assert_true(ktrxer_clock_map_stepped(&map, map.stepped_ns + 100));
	assert_false(ktrxer_clock_map_stepped(&map, map.stepped_ns + 2 * KTRXER_NS_PER_S));
}

static void expect_near(uint64_t got, uint64_t wanted)
{
	assert_true(llabs((int64_t)(got - wanted)) < 100000);
}

/* A stamp from just before a step, read just after it, within a window that is wider than the step. */
TEST(near_a_step_the_later_one_that_can_be_is_right)
{
	for (int sign = -1; sign <= 1; sign += 2) {
		const int64_t step = sign * 200 * KTRXER_NS_PER_MS;
		struct ktrxer_clock_map map;
		struct ktrxer_clock_pair pair;
		uint64_t earliest;

		ktrxer_clock_map_init(&map);
		map.low_ns -= step;
		map.high_ns -= step;
		assert_true(ktrxer_clock_map_sample(&map));
		ktrxer_clock_pair_read(&pair);
		earliest = pair.mono_ns - 2 * KTRXER_NS_PER_S;
		expect_near(ktrxer_clock_map_mono_within(&map, pair.real_ns - step, earliest, ktrxer_now_ns()),
			    pair.mono_ns);
		expect_near(ktrxer_clock_map_mono_within(&map, pair.real_ns, earliest, ktrxer_now_ns()), pair.mono_ns);
	}
}

TEST(a_stamp_that_cannot_be_shows_a_step)
{
	for (int sign = -1; sign <= 1; sign += 2) {
		const int64_t step = sign * 200 * KTRXER_NS_PER_MS;
		struct ktrxer_clock_map map;
		struct ktrxer_clock_pair pair;
		uint64_t got;

		ktrxer_clock_map_init(&map);
		map.low_ns -= step;
		map.high_ns -= step;
		map.last_ns -= step;
		ktrxer_clock_pair_read(&pair);
		/* Nothing has been sampled since the step. */
		assert_true(
			ktrxer_clock_map_mono_checked(&map, pair.real_ns, pair.mono_ns - 10000, ktrxer_now_ns(), &got));
		expect_near(got, pair.mono_ns);
		assert_int_equal(map.steps, 1);
		map.sampled_ns = 0;
		assert_true(
			ktrxer_clock_map_mono_checked(&map, pair.real_ns, pair.mono_ns - 10000, ktrxer_now_ns(), &got));
		expect_near(got, pair.mono_ns);
		assert_int_equal(map.sampled_ns, 0);
	}
}

/* Made while the clock was wrong for a moment that no reading of the clock fell into. */
TEST(a_stamp_from_there_and_back_is_not_believed)
{
	for (int sign = -1; sign <= 1; sign += 2) {
		const int64_t step = sign * 200 * KTRXER_NS_PER_MS;
		struct ktrxer_clock_map map;
		struct ktrxer_clock_pair pair;
		uint64_t got;

		ktrxer_clock_map_init(&map);
		ktrxer_clock_pair_read(&pair);
		assert_false(ktrxer_clock_map_mono_checked(&map, pair.real_ns + step, pair.mono_ns - 10000,
							   ktrxer_now_ns(), &got));
		assert_int_equal(map.steps, 0);
	}
}

/*
 * Steps of 2 ms and less, with stamps that are read late: both differences give a time that can be. A stamp that the
 * step does not lie beside is converted by its own difference; one beside the step may be refused, and is never wrong.
 */
TEST(small_steps_convert_or_are_refused)
{
	static const int64_t steps[] = { 20000, 150000, 900000, 2000000, -20000, -150000, -900000, -2000000 };
	int refused = 0, converted = 0;

	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		const uint64_t at = 500 * (uint64_t)KTRXER_NS_PER_S; /* the step, between two samples 100 us apart */
		struct ktrxer_clock_map map = { .low_ns = 1000000 + steps[i],
						.high_ns = 1000000 + steps[i],
						.last_ns = 1000000,
						.steps = 1,
						.unstepped_ns = at - 50000,
						.stepped_ns = at + 50000 };

		/* Nothing here may take a sample of this machine's clock: it would show a step. */
		for (int64_t made = -10000000; made <= 800000000; made += made > 20000000 ? 7000000 : 11000) {
			const uint64_t t = at + (uint64_t)made, read = t + 4000000;
			const int64_t real = (int64_t)t + 1000000 + (made >= 0 ? steps[i] : 0);
			const bool beside = made > -3000000 && made < 3000000;
			uint64_t got = ktrxer_clock_map_mono_within(&map, real, t - 5000000, read);

			if (beside) {
				struct ktrxer_clock_map copy = map;

				refused++;
				if (!ktrxer_clock_map_mono_checked(&copy, real, t - 5000000, read, &got) ||
				    copy.steps != 1)
					continue;
				refused--;
			}
			converted++;
			if (llabs((int64_t)(got - t)) > 2 * 1000)
				fail_msg("a stamp %lld ns after a step of %lld ns is %lld ns off", (long long)made,
					 (long long)steps[i], (long long)(got - t));
		}
	}
	assert_true(refused > 10 && converted > 5 * refused);
}
