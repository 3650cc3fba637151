/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The sender's books against the real reflector, with a path between them that loses, doubles and reorders what it is
 * told to.
 */
#include "cm.h"
#include "reflector.h"
#include "stamp_packet.h"
#include "stamp_session.h"

#include <stdlib.h>
#include <sys/socket.h>

#define MS 1000000ULL
#define REAL 1795000000000000000LL
#define SKEW_NS 7000000 /* their clock is ahead by so much */

struct world {
	struct stamp_session *session;
	struct reflector *reflector;
	struct hmac_key key;
	bool auth, follow_up, no_stamps, limits;
	uint64_t now;
	uint64_t there_ns, back_ns;
};

static void reflector_start(struct world *w, bool stateless)
{
	const struct reflector_options options = { .stateless = stateless, .auth_key = w->auth ? &w->key : NULL };

	reflector_free(w->reflector);
	assert_int_equal(reflector_new(&w->reflector, &options), 0);
	reflector_set_clock(w->reflector, true, 1000);
}

static struct world world_new(bool auth, bool follow_up, bool stateless)
{
	struct world w = {
		.auth = auth, .follow_up = follow_up, .now = 1000 * MS, .there_ns = 300000, .back_ns = 500000
	};
	struct stamp_session_options options = {
		.window = 1024, .timeout_ns = 100 * MS, .ssid = 9, .follow_up = follow_up
	};

	hmac_key_set(&w.key, "k", 1);
	options.auth_key = auth ? &w.key : NULL;
	assert_int_equal(stamp_session_new(&w.session, &options), 0);
	reflector_start(&w, stateless);
	return w;
}

static void world_free(struct world *w)
{
	stamp_session_free(w->session);
	reflector_free(w->reflector);
}

static size_t probe(struct world *w, uint8_t *packet, uint64_t number)
{
	const struct stamp_probe p = {
		.seq = (uint32_t)number, .time = 0xabcd000000000000ULL + number, .error = 1, .ssid = 9
	};
	size_t n = stamp_base_length(w->auth);

	assert_int_equal(stamp_session_commit(w->session, number, p.time), 0);
	stamp_probe_write(packet, &p, w->auth);
	if (w->auth)
		stamp_sign(packet, &w->key);
	if (w->follow_up) {
		n += stamp_tlv_write(packet + n, STAMP_TLV_FOLLOW_UP, 16);
		if (w->limits)
			n += stamp_tlv_write(packet + n, STAMP_TLV_LIMITS, 16);
		if (w->auth) {
			uint32_t at = (uint32_t)n;

			n += stamp_tlv_write(packet + n, STAMP_TLV_HMAC, 16);
			stamp_tlv_mac(packet, true, at, &w->key, packet + at + STAMP_TLV_HEAD);
		}
	}
	return n;
}

static void left(struct world *w, uint64_t number, uint64_t sent)
{
	const struct ktx_report report = { .id = number,
					   .status = sent ? KTX_SENT : KTX_FAILED,
					   .sent_ns = sent,
					   .at_ns = sent ? sent - 1000 : 0,
					   .sent_source = KTX_SENT_SCHED,
					   .own_queue_ns = 2000,
					   .bound_ns = 5 };

	stamp_session_report(w->session, &report);
}

/* The far end makes the packet its answer. T3 is written 10 us after T2, and the driver stamps it 25 us after T2. */
static bool reflect(struct world *w, uint8_t *packet, size_t n)
{
	const int64_t t2 = REAL + (int64_t)(w->now + w->there_ns) + SKEW_NS;
	const struct reflector_arrival a = { .from = { .family = AF_INET, .bytes = { 10, 1 } },
					     .to = { .family = AF_INET, .bytes = { 10, 2 } },
					     .from_port = 5,
					     .to_port = 862,
					     .ttl = 60,
					     .now_ns = w->now,
					     .received_real_ns = t2 };
	struct reflector_answer answer;

	if (reflector_answer(w->reflector, packet, (uint32_t)n, (uint32_t)n, &a, &answer) != REFLECTOR_ANSWER)
		return false;
	reflector_finish(w->reflector, packet, &answer, t2 + 10000);
	if (answer.follow && !w->no_stamps)
		reflector_sent(w->reflector, answer.session, answer.seq, t2 + 25000, false);
	return true;
}

