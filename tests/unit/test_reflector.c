/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "reflector.h"
#include "reflector_arrival.h"
#include "reflector_session.h"
#include "stamp_hex.h"
#include "stamp_packet.h"

#include <stdlib.h>
#include <sys/socket.h>

#define NOW 1795000000123456789LL
#define S ((uint64_t)KTRXER_NS_PER_S)

static struct reflector *make(const struct reflector_options *o)
{
	struct reflector_options options = o ? *o : (struct reflector_options){ 0 };
	struct reflector *r;

	options.dscp_granted = options.dscp_trusted = REFLECTOR_DSCP_TRUSTED;
	options.own_ports[0] = 862;
	options.own_ports[1] = 8620;
	options.secret = 12345;
	assert_int_equal(reflector_new(&r, &options), 0);
	reflector_set_clock(r, true, 1000000);
	return r;
}

static struct reflector_arrival arrival(void)
{
	return (struct reflector_arrival){ .from = { .family = AF_INET, .bytes = { 192, 0, 2, 7 } },
					   .to = { .family = AF_INET, .bytes = { 198, 51, 100, 1 } },
					   .from_port = 50000,
					   .to_port = 862,
					   .ttl = 61,
					   .tos = 0xb9,
					   .received_real_ns = NOW,
					   .now_ns = 1000 * S };
}

static uint32_t probe(uint8_t *packet, uint32_t seq, const char *tlvs)
{
	const struct stamp_probe p = { .seq = seq, .time = 0x1122334455667788ULL, .error = 0x0102, .ssid = 0x4242 };

	stamp_probe_write(packet, &p, false);
	return STAMP_OPEN_LENGTH + (uint32_t)from_hex(packet + STAMP_OPEN_LENGTH, 1400, tlvs);
}

static enum reflector_verdict send_one(struct reflector *r, uint8_t *packet, uint32_t length,
				       const struct reflector_arrival *a, struct stamp_reply *reply)
{
	struct reflector_answer answer;
	enum reflector_verdict v = reflector_answer(r, packet, length, length, a, &answer);

	if (v == REFLECTOR_ANSWER) {
		reflector_finish(r, packet, &answer, NOW + 3000);
		assert_true(stamp_reply_read(reply, packet, length, answer.auth));
	}
	return v;
}

TEST(an_answer_has_all_fields)
{
	struct reflector *r = make(NULL);
	struct reflector_arrival a = arrival();
	struct reflector_answer answer;
	struct stamp_reply reply;
	uint8_t packet[64];
	uint32_t n = probe(packet, 900, "");

	assert_int_equal(reflector_answer(r, packet, n, n, &a, &answer), REFLECTOR_ANSWER);
	reflector_finish(r, packet, &answer, NOW + 2500);
	assert_true(stamp_reply_read(&reply, packet, n, false));
	assert_int_equal(reply.seq, 0); /* its own count */
	assert_int_equal(reply.sender_seq, 900);
	assert_true(reply.sender_time == 0x1122334455667788ULL);
	assert_int_equal(reply.sender_error, 0x0102);
	assert_int_equal(reply.sender_ttl, 61);
	assert_int_equal(reply.ssid, 0x4242);
	assert_true(reply.received == stamp_time_of_ns(NOW, false));
	assert_true(reply.time == stamp_time_of_ns(NOW + 2500, false));
	assert_true(stamp_error_read(reply.error).synchronised);
	assert_int_equal(answer.tos, 0xb8); /* the class of the request, without its ECN */
	assert_false(answer.follow);
	reflector_free(r);
}

