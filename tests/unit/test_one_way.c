/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One-way delays from made round trips whose delays and clock offset are known. */
#include "cm.h"

#include "one_way.h"

#include <stdlib.h>

#define US 1000LL
#define MS 1000000LL
/* The reflector's CLOCK_REALTIME is so far ahead; this host's CLOCK_REALTIME is so far ahead of its CLOCK_MONOTONIC. */
#define OFFSET (250 * MS)
#define BASE (1700000000LL * 1000 * MS)

static struct one_way *begin(bool synchronised, uint64_t bound_ns)
{
	const struct clock_sync own = { .synchronised = synchronised, .bound_ns = bound_ns };
	struct one_way *w = one_way_new(BASE);

	assert_non_null(w);
	one_way_own_clock(w, &own);
	return w;
}

/* A round trip of these true delays; the shares of the two hosts' queues are in the delays. */
static struct stamp_sample round_trip(uint64_t number, int64_t up, int64_t down, int64_t offset)
{
	const uint64_t t1 = 1000 * MS + number * 10 * MS;
	struct stamp_sample s = { .number = number,
				  .at_ns = t1,
				  .t1_ns = t1,
				  .own_queue_ns = -1,
				  .far_queue_ns = -1,
				  .bound_ns = 300,
				  .peer_error_ns = UINT64_MAX };

	s.t2_real_ns = (int64_t)t1 + up + BASE + offset;
	s.t3_real_ns = s.t2_real_ns + 20 * US + 1; /* + 1: stamps of nanoseconds */
	s.t4_ns = (uint64_t)(s.t3_real_ns - BASE - offset + down);
	s.up_ns = s.t2_real_ns - (int64_t)s.t1_ns;
	s.down_ns = (int64_t)s.t4_ns - s.t3_real_ns;
	return s;
}

static bool is_near(int64_t value, int64_t truth, uint64_t bound)
{
	return value - truth <= (int64_t)bound && truth - value <= (int64_t)bound;
}

TEST(nothing_is_known_without_round_trips)
{
	struct one_way *w = begin(false, UINT64_MAX);
	struct one_way_result r;

	assert_int_equal(one_way_result(w, &r), 0);
	assert_true(!r.known && !r.steps && !r.synchronised && ktrxer_hist_count(r.delays.up) == 0 &&
		    ktrxer_hist_count(r.delays.down) == 0);
	one_way_free(w);
}

/* The path is asymmetric: the true delays must lie within the uncertainty that is stated. */
TEST(the_truth_lies_within_the_uncertainty)
{
	struct one_way *w = begin(false, UINT64_MAX);
	struct one_way_result r;

	for (uint64_t i = 0; i < 500; i++) {
		const struct stamp_sample s = round_trip(i, 200 * US + (int64_t)(i * 37 % 50) * US,
							 700 * US + (int64_t)(i * 53 % 90) * US, OFFSET);

		assert_int_equal(one_way_add(w, &s), 0);
	}
	assert_int_equal(one_way_result(w, &r), 0);
	assert_true(r.known && !r.claimed && !r.contradicted && !r.steps);
	assert_true(is_near(r.offset_ns, OFFSET, r.clock_ns));
	assert_true(r.clock_ns <= 500 * US); /* half the smallest round trip, and what clocks may change in between */
	assert_true(r.total_ns == r.clock_ns + r.skew_ns + r.host_ns + r.resolution_ns && r.host_ns == 300 &&
		    r.resolution_ns == 1);
	assert_true(ktrxer_hist_count(r.delays.up) == 500 && ktrxer_hist_count(r.delays.down) == 500);
	/* A histogram keeps values to one part in a thousand or better. */
	assert_true(is_near(ktrxer_hist_min(r.delays.up), 200 * US, r.total_ns + 2 * US) &&
		    is_near(ktrxer_hist_max(r.delays.down), 789 * US, r.total_ns + 2 * US));
	one_way_free(w);
}

/* Clocks that state their error narrow the interval of the offset. */
TEST(claims_of_the_clocks_are_used)
{
	struct one_way *w = begin(true, 10 * US);
	struct one_way_result r;

	for (uint64_t i = 0; i < 200; i++) {
		struct stamp_sample s = round_trip(i, 200 * US, 700 * US, 15 * US);

		s.peer_synchronised = true;
		s.peer_error_ns = 10 * US;
		assert_int_equal(one_way_add(w, &s), 0);
	}
	assert_int_equal(one_way_result(w, &r), 0);
	assert_true(r.known && r.synchronised && r.claimed && !r.contradicted);
	assert_true(r.clock_ns <= 41 * US && is_near(r.offset_ns, 15 * US, r.clock_ns));
	assert_true(is_near(ktrxer_hist_quantile(r.delays.up, 500000), 200 * US, r.total_ns + 2 * US));
	one_way_free(w);
}

