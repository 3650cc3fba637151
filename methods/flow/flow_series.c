/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "flow_series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TICKS_FIRST = 64, SEGMENT_BYTES = 1500, END_SAMPLES = 5 };
/* Flows that share a full queue lose many segments in a row: a shorter stall is one of these losses. */
#define STALL_LEAST_NS KTRXER_NS_PER_S

void flow_series_begin(struct flow_ends *ends, uint64_t start_ns, uint64_t sample_ns, uint32_t share)
{
	const uint32_t most = FLOW_SERIES_TICKS / share;

	ends->local.start_ns = ends->remote.start_ns = start_ns;
	ends->local.step_ns = ends->remote.step_ns = sample_ns;
	ends->local.most = ends->remote.most = most > TICKS_FIRST ? most : TICKS_FIRST;
}

void flow_series_free(struct flow_ends *ends)
{
	free(ends->local.ticks);
	free(ends->remote.ticks);
	memset(ends, 0, sizeof *ends);
}

/* The next time of the grid: the clock of the remote end is known with an error. */
static uint64_t place_of(const struct flow_series *s, uint64_t time_ns)
{
	return time_ns > s->start_ns ? (time_ns - s->start_ns + s->step_ns / 2) / s->step_ns : 0;
}

static void halve(struct flow_series *s)
{
	s->step_ns *= 2;
	if (!s->count)
		return;
	for (uint32_t i = 0; i < s->count; i += 2) {
		struct flow_tick a = s->ticks[i];

		/* 2 k + 1 and 2 k + 2 become k + 1, because place 0 is the start. */
		if (i) {
			const struct flow_tick before = s->ticks[i - 1];

			a.bytes += before.bytes;
			a.moved += before.moved;
			a.again += before.again;
			a.pending = a.pending || before.pending;
			a.rtt_us = a.rtt_us ? a.rtt_us : before.rtt_us;
			a.last_ns = a.last_ns > before.last_ns ? a.last_ns : before.last_ns;
			a.partial = a.sampled ? a.partial : before.partial;
			a.sampled = a.sampled || before.sampled;
		}
		s->ticks[i / 2] = a;
	}
	if (s->count % 2 == 0)
		s->ticks[s->count / 2] = s->ticks[s->count - 1];
	s->count = s->count / 2 + 1;
}

static struct flow_tick *tick_at(struct flow_series *s, uint64_t time_ns, uint64_t *place)
{
	while ((*place = place_of(s, time_ns)) >= s->most)
		halve(s);
	if (s->failed)
		return NULL;
	if (*place >= s->size) {
		uint32_t size = s->size ? s->size : TICKS_FIRST;
		struct flow_tick *larger;

		while (size <= *place)
			size *= 2;
		larger = realloc(s->ticks, size * sizeof *larger);
		if (!larger) {
			s->failed = true;
			s->count = 0;
			return NULL;
		}
		memset(larger + s->size, 0, (size - s->size) * sizeof *larger);
		s->ticks = larger;
		s->size = size;
	}
	if (*place >= s->count) {
		memset(s->ticks + s->count, 0, (*place - s->count + 1) * sizeof *s->ticks);
		s->count = (uint32_t)*place + 1;
	}
	return &s->ticks[*place];
}

static uint64_t value(const struct flow_sample *sample, int which)
{
	return sample->values[which] != UINT64_MAX ? sample->values[which] : 0;
}

/* Since the sample before. */
static uint32_t grown(const struct flow_sample *sample, const struct flow_side *side, const struct flow_record *record,
		      int which)
{
	const uint64_t before = side->samples ? record->values[which] : 0;

	return before != UINT64_MAX && value(sample, which) > before ? (uint32_t)(value(sample, which) - before) : 0;
}