/* The same port and SSID at 0 again: the count of the sender before says nothing of the new one. */
TEST(a_sender_that_starts_again_begins_a_session)
{
	struct reflector *r = make(NULL);
	struct reflector_arrival a = arrival();
	struct reflector_counts counts;
	struct stamp_reply reply;
	uint8_t packet[64];

	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(send_one(r, packet, probe(packet, i, ""), &a, &reply), REFLECTOR_ANSWER);
	assert_int_equal(reply.seq, 19);
	a.now_ns += S / 10; /* a duplicate of the first, or one that was reordered */
	send_one(r, packet, probe(packet, 0, ""), &a, &reply);
	assert_int_equal(reply.seq, 20);
	send_one(r, packet, probe(packet, 20, ""), &a, &reply);
	a.now_ns += 2 * S;
	send_one(r, packet, probe(packet, 0, ""), &a, &reply);
	assert_int_equal(reply.seq, 0);
	send_one(r, packet, probe(packet, 1, ""), &a, &reply);
	assert_int_equal(reply.seq, 1);
	/* At once, after many packets. */
	send_one(r, packet, probe(packet, 5000, ""), &a, &reply);
	send_one(r, packet, probe(packet, 0, ""), &a, &reply);
	assert_int_equal(reply.seq, 0);
	/* The sequence number wraps: no new one. */
	send_one(r, packet, probe(packet, UINT32_MAX, ""), &a, &reply);
	send_one(r, packet, probe(packet, 0, ""), &a, &reply);
	assert_int_equal(reply.seq, 2);
	reflector_counts(r, &counts);
	assert_int_equal(counts.sessions, 3);
	reflector_free(r);
}

TEST(stateful_counts_stateless_copies)
{
	const struct reflector_options stateless = { .stateless = true };
	struct reflector *with = make(NULL), *without = make(&stateless);
	struct reflector_arrival a = arrival();
	struct stamp_reply reply;
	uint8_t packet[64];

	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(send_one(with, packet, probe(packet, 10 * i, ""), &a, &reply), REFLECTOR_ANSWER);
		assert_int_equal(reply.seq, i);
		assert_int_equal(send_one(without, packet, probe(packet, 10 * i, ""), &a, &reply), REFLECTOR_ANSWER);
		assert_int_equal(reply.seq, 10 * i);
	}
	a.from_port++; /* another session */
	assert_int_equal(send_one(with, packet, probe(packet, 7, ""), &a, &reply), REFLECTOR_ANSWER);
	assert_int_equal(reply.seq, 0);
	a.from_port--;
	a.now_ns += 299 * S;
	for (int i = 0; i < 16; i++)
		send_one(with, packet, probe(packet, 7, ""), &a, &reply);
	a.now_ns += 299 * S;
	send_one(with, packet, probe(packet, 7, ""), &a, &reply);
	assert_true(reply.seq > 0);
	a.now_ns += 301 * S; /* idle for too long: begins anew */
	send_one(with, packet, probe(packet, 7, ""), &a, &reply);
	assert_int_equal(reply.seq, 0);
	reflector_free(with);
	reflector_free(without);
}

TEST(reasons_to_stay_silent)
{
	struct reflector *r = make(NULL);
	struct reflector_arrival a;
	struct reflector_answer answer;
	struct reflector_counts counts;
	struct stamp_reply reply;
	uint8_t packet[10000], before[64];
	static const uint8_t others[][4] = {
		{ 224, 0, 0, 1 }, { 255, 255, 255, 255 }, { 0, 0, 0, 0 }, { 239, 1, 2, 3 }, { 0, 1, 2, 3 }
	};

	a = arrival();
	memset(packet, 0, sizeof packet);
	for (uint32_t n = 0; n < STAMP_OPEN_LENGTH; n++)
		assert_int_equal(send_one(r, packet, n, &a, &reply), REFLECTOR_SHORT);
	probe(packet, 1, "");
	assert_int_equal(reflector_answer(r, packet, 64, 65, &a, &answer), REFLECTOR_LONG); /* cut by the socket */
	assert_int_equal(reflector_answer(r, packet, KTRXER_REFLECTOR_PACKET_MAX + 1, KTRXER_REFLECTOR_PACKET_MAX + 1,
					  &a, &answer),
			 REFLECTOR_LONG);
	for (int i = 0; i < 4; i++) {
		const uint16_t ports[] = { 0, 862, 8620, 862 };

		a.from_port = ports[i];
		assert_int_equal(send_one(r, packet, 44, &a, &reply), REFLECTOR_PORT);
	}
	a = arrival();
	a.from_port = a.to_port = 5000;
	assert_int_equal(send_one(r, packet, 44, &a, &reply), REFLECTOR_PORT);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		a = arrival();
		memcpy(a.from.bytes, others[i], 4);
		assert_int_equal(send_one(r, packet, 44, &a, &reply), REFLECTOR_SOURCE);
		a = arrival();
		memcpy(a.to.bytes, others[i], 4);
		assert_int_equal(send_one(r, packet, 44, &a, &reply), REFLECTOR_TARGET);
	}
	a = arrival();
	a.to_group = true;
	assert_int_equal(send_one(r, packet, 44, &a, &reply), REFLECTOR_TARGET);
	a = arrival();
	a.from = a.to = (struct ktrxer_addr){ .family = AF_INET6, .bytes = { 0xff, 2, [15] = 1 } };
	assert_int_equal(send_one(r, packet, 44, &a, &reply), REFLECTOR_SOURCE);
	a.from = (struct ktrxer_addr){ .family = AF_INET6 };
	assert_int_equal(send_one(r, packet, 44, &a, &reply), REFLECTOR_SOURCE);
	/* A silent reflector leaves the packet as it was. */
	a = arrival();
	a.to_group = true;
	probe(packet, 1, "");
	memcpy(before, packet, sizeof before);
	reflector_answer(r, packet, 44, 44, &a, &answer);
	assert_memory_equal(before, packet, 44);
	reflector_counts(r, &counts);
	assert_int_equal(counts.verdicts[REFLECTOR_ANSWER], 0);
	assert_int_equal(counts.sessions, 0); /* what is not answered makes none */
	reflector_free(r);
}

