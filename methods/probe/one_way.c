/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "one_way.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct one_way {
	struct clock_offset *clock;
	struct stamp_samples *samples;
	struct clock_sync own, peer; /* the worst that was reported */
	bool own_seen, peer_seen;
	int64_t real_minus_mono_ns;
	uint64_t host_ns; /* the worst that converting T1 and T4 to one clock may err */
};

struct one_way *one_way_new(int64_t real_minus_mono_ns)
{
	struct one_way *w = calloc(1, sizeof *w);

	if (!w)
		return NULL;
	w->real_minus_mono_ns = real_minus_mono_ns;
	w->samples = stamp_samples_new();
	if (!w->samples || clock_offset_new(&w->clock) < 0) {
		one_way_free(w);
		return NULL;
	}
	return w;
}

void one_way_free(struct one_way *w)
{
	if (!w)
		return;
	clock_offset_free(w->clock);
	stamp_samples_free(w->samples);
	free(w);
}

static void keep_worst(struct clock_sync *worst, bool *seen, bool synchronised, uint64_t bound_ns)
{
	worst->synchronised = synchronised && (!*seen || worst->synchronised);
	worst->bound_ns = !*seen || bound_ns > worst->bound_ns ? bound_ns : worst->bound_ns;
	*seen = true;
}

void one_way_own_clock(struct one_way *w, const struct clock_sync *own)
{
	keep_worst(&w->own, &w->own_seen, own->synchronised, own->bound_ns);
}

/*
 * Both clocks claim to keep UTC within a bound: then the offset lies in that interval, too. If this interval and the corridor of the round trips do
 * not meet, one of the clocks is wrong, and neither claim is used.
 */
static void use_claims(const struct one_way *w, struct one_way_result *r, int64_t *low_ns, int64_t *high_ns)
{
	uint64_t bound_ns;
	int64_t claim;

	if (!r->clock.points || !r->synchronised || w->own.bound_ns > INT64_MAX / 4 ||
	    w->peer.bound_ns > INT64_MAX / 4 || r->steps)
		return;
	claim = (int64_t)(w->own.bound_ns + w->peer.bound_ns);
	*low_ns = w->real_minus_mono_ns - claim;
	*high_ns = w->real_minus_mono_ns + claim;
	r->clock.offset_ns =
		clock_offset_within(w->clock, CLOCK_OFFSET_LONGEST, r->clock.at_ns, *low_ns, *high_ns, &bound_ns);
	r->contradicted = bound_ns == UINT64_MAX;
	if (r->contradicted) {
		*low_ns = INT64_MIN;
		*high_ns = INT64_MAX;
		return;
	}
	r->claimed = bound_ns < r->clock.offset_bound_ns;
	r->clock.offset_bound_ns = bound_ns;
}

/* The offset by the round trips so far, and by it the delays of all samples, or of as many as make room. */
static bool settle(struct one_way *w, struct one_way_result *r, bool all)
{
	int64_t low_ns = INT64_MIN, high_ns = INT64_MAX;

	memset(r, 0, sizeof *r);
	clock_offset_settle(w->clock);
	clock_offset_result(w->clock, CLOCK_OFFSET_LONGEST, &r->clock);
	r->steps = clock_offset_steps(w->clock);
	r->synchronised = w->own.synchronised && w->peer.synchronised;
	if (!stamp_samples_delays(w->samples)->claims_wrong)
		use_claims(w, r, &low_ns, &high_ns);
	if (!stamp_samples_settle(w->samples, w->clock, low_ns, high_ns, all))
		return false;
	r->delays = *stamp_samples_delays(w->samples);
	if (r->delays.claims_wrong) {
		clock_offset_result(w->clock, CLOCK_OFFSET_LONGEST, &r->clock);
		r->contradicted = true;
		r->claimed = false;
	}
	/* Some delays were settled by claims that no longer hold. */
	if (low_ns == INT64_MIN || r->delays.claims_wrong)
		r->delays.bound_ns = r->delays.unclaimed_ns;
	return true;
}

int one_way_add(struct one_way *w, const struct stamp_sample *s)
{
	/* Without the queues of the two hosts, which only widen the interval that the offset lies in. */
	const struct clock_exchange exchange = { .t1_ns = s->t1_ns +
							  (uint64_t)(s->own_queue_ns > 0 ? s->own_queue_ns : 0),
						 .t2_ns = s->t2_real_ns,
						 .t3_ns = s->t3_real_ns + (s->far_queue_ns > 0 ? s->far_queue_ns : 0),
						 .t4_ns = s->t4_ns,
						 .widen_ns = s->bound_ns };
	const bool stepped = clock_offset_add(w->clock, &exchange) == CLOCK_OFFSET_STEPPED;
	struct one_way_result so_far;

	if (s->bound_ns > w->host_ns)
		w->host_ns = s->bound_ns;
	keep_worst(&w->peer, &w->peer_seen, s->peer_synchronised, s->peer_error_ns);
	if (stamp_samples_full(w->samples) && !settle(w, &so_far, false))
		return -ENOMEM;
	return stamp_samples_add(w->samples, s) ? stepped : -ENOMEM;
}

int one_way_result(struct one_way *w, struct one_way_result *r)
{
	if (!settle(w, r, true))
		return -ENOMEM;
	r->known = ktrxer_hist_count(r->delays.up) > 0;
	if (!r->known)
		return 0;
	r->offset_ns = r->clock.offset_ns - w->real_minus_mono_ns;
	r->clock_ns = r->clock.offset_bound_ns;
	/* Round trips that are further from a short one leave the offset more room. */
	r->skew_ns = r->delays.bound_ns > r->clock_ns ? r->delays.bound_ns - r->clock_ns : 0;
	r->host_ns = w->host_ns;
	r->resolution_ns = stamp_samples_resolution(w->samples);
	r->total_ns = r->clock_ns + r->skew_ns + r->host_ns + r->resolution_ns;
	return 0;
}
