/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One-way delays between clocks that differ by more than the model of the offset allows. */
#include "cm.h"
#include "one_way_delays.h"

#include <math.h>
#include <stdlib.h>

#define MS 1000000
#define BASE 1795000000000000000LL

enum { ROWS_MOST = 12000 };

/* Rates in ppm before and after the middle of the run, and a step of the far clock there. Path: 20 ms up, 5 ms down. */
struct clocks {
	double own, far, far_later;
	int64_t step_ns;
	int rows;
	int64_t interval_ns, jitter_ns;
	bool adjusted; /* the stamps are free of adjustments */
};

static uint64_t seed = 7;

static int64_t drawn(int64_t most)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return most ? (int64_t)((seed >> 33) % (uint64_t)most) : 0;
}

static int64_t own_at(const struct clocks *c, int64_t t)
{
	return t + (int64_t)((double)t * c->own * 1e-6);
}

static int64_t far_at(const struct clocks *c, int64_t t)
{
	const int64_t middle = c->rows * c->interval_ns / 2;
	const double before = (double)(t < middle ? t : middle), after = (double)(t < middle ? 0 : t - middle);

	return BASE + t + (int64_t)(before * c->far * 1e-6 + after * c->far_later * 1e-6) +
	       (t < middle ? 0 : c->step_ns);
}

/* Returns the steps that were found; *wrong: rows whose true delay is outside of the bound; *known: rows with one. */
static int measure(const struct clocks *c, int *wrong, int *known, int64_t *widest)
{
	struct one_way_row *rows = calloc(ROWS_MOST, sizeof *rows);
	struct one_way_row_delays *delays = calloc(ROWS_MOST, sizeof *delays);
	int64_t *up = calloc(ROWS_MOST, sizeof *up);
	const struct one_way_clocks clocks = { .adjusted = c->adjusted, .free_running = c->adjusted };
	int steps;

	assert_true(rows && delays && up && c->rows <= ROWS_MOST);
	for (int i = 0; i < c->rows; i++) {
		const int64_t t1 = i * c->interval_ns, t2 = t1 + 20 * MS + drawn(c->jitter_ns),
			      t4 = t2 + 5 * MS + drawn(c->jitter_ns);

		up[i] = t2 - t1;
		rows[i] = (struct one_way_row){ .sent_ns = own_at(c, t1),
						.rtt_ns = own_at(c, t4) - own_at(c, t1),
						.far_ns = far_at(c, t2) };
	}
	steps = one_way_of_rows(rows, (size_t)c->rows, &clocks, delays);
	*wrong = *known = 0;
	*widest = 0;
	for (int i = 0; i < c->rows; i++) {
		if (delays[i].bound_ns == INT64_MIN)
			continue;
		++*known;
		*wrong += llabs(delays[i].up_ns - up[i]) > delays[i].bound_ns + 20000; /* 800 ppm of 25 ms */
		*widest = delays[i].bound_ns > *widest ? delays[i].bound_ns : *widest;
	}
	free(rows);
	free(delays);
	free(up);
	return steps;
}

TEST(rates_beyond_the_model_widen_the_bound)
{
	for (int seconds = 10; seconds <= 600; seconds *= 2)
		for (int free_running = 0; free_running < 2; free_running++)
			for (int sign = -1; sign <= 1; sign += 2) {
				const struct clocks c = { .own = sign * 400,
							  .far = sign * -400,
							  .far_later = sign * -400,
							  .rows = seconds * 10,
							  .interval_ns = 100 * MS,
							  .jitter_ns = 100000,
							  .adjusted = free_running };
				int wrong, known;
				int64_t widest;

				assert_int_equal(measure(&c, &wrong, &known, &widest), 0);
				assert_int_equal(wrong, 0);
				assert_int_equal(known, c.rows);
				assert_true(widest < 26 * MS); /* the round trip */
			}
}

/* It is seen by its mean, which is beyond the model, too. */
TEST(a_rate_that_changes_midway)
{
	for (int seconds = 10; seconds <= 320; seconds *= 2) {
		const struct clocks c = { .far = 700, .far_later = 800, .rows = seconds * 10, .interval_ns = 100 * MS };
		int wrong, known;
		int64_t widest;

		measure(&c, &wrong, &known, &widest);
		assert_int_equal(wrong, 0);
		assert_true(known >= c.rows - 3 && widest < 26 * MS);
	}
}

TEST(a_step_between_such_clocks)
{
	for (int seconds = 10; seconds <= 320; seconds *= 2) {
		const struct clocks c = { .own = 400,
					  .far = -400,
					  .far_later = -400,
					  .step_ns = 100 * MS,
					  .rows = seconds * 10,
					  .interval_ns = 100 * MS,
					  .jitter_ns = 100000 };
		int wrong, known;
		int64_t widest;

		assert_int_equal(measure(&c, &wrong, &known, &widest), 1);
		assert_int_equal(wrong, 0);
		assert_true(known >= c.rows - 3 && widest < 26 * MS);
	}
}

/*
 * Changes midway of which the mean is within the model, or that contradict no round trip: rates, and steps of less than
 * the round trip. Some are too small, or hidden by jitter; the share of rows beyond their bound is printed.
 */
TEST(changes_that_contradict_no_round_trip)
{
	static const double later[] = { 0, 650, 700, 900, 1500, -900 };
	static const int64_t steps[] = { 0, MS, 3 * MS, 8 * MS, 15 * MS, -8 * MS };
	static const int64_t jitters[] = { 0, 100000, MS, 5 * MS };
	int runs = 0, runs_wrong = 0, rows = 0, rows_wrong = 0;

	for (int seconds = 5; seconds <= 320; seconds *= 2)
		for (int j = 0; j < 4; j++)
			for (int k = 1; k < 12; k++) {
				const struct clocks c = { .far_later = k < 6 ? later[k] : 0,
							  .step_ns = k < 6 ? 0 : steps[k - 6],
							  .rows = seconds * 10,
							  .interval_ns = 100 * MS,
							  .jitter_ns = jitters[j] };
				int wrong, known;
				int64_t widest;

				measure(&c, &wrong, &known, &widest);
				assert_true(widest < 40 * MS);
				if (wrong)
					print_message(
						"%d s, jitter %lld us, rate %g ppm, step %lld us: %d of %d rows\n",
						seconds, (long long)c.jitter_ns / 1000, c.far_later,
						(long long)c.step_ns / 1000, wrong, known);
				if (jitters[j] <= 100000)
					assert_int_equal(wrong, 0);
				runs++;
				runs_wrong += wrong > 0;
				rows += known;
				rows_wrong += wrong;
			}
	print_message("%d of %d runs, %d of %d rows beyond the bound\n", runs_wrong, runs, rows_wrong, rows);
	assert_true(rows_wrong * 100 < rows);
}

/* Synchronised clocks beside jitter keep the bound of the model. */
TEST(jitter_is_no_rate)
{
	const struct clocks c = {
		.far = 30, .far_later = 30, .rows = 600, .interval_ns = 100 * MS, .jitter_ns = 20 * MS
	};
	int wrong, known;
	int64_t widest;

	assert_int_equal(measure(&c, &wrong, &known, &widest), 0);
	assert_int_equal(wrong, 0);
	assert_true(widest < 20 * MS);
}