TEST(two_reflectors_set_on_each_other)
{
	/* On ports that neither knows of, so that only the packet itself can tell. */
	struct reflector *one = make(NULL), *other = make(NULL);
	struct reflector_arrival a = arrival(), b = arrival();
	struct stamp_reply reply;
	uint8_t packet[64];

	a.from_port = 1000;
	a.to_port = 2000;
	b.from = a.to;
	b.to = a.from;
	b.from_port = 2000;
	b.to_port = 1000;
	for (int padded = 0; padded < 2; padded++) {
		uint32_t n = probe(packet, 0, padded ? "80010008 0102030405060708" : "");

		assert_int_equal(send_one(one, packet, n, &a, &reply), REFLECTOR_ANSWER);
		assert_int_equal(send_one(other, packet, n, &b, &reply), REFLECTOR_REFLECTED);
	}
	reflector_free(one);
	reflector_free(other);
}

TEST(rates_by_neighbourhood)
{
	const struct reflector_options options = { .rate = 1000, .burst = 10 };
	struct reflector *r = make(&options);
	struct reflector_arrival a = arrival(), b = arrival();
	struct stamp_reply reply;
	uint8_t packet[64];
	int answered = 0;

	b.from.bytes[2]++; /* another /24 */
	for (int i = 0; i < 100; i++) {
		a.from.bytes[3] = (uint8_t)i; /* one /24, many hosts */
		answered += send_one(r, packet, probe(packet, 0, ""), &a, &reply) == REFLECTOR_ANSWER;
	}
	assert_int_equal(answered, 10);
	assert_int_equal(send_one(r, packet, probe(packet, 0, ""), &b, &reply), REFLECTOR_ANSWER);
	for (int i = 0; i < 1000; i++) { /* a second, ten thousand packets */
		a.now_ns += S / 10000 * 10;
		for (int k = 0; k < 10; k++)
			answered += send_one(r, packet, probe(packet, 0, ""), &a, &reply) == REFLECTOR_ANSWER;
	}
	assert_in_range(answered, 1000, 1012);
	reflector_free(r);
}

TEST(a_flood_does_not_displace_sessions)
{
	struct reflector *r = make(NULL);
	struct reflector_arrival a = arrival(), forged = arrival();
	struct reflector_counts counts;
	struct stamp_reply reply;
	uint8_t packet[64];

	for (int i = 0; i < 20; i++)
		send_one(r, packet, probe(packet, 0, ""), &a, &reply);
	for (uint32_t i = 0; i < 100000; i++) {
		store_be32(forged.from.bytes, 0x0a000000 + i * 263); /* each of another prefix */
		assert_int_equal(send_one(r, packet, probe(packet, i, ""), &forged, &reply), REFLECTOR_ANSWER);
	}
	assert_int_equal(reply.seq, 99999); /* no room: answered as in stateless mode */
	send_one(r, packet, probe(packet, 0, ""), &a, &reply);
	assert_int_equal(reply.seq, 20);
	reflector_counts(r, &counts);
	assert_true(counts.without_session > 90000 && counts.sessions <= KTRXER_REFLECTOR_SESSIONS);
	forged.now_ns += (KTRXER_REFLECTOR_TRIAL_S + 1) * S; /* what one packet made is soon forgotten */
	send_one(r, packet, probe(packet, 77, ""), &forged, &reply);
	assert_int_equal(reply.seq, 0);
	reflector_free(r);
}

