/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The parts of the estimator of available bandwidth: trends, fleets, the search, gaps, the empty queue, chirps. */
#include "abw.h"
#include "abw_chirp.h"
#include "abw_line.h"
#include "cm.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static double uniform(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return ((double)(*seed >> 11) + 0.5) / 9007199254740992.0;
}

static struct abw_trend_result trend_of(double drift, double jitter_ns, uint32_t packets, uint32_t lost,
					double noise_ns)
{
	uint64_t sent[1000], arrived[1000], seed = 5;
	struct abw_trend_result r;

	for (uint32_t i = 0; i < packets; i++) {
		sent[i] = 1000000 + i * 100000ull;
		arrived[i] =
			i < lost ? 0 : (uint64_t)(7e9 + (double)sent[i] * (1 + drift) + jitter_ns * uniform(&seed));
	}
	abw_trend(&(struct abw_train){ sent, arrived, packets }, noise_ns, &r);
	return r;
}

TEST(test_trends)
{
	assert_int_equal(trend_of(0.1, 10e3, 100, 0, 0).trend, ABW_RISING);
	assert_true(fabs(trend_of(0.1, 10e3, 100, 0, 0).drift - 0.1) < 0.01);
	assert_true(fabs(trend_of(0.1, 10e3, 100, 0, 0).gap_ns - 100e3) < 1);
	assert_int_equal(trend_of(0, 10e3, 100, 0, 0).trend, ABW_NO_TREND);
	assert_int_equal(trend_of(-0.1, 10e3, 100, 0, 0).trend, ABW_NO_TREND);
	assert_int_equal(trend_of(200e-6, 0, 100, 0, 0).trend, ABW_NO_TREND); /* skew */
	assert_int_equal(trend_of(0.01, 0, 100, 0, 0).trend, ABW_RISING);
	assert_int_equal(trend_of(0.01, 0, 100, 0, 200e3).trend, ABW_NO_TREND); /* 99 us in all */
	assert_int_equal(trend_of(0, 10e3, 100, 16, 0).trend, ABW_RISING);
	assert_int_equal(trend_of(0, 10e3, 100, 15, 0).lost, 15);
	assert_int_equal(trend_of(0, 10e3, 100, 15, 0).trend, ABW_NO_TREND);
	assert_int_equal(trend_of(0.1, 0, ABW_TREND_LEAST - 1, 0, 0).trend, ABW_UNUSABLE);
	assert_int_equal(trend_of(0.1, 0, ABW_TREND_LEAST, 0, 0).trend, ABW_RISING);
	assert_int_equal(trend_of(0.1, 0, 1000, 0, 0).trend, ABW_RISING);
	assert_int_equal(trend_of(0.1, 0, 0, 0, 0).trend, ABW_UNUSABLE);
}

static enum abw_fleet fleet_of(size_t rising, size_t level, size_t ambiguous, size_t unusable)
{
	struct abw_trend_result streams[32] = { 0 };
	size_t n = 0;

	for (; n < rising; n++)
		streams[n].trend = ABW_RISING;
	for (; n < rising + level; n++)
		streams[n].trend = ABW_NO_TREND;
	for (; n < rising + level + ambiguous; n++)
		streams[n].trend = ABW_AMBIGUOUS;
	for (; n < rising + level + ambiguous + unusable; n++)
		streams[n].trend = ABW_UNUSABLE;
	return abw_fleet(streams, n);
}

TEST(test_fleets)
{
	assert_int_equal(fleet_of(6, 4, 2, 0), ABW_FLEET_ABOVE);
	assert_int_equal(fleet_of(4, 6, 2, 0), ABW_FLEET_BELOW);
	assert_int_equal(fleet_of(6, 6, 0, 0), ABW_FLEET_GREY);
	assert_int_equal(fleet_of(0, 0, 12, 0), ABW_FLEET_GREY);
	assert_int_equal(fleet_of(5, 0, 0, 7), ABW_FLEET_UNUSABLE);
	assert_int_equal(fleet_of(0, 0, 0, 0), ABW_FLEET_UNUSABLE);
}

static bool lossy(uint32_t packets, const uint32_t lost[12])
{
	struct abw_trend_result streams[12] = { 0 };

	for (int i = 0; i < 12; i++)
		streams[i].lost = lost[i];
	return abw_fleet_is_lossy(streams, 12, packets);
}

/* Constants of pathload 1.3.3: 15 % of one stream, 3 % of half of the streams. */
TEST(test_losses_of_a_fleet)
{
	assert_false(lossy(100, (const uint32_t[12]){ 0 }));
	assert_false(lossy(100, (const uint32_t[12]){ 14 }));
	assert_true(lossy(100, (const uint32_t[12]){ [11] = 15 }));
	assert_false(lossy(100, (const uint32_t[12]){ 3, 3, 3, 3, 3 }));
	assert_true(lossy(100, (const uint32_t[12]){ 3, 3, 3, 3, 3, 0, 3 }));
	assert_false(lossy(100, (const uint32_t[12]){ 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2 }));
	assert_false(lossy(0, (const uint32_t[12]){ 0 }));
	assert_false(abw_fleet_is_lossy(NULL, 0, 100));
}

