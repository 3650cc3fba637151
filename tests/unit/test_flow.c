/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The pure parts of UDP flows: when packets leave, and what their receiver can say of them. */
#include "cm.h"
#include "flow_count.h"
#include "traffic_model.h"

#include <string.h>

static const uint8_t seed[16] = { 1, 2, 3, 4, 5, 6, 7, 8 };

TEST(constant_never_drifts)
{
	const struct flow_spec spec = { .udp = true, .rate_bps = 7000000, .payload_min = 1000, .payload_max = 1000 };
	struct traffic_model model;
	uint32_t payload;

	assert_int_equal(traffic_model_begin(&model, &spec, seed), 0);
	for (uint64_t i = 0; i < 100000; i++) {
		/* i packets of 8000 bits at 7 Mbit/s: a gap that is no whole number of nanoseconds. */
		assert_int_equal(traffic_model_next(&model, &payload), i * 8000 * 1000 / 7);
		assert_int_equal(payload, 1000);
	}
	traffic_model_end(&model);
}

TEST(sizes_are_drawn_evenly)
{
	const struct flow_spec spec = { .udp = true, .rate_bps = 10000000, .payload_min = 100, .payload_max = 103 };
	struct traffic_model model;
	uint64_t last = 0, bits = 0;
	uint32_t payload, counts[4] = { 0 };

	assert_int_equal(traffic_model_begin(&model, &spec, seed), 0);
	for (int i = 0; i < 40000; i++) {
		const uint64_t at = traffic_model_next(&model, &payload);

		/* A packet leaves when the ones before it would be through at the rate. */
		assert_int_equal(at, bits * 100);
		assert_true(at >= last && payload >= 100 && payload <= 103);
		counts[payload - 100]++;
		bits += payload * 8;
		last = at;
	}
	for (int i = 0; i < 4; i++)
		assert_in_range(counts[i], 9500, 10500);
	traffic_model_end(&model);
}

TEST(poisson_has_its_rate)
{
	const struct flow_spec spec = {
		.udp = true, .model = FLOW_POISSON, .rate_bps = 8000000, .payload_min = 1000, .payload_max = 1000
	};
	struct traffic_model model;
	uint64_t at = 0, last = 0, longer = 0;
	uint32_t payload;

	assert_int_equal(traffic_model_begin(&model, &spec, seed), 0);
	for (int i = 0; i < 100000; i++) {
		at = traffic_model_next(&model, &payload);
		longer += at - last > 1000000; /* than the mean: a share of 1/e */
		last = at;
	}
	assert_in_range(at, 99ull * 1000000000, 101ull * 1000000000);
	assert_in_range(longer, 36200, 37400);
	traffic_model_end(&model);
}

TEST(trains_have_their_rate_gaps_and_sizes)
{
	const struct flow_spec spec = { .udp = true,
					.model = FLOW_TRAIN,
					.rate_bps = 8000000,
					.payload_min = 100,
					.payload_max = 600,
					.train = 5,
					.train_gap_ns = 10000,
					.train_shrink = 32768 };
	const uint64_t period_ns = 1000 * 1000; /* 1000 bytes at 8 Mbit/s */
	struct traffic_model model;
	uint64_t jitter_min = UINT64_MAX, jitter_max = 0;

	assert_int_equal(flow_train_bits(&spec), 8000);
	assert_true(flow_train_fits(&spec));
	assert_int_equal(traffic_model_begin(&model, &spec, seed), 0);
	for (uint64_t train = 0; train < 100; train++) {
		uint64_t before_ns = 0, gap_ns = 10000;

		for (int i = 0; i < 5; i++) {
			uint32_t payload;
			const uint64_t at_ns = traffic_model_next(&model, &payload);

			assert_int_equal(payload, i ? 100 : 600);
			if (i) {
				assert_int_equal(at_ns - before_ns, gap_ns);
				gap_ns /= 2;
			} else {
				const uint64_t jitter_ns = at_ns - train * period_ns;

				assert_in_range(jitter_ns, 0, period_ns / 8);
				jitter_min = jitter_ns < jitter_min ? jitter_ns : jitter_min;
				jitter_max = jitter_ns > jitter_max ? jitter_ns : jitter_max;
			}
			before_ns = at_ns;
		}
	}
	assert_true(jitter_min < period_ns / 80 && jitter_max > period_ns / 8 / 10 * 9);
	traffic_model_end(&model);
}

