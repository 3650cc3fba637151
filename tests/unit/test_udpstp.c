/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* UDPSTP: layouts by their offsets in RFC 9946, keys, the sending rate table, and what a receiver counts. */
#include "cm.h"
#include "bytes.h"
#include "udpstp_rates.h"
#include "udpstp_receiver.h"

#include <errno.h>
#include <string.h>

#define MS 1000000ULL

static const char token[] = "a token of more than 128 bits!";

TEST(test_setup)
{
	const struct udpstp_setup s = { .version = 20,
					.index = 1,
					.count = 3,
					.ident = 0x1234,
					.request = UDPSTP_SETUP_REQUEST,
					.answer = 0,
					.max_mbit_s = 0x8064,
					.port = 0xcafe,
					.modifiers = 2 };
	static const uint8_t begin[] = { 0xac, 0xe1, 0, 20, 1, 3, 0x12, 0x34, 1, 0, 0x80, 0x64, 0xca, 0xfe, 2, 0 };
	uint8_t data[UDPSTP_SETUP_BYTES], again[UDPSTP_SETUP_BYTES];
	struct udpstp_setup back;

	udpstp_setup_write(data, &s);
	assert_memory_equal(data, begin, sizeof begin);
	assert_int_equal(udpstp_setup_read(&back, data, sizeof data), 0);
	udpstp_setup_write(again, &back);
	assert_memory_equal(again, data, sizeof data);
	assert_int_equal(udpstp_setup_read(&back, data, sizeof data - 1), -EBADMSG);
	data[8] = 3; /* neither request nor response */
	assert_int_equal(udpstp_setup_read(&back, data, sizeof data), -EBADMSG);
	data[8] = 1;
	data[0] = 0xad;
	assert_int_equal(udpstp_setup_read(&back, data, sizeof data), -EBADMSG);
}

TEST(test_activation)
{
	struct udpstp_activation a = { .version = 20,
				       .request = UDPSTP_DOWN,
				       .low_ms = 30,
				       .upper_ms = 90,
				       .trial_ms = 50,
				       .test_s = 10,
				       .tos = 0xb8,
				       .row = 0xffff,
				       .high_speed_delta = 10,
				       .slow_adjust = 3,
				       .sequence_errors = 10,
				       .ignore_reordering = 1,
				       .modifiers = 2,
				       .algorithm = 1,
				       .interval_ms = 1000 };
	uint8_t data[UDPSTP_ACTIVATION_BYTES], again[UDPSTP_ACTIVATION_BYTES];
	struct udpstp_activation back;

	udpstp_rate_row(&a.rate, 1234 - 1000, false);
	udpstp_activation_write(data, &a);
	assert_int_equal(load_be16(data + 6), 30);
	assert_int_equal(load_be16(data + 12), 10);
	assert_int_equal(data[15], 0xb8);
	assert_int_equal(data[19], 10);
	assert_int_equal(data[26], 1);
	assert_int_equal(load_be32(data + 28), 100); /* us, of the first transmitter */
	assert_int_equal(load_be16(data + 56), 1000);
	assert_int_equal(udpstp_activation_read(&back, data, sizeof data), 0);
	udpstp_activation_write(again, &back);
	assert_memory_equal(again, data, sizeof data);
	assert_int_equal(udpstp_activation_read(&back, data, sizeof data - 44), -EBADMSG); /* an older version's */
	data[4] = 3;
	assert_int_equal(udpstp_activation_read(&back, data, sizeof data), -EBADMSG);
}

