/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Levels and bursts of the rates of simulated tests of capacity: links, token buckets, cross traffic, changes. */
#include "rate_search_here.h"
#include "rate_trials.h"

#include "cm.h"

#include <math.h>
#include <stdlib.h>

#define TRIAL_NS 50000000ull
#define TRIAL_S 0.05
#define SECOND (20 * TRIAL_NS)

enum { TRIALS = 160, AGAIN = 60, PATHS = 400 };

/* Rates in Mbit/s, times in seconds from the begin of a test, sizes in Mbit. */
struct path {
	double rate, queue, bucket, line, tokens; /* bucket 0: there is none; line: in front of the bucket */
	double step_at, step_rate;                /* step_at 0: the rate does not change */
	double cross, on_s, off_s;                /* cross traffic */
	double jitter_s, loss, dead_from, dead_s;
	bool policer;
	uint64_t seed;
	double waits, clock;
};

static double uniform(struct path *p)
{
	p->seed = p->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(p->seed >> 11) / 9007199254740992.0;
}

static double between(struct path *p, double low, double high)
{
	return low * pow(high / low, uniform(p));
}

/* The rate of the narrow link that the test gets, at `at` of all tests. */
static double left(const struct path *p, double at)
{
	const double rate = p->step_at > 0 && at >= p->step_at ? p->step_rate : p->rate;
	const bool on = p->cross > 0 && fmod(at, p->on_s + p->off_s) >= p->off_s;

	if (at >= p->dead_from && at < p->dead_from + p->dead_s)
		return 0;
	return rate - (on ? p->cross * rate : 0);
}

static void test(struct path *p, int trials, struct rate_trials *t)
{
	struct rate_search s;
	double early = 0; /* Mbit that jitter moves to the trial before */

	*t = (struct rate_trials){ .count = 0 };
	rate_search_begin(&s, &usual, 0);
	for (int i = 0; i < trials; i++) {
		const double offered = fmin(s.index, p->line) * TRIAL_S * (1 - p->loss),
			     room = left(p, p->clock) * TRIAL_S, moved = p->jitter_s * uniform(p) * left(p, p->clock);
		double passed, lost = s.index * TRIAL_S * p->loss;
		struct rate_search_feedback f = { .delay_known = true };

		passed = fmin(offered + p->waits, p->tokens + room);
		p->tokens = fmin(p->bucket, p->tokens + room - passed);
		p->waits += offered - passed;
		if (p->waits > (p->policer ? 0 : p->queue)) {
			lost += p->waits - (p->policer ? 0 : p->queue);
			p->waits = p->policer ? 0 : p->queue;
		}
		p->clock += TRIAL_S;
		rate_trials_add(t, TRIAL_NS, (uint64_t)fmax((passed + moved - early) * 125000, 0));
		early = moved;
		f.lost = (uint64_t)(lost * 100);
		f.delay_ms = (uint32_t)(p->waits / fmax(left(p, p->clock), 0.1) * 1000 + p->jitter_s * 500);
		rate_search_step(&s, &f);
	}
}

/* The command sends a second test where the first one began with a burst. */
static bool measured(struct path *p, struct rate_burst *first)
{
	struct rate_trials *t = malloc(sizeof *t);
	bool again = false;

	test(p, TRIALS, t);
	if (rate_trials_burst(t, 0, first) && rate_trials_refill(first)) {
		const double refill_s = (double)rate_trials_refill(first) / 1e9;

		p->clock += refill_s;
		p->waits = 0;
		p->tokens = fmin(p->bucket, p->tokens + refill_s * p->rate);
		test(p, AGAIN, t);
		again = rate_trials_again(first, t);
	}
	free(t);
	return again;
}

static struct path drawn(uint64_t seed)
{
	struct path p = { .seed = seed * 7919 + 1, .line = INFINITY };

	uniform(&p);
	p.rate = between(&p, 2, 400);
	p.queue = p.rate * between(&p, 0.005, 0.5);
	return p;
}

