/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "clockest.h"
#include "cm.h"

#include <stdlib.h>

#define S 1000000000.0
#define BASE 1795000000000000000LL

static uint64_t seed;

static double uniform(void)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(seed >> 11) / 9007199254740992.0;
}

/* Sum of three uniforms squared: positive, with a tail, hardly ever near nothing. */
static double queue(double scale)
{
	double u = uniform() + uniform() + uniform();

	return scale * u * u;
}

struct world {
	double skew, offset, there, back, noise, share; /* ns; share of probes that meet no queue */
	double interval;
	uint64_t t1;
};

static enum clockest_taken one(struct clockest *est, struct world *w)
{
	double forward = w->there + (uniform() < w->share ? 0 : queue(w->noise)), backward = w->back + (uniform() < w->share ? 0 : queue(w->noise));
	uint64_t arrives = w->t1 + (uint64_t)forward, leaves = arrives + 20000, t4 = leaves + (uint64_t)backward;
	enum clockest_taken taken = clockest_add(est, w->t1, BASE + (int64_t)(w->offset + (double)arrives * (1 + w->skew)),
						 BASE + (int64_t)(w->offset + (double)leaves * (1 + w->skew)), t4);

	w->t1 += (uint64_t)w->interval;
	return taken;
}

static int64_t truth(const struct world *w, uint64_t at)
{
	return BASE + (int64_t)(w->offset + (double)at * w->skew);
}

static void a_skew_of_50_ppm_within_1(void **state)
{
	(void)state;
	for (uint64_t round = 1; round <= 30; round++) {
		struct world w = { .skew = (round % 2 ? 50e-6 : -50e-6), .offset = 3e6, .there = 200000, .back = 200000, .noise = 500000,
				   .share = 0.01, .interval = 0.1 * S, .t1 = 1000000000 };
		struct clockest_result r;
		struct clockest *est;

		seed = round;
		assert_int_equal(clockest_new(&est), 0);
		for (int i = 0; i < 1000; i++)
			assert_int_equal(one(est, &w), CLOCKEST_TAKEN);
		clockest_result(est, 0, &r);
		assert_int_equal(r.points, 1000);
		assert_true(r.skew_known && !r.bent);
		assert_true(r.skew_ppm - w.skew * 1e6 < 1 && w.skew * 1e6 - r.skew_ppm < 1);
		assert_true(r.skew_ppm - r.skew_bound_ppm <= w.skew * 1e6 && r.skew_ppm + r.skew_bound_ppm >= w.skew * 1e6);
		assert_true(llabs(r.offset_ns - truth(&w, r.at_ns)) <= (int64_t)r.offset_bound_ns);
		for (uint64_t at = r.from_ns; at <= r.to_ns; at += 1000000000)
			assert_true(llabs(clockest_offset_at(&r, at) - truth(&w, at)) <= (int64_t)clockest_bound_at(&r, at));
		clockest_free(est);
	}
}

/* The bound holds whatever the path: here all of the delay is on the way there. */
static void an_asymmetric_path_stays_within_its_bound(void **state)
{
	struct world w = { .offset = -5e9, .there = 10e6, .back = 1000, .noise = 1e6, .share = 0.1, .interval = 0.01 * S, .t1 = 77 };
	struct clockest_result r;
	struct clockest *est;

	(void)state;
	seed = 5;
	assert_int_equal(clockest_new(&est), 0);
	for (int i = 0; i < 1000; i++)
		one(est, &w);
	clockest_result(est, 0, &r);
	assert_true(llabs(r.offset_ns - truth(&w, r.at_ns)) <= (int64_t)r.offset_bound_ns);
	assert_true(r.offset_bound_ns < 5100000 && r.offset_bound_ns > 4900000); /* half the smallest round trip */
	clockest_free(est);
}

/*
 * A load fills a queue of two seconds, one way or both, after three seconds of idle round trips: what is said in mid-run holds, and does
 * not follow the rate that those three seconds seemed to show.
 */
static void in_mid_run_over_a_filling_queue(void **state)
{
	(void)state;
	for (uint64_t round = 1; round <= 40; round++) {
		const bool up = round % 4 < 3, down = round % 4 != 1;
		const double skew = ((double)(round % 7) - 3) * (round < 20 ? 15e-6 : 150e-6);
		struct world w = { .skew = skew, .offset = -7e9, .there = 5e6, .back = 5e6, .noise = 300000, .interval = 0.25 * S, .t1 = 5000000000 };
		struct clockest_result r;
		struct clockest *est;

		seed = round;
		assert_int_equal(clockest_new(&est), 0);
		for (int i = 0; i < 72; i++) {
			if (i >= 12) {
				const double fill = (i - 11) * 0.2 < 1 ? (i - 11) * 0.2 : 1 - 0.2 * uniform();

				w.interval = S;
				w.there = 5e6 + (up ? 2 * S * fill : 0);
				w.back = 5e6 + (down ? 2 * S * fill : 0);
			}
			one(est, &w);
			clockest_result(est, 0, &r);
			for (uint64_t at = w.t1 - 3000000000 * (i > 20); at < w.t1 + 1000000000 && i > 2; at += 250000000) {
				uint64_t bound;
				int64_t wrong = llabs(clockest_live(est, &r, at, &bound) - truth(&w, at));

				assert_true(wrong <= (int64_t)bound);
				assert_true(bound < 40000000);
				assert_true(round >= 20 || wrong < 7000000); /* half the idle round trip, and usual clocks for a minute */
			}
		}
		clockest_free(est);
	}
}