void flow_series_add(struct flow_ends *ends, const struct flow_spec *spec, const struct flow_record *record,
		     bool remote, const struct flow_sample *sample)
{
	struct flow_series *s = remote ? &ends->remote : &ends->local;
	const struct flow_side *side = remote ? &record->remote : &record->local;
	uint64_t place, before;
	struct flow_tick *tick;

	if (!s->step_ns)
		return;
	tick = tick_at(s, sample->time_ns, &place);
	if (!tick)
		return;
	before = place_of(s, side->samples ? side->last_ns : s->start_ns + spec->start_ns);
	for (uint64_t i = before + 1; i < place; i++)
		s->ticks[i].partial = true;
	if (sample->time_ns > tick->last_ns)
		tick->last_ns = sample->time_ns;
	tick->sampled = true;
	tick->bytes += sample->bytes > side->last_bytes ? sample->bytes - side->last_bytes : 0;
	if (sample->kind != FLOW_TCP)
		return;
	tick->moved += grown(sample, side, record, FLOW_DELIVERED);
	tick->again += grown(sample, side, record, FLOW_RETRANSMITS);
	tick->rtt_us = value(sample, FLOW_RTT_US) > tick->rtt_us ? (uint32_t)value(sample, FLOW_RTT_US) : tick->rtt_us;
	tick->pending = tick->pending || value(sample, FLOW_UNACKED) || value(sample, FLOW_NOTSENT);
}

/* The times, with the start, and without those at which a flow is missing. */
static size_t counts_of(const struct flow_series *s, uint64_t until_ns, struct byte_count *counts)
{
	int64_t bytes = 0;
	size_t count = 1;

	counts[0] = (struct byte_count){ (int64_t)s->start_ns, 0 };
	for (uint32_t i = 0; i < s->count; i++) {
		const struct flow_tick *t = &s->ticks[i];

		bytes += (int64_t)t->bytes;
		if (t->sampled && !t->partial && t->last_ns > (uint64_t)counts[count - 1].time_ns &&
		    t->last_ns <= until_ns)
			counts[count++] = (struct byte_count){ (int64_t)t->last_ns, bytes };
	}
	return count;
}

static size_t senders_of(const struct flow_series *s, bool udp, uint64_t until_ns, struct byte_sender *senders)
{
	int64_t bytes = 0, moved = 0, again = 0;
	size_t count = 0;

	for (uint32_t i = 0; i < s->count; i++) {
		const struct flow_tick *t = &s->ticks[i];

		bytes += (int64_t)t->bytes;
		moved += t->moved;
		again += t->again;
		if (t->sampled && !t->partial && t->last_ns <= until_ns &&
		    (!count || (int64_t)t->last_ns > senders[count - 1].time_ns))
			senders[count++] = (struct byte_sender){ .time_ns = (int64_t)t->last_ns,
								 .moved = udp ? bytes : moved,
								 .again = again,
								 .rtt_ns = 1000ll * t->rtt_us,
								 .pending = udp || t->pending };
	}
	return count;
}

/* The final counts of the end that counts, if each of its flows has reported them. */
static size_t add_end(struct byte_count *counts, size_t count, bool down, bool by_sender, uint32_t flows,
		      const struct flow_spec *specs, const struct flow_result *results, uint64_t until_ns)
{
	uint64_t end_ns = 0;
	int64_t bytes = 0;

	for (uint32_t i = 0; i < flows; i++) {
		const struct flow_side *end = by_sender ? results[i].sender : results[i].receiver;

		if (specs[i].down != down)
			continue;
		if (!end->ended)
			return count;
		bytes += (int64_t)(end->end.bytes > end->last_bytes ? end->end.bytes : end->last_bytes);
		end_ns = end->end.time_ns > end_ns ? end->end.time_ns : end_ns;
	}
	end_ns = end_ns < until_ns ? end_ns : until_ns;
	if ((int64_t)end_ns > counts[count - 1].time_ns && bytes >= counts[count - 1].bytes)
		counts[count++] = (struct byte_count){ (int64_t)end_ns, bytes };
	return count;
}

/*
 * The segments that arrived, as bytes. Behind a lost segment a receiver reads nothing for a round trip, and then much
 * at once: that is no change of the rate. Returns 0 where the kernel does not count them.
 */
static size_t arrivals_of(const struct flow_series *s, const struct byte_sender *senders, size_t sender_count,
			  int64_t last_ns, struct byte_count *counts)
{
	double acked = 0, segments = 0;

	for (uint32_t i = 0; i < s->count; i++) {
		acked += (double)s->ticks[i].bytes;
		segments += s->ticks[i].moved;
	}
	if (!(segments > 0) || senders[sender_count - 1].time_ns + (int64_t)RATE_SETTLED_NS < last_ns)
		return 0;
	counts[0] = (struct byte_count){ (int64_t)s->start_ns, 0 };
	for (size_t i = 0; i < sender_count; i++)
		counts[i + 1] = (struct byte_count){ senders[i].time_ns,
						     (int64_t)((double)senders[i].moved * acked / segments) };
	return sender_count + 1;
}

