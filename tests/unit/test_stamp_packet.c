/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "stamp_hex.h"
#include "stamp_packet.h"

#define NOW 1795000000123456789LL /* in 2026 */

TEST(times_there_and_back)
{
	const int64_t times[] = { 0,
				  1,
				  999999999,
				  1000000000,
				  NOW,
				  NOW + 1,
				  2085978495999999999LL,
				  2085978496000000000LL,
				  -1,
				  4294967296000000001LL };
	int64_t back;

	for (size_t i = 0; i < sizeof times / sizeof *times; i++)
		for (int ptp = 0; ptp < 2; ptp++) {
			assert_true(stamp_time_to_ns(&back, stamp_time_of_ns(times[i], ptp), ptp,
						     times[i] + 1000000000LL * 86400 * 365 * 60));
			assert_int_equal(back, times[i]);
			assert_true(stamp_time_to_ns(&back, stamp_time_of_ns(times[i], ptp), ptp,
						     times[i] - 1000000000LL * 86400 * 365 * 60));
			assert_int_equal(back, times[i]);
		}
	for (int64_t t = NOW; t < NOW + 100000; t += 7) { /* each nanosecond has its own */
		assert_true(stamp_time_to_ns(&back, stamp_time_of_ns(t, false), false, NOW));
		assert_int_equal(back, t);
	}
}

TEST(times_by_the_rfc)
{
	int64_t ns;

	/* RFC 5905, figure 4: 1 January 1970 is 2,208,988,800 in era 0; the era ends in February 2036. */
	assert_true(stamp_time_of_ns(0, false) == 2208988800ULL << 32);
	assert_true(stamp_time_of_ns(500000000, false) == (2208988800ULL << 32 | 0x80000000u));
	assert_true(stamp_time_of_ns(2085978496000000000LL, false) == 0);
	assert_true(stamp_time_of_ns(1500000000LL, true) == (1ULL << 32 | 500000000u));
	assert_true(stamp_time_to_ns(&ns, 0, false, 2085978496000000000LL));
	assert_int_equal(ns, 2085978496000000000LL);
	assert_false(stamp_time_to_ns(&ns, 1000000000u, true, NOW));
	assert_false(stamp_time_to_ns(&ns, 0xffffffffu, true, NOW));
	assert_true(stamp_time_to_ns(&ns, 0xffffffffu, false, 0)); /* 2^-32 s short of a second: rounds to it */
}

TEST(error_estimates)
{
	struct stamp_error e = { .bound_ns = 0 }, r;

	assert_int_equal(stamp_error_write(&e), 0x0001);
	e.synchronised = e.ptp = true;
	assert_int_equal(stamp_error_write(&e), 0xc001);
	for (uint64_t bound = 1; bound < 1ULL << 39; bound = bound * 3 / 2 + 1) {
		e = (struct stamp_error){ .synchronised = true, .bound_ns = bound };
		r = stamp_error_read(stamp_error_write(&e));
		assert_true(r.synchronised && !r.ptp);
		assert_true(r.bound_ns >= bound && r.bound_ns <= bound + bound / 64 + 2);
	}
	/* RFC 4656: Multiplier * 2^-32 * 2^Scale: 1 at scale 32 is a second. */
	assert_int_equal(stamp_error_read(0x2001).bound_ns, 1000000000);
	assert_int_equal(stamp_error_read(0x1f01).bound_ns, 500000000);
	assert_int_equal(stamp_error_read(0x2003).bound_ns, 3000000000LL);
	assert_true(stamp_error_read(0x2000).bound_ns == UINT64_MAX);
	assert_true(stamp_error_read(0x3fff).bound_ns == UINT64_MAX);
	e.bound_ns = UINT64_MAX;
	assert_true(stamp_error_read(stamp_error_write(&e)).bound_ns >= 1ULL << 40);
	for (uint32_t wire = 0; wire < 65536; wire++) /* whatever comes: no overflow, no trap */
		stamp_error_read((uint16_t)wire);
}

