/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bytes.h"
#include "cm.h"
#include "echo.h"

#include <errno.h>
#include <stdlib.h>

#define SECRET 0x1122334455667788ULL
#define MS 1000000ULL

static struct echo_table *table_new(uint32_t window)
{
	struct echo_table *table;

	assert_int_equal(echo_table_new(&table, window, 1000 * MS, 1000 * MS, SECRET, true), 0);
	return table;
}

static struct echo_reply reply_to(uint64_t number)
{
	return (struct echo_reply){
		.seq = (uint16_t)number, .has_number = true, .has_secret = true, .number = number, .secret = SECRET
	};
}

static enum echo_event report(struct echo_table *table, uint64_t number, uint64_t sent_ns, struct echo_result *result)
{
	const struct ktx_report r = { .id = number,
				      .status = sent_ns ? KTX_SENT : KTX_FAILED,
				      .departure_source = KTX_DEPARTURE_DRIVER,
				      .sent_ns = sent_ns,
				      .at_ns = sent_ns };

	return echo_table_report(table, &r, result);
}

static enum echo_event reply(struct echo_table *table, uint64_t number, uint64_t received_ns,
			     struct echo_result *result)
{
	const struct echo_reply r = reply_to(number);
	const struct echo_arrival a = { .received_ns = received_ns, .source = KTRXER_STAMP_KERNEL, .ttl = 63 };

	return echo_table_reply(table, &r, &a, result);
}

TEST(a_round_trip_in_either_order)
{
	struct echo_table *table = table_new(8);
	struct echo_result r;
	struct echo_counts c;

	assert_int_equal(echo_table_commit(table, 0), 0);
	assert_int_equal(report(table, 0, 10 * MS, &r), ECHO_NOTHING);
	assert_int_equal(reply(table, 0, 12 * MS, &r), ECHO_ROUND_TRIP);
	assert_int_equal(r.rtt_ns, 2 * MS);
	assert_int_equal(r.ttl, 63);
	assert_int_equal(echo_table_commit(table, 1), 0);
	assert_int_equal(reply(table, 1, 23 * MS, &r),
			 ECHO_NOTHING); /* the stamp of sending is slower than the answer */
	assert_int_equal(report(table, 1, 20 * MS, &r), ECHO_ROUND_TRIP);
	assert_int_equal(r.rtt_ns, 3 * MS);
	assert_int_equal(r.number, 1);
	echo_table_counts(table, &c);
	assert_int_equal(c.sent, 2);
	assert_int_equal(c.received, 2);
	assert_int_equal(c.waiting, 0);
	echo_table_free(table);
}

TEST(loss_duplicates_and_the_late)
{
	struct echo_table *table = table_new(8);
	struct echo_result r;
	struct echo_counts c;
	uint64_t lost;

	for (uint64_t n = 0; n < 3; n++) {
		assert_int_equal(echo_table_commit(table, n), 0);
		report(table, n, (n + 1) * MS, &r);
	}
	assert_int_equal(reply(table, 1, 5 * MS, &r), ECHO_ROUND_TRIP);
	assert_int_equal(reply(table, 1, 6 * MS, &r), ECHO_DUPLICATE);
	assert_int_equal(echo_table_next_loss(table), 1 * MS + 1000 * MS);
	assert_false(echo_table_lost(table, 1000 * MS, &lost));
	assert_true(echo_table_lost(table, 1001 * MS, &lost));
	assert_int_equal(lost, 0);
	assert_false(echo_table_lost(table, 1002 * MS, &lost));
	assert_true(echo_table_lost(table, 1003 * MS, &lost));
	assert_int_equal(lost, 2);
	assert_int_equal(echo_table_next_loss(table), KTRXER_NEVER);
	assert_int_equal(reply(table, 0, 1200 * MS, &r), ECHO_TOO_LATE);
	assert_int_equal(r.rtt_ns, 1199 * MS);
	assert_int_equal(reply(table, 0, 1300 * MS, &r), ECHO_DUPLICATE);
	echo_table_counts(table, &c);
	assert_int_equal(c.lost, 1); /* the other one is too late */
	assert_int_equal(c.too_late, 1);
	assert_int_equal(c.duplicates, 2);
	assert_int_equal(c.sent, c.received + c.lost + c.too_late + c.waiting);
	echo_table_free(table);
}