static enum stamp_event back(struct world *w, const uint8_t *packet, size_t n)
{
	const struct stamp_arrival a = { .received_ns = w->now + w->there_ns + 25000 + w->back_ns,
					 .real_near_ns = REAL + (int64_t)w->now,
					 .bound_ns = 7,
					 .source = KTRXER_STAMP_KERNEL,
					 .ttl = 59 };

	return stamp_session_reply(w->session, packet, n, &a);
}

enum fate { FINE, LOST_THERE, LOST_BACK, TWICE_THERE, TWICE_BACK, UNSENT };

static void one(struct world *w, uint64_t number, enum fate fate)
{
	uint8_t packet[256], copy[256];
	size_t n = probe(w, packet, number);

	memcpy(copy, packet, n);
	left(w, number, fate == UNSENT ? 0 : w->now);
	if (fate != LOST_THERE && fate != UNSENT) {
		assert_true(reflect(w, packet, n));
		if (fate != LOST_BACK)
			assert_int_equal(back(w, packet, n), STAMP_ANSWER);
		if (fate == TWICE_BACK)
			assert_int_equal(back(w, packet, n), STAMP_DUPLICATE);
		if (fate == TWICE_THERE) {
			assert_true(reflect(w, copy, n));
			assert_int_equal(back(w, copy, n), STAMP_DUPLICATE);
		}
	}
	w->now += 10 * MS;
}

static void give_up(struct world *w)
{
	uint64_t number;

	w->now += 200 * MS;
	while (stamp_session_lost(w->session, w->now, &number))
		;
}

TEST(a_sample_has_all_fields)
{
	for (int auth = 0; auth < 2; auth++) {
		struct world w = world_new(auth, true, false);
		struct stamp_sample sample;
		uint64_t sent = w.now;

		one(&w, 0, FINE);
		assert_false(
			stamp_session_sample(w.session, w.now, false,
					     &sample)); /* the driver's stamp of the answer comes with the next one */
		one(&w, 1, FINE);
		assert_true(stamp_session_sample(w.session, w.now, false, &sample));
		assert_int_equal(sample.number, 0);
		assert_int_equal(sample.t1_ns, sent);
		assert_int_equal(sample.at_ns, sent - 1000);
		assert_int_equal(sample.far_queue_ns, 15000);
		assert_int_equal(sample.own_queue_ns, 2000);
		assert_int_equal(sample.dwell_ns, 10000);
		assert_int_equal(sample.rtt_ns, 800000 + 15000);
		assert_int_equal(sample.up_ns, REAL + SKEW_NS + 300000);
		assert_int_equal(sample.down_ns, 515000 - REAL - SKEW_NS);
		assert_int_equal(sample.bound_ns, 12);
		assert_int_equal(sample.ttl_up, 60);
		assert_int_equal(sample.ttl_down, 59);
		assert_true(sample.peer_synchronised && sample.peer_error_ns >= 1000 && sample.peer_error_ns < 1100);
		assert_false(sample.follows);
		assert_false(stamp_session_sample(w.session, w.now, false, &sample));
		w.now += 200 * MS; /* no next one comes: the far queue of this one stays unknown */
		assert_true(stamp_session_next(w.session) <= w.now);
		assert_true(stamp_session_sample(w.session, w.now, false, &sample));
		assert_int_equal(sample.far_queue_ns, -1);
		assert_int_equal(sample.rtt_ns, 800000 + 15000);
		assert_true(sample.follows);
		assert_int_equal(sample.ipdv_ns, 0);
		world_free(&w);
	}
}

#ifndef KTRXER_SMALL
/*
 * stamp --host-delay: the delays lose 2 us in this host and 15 us in the far one, and nothing where one of them is not
 * known.
 */