/* The round trips prove an offset of 250 ms: one of the claims of 10 us is wrong, and neither is used. */
TEST(claims_that_cannot_be_are_not_used)
{
	struct one_way *w = begin(true, 10 * US);
	struct one_way_result r;

	for (uint64_t i = 0; i < 200; i++) {
		struct stamp_sample s = round_trip(i, 200 * US, 700 * US, OFFSET);

		s.peer_synchronised = true;
		s.peer_error_ns = 10 * US;
		assert_int_equal(one_way_add(w, &s), 0);
	}
	assert_int_equal(one_way_result(w, &r), 0);
	assert_true(r.known && r.contradicted && !r.claimed && is_near(r.offset_ns, OFFSET, r.clock_ns));
	one_way_free(w);
}

/* Only the last round trips are short enough to prove the claims wrong, and they are far from the middle of the run. */
TEST(claims_are_tested_by_each_round_trip)
{
	struct one_way *w = begin(true, 10 * US);
	struct one_way_result r;

	for (uint64_t i = 0; i < 2000; i++) {
		const int64_t delay = i < 1995 ? 10 * MS : 100 * US;
		struct stamp_sample s = round_trip(i, delay, delay, 5 * MS);

		s.peer_synchronised = true;
		s.peer_error_ns = 10 * US;
		assert_int_equal(one_way_add(w, &s), 0);
	}
	assert_int_equal(one_way_result(w, &r), 0);
	assert_true(r.known && r.contradicted && !r.claimed && is_near(r.offset_ns, 5 * MS, r.clock_ns));
	assert_int_equal(ktrxer_hist_count(r.delays.up), 2000);
	assert_true(is_near(ktrxer_hist_quantile(r.delays.up, 500000), 10 * MS, r.total_ns + 20 * US));
	one_way_free(w);
}

/* One sample of a clock that is not synchronised is enough to use no claim of this clock. */
TEST(the_worst_claim_counts)
{
	struct one_way *w = begin(true, 10 * US);
	struct one_way_result r;

	for (uint64_t i = 0; i < 50; i++) {
		struct stamp_sample s = round_trip(i, 200 * US, 700 * US, 0);

		s.peer_synchronised = i != 20;
		s.peer_error_ns = 10 * US;
		assert_int_equal(one_way_add(w, &s), 0);
	}
	assert_int_equal(one_way_result(w, &r), 0);
	assert_true(r.known && !r.synchronised && !r.claimed);
	one_way_free(w);
}

/* A step is reported once, and the result is of the part with the most round trips. */
TEST(a_step_divides_the_run)
{
	struct one_way *w = begin(false, UINT64_MAX);
	struct one_way_result r;
	int steps = 0;

	for (uint64_t i = 0; i < 400; i++) {
		const struct stamp_sample s = round_trip(i, 300 * US, 300 * US, i < 100 ? OFFSET : OFFSET + 3000 * MS);
		const int rc = one_way_add(w, &s);

		assert_true(rc >= 0);
		steps += rc;
	}
	assert_int_equal(one_way_result(w, &r), 0);
	assert_true(steps == 1 && r.steps == 1 && r.known && is_near(r.offset_ns, OFFSET + 3000 * MS, r.clock_ns));
	assert_true(ktrxer_hist_count(r.delays.up) >= 290 && ktrxer_hist_count(r.delays.up) <= 300);
	assert_true(is_near(ktrxer_hist_max(r.delays.up), 300 * US, r.total_ns + 2 * US));
	one_way_free(w);
}

/* The far host's queue of 5 ms is part of the delay down, and does not widen the bound of the offset. */
TEST(queues_do_not_widen_the_bound)
{
	struct one_way *w = begin(false, UINT64_MAX);
	struct one_way_result r;

	for (uint64_t i = 0; i < 200; i++) {
		struct stamp_sample s = round_trip(i, 200 * US, 200 * US + 5 * MS, OFFSET);

		s.far_queue_ns = 5 * MS;
		assert_int_equal(one_way_add(w, &s), 0);
	}
	assert_int_equal(one_way_result(w, &r), 0);
	assert_true(r.known && r.clock_ns <= 220 * US);
	assert_true(is_near(ktrxer_hist_quantile(r.delays.down, 500000), 200 * US + 5 * MS, r.total_ns + 10 * US));
	one_way_free(w);
}

