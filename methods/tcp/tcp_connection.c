/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tcp_connection.h"

#include <string.h>

#define RESEND_NS (300 * (uint64_t)KTRXER_NS_PER_MS)
/* Linux retransmits 200 ms after a round trip, other systems later (RFC 6298: one second). */
#define LATE_ROOM_NS (100 * (uint64_t)KTRXER_NS_PER_MS)
#define LEAD_MIN_NS (50 * (uint64_t)KTRXER_NS_PER_MS)
#define LEAD_MAX_NS (120 * (uint64_t)KTRXER_NS_PER_MS)

enum {
	SYN_TRIES = 3,
	TRIES_COUNTED = 8, /* the timer grows with them */
	WARM = 2,
	WARM_AFTER_LOSS = 4, /* the server's congestion window is one segment after its timer, and grows by these */
	BACKLOG = 8,         /* segments that the server has to send still, at least */
	MSS_OF_NO_OPTION = 536,
};

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void send_segment(struct tcp_connection *c, struct tcp_segment *s, int probe, uint64_t at_ns)
{
	c->calls.send(c->calls.context, c, s, probe, at_ns);
}

/* An acknowledgement of `acknowledged`, with the window up to `edge`. */
static struct tcp_segment acknowledgement(const struct tcp_connection *c, uint64_t acknowledged, uint64_t edge)
{
	return (struct tcp_segment){ .sequence = c->own_first + (uint32_t)c->own_next,
				     .acknowledgement = c->peer_first + (uint32_t)acknowledged,
				     .window = (uint16_t)(edge > acknowledged ? edge - acknowledged : 0),
				     .flags = KTRXER_TCP_ACK };
}

/* `length` bytes of the stream of requests from `from` on. */
static void requests_fill(const struct tcp_connection *c, uint8_t *to, uint64_t from, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		to[i] = c->spec.request[(from + i) % c->spec.request_length];
}

/* How many further requests the server needs, so that it always has data to send. */
static uint32_t requests_missing(const struct tcp_connection *c)
{
	const uint64_t response = c->response.length + c->response.body_length,
		       wanted = c->peer_next + (uint64_t)BACKLOG * c->spec.mss;
	uint64_t requested;

	if (!c->requests)
		return 1;
	if (!c->head_known || c->response.body_length == TCP_BODY_UNKNOWN)
		return 0;
	requested = c->requests * response;
	if (requested >= wanted)
		return 0;
	return (uint32_t)((wanted - requested + response - 1) / response);
}

/* Acknowledges, with data that the server has not acknowledged, or with further requests. */
static void send_acknowledgement(struct tcp_connection *c, bool resend)
{
	uint8_t payload[TCP_REQUEST_MAX];
	struct tcp_segment s = acknowledgement(c, c->peer_next, c->edge);
	uint64_t from = c->own_next;
	uint32_t most = c->peer_mss < sizeof payload ? c->peer_mss : (uint32_t)sizeof payload, fits;

	if (resend && c->own_acknowledged < c->own_next) {
		from = c->own_acknowledged;
		s.length = (uint32_t)least(most, c->own_next - from);
	} else if (c->own_acknowledged == c->own_next && c->phase != TCP_PRIMED) {
		fits = (uint32_t)least(most, c->peer_window) / c->spec.request_length;
		fits = (uint32_t)least(fits, requests_missing(c));
		s.length = fits * c->spec.request_length;
		c->requests += fits;
		c->own_next += s.length;
	}
	if (s.length) {
		requests_fill(c, payload, from, s.length);
		s.sequence = c->own_first + (uint32_t)from;
		s.payload = payload;
		s.flags |= KTRXER_TCP_PSH;
	}
	send_segment(c, &s, TCP_CONTROL, 0);
}

static void send_syn(struct tcp_connection *c)
{
	struct tcp_segment s = { .sequence = c->own_first - 1,
				 .flags = KTRXER_TCP_SYN,
				 .window = (uint16_t)(2 * c->spec.mss),
				 .mss = c->spec.mss };

	send_segment(c, &s, TCP_CONTROL, 0);
}