/* RFC 8762, 4.3.1: a session counts its own packets, however slow the sender is. */
TEST(a_slow_sender_keeps_its_count)
{
	struct reflector *r = make(NULL);
	struct reflector_arrival a = arrival();
	struct stamp_reply reply;
	uint8_t packet[64];

	for (uint32_t i = 0; i < 5; i++, a.now_ns += 13 * S) {
		assert_int_equal(send_one(r, packet, probe(packet, 2 * i, ""), &a, &reply), REFLECTOR_ANSWER);
		assert_int_equal(reply.seq, i); /* each second one was lost on the way */
	}
	a.now_ns += (KTRXER_REFLECTOR_IDLE_S + 1) * S;
	send_one(r, packet, probe(packet, 10, ""), &a, &reply);
	assert_int_equal(reply.seq, 0);
	reflector_free(r);
}

/* 192.0.2.x: a flood of ports from one prefix. */
static void fill(struct reflector *r, struct reflector_arrival *a, uint8_t *packet, int ports)
{
	struct stamp_reply reply;

	for (int i = 0; i < ports; i++) {
		uint32_t length = probe(packet, 0, "");

		a->from_port = (uint16_t)(10000 + i);
		assert_int_equal(send_one(r, packet, length, a, &reply), REFLECTOR_ANSWER);
	}
}

TEST(a_greedy_prefix_leaves_room)
{
	struct reflector *r = make(NULL);
	struct reflector_arrival a = arrival();
	struct reflector_counts counts;
	struct stamp_reply reply;
	uint8_t packet[128];
	uint64_t before;

	fill(r, &a, packet, 20000);
	reflector_counts(r, &counts);
	assert_true(counts.sessions <= KTRXER_REFLECTOR_SESSIONS / 4);
	/* Each of 500 other senders has a session: its second packet has the number 1. */
	before = counts.without_session;
	for (int i = 0; i < 500; i++)
		for (uint32_t n = 0; n < 2; n++) {
			struct reflector_arrival other = arrival();
			uint32_t length = probe(packet, n, "");

			other.from.bytes[0] = (uint8_t)(1 + i / 200);
			other.from.bytes[1] = (uint8_t)(i % 200);
			assert_int_equal(send_one(r, packet, length, &other, &reply), REFLECTOR_ANSWER);
			assert_int_equal(reply.seq, n);
		}
	reflector_counts(r, &counts);
	assert_int_equal(counts.without_session, before);
	/* When its own are over it gets new ones. */
	a.now_ns += 400 * S;
	before = counts.sessions;
	fill(r, &a, packet, 100);
	reflector_counts(r, &counts);
	assert_int_equal(counts.sessions, before + 100);
	reflector_free(r);
}

TEST(large_answers_cost_more)
{
	const struct reflector_options by_prefix = { .rate = 100, .burst = 1 }, in_all = { .max_bps = 1000000 };
	uint8_t *packet = calloc(1, KTRXER_REFLECTOR_PACKET_MAX);
	struct reflector *r = make(&by_prefix);
	struct reflector_arrival a = arrival();
	struct reflector_counts counts;
	struct reflector_answer answer;

	/* 9216 bytes count as 18 answers: 100 a second are 5 of them. */
	for (int ms = 0; ms < 10000; ms++) {
		a.now_ns = (1000 * 1000 + (uint64_t)ms) * KTRXER_NS_PER_MS;
		probe(packet, 0, "");
		reflector_answer(r, packet, KTRXER_REFLECTOR_PACKET_MAX, KTRXER_REFLECTOR_PACKET_MAX, &a, &answer);
	}
	reflector_counts(r, &counts);
	assert_in_range(counts.verdicts[REFLECTOR_ANSWER], 54, 57);
	reflector_free(r);
	/* A megabit a second from a thousand prefixes: 10 s and a burst of 100 ms. */
	r = make(&in_all);
	for (int ms = 0; ms < 10000; ms++) {
		a.now_ns = (1000 * 1000 + (uint64_t)ms) * KTRXER_NS_PER_MS;
		a.from.bytes[1] = (uint8_t)(ms % 250);
		a.from.bytes[2] = (uint8_t)(ms / 250);
		probe(packet, 0, "");
		reflector_answer(r, packet, 1000, 1000, &a, &answer);
	}
	reflector_counts(r, &counts);
	assert_in_range(counts.verdicts[REFLECTOR_ANSWER], 1250, 1250 + 15);
	assert_int_equal(counts.verdicts[REFLECTOR_ANSWER] + counts.verdicts[REFLECTOR_RATE_ALL], 10000);
	reflector_free(r);
	free(packet);
}

