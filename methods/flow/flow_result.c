/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "flow_result.h"

#include <string.h>

enum { WINDOW_SAMPLES_MIN = 5, IDLE_MAX = 100 /* thousandths of a flow's time */ };
#define WINDOW_SHARE 0.95 /* the rest: delayed acknowledgements, and the time of a segment in a link */
/* A round trip through an empty path is so much above the shortest one: segments that a sender sends together. */
enum { BURST_SHARE = 15 /* thousandths */, BURST_MOST_US = 750 };

/*
 * A window that is larger than the path holds keeps a queue in it, of the difference, which each round trip contains. A
 * delayed acknowledgement is up to a segment late, at the rate of a window in each round trip.
 */
static bool is_clear(const uint64_t *v)
{
	const uint64_t min_us = v[FLOW_MIN_RTT_US], delayed_us = min_us * v[FLOW_MSS] * 3 / 2 / v[FLOW_RCV_WINDOW];
	uint64_t excess_us = min_us * BURST_SHARE / 1000;

	if (excess_us > BURST_MOST_US)
		excess_us = BURST_MOST_US;
	if (excess_us < delayed_us)
		excess_us = delayed_us;
	return v[FLOW_RTT_US] <= min_us + excess_us;
}

/* The time and the bytes since the receiver's window was full for the first time, and what the window permitted. */
static void record_window(struct flow_record *record, const struct flow_side *side, uint64_t last_ns)
{
	const uint64_t *v = record->values, window = v[FLOW_RCV_WINDOW], rtt_us = v[FLOW_MIN_RTT_US];
	const bool full = v[FLOW_UNACKED] < v[FLOW_CWND] && (v[FLOW_UNACKED] + 2) * v[FLOW_MSS] > window;

	if (record->window_samples) {
		record->window_samples++;
		record->window_sum += (double)(window - window % v[FLOW_MSS]) * (double)(side->last_ns - last_ns);
		/* The queue of a window that has just become full is in the round trips that follow. */
		if (full && rtt_us != UINT64_MAX && side->last_ns - record->window_ns > 2000 * rtt_us) {
			record->full_samples++;
			record->clear_samples += is_clear(v);
		}
	} else if (full) {
		record->window_samples = 1;
		record->window_ns = side->last_ns;
		record->window_bytes = side->last_bytes;
	}
}

/*
 * A flow has at most a window in each round trip. One that has as much in the round trip of an empty path leaves the
 * path empty, which would carry more. A flow that fills the path has a longer round trip, in nearly all samples; other
 * traffic and late acknowledgements make some of those through an empty path longer, too.
 */
static bool fills_window(const struct flow_record *record, const struct flow_side *sender, uint64_t duration_ns)
{
	const uint64_t rtt_us = record->values[FLOW_MIN_RTT_US], ns = sender->last_ns - record->window_ns;

	return record->window_samples >= WINDOW_SAMPLES_MIN && ns > duration_ns / 2 && rtt_us != UINT64_MAX &&
	       record->clear_samples && record->clear_samples >= record->full_samples / 4 &&
	       (double)(sender->last_bytes - record->window_bytes) * (double)rtt_us * 1000 >=
		       WINDOW_SHARE * record->window_sum;
}

#ifndef KTRXER_SMALL
/*
 * tcpi_sndbuf_limited stays zero where the kernel has sent the last full segment before the call for more data fails.
 */
static void record_buffer(struct flow_record *record, const struct flow_sample *sample)
{
	const uint64_t *v = sample->values;

	if (v[FLOW_DELIVERY_BPS] != UINT64_MAX && v[FLOW_DELIVERY_BPS] > record->delivery_bps)
		record->delivery_bps = v[FLOW_DELIVERY_BPS];
	if (v[FLOW_NOTSENT] || !v[FLOW_UNACKED] || v[FLOW_UNACKED] >= v[FLOW_CWND] ||
	    v[FLOW_RCV_WINDOW] == UINT64_MAX || (v[FLOW_UNACKED] + 2) * v[FLOW_MSS] > v[FLOW_RCV_WINDOW])
		return;
	record->empty_samples +=
		v[FLOW_MIN_RTT_US] != UINT64_MAX && v[FLOW_RTT_US] <= v[FLOW_MIN_RTT_US] + v[FLOW_MIN_RTT_US] / 8;
	if (!record->buffer_samples++) {
		record->buffer_ns = sample->time_ns;
		record->buffer_bytes = sample->bytes;
	}
}
#endif