static void few_points_say_little(void **state)
{
	struct world w = { .there = 1e6, .back = 1e6, .interval = 0.01 * S, .t1 = 1000 };
	struct clockest_result r;
	struct clockest *est;

	(void)state;
	assert_int_equal(clockest_new(&est), 0);
	clockest_result(est, 0, &r);
	assert_int_equal(r.points, 0);
	clockest_result(est, 9, &r);
	assert_int_equal(r.points, 0);
	one(est, &w);
	clockest_result(est, 0, &r);
	assert_int_equal(r.points, 1);
	assert_false(r.skew_known);
	assert_in_range(r.offset_bound_ns, 1000000, 1010000);
	clockest_free(est);
}

static void steps_begin_segments(void **state)
{
	struct world w = { .skew = 20e-6, .offset = 1e6, .there = 100000, .back = 100000, .noise = 50000, .share = 0.05, .interval = 0.01 * S,
			   .t1 = 1000 };
	struct clockest_result r;
	struct clockest *est;
	int64_t before;
	int steps = 0;

	(void)state;
	seed = 9;
	assert_int_equal(clockest_new(&est), 0);
	for (int i = 0; i < 500; i++)
		assert_int_equal(one(est, &w), CLOCKEST_TAKEN);
	w.offset += 50e6; /* settimeofday over there */
	for (int i = 0; i < 500; i++)
		steps += one(est, &w) == CLOCKEST_STEPPED;
	assert_int_equal(steps, 1);
	assert_int_equal(clockest_segment(est), 1);
	clockest_result(est, 0, &r);
	assert_int_equal(r.points, 500);
	before = r.offset_ns;
	assert_true(llabs(r.offset_ns - (truth(&w, r.at_ns) - 50000000)) <= (int64_t)r.offset_bound_ns);
	clockest_result(est, 1, &r);
	assert_int_equal(r.points, 500);
	assert_true(llabs(r.offset_ns - truth(&w, r.at_ns)) <= (int64_t)r.offset_bound_ns);
	assert_true(r.offset_ns - before > 49000000);
	clockest_free(est);
}

static void wrong_stamps_do_no_harm(void **state)
{
	struct world w = { .offset = 1e6, .there = 100000, .back = 100000, .noise = 50000, .share = 0.05, .interval = 0.01 * S, .t1 = 1000 };
	struct clockest_result r;
	struct clockest *est;

	(void)state;
	assert_int_equal(clockest_new(&est), 0);
	for (int i = 0; i < 300; i++) {
		one(est, &w);
		if (i % 50 == 20) { /* one that is wild, alone */
			assert_int_equal(clockest_add(est, w.t1, 0, 1, w.t1 + 100), CLOCKEST_DOUBTED);
			assert_int_equal(clockest_add(est, w.t1 + 1, INT64_MAX / 2, INT64_MAX / 2, w.t1 + 100), CLOCKEST_DOUBTED);
			assert_int_equal(clockest_add(est, 1, BASE, BASE, 2), CLOCKEST_IGNORED);        /* an old one */
			assert_int_equal(clockest_add(est, w.t1, BASE, BASE, w.t1 - 1), CLOCKEST_IGNORED); /* back before it left */
		}
	}
	assert_int_equal(clockest_segment(est), 0);
	clockest_result(est, 0, &r);
	assert_int_equal(r.points, 300);
	assert_true(llabs(r.offset_ns - truth(&w, r.at_ns)) <= (int64_t)r.offset_bound_ns);
	clockest_free(est);
}

static void a_bent_clock_is_said_to_be(void **state)
{
	struct world w = { .skew = 0, .there = 1000, .back = 1000, .noise = 100, .share = 0.5, .interval = 0.1 * S, .t1 = 1000 };
	struct clockest_result r;
	struct clockest *est;

	(void)state;
	assert_int_equal(clockest_new(&est), 0);
	for (int i = 0; i < 600; i++) {
		one(est, &w);
		w.offset += i < 300 ? 0 : 5000; /* 50 ppm from here on */
	}
	clockest_result(est, 0, &r);
	assert_int_equal(r.points, 600);
	assert_true(r.bent && !r.skew_known);
	assert_true(r.offset_bound_ns > 100000); /* it knows that it does not know */
	clockest_free(est);
}

static void long_runs_in_little_memory(void **state)
{
	struct world w = { .skew = 10e-6, .there = 50000, .back = 50000, .noise = 1000, .share = 0, .interval = 0.001 * S, .t1 = 1000 };
	struct clockest_result r;
	struct clockest *est;

	(void)state;
	seed = 3;
	assert_int_equal(clockest_new(&est), 0);
	for (int i = 0; i < 300000; i++) {
		/* A parabola puts every point on the hull. */
		w.there = 50000 + ((double)i / 1000 - 150) * ((double)i / 1000 - 150);
		w.back = w.there;
		w.noise = 0;
		one(est, &w);
	}
	clockest_result(est, 0, &r);
	assert_int_equal(r.points, 300000);
	assert_true(llabs(r.offset_ns - truth(&w, r.at_ns)) <= (int64_t)r.offset_bound_ns);
	assert_true(r.skew_ppm > 9 && r.skew_ppm < 11);
	clockest_free(est);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_skew_of_50_ppm_within_1), cmocka_unit_test(an_asymmetric_path_stays_within_its_bound),
		cmocka_unit_test(in_mid_run_over_a_filling_queue), cmocka_unit_test(few_points_say_little), cmocka_unit_test(steps_begin_segments),
		cmocka_unit_test(wrong_stamps_do_no_harm),   cmocka_unit_test(a_bent_clock_is_said_to_be),
		cmocka_unit_test(long_runs_in_little_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