static void resend_at(struct tcp_connection *c, uint64_t now_ns)
{
	c->timer_ns = now_ns + (RESEND_NS + c->rtt_ns) * (1 + c->tries);
}

static void finish(struct tcp_connection *c, enum tcp_doubt doubt)
{
	struct tcp_pair_done done = { .doubt = doubt,
				      .arrived_ns = { c->arrived_ns[0], c->arrived_ns[1] },
				      .answers = c->answer_count,
				      .sequence = c->own_first + (uint32_t)c->probe_from,
				      .elicited = c->peer_first + (uint32_t)c->base + 2u * c->spec.mss };

	if (doubt == TCP_NO_DOUBT && c->is_short)
		done.doubt = TCP_SHORT_SEGMENTS;
	if (done.doubt == TCP_NO_DOUBT)
		tcp_pair_read(c->answers, c->answer_count, &done.result);
	if (done.doubt == TCP_NO_DOUBT && done.result.up == TCP_PAIR_UNKNOWN)
		done.doubt = TCP_NO_CONCLUSION;
	c->pairs += done.doubt == TCP_NO_DOUBT;
	c->phase = TCP_SETTLING;
	c->calls.done(c->calls.context, c, &done);
}

/*
 * A server retransmits the oldest segment, and no other one before that is acknowledged. So if the second segment comes
 * for the first time after a late first one, both are first transmissions that waited on the path.
 */
static void take_late_back(struct tcp_connection *c)
{
	if (c->late < 0)
		return;
	c->answers[c->late].again = false;
	c->arrived_ns[0] = c->late_ns;
	c->late = -1;
}

/* A first transmission of the first segment is too late. The second segment shows how long this round trip is. */
static bool too_late(const struct tcp_connection *c, uint64_t arrived_ns)
{
	const uint64_t expected_ns = c->arrived_ns[1] ? c->arrived_ns[1] : c->at_ns + c->rtt_ns + c->rtt_ns / 2;

	return arrived_ns > expected_ns + LATE_ROOM_NS;
}

static void add_answer(struct tcp_connection *c, int32_t data, uint8_t acknowledged, uint64_t arrived_ns)
{
	const bool seen = data < 0 && data != TCP_PAIR_NO_DATA, twice = (data == 0 || data == 1) && c->arrived_ns[data];
	struct tcp_pair_answer *a = &c->answers[c->answer_count];

	if (c->answer_count == TCP_ANSWERS_MAX)
		return;
	*a = (struct tcp_pair_answer){ .data = data, .acknowledged = acknowledged, .again = seen || twice };
	c->answer_count++;
	if (data == TCP_PAIR_NO_DATA)
		return;
	/*
	 * A server retransmits the first segment when both before it are acknowledged: by the second probe. So one that
	 * acknowledges the first probe alone is a first transmission. One that does not, and came later than half of
	 * the time to the next, may have waited for the server's timer, which doubles each time.
	 */
	if (data == 0 && !twice)
		c->proven = acknowledged == 1;
	else if (data == 0)
		c->unsure |= !c->proven && 2 * (c->arrived_ns[0] - c->at_ns) >= arrived_ns - c->arrived_ns[0];
	if (data == 0 && !twice && !c->proven && too_late(c, arrived_ns)) {
		a->again = true;
		if (c->late < 0 && !c->arrived_ns[1]) {
			c->late = (int)c->answer_count - 1;
			c->late_ns = arrived_ns;
		}
	}
	if (data == 1 && !twice)
		take_late_back(c);
	if (!a->again)
		c->arrived_ns[data] = arrived_ns;
	/* An answer to a late probe may still be on the path, so the end waits for a further round trip. */
	else if (!c->again)
		c->conclude_ns = arrived_ns + c->rtt_ns + LATE_ROOM_NS;
	c->again |= a->again;
}

