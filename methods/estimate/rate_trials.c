/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "rate_trials.h"

#include <stddef.h>

#define UNKNOWN UINT64_MAX
#define ABOVE 1.1   /* of the sustained rate: a trial of the burst */
#define APART 1.25  /* of the bytes of two bursts of one bucket */
#define REFILL_S 10
#define REFILL 1.2  /* times the least time */
#define FASTER 1.25 /* the fastest trial of the burst, of the sustained rate and of the later trials */

enum { AFTER = 3 /* trials that are not above end the burst */ };

void rate_trials_add(struct rate_trials *t, uint64_t lasts_ns, uint64_t ip_bytes)
{
	struct rate_trial *last = t->count ? &t->of[t->count - 1] : NULL;

	/* The first trial may be so short that one packet is a high rate. */
	if (last && last->lasts_ns < lasts_ns / 2 && last->ip_bytes != UNKNOWN && ip_bytes != UNKNOWN) {
		last->lasts_ns += lasts_ns;
		last->ip_bytes += ip_bytes;
		return;
	}
	if (t->count == RATE_TRIALS_MOST) {
		for (uint32_t i = 0; i < RATE_TRIALS_MOST / 2; i++) {
			const struct rate_trial *a = &t->of[2 * i], *b = a + 1;

			t->of[i] = (struct rate_trial){ a->lasts_ns + b->lasts_ns,
							a->ip_bytes == UNKNOWN || b->ip_bytes == UNKNOWN
								? UNKNOWN
								: a->ip_bytes + b->ip_bytes };
		}
		t->count /= 2;
	}
	if (lasts_ns)
		t->of[t->count++] = (struct rate_trial){ lasts_ns, ip_bytes };
}

static double rate_of(const struct rate_trial *t)
{
	return t->ip_bytes == UNKNOWN ? 0 : (double)t->ip_bytes * 8e9 / (double)t->lasts_ns;
}

static uint64_t lasts(const struct rate_trials *t)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < t->count; i++)
		sum += t->of[i].lasts_ns;
	return sum;
}

double rate_trials_end(const struct rate_trials *t, uint64_t lasts_ns)
{
	struct rate_trial sum = { 0 };

	for (uint32_t i = t->count; i-- > 0 && sum.lasts_ns < lasts_ns;)
		if (t->of[i].ip_bytes != UNKNOWN) {
			sum.lasts_ns += t->of[i].lasts_ns;
			sum.ip_bytes += t->of[i].ip_bytes;
		}
	return sum.lasts_ns ? rate_of(&sum) : 0;
}

/* The rates of windows of one length from `begin_ns` on. Returns their number; 0: counts are missing in one. */
static size_t windows(const struct rate_trials *t, uint64_t begin_ns, uint64_t window_ns, double values[LEVELS_POINTS])
{
	struct rate_trial sums[LEVELS_POINTS + 1] = { { 0 } };
	const uint64_t end_ns = lasts(t);
	const size_t count = end_ns > begin_ns ? (size_t)((end_ns - begin_ns) / window_ns) : 0;
	uint64_t at_ns = 0;

	if (count > LEVELS_POINTS)
		return 0;
	for (uint32_t i = 0; i < t->count; at_ns += t->of[i++].lasts_ns) {
		const uint64_t middle_ns = at_ns + t->of[i].lasts_ns / 2;
		const size_t of = middle_ns < begin_ns ? count : (size_t)((middle_ns - begin_ns) / window_ns);

		if (of >= count || t->of[i].ip_bytes == UNKNOWN)
			continue;
		sums[of].lasts_ns += t->of[i].lasts_ns;
		sums[of].ip_bytes += t->of[i].ip_bytes;
	}
	for (size_t i = 0; i < count; i++) {
		if (!sums[i].lasts_ns)
			return 0;
		values[i] = rate_of(&sums[i]);
	}
	return count;
}

size_t rate_trials_levels(const struct rate_trials *t, struct rate_level found[RATE_LEVELS_MOST])
{
	double values[LEVELS_POINTS];
	struct rate_windows w = {
		.values = values, .begin_ns = RATE_SETTLED_NS, .packet_bytes = 1250 /* the usual size */, .first = -1
	};

	w.window_ns = levels_window_ns(w.begin_ns, lasts(t), t->count ? t->of[0].lasts_ns : 0);
	w.count = windows(t, w.begin_ns, w.window_ns, values);
	return levels_of_rate(&w, found);
}

/* The rate of the second half, if it is constant; 0: it is not. */
static double sustained_of(const struct rate_trials *t)
{
	const uint64_t half_ns = lasts(t) / 2;
	double values[LEVELS_POINTS];
	const size_t count = windows(t, half_ns, levels_window_ns(half_ns, 2 * half_ns, 0), values);
	double least = 0, most = 0;

	for (size_t i = 0; i < count; i++) {
		least = i && values[i] > least ? least : values[i];
		most = values[i] > most ? values[i] : most;
	}
	return count > 1 && most < ABOVE * least ? (least + most) / 2 : 0;
}

bool rate_trials_burst(const struct rate_trials *t, double sustained_bit_s, struct rate_burst *r)
{
	const double sustained = sustained_bit_s > 0 ? sustained_bit_s : sustained_of(t);
	const uint64_t half_ns = lasts(t) / 2;
	uint64_t at_ns = 0;
	double later = sustained, bits = 0;
	uint32_t below = 0;
	bool over = false;

	*r = (struct rate_burst){ .shaper = { .sustained_bit_s = sustained } };
	for (uint32_t i = 0; i < t->count && sustained > 0; at_ns += t->of[i++].lasts_ns) {
		const double rate = rate_of(&t->of[i]);

		/* Between them a search may have fallen, so that a bucket filled again. */
		if (at_ns >= half_ns)
			later = rate > later ? rate : later;
		if (over)
			continue;
		if (rate > ABOVE * sustained) {
			r->begin_ns = r->end_ns ? r->begin_ns : at_ns;
			r->end_ns = at_ns + t->of[i].lasts_ns;
			r->shaper.line_bit_s = rate > r->shaper.line_bit_s ? rate : r->shaper.line_bit_s;
			bits += (rate - sustained) * (double)t->of[i].lasts_ns / 1e9;
			below = 0;
		} else if (r->end_ns) {
			over = ++below == AFTER;
		}
	}
	r->shaper.bucket_bytes = bits / 8;
	if (!over || r->shaper.line_bit_s <= FASTER * sustained)
		return false;
	return sustained_bit_s > 0 || (r->end_ns < half_ns && r->shaper.line_bit_s > FASTER * later);
}

uint64_t rate_trials_refill(const struct rate_burst *b)
{
	const double seconds = REFILL * 8 * b->shaper.bucket_bytes / b->shaper.sustained_bit_s;

	return seconds < REFILL_S ? (uint64_t)(seconds * 1e9) : 0;
}

bool rate_trials_again(const struct rate_burst *first, const struct rate_trials *second)
{
	const struct shaper *s = &first->shaper;
	struct rate_burst again;

	return rate_trials_burst(second, s->sustained_bit_s, &again) &&
	       again.shaper.bucket_bytes < APART * s->bucket_bytes &&
	       s->bucket_bytes < APART * again.shaper.bucket_bytes;
}
