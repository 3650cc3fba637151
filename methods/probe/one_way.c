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
	struct clock_watch own_clock, far_clock;
	bool adjusted, unadjusted; /* some samples had the adjustments of both clocks; some had not */
	uint32_t origin;
	int64_t adjusted_from_ns, adjusted_ns; /* far less ours: at the first sample, and since then until the last */
	uint64_t last_t1_ns, moved;
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
 * Both clocks claim to keep UTC within a bound: then the offset lies in that interval, too. If this interval and the
 * corridor of the round trips do not meet, one of the clocks is wrong, and neither claim is used.
 */
static void use_claims(const struct one_way *w, struct one_way_result *r, int64_t *low_ns, int64_t *high_ns)
{
	uint64_t bound_ns;
	int64_t claim;

	if (!r->clock.points || !r->synchronised || w->own.bound_ns > INT64_MAX / 4 ||
	    w->peer.bound_ns > INT64_MAX / 4 || r->steps || w->own_clock.changes || w->far_clock.changes)
		return;
	claim = (int64_t)(w->own.bound_ns + w->peer.bound_ns);
	*low_ns = w->real_minus_mono_ns - claim;
	*high_ns = w->real_minus_mono_ns + claim;
	r->clock.offset_ns = clock_offset_within(w->clock, CLOCK_OFFSET_LONGEST, r->clock.at_ns,
						 *low_ns - w->adjusted_ns, *high_ns - w->adjusted_ns, &bound_ns);
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
	r->adjusted = w->adjusted && !w->unadjusted;
	r->own_clock = w->own_clock;
	r->far_clock = w->far_clock;
	/* The adjustment is known at the last sample, so the offset is stated for its time. */
	if (w->adjusted && r->clock.points) {
		r->clock.at_ns = w->last_t1_ns;
		r->clock.offset_ns =
			clock_offset_at(w->clock, CLOCK_OFFSET_LONGEST, r->clock.at_ns, &r->clock.offset_bound_ns);
	}
	r->synchronised = w->own.synchronised && w->peer.synchronised;
	if (!stamp_samples_delays(w->samples)->claims_wrong)
		use_claims(w, r, &low_ns, &high_ns);
	if (!stamp_samples_settle(w->samples, w->clock, low_ns, high_ns, all))
		return false;
	r->delays = *stamp_samples_delays(w->samples);
	r->delays.contradicted += w->moved;
	if (r->delays.claims_wrong) {
		r->clock.offset_ns =
			clock_offset_at(w->clock, CLOCK_OFFSET_LONGEST, r->clock.at_ns, &r->clock.offset_bound_ns);
		r->contradicted = true;
		r->claimed = false;
	}
	/* Some delays were settled by claims that no longer hold. */
	if (low_ns == INT64_MIN || r->delays.claims_wrong)
		r->delays.bound_ns = r->delays.unclaimed_ns;
	return true;
}

void one_way_clocks(struct one_way *w, struct stamp_sample *s)
{
	int64_t apart;

	s->adjusted_ns = w->adjusted_ns;
	if (!s->clocks_known) {
		w->unadjusted = true;
		return;
	}
	apart = (int64_t)((uint64_t)s->far_adjusted.ns - (uint64_t)s->own_adjusted.ns);
	if (!w->adjusted || s->far_origin != w->origin) {
		/* The change is not known if the reflector was restarted. */
		w->unadjusted |= w->adjusted;
		w->adjusted_from_ns = (int64_t)((uint64_t)apart - (uint64_t)w->adjusted_ns);
		w->far_clock.seen = false;
	}
	/* It was read between T2 and T3. The changes that are possible in that time are part of its bound. */
	s->far_adjusted.at_ns = s->t3_real_ns;
	s->far_adjusted.bound_ns += (uint32_t)(s->dwell_ns > 0 ? s->dwell_ns / 1024 : 0);
	s->clock_moved = clock_watch_take(&w->own_clock, &s->own_adjusted);
	s->clock_moved |= clock_watch_take(&w->far_clock, &s->far_adjusted);
	w->adjusted = true;
	w->origin = s->far_origin;
	w->adjusted_ns = s->adjusted_ns = (int64_t)((uint64_t)apart - (uint64_t)w->adjusted_from_ns);
}

/* Adjustments were read after T4 and after T2, so they may differ from those at T1 and T2. */
static uint64_t adjusted_bound(const struct stamp_sample *s)
{
	const uint64_t trip = s->t4_ns - s->t1_ns + (uint64_t)(s->dwell_ns > 0 ? s->dwell_ns : 0);

	return s->clocks_known ? (uint64_t)s->far_adjusted.bound_ns + s->own_adjusted.bound_ns +
					 trip / 1000000 * CLOCK_OFFSET_RATE_PPM + CLOCK_OFFSET_RATE_PPM
			       : 0;
}

/* The result is by the oscillator. A reflector may report any adjustment. */
static int64_t unadjusted(int64_t far_ns, const struct stamp_sample *s)
{
	return (int64_t)((uint64_t)far_ns - (uint64_t)s->adjusted_ns);
}

int one_way_add(struct one_way *w, const struct stamp_sample *s)
{
	/* Without the queues of the two hosts, which only widen the interval that the offset lies in. */
	const struct clock_exchange exchange = {
		.t1_ns = s->t1_ns + (uint64_t)(s->own_queue_ns > 0 ? s->own_queue_ns : 0),
		.t2_ns = unadjusted(s->t2_real_ns, s),
		.t3_ns = unadjusted(s->t3_real_ns, s) + (s->far_queue_ns > 0 ? s->far_queue_ns : 0),
		.t4_ns = s->t4_ns,
		.widen_ns = s->bound_ns + adjusted_bound(s),
		.free_running = s->clocks_known && !w->unadjusted
	};
	struct one_way_result so_far;
	bool stepped;

	/* T2 may be older than a step that the adjustment contains. */
	if (s->clock_moved) {
		w->moved++;
		return 0;
	}
	stepped = clock_offset_add(w->clock, &exchange) == CLOCK_OFFSET_STEPPED;
	w->last_t1_ns = s->t1_ns;

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
	r->offset_ns = r->clock.offset_ns + w->adjusted_ns - w->real_minus_mono_ns;
	r->clock_ns = r->clock.offset_bound_ns;
	/* Round trips that are further from a short one leave the offset more room. */
	r->skew_ns = r->delays.bound_ns > r->clock_ns ? r->delays.bound_ns - r->clock_ns : 0;
	r->host_ns = w->host_ns;
	r->resolution_ns = stamp_samples_resolution(w->samples);
	r->total_ns = r->clock_ns + r->skew_ns + r->host_ns + r->resolution_ns;
	return 0;
}