TEST(test_search)
{
	for (double truth = 2; truth < 100; truth += 7)
		for (double grey = 0; grey < 10; grey += 4) {
			struct abw_search s = { .high = 101, .resolution = 5 };
			int steps = 0;

			for (; !abw_search_over(&s) && steps < 30; steps++) {
				const double rate = abw_search_rate(&s);

				abw_search_take(&s, rate,
						rate > truth + grey   ? ABW_FLEET_ABOVE
						: rate < truth - grey ? ABW_FLEET_BELOW
								      : ABW_FLEET_GREY);
			}
			assert_true(abw_search_over(&s) && s.low <= truth && truth <= s.high);
			assert_true(s.high - s.low <= 2 * grey + 10);
		}
}

TEST(test_a_fleet_that_contradicts_the_grey_region)
{
	struct abw_search s = { .high = 100, .resolution = 5 };

	abw_search_take(&s, 50, ABW_FLEET_GREY);
	abw_search_take(&s, 75, ABW_FLEET_BELOW);
	assert_true(s.low == 75 && abw_search_rate(&s) > 75);
	abw_search_take(&s, 87, ABW_FLEET_GREY);
	abw_search_take(&s, 80, ABW_FLEET_ABOVE);
	assert_true(s.high == 80 && abw_search_over(&s));
}

/* Packets of 1514 bytes at 1 Gbit/s, stamps with steps of 256 ns that are up to 600 ns late. */
TEST(test_gaps_of_a_clock_with_steps)
{
	enum { TRAINS = 8, PACKETS = 5 };

	for (uint64_t seed = 1; seed <= 50; seed++) {
		uint64_t sent[TRAINS * PACKETS], arrived[TRAINS * PACKETS], random = seed;
		struct abw_line line;

		for (int i = 0; i < TRAINS * PACKETS; i++) {
			const double at = i / PACKETS * 20e6 + i % PACKETS * 12112 + 600 * uniform(&random);

			sent[i] = (uint64_t)(1e9 + i / PACKETS * 20e6);
			arrived[i] = (uint64_t)((5e9 + at) / 256) * 256;
		}
		abw_line(sent, arrived, TRAINS, PACKETS, &line);
		assert_int_equal(line.gaps, TRAINS * (PACKETS - 1));
		assert_true(fabs(line.gap_ns / 12112 - 1) < 0.02);
	}
}

/* A whole train shows that a receiver took its packets in groups, although single gaps are all equal. */
TEST(test_whole_trains)
{
	enum { TRAINS = 4, PACKETS = 5, GAP = 1211000, PERIOD = 250000 };

	for (int grouped = 0; grouped < 2; grouped++) {
		uint64_t sent[TRAINS * PACKETS], arrived[TRAINS * PACKETS];
		struct abw_line line;

		for (uint64_t i = 0; i < TRAINS * PACKETS; i++) {
			const uint64_t at = i / PACKETS * 20070000 + i % PACKETS * GAP;

			sent[i] = 1000000000 + i / PACKETS * 20070000;
			arrived[i] = 5000000000 + (grouped ? (at + PERIOD - 1) / PERIOD * PERIOD : at);
		}
		abw_line(sent, arrived, TRAINS, PACKETS, &line);
		assert_int_equal(line.train_gap_ns == line.gap_ns, !grouped);
		assert_true(line.train_gap_ns / GAP > 0.98 && line.train_gap_ns / GAP < 1.04);
		for (int i = 0; i < TRAINS; i++)
			arrived[i * PACKETS + 2] = 0;
		abw_line(sent, arrived, TRAINS, PACKETS, &line);
		assert_true(line.train_gap_ns == 0);
	}
}

TEST(test_idle_share)
{
	struct timed_delay delays[1000];
	struct abw_idle r;

	for (int share = 0; share <= 10; share++) {
		uint64_t seed = 3;

		for (int i = 0; i < 1000; i++) {
			const double at = 4e6 * i, waits = i % 10 < share ? 0 : 1e6 * uniform(&seed);

			delays[999 - i] = (struct timed_delay){ at, 5e12 + waits + 100e-6 * at + 300 * uniform(&seed) };
		}
		assert_int_equal(abw_idle(delays, 1000, 500, 1000, &r), 0);
		if (!share) {
			assert_true(r.share < 0.02);
			continue;
		}
		assert_true(r.resolved);
		assert_true(fabs(r.share - share / 10.0) < 0.02);
		assert_true(r.low <= share / 10.0 && share / 10.0 <= r.high);
		assert_true(fabs(r.skew_ppm - 100) < 1);
	}
	assert_int_equal(abw_idle(delays, ABW_IDLE_LEAST - 1, 500, 1000, &r), -EINVAL);
	assert_int_equal(abw_idle(delays, 0, 500, 1000, &r), -EINVAL);
}

TEST(test_chirp)
{
	uint64_t sent[40], arrived[40] = { 0 };
	double gap = 1200e3, at = 1e9, free_ns = 0; /* from 10 Mbit/s */

	for (int i = 0; i < 40; i++, at += gap, gap /= 1.1) {
		free_ns = fmax(free_ns, at) + 120e3; /* a link of 100 Mbit/s */
		sent[i] = (uint64_t)at;
		arrived[i] = (uint64_t)free_ns;
	}
	assert_true(fabs(abw_chirp(&(struct abw_train){ sent, arrived, 40 }, 12000, 0) / 100e6 - 1) < 0.1);
	assert_true(abw_chirp(&(struct abw_train){ sent, arrived, ABW_TREND_LEAST - 1 }, 12000, 0) == 0);
	memset(arrived, 0, sizeof arrived);
	assert_true(abw_chirp(&(struct abw_train){ sent, arrived, 40 }, 12000, 0) == 0);
}