void flow_record_sample(struct flow_record *record, const struct flow_spec *spec, bool remote,
			const struct flow_sample *sample)
{
	struct flow_side *side = remote ? &record->remote : &record->local;
	const uint64_t last_ns = side->last_ns;

	side->samples++;
	side->last_ns = sample->time_ns;
	side->last_bytes = sample->bytes;
	/* The receiver of a UDP flow has more counts than its sender. */
	if (sample->kind == FLOW_TCP || (sample->kind == FLOW_UDP && remote != spec->down)) {
		record->info = true;
		memcpy(record->values, sample->values, sizeof record->values);
	}
	if (sample->kind == FLOW_TCP) {
		record->tcp_samples++;
		if (sample->values[FLOW_RCV_WINDOW] != UINT64_MAX && sample->values[FLOW_MSS])
			record_window(record, side, last_ns);
#ifndef KTRXER_SMALL
		/* A paced sender has little data to send, whatever its buffer is. */
		if (!spec->rate_bps)
			record_buffer(record, sample);
#endif
	}
}

void flow_record_end(struct flow_record *record, bool remote, const struct flow_end *end)
{
	struct flow_side *side = remote ? &record->remote : &record->local;

	side->ended = true;
	side->end = *end;
}

uint64_t flow_value(const struct flow_record *record, int which)
{
	/* A receiver counts a loss when a later packet arrives: the last packets may be lost without one. */
	const bool open = which == FLOW_UDP_LOST && !(record->local.ended && record->remote.ended);

	return record->info && !open ? record->values[which] : UINT64_MAX;
}

uint64_t flow_rate_bps(uint64_t bytes, uint64_t span_ns)
{
	return span_ns ? (uint64_t)((double)bytes * 8e9 / (double)span_ns + 0.5) : 0;
}

static bool is_known(const struct flow_side *side)
{
	return side->samples || side->ended;
}

static uint64_t end_of(const struct flow_side *side)
{
	return side->ended ? side->end.time_ns : side->last_ns;
}

