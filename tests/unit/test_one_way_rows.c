/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One-way delays of recorded round trips, from made ones whose delays and clock offset are known. */
#include "cm.h"

#include "one_way_delays.h"

#include <stdlib.h>

#define US 1000LL
#define MS 1000000LL
#define DAY (86400LL * 1000 * MS)

enum { ROWS = 400 };

static struct one_way_row rows[ROWS];
static struct one_way_row_delays delays[ROWS];
static const struct one_way_clocks plain = { .adjusted = false };

/* Delays up and down of a row; some are short, so that the offset is known well. */
static int64_t up_of(int i)
{
	return 200 * US + i * 7 % 40 * 50 * US;
}

static int64_t down_of(int i)
{
	return 700 * US + i * 11 % 30 * 40 * US;
}

static struct one_way_row row(int i, int64_t offset)
{
	const int64_t sent = 5000 * MS + i * 10 * MS;

	return (struct one_way_row){ .sent_ns = sent,
				     .rtt_ns = up_of(i) + down_of(i),
				     .far_ns = sent + up_of(i) + offset };
}

/*
 * The uncertainty of an offset by round trips alone is half of the shortest one, and the drift of the clocks (600 ppm)
 * until the next short one.
 */
static void check(int from, int to)
{
	for (int i = from; i < to; i++) {
		assert_true(delays[i].bound_ns >= 0 && delays[i].bound_ns <= (up_of(0) + down_of(0)) / 2 + 400 * US);
		assert_in_range(delays[i].up_ns - up_of(i) + delays[i].bound_ns, 0, 2 * delays[i].bound_ns);
		assert_in_range(delays[i].down_ns - down_of(i) + delays[i].bound_ns, 0, 2 * delays[i].bound_ns);
		assert_in_range(delays[i].up_ns + delays[i].down_ns - rows[i].rtt_ns + 2 * US, 0, 4 * US);
	}
}

TEST(the_truth_lies_within_the_bound)
{
	for (int i = 0; i < ROWS; i++)
		rows[i] = row(i, DAY);
	assert_int_equal(one_way_of_rows(rows, ROWS, &plain, delays), 0);
	check(0, ROWS);
}

TEST(a_step_of_a_clock_makes_two_segments)
{
	for (int i = 0; i < ROWS; i++)
		rows[i] = row(i, i < ROWS / 2 ? DAY : -DAY);
	assert_int_equal(one_way_of_rows(rows, ROWS, &plain, delays), 1);
	check(0, ROWS);
}

/* The far clock is slewed by 0.5 ms a second; its adjustments are known. */
TEST(adjustments_are_taken_out)
{
	const struct one_way_clocks adjusted = { .adjusted = true, .free_running = true };

	for (int i = 0; i < ROWS; i++) {
		rows[i] = row(i, DAY + i * 5 * US);
		rows[i].adjusted_ns = i * 5 * US;
	}
	assert_int_equal(one_way_of_rows(rows, ROWS, &adjusted, delays), 0);
	check(0, ROWS);
}

static int by_arrival(const void *a, const void *b)
{
	const struct one_way_row *x = a, *y = b;
	const int64_t apart = x->sent_ns + x->rtt_ns + x->dwell_ns - y->sent_ns - y->rtt_ns - y->dwell_ns;

	return (apart > 0) - (apart < 0);
}

/* How many delays down are further from the truth, 700 us, than their bound. */
static int wrong_down(void)
{
	int wrong = 0;

	assert_int_equal(one_way_of_rows(rows, ROWS, &plain, delays), 0);
	for (int i = 0; i < ROWS; i++)
		wrong += llabs(delays[i].down_ns - 700 * US) > delays[i].bound_ns;
	return wrong;
}

/* The far clock loses 0.5 ms a second. The reflector holds each tenth probe for 4 s, in which its clock loses 2 ms. */
TEST(a_reflector_that_holds_probes)
{
	for (int i = 0; i < ROWS; i++) {
		const int64_t sent = 5000 * MS + i * 10 * MS, arrived = sent + 200 * US,
			      held = i % 10 == 5 ? 4000 * MS : 20 * US, by_far = held - held / 2000;

		rows[i] = (struct one_way_row){ .sent_ns = sent,
						.rtt_ns = 200 * US + held + 700 * US - by_far,
						.far_ns = arrived + DAY - arrived / 2000,
						.dwell_ns = by_far };
	}
	qsort(rows, ROWS, sizeof *rows, by_arrival);
	assert_int_equal(wrong_down(), 0);
	for (int i = 0; i < ROWS; i++)
		rows[i].dwell_ns = 0;
	assert_true(wrong_down() > 30); /* as in files without this column */
}

/* A reflector that answers before the probe arrived, and a time that no clock has. */
TEST(rows_that_cannot_be_have_no_delays)
{
	for (int i = 0; i < ROWS; i++)
		rows[i] = row(i, DAY);
	rows[100].far_ns = INT64_MIN;
	rows[200].rtt_ns = -1;
	rows[201].own_queue_ns = INT64_MAX;
	rows[300].sent_ns = INT64_MAX;
	assert_int_equal(one_way_of_rows(rows, ROWS, &plain, delays), 0);
	for (int i = 100; i <= 300; i += 100)
		assert_true(delays[i].bound_ns == INT64_MIN && delays[i].up_ns == INT64_MIN);
	assert_true(delays[201].bound_ns == INT64_MIN);
	check(0, 100);
	check(101, 200);
}

TEST(one_row_and_none)
{
	rows[0] = row(0, DAY);
	assert_int_equal(one_way_of_rows(rows, 1, &plain, delays), 0);
	check(0, 1);
	assert_int_equal(one_way_of_rows(rows, 0, &plain, delays), 0);
}