TEST(test_load)
{
	const struct udpstp_load l = { .sequence = 7,
				       .payload = 1222,
				       .status_errors = 2,
				       .status_s = 100,
				       .status_ns = 200,
				       .sent_s = 101,
				       .sent_ns = 999999999,
				       .answer_delay_ms = 12 };
	uint8_t data[UDPSTP_LOAD_HEAD], again[UDPSTP_LOAD_HEAD];
	struct udpstp_load back;
	uint32_t sum = 0;

	udpstp_load_write(data, &l);
	assert_int_equal(load_be16(data), 0xbeef);
	assert_int_equal(load_be16(data + 28), 12);
	assert_int_equal(udpstp_load_read(&back, data, sizeof data, 1222), 0);
	udpstp_load_write(again, &back);
	assert_memory_equal(again, data, sizeof data);
	assert_int_equal(udpstp_load_read(&back, data, sizeof data, 1221), -EBADMSG); /* it was cut on its way */
	assert_int_equal(udpstp_load_read(&back, data, sizeof data - 1, 1222), -EBADMSG);
	/* A checksum that is not 0 is checked. */
	for (unsigned int i = 0; i < sizeof data; i += 2)
		sum += load_be16(data + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	store_be16(data + 30, (uint16_t)~sum);
	assert_int_equal(udpstp_load_read(&back, data, sizeof data, 1222), 0);
	data[29]++;
	assert_int_equal(udpstp_load_read(&back, data, sizeof data, 1222), -EBADMSG);
	store_be16(data + 30, 0);
	store_be32(data + 24, 1000000000); /* no nanoseconds */
	assert_int_equal(udpstp_load_read(&back, data, sizeof data, 1222), -EBADMSG);
}

TEST(test_status)
{
	struct udpstp_status s = {
		.sequence = 9,
		.interval_number = 3,
		.interval = { .datagrams = 5, .bytes = 0x123456789aULL, .lasts_us = 1000000, .accumulated_ms = 3000 },
		.lost = 4,
		.variation_min = UDPSTP_UNKNOWN,
		.rtt_variation = 17,
		.minimum_new = 1,
		.trial_bytes = 6,
		.sent_s = 1,
		.sent_ns = 2
	};
	uint8_t data[UDPSTP_STATUS_BYTES], again[UDPSTP_STATUS_BYTES];
	struct udpstp_status back;

	udpstp_rate_row(&s.rate, 15, false);
	udpstp_status_write(data, &s);
	assert_int_equal(load_be32(data + 36), 3);
	assert_int_equal(load_be32(data + 40), 5);
	assert_true(load_be64(data + 44) == 0x123456789aULL); /* not aligned: the structure is packed */
	assert_int_equal(load_be32(data + 96), 4);
	assert_int_equal(load_be32(data + 132), 17);
	assert_int_equal(data[136], 1);
	assert_int_equal(load_be32(data + 148), 6);
	assert_int_equal(load_be32(data + 156), 2);
	assert_int_equal(udpstp_status_read(&back, data, sizeof data), 0);
	udpstp_status_write(again, &back);
	assert_memory_equal(again, data, sizeof data);
	assert_int_equal(udpstp_status_read(&back, data, sizeof data - 36), -EBADMSG);
	data[2] = 3;
	assert_int_equal(udpstp_status_read(&back, data, sizeof data), -EBADMSG);
}

/* The keys are those of OpenSSL's KBKDF (counter mode, HMAC, SHA-256, salt "UDPSTP", info "1795408669"). */
TEST(test_keys)
{
	static const uint8_t client[32] = { 0x3b, 0x67, 0x72, 0x42, 0xfd, 0xa1, 0x47, 0x39, 0x66, 0xd8, 0x03,
					    0xc4, 0xbe, 0xe1, 0x61, 0xee, 0x71, 0x49, 0x1a, 0x38, 0x36, 0x12,
					    0x43, 0xc8, 0xa2, 0x9a, 0x0e, 0x5e, 0x67, 0xc2, 0x33, 0x4f },
			     server[32] = { 0x30, 0x51, 0x32, 0x12, 0x47, 0x12, 0x53, 0xd8, 0x33, 0x70, 0x66,
					    0x4a, 0x02, 0x34, 0xa6, 0xc3, 0xbb, 0x12, 0x83, 0x9f, 0xbd, 0x6c,
					    0xf1, 0x79, 0xd3, 0xb3, 0xc5, 0x9b, 0x64, 0x99, 0x4f, 0xe1 };
	struct hmac_key wanted[2];
	struct udpstp_keys keys;
	uint8_t mac[2][SHA256_LENGTH];

	udpstp_keys_derive(&keys, token, 30, 1795408669);
	hmac_key_set(&wanted[0], client, sizeof client);
	hmac_key_set(&wanted[1], server, sizeof server);
	for (int i = 0; i < 2; i++) {
		hmac_sha256(i ? &keys.server : &keys.client, "x", 1, mac[0]);
		hmac_sha256(&wanted[i], "x", 1, mac[1]);
		assert_memory_equal(mac[0], mac[1], SHA256_LENGTH);
	}
}

TEST(test_signature)
{
	const struct udpstp_setup s = { .version = 20, .count = 1, .request = UDPSTP_SETUP_REQUEST };
	uint8_t data[UDPSTP_SETUP_BYTES];
	struct udpstp_keys keys, others;

	udpstp_keys_derive(&keys, token, 30, 1000);
	udpstp_keys_derive(&others, token, 30, 1001);
	udpstp_setup_write(data, &s);
	assert_int_equal(udpstp_auth_mode(data, sizeof data), UDPSTP_OPEN);
	assert_false(udpstp_signed_by(data, sizeof data, &keys.client));
	udpstp_sign(data, sizeof data, &keys.client, 5, 1000);
	assert_int_equal(data[15], UDPSTP_AUTHENTICATED);
	assert_int_equal(udpstp_auth_time(data, sizeof data), 1000);
	assert_int_equal(data[52], 5);
	assert_true(udpstp_signed_by(data, sizeof data, &keys.client));
	assert_false(udpstp_signed_by(data, sizeof data, &keys.server));
	assert_false(udpstp_signed_by(data, sizeof data, &others.client));
	for (unsigned int i = 0; i < sizeof data - 2; i++) { /* the checksum is not signed */
		data[i] ^= 1;
		assert_false(udpstp_signed_by(data, sizeof data, &keys.client));
		data[i] ^= 1;
	}
}

static double mbit_of(const struct udpstp_rate *rate)
{
	double mbit = 0;

	for (int i = 0; i < 2; i++)
		if (rate->interval_us[i])
			mbit += (double)rate->burst[i] * (rate->payload[i] + UDPSTP_HEADERS_V4) * 8 /
				rate->interval_us[i];
	if (rate->add)
		mbit += (double)(rate->add + UDPSTP_HEADERS_V4) * 8 / rate->interval_us[1];
	return mbit;
}

TEST(test_rates)
{
	struct udpstp_rate rate;

	for (int large = 0; large < 2; large++) {
		double before = 0;

		for (uint32_t row = 1; row <= UDPSTP_ROW_LAST; row++) {
			udpstp_rate_row(&rate, row, large);
			assert_true(udpstp_rate_fits(&rate));
			if (row <= UDPSTP_ROW_1G)
				assert_true(mbit_of(&rate) > row - 0.001 && mbit_of(&rate) < row + 0.001);
			else
				assert_true(mbit_of(&rate) > before);
			before = mbit_of(&rate);
			assert_true(udpstp_row_of((uint64_t)(before + 0.5), large) == row ||
				    (row > UDPSTP_ROW_1G && rate.burst[0] == 100));
		}
	}
	udpstp_rate_row(&rate, 0, false);
	assert_true(rate.add == (1222 | UDPSTP_RANDOM_SIZE) && rate.interval_us[1] == 50000 && udpstp_rate_fits(&rate));
	rate.burst[0] = 101;
	assert_false(udpstp_rate_fits(&rate));
	rate.burst[0] = 0;
	rate.interval_us[0] = 1;
	assert_false(udpstp_rate_fits(&rate));
	rate.interval_us[0] = 0;
	rate.payload[1] = 9000;
	assert_false(udpstp_rate_fits(&rate));
}

static void arrive(struct udpstp_receiver *r, uint32_t number, uint64_t sent_ms, uint64_t arrived_ms)
{
	const struct udpstp_load l = { .sequence = number,
				       .payload = 1000,
				       .sent_s = (uint32_t)(sent_ms / 1000),
				       .sent_ns = (uint32_t)(sent_ms % 1000 * MS) };

	udpstp_receiver_load(r, &l, (int64_t)(arrived_ms * MS));
}

TEST(test_receiver)
{
	struct rate_search_feedback f;
	struct udpstp_receiver r;
	struct udpstp_status s;

	udpstp_receiver_begin(&r, 0);
	arrive(&r, 1, 5000, 1010); /* the sender's clock is ahead */
	arrive(&r, 2, 5010, 1015);
	arrive(&r, 5, 5020, 1040); /* 3 and 4 are missing */
	arrive(&r, 4, 5015, 1041); /* late */
	arrive(&r, 4, 5015, 1041); /* and a copy */
	arrive(&r, 5, 5020, 1042);
	assert_int_equal(r.trial.datagrams, 6);
	assert_int_equal(r.trial.lost, 1);
	assert_int_equal(r.trial.reordered, 1);
	assert_int_equal(r.trial.duplicates, 2);
	/* Delays above the least so far: 0 of the first, 0 of the second, which is less, 15 ms of the third. */
	assert_int_equal(r.trial.variation_max_ns, 15 * MS);
	assert_int_equal(r.trial.variation_sum_ns, 15 * MS);
	f = udpstp_receiver_feedback(&r, true);
	/* 4 came 6 ms later than it would have in order, so 3 may still come. */
	assert_true(f.delay_known && f.delay_ms == 5 && f.lost == 0 && f.reordered == 1 && f.duplicates == 2);
	f = udpstp_receiver_feedback(&r, false);
	assert_false(f.delay_known); /* there is no round trip yet */
	assert_false(udpstp_receiver_roll(&r, 900 * MS, 975 * MS));
	assert_true(udpstp_receiver_roll(&r, 1000 * MS, 975 * MS));
	udpstp_receiver_status(&r, &s, 1000 * MS, 1234567890123456789);
	assert_int_equal(s.interval.datagrams, 6);
	assert_int_equal(s.interval.bytes, 6000);
	assert_int_equal(s.interval.lasts_us, 1000000);
	assert_int_equal(s.interval_number, 1);
	assert_int_equal(s.sent_s, 1234567890);
	assert_int_equal(s.variation_max, 15);
	assert_int_equal(s.rtt_min, UDPSTP_UNKNOWN);
	assert_int_equal(r.trial.datagrams, 0);
	udpstp_receiver_status(&r, &s, 1050 * MS, 1234567890123456789);
	assert_int_equal(s.sequence, 2);
	assert_int_equal(s.lost, 0);
	assert_int_equal(s.variation_min, UDPSTP_UNKNOWN);
	assert_int_equal(s.interval.datagrams, 6);
	arrive(&r, 6, 5080, 1090);
	udpstp_receiver_status(&r, &s, 1100 * MS, 1234567890123456789);
	assert_int_equal(s.lost, 1);
}

/* Each datagram is overtaken by the `late` ones behind it, over the ends of trials. Each 100th one is lost. */
TEST(test_overtaken_datagrams_are_no_losses)
{
	enum { TRIALS = 20, PER_MS = 4 };
	struct udpstp_receiver r;
	struct udpstp_status s;
	uint64_t lost = 0, in_intervals = 0;
	uint32_t at_ms = 0;

	udpstp_receiver_begin(&r, 0);
	for (int trial = 0; trial < TRIALS; trial++) {
		for (int i = 0; i < 50; i++, at_ms++)
			for (uint32_t k = 0; k < PER_MS; k++) {
				const uint32_t number = at_ms * PER_MS + k + 1, early = number + 10 * PER_MS;

				if (k % 2 && early % 100)
					arrive(&r, early, 1000 + at_ms + 10, 2010 + at_ms);
				else if (k % 2 == 0)
					arrive(&r, number, 1000 + at_ms, 2010 + at_ms);
			}
		if (udpstp_receiver_roll(&r, at_ms * MS, 500 * MS))
			in_intervals += r.saved.lost;
		udpstp_receiver_status(&r, &s, at_ms * MS, 1234567890123456789);
		assert_true(trial < 1 || s.lost <= 4);
		lost += s.lost;
	}
	/* The 20 odd numbers before the first early one never come. */
	assert_in_range(lost, 20 + TRIALS * 50 * PER_MS / 100 - 2, 20 + TRIALS * 50 * PER_MS / 100);
	assert_in_range(in_intervals, lost - 4, lost);
}

/* The search of a slow link falls from row 32 or less to row 0, of one datagram each 50 ms. */
TEST(test_gaps_of_row_0_are_no_pauses)
{
	for (uint64_t per_ms = 1; per_ms <= 7; per_ms += 3) {
		struct udpstp_receiver r;
		struct udpstp_status s;
		uint32_t number = 0;
		uint64_t at_ms = 0;

		udpstp_receiver_begin(&r, 0);
		for (int trial = 0; trial < 4; trial++) {
			for (int i = 0; i < 50; i++, at_ms++)
				for (uint64_t k = 0; k < per_ms; k++)
					arrive(&r, ++number, 1000 + at_ms, 1010 + at_ms);
			udpstp_receiver_status(&r, &s, at_ms * MS, 1234567890123456789);
		}
		arrive(&r, ++number, 1049 + at_ms, 1059 + at_ms);
		assert_int_equal(r.paused_ns, per_ms <= 4 ? 0 : 50 * MS);
		arrive(&r, ++number, 1249 + at_ms, 1259 + at_ms); /* longer than any row's interval */
		assert_int_equal(r.pause_most_ns, 200 * MS);
	}
}

/* The first datagram arrives just before the end of a trial. */
TEST(test_a_short_trial_is_not_dense)
{
	struct udpstp_receiver r;
	struct udpstp_status s;

	udpstp_receiver_begin(&r, 0);
	arrive(&r, 1, 1000, 1010);
	udpstp_receiver_status(&r, &s, MS / 10, 1234567890123456789);
	arrive(&r, 2, 1050, 1060);
	assert_int_equal(r.paused_ns, 0);
}

TEST(test_round_trips)
{
	struct udpstp_load l = { .sequence = 1, .payload = 100, .sent_s = 1, .status_s = 10, .answer_delay_ms = 5 };
	struct udpstp_receiver r;

	udpstp_receiver_begin(&r, 0);
	udpstp_receiver_load(&r, &l, 10030 * (int64_t)MS); /* 30 ms, of which 5 ms at the sender */
	assert_int_equal(r.rtt_min_ns, 25 * MS);
	assert_int_equal(r.rtt_sample_ns, 0);
	l.sequence = 2;
	udpstp_receiver_load(&r, &l, 10090 * (int64_t)MS); /* the same status: no new round trip */
	assert_int_equal(r.rtt_sample_ns, 0);
	l.sequence = 3;
	l.status_ns = 50 * MS;
	udpstp_receiver_load(&r, &l, 10150 * (int64_t)MS);
	assert_int_equal(r.rtt_sample_ns, 70 * MS);
	assert_int_equal(r.current.rtt_max_ns, 70 * MS);
	l.sequence = 4;
	l.status_ns = 100 * MS;
	udpstp_receiver_load(&r, &l, 9000 * (int64_t)MS); /* the clock was stepped back */
	assert_int_equal(r.rtt_min_ns, 0);
}

/* Numbers that jump do not wrap the counts. */
TEST(test_hostile_numbers)
{
	struct udpstp_receiver r;
	struct udpstp_status s;

	udpstp_receiver_begin(&r, 0);
	for (int i = 0; i < 4; i++) {
		arrive(&r, UINT32_MAX, 0, 0);
		arrive(&r, 1, UINT32_MAX, 0);
	}
	assert_true(r.trial.lost <= UINT32_MAX);
	udpstp_receiver_begin(&r, 0);
	r.trial.lost = 1ULL << 40;
	udpstp_receiver_status(&r, &s, 1, 1);
	assert_int_equal(s.lost, UINT32_MAX - 1);
}
