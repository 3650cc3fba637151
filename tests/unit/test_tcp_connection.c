/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A connection of `ktrxer tcp` against segments written by hand. tests/system/test_tcp.py has real servers. */
#include "cm.h"
#include "tcp_connection.h"

#include <string.h>

enum { MSS = 500, REQUEST = 100, FIRST = 0xfffffff0u, PEER = 0x7ffffff0, SENT_MAX = 64 };
#define MS ((uint64_t)KTRXER_NS_PER_MS)

static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";

struct sent {
	struct tcp_segment segment;
	int probe;
};

struct there {
	struct tcp_connection connection;
	uint8_t request[REQUEST], data[4 * MSS];
	struct sent sent[SENT_MAX];
	int count, pairs;
	struct tcp_pair_done done;
	uint64_t now_ns;
};

static void on_send(void *context, struct tcp_connection *c, const struct tcp_segment *s, int probe, uint64_t at_ns)
{
	struct there *t = context;

	(void)c;
	(void)at_ns;
	assert_true(t->count < (int)SENT_MAX);
	t->sent[t->count++] = (struct sent){ *s, probe };
}

static void on_done(void *context, struct tcp_connection *c, const struct tcp_pair_done *pair)
{
	struct there *t = context;

	(void)c;
	t->done = *pair;
	t->pairs++;
}

static const struct tcp_segment *last(const struct there *t)
{
	assert_true(t->count > 0);
	return &t->sent[t->count - 1].segment;
}

/* The server's data from byte `from` on; it has `acknowledged` bytes. */
static void server_sends(struct there *t, uint32_t from, uint32_t length, uint32_t acknowledged, uint8_t flags)
{
	const struct tcp_segment s = { .sequence = (uint32_t)PEER + 1 + from,
				       .acknowledgement = FIRST + acknowledged,
				       .window = 60000,
				       .flags = (uint8_t)(KTRXER_TCP_ACK | flags),
				       .payload = t->data,
				       .length = length };

	t->now_ns += MS;
	tcp_connection_receive(&t->connection, &s, t->now_ns);
}

static void server_accepts(struct there *t, uint16_t window, uint8_t flags)
{
	const struct tcp_segment s = { .sequence = PEER,
				       .acknowledgement = FIRST,
				       .window = window,
				       .mss = 1400,
				       .flags = (uint8_t)(KTRXER_TCP_ACK | flags) };

	t->now_ns += MS;
	tcp_connection_receive(&t->connection, &s, t->now_ns);
}

static void begin(struct there *t)
{
	memset(t, 0, sizeof *t);
	t->connection.spec = (struct tcp_connection_spec){ t->request, REQUEST, MSS, 1000 * MS };
	t->connection.calls = (struct tcp_connection_calls){ on_send, on_done, t };
	t->now_ns = 5000 * MS;
	memcpy(t->data, head, sizeof head - 1);
	tcp_connection_open(&t->connection, FIRST, t->now_ns);
	assert_int_equal(last(t)->flags, KTRXER_TCP_SYN);
	assert_int_equal(last(t)->sequence, FIRST - 1);
	assert_int_equal(last(t)->mss, MSS);
}

static void become_ready(struct there *t)
{
	begin(t);
	server_accepts(t, 60000, KTRXER_TCP_SYN);
	assert_int_equal(last(t)->length, REQUEST);
	assert_int_equal(last(t)->window, 2 * MSS);
	server_sends(t, 0, MSS, REQUEST, 0);
	server_sends(t, MSS, MSS, REQUEST, 0);
	while (t->connection.phase == TCP_SETTLING && t->connection.peer_next < 5 * MSS)
		server_sends(t, (uint32_t)t->connection.peer_next, MSS, REQUEST, 0);
	assert_int_equal(t->connection.phase, TCP_READY);
	assert_int_equal(last(t)->window, 0);
}

/* Returns the first byte that the pair elicits. */
static uint32_t become_probing(struct there *t)
{
	uint32_t base;

	become_ready(t);
	base = (uint32_t)t->connection.peer_next;
	tcp_connection_prime(&t->connection, t->now_ns);
	assert_int_equal(last(t)->window, 2 * MSS);
	/* One merged segment. */
	server_sends(t, base, 2 * MSS, REQUEST, 0);
	assert_int_equal(t->connection.phase, TCP_PRIMED);
	t->count = 0;
	tcp_connection_probe(&t->connection, t->now_ns + MS);
	assert_int_equal(t->count, 2);
	for (int i = 0; i < 2; i++) {
		const struct tcp_segment *s = &t->sent[i].segment;

		assert_int_equal(t->sent[i].probe, i);
		assert_int_equal(s->sequence, FIRST + (uint32_t)(1 + i) * REQUEST);
		assert_int_equal(s->acknowledgement, (uint32_t)PEER + 1 + base + (uint32_t)(1 + i) * MSS);
		assert_int_equal(s->window, 2 * MSS);
		assert_int_equal(s->length, REQUEST);
	}
	return base + 2 * MSS;
}