/* Made by scapy 2.8.0, contrib.stamp. Its TLV flags stand at the other end of their byte; they are not compared. */
TEST(packets_of_scapy)
{
	uint8_t packet[128];
	size_t n =
		from_hex(packet, sizeof packet,
			 "01020304 e875470080000000 8ac8 beef 00000000000000000000000000000000000000000000000000000000"
			 "01010003616263 0107001000000000000000000000000000000000");
	struct stamp_probe probe;
	struct stamp_reply reply;
	struct stamp_error error;
	struct stamp_tlv tlv;
	uint8_t ours[STAMP_OPEN_LENGTH];
	uint32_t at = STAMP_OPEN_LENGTH;

	assert_int_equal(n, 71);
	assert_true(stamp_probe_read(&probe, packet, n, false));
	assert_int_equal(probe.seq, 0x01020304);
	assert_true(probe.time == 0xe875470080000000ULL); /* 3900000000.5 */
	assert_int_equal(probe.ssid, 0xbeef);
	error = stamp_error_read(probe.error);
	assert_true(error.synchronised && !error.ptp);
	assert_int_equal(error.bound_ns, 47684); /* 200 * 2^10 * 2^-32 s */
	assert_int_equal(stamp_tlv_next(&tlv, packet, n, &at), STAMP_TLV_OK);
	assert_int_equal(tlv.type, STAMP_TLV_PADDING);
	assert_memory_equal(tlv.value, "abc", 3);
	assert_int_equal(stamp_tlv_next(&tlv, packet, n, &at), STAMP_TLV_OK);
	assert_int_equal(tlv.type, STAMP_TLV_FOLLOW_UP);
	assert_int_equal(stamp_tlv_next(&tlv, packet, n, &at), STAMP_TLV_END);
	stamp_probe_write(ours, &probe, false);
	assert_memory_equal(ours, packet, sizeof ours);

	n = from_hex(
		packet, sizeof packet,
		"00000007 e875470140000000 8001 beef e875470100000000 00000009 e875470080000000 0304 0000 3d000000");
	assert_int_equal(n, STAMP_OPEN_LENGTH);
	assert_true(stamp_reply_read(&reply, packet, n, false));
	assert_int_equal(reply.seq, 7);
	assert_int_equal(reply.sender_seq, 9);
	assert_true(reply.time - reply.received == 0x40000000);
	assert_true(reply.received - reply.sender_time == 0x80000000);
	assert_int_equal(reply.sender_error, 0x0304);
	assert_int_equal(reply.sender_ttl, 61);
	stamp_reply_write(ours, &reply, false);
	assert_memory_equal(ours, packet, sizeof ours);
}

/* The HMAC was made by Python's hmac. */
TEST(authenticated_by_hand)
{
	const struct stamp_probe probe = { .seq = 42, .time = 0xe8754a0080000000ULL, .error = 0x8001, .ssid = 0x1234 };
	uint8_t packet[STAMP_AUTH_LENGTH], mac[STAMP_MAC_LENGTH];
	struct stamp_probe back;
	struct hmac_key key;

	hmac_key_set(&key, "ktrxer test key", 15);
	stamp_probe_write(packet, &probe, true);
	stamp_sign(packet, &key);
	from_hex(mac, sizeof mac, "cb7fc6fa98973804c3479ea1ba2ac152");
	assert_memory_equal(packet + STAMP_MAC_AT, mac, sizeof mac);
	assert_true(stamp_is_signed(packet, &key));
	assert_true(stamp_probe_read(&back, packet, sizeof packet, true));
	assert_true(back.seq == probe.seq && back.time == probe.time && back.error == probe.error &&
		    back.ssid == probe.ssid);
	for (size_t i = 0; i < sizeof packet; i++) { /* every bit of it counts */
		packet[i] ^= 0x10;
		assert_false(stamp_is_signed(packet, &key));
		packet[i] ^= 0x10;
	}
	hmac_key_set(&key, "another key", 11);
	assert_false(stamp_is_signed(packet, &key));
}