static void answer(struct tcp_connection *c, int64_t from, uint32_t length, uint64_t arrived_ns)
{
	const uint64_t acked = c->own_acknowledged > c->probe_from ? c->own_acknowledged - c->probe_from : 0;
	const uint8_t acknowledged = (uint8_t)(acked / c->spec.request_length);
	const int64_t mss = c->spec.mss, elicited = (int64_t)c->base + 2 * mss;

	if (!length)
		add_answer(c, TCP_PAIR_NO_DATA, acknowledged, arrived_ns);
	/* This host or the server's may have merged segments. */
	for (uint32_t at = 0; at < length; at += c->spec.mss) {
		const int64_t offset = from + at - elicited;

		if (offset % mss == 0 && length - at >= c->spec.mss && offset / mss >= -2 && offset / mss <= 1) {
			add_answer(c, (int32_t)(offset / mss), acknowledged, arrived_ns);
		} else {
			c->is_short = true;
			c->conclude_ns = least(c->conclude_ns, arrived_ns + c->rtt_ns + LATE_ROOM_NS);
		}
	}
	if (tcp_pair_is_whole(c->answers, c->answer_count))
		finish(c, TCP_NO_DOUBT);
}

static void rtt_add(struct tcp_connection *c, uint64_t rtt_ns)
{
	if (rtt_ns > c->rtt_ns)
		c->rtt_ns = rtt_ns;
	else
		c->rtt_ns -= (c->rtt_ns - rtt_ns) / 8;
}

/*
 * A server whose SYN-ACK was lost sends it again after 1 s. So the round trip of the SYN is an upper limit, and that of
 * the first request counts if this host sent it once (Karn's algorithm, RFC 6298, 3).
 */
static void first_acknowledged(struct tcp_connection *c, uint64_t arrived_ns)
{
	c->rtt_sure = true;
	if (!c->rtt_ns || arrived_ns - c->at_ns < c->rtt_ns)
		c->rtt_ns = arrived_ns - c->at_ns;
}

/* Acknowledges what is here. Ready, where nothing is open. */
static void settle(struct tcp_connection *c, bool resend, uint64_t now_ns)
{
	const bool hole = c->beyond_to > c->peer_next;

	if ((c->warm || !c->head_known) && c->peer_next + c->spec.mss > c->edge)
		c->edge = c->peer_next + 2u * c->spec.mss;
	send_acknowledgement(c, resend);
	if (!c->warm && !hole && c->head_known && c->own_acknowledged == c->own_next &&
	    c->peer_next + c->spec.mss > c->edge) {
		c->phase = TCP_READY;
		c->timer_ns = KTRXER_NEVER;
		return;
	}
	resend_at(c, now_ns);
}

void tcp_connection_open(struct tcp_connection *c, uint32_t first, uint64_t now_ns)
{
	const struct tcp_connection_spec spec = c->spec;
	const struct tcp_connection_calls calls = c->calls;
	const uint32_t place = c->place;

	*c = (struct tcp_connection){ .spec = spec, .calls = calls, .place = place };
	c->phase = TCP_OPENING;
	c->own_first = first;
	c->at_ns = now_ns;
	c->timer_ns = now_ns + c->spec.timeout_ns / SYN_TRIES;
	send_syn(c);
}

void tcp_connection_close(struct tcp_connection *c, enum tcp_end end)
{
	struct tcp_segment s = acknowledgement(c, c->peer_next, c->peer_next);
	const enum tcp_phase phase = c->phase;

	if (phase == TCP_CLOSED)
		return;
	if (phase == TCP_PROBING)
		finish(c, TCP_CONNECTION_ENDED);
	c->phase = TCP_CLOSED;
	c->end = end;
	c->timer_ns = KTRXER_NEVER;
	s.flags |= KTRXER_TCP_RST;
	if (phase > TCP_OPENING && end != TCP_RESET)
		send_segment(c, &s, TCP_CONTROL, 0);
}