static double moved_at(const struct byte_count *c, size_t count, uint64_t at_ns)
{
	const int64_t at = (int64_t)at_ns;
	size_t low = 0, high = count;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (c[middle].time_ns <= at)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || low == count)
		return (double)c[low ? count - 1 : 0].bytes;
	return (double)c[low - 1].bytes + (double)(c[low].bytes - c[low - 1].bytes) *
						  (double)(at - c[low - 1].time_ns) /
						  (double)(c[low].time_ns - c[low - 1].time_ns);
}

static double rate_of(const struct byte_count *c, size_t count, uint64_t from_ns, uint64_t span_ns)
{
	return (moved_at(c, count, from_ns + span_ns) - moved_at(c, count, from_ns)) * 8e9 / (double)span_ns;
}

/* The flows begin one after the other, or end at different times: such a change is that of the plan. */
static bool all_run(bool down, uint32_t flows, const struct flow_spec *specs, const struct flow_result *results,
		    uint64_t *begin_ns, uint64_t *end_ns)
{
	uint64_t first_ns = UINT64_MAX, last_ns = 0;

	*begin_ns = 0;
	*end_ns = UINT64_MAX;
	for (uint32_t i = 0; i < flows; i++) {
		const struct flow_result *r = &results[i];

		if (specs[i].down != down)
			continue;
		*begin_ns = r->begin_ns > *begin_ns ? r->begin_ns : *begin_ns;
		first_ns = r->begin_ns < first_ns ? r->begin_ns : first_ns;
		*end_ns = r->end_ns < *end_ns ? r->end_ns : *end_ns;
		last_ns = r->end_ns > last_ns ? r->end_ns : last_ns;
	}
	return *begin_ns < *end_ns && *begin_ns - first_ns <= RATE_SETTLED_NS && last_ns - *end_ns <= RATE_SETTLED_NS;
}

static void find_levels(struct flow_findings *f, const struct byte_count *counts, size_t count, uint64_t begin_ns,
			uint64_t end_ns, const struct byte_plan *p)
{
	double values[LEVELS_POINTS];
	const uint64_t sample_ns = (uint64_t)p->sample_ns;
	struct rate_windows w = { .values = values, .begin_ns = begin_ns + RATE_SETTLED_NS };

	/* Samples are missing: nothing is known of the windows there. */
	for (size_t i = 1; i < count; i++)
		if (counts[i].time_ns - counts[i - 1].time_ns > (int64_t)(5 * sample_ns + 100 * KTRXER_NS_PER_MS))
			return;
	if (end_ns > (uint64_t)counts[count - 1].time_ns)
		end_ns = (uint64_t)counts[count - 1].time_ns;
	w.window_ns = levels_window_ns(w.begin_ns, end_ns, sample_ns);
	if (end_ns <= w.begin_ns)
		return;
	w.count = (size_t)((end_ns - w.begin_ns) / w.window_ns);
	for (size_t i = 0; i < w.count; i++)
		values[i] = rate_of(counts, count, w.begin_ns + i * w.window_ns, w.window_ns);
	w.packet_bytes = (uint32_t)p->packet_bytes;
	w.first = rate_of(counts, count, begin_ns, RATE_SETTLED_NS);
	f->level_count = (uint32_t)levels_of_rate(&w, f->levels);
}

/* The time of the last sample. */
static uint64_t reach(const struct flow_series *s)
{
	return s->count ? s->ticks[s->count - 1].last_ns : s->start_ns;
}

/* Sets the kind of packets and the latest planned end of the direction. */
static uint64_t planned_end(struct byte_plan *p, bool down, uint32_t flows, const struct flow_spec *specs,
			    const struct flow_plan *plan)
{
	uint64_t after_ns = 0, payload = 0, count = 0;

	for (uint32_t i = 0; i < flows; i++) {
		if (specs[i].down != down)
			continue;
		p->udp = specs[i].udp;
		payload += (specs[i].payload_min + specs[i].payload_max) / 2;
		count++;
		after_ns = specs[i].start_ns > after_ns ? specs[i].start_ns : after_ns;
	}
	p->packet_bytes = p->udp && payload >= count ? (int64_t)(payload / count) : SEGMENT_BYTES;
	return plan->for_ns && !plan->stopped ? plan->start_ns + after_ns + plan->for_ns : INT64_MAX;
}

