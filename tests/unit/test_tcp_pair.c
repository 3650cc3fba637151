/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "tcp_pair.h"

enum fate { IN_ORDER, REORDERED, FIRST_LOST, SECOND_LOST, BOTH_LOST, FATES };

static const enum tcp_pair_event events[FATES] = { TCP_PAIR_IN_ORDER, TCP_PAIR_REORDERED, TCP_PAIR_FIRST_LOST,
						   TCP_PAIR_SECOND_LOST, TCP_PAIR_BOTH_LOST };

/*
 * A TCP server without SACK (RFC 9293, RFC 5681): segments -2 and -1 are sent, the window has room for two. It
 * retransmits the oldest segment when its timer ends.
 */
struct server {
	int una, next;     /* segments: the oldest one that is not acknowledged, the next one */
	int received;      /* probes, in order */
	bool out_of_order; /* the second probe is kept, the first one is missing */
	struct tcp_pair_answer sent[8];
	int count;
};

static void server_send(struct server *s, int data, bool again)
{
	s->sent[s->count++] =
		(struct tcp_pair_answer){ .data = data, .acknowledged = (uint8_t)s->received, .again = again };
}

/* Probe 0 acknowledges segment -2, probe 1 also segment -1. */
static void server_receive(struct server *s, int probe)
{
	const int before = s->count;

	if (probe - 1 > s->una)
		s->una = probe - 1;
	if (probe == s->received) {
		s->received++;
		if (s->out_of_order) {
			s->received++;
			s->out_of_order = false;
		}
	} else {
		s->out_of_order = true;
	}
	while (s->next < s->una + 2)
		server_send(s, s->next++, false);
	if (s->count == before)
		server_send(s, TCP_PAIR_NO_DATA, false);
}

static bool arrives(enum fate fate, int which)
{
	return fate != BOTH_LOST && fate != (which ? SECOND_LOST : FIRST_LOST);
}

/* The answers that this host receives when both directions have these fates. */
static size_t round_trip(enum fate up, enum fate down, bool bare_lost, struct tcp_pair_answer answers[8],
			 int *originals)
{
	struct server s = { .una = -2 };
	size_t count = 0;
	int order[2] = { 0, 1 };

	if (up == REORDERED) {
		order[0] = 1;
		order[1] = 0;
	}
	for (int i = 0; i < 2; i++)
		if (arrives(up, order[i]))
			server_receive(&s, order[i]);
	*originals = s.next;
	for (int i = 0; i < s.count; i++)
		if (s.sent[i].data == TCP_PAIR_NO_DATA ? !bare_lost : arrives(down, s.sent[i].data))
			answers[count++] = s.sent[i];
	if (down == REORDERED && count > 1 && answers[0].data == 0 && answers[1].data == 1) {
		const struct tcp_pair_answer first = answers[0];

		answers[0] = answers[1];
		answers[1] = first;
	}
	if (!tcp_pair_is_whole(answers, count)) {
		const int before = s.count;

		server_send(&s, s.una, true);
		answers[count++] = s.sent[before];
	}
	return count;
}

TEST(all_events)
{
	for (int up = 0; up < FATES; up++)
		for (int down = 0; down < FATES; down++)
			for (int bare_lost = 0; bare_lost < 2; bare_lost++) {
				struct tcp_pair_answer answers[8];
				struct tcp_pair_result result;
				enum tcp_pair_event up_is = events[up], down_is = events[down];
				int originals;
				const size_t count =
					round_trip((enum fate)up, (enum fate)down, bare_lost, answers, &originals);

				/* The order of the probes shows in the elicited segments only. */
				if (down == BOTH_LOST && (up == IN_ORDER || up == REORDERED))
					up_is = TCP_PAIR_COMPLETE;
				if (originals == 0)
					down_is = TCP_PAIR_UNKNOWN;
				if (originals == 1)
					down_is = arrives((enum fate)down, 0) ? TCP_PAIR_IN_ORDER : TCP_PAIR_FIRST_LOST;
				tcp_pair_read(answers, count, &result);
				assert_int_equal(result.up, up_is);
				assert_int_equal(result.down, down_is);
			}
}

TEST(before_the_retransmission_nothing_is_claimed)
{
	for (int up = 0; up < FATES; up++)
		for (int down = 0; down < FATES; down++) {
			struct tcp_pair_answer answers[8];
			struct tcp_pair_result result;
			int originals;
			const size_t count = round_trip((enum fate)up, (enum fate)down, false, answers, &originals);

			if (!answers[count - 1].again)
				continue;
			tcp_pair_read(answers, count - 1, &result);
			assert_true(result.up < TCP_PAIR_FIRST_LOST && result.down < TCP_PAIR_FIRST_LOST);
		}
}