TEST(host_delay_is_subtracted)
{
	const struct stamp_session_options options = {
		.window = 1024, .timeout_ns = 100 * MS, .ssid = 9, .follow_up = true, .host_delay = true
	};
	struct world w = world_new(false, true, false);
	struct stamp_sample sample;

	stamp_session_free(w.session);
	assert_int_equal(stamp_session_new(&w.session, &options), 0);
	for (uint64_t i = 0; i < 3; i++)
		one(&w, i, FINE);
	for (uint64_t i = 0; i < 2; i++) {
		assert_true(stamp_session_sample(w.session, w.now, false, &sample));
		assert_false(sample.uncorrected);
		assert_int_equal(sample.rtt_ns, 800000 - 2000);
		assert_int_equal(sample.up_ns, REAL + SKEW_NS + 300000 - 2000);
		assert_int_equal(sample.down_ns, 500000 - REAL - SKEW_NS);
		assert_int_equal(sample.own_queue_ns, 2000);
		assert_int_equal(sample.far_queue_ns, 15000);
		assert_int_equal(sample.ipdv_ns, 0);
	}
	w.now += 200 * MS; /* the far queue of the last one stays unknown */
	assert_true(stamp_session_sample(w.session, w.now, false, &sample));
	assert_true(sample.uncorrected);
	assert_int_equal(sample.rtt_ns, 800000 + 15000);
	assert_false(sample.follows);
	world_free(&w);
}
#endif

TEST(without_follow_up_nothing_is_held)
{
	struct world w = world_new(false, false, false);
	struct stamp_sample sample;

	one(&w, 0, FINE);
	assert_true(stamp_session_sample(w.session, w.now, false, &sample));
	assert_int_equal(sample.far_queue_ns, -1);
	world_free(&w);
}

/* A set of losses that is known, in all four ways at once, a hundred times. */
TEST(loss_by_direction_is_exact)
{
	for (uint64_t round = 1; round <= 100; round++) {
		struct world w = world_new(round % 2, true, false);
		uint64_t there = 0, lost_down = 0, twice_there = 0, twice_back = 0, unsent = 0, seed = round,
			 samples = 0;
		struct stamp_session_counts c;
		struct stamp_sample sample;
		const uint64_t count = 500;

		w.limits = true; /* the reflector counts copies */
		for (uint64_t i = 0; i < count; i++) {
			enum fate fate;

			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			fate = (seed >> 33) % 10 < 5 ? FINE : (enum fate)((seed >> 33) % 10 - 4);
			if (fate > UNSENT)
				fate = FINE;
			if (round % 3 == 0 && i > 480)
				fate = i % 2 ? LOST_THERE : LOST_BACK; /* and the end is all lost */
			there += fate == LOST_THERE;
			lost_down += fate == LOST_BACK;
			twice_there += fate == TWICE_THERE;
			twice_back += fate == TWICE_BACK;
			unsent += fate == UNSENT;
			one(&w, i, fate);
			while (stamp_session_sample(w.session, w.now, false, &sample))
				samples++;
			for (uint64_t n; stamp_session_lost(w.session, w.now, &n);)
				;
		}
		give_up(&w);
		stamp_session_close(w.session, count);
		if (stamp_session_unsettled(w.session))
			one(&w, count, FINE);
		assert_false(stamp_session_unsettled(w.session));
		while (stamp_session_sample(w.session, w.now, true, &sample))
			samples++;
		stamp_session_counts(w.session, &c);
		assert_true(c.direction_known && c.stateful);
		assert_int_equal(c.sent, count - unsent);
		assert_int_equal(c.unsent, unsent);
		assert_int_equal(c.lost_up, there);
		assert_int_equal(c.lost_down, lost_down);
		assert_int_equal(c.lost_unknown, 0);
		assert_int_equal(c.duplicates_up, twice_there);
		assert_int_equal(c.duplicates_down, twice_back);
		assert_int_equal(c.received + c.lost, c.sent);
		assert_int_equal(samples, c.received);
		assert_int_equal(c.waiting, 0);
		assert_int_equal(c.foreign + c.wrong_hmac + c.restarts + c.tlvs_refused, 0);
		world_free(&w);
	}
}

TEST(a_lost_end_is_open_until_it_is_settled)
{
	struct stamp_session_counts c;

	for (int way = 0; way < 2; way++) {
		struct world w = world_new(false, true, false);

		for (uint64_t i = 0; i < 20; i++)
			one(&w, i, i < 15 ? FINE : way ? LOST_BACK : LOST_THERE);
		give_up(&w);
		stamp_session_close(w.session, 20);
		assert_true(stamp_session_unsettled(w.session));
		stamp_session_counts(w.session, &c);
		assert_int_equal(c.lost_unknown, 5);
		one(&w, 20, way ? LOST_BACK : LOST_THERE); /* so are the first that ask */
		one(&w, 21, FINE);
		assert_false(stamp_session_unsettled(w.session));
		stamp_session_counts(w.session, &c);
		assert_int_equal(c.sent, 20);
		assert_int_equal(c.lost_unknown, 0);
		assert_int_equal(c.lost_up, way ? 0 : 5);
		assert_int_equal(c.lost_down, way ? 5 : 0);
		world_free(&w);
	}
}

