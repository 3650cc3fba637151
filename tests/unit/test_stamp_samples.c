/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "draw_here.h"
#include "stamp_samples.h"

#include <stdlib.h>

#define MS 1000000
#define OFFSET 5000000000LL
#define ROOM (1 << 18)

struct world {
	struct stamp_samples *samples;
	struct clock_offset *clock;
	int64_t low, high; /* of the offset, by the synchronisation of the clocks */
	bool free_running; /* no daemon adjusts the clocks: long runs have a small uncertainty */
};

static void world_new(struct world *w)
{
	w->samples = stamp_samples_new();
	assert_non_null(w->samples);
	assert_int_equal(clock_offset_new(&w->clock), 0);
	w->low = INT64_MIN;
	w->high = INT64_MAX;
	w->free_running = false;
}

static void world_free(struct world *w)
{
	stamp_samples_free(w->samples);
	clock_offset_free(w->clock);
}

/* A far clock that is OFFSET ahead; `wrong` is the error of T2. */
static void add(struct world *w, uint64_t t1, int64_t up, int64_t down, int64_t wrong)
{
	const int64_t t2 = (int64_t)t1 + up + OFFSET + wrong;
	const struct stamp_sample s = { .t1_ns = t1,
					.t4_ns = t1 + (uint64_t)(up + down),
					.t2_real_ns = t2,
					.t3_real_ns = t2,
					.up_ns = t2 - (int64_t)t1,
					.down_ns = (int64_t)t1 + up + down - t2 };
	const struct clock_exchange x = {
		.t1_ns = s.t1_ns, .t2_ns = t2, .t3_ns = t2, .t4_ns = s.t4_ns, .free_running = w->free_running
	};

	clock_offset_add(w->clock, &x);
	if (stamp_samples_full(w->samples)) {
		clock_offset_settle(w->clock);
		assert_true(stamp_samples_settle(w->samples, w->clock, w->low, w->high, false));
	}
	assert_true(stamp_samples_add(w->samples, &s));
}

static const struct stamp_delays *finish(struct world *w)
{
	clock_offset_settle(w->clock);
	assert_true(stamp_samples_settle(w->samples, w->clock, w->low, w->high, true));
	return stamp_samples_delays(w->samples);
}

TEST(delays_carry_a_bound_that_holds)
{
	const struct stamp_delays *d;
	struct world w;

	for (int claimed = 0; claimed < 2; claimed++) {
		world_new(&w);
		/* The clocks' own bounds limit the offset further. */
		w.low = claimed ? OFFSET - 1000 : INT64_MIN;
		w.high = claimed ? OFFSET + 1000 : INT64_MAX;
		for (uint64_t i = 0; i < 1000; i++)
			add(&w, (i + 1) * 100 * MS, MS, 3 * MS + (i % 2) * 40 * MS, i == 500 ? 200 * MS : 0);
		d = finish(&w);
		assert_int_equal(d->contradicted, 1);
		assert_int_equal(ktrxer_hist_count(d->up), 999);
		/* The middle assumes 2 ms each way; the truth is 1 and 3. */
		assert_in_range(ktrxer_hist_max(d->up), MS, MS + (int64_t)d->bound_ns);
		if (claimed)
			assert_in_range(d->bound_ns, 1000, 100000);
		else
			assert_in_range(d->bound_ns, 2 * MS, 2 * MS + 200000);
		world_free(&w);
	}
}

/*
 * One sample in a million has the longest delay: it is in the figures, wherever it is, and so is each quantile.
 * An emulator has time for one place, after the first samples were settled.
 */
TEST(a_long_run_has_every_sample_in_its_delays)
{
	const uint64_t count = ROOM + ROOM / 2, longest[] = { ROOM + 3, 1, count - 1 };
	const size_t places = getenv("KTRXER_EMULATED") ? 1 : sizeof longest / sizeof *longest;
	const struct stamp_delays *d;
	struct world w;

	for (size_t which = 0; which < places; which++) {
		world_new(&w);
		for (uint64_t i = 0; i < count; i++)
			add(&w, (i + 1) * MS, i == longest[which] ? 90 * MS : i % 2 ? MS : 2 * MS, MS, 0);
		d = finish(&w);
		assert_int_equal(ktrxer_hist_count(d->up), count);
		assert_int_equal(ktrxer_hist_count(d->down), count);
		assert_int_equal(d->contradicted, 0);
		assert_in_range(d->bound_ns, MS, MS + 200000);
		assert_in_range(ktrxer_hist_max(d->up), 90 * MS - (int64_t)d->bound_ns, 90 * MS + (int64_t)d->bound_ns);
		/* Half of them have 1 ms, the others 2 ms. */
		assert_in_range(ktrxer_hist_quantile(d->up, 510000) - ktrxer_hist_quantile(d->up, 490000), 990000,
				1010000);
		world_free(&w);
	}
}