TEST(answers_that_fit_nothing)
{
	static const struct tcp_pair_answer malformed[][3] = {
		{ { .data = TCP_PAIR_NO_DATA, .acknowledged = 1 }, { .data = -1 }, { .data = 7, .acknowledged = 1 } },
		{ { .data = 1 }, { .data = 0, .acknowledged = 1, .again = true }, { .data = 2 } },
		{ { .data = -2, .acknowledged = 2, .again = true }, { .data = TCP_PAIR_NO_DATA }, { .data = -1 } },
	};
	struct tcp_pair_result result;

	tcp_pair_read(NULL, 0, &result);
	assert_int_equal(result.up, TCP_PAIR_UNKNOWN);
	assert_int_equal(result.down, TCP_PAIR_UNKNOWN);
	for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
		tcp_pair_read(malformed[i], 3, &result);
		assert_int_equal(result.up, TCP_PAIR_UNKNOWN);
		assert_int_equal(result.down, TCP_PAIR_UNKNOWN);
		assert_false(tcp_pair_is_whole(malformed[i], 3));
	}
}

/* Both segments are lost, and the server's program reads the requests: the server announces its window. */
TEST(an_update_of_the_window_is_no_reordering)
{
	static const struct tcp_pair_answer answers[] = { { .data = TCP_PAIR_NO_DATA, .acknowledged = 2 },
							  { .data = 0, .acknowledged = 2, .again = true } };
	struct tcp_pair_result result;

	tcp_pair_read(answers, 2, &result);
	assert_int_equal(result.up, TCP_PAIR_COMPLETE);
	assert_int_equal(result.down, TCP_PAIR_BOTH_LOST);
}

/* A server that sends both segments only when both probes have come. */
TEST(segments_that_waited)
{
	static const struct tcp_pair_answer both[] = { { .data = 0, .acknowledged = 2 },
						       { .data = 1, .acknowledged = 2 } };
	struct tcp_pair_result result;

	tcp_pair_read(both, 2, &result);
	assert_true(tcp_pair_is_whole(both, 2));
	assert_int_equal(result.up, TCP_PAIR_COMPLETE);
	assert_int_equal(result.down, TCP_PAIR_IN_ORDER);
}

/*
 * The probes left late: the server's timer has ended before they came. Linux (F-RTO) then sends the next segment before
 * it has taken the data of the first probe, so this segment does not acknowledge it.
 */
TEST(a_server_whose_timer_ended_before_the_pair)
{
	static const struct tcp_pair_answer answers[] = { { .data = -2, .again = true },
							  { .data = 0 },
							  { .data = 1, .acknowledged = 2 } };
	struct tcp_pair_result result;

	tcp_pair_read(answers, 3, &result);
	assert_int_equal(result.up, TCP_PAIR_UNKNOWN);
	assert_int_equal(result.down, TCP_PAIR_UNKNOWN);
}

TEST(totals)
{
	static const struct tcp_pair_result results[] = {
		{ TCP_PAIR_IN_ORDER, TCP_PAIR_REORDERED },   { TCP_PAIR_REORDERED, TCP_PAIR_SECOND_LOST },
		{ TCP_PAIR_FIRST_LOST, TCP_PAIR_IN_ORDER },  { TCP_PAIR_SECOND_LOST, TCP_PAIR_FIRST_LOST },
		{ TCP_PAIR_SECOND_LOST, TCP_PAIR_IN_ORDER }, { TCP_PAIR_BOTH_LOST, TCP_PAIR_UNKNOWN },
		{ TCP_PAIR_COMPLETE, TCP_PAIR_BOTH_LOST },   { TCP_PAIR_UNKNOWN, TCP_PAIR_UNKNOWN },
	};
	struct tcp_pair_totals t[2] = { { 0 } };

	for (size_t i = 0; i < sizeof results / sizeof *results; i++)
		tcp_pair_count(t, &results[i]);
	assert_int_equal(t[0].sent, 14);
	assert_int_equal(t[0].lost, 5);
	assert_int_equal(t[0].ordered, 2);
	assert_int_equal(t[0].reordered, 1);
	assert_int_equal(t[1].sent, 10); /* for the pairs whose second probe was lost, one segment each */
	assert_int_equal(t[1].lost, 4);
	assert_int_equal(t[1].ordered, 2);
	assert_int_equal(t[1].reordered, 1);
}

/* Values of the formula as published: 10 of 100, and the ends. */
TEST(shares)
{
	const struct tcp_pair_share s = tcp_pair_share(10, 100), none = tcp_pair_share(0, 10),
				    all = tcp_pair_share(10, 10), nothing = tcp_pair_share(0, 0);

	assert_true(s.low > 0.05522 && s.low < 0.05523 && s.high > 0.17436 && s.high < 0.17437);
	assert_true(none.low == 0 && none.high > 0.2775 && none.high < 0.2776);
	assert_true(all.high == 1 && all.low > 0.7224 && all.low < 0.7225);
	assert_true(nothing.low == 0 && nothing.high == 1);
}