TEST(a_stateless_reflector_reports_no_direction)
{
	struct world w = world_new(false, true, true);
	struct stamp_session_counts c;

	for (uint64_t i = 0; i < 20; i++)
		one(&w, i, i % 4 == 1 ? LOST_THERE : i % 4 == 2 ? LOST_BACK : FINE);
	give_up(&w);
	stamp_session_close(w.session, 20);
	stamp_session_counts(w.session, &c);
	assert_false(c.direction_known);
	assert_false(c.follow_up_seen);
	assert_int_equal(c.lost, 10);
	assert_int_equal(c.lost_unknown, 10);
	assert_int_equal(c.lost_up + c.lost_down, 0);
	world_free(&w);
}

TEST(a_restart_is_seen)
{
	struct world w = world_new(false, true, false);
	struct stamp_session_counts c;

	for (uint64_t i = 0; i < 50; i++)
		one(&w, i, i % 10 == 3 ? LOST_THERE : FINE);
	for (uint64_t i = 50; i < 60; i++) /* no reflector */
		one(&w, i, LOST_THERE);
	reflector_start(&w, false);
	for (uint64_t i = 60; i < 100; i++)
		one(&w, i, i % 10 == 3 ? LOST_BACK : FINE);
	give_up(&w);
	stamp_session_close(w.session, 100);
	stamp_session_counts(w.session, &c);
	assert_int_equal(c.restarts, 1);
	assert_int_equal(c.lost, 19);
	assert_int_equal(c.lost_up, 5);
	assert_int_equal(c.lost_down, 4);
	assert_int_equal(c.lost_unknown, 10);
	world_free(&w);
}

TEST(reordering_by_direction)
{
	struct world w = world_new(false, true, false);
	struct stamp_session_counts c;
	uint8_t a[128], b[128];
	size_t n;

	for (int way = 0; way < 2; way++) {
		n = probe(&w, a, 2u * (unsigned)way);
		left(&w, 2u * (unsigned)way, w.now);
		probe(&w, b, 2u * (unsigned)way + 1);
		left(&w, 2u * (unsigned)way + 1, w.now);
		if (way) { /* overtaken on the up path */
			reflect(&w, b, n);
			reflect(&w, a, n);
		} else {
			reflect(&w, a, n);
			reflect(&w, b, n);
		}
		assert_int_equal(back(&w, b, n), STAMP_ANSWER);
		assert_int_equal(back(&w, a, n), STAMP_ANSWER);
	}
	stamp_session_counts(w.session, &c);
	assert_int_equal(c.reordered_down, 1);
	assert_int_equal(c.reordered_up, 1);
	assert_int_equal(c.restarts, 0);
	world_free(&w);
}

/* RFC 4737 for each way alone: probe 1 arrives after probe 2, and the answer of probe 2 after that of probe 1. */
TEST(reordering_of_both_directions_at_once)
{
	struct world w = world_new(false, true, false);
	struct stamp_session_counts c;
	struct stamp_sample sample;
	uint8_t p[4][128];
	size_t n = 0;

	for (unsigned int i = 0; i < 4; i++) {
		n = probe(&w, p[i], i);
		left(&w, i, w.now);
	}
	reflect(&w, p[0], n);
	reflect(&w, p[2], n);
	reflect(&w, p[1], n);
	reflect(&w, p[3], n);
	/* Answer 3 first: the others are overtaken down; 1 is overtaken up as well. */
	assert_int_equal(back(&w, p[3], n), STAMP_ANSWER);
	assert_int_equal(back(&w, p[1], n), STAMP_ANSWER);
	assert_int_equal(back(&w, p[2], n), STAMP_ANSWER);
	assert_int_equal(back(&w, p[0], n), STAMP_ANSWER);
	stamp_session_counts(w.session, &c);
	assert_int_equal(c.reordered_down, 3);
	assert_int_equal(c.reordered_up, 1);
	for (unsigned int i = 0; i < 4; i++) {
		assert_true(stamp_session_sample(w.session, w.now, true, &sample));
		assert_int_equal(sample.number, i);
		assert_int_equal(sample.reordered_up, i == 1);
		assert_int_equal(sample.reordered_down, i < 3);
	}
	world_free(&w);
}