TEST(trains_have_limits)
{
	const struct flow_spec fits = { .udp = true,
					.model = FLOW_TRAIN,
					.rate_bps = 8000000,
					.payload_min = 500,
					.payload_max = 500,
					.train = 2,
					.train_gap_ns = 250000 };
	struct flow_spec spec = fits;

	assert_true(flow_train_fits(&spec));
	spec.train_gap_ns++;
	assert_false(flow_train_fits(&spec));
	spec.train_gap_ns = UINT64_MAX;
	assert_false(flow_train_fits(&spec));
	spec = fits;
	spec.train = 1;
	assert_false(flow_train_fits(&spec));
	spec.train = 1001;
	assert_false(flow_train_fits(&spec));
	spec = fits;
	spec.train = 1000;
	spec.train_gap_ns = 0;
	assert_true(flow_train_fits(&spec));
	spec.payload_min = 9000;
	assert_false(flow_train_fits(&spec));
	spec = fits;
	spec.rate_bps = 0;
	assert_false(flow_train_fits(&spec));
}

TEST(voip_talks_and_pauses)
{
	const struct flow_spec spec = {
		.udp = true, .model = FLOW_VOIP, .rate_bps = 68800, .payload_min = 172, .payload_max = 172
	};
	struct traffic_model model;
	uint64_t last = 0, pauses = 0, silent = 0, at = 0;
	uint32_t payload;
	int packets;

	assert_int_equal(traffic_model_begin(&model, &spec, seed), 0);
	for (packets = 0; at < 36000ull * 1000000000; packets++) {
		at = traffic_model_next(&model, &payload);
		assert_true(at >= last);
		if (packets && at - last > 20000000) {
			pauses++;
			silent += at - last - 20000000;
		} else if (packets) {
			assert_int_equal(at - last, 20000000);
		}
		last = at;
	}
	/* Ten hours: 1.004 s of 2.591 s are speech, give or take what so many spurts scatter. */
	assert_in_range(pauses, 13000, 14600);
	assert_in_range(silent / pauses, 1500000000, 1680000000);
	assert_in_range(packets, 36000 * 50 * 36 / 100, 36000 * 50 * 42 / 100);
	traffic_model_end(&model);
}

static void count(struct flow_count *c, uint64_t number)
{
	flow_count_packet(c, number, 100, 2);
}

TEST(in_order_nothing_is_missing)
{
	struct flow_count c = { 0 };

	for (uint64_t i = 0; i < 20000; i++)
		flow_count_packet(&c, i, 100, (uint8_t)(i % 4));
	assert_true(c.packets == 20000 && c.bytes == 2000000 && c.reordered == 0 && c.duplicates == 0);
	assert_true(c.ect1 == 5000 && c.ect0 == 5000 && c.ce == 5000);
	assert_int_equal(flow_count_lost(&c, 0), 0);
	assert_int_equal(flow_count_lost(&c, 20005), 5); /* the last ones: only the sender has their number */
}

TEST(each_fate_is_reported)
{
	struct flow_count c = { 0 };

	count(&c, 0);
	count(&c, 1);
	count(&c, 1); /* twice */
	count(&c, 5); /* 2, 3, 4 are missing */
	assert_int_equal(flow_count_lost(&c, 0), 3);
	count(&c, 3); /* overtaken */
	count(&c, 3); /* and twice */
	assert_true(c.packets == 4 && c.reordered == 1 && c.duplicates == 2 && flow_count_lost(&c, 0) == 2);
	/* A packet that its host's own queue dropped has a number, and was not sent. */
	assert_int_equal(flow_count_lost(&c, 5), 1);
	count(&c, 5 + FLOW_COUNT_LEAP + 1); /* not a number of this flow */
	assert_true(c.protocol_errors == 1 && c.next == 6);
	/* The window is passed in one leap: nothing of before is taken for a copy. */
	count(&c, 3 * FLOW_COUNT_WINDOW + 3);
	count(&c, 3 * FLOW_COUNT_WINDOW + 1);
	assert_true(c.reordered == 2 && c.duplicates == 2);
	count(&c, 3 * FLOW_COUNT_WINDOW + 1);
	assert_int_equal(c.duplicates, 3);
}

/* Against a list that forgets nothing. */
TEST(any_order_within_the_window)
{
	static uint8_t times[4000];
	struct flow_count c = { 0 };
	uint64_t unique = 0, twice = 0, high = 0, random = 1;

	for (int i = 0; i < 30000; i++) {
		uint64_t number;

		random = random * 6364136223846793005ull + 1442695040888963407ull;
		number = (random >> 33) % 4000;
		count(&c, number);
		unique += !times[number];
		twice += times[number] != 0;
		times[number] = 1;
		high = number > high ? number : high;
	}
	assert_true(c.packets == unique && c.duplicates == twice && c.next == high + 1);
	assert_int_equal(flow_count_lost(&c, 0), high + 1 - unique);
}