/* The far clock is stepped by 8 ms in a path of 2 ms up and 18 ms down: no round trip contradicts another one. */
static struct one_way_result stepped_within_the_round_trip(struct one_way *w, bool reported, bool restarted,
							   int64_t step)
{
	struct one_way_result r;

	for (uint64_t i = 0; i < 400; i++) {
		const int64_t now = i < 150 ? 0 : step;
		struct stamp_sample s = round_trip(i, 2 * MS, 18 * MS, OFFSET + now);

		s.dwell_ns = s.t3_real_ns - s.t2_real_ns;
		s.clocks_known = reported;
		s.far_adjusted =
			(struct clock_adjust){ .ns = now + (restarted && i >= 300 ? 77777777 : 0), .bound_ns = 50 };
		s.own_adjusted = (struct clock_adjust){ .ns = 123456789, .bound_ns = 50, .at_ns = (int64_t)s.t4_ns };
		s.far_origin = restarted && i >= 300;
		one_way_clocks(w, &s);
		assert_int_equal(one_way_add(w, &s), 0);
	}
	assert_int_equal(one_way_result(w, &r), 0);
	assert_true(r.known && r.steps == 0);
	return r;
}

TEST(a_reported_step_leaves_no_error)
{
	const int64_t steps[] = { 8 * MS, -8 * MS, 300 * US, 5000 * MS };

	for (int i = 0; i < 4; i++) {
		for (int restarted = 0; restarted < 2; restarted++) {
			struct one_way *w = begin(false, UINT64_MAX);
			const struct one_way_result r = stepped_within_the_round_trip(w, true, restarted, steps[i]);

			assert_true(r.far_clock.changes == 1 && r.far_clock.largest_ns == steps[i]);
			assert_true(r.own_clock.changes == 0 && r.adjusted == !restarted);
			assert_int_equal(r.delays.contradicted, 1);
			assert_true(is_near(ktrxer_hist_min(r.delays.up), 2 * MS, r.total_ns + 20 * US) &&
				    is_near(ktrxer_hist_max(r.delays.up), 2 * MS, r.total_ns + 20 * US) &&
				    is_near(ktrxer_hist_min(r.delays.down), 18 * MS, r.total_ns + 20 * US) &&
				    is_near(ktrxer_hist_max(r.delays.down), 18 * MS, r.total_ns + 20 * US));
			/* The offset is that of the end, with the step. */
			assert_true(is_near(r.offset_ns, OFFSET + steps[i], r.clock_ns + 20 * US));
			assert_true(r.total_ns < 10 * MS + 300 * US);
			one_way_free(w);
		}
	}
}

/* The purpose of the report. If this changes, decision 57 is to be written anew. */
/* It looks like a rate beyond the model, which widens the bound. */
TEST(a_step_that_is_not_reported_is_within_the_bound)
{
	struct one_way *w = begin(false, UINT64_MAX);
	const struct one_way_result r = stepped_within_the_round_trip(w, false, false, 8 * MS);

	assert_true(r.far_clock.changes == 0 && !r.adjusted);
	assert_true(is_near(ktrxer_hist_min(r.delays.down), 18 * MS, r.total_ns));
	one_way_free(w);
}

/* Claims of synchronisation are of CLOCK_REALTIME, which is slewed by 100 ppm against the oscillator. */
TEST(claims_hold_for_clocks_that_are_slewed)
{
	struct one_way *w = begin(true, 10 * US);
	struct one_way_result r;

	for (uint64_t i = 0; i < 2000; i++) {
		const int64_t slewed = (int64_t)i * 1000;
		struct stamp_sample s = round_trip(i, 200 * US, 700 * US, 15 * US);

		s.peer_synchronised = s.clocks_known = true;
		s.peer_error_ns = 10 * US;
		s.far_adjusted = (struct clock_adjust){ .ns = slewed, .bound_ns = 50 };
		s.own_adjusted = (struct clock_adjust){ .ns = 5, .bound_ns = 50, .at_ns = (int64_t)s.t4_ns };
		one_way_clocks(w, &s);
		assert_int_equal(one_way_add(w, &s), 0);
	}
	assert_int_equal(one_way_result(w, &r), 0);
	assert_true(r.claimed && !r.contradicted && r.far_clock.changes == 0);
	assert_true(r.clock_ns <= 41 * US && is_near(r.offset_ns, 15 * US, r.clock_ns));
	assert_true(is_near(ktrxer_hist_max(r.delays.up), 200 * US, r.total_ns + 2 * US));
	one_way_free(w);
}