/* RFC 5357, 4.2.1: a reflector of TWAMP Light need not pad its answer. */
TEST(the_shortest_reply_of_twamp)
{
	const struct stamp_reply reply = { .seq = 3,
					   .time = 4ULL << 32,
					   .error = 1,
					   .received = 3ULL << 32,
					   .sender_seq = 9,
					   .sender_time = 2ULL << 32,
					   .sender_ttl = 62 };
	uint8_t packet[STAMP_OPEN_LENGTH];
	struct stamp_reply back;

	stamp_reply_write(packet, &reply, false);
	for (size_t n = 41; n <= sizeof packet; n++) {
		assert_true(stamp_reply_read(&back, packet, n, false));
		assert_int_equal(back.sender_seq, 9);
		assert_int_equal(back.sender_ttl, 62);
	}
	assert_false(stamp_reply_read(&back, packet, 40, false));
	assert_false(stamp_reply_read(&back, packet, 41, true));
}

TEST(a_reply_there_and_back)
{
	const struct stamp_reply reply = { 1,          0x0203040506070809ULL, 0x0a0b, 0x0c0d, 0x0e0f101112131415ULL,
					   0x16171819, 0x1a1b1c1d1e1f2021ULL, 0x2223, 0x24 };
	uint8_t packet[STAMP_AUTH_LENGTH];
	struct stamp_reply back;

	for (int auth = 0; auth < 2; auth++) {
		size_t base = stamp_base_length(auth);

		memset(packet, 0xff, sizeof packet);
		memset(&back, 0, sizeof back);
		stamp_reply_write(packet, &reply, auth);
		assert_true(stamp_reply_read(&back, packet, base, auth));
		assert_int_equal(back.seq, reply.seq);
		assert_true(back.time == reply.time && back.received == reply.received &&
			    back.sender_time == reply.sender_time);
		assert_int_equal(back.error, reply.error);
		assert_int_equal(back.ssid, reply.ssid);
		assert_int_equal(back.sender_seq, reply.sender_seq);
		assert_int_equal(back.sender_error, reply.sender_error);
		assert_int_equal(back.sender_ttl, reply.sender_ttl);
		for (size_t n = 0; n < base; n++) {
			assert_int_equal(stamp_reply_read(&back, packet, n, auth), !auth && n >= STAMP_TWAMP_REPLY);
			assert_false(stamp_probe_read(&(struct stamp_probe){ 0 }, packet, n, auth));
		}
		stamp_reply_set_time(packet, 77, auth);
		assert_true(stamp_reply_read(&back, packet, base, auth) && back.time == 77);
	}
}

TEST(answers_are_known_as_such)
{
	struct stamp_reply reply = { .seq = 3,
				     .time = stamp_time_of_ns(NOW + 5000, false),
				     .received = stamp_time_of_ns(NOW, false),
				     .sender_ttl = 64 };
	const struct stamp_probe probe = { .seq = 3, .time = reply.time, .error = 1 };
	uint8_t packet[STAMP_AUTH_LENGTH];

	for (int auth = 0; auth < 2; auth++) {
		size_t base = stamp_base_length(auth);

		stamp_reply_write(packet, &reply, auth);
		assert_true(stamp_looks_reflected(packet, base, auth));
		stamp_probe_write(packet, &probe, auth);
		assert_false(stamp_looks_reflected(packet, base, auth));
		memset(packet + (auth ? 28 : 16), 0xa5, auth ? 68 : 28); /* a TWAMP sender's padding */
		assert_false(stamp_looks_reflected(packet, base, auth));
	}
	stamp_reply_write(packet, &reply, false);
	assert_true(stamp_looks_reflected(packet, 41, false)); /* a TWAMP reflector's is that short */
	assert_false(stamp_looks_reflected(packet, 40, false));
}