TEST(tlvs_are_answered)
{
	struct reflector *r = make(NULL);
	struct reflector_arrival a = arrival();
	struct reflector_answer answer;
	uint8_t packet[512], want[512];
	uint32_t n = probe(
		packet, 0,
		"80030004 00000000"                   /* timestamp information */
		"80040004 28000000"                   /* class of service: DSCP 10 */
		"8005000c 00000009 00000000 00000000" /* direct measurement */
		"80060004 10020000"                   /* access report */
		"80060004 30020000"                   /* one with an id that there is not */
		"80630002 abcd"                       /* an unknown TLV */
		"8002002c 00000000 80040010 00000000000000000000000000000000 80070010 00000000000000000000000000000000"
		"80010003 010203");
	size_t w;

	assert_int_equal(reflector_answer(r, packet, n, n, &a, &answer), REFLECTOR_ANSWER);
	w = from_hex(
		want, sizeof want,
		"00030004 01020102"
		"00040004 2ae40000" /* DSCP2 46, ECN 1, granted */
		"0005000c 00000009 00000001 00000001"
		"00060004 10020000"
		"80060004 30020000"
		"80630002 abcd"
		"0002002c 035ec350 00050010 c6336401000000000000000000000000 00080010 c0000207000000000000000000000000"
		"00010003 010203");
	assert_int_equal(w, n - STAMP_OPEN_LENGTH);
	assert_memory_equal(packet + STAMP_OPEN_LENGTH, want, w);
	assert_int_equal(answer.tos, 10 << 2);
	/* Network control is not granted: the answer has the DSCP that came, and RP is 1. */
	n = probe(packet, 0, "80040004 c0000000");
	reflector_answer(r, packet, n, n, &a, &answer);
	from_hex(want, sizeof want, "00040004 c2e50000");
	assert_memory_equal(packet + STAMP_OPEN_LENGTH, want, 8);
	assert_int_equal(answer.tos, 46 << 2);
	a.tos = 48 << 2; /* the DSCP that came is not granted either */
	n = probe(packet, 0, "80040004 c0000000");
	assert_int_equal(reflector_answer(r, packet, n, n, &a, &answer), REFLECTOR_ANSWER);
	from_hex(want, sizeof want, "00040004 c3010000");
	assert_memory_equal(packet + STAMP_OPEN_LENGTH, want, 8);
	assert_int_equal(answer.tos, 0);
	reflector_free(r);
}

TEST(malformed_tlvs)
{
	static const struct {
		const char *request, *answer;
	} cases[] = {
		{ "80040003 280000", "40040003 280000" }, /* wrong for its type */
		{ "80030004 00000000 80040003 280000 80030004 00000000",
		  "00030004 01020102 40040003 280000 80030004 00000000" }, /* the rest comes back as it was */
		{ "80030004 00000000 8004ffff 28", "00030004 01020102 4004ffff 28" }, /* a length that lies */
		{ "80 03", "40 03" },
		{ "80070011 0102030405060708090a0b0c0d0e0f1011", "40070011 0000000000000000000000000d0e0f1011" },
		{ "80070002 0102", "40070002 0000" },
		{ "80020003 000000", "40020003 000000" },
		{ "80020009 00000000 8004ffff 01", "00020009 035ec350 4004ffff 01" }, /* inside a location */
		{ "80020010 00000000 80040002 0102 80630002 0304", "00020010 035ec350 40040002 0102 80630002 0304" },
		{ "0000000000000000", "0000000000000000" }, /* a TWAMP sender's zeros */
		{ "80080010 00112233445566778899aabbccddeeff",
		  "20080010 00112233445566778899aabbccddeeff" }, /* we have no key */
	};
	struct reflector *r = make(NULL);
	struct reflector_arrival a = arrival();
	struct reflector_answer answer;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint8_t packet[256], want[256];
		uint32_t n = probe(packet, 0, cases[i].request);
		size_t w = from_hex(want, sizeof want, cases[i].answer);

		assert_int_equal(reflector_answer(r, packet, n, n, &a, &answer), REFLECTOR_ANSWER);
		assert_int_equal(w, n - STAMP_OPEN_LENGTH);
		assert_memory_equal(packet + STAMP_OPEN_LENGTH, want, w);
	}
	reflector_free(r);
}