/* `of`: the flow is one of so many; 0: they are all of the direction. */
static int find(struct flow_findings *f, const struct flow_ends *ends, bool down, uint32_t flows, uint32_t of,
		const struct flow_spec *specs, const struct flow_result *results, const struct flow_plan *plan)
{
	const struct flow_series *d = down ? &ends->local : &ends->remote, *s = down ? &ends->remote : &ends->local;
	struct byte_count *counts = malloc((d->count + s->count + 2) * sizeof *counts);
	struct byte_sender *senders = malloc((s->count + 1) * sizeof *senders);
	struct byte_plan p = { .sample_ns = (int64_t)(d->step_ns > s->step_ns ? d->step_ns : s->step_ns),
			       .rtt_ns = (int64_t)plan->rtt_ns,
			       .of = of };
	const uint64_t until_ns = planned_end(&p, down, flows, specs, plan);
	/* Reports of the receiver end before, as on a path that dies. */
	const bool by_sender = !p.udp && reach(s) > reach(d) + (uint64_t)(END_SAMPLES * p.sample_ns);
	uint64_t begin_ns, end_ns;
	size_t level_count = 0;
	int rc = -ENOMEM;

	memset(f, 0, sizeof *f);
	if (counts && senders) {
		struct byte_flows one = { .arrived = counts, .sender = senders };

		one.sender_count = senders_of(s, p.udp, until_ns, senders);
		one.arrived_count = counts_of(by_sender ? s : d, until_ns, counts);
		one.arrived_count =
			add_end(counts, one.arrived_count, down, by_sender, flows, specs, results, until_ns);
		rc = byte_outages(&one, 1, &p, f->outages);
		f->outage_count = rc > 0 ? (uint32_t)rc : 0;
		if (!p.udp)
			level_count = arrivals_of(s, senders, one.sender_count, counts[one.arrived_count - 1].time_ns,
						  counts);
		if (!level_count)
			level_count = one.arrived_count;
		if (all_run(down, flows, specs, results, &begin_ns, &end_ns))
			find_levels(f, counts, level_count, begin_ns, end_ns, &p);
	}
	free(counts);
	free(senders);
	return rc < 0 ? rc : 0;
}

int flow_find(struct flow_findings *f, const struct flow_ends *ends, bool down, uint32_t flows,
	      const struct flow_spec *specs, const struct flow_result *results, const struct flow_plan *plan)
{
	return find(f, ends, down, flows, 0, specs, results, plan);
}

static bool overlap(const struct byte_outage *a, const struct byte_outage *b)
{
	return a->from_ns < b->to_ns && b->from_ns < a->to_ns;
}

/* Where there is no room the shortest one goes. */
static void add_stall(struct flow_findings *f, uint32_t flow, const struct byte_outage *o)
{
	uint32_t at = f->stall_count;

	for (uint32_t i = 0; i < f->outage_count; i++)
		if (overlap(o, &f->outages[i]))
			return;
	if (at == FLOW_STALLS_MOST) {
		at = 0;
		for (uint32_t i = 1; i < FLOW_STALLS_MOST; i++)
			if (f->stalls[i].outage.at_least_ns < f->stalls[at].outage.at_least_ns)
				at = i;
		if (f->stalls[at].outage.at_least_ns >= o->at_least_ns)
			return;
		memmove(&f->stalls[at], &f->stalls[at + 1], (FLOW_STALLS_MOST - 1 - at) * sizeof *f->stalls);
		at = --f->stall_count;
	}
	f->stalls[at] = (struct flow_stall){ flow, *o };
	f->stall_count++;
}

int flow_find_stalls(struct flow_findings *f, const struct flow_ends *each, bool down, uint32_t flows,
		     const struct flow_spec *specs, const struct flow_result *results, const struct flow_plan *plan)
{
	struct flow_findings one;
	uint32_t several = 0;

	for (uint32_t i = 0; i < flows; i++)
		several += specs[i].down == down;
	for (uint32_t i = 0; several > 1 && i < flows; i++) {
		int rc;

		if (specs[i].down != down)
			continue;
		rc = find(&one, &each[i], down, 1, several, &specs[i], &results[i], plan);
		if (rc < 0)
			return rc;
		for (uint32_t k = 0; k < one.outage_count; k++)
			if (one.outages[k].at_least_ns >= (int64_t)STALL_LEAST_NS)
				add_stall(f, i, &one.outages[k]);
	}
	return 0;
}
