/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "stamp_samples.h"

#define MS 1000000
#define OFFSET 5000000000LL

struct world {
	struct stamp_samples *samples;
	struct clock_offset *clock;
	struct stamp_delays delays;
};

static void world_new(struct world *w)
{
	w->samples = stamp_samples_new();
	assert_non_null(w->samples);
	assert_int_equal(clock_offset_new(&w->clock), 0);
	w->delays = (struct stamp_delays){ .up = ktrxer_hist_new(), .down = ktrxer_hist_new() };
}

static void world_free(struct world *w)
{
	stamp_samples_free(w->samples);
	clock_offset_free(w->clock);
	ktrxer_hist_free(w->delays.up);
	ktrxer_hist_free(w->delays.down);
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
	const struct clock_exchange x = { .t1_ns = s.t1_ns, .t2_ns = t2, .t3_ns = t2, .t4_ns = s.t4_ns };

	clock_offset_add(w->clock, &x);
	assert_true(stamp_samples_add(w->samples, &s));
}

static void delays_carry_a_bound_that_holds(void **state)
{
	struct world w;

	(void)state;
	world_new(&w);
	for (uint64_t i = 0; i < 1000; i++)
		add(&w, (i + 1) * 100 * MS, MS, 3 * MS + (i % 2) * 40 * MS, i == 500 ? 200 * MS : 0);
	clock_offset_settle(w.clock);
	stamp_samples_delays(w.samples, w.clock, INT64_MIN, INT64_MAX, &w.delays);
	assert_int_equal(w.delays.contradicted, 1);
	assert_int_equal(ktrxer_hist_count(w.delays.up), 999);
	/* The middle assumes 2 ms each way; the truth is 1 and 3. */
	assert_in_range(ktrxer_hist_max(w.delays.up), MS, MS + (int64_t)w.delays.bound_ns);
	assert_in_range(w.delays.bound_ns, 2 * MS, 2 * MS + 200000);
	/* What the clocks state limits the offset further. */
	w.delays.bound_ns = 0;
	stamp_samples_delays(w.samples, w.clock, OFFSET - 1000, OFFSET + 1000, &w.delays);
	assert_in_range(w.delays.bound_ns, 1000, 100000);
	world_free(&w);
}

static void a_long_run_keeps_every_second_and_says_so(void **state)
{
	const uint64_t room = 1 << 18;
	struct world w;

	(void)state;
	world_new(&w);
	for (uint64_t i = 0; i < room; i++)
		add(&w, (i + 1) * MS, MS, MS, 0);
	assert_int_equal(stamp_samples_stride(w.samples), 1);
	for (uint64_t i = room; i < room + 10; i++)
		add(&w, (i + 1) * MS, MS, MS, 0);
	assert_int_equal(stamp_samples_stride(w.samples), 2);
	clock_offset_settle(w.clock);
	stamp_samples_delays(w.samples, w.clock, INT64_MIN, INT64_MAX, &w.delays);
	assert_in_range(ktrxer_hist_count(w.delays.up), room / 2, room / 2 + 10);
	world_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(delays_carry_a_bound_that_holds),
		cmocka_unit_test(a_long_run_keeps_every_second_and_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