TEST(follow_up_reports_when_the_last_one_left)
{
	struct reflector *r = make(NULL);
	struct reflector_arrival a = arrival();
	struct reflector_answer answer, first;
	struct stamp_follow_up follow;
	uint8_t packet[128];
	uint32_t n = 0;

	for (int i = 0; i < 3; i++) {
		n = probe(packet, (uint32_t)i, "80070010 ffffffffffffffffffffffffffffffff");
		assert_int_equal(reflector_answer(r, packet, n, n, &a, &answer), REFLECTOR_ANSWER);
		assert_true(answer.follow);
		follow = stamp_follow_up_read(packet + STAMP_OPEN_LENGTH + STAMP_TLV_HEAD);
		if (i < 2)
			assert_true(!follow.seq && !follow.time && !follow.method);
		if (i == 0)
			first = answer;
	}
	reflector_sent(r, answer.session, answer.seq, NOW + 777, false);
	reflector_sent(r, first.session, first.seq, NOW + 1, false); /* late: what is newer stays */
	reflector_sent(r, answer.session + 1, 9, NOW + 2, false);    /* of another */
	reflector_sent(r, UINT32_MAX, 9, NOW + 2, false);
	n = probe(packet, 3, "80070010 ffffffffffffffffffffffffffffffff");
	reflector_answer(r, packet, n, n, &a, &answer);
	follow = stamp_follow_up_read(packet + STAMP_OPEN_LENGTH + STAMP_TLV_HEAD);
	assert_int_equal(follow.seq, 2);
	assert_true(follow.time == stamp_time_of_ns(NOW + 777, false));
	assert_int_equal(follow.method, STAMP_BY_SOFTWARE);
	reflector_free(r);
}

/* A bridge behind the host's own device stamps the same answer again. */
TEST(the_first_stamp_of_an_answer_counts)
{
	struct reflector *r = make(NULL);
	struct reflector_arrival a = arrival();
	struct reflector_answer answers[2];
	struct stamp_follow_up follow[3];
	uint8_t packet[128];

	for (uint32_t i = 0; i < 2; i++) {
		const uint32_t n = probe(packet, i, "80070010 ffffffffffffffffffffffffffffffff");

		reflector_answer(r, packet, n, n, &a, &answers[i]);
	}
	reflector_sent(r, answers[1].session, answers[1].seq, NOW + 200, false);
	reflector_sent(r, answers[0].session, answers[0].seq, NOW + 300, false);
	reflector_sent(r, answers[0].session, answers[0].seq, NOW + 900, false);
	reflector_sent(r, answers[1].session, answers[1].seq, NOW + 900, false);
	for (uint32_t i = 0; i < 3; i++) {
		const uint32_t n = probe(packet, 2 + i, "80070010 ffffffffffffffffffffffffffffffff");

		reflector_answer(r, packet, n, n, &a, &answers[0]);
		follow[i] = stamp_follow_up_read(packet + STAMP_OPEN_LENGTH + STAMP_TLV_HEAD);
	}
	assert_true(follow[0].seq == 1 && follow[0].time == stamp_time_of_ns(NOW + 200, false));
	assert_true(follow[1].seq == 0 && follow[1].time == stamp_time_of_ns(NOW + 300, false));
	assert_true(!follow[2].seq && !follow[2].time && !follow[2].method);
	reflector_free(r);
}

static uint32_t authenticated(uint8_t *packet, const struct hmac_key *key, const char *tlvs, bool tlv_mac)
{
	const struct stamp_probe p = { .seq = 5, .time = 99, .error = 1 };
	uint32_t n = STAMP_AUTH_LENGTH;

	stamp_probe_write(packet, &p, true);
	stamp_sign(packet, key);
	n += (uint32_t)from_hex(packet + n, 256, tlvs);
	if (tlv_mac) {
		uint32_t at = n;

		n += stamp_tlv_write(packet + n, STAMP_TLV_HMAC, 16);
		stamp_tlv_mac(packet, true, at, key, packet + at + STAMP_TLV_HEAD);
	}
	return n;
}