TEST(hostile_answers)
{
	struct world w = world_new(true, true, false);
	struct stamp_session_counts c;
	struct stamp_sample sample;
	uint8_t packet[256], copy[256];
	size_t n = probe(&w, packet, 0);

	left(&w, 0, w.now);
	assert_true(reflect(&w, packet, n));
	for (size_t cut = 0; cut < STAMP_AUTH_LENGTH; cut++)
		assert_int_equal(back(&w, packet, cut), STAMP_FOREIGN);
	for (size_t i = 0; i < STAMP_AUTH_LENGTH; i++) { /* each byte of it changed: never an answer */
		memcpy(copy, packet, n);
		copy[i] ^= 0x80;
		assert_in_range(back(&w, copy, n), STAMP_FOREIGN, STAMP_WRONG_HMAC);
	}
	memcpy(copy, packet, n);
	copy[STAMP_AUTH_LENGTH + 8] ^= 1; /* a TLV changed: the answer counts, its TLVs do not */
	assert_int_equal(back(&w, copy, n), STAMP_ANSWER);
	assert_int_equal(back(&w, packet, n), STAMP_DUPLICATE); /* replayed */
	assert_true(stamp_session_sample(w.session, w.now, true, &sample));
	assert_false(stamp_session_sample(w.session, w.now, true, &sample));
	stamp_session_counts(w.session, &c);
	assert_int_equal(c.tlvs_refused, 1);
	assert_int_equal(c.received, 1);
	assert_true(c.wrong_hmac > 0 && c.foreign >= STAMP_AUTH_LENGTH);
	world_free(&w);
}

TEST(late_and_early)
{
	struct world w = world_new(false, false, false);
	struct stamp_session_counts c;
	struct stamp_sample sample;
	uint8_t packet[128];
	uint64_t number;
	size_t n = probe(&w, packet, 0);

	left(&w, 0, w.now);
	reflect(&w, packet, n);
	assert_false(stamp_session_lost(w.session, w.now + 99 * MS, &number));
	assert_true(stamp_session_lost(w.session, w.now + 100 * MS, &number));
	assert_int_equal(back(&w, packet, n), STAMP_TOO_LATE);
	assert_true(stamp_session_sample(w.session, w.now, true, &sample)); /* its delay is known, and told apart */
	assert_true(sample.too_late && sample.number == 0 && !sample.follows);
	n = probe(&w, packet, 1);
	reflect(&w, packet, n);
	assert_int_equal(back(&w, packet, n), STAMP_ANSWER); /* before the word that it left */
	assert_false(stamp_session_sample(w.session, w.now, true, &sample));
	left(&w, 1, w.now);
	assert_true(stamp_session_sample(w.session, w.now, true, &sample));
	stamp_session_close(w.session, 2);
	stamp_session_counts(w.session, &c);
	assert_int_equal(c.lost, 0);
	assert_int_equal(c.too_late, 1);
	assert_int_equal(c.lost_up + c.lost_down + c.lost_unknown, 0);
	world_free(&w);
}

/*
 * The time-out is long, because a queue may be. A queue keeps the order: the answer of a probe sent a second later
 * settles it.
 */
TEST(overtaken)
{
	struct world w = world_new(false, false, false);
	struct stamp_session_options options = {
		.window = 64, .timeout_ns = 10000 * MS, .overtaken_ns = 1000 * MS, .ssid = 9
	};
	uint8_t packet[256];
	uint64_t number;
	size_t n;

	stamp_session_free(w.session);
	assert_int_equal(stamp_session_new(&w.session, &options), 0);
	probe(&w, packet, 0);
	left(&w, 0, w.now);
	assert_int_equal(stamp_session_next(w.session), w.now + 10000 * MS);
	w.now += 1000 * MS;
	assert_false(stamp_session_lost(w.session, w.now, &number));
	n = probe(&w, packet, 1);
	left(&w, 1, w.now);
	reflect(&w, packet, n);
	assert_int_equal(back(&w, packet, n), STAMP_ANSWER);
	assert_true(stamp_session_lost(w.session, w.now + MS, &number));
	assert_int_equal(number, 0);
	assert_false(stamp_session_lost(w.session, w.now + MS, &number));
	world_free(&w);
}