void tcp_connection_prime(struct tcp_connection *c, uint64_t now_ns)
{
	c->phase = TCP_PRIMING;
	c->progress_ns = now_ns;
	c->at_ns = 0;
	c->base = c->peer_next;
	c->edge = c->base + 2u * c->spec.mss;
	c->tries = 0;
	send_acknowledgement(c, false);
	resend_at(c, now_ns);
}

uint64_t tcp_connection_lead_ns(const struct tcp_connection *c)
{
	const uint64_t quarter = c->rtt_ns / 4;

	return c->rtt_ns + (quarter < LEAD_MIN_NS ? LEAD_MIN_NS : quarter > LEAD_MAX_NS ? LEAD_MAX_NS : quarter);
}

void tcp_connection_skip(struct tcp_connection *c, uint64_t now_ns)
{
	c->phase = TCP_SETTLING;
	c->progress_ns = now_ns;
	c->warm = WARM_AFTER_LOSS;
	c->tries = 0;
	settle(c, true, now_ns);
}

void tcp_connection_probe(struct tcp_connection *c, uint64_t at_ns)
{
	const uint32_t mss = c->spec.mss;

	c->phase = TCP_PROBING;
	c->at_ns = at_ns;
	c->probe_from = c->own_next;
	c->answer_count = 0;
	c->arrived_ns[0] = c->arrived_ns[1] = 0;
	c->is_short = c->again = c->proven = c->unsure = false;
	c->late = -1;
	c->conclude_ns = KTRXER_NEVER;
	c->give_up_ns = at_ns + c->rtt_ns + c->spec.timeout_ns;
	for (uint32_t i = 0; i < 2; i++) {
		uint8_t payload[TCP_REQUEST_MAX];
		struct tcp_segment s = acknowledgement(c, c->base + (i + 1) * mss, c->base + (i + 3) * mss);

		requests_fill(c, payload, c->own_next, c->spec.request_length);
		s.payload = payload;
		s.length = c->spec.request_length;
		s.flags |= KTRXER_TCP_PSH;
		send_segment(c, &s, (int)i, at_ns);
		c->own_next += c->spec.request_length;
		c->requests++;
	}
	c->edge = c->base + 4u * mss;
	c->timer_ns = c->give_up_ns;
}

void tcp_connection_sent(struct tcp_connection *c, uint64_t sent_ns)
{
	c->at_ns = sent_ns;
}

static void read_head(struct tcp_connection *c, const uint8_t *data, uint64_t length)
{
	const uint32_t n = (uint32_t)least(length, TCP_HEAD_MAX - c->head_fill);
	int rc;

	if (c->head_known)
		return;
	memcpy(c->head + c->head_fill, data, n);
	c->head_fill += n;
	rc = tcp_response_read(&c->response, c->head, c->head_fill);
	if (rc < 0)
		tcp_connection_close(c, TCP_NOT_HTTP);
	else if (rc > 0 && c->response.status / 100 != 2)
		tcp_connection_close(c, TCP_HTTP_STATUS);
	c->head_known = rc > 0;
}

/* True: new data. Of data out of order one range is remembered; the server sends the others again. */
static bool take_data(struct tcp_connection *c, int64_t from, const struct tcp_segment *s)
{
	const int64_t next = (int64_t)c->peer_next;
	int64_t to = from + s->length;

	if (to > (int64_t)c->edge)
		to = (int64_t)c->edge;
	if (to <= next)
		return false;
	if (from > next) {
		if (c->beyond_to <= c->peer_next) {
			c->beyond_from = (uint64_t)from;
			c->beyond_to = (uint64_t)to;
		} else if ((uint64_t)from == c->beyond_to) {
			c->beyond_to = (uint64_t)to;
		}
		return true;
	}
	c->peer_next = (uint64_t)to;
	read_head(c, s->payload + (next - from), (uint64_t)(to - next));
	if (c->head_known && c->beyond_from <= c->peer_next && c->beyond_to > c->peer_next)
		c->peer_next = c->beyond_to;
	return true;
}