/*
 * The time-out is long, because a queue may be. A queue keeps the order: the answer of a probe sent a second later
 * settles it.
 */
TEST(a_probe_that_was_overtaken_is_lost)
{
	struct echo_table *table;
	struct echo_result r;
	uint64_t lost;

	assert_int_equal(echo_table_new(&table, 8, 10000 * MS, 1000 * MS, SECRET, true), 0);
	for (uint64_t n = 0; n < 3; n++) {
		assert_int_equal(echo_table_commit(table, n), 0);
		report(table, n, 1 * MS + n * 999 * MS, &r);
	}
	assert_int_equal(reply(table, 1, 2500 * MS, &r), ECHO_ROUND_TRIP);
	assert_false(echo_table_lost(table, 3000 * MS, &lost)); /* sent 999 ms later: not late enough */
	assert_int_equal(echo_table_next_loss(table), 10001 * MS);
	assert_int_equal(reply(table, 2, 4000 * MS, &r), ECHO_ROUND_TRIP);
	assert_int_equal(echo_table_next_loss(table), 1001 * MS);
	assert_true(echo_table_lost(table, 4000 * MS, &lost));
	assert_int_equal(lost, 0);
	echo_table_free(table);
}

/* RFC 6673, 5.4: an answer within the time-out counts, although later probes were answered before it. */
TEST(an_answer_within_the_time_out_counts)
{
	struct echo_table *table;
	struct echo_result r;
	uint64_t lost;

	assert_int_equal(echo_table_new(&table, 8, 3000 * MS, 0, SECRET, true), 0);
	for (uint64_t n = 0; n < 3; n++) {
		assert_int_equal(echo_table_commit(table, n), 0);
		report(table, n, 1 * MS + n * 999 * MS, &r);
	}
	assert_int_equal(reply(table, 1, 1500 * MS, &r), ECHO_ROUND_TRIP);
	assert_int_equal(reply(table, 2, 2100 * MS, &r), ECHO_ROUND_TRIP);
	assert_int_equal(echo_table_next_loss(table), 3001 * MS);
	assert_false(echo_table_lost(table, 2500 * MS, &lost));
	assert_int_equal(reply(table, 0, 2900 * MS, &r), ECHO_ROUND_TRIP);
	echo_table_free(table);
}

TEST(reordering_is_rfc_4737)
{
	struct echo_table *table = table_new(8);
	struct echo_result r;
	struct echo_counts c;

	for (uint64_t n = 0; n < 4; n++) {
		echo_table_commit(table, n);
		report(table, n, (n + 1) * MS, &r);
	}
	/* arrival 0 2 1 3: one packet reordered */
	reply(table, 0, 10 * MS, &r);
	reply(table, 2, 11 * MS, &r);
	assert_false(r.reordered);
	reply(table, 1, 12 * MS, &r);
	assert_true(r.reordered);
	reply(table, 3, 13 * MS, &r);
	assert_false(r.reordered);
	echo_table_counts(table, &c);
	assert_int_equal(c.reordered, 1);
	echo_table_free(table);
}

TEST(foreign_answers_count_for_nothing)
{
	struct echo_table *table = table_new(8);
	const struct echo_arrival a = { .received_ns = 5 * MS };
	struct echo_reply forged = reply_to(0);
	struct echo_result r;
	struct echo_counts c;

	echo_table_commit(table, 0);
	report(table, 0, MS, &r);
	forged.secret++;
	assert_int_equal(echo_table_reply(table, &forged, &a, &r), ECHO_FOREIGN);
	forged = reply_to(0);
	forged.has_secret = false; /* too short for it, though the probes had it */
	assert_int_equal(echo_table_reply(table, &forged, &a, &r), ECHO_FOREIGN);
	forged = reply_to(0);
	forged.seq = 7; /* number and sequence contradict each other */
	assert_int_equal(echo_table_reply(table, &forged, &a, &r), ECHO_FOREIGN);
	assert_int_equal(reply(table, 77, 5 * MS, &r), ECHO_FOREIGN);
	assert_int_equal(reply(table, UINT64_MAX, 5 * MS, &r), ECHO_FOREIGN);
	/* an answer to a probe that never left */
	echo_table_commit(table, 1);
	report(table, 1, 0, &r);
	assert_int_equal(reply(table, 1, 5 * MS, &r), ECHO_FOREIGN);
	assert_int_equal(reply(table, 0, 5 * MS, &r), ECHO_ROUND_TRIP);
	echo_table_counts(table, &c);
	assert_int_equal(c.foreign, 6);
	assert_int_equal(c.failed, 1);
	echo_table_free(table);
}