TEST(authenticated_mode)
{
	struct hmac_key key, wrong;
	const struct reflector_options options = { .auth_key = &key, .rate = 1, .burst = 1 };
	struct reflector_arrival a = arrival();
	struct reflector_answer answer;
	struct reflector_counts counts;
	uint8_t packet[512], mac[16];
	struct reflector *r;
	uint32_t n;

	hmac_key_set(&key, "right", 5);
	hmac_key_set(&wrong, "wrong", 5);
	r = make(&options);
	n = probe(packet, 1, "");
	assert_int_equal(reflector_answer(r, packet, n, n, &a, &answer), REFLECTOR_SHORT); /* an open one */
	n = authenticated(packet, &wrong, "", false);
	for (int i = 0; i < 10; i++)
		assert_int_equal(reflector_answer(r, packet, n, n, &a, &answer), REFLECTOR_HMAC);
	n = authenticated(packet, &key, "80030004 00000000", true);
	assert_int_equal(reflector_answer(r, packet, n, n, &a, &answer),
			 REFLECTOR_ANSWER); /* forgers have not used up its rate */
	reflector_finish(r, packet, &answer, NOW);
	assert_true(stamp_is_signed(packet, &key));
	assert_int_equal(packet[STAMP_AUTH_LENGTH], 0);
	stamp_tlv_mac(packet, true, STAMP_AUTH_LENGTH + 8, &key, mac);
	assert_memory_equal(packet + STAMP_AUTH_LENGTH + 12, mac, 16);
	a.now_ns += 10 * S;
	n = authenticated(packet, &key, "80030004 00000000", true);
	packet[STAMP_AUTH_LENGTH + 5] ^= 1; /* a TLV was changed on the way */
	assert_int_equal(reflector_answer(r, packet, n, n, &a, &answer), REFLECTOR_ANSWER);
	assert_int_equal(packet[STAMP_AUTH_LENGTH], STAMP_TLV_INTEGRITY);
	assert_int_equal(packet[STAMP_AUTH_LENGTH + 5], 1); /* nothing of it was used */
	assert_int_equal(packet[STAMP_AUTH_LENGTH + 8], STAMP_TLV_INTEGRITY);
	a.now_ns += 10 * S;
	n = authenticated(packet, &key, "80030004 00000000", false); /* TLVs without an HMAC */
	assert_int_equal(reflector_answer(r, packet, n, n, &a, &answer), REFLECTOR_ANSWER);
	assert_int_equal(packet[STAMP_AUTH_LENGTH], STAMP_TLV_INTEGRITY);
	a.now_ns += 10 * S;
	n = authenticated(packet, &key, "80010004 00000000", false); /* but padding alone needs none */
	assert_int_equal(reflector_answer(r, packet, n, n, &a, &answer), REFLECTOR_ANSWER);
	assert_int_equal(packet[STAMP_AUTH_LENGTH], 0);
	a.now_ns += 10 * S;
	n = authenticated(packet, &key, "", true);
	n += (uint32_t)from_hex(packet + n, 64, "80030004 00000000"); /* behind the HMAC */
	assert_int_equal(reflector_answer(r, packet, n, n, &a, &answer), REFLECTOR_ANSWER);
	assert_int_equal(packet[n - 8], STAMP_TLV_INTEGRITY);
	reflector_counts(r, &counts);
	assert_int_equal(counts.tlv_integrity, 3);
	assert_int_equal(counts.verdicts[REFLECTOR_HMAC], 10);
	reflector_free(r);
}

TEST(many_tlvs_are_bounded)
{
	struct reflector *r = make(NULL);
	struct reflector_arrival a = arrival();
	struct reflector_answer answer;
	static uint8_t packet[KTRXER_REFLECTOR_PACKET_MAX];
	uint32_t n = probe(packet, 0, "");

	for (; n + 4 <= sizeof packet; n += 4)
		store_be32(packet + n, 0x80630000);
	assert_int_equal(reflector_answer(r, packet, n, n, &a, &answer), REFLECTOR_ANSWER);
	reflector_free(r);
}