static void take_acknowledgement(struct tcp_connection *c, const struct tcp_segment *s)
{
	const uint32_t more = s->acknowledgement - c->own_first - (uint32_t)c->own_acknowledged;

	if (more <= c->own_next - c->own_acknowledged) {
		c->own_acknowledged += more;
		c->peer_window = s->window;
		if (more)
			c->tries = 0;
	}
}

static void receive_opening(struct tcp_connection *c, const struct tcp_segment *s, uint64_t arrived_ns)
{
	const uint8_t both = KTRXER_TCP_SYN | KTRXER_TCP_ACK;

	if (!(s->flags & KTRXER_TCP_ACK) || s->acknowledgement != c->own_first)
		return;
	if (s->flags & KTRXER_TCP_RST) {
		tcp_connection_close(c, TCP_REFUSED);
		return;
	}
	if ((s->flags & both) != both)
		return;
	c->peer_first = s->sequence + 1;
	c->peer_window = s->window;
	c->peer_mss = s->mss ? s->mss : MSS_OF_NO_OPTION;
	if (!c->tries)
		c->rtt_ns = arrived_ns - c->at_ns;
	c->at_ns = arrived_ns;
	c->tries = 0;
	c->phase = TCP_SETTLING;
	c->progress_ns = arrived_ns;
	c->warm = WARM;
	c->edge = 2u * c->spec.mss;
	if (c->peer_mss < c->spec.request_length || c->peer_window < 2 * c->spec.request_length) {
		tcp_connection_close(c, TCP_SMALL_WINDOW);
		return;
	}
	settle(c, false, arrived_ns);
}

static void receive_priming(struct tcp_connection *c, int64_t from, const struct tcp_segment *s, uint64_t arrived_ns)
{
	const bool whole = from == (int64_t)c->base || from == (int64_t)c->base + c->spec.mss;

	/* The end of a response whose successor was not there yet. */
	if (s->length && (!whole || s->length % c->spec.mss)) {
		c->base = c->peer_next;
		c->edge = c->base + 2u * c->spec.mss;
		c->at_ns = 0;
		send_acknowledgement(c, false);
	} else if (s->length && !c->at_ns) {
		c->at_ns = arrived_ns;
	}
	if (c->peer_next != c->base + 2u * c->spec.mss || c->own_acknowledged != c->own_next)
		return;
	/* The server's timer may have ended, as in TCP_PRIMED. This host reads such segments at once if it was busy. */
	if (c->at_ns && arrived_ns > c->at_ns + LATE_ROOM_NS) {
		tcp_connection_skip(c, arrived_ns);
		return;
	}
	c->phase = TCP_PRIMED;
	c->timer_ns = KTRXER_NEVER;
}

/* Each arrival postpones the timer, so arrivals look at the time, too. */
static bool gave_up(struct tcp_connection *c, uint64_t now_ns)
{
	if ((c->phase != TCP_SETTLING && c->phase != TCP_PRIMING) ||
	    now_ns <= c->progress_ns + c->rtt_ns + c->spec.timeout_ns)
		return false;
	tcp_connection_close(c, c->warm && c->head_known ? TCP_NO_DATA : TCP_SILENT);
	return true;
}