TEST(the_window_is_full_until_something_ends)
{
	struct echo_table *table = table_new(4);
	struct echo_result r;
	uint64_t lost;

	for (uint64_t n = 0; n < 4; n++) {
		assert_int_equal(echo_table_commit(table, n), 0);
		report(table, n, MS, &r);
	}
	assert_int_equal(echo_table_commit(table, 4), -EAGAIN);
	assert_true(echo_table_lost(table, 2000 * MS, &lost));
	assert_int_equal(echo_table_commit(table, 4), 0);
	/* the place of the lost probe is taken: its answer belongs to no probe now */
	assert_int_equal(reply(table, 0, 3000 * MS, &r), ECHO_FOREIGN);
	echo_table_free(table);
}

TEST(short_payloads_go_by_the_sequence)
{
	struct echo_table *table;
	const struct echo_arrival a = { .received_ns = 70000 * MS };
	struct echo_result r;

	assert_int_equal(echo_table_new(&table, 8, 1000 * MS, 1000 * MS, 0, true), 0);
	for (uint64_t n = 0; n < 65540; n++) {
		assert_int_equal(echo_table_commit(table, n), 0);
		report(table, n, (n + 1) * MS, &r);
		struct echo_reply s = { .seq = (uint16_t)n };

		assert_int_equal(echo_table_reply(table, &s, &a, &r), ECHO_ROUND_TRIP);
		assert_int_equal(r.number, n);
	}
	echo_table_free(table);
}

TEST(parses_replies_and_nothing_else)
{
	uint8_t p[24] = { 0, 0, 0xab, 0xcd, 0x12, 0x34, 0x00, 0x05 };
	struct echo_reply r;

	store_be64(p + 8, 5);
	store_be64(p + 16, SECRET);
	assert_true(echo_reply_parse(&r, p, sizeof p, KTRXER_ICMP));
	assert_int_equal(r.id, 0x1234);
	assert_int_equal(r.seq, 5);
	assert_int_equal(r.number, 5);
	assert_true(r.has_secret && r.secret == SECRET);
	assert_true(echo_reply_parse(&r, p, 12, KTRXER_ICMP));
	assert_false(r.has_number);
	assert_int_equal(r.bytes, 4);
	assert_false(echo_reply_parse(&r, p, 7, KTRXER_ICMP));
	p[0] = 8; /* a request */
	assert_false(echo_reply_parse(&r, p, sizeof p, KTRXER_ICMP));
	p[0] = 129;
	assert_true(echo_reply_parse(&r, p, sizeof p, KTRXER_ICMPV6));
	assert_false(echo_reply_parse(&r, p, sizeof p, KTRXER_ICMP));
	assert_true(echo_reply_parse(&r, p + 8, 16, KTRXER_UDP));
	assert_int_equal(r.number, 5);
	assert_false(echo_reply_parse(&r, p, sizeof p, KTRXER_TCP));
}

TEST(odd_windows_are_refused)
{
	struct echo_table *table;

	assert_int_equal(echo_table_new(&table, 0, 1, 0, 1, true), -EINVAL);
	assert_int_equal(echo_table_new(&table, 3, 1, 0, 1, true), -EINVAL);
	assert_int_equal(echo_table_new(&table, 131072, 1, 0, 1, true), -EINVAL);
	assert_null(table);
}