TEST(an_answer_that_came_late_is_no_round_trip)
{
	struct there line;
	uint64_t lead;

	begin(&line);
	line.connection.spec.timeout_ns = 5000 * MS;
	tcp_connection_open(&line.connection, FIRST, line.now_ns);
	/* The server's first SYN-ACK was lost. */
	line.now_ns += 1020 * MS;
	server_accepts(&line, 60000, KTRXER_TCP_SYN);
	assert_false(line.connection.rtt_sure);
	line.now_ns += 40 * MS;
	server_sends(&line, 0, 0, REQUEST, 0);
	assert_true(line.connection.rtt_sure);
	assert_int_equal(line.connection.rtt_ns, 41 * MS);
	lead = tcp_connection_lead_ns(&line.connection);
	assert_in_range(lead, 41 * MS, 41 * MS + 150 * MS);
}

TEST(an_acknowledgement_of_a_repeated_request_is_no_round_trip)
{
	struct there line;

	begin(&line);
	server_accepts(&line, 60000, KTRXER_TCP_SYN);
	line.now_ns = line.connection.timer_ns;
	tcp_connection_tick(&line.connection, line.now_ns);
	server_sends(&line, 0, 0, REQUEST, 0);
	assert_false(line.connection.rtt_sure);
	assert_int_equal(line.connection.rtt_ns, MS);
}

TEST(a_pair_in_order)
{
	struct there line;
	const uint32_t elicited = become_probing(&line);

	server_sends(&line, elicited, MSS, 2 * REQUEST, 0);
	assert_int_equal(line.pairs, 0);
	server_sends(&line, elicited + MSS, MSS, 3 * REQUEST, 0);
	assert_int_equal(line.pairs, 1);
	assert_int_equal(line.done.doubt, TCP_NO_DOUBT);
	assert_int_equal(line.done.result.up, TCP_PAIR_IN_ORDER);
	assert_int_equal(line.done.result.down, TCP_PAIR_IN_ORDER);
	assert_true(line.done.arrived_ns[0] && line.done.arrived_ns[1] == line.done.arrived_ns[0] + MS);
	assert_int_equal(line.done.sequence, FIRST + REQUEST);
	assert_int_equal(line.done.elicited, (uint32_t)PEER + 1 + elicited);
	assert_int_equal(line.connection.phase, TCP_READY);
	/* All is acknowledged, and the window is closed. */
	assert_int_equal(last(&line)->acknowledgement, (uint32_t)PEER + 1 + elicited + 2 * MSS);
	assert_int_equal(last(&line)->window, 0);
}

TEST(a_lost_probe_is_sent_again_after_the_pair)
{
	struct there line;
	const uint32_t elicited = become_probing(&line);

	/* The first probe is lost: the second one elicits both segments, and neither is acknowledged. */
	server_sends(&line, elicited, MSS, REQUEST, 0);
	server_sends(&line, elicited + MSS, MSS, REQUEST, 0);
	assert_int_equal(line.pairs, 0);
	line.now_ns += 300 * MS;
	server_sends(&line, elicited, MSS, REQUEST, 0);
	assert_int_equal(line.pairs, 0);
	tcp_connection_tick(&line.connection, line.connection.timer_ns);
	assert_int_equal(line.pairs, 1);
	assert_int_equal(line.done.result.up, TCP_PAIR_FIRST_LOST);
	assert_int_equal(line.done.result.down, TCP_PAIR_IN_ORDER);
	assert_int_equal(line.connection.phase, TCP_SETTLING);
	assert_int_equal(last(&line)->sequence, FIRST + REQUEST);
	assert_int_equal(last(&line)->length, 2 * REQUEST);
}

/* As the server retransmits the oldest segment only, a late second segment proves that the first one was not lost. */
TEST(a_pair_that_waited_on_the_path)
{
	struct there line;
	const uint32_t elicited = become_probing(&line);

	line.now_ns += 500 * MS;
	server_sends(&line, elicited, MSS, 2 * REQUEST, 0);
	assert_int_equal(line.pairs, 0);
	server_sends(&line, elicited + MSS, MSS, 3 * REQUEST, 0);
	assert_int_equal(line.pairs, 1);
	assert_int_equal(line.done.result.up, TCP_PAIR_IN_ORDER);
	assert_int_equal(line.done.result.down, TCP_PAIR_IN_ORDER);
}

