/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Available bandwidth on simulated paths of two links, of links whose rate changes, and of token buckets. */
#include "abw_path.h"
#include "cm.h"

#include <math.h>
#include <stdlib.h>

#define WIDE 0.15  /* of the capacity: the command calls such a range degraded */
#define MISFIT 4
#define FALSE 0.1 /* of the truth, from the range */
#define FALSE_SHARE 0.02

struct counts {
	int runs, valid, wrong, refused;
};

/* Of so many, or as the environment says: docs/measurements has the figures of 2,000. */
static int runs(int usual)
{
	const char *more = getenv("KTRXER_ABW_PATHS");

	return getenv("KTRXER_EMULATED") ? 2 : more ? atoi(more) : usual;
}

static double between(uint64_t *seed, double low, double high)
{
	return low * pow(high / low, uniform(seed));
}

static void take(struct counts *c, const struct world *w)
{
	const struct outcome o = measured(*w, ABW_AUTO);
	const struct abw_result *r = &o.result;
	const double off = fmax(r->low_bit_s - o.truth, o.truth - r->high_bit_s);

	c->runs++;
	c->refused += r->reading != ABW_RESOLVED;
	if (r->reading != ABW_RESOLVED || r->high_bit_s - r->low_bit_s > WIDE * r->capacity_bit_s || r->misfit > MISFIT)
		return;
	c->valid++;
	c->wrong += off > FALSE * o.truth;
}

static void say(const char *name, const struct counts *c)
{
	print_message("%s: %d runs, %d valid, %d of these false, %d without a range\n", name, c->runs, c->valid,
		      c->wrong, c->refused);
}

static const struct world plain = { .access = 10, .noise_ns = 500, .skew = 50e-6 };

static struct sim_link any_link(uint64_t *seed, double low, double high)
{
	return (struct sim_link){ .rate = between(seed, low, high),
				  .load = 0.9 * uniform(seed),
				  .cross = (enum cross)(3 * uniform(seed)) };
}

/* Two links of any rates and loads; `near`: the second rate is at most this factor from the first one. */
static struct counts any_paths(double near, int count, uint64_t seed)
{
	struct counts c = { 0 };

	for (int i = 0; i < count; i++) {
		struct world w = plain;

		w.links[0] = any_link(&seed, 2e6, 1e9);
		w.links[1] = any_link(&seed, near > 0 ? w.links[0].rate / near : 2e6,
				      near > 0 ? w.links[0].rate * near : 1e9);
		w.seed = seed;
		take(&c, &w);
	}
	return c;
}

TEST(test_two_links_of_any_rates_and_loads)
{
	struct counts any = any_paths(0, runs(150), 11), near = any_paths(4, runs(150), 12);

	say("any rates", &any);
	say("rates near each other", &near);
	assert_true(any.wrong + near.wrong <= 2 + FALSE_SHARE * (any.valid + near.valid));
	assert_true(2 * any.valid > any.runs || any.runs < 100);
	assert_true(3 * near.valid > near.runs || near.runs < 100);
}

/* Cases that were false before the tight link had an estimate of its own. */
TEST(test_the_tight_link_is_another_one_than_the_narrow_one)
{
	const struct sim_link cases[][2] = {
		{ { .rate = 50e6, .load = 0.824 }, { .rate = 20e6 } },
		{ { .rate = 100e6, .load = 0.6 }, { .rate = 50e6, .load = 0.3 } },
		{ { .rate = 10e6 }, { .rate = 100e6, .load = 0.92 } },
	};

	for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
		struct counts c = { 0 };

		for (int i = 0; i < runs(20); i++) {
			struct world w = plain;

			w.links[0] = cases[n][0];
			w.links[1] = cases[n][1];
			w.seed = 500 + (uint64_t)i;
			take(&c, &w);
		}
		say("a tight link and a narrow one", &c);
		assert_true(c.wrong <= 1);
		assert_int_equal(c.refused, 0);
	}
}

/* The rate changes once, at any phase of the measurement. */
TEST(test_steps_of_the_rate)
{
	struct counts c = { 0 };

	for (int up = 0; up < 2; up++)
		for (int load = 0; load <= 60; load += 30)
			for (int i = 0; i < runs(20); i++) {
				struct world w = plain;

				w.links[0] = (struct sim_link){ .rate = up ? 20e6 : 60e6,
								.load = load / 100.0,
								.then_rate = up ? 60e6 : 20e6,
								.change_s = 0.05 + 0.25 * i };
				w.seed = 100 + (uint64_t)i;
				take(&c, &w);
			}
	say("steps", &c);
	assert_true(c.wrong <= 1);
}

TEST(test_a_rate_that_wanders)
{
	struct counts c = { 0 };

	for (int load = 0; load <= 60; load += 30)
		for (int i = 0; i < runs(15); i++) {
			struct world w = plain;

			w.links[0] = (struct sim_link){ .rate = 60e6, .load = load / 100.0, .walk = 0.1 };
			w.seed = 100 + (uint64_t)i;
			take(&c, &w);
		}
	say("a rate that wanders", &c);
	assert_true(c.wrong * 20 <= c.runs);
}

/* Packets sent back to back and small probes pass a bucket at once; a burst empties it. */
TEST(test_token_buckets)
{
	const double buckets[] = { 6e3, 10e3, 20e3, 32e3, 48e3 };

	for (size_t b = 0; b < sizeof buckets / sizeof *buckets; b++)
		for (double rate = 5e6; rate < 200e6; rate *= 4)
			for (int access = 5; access <= 50; access *= 10) {
				struct world w = plain;
				struct outcome o;

				w.access = access;
				w.links[0] = (struct sim_link){ .rate = rate, .bucket_bits = 8 * buckets[b] };
				w.seed = 7 + b;
				o = measured(w, ABW_AUTO);
				print_message(
					"bucket %.0f bytes, %.0f Mbit/s behind %.0f: reading %d: %.1f, %.1f, %.0f\n",
					buckets[b], rate / 1e6, rate * access / 1e6, (int)o.result.reading,
					o.result.shaper.line_bit_s / 1e6, o.result.shaper.sustained_bit_s / 1e6,
					o.result.shaper.bucket_bytes);
				assert_int_not_equal(o.result.reading, ABW_RESOLVED);
				assert_true(o.result.reading == ABW_SHAPED || buckets[b] < 10e3);
				if (o.result.reading != ABW_SHAPED)
					continue;
				assert_true(fabs(o.result.shaper.sustained_bit_s / o.truth - 1) < 0.05);
				assert_true(buckets[b] < 10e3 ||
					    fabs(o.result.shaper.line_bit_s / rate / access - 1) < 0.1);
				assert_true(fabs(o.result.shaper.bucket_bytes - buckets[b]) < 2 * LARGE);
			}
}