TEST(tlvs_that_lie)
{
	static const struct {
		const char *hex;
		int ok;
		enum stamp_tlv_found last;
	} cases[] = {
		{ "", 0, STAMP_TLV_END },
		{ "80", 0, STAMP_TLV_CUT },
		{ "8001", 0, STAMP_TLV_CUT },
		{ "800100", 0, STAMP_TLV_CUT },
		{ "80010000", 1, STAMP_TLV_END },
		{ "80010001", 0, STAMP_TLV_CUT },
		{ "8001ffff 00", 0, STAMP_TLV_CUT },
		{ "80010002 aabb 80 07", 1, STAMP_TLV_CUT },
		{ "80010002 aabb 8007fff0 00", 1, STAMP_TLV_CUT },
		{ "00000000", 0, STAMP_TLV_FILL },
		{ "000000", 0, STAMP_TLV_FILL },
		{ "00", 0, STAMP_TLV_FILL },
		{ "80010001 aa 0000", 1, STAMP_TLV_FILL },
		{ "80000001 aa", 1, STAMP_TLV_END }, /* type 0 with a value is an unknown TLV */
		{ "80ff0000 80fd0000", 2, STAMP_TLV_END },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint8_t packet[128] = { 0 };
		size_t length = STAMP_OPEN_LENGTH + from_hex(packet + STAMP_OPEN_LENGTH, 64, cases[i].hex);
		uint32_t at = STAMP_OPEN_LENGTH;
		enum stamp_tlv_found found;
		struct stamp_tlv tlv;
		int ok = 0;

		while ((found = stamp_tlv_next(&tlv, packet, length, &at)) == STAMP_TLV_OK)
			ok++;
		assert_int_equal(ok, cases[i].ok);
		assert_int_equal(found, cases[i].last);
	}
}

TEST(lengths_of_types)
{
	static const struct {
		uint8_t type;
		uint16_t right;
	} cases[] = { { 3, 4 }, { 4, 4 }, { 5, 12 }, { 6, 4 }, { 7, 16 }, { 8, 16 } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (unsigned n = 0; n < 65536; n++)
			assert_int_equal(stamp_tlv_length_ok(cases[i].type, (uint16_t)n), n == cases[i].right);
	assert_false(stamp_tlv_length_ok(2, 3));
	assert_true(stamp_tlv_length_ok(2, 4));
	assert_true(stamp_tlv_length_ok(1, 0));
	assert_true(stamp_tlv_length_ok(200, 1));
}

TEST(values)
{
	const struct stamp_cos cos = { .dscp1 = 46, .dscp2 = 34, .ecn = 3, .reverse = 1 };
	const struct stamp_follow_up follow = { 0x01020304, 0x05060708090a0b0cULL, 2 };
	uint8_t value[16], want[16];
	struct stamp_cos back;

	memset(value, 0xff, sizeof value);
	stamp_cos_write(value, &cos);
	from_hex(want, 4, "ba2d0000"); /* 101110 100010 11 01 */
	assert_memory_equal(value, want, 4);
	back = stamp_cos_read(value);
	assert_memory_equal(&back, &cos, sizeof cos);
	stamp_follow_up_write(value, &follow);
	from_hex(want, 16, "01020304 05060708090a0b0c 02 000000");
	assert_memory_equal(value, want, 16);
	assert_int_equal(stamp_follow_up_read(value).seq, follow.seq);
	assert_true(stamp_follow_up_read(value).time == follow.time);
	assert_int_equal(stamp_tlv_write(NULL, 7, 16), 20);
	memset(value, 0xff, sizeof value);
	assert_int_equal(stamp_tlv_write(value, 4, 4), 8);
	from_hex(want, 8, "80040004 00000000");
	assert_memory_equal(value, want, 8);
}