TEST(a_late_first_segment_alone_is_a_retransmission)
{
	for (int second = 0; second < 2; second++) {
		struct there line;
		const uint32_t elicited = become_probing(&line);

		if (second)
			server_sends(&line, elicited + MSS, MSS, 3 * REQUEST, 0);
		line.now_ns += 500 * MS;
		server_sends(&line, elicited, MSS, 3 * REQUEST, 0);
		tcp_connection_tick(&line.connection, line.connection.timer_ns);
		assert_int_equal(line.pairs, 1);
		assert_int_equal(line.done.result.up, second ? TCP_PAIR_IN_ORDER : TCP_PAIR_COMPLETE);
		assert_int_equal(line.done.result.down, second ? TCP_PAIR_FIRST_LOST : TCP_PAIR_BOTH_LOST);
	}
}

/*
 * A retransmission of the first segment acknowledges both probes or none: the server retransmits an earlier segment
 * until the second probe has come. A segment that acknowledges one probe is a first transmission, however late it is.
 */
TEST(a_late_first_segment_of_one_probe_is_no_retransmission)
{
	struct there line;
	const uint32_t elicited = become_probing(&line);

	/* The probes left 140 ms late, and the second segment is lost. */
	line.now_ns += 140 * MS;
	server_sends(&line, elicited, MSS, 2 * REQUEST, 0);
	line.now_ns += 200 * MS;
	server_sends(&line, elicited, MSS, 3 * REQUEST, 0);
	tcp_connection_tick(&line.connection, line.connection.timer_ns);
	assert_int_equal(line.pairs, 1);
	assert_int_equal(line.done.doubt, TCP_NO_DOUBT);
	assert_int_equal(line.done.result.up, TCP_PAIR_IN_ORDER);
	assert_int_equal(line.done.result.down, TCP_PAIR_SECOND_LOST);
}

/* The connection expects long round trips, because its SYN waited. The second segment shows how long this one is. */
TEST(a_lost_first_segment_after_a_long_round_trip)
{
	struct there line;
	const uint32_t elicited = become_probing(&line);

	line.connection.rtt_ns = 120 * MS;
	server_sends(&line, elicited + MSS, MSS, 3 * REQUEST, 0);
	assert_int_equal(line.pairs, 0);
	line.now_ns += 205 * MS;
	server_sends(&line, elicited, MSS, 3 * REQUEST, 0);
	tcp_connection_tick(&line.connection, line.connection.timer_ns);
	assert_int_equal(line.pairs, 1);
	assert_int_equal(line.done.result.up, TCP_PAIR_IN_ORDER);
	assert_int_equal(line.done.result.down, TCP_PAIR_FIRST_LOST);
}

/*
 * Both segments are lost, and the first retransmission comes earlier than the longest round trip allows. The second
 * retransmission follows after twice the server's timer, so the first one may have waited for the timer.
 */
TEST(two_lost_segments_after_a_long_round_trip_are_not_one)
{
	struct there line;
	const uint32_t elicited = become_probing(&line);

	line.connection.rtt_ns = 120 * MS;
	line.now_ns += 205 * MS;
	server_sends(&line, elicited, MSS, 3 * REQUEST, 0);
	assert_int_equal(line.pairs, 0);
	line.now_ns += 405 * MS;
	server_sends(&line, elicited, MSS, 3 * REQUEST, 0);
	tcp_connection_tick(&line.connection, line.connection.timer_ns);
	assert_int_equal(line.pairs, 1);
	assert_int_equal(line.done.doubt, TCP_NO_CONCLUSION);
}

/* This host had no processor while the server's timer ended. It reads both segments at once, one a retransmission. */
TEST(a_server_that_retransmitted_while_it_was_primed)
{
	struct there line;
	uint32_t base;

	become_ready(&line);
	base = (uint32_t)line.connection.peer_next;
	tcp_connection_prime(&line.connection, line.now_ns);
	server_sends(&line, base + MSS, MSS, REQUEST, 0);
	line.now_ns += 205 * MS;
	server_sends(&line, base, MSS, REQUEST, 0);
	assert_int_equal(line.connection.phase, TCP_SETTLING);
}

TEST(a_retransmission_before_the_pair_leaves_it_out)
{
	struct there line;
	uint32_t base;

	become_ready(&line);
	base = (uint32_t)line.connection.peer_next;
	tcp_connection_prime(&line.connection, line.now_ns);
	server_sends(&line, base, 2 * MSS, REQUEST, 0);
	assert_int_equal(line.connection.phase, TCP_PRIMED);
	line.now_ns += 200 * MS;
	server_sends(&line, base, MSS, REQUEST, 0);
	assert_int_equal(line.connection.phase, TCP_SETTLING);
	assert_int_equal(last(&line)->acknowledgement, (uint32_t)PEER + 1 + base + 2 * MSS);
}

