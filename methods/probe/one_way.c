/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "one_way.h"

#include "stamp_samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct one_way {
	struct clockest *clock;
	struct stamp_samples *samples;
	struct one_way_clock own, peer; /* peer: the worst that it reported */
	bool peer_seen;
	int64_t real_minus_mono_ns;
	uint64_t host_ns;               /* the worst that converting T1 and T4 to one clock may err */
	uint64_t steps;
};

struct one_way *one_way_new(const struct one_way_clock *own, int64_t real_minus_mono_ns)
{
	struct one_way *w = calloc(1, sizeof *w);

	if (!w)
		return NULL;
	w->own = *own;
	w->real_minus_mono_ns = real_minus_mono_ns;
	w->samples = stamp_samples_new();
	if (!w->samples || clockest_new(&w->clock) < 0) {
		one_way_free(w);
		return NULL;
	}
	return w;
}

void one_way_free(struct one_way *w)
{
	if (!w)
		return;
	clockest_free(w->clock);
	stamp_samples_free(w->samples);
	free(w);
}

int one_way_add(struct one_way *w, const struct stamp_sample *s)
{
	/* Without the queues of the two hosts, which only widen the interval that the offset lies in. */
	const bool stepped = clockest_add(w->clock, s->t1_ns + (uint64_t)(s->own_queue_ns > 0 ? s->own_queue_ns : 0), s->t2_real_ns,
					  s->t3_real_ns + (s->far_queue_ns > 0 ? s->far_queue_ns : 0), s->t4_ns) == CLOCKEST_STEPPED;

	w->steps += stepped;
	if (s->bound_ns > w->host_ns)
		w->host_ns = s->bound_ns;
	w->peer.synchronised = s->peer_synchronised && (!w->peer_seen || w->peer.synchronised);
	if (!w->peer_seen || s->peer_error_ns > w->peer.bound_ns)
		w->peer.bound_ns = s->peer_error_ns;
	w->peer_seen = true;
	return stamp_samples_add(w->samples, s, clockest_segment(w->clock)) ? stepped : -ENOMEM;
}

/* The segment with the most round trips. */
static uint32_t best_segment(const struct one_way *w)
{
	const uint32_t last = clockest_segment(w->clock), first = last >= CLOCKEST_SEGMENTS ? last - CLOCKEST_SEGMENTS + 1 : 0;
	struct clockest_result r;
	uint32_t best = last;
	uint64_t most = 0;

	for (uint32_t s = first; s <= last; s++) {
		clockest_result(w->clock, s, &r);
		if (r.points > most) {
			most = r.points;
			best = s;
		}
	}
	return best;
}

/*
 * Both clocks claim to keep UTC within a bound: then the offset lies in that interval, too. If the two intervals do not meet, one of the clocks is
 * wrong, and neither claim is used.
 */
static void use_claims(const struct one_way *w, struct one_way_result *r)
{
	const int64_t base = w->real_minus_mono_ns;
	int64_t low = r->clock.offset_ns - base - (int64_t)r->clock.offset_bound_ns, high = r->clock.offset_ns - base + (int64_t)r->clock.offset_bound_ns;
	int64_t claim;

	if (!r->synchronised || w->own.bound_ns > INT64_MAX / 4 || w->peer.bound_ns > INT64_MAX / 4 || clockest_segment(w->clock))
		return;
	claim = (int64_t)(w->own.bound_ns + w->peer.bound_ns);
	if (low > claim || high < -claim) {
		r->contradicted = true;
		return;
	}
	if (low >= -claim && high <= claim)
		return;
	r->claimed = true;
	low = low < -claim ? -claim : low;
	high = high > claim ? claim : high;
	r->clock.offset_ns = base + low + (high - low) / 2;
	r->clock.offset_bound_ns = (uint64_t)(high - low) / 2 + 1;
}

int one_way_result(const struct one_way *w, struct one_way_result *r)
{
	const uint32_t segment = best_segment(w);
	const struct clockest_result *c = &r->clock;

	memset(r, 0, sizeof *r);
	r->steps = w->steps;
	r->synchronised = w->own.synchronised && w->peer_seen && w->peer.synchronised;
	clockest_result(w->clock, segment, &r->clock);
	r->up = ktrxer_hist_new();
	r->down = ktrxer_hist_new();
	if (!r->up || !r->down)
		return -ENOMEM;
	if (!c->points)
		return 0;
	use_claims(w, r);
	r->known = true;
	r->offset_ns = c->offset_ns - w->real_minus_mono_ns;
	r->clock_ns = c->offset_bound_ns;
	/* At either end of the run the line is as wrong as its slope makes it. */
	r->skew_ns = clockest_bound_at(c, c->from_ns) - c->offset_bound_ns;
	r->host_ns = w->host_ns;
	r->resolution_ns = stamp_samples_resolution(w->samples);
	r->total_ns = r->clock_ns + r->skew_ns + r->host_ns + r->resolution_ns;
	stamp_samples_delays(w->samples, segment, c, r->up, r->down);
	return 0;
}

void one_way_result_free(struct one_way_result *r)
{
	ktrxer_hist_free(r->up);
	ktrxer_hist_free(r->down);
}
