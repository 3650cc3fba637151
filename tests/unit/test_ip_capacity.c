/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The metric of RFC 9097 over sub-intervals, and the search for the rate. */
#include "cm.h"
#include "ip_capacity.h"
#include "rate_search_here.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define S 1000000000ULL
#define MS 1000000ULL

static struct ip_capacity_interval interval(uint64_t mbit_s, uint64_t lost)
{
	return (struct ip_capacity_interval){ .datagrams = 99 * (lost ? lost : 1),
					      .ip_bytes = mbit_s * 125000,
					      .lasts_ns = S,
					      .lost = lost,
					      .variation_min_ns = 1 * MS,
					      .variation_max_ns = 40 * MS,
					      .rtt_min_ns = 2 * MS,
					      .rtt_max_ns = 50 * MS };
}

TEST(test_maximum)
{
	struct ip_capacity_interval i[] = { interval(10, 0), interval(95, 3), interval(93, 0), interval(94, 0) };
	struct ip_capacity_result r;

	i[0].variation_max_ns = 70 * MS;
	assert_int_equal(ip_capacity_of(&r, i, 4, 0, 30 * MS, 2 * S, 0), 0);
	assert_int_equal(r.whole.at, 1);
	assert_true(fabs(r.whole.bit_s - 95e6) < 1);
	assert_true(fabs(r.whole.loss - 0.01) < 1e-9);
	assert_true(fabs(r.mean_bit_s - 73e6) < 1);
	assert_int_equal(r.lost, 3);
	assert_int_equal(r.whole.variation.max_ns, 40 * MS);
	assert_int_equal(r.variation.max_ns, 70 * MS);
	assert_int_equal(r.rtt.min_ns, 2 * MS);
	assert_int_equal(r.modes[1].count, 0);
	assert_false(r.rising);
	assert_false(r.unfilled);
}

TEST(test_two_modes)
{
	const struct ip_capacity_interval i[] = { interval(200, 0), interval(190, 0), interval(50, 0),
						  interval(60, 0) };
	struct ip_capacity_result r;

	assert_int_equal(ip_capacity_of(&r, i, 4, 2, 30 * MS, 2 * S, 0), 0);
	assert_int_equal(r.whole.at, 0);
	assert_int_equal(r.modes[0].at, 0);
	assert_int_equal(r.modes[1].at, 3);
	assert_true(fabs(r.modes[1].bit_s - 60e6) < 1);
	/* All sub-intervals are of the first mode: there is no second one. */
	assert_int_equal(ip_capacity_of(&r, i, 4, 4, 30 * MS, 2 * S, 0), 0);
	assert_int_equal(r.modes[1].count, 0);
}

TEST(test_doubts)
{
	struct ip_capacity_interval i[] = { interval(10, 1), interval(20, 0), interval(30, 0) };
	struct ip_capacity_result r;

	assert_int_equal(ip_capacity_of(&r, i, 3, 0, 30 * MS, 2 * S, 0), 0);
	assert_true(r.rising);
	i[0].lost = 0;
	for (int k = 0; k < 3; k++)
		i[k].variation_max_ns = 5 * MS;
	assert_int_equal(ip_capacity_of(&r, i, 3, 0, 30 * MS, 2 * S, 0), 0);
	assert_true(r.unfilled);
	/* Without delays there is no doubt, because nothing is known. */
	for (int k = 0; k < 3; k++)
		i[k].variation_min_ns = i[k].variation_max_ns = IP_CAPACITY_UNKNOWN;
	assert_int_equal(ip_capacity_of(&r, i, 3, 0, 30 * MS, 2 * S, 0), 0);
	assert_false(r.unfilled);
	assert_int_equal(r.variation.max_ns, IP_CAPACITY_UNKNOWN);
}

/* It stood still from the second sub-interval into the third one, which counts what came meanwhile. */
TEST(test_a_receiver_that_stood_still)
{
	struct ip_capacity_interval i[] = { interval(20, 0), interval(24, 0), interval(30, 0), interval(20, 0) };
	struct ip_capacity_result r;

	i[1].lasts_ns = S * 17 / 10;
	assert_int_equal(ip_capacity_of(&r, i, 4, 0, 30 * MS, S * 11 / 10, 0), 0);
	assert_int_equal(r.late, 1);
	assert_true(fabs(r.whole.bit_s - 20e6) < 1 && fabs(r.mean_bit_s - 20e6) < 1);
	/* The last one has none behind it. */
	i[1].lasts_ns = S;
	i[3].lasts_ns = 2 * S;
	assert_int_equal(ip_capacity_of(&r, i, 4, 0, 30 * MS, S * 11 / 10, 0), 0);
	assert_true(r.late == 1 && fabs(r.whole.bit_s - 30e6) < 1);
}