TEST(short_segments_are_no_result)
{
	struct there line;
	const uint32_t elicited = become_probing(&line);

	server_sends(&line, elicited, MSS / 2, 2 * REQUEST, 0);
	assert_int_equal(line.pairs, 0);
	tcp_connection_tick(&line.connection, line.connection.give_up_ns);
	assert_int_equal(line.pairs, 1);
	assert_int_equal(line.done.doubt, TCP_SHORT_SEGMENTS);
}

TEST(a_connection_that_ends_in_a_pair)
{
	for (int reset = 0; reset < 2; reset++) {
		struct there line;
		const uint32_t elicited = become_probing(&line);

		server_sends(&line, elicited, 0, 2 * REQUEST, reset ? KTRXER_TCP_RST : KTRXER_TCP_FIN);
		assert_int_equal(line.pairs, 1);
		assert_int_equal(line.done.doubt, TCP_CONNECTION_ENDED);
		assert_int_equal(line.connection.phase, TCP_CLOSED);
		assert_int_equal(line.connection.end, reset ? TCP_RESET : TCP_FINISHED);
		assert_int_equal((last(&line)->flags & KTRXER_TCP_RST) != 0, !reset);
	}
}

TEST(segments_of_others_change_nothing)
{
	struct there line;
	struct tcp_connection before;
	uint32_t elicited = become_probing(&line);

	before = line.connection;
	/* A reset outside the window; an acknowledgement of what was never sent. */
	server_sends(&line, elicited + 10 * MSS, 0, 2 * REQUEST, KTRXER_TCP_RST);
	assert_memory_equal(&before, &line.connection, sizeof before);
	server_sends(&line, elicited, 0, 50 * REQUEST, 0);
	assert_int_equal(line.connection.own_acknowledged, before.own_acknowledged);
	assert_int_equal(line.pairs, 0);
}

TEST(openings_that_fail)
{
	struct there line;

	begin(&line);
	server_accepts(&line, 0, KTRXER_TCP_RST);
	assert_int_equal(line.connection.end, TCP_REFUSED);
	assert_int_equal(line.count, 1);
	begin(&line);
	server_accepts(&line, 2 * REQUEST - 1, KTRXER_TCP_SYN);
	assert_int_equal(line.connection.end, TCP_SMALL_WINDOW);
	begin(&line);
	while (line.connection.phase == TCP_OPENING)
		tcp_connection_tick(&line.connection, line.connection.timer_ns);
	assert_int_equal(line.connection.end, TCP_NO_ANSWER);
	assert_int_equal(line.count, 3);
	begin(&line);
	server_accepts(&line, 60000, KTRXER_TCP_SYN);
	while (line.connection.phase != TCP_CLOSED)
		tcp_connection_tick(&line.connection, line.connection.timer_ns);
	assert_int_equal(line.connection.end, TCP_SILENT);
	begin(&line);
	memcpy(line.data, "SSH-", 4);
	server_accepts(&line, 60000, KTRXER_TCP_SYN);
	server_sends(&line, 0, 20, REQUEST, 0);
	assert_int_equal(line.connection.end, TCP_NOT_HTTP);
}

/* Each byte is new, and none is a segment's worth. */
TEST(a_server_that_sends_single_bytes_is_given_up)
{
	struct there t;
	uint32_t sent = 0;

	begin(&t);
	server_accepts(&t, 60000, KTRXER_TCP_SYN);
	while (t.connection.phase == TCP_SETTLING) {
		assert_true(sent < 10);
		t.now_ns += 200 * MS;
		t.data[0] = (uint8_t)head[sent];
		server_sends(&t, sent, 1, REQUEST, 0);
		sent++;
		t.count = 0;
	}
	assert_int_equal(t.connection.phase, TCP_CLOSED);
	assert_int_equal(t.connection.end, TCP_SILENT);
	assert_true(sent > 4);
}

TEST(a_probe_of_the_closed_window_is_answered)
{
	struct there line;

	become_ready(&line);
	line.count = 0;
	/* A probe of the window: a byte before the next one, or none. */
	server_sends(&line, (uint32_t)line.connection.peer_next - 1, 0, REQUEST, 0);
	assert_int_equal(line.count, 1);
	assert_int_equal(last(&line)->window, 0);
	assert_int_equal(line.connection.phase, TCP_READY);
}
