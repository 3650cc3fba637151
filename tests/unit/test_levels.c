/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Levels of a series: a change from one to another is found where it is, and what is no change of level is none. */
#include "cm.h"
#include "levels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST = 8, MOST = 160 };

static uint32_t state = 1;

static double drawn(void)
{
	state = state * 1664525u + 1013904223u;
	return (state >> 8) / 16777216.0;
}

static double noise(void)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += drawn();
	return sum;
}

static void ends_are(const double *values, size_t count, size_t least, const size_t *ends, size_t levels)
{
	struct level found[LEVELS_MOST];

	assert_int_equal(levels_find(values, count, least, 0, found), levels);
	for (size_t i = 0; i < levels; i++) {
		assert_int_equal(found[i].first, i ? ends[i - 1] : 0);
		assert_int_equal(found[i].end, ends[i]);
	}
}

TEST(levels_of_known_lengths_are_found)
{
	for (int round = 0; round < 300; round++) {
		const double factor = 1.5 + 20 * drawn();
		const size_t parts = 2 + (size_t)(3 * drawn());
		size_t ends[LEVELS_MOST], count = 0;
		double values[MOST], level = 10;

		for (size_t i = 0; i < parts; i++) {
			const size_t length = LEAST + (size_t)(32 * drawn());

			level *= drawn() < 0.5 ? factor : 1 / factor;
			for (size_t k = 0; k < length; k++)
				values[count++] = level * (1 + 0.01 * noise());
			ends[i] = count;
		}
		ends_are(values, count, LEAST, ends, parts);
	}
}

/* Long sample intervals make levels of one or two values (run tcp_upload -l 30 --sample-interval 5s). */
TEST(levels_of_few_values)
{
	ends_are((const double[]){ 1, 1, 1, 1, 5, 5, 5, 5 }, 8, 1, (const size_t[]){ 4, 8 }, 2);
	ends_are((const double[]){ 1, 5 }, 2, 1, (const size_t[]){ 1, 2 }, 2);
	ends_are((const double[]){ 5, 5, 5, 1 }, 4, 1, (const size_t[]){ 3, 4 }, 2);
	ends_are((const double[]){ 1, 5, 5, 5 }, 4, 1, (const size_t[]){ 1, 4 }, 2);
	ends_are((const double[]){ 1, 1, 5, 5 }, 4, 2, (const size_t[]){ 2, 4 }, 2);
	ends_are((const double[]){ 1, 5 }, 2, 0, (const size_t[]){ 1, 2 }, 2);
	ends_are((const double[]){ 3 }, 1, 1, (const size_t[]){ 1 }, 1);
	ends_are((const double[]){ 2, 2 }, 2, 1, (const size_t[]){ 2 }, 1);
	ends_are(NULL, 0, 1, NULL, 0);
	ends_are((const double[]){ 1, 1, 0, 0 }, 4, 1, (const size_t[]){ 4 }, 1);
}

static void is_one_level(const char *name, double of(size_t), size_t count)
{
	double values[LEVELS_POINTS + 1];
	struct level found[LEVELS_MOST];

	for (size_t i = 0; i < count; i++)
		values[i] = of(i);
	if (levels_find(values, count, LEAST, 0, found) != 1)
		fail_msg("%s: a false level", name);
}

static double ramp(size_t i)
{
	return 1 + (double)i / 9;
}

static double exponential(size_t i)
{
	return exp((double)i / 27);
}

static double sawtooth(size_t i)
{
	return 8 - 2 * (double)(i % 15) / 15;
}

static double random_values(size_t i)
{
	(void)i;
	return exp(0.5 * noise());
}

static double bursts(size_t i)
{
	return i % 20 < 3 ? 50 : 5;
}

static double constant(size_t i)
{
	(void)i;
	return 7;
}

static double short_end(size_t i)
{
	return i < 20 ? 1 : 9;
}

static double competing(size_t i)
{
	return (i < 30 ? 28 : 10) * exp(0.1 * noise());
}

TEST(what_is_no_change_of_level)
{
	is_one_level("ramp", ramp, 80);
	is_one_level("exponential", exponential, 80);
	is_one_level("sawtooth", sawtooth, 90);
	is_one_level("noise", random_values, 100);
	is_one_level("bursts", bursts, 60);
	is_one_level("constant", constant, 60);
	is_one_level("too short", constant, 2 * LEAST - 1);
	is_one_level("a short end", short_end, 20 + LEAST - 3);
	is_one_level("flows that compete", competing, 60);
	is_one_level("too long", short_end, LEVELS_POINTS + 1);
}

TEST(levels_cover_any_series)
{
	for (int round = 0; round < 3000; round++) {
		struct level found[LEVELS_MOST];
		const size_t count = (size_t)(15 * drawn()), least = (size_t)(9 * drawn());
		double values[15];
		size_t levels, end = 0;

		for (size_t i = 0; i < count; i++)
			values[i] = drawn() < 0.1 ? 0 : pow(10, 9 * drawn() - 3);
		levels = levels_find(values, count, least, drawn(), found);
		assert_int_equal(levels == 0, count == 0);
		for (size_t i = 0; i < levels; end = found[i++].end)
			assert_int_equal(found[i].first, end);
		assert_int_equal(end, count);
	}
}

static size_t of_rate(double of(size_t), size_t count, double first, uint32_t bytes,
		      struct rate_level found[RATE_LEVELS_MOST])
{
	double values[LEVELS_POINTS];

	for (size_t i = 0; i < count; i++)
		values[i] = of(i);
	return levels_of_rate(&(struct rate_windows){ .values = values,
						      .count = count,
						      .begin_ns = 3000000000,
						      .window_ns = 400000000,
						      .packet_bytes = bytes,
						      .first = first },
			      found);
}

/* 13 or 14 packets in a window of 400 ms. */
static double few_packets(size_t i)
{
	return i < 15 ? 9.5e6 : i % 2 ? 3.6e5 : 4.2e5;
}

static double stalled(size_t i)
{
	return i >= 10 && i < 20 ? 0 : 9.5e6;
}

TEST(levels_of_a_rate)
{
	struct rate_level found[RATE_LEVELS_MOST];

	assert_int_equal(of_rate(constant, 20, -1, 1500, found), 0);
	assert_int_equal(of_rate(constant, 20, 7, 1500, found), 0);
	assert_int_equal(of_rate(constant, 20, 10, 1500, found), 2); /* a bucket that was full */
	assert_int_equal(found[0].from_ns, 2000000000);
	assert_int_equal(found[0].to_ns, 3000000000);
	assert_int_equal(found[1].to_ns, 11000000000);
	assert_true(found[0].median == 10 && found[1].median == 7);
	assert_int_equal(of_rate(constant, 7, 10, 1500, found), 0);

	assert_int_equal(of_rate(few_packets, 30, -1, 0, found), 0);
	assert_int_equal(of_rate(few_packets, 30, -1, 1500, found), 2);
	assert_int_equal(found[0].to_ns, 9000000000);

	assert_int_equal(of_rate(stalled, 30, -1, 1500, found), 3);
	assert_true(found[1].median == 0);
	assert_int_equal(of_rate(stalled, 0, -1, 1500, found), 0);
}

TEST(windows_of_a_rate)
{
	assert_int_equal(levels_window_ns(0, 10000000000, 200000000), 400000000);
	assert_int_equal(levels_window_ns(0, 10000000000, 5000000000), 10000000000);
	assert_int_equal(levels_window_ns(0, 200000000000, 200000000), 1000000000);
	assert_int_equal(levels_window_ns(5, 1, 1), 400000000);
}