static uint64_t span(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

/*
 * How many samples there should be of this end, less those that there are: until the last that is known, or until
 * `until_ns`.
 */
static uint64_t missing(const struct flow_side *side, uint64_t start_ns, uint64_t until_ns, uint64_t sample_ns)
{
	const uint64_t end_ns = end_of(side), due = span(start_ns, end_ns < until_ns ? end_ns : until_ns) / sample_ns;

	return due > side->samples ? due - side->samples : 0;
}

static uint32_t share(uint64_t part, uint64_t whole)
{
	return whole ? (uint32_t)((double)part * 1000 / (double)whole + 0.5) : 1000;
}

/*
 * The receiver, unless its reports end before the sender's, as on a path that dies: what was acknowledged covers more
 * then. A sender of UDP does not know what arrived.
 */
static const struct flow_side *counter_of(const struct flow_spec *spec, const struct flow_side *s,
					  const struct flow_side *d, uint64_t start_ns)
{
	if (!is_known(d))
		return s;
	return !spec->udp && s->ended && !d->ended &&
			       share(span(start_ns, end_of(d)), span(start_ns, end_of(s))) < FLOW_COVERAGE_LEAST
		       ? s
		       : d;
}

/* Data needs the delay of the path to the receiver, and its acknowledgement that of both directions. */
static uint64_t begin_of(const struct flow_result *r, const struct flow_spec *spec, const struct flow_side *counter,
			 uint64_t rtt_ns)
{
	const uint64_t first_ns = counter->ended ? counter->end.first_ns : 0;
	uint64_t begin_ns = r->start_ns;

	if (counter == r->receiver && first_ns > begin_ns)
		begin_ns = spec->udp || first_ns < begin_ns + rtt_ns ? first_ns : begin_ns + rtt_ns;
	else if (counter == r->sender && !spec->udp)
		begin_ns += rtt_ns;
	return begin_ns < r->end_ns ? begin_ns : r->start_ns;
}

/* Sets the planned time after the last byte count, and the share of the planned time that the byte counts cover. */
static void cover(struct flow_result *r, const struct flow_plan *plan)
{
	r->coverage = 1000;
	if (plan->stopped || (r->as_planned && plan->bytes))
		return;
	if (!plan->for_ns) {
		r->coverage = share(r->bytes < plan->bytes ? r->bytes : plan->bytes, plan->bytes);
		return;
	}
	r->uncounted_ns = span(r->end_ns, r->start_ns + plan->for_ns);
	r->coverage = share(r->duration_ns, r->duration_ns + r->uncounted_ns);
}

/*
 * A packet at either end of the time counts with all of its bytes, whatever part of its gap is within the time. A
 * schedule whose bytes fill the time exactly has no such part.
 */
static uint64_t edge_of(const struct flow_result *r, const struct flow_spec *spec)
{
	const uint64_t most = spec->payload_max < r->bytes ? spec->payload_max : r->bytes;
	const double sent = (double)r->sender->end.bytes,
		     filled = (double)spec->rate_bps * (double)r->duration_ns / 8e9,
		     edge = sent > filled ? sent - filled : filled - sent;

	return !r->sender->ended || edge > (double)most ? most : (uint64_t)edge;
}

void flow_result(struct flow_result *r, const struct flow_spec *spec, const struct flow_record *record,
		 const struct flow_plan *plan)
{
	const struct flow_side *s = spec->down ? &record->remote : &record->local,
			       *d = spec->down ? &record->local : &record->remote;
	const struct flow_side *counter = counter_of(spec, s, d, plan->start_ns + spec->start_ns);
	const uint64_t sample_ns = plan->sample_ns;
	/* A UDP receiver takes one sample more when its packets have come, and none while it waits for them. */
	const uint64_t until_ns = spec->udp && s->ended ? end_of(s) : UINT64_MAX;

	*r = (struct flow_result){
		.sender = s, .receiver = d, .decider = s->ended ? s : d, .start_ns = plan->start_ns + spec->start_ns
	};
	r->as_planned = r->decider->ended && r->decider->end.reason == FLOW_PLANNED;
	r->end_ns = end_of(counter);
	r->begin_ns = begin_of(r, spec, counter, plan->rtt_ns);
	r->lasted_ns = span(r->start_ns, end_of(r->decider));
	r->bytes =
		counter->ended && counter->end.bytes > counter->last_bytes ? counter->end.bytes : counter->last_bytes;
	r->duration_ns = span(r->begin_ns, r->end_ns);
	r->rate_bps = flow_rate_bps(r->bytes, r->duration_ns);
	r->edge_bytes = spec->udp ? edge_of(r, spec) : 0;
	r->receiver_limited = fills_window(record, s, r->duration_ns);
	cover(r, plan);
	r->received_known = is_known(d);
	r->received_bytes = d->ended ? d->end.bytes : d->last_bytes;
	r->acked_known = is_known(s);
	r->acked_bytes = s->ended ? s->end.bytes : s->last_bytes;
	r->samples = record->local.samples + record->remote.samples;
	r->missing_samples =
		missing(s, r->start_ns, UINT64_MAX, sample_ns) + missing(d, r->start_ns, until_ns, sample_ns);
	/* A sender on a path as fast as its processor is idle at times, too, but takes all samples. */
	r->sender_idle = s->ended && !spec->udp && s->end.idle != UINT32_MAX && s->end.idle > IDLE_MAX &&
			 missing(s, r->start_ns, UINT64_MAX, sample_ns);
}

#ifndef KTRXER_SMALL
void flow_find_buffer_limits(bool down, uint32_t flows, const struct flow_spec *specs,
			     const struct flow_record *records, struct flow_result *results)
{
	uint64_t sum_bps = 0, most_bps = 0;

	for (uint32_t i = 0; i < flows; i++) {
		const struct flow_record *record = &records[i];
		struct flow_result *r = &results[i];

		if (specs[i].down != down)
			continue;
		r->sender_limited = record->buffer_samples >= WINDOW_SAMPLES_MIN &&
				    record->buffer_samples > record->tcp_samples / 3;
		/* Leave out the slow start. */
		sum_bps += r->sender_limited ? flow_rate_bps(r->sender->last_bytes - record->buffer_bytes,
							     span(record->buffer_ns, r->sender->last_ns))
					     : r->rate_bps;
		if (record->delivery_bps > most_bps)
			most_bps = record->delivery_bps;
	}
	for (uint32_t i = 0; i < flows; i++)
		if (specs[i].down == down && most_bps / 9 <= sum_bps / 8 &&
		    records[i].empty_samples <= records[i].buffer_samples / 2)
			results[i].sender_limited = false;
}
#endif

bool flow_has_rate(const struct flow_total *t)
{
	return t->flows && t->coverage >= FLOW_COVERAGE_LEAST;
}

void flow_total(struct flow_total *t, bool down, uint32_t flows, const struct flow_spec *specs,
		const struct flow_record *records, const struct flow_result *results)
{
	uint64_t from_ns = UINT64_MAX, to_ns = 0, until_ns = 0, counted_ns = 0, unknown_ns = 0;
	uint32_t covered = 1000, least = 1000;

	memset(t, 0, sizeof *t);
	t->slowest_bps = UINT64_MAX;
	for (uint32_t i = 0; i < flows; i++) {
		const struct flow_result *r = &results[i];
		const uint64_t lost = specs[i].udp ? flow_value(&records[i], FLOW_UDP_LOST) : UINT64_MAX;
		const uint64_t retransmits = specs[i].udp ? UINT64_MAX : flow_value(&records[i], FLOW_RETRANSMITS);

		if (specs[i].down != down)
			continue;
		t->flows++;
		t->bytes += r->bytes;
		t->edge_bytes += r->edge_bytes;
		if (lost != UINT64_MAX) {
			t->lost += lost;
			t->sent += r->sender->end.packets;
		}
		if (retransmits != UINT64_MAX)
			t->retransmits += retransmits;
		from_ns = r->begin_ns < from_ns ? r->begin_ns : from_ns;
		to_ns = r->end_ns > to_ns ? r->end_ns : to_ns;
		until_ns = r->end_ns + r->uncounted_ns > until_ns ? r->end_ns + r->uncounted_ns : until_ns;
		counted_ns += r->duration_ns;
		/* A flow that has ended moves nothing afterwards, and the others may use its share. */
		unknown_ns += span(r->end_ns, r->start_ns + r->lasted_ns) < r->uncounted_ns
				      ? span(r->end_ns, r->start_ns + r->lasted_ns)
				      : r->uncounted_ns;
		least = !r->uncounted_ns && r->coverage < least ? r->coverage : least;
		t->slowest_bps = r->rate_bps < t->slowest_bps ? r->rate_bps : t->slowest_bps;
		t->fastest_bps = r->rate_bps > t->fastest_bps ? r->rate_bps : t->fastest_bps;
	}
	t->duration_ns = span(from_ns, to_ns);
	t->rate_bps = flow_rate_bps(t->bytes, t->duration_ns);
	covered = share(t->duration_ns, t->flows ? span(from_ns, until_ns) : 0);
	covered = covered * share(counted_ns, counted_ns + unknown_ns) / 1000;
	t->coverage = covered < least ? covered : least;
}