TEST(test_nothing)
{
	struct ip_capacity_interval i = { 0 };
	struct ip_capacity_result r;

	assert_int_equal(ip_capacity_of(&r, NULL, 0, 0, 30 * MS, 2 * S, 0), -EINVAL);
	assert_int_equal(ip_capacity_of(&r, &i, 1, 0, 30 * MS, 2 * S, 0), -EINVAL); /* it lasted no time */
	i.lasts_ns = S;
	i.variation_min_ns = i.variation_max_ns = i.rtt_min_ns = i.rtt_max_ns = IP_CAPACITY_UNKNOWN;
	assert_int_equal(ip_capacity_of(&r, &i, 1, 0, 30 * MS, 2 * S, 0), 0); /* nothing arrived: the capacity is 0 */
	assert_true(r.whole.bit_s == 0 && isnan(r.loss));
}

static struct rate_search_feedback feedback(uint64_t lost, uint32_t delay_ms)
{
	return (struct rate_search_feedback){ .lost = lost, .delay_known = true, .delay_ms = delay_ms };
}

/*
 * The highest rate of a second over a link of `mbit_s` with a queue of 100 ms. Each step is a feedback interval of
 * 50 ms.
 */
static double best_second(struct rate_search *s, uint32_t mbit_s, int seconds)
{
	double queue_ms = 0, best = 0;

	for (int second = 0; second < seconds; second++) {
		double sum = 0;

		for (int i = 0; i < 20; i++) {
			double lost = 0, idle_ms = 0;
			struct rate_search_feedback f;

			queue_ms += 50.0 * ((double)s->index - mbit_s) / mbit_s;
			if (queue_ms < 0) {
				idle_ms = -queue_ms;
				queue_ms = 0;
			}
			if (queue_ms > 100) {
				lost = (queue_ms - 100) * mbit_s / 10; /* packets of 10,000 bits */
				queue_ms = 100;
			}
			sum += mbit_s * (1 - idle_ms / 50) / 20;
			f = feedback((uint64_t)lost, (uint32_t)queue_ms);
			rate_search_step(s, &f);
		}
		best = sum > best ? sum : best;
	}
	return best;
}

TEST(test_search_finds)
{
	static const uint32_t links[] = { 3, 10, 47, 100, 480, 1000 };

	for (int algorithm = RATE_SEARCH_B; algorithm <= RATE_SEARCH_C; algorithm++)
		for (unsigned int i = 0; i < sizeof links / sizeof *links; i++) {
			struct rate_search_options o = usual;
			struct rate_search s;

			o.algorithm = (enum rate_search_algorithm)algorithm;
			rate_search_begin(&s, &o, 0);
			assert_true(best_second(&s, links[i], 10) > 0.99 * links[i]);
		}
}

TEST(test_search_steps)
{
	struct rate_search_feedback f = feedback(0, 0);
	struct rate_search s;

	rate_search_begin(&s, &usual, 0);
	for (int i = 0; i < 5; i++)
		rate_search_step(&s, &f);
	assert_int_equal(s.index, 50);
	/* Between the thresholds, and without a delay, nothing changes. */
	f = feedback(10, 60);
	rate_search_step(&s, &f);
	f.delay_known = false;
	rate_search_step(&s, &f);
	assert_int_equal(s.index, 50);
	/* Two small steps down, the third impairment takes three fast steps; from there on all steps are small. */
	f = feedback(11, 0);
	rate_search_step(&s, &f);
	rate_search_step(&s, &f);
	assert_int_equal(s.index, 48);
	rate_search_step(&s, &f);
	assert_int_equal(s.index, 18);
	f = feedback(0, 0);
	rate_search_step(&s, &f);
	assert_int_equal(s.index, 19);
	f = feedback(0, 91);
	rate_search_step(&s, &f);
	assert_int_equal(s.index, 18);
	assert_int_equal(s.impairments, 4);
	/* Reordering counts only where it is to. */
	f = (struct rate_search_feedback){ .reordered = 100, .delay_known = true };
	rate_search_step(&s, &f);
	assert_int_equal(s.index, 19);
	s.options.ignore_reordering = false;
	rate_search_step(&s, &f);
	assert_int_equal(s.index, 18);
}

TEST(test_search_ends)
{
	struct rate_search_feedback f = feedback(1000, 0);
	struct rate_search s;

	rate_search_begin(&s, &usual, 2);
	for (int i = 0; i < 10; i++)
		rate_search_step(&s, &f);
	assert_int_equal(s.index, 0);
	rate_search_begin(&s, &usual, 5000);
	assert_int_equal(s.index, 1090);
	f = feedback(0, 0);
	rate_search_step(&s, &f);
	assert_int_equal(s.index, 1090);
	/* A limit below 1 Gbit/s holds for fast steps, too. */
	struct rate_search_options o = usual;

	o.last = 25;
	rate_search_begin(&s, &o, 0);
	for (int i = 0; i < 10; i++)
		rate_search_step(&s, &f);
	assert_int_equal(s.index, 25);
}