static int by_value(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Odd numbers wait longer, and there are more than the memory holds: the figures are those of all sorted delays. */
TEST(quantiles_of_a_long_run_are_those_of_all_its_delays)
{
	static const uint32_t ppm[] = { 10000, 250000, 500000, 900000, 990000, 999000, 999990, 1000000 };
	const uint64_t count = 2 * ROOM + ROOM / 3;
	int64_t *ways[2] = { malloc(count * sizeof(int64_t)), malloc(count * sizeof(int64_t)) };
	const struct stamp_delays *d;
	struct world w;

	assert_true(ways[0] && ways[1]);
	world_new(&w);
	w.free_running = true;
	for (uint64_t i = 0; i < count; i++) {
		for (int way = 0; way < 2; way++)
			ways[way][i] = (i % 16 ? (int64_t)(draw() % 8000000) : 10000) + (i % 2 ? 10 * MS : 0);
		add(&w, (i + 1) * 40 * MS, ways[0][i], ways[1][i], 0);
	}
	d = finish(&w);
	assert_int_equal(d->contradicted, 0);
	assert_in_range(d->bound_ns, 1, 500000);
	for (int way = 0; way < 2; way++) {
		const struct ktrxer_hist *hist = way ? d->down : d->up;

		assert_int_equal(ktrxer_hist_count(hist), count);
		qsort(ways[way], count, sizeof(int64_t), by_value);
		for (size_t i = 0; i < sizeof ppm / sizeof *ppm; i++) {
			const int64_t want = ways[way][(count * ppm[i] + 999999) / 1000000 - 1];
			const int64_t error = ktrxer_hist_quantile(hist, ppm[i]) - want;

			assert_true(llabs(error) <= (int64_t)d->bound_ns + want / 1000);
		}
	}
	free(ways[0]);
	free(ways[1]);
	world_free(&w);
}

/*
 * A step after the first samples were settled: the figures are those of the part with the most round trips.
 * An emulator has time for one case.
 */
TEST(a_step_in_a_long_run_divides_its_delays)
{
	static const struct {
		uint64_t before, after;
	} parts[] = {
		{ ROOM / 4, ROOM + ROOM / 4 },
		{ ROOM + ROOM / 8, ROOM / 2 },
		{ ROOM + ROOM / 8, ROOM + ROOM / 4 },
	};
	const size_t cases = getenv("KTRXER_EMULATED") ? 1 : sizeof parts / sizeof *parts;
	const struct stamp_delays *d;
	struct world w;

	for (size_t which = 0; which < cases; which++) {
		const uint64_t before = parts[which].before, after = parts[which].after;

		world_new(&w);
		for (uint64_t i = 0; i < before + after; i++)
			add(&w, (i + 1) * MS, i < before ? MS : 3 * MS, MS, i < before ? 0 : 500 * MS);
		d = finish(&w);
		assert_int_equal(clock_offset_steps(w.clock), 1);
		assert_int_equal(ktrxer_hist_count(d->up), before > after ? before : after);
		assert_int_equal(ktrxer_hist_count(d->down), before > after ? before : after);
		assert_in_range(d->bound_ns, MS, 2 * MS + 10000);
		world_free(&w);
	}
}

/* The clocks' own bounds prove wrong after the first samples were settled: the truth is within the uncertainty. */
TEST(claims_that_prove_wrong_leave_a_bound_that_holds)
{
	const struct stamp_delays *d;
	struct world w;
	int64_t wrong;

	world_new(&w);
	/* The round trips allow OFFSET - 1.8 ms to OFFSET + 0.2 ms. The claim is wrong by 1.7 ms. */
	w.low = OFFSET - 1701000;
	w.high = OFFSET - 1699000;
	for (uint64_t i = 0; i < ROOM + 10; i++)
		add(&w, (i + 1) * MS, 200000, 1800000, 0);
	w.low = INT64_MIN;
	w.high = INT64_MAX;
	d = finish(&w);
	assert_int_equal(ktrxer_hist_count(d->up), ROOM + 10);
	wrong = ktrxer_hist_max(d->up) - 200000;
	assert_in_range(wrong, 1690000, 1710000);
	assert_true(wrong > (int64_t)d->bound_ns && wrong <= (int64_t)d->unclaimed_ns);
	world_free(&w);
}