void tcp_connection_receive(struct tcp_connection *c, const struct tcp_segment *s, uint64_t arrived_ns)
{
	const int64_t from = (int64_t)c->peer_next + (int32_t)(s->sequence - c->peer_first - (uint32_t)c->peer_next);
	uint64_t acknowledged;
	bool fresh, once;

	if (c->phase == TCP_CLOSED)
		return;
	if (c->phase == TCP_OPENING) {
		receive_opening(c, s, arrived_ns);
		return;
	}
	if (s->flags & KTRXER_TCP_RST) {
		/* RFC 5961, with two left edges: acknowledgements may be held back. */
		if (from >= (int64_t)c->peer_next - 2 * c->spec.mss && from <= (int64_t)c->edge)
			tcp_connection_close(c, TCP_RESET);
		return;
	}
	if (!(s->flags & KTRXER_TCP_ACK) || s->flags & KTRXER_TCP_SYN)
		return;
	acknowledged = c->own_acknowledged;
	once = !acknowledged && !c->tries;
	take_acknowledgement(c, s);
	if (once && c->own_acknowledged)
		first_acknowledged(c, arrived_ns);
	fresh = s->length && take_data(c, from, s);
	/* A server that sends one byte at a time makes no progress before it has sent as many as a segment. */
	c->news += fresh ? s->length : 0;
	if (c->news >= c->spec.mss || c->own_acknowledged != acknowledged) {
		c->progress_ns = arrived_ns;
		c->news = 0;
	}
	if (c->phase == TCP_CLOSED || gave_up(c, arrived_ns))
		return;
	if (s->flags & KTRXER_TCP_FIN && from + s->length == (int64_t)c->peer_next) {
		tcp_connection_close(c, TCP_FINISHED);
		return;
	}
	switch (c->phase) {
	case TCP_PROBING:
		answer(c, from, s->length, arrived_ns);
		if (c->phase != TCP_PROBING) {
			rtt_add(c, arrived_ns > c->at_ns ? arrived_ns - c->at_ns : 0);
			c->tries = 0;
			settle(c, false, arrived_ns);
		} else if (c->conclude_ns != KTRXER_NEVER) {
			c->timer_ns = c->conclude_ns;
		}
		break;
	case TCP_PRIMING:
		receive_priming(c, from, s, arrived_ns);
		break;
	case TCP_PRIMED:
		/* The server's timer has ended, and its answers to a pair would follow other rules. */
		if (s->length)
			tcp_connection_skip(c, arrived_ns);
		break;
	case TCP_SETTLING:
		if (fresh) {
			c->tries = 0;
			c->warm -= (uint32_t)least(c->warm, (s->length + c->spec.mss - 1) / c->spec.mss);
		}
		if (s->length || (!c->warm && c->own_acknowledged == c->own_next))
			settle(c, false, arrived_ns);
		break;
	default:
		/* A probe of the closed window, or a retransmission: the server lacks an acknowledgement. */
		if (from < (int64_t)c->peer_next)
			send_acknowledgement(c, false);
		break;
	}
}

static void tick_open(struct tcp_connection *c, uint64_t now_ns)
{
	if (++c->tries >= SYN_TRIES) {
		tcp_connection_close(c, TCP_NO_ANSWER);
		return;
	}
	c->timer_ns = now_ns + c->spec.timeout_ns / SYN_TRIES;
	send_syn(c);
}

static void tick_pair(struct tcp_connection *c, uint64_t now_ns)
{
	finish(c, c->is_short ? TCP_SHORT_SEGMENTS : c->again && !c->unsure ? TCP_NO_DOUBT : TCP_NO_CONCLUSION);
	c->tries = 0;
	c->progress_ns = now_ns;
	c->warm = WARM_AFTER_LOSS;
	settle(c, true, now_ns);
}

void tcp_connection_tick(struct tcp_connection *c, uint64_t now_ns)
{
	c->timer_ns = KTRXER_NEVER;
	switch (c->phase) {
	case TCP_OPENING:
		tick_open(c, now_ns);
		break;
	case TCP_PROBING:
		tick_pair(c, now_ns);
		break;
	case TCP_SETTLING:
	case TCP_PRIMING:
		if (gave_up(c, now_ns))
			break;
		c->tries += c->tries < TRIES_COUNTED;
		if (c->phase == TCP_SETTLING)
			settle(c, true, now_ns);
		else
			send_acknowledgement(c, true);
		if (c->phase != TCP_READY)
			resend_at(c, now_ns);
		break;
	default:
		break;
	}
}