TEST(test_no_bucket_is_named_on_a_path_without_one)
{
	int named = 0, bursts = 0;

	for (uint64_t seed = 0; seed < PATHS; seed++) {
		struct path p = drawn(seed);
		struct rate_burst first;

		if (seed % 4 == 1) {
			p.step_at = between(&p, 0.1, 8);
			p.step_rate = p.rate * between(&p, 0.05, 10);
		} else if (seed % 4 == 2) {
			p.cross = uniform(&p);
			p.on_s = between(&p, 0.1, 20);
			p.off_s = between(&p, 0.1, 20);
		} else if (seed % 4 == 3) {
			p.jitter_s = between(&p, 0.001, 0.05);
			p.loss = uniform(&p) < 0.5 ? 0 : between(&p, 0.0001, 0.1);
			p.dead_from = uniform(&p) * 8;
			p.dead_s = between(&p, 0.05, 4);
		}
		named += measured(&p, &first);
		bursts += first.shaper.line_bit_s > 0;
	}
	print_message("figure: %d of %d paths without a bucket are named, %d had a higher rate\n", named, PATHS,
		      bursts);
	assert_int_equal(named, 0);
}

TEST(test_buckets_are_named)
{
	int named = 0, wrong = 0;

	for (uint64_t seed = 0; seed < PATHS; seed++) {
		struct path p = drawn(seed + PATHS);
		struct rate_burst first;

		p.rate = between(&p, 2, 100);
		p.line = p.rate * between(&p, 3, 50);
		p.policer = seed % 2;
		/* The bucket lasts for some trials of the search. */
		p.bucket = p.tokens = p.rate * between(&p, 0.15, 1.5);
		if (!measured(&p, &first))
			continue;
		named++;
		wrong += fabs(first.shaper.sustained_bit_s / p.rate / 1e6 - 1) > 0.03 ||
			 fabs(first.shaper.bucket_bytes / p.bucket / 125000 - 1) > 0.1 ||
			 first.shaper.line_bit_s > p.line * 1.001e6;
	}
	print_message("figure: %d of %d buckets are named, %d wrong\n", named, PATHS, wrong);
	assert_true(named > PATHS * 8 / 10);
	assert_true(wrong * 20 <= named);
}

/* The rate of a constant series, then of another one. */
static void series(struct rate_trials *t, const double *mbit_s, int parts, int each)
{
	*t = (struct rate_trials){ .count = 0 };
	for (int i = 0; i < parts * each; i++)
		rate_trials_add(t, TRIAL_NS, (uint64_t)(mbit_s[i / each] * TRIAL_S * 125000));
}

TEST(test_levels_of_trials)
{
	static const double mbit_s[] = { 60, 20 };
	struct rate_level found[RATE_LEVELS_MOST];
	struct rate_trials t;

	series(&t, mbit_s, 2, 80);
	assert_int_equal(rate_trials_levels(&t, found), 2);
	assert_true(fabs(found[0].median - 60e6) < 1e6 && fabs(found[1].median - 20e6) < 1e6);
	assert_in_range(found[1].from_ns, 4 * SECOND - 8 * TRIAL_NS, 4 * SECOND + 8 * TRIAL_NS);
	assert_true(fabs(rate_trials_end(&t, SECOND) - 20e6) < 1e5);
	/* Counts are missing in the middle of the test. */
	for (uint32_t i = 60; i < 80; i++)
		t.of[i].ip_bytes = UINT64_MAX;
	assert_int_equal(rate_trials_levels(&t, found), 0);
	t.count = 0;
	assert_int_equal(rate_trials_levels(&t, found), 0);
	assert_true(rate_trials_end(&t, SECOND) == 0);
}

TEST(test_many_trials)
{
	struct rate_level found[RATE_LEVELS_MOST];
	static const double mbit_s[] = { 30, 10 };
	struct rate_trials t;

	series(&t, mbit_s, 2, RATE_TRIALS_MOST);
	assert_int_equal(t.count, RATE_TRIALS_MOST);
	assert_int_equal(rate_trials_levels(&t, found), 2);
	/* A trial so short that one packet is a high rate is a part of the next one. */
	t.count = 0;
	rate_trials_add(&t, 1000, 1250);
	rate_trials_add(&t, TRIAL_NS, 1250);
	assert_int_equal(t.count, 1);
}
