/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "pairs.h"

#include "estimate_sort.h"
#include "skew.h"

#include <errno.h>
#include <math.h>

#define TOLERANCE 0.02 /* of the gap: an undisturbed pair has at most so much excess */
#define TOLERANCE_MAX 0.1 /* without enough of them: limit for the best pairs */
#define NOISE_NS 2000.0 /* of the stamps of two busy hosts: excess below it is no sign of cross traffic */
#define SIZES_APART 0.15 /* by so much the capacities by both sizes may differ */

const char *const pairs_reading_names[PAIRS_READINGS] = {
	[PAIRS_RESOLVED] = "resolved",   [PAIRS_TOO_FEW] = "too_few",     [PAIRS_SPREAD] = "not_back_to_back",
	[PAIRS_COALESCED] = "coalesced", [PAIRS_DISTURBED] = "disturbed", [PAIRS_CHANGED] = "changed",
	[PAIRS_SHAPED] = "shaped",
};

/* A usable pair. Delays contain the unknown offset of the clocks. */
struct usable {
	struct timed_delay mean; /* of both packets */
	double first_ns, last_ns, gap_ns, excess_ns;
};

struct work {
	struct usable *pairs;
	size_t count;
};

static double gap_between(const uint64_t times_ns[2])
{
	return (double)(int64_t)(times_ns[1] - times_ns[0]);
}

enum pair_outcome pair_outcome_of(const struct pair_times *p, double gap_max_ns)
{
	if (!p->arrived_ns[0] || !p->arrived_ns[1])
		return PAIR_LOST;
	if (!p->sent_ns[0] || !p->sent_ns[1])
		return PAIR_UNSENT;
	if (p->arrived_ns[1] < p->arrived_ns[0])
		return PAIR_REORDERED;
	if (p->arrived_ns[1] == p->arrived_ns[0])
		return PAIR_TOGETHER;
	if (fabs(gap_between(p->sent_ns)) > (gap_max_ns < 0 ? gap_between(p->arrived_ns) / 2 : gap_max_ns))
		return PAIR_SPREAD;
	return PAIR_USABLE;
}

static void sort_out(struct pairs_set *s, struct work *w, const struct pair_times *origin)
{
	const uint64_t sent0_ns = origin->sent_ns[0], arrived0_ns = origin->arrived_ns[0];

	for (size_t i = 0; i < s->count; i++) {
		const struct pair_times *p = &s->pairs[i];
		const enum pair_outcome outcome = pair_outcome_of(p, -1);

		s->outcomes[outcome]++;
		if (outcome == PAIR_USABLE) {
			struct usable *u = &w->pairs[w->count++];

			u->mean.at_ns = (double)(int64_t)(p->sent_ns[0] - sent0_ns);
			u->first_ns = (double)(int64_t)((p->arrived_ns[0] - arrived0_ns) - (p->sent_ns[0] - sent0_ns));
			u->last_ns = (double)(int64_t)((p->arrived_ns[1] - arrived0_ns) - (p->sent_ns[1] - sent0_ns));
			u->mean.delay_ns = (u->first_ns + u->last_ns) / 2;
			u->gap_ns = gap_between(p->arrived_ns);
		}
	}
}

static int by_excess(const void *a, const void *b)
{
	const double x = ((const struct usable *)a)->excess_ns, y = ((const struct usable *)b)->excess_ns;

	return (x > y) - (x < y);
}

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void set_excess(struct work *w, double skew)
{
	double first = INFINITY, last = INFINITY;

	for (size_t i = 0; i < w->count; i++) {
		struct usable *p = &w->pairs[i];

		p->first_ns -= skew * p->mean.at_ns;
		p->last_ns -= skew * p->mean.at_ns;
		first = fmin(first, p->first_ns);
		last = fmin(last, p->last_ns);
	}
	for (size_t i = 0; i < w->count; i++)
		w->pairs[i].excess_ns = w->pairs[i].first_ns - first + w->pairs[i].last_ns - last;
}

/* More pairs of one half than chance explains (one case in a thousand): the other half has another least delay. */
static bool halves_differ(const struct work *w, size_t count, double middle_ns)
{
	double early = 0, late = 0;

	for (size_t i = 0; i < count; i++)
		*(w->pairs[i].mean.at_ns < middle_ns ? &early : &late) += 1;
	return count >= 10 && fabs(early - late) > 3.3 * sqrt((double)count);
}

/* So many of the pairs, which are in the order of their excess. */
static size_t within(const struct work *w, double excess_ns)
{
	size_t n = 0;

	while (n < w->count && w->pairs[n].excess_ns <= excess_ns)
		n++;
	return n;
}

/* The mean gap, and what it may err: by chance, by the stamps, and by the excess, which belongs to either packet. */
static void set_gap(struct pairs_set *s, const struct work *w, uint32_t resolution_ns)
{
	const double n = (double)s->undisturbed;
	double sum = 0, squares = 0, excess = 0, error;

	for (size_t i = 0; i < s->undisturbed; i++) {
		const double x = w->pairs[i].gap_ns - w->pairs[0].gap_ns;

		sum += x;
		squares += x * x;
		excess += w->pairs[i].excess_ns / n;
	}
	s->gap_ns = w->pairs[0].gap_ns + sum / n;
	error = 2 * sqrt(fmax(squares - sum * sum / n, 0) / (n - 1) / n) + excess / 2 + resolution_ns;
	s->low_ns = s->gap_ns - error;
	s->high_ns = s->gap_ns + error;
	s->capacity_bit_s = (double)s->bits * 1e9 / s->gap_ns;
	s->low_bit_s = (double)s->bits * 1e9 / s->high_ns;
	s->high_bit_s = s->low_ns > 0 ? (double)s->bits * 1e9 / s->low_ns : INFINITY;
}

/* The pairs within the tolerance, or a quarter of all: the stamps of two hosts are noisier than the tolerance on fast
 * links. */
static enum pairs_reading choose(struct pairs_set *s, struct work *w, double skew, uint32_t resolution_ns)
{
	const double middle = (w->pairs[0].mean.at_ns + w->pairs[w->count - 1].mean.at_ns) / 2;
	size_t quarter;
	double most;

	set_excess(w, skew);
	qsort(w->pairs, w->count, sizeof *w->pairs, by_excess);
	most = fmax(TOLERANCE_MAX * w->pairs[0].gap_ns, NOISE_NS);
	s->undisturbed = within(w, fmax(TOLERANCE * w->pairs[0].gap_ns, 2.0 * resolution_ns));
	quarter = within(w, most);
	quarter = quarter < w->count / 4 ? quarter : w->count / 4;
	if (s->undisturbed < quarter)
		s->undisturbed = quarter;
	if (s->undisturbed < PAIRS_LEAST)
		s->undisturbed = PAIRS_LEAST;
	s->excess_ns = w->pairs[s->undisturbed - 1].excess_ns;
	set_gap(s, w, resolution_ns);
	if (halves_differ(w, within(w, most), middle))
		return PAIRS_CHANGED;
	return s->excess_ns > most ? PAIRS_DISTURBED : PAIRS_RESOLVED;
}

int64_t pairs_clusters(const struct pair_times *pairs, size_t count, struct gap_clusters *clusters)
{
	int64_t *gaps = calloc(count ? count : 1, sizeof *gaps);
	size_t n = 0;

	if (!gaps)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (pairs[i].arrived_ns[0] && pairs[i].arrived_ns[1] >= pairs[i].arrived_ns[0])
			gaps[n++] = (int64_t)(pairs[i].arrived_ns[1] - pairs[i].arrived_ns[0]);
	estimate_sort(gaps, n);
	gap_clusters(gaps, n, clusters);
	free(gaps);
	return (int64_t)n;
}

/* 1: the gaps of a set form two groups, the lower one of pairs that came with one interrupt. 0, or -ENOMEM. */
static int coalesced(const struct pairs_set sets[2], double *period_ns)
{
	struct gap_clusters clusters[2];
	bool found = false;

	for (int i = 0; i < 2; i++) {
		const int64_t n = pairs_clusters(sets[i].pairs, sets[i].count, &clusters[i]);

		if (n < 0)
			return (int)n;
		found |= clusters[i].separate || (sets[i].outcomes[PAIR_TOGETHER] >= PAIRS_LEAST &&
						  sets[i].outcomes[PAIR_TOGETHER] * 20 >= (uint64_t)n);
	}
	*period_ns = gap_clusters_period(clusters);
	return found;
}

/* The reading from the gaps of both sizes. */
static enum pairs_reading compare(const struct pairs_set *large, const struct pairs_set *small, struct pairs_result *r)
{
	const double difference = large->gap_ns - small->gap_ns, bits = (double)(large->bits - small->bits);

	r->link_bit_s = difference > 0 ? bits * 1e9 / difference : INFINITY;
	r->overhead_bytes = (large->gap_ns * r->link_bit_s / 1e9 - (double)large->bits) / 8;
	if (large->gap_ns < small->gap_ns * (1 + SIZES_APART)) {
		r->period_ns = large->gap_ns;
		return PAIRS_COALESCED;
	}
	if (fabs(large->capacity_bit_s / small->capacity_bit_s - 1) > SIZES_APART)
		return PAIRS_DISTURBED;
	return PAIRS_RESOLVED;
}

static enum pairs_reading too_few(const struct pairs_set sets[2])
{
	size_t spread = sets[0].outcomes[PAIR_SPREAD] + sets[1].outcomes[PAIR_SPREAD], all = 0;

	for (int i = 0; i < 2; i++) {
		if (sets[i].outcomes[PAIR_LOST] == sets[i].count)
			return PAIRS_TOO_FEW; /* the path drops this size */
		all += sets[i].count - sets[i].outcomes[PAIR_LOST];
	}
	return spread * 2 > all ? PAIRS_SPREAD : PAIRS_TOO_FEW;
}

/* The step of the receiver's clock: the smallest difference between two gaps. */
static uint32_t step_of(const struct work *w, double *gaps)
{
	double step = INFINITY;

	for (size_t i = 0; i < w->count; i++)
		gaps[i] = w->pairs[i].gap_ns;
	qsort(gaps, w->count, sizeof *gaps, by_size);
	for (size_t i = 1; i < w->count; i++)
		if (gaps[i] > gaps[i - 1])
			step = fmin(step, gaps[i] - gaps[i - 1]);
	return step < 1e6 ? (uint32_t)step : 0;
}

static int estimate(struct pairs_set sets[2], struct work work[2], void *room, uint32_t resolution_ns,
		    struct pairs_result *r)
{
	struct pairs_set *small = &sets[r->large == &sets[0]];
	const struct work *most = &work[r->large != &sets[0]];
	static const struct pair_times none = { 0 };
	const struct pair_times *origin = &none;
	uint32_t step_ns;
	double skew;
	int rc;

	/* Differences to these stay exact in floating point. */
	for (int i = 0; i < 2; i++)
		for (size_t at = 0; origin == &none && at < sets[i].count; at++)
			if (sets[i].pairs[at].sent_ns[0] && sets[i].pairs[at].arrived_ns[0])
				origin = &sets[i].pairs[at];
	for (int i = 0; i < 2; i++)
		sort_out(&sets[i], &work[i], origin);
	rc = coalesced(sets, &r->period_ns);
	if (rc < 0)
		return rc;
	if (rc) {
		r->reading = PAIRS_COALESCED;
		return 0;
	}
	if (sets[0].outcomes[PAIR_USABLE] < PAIRS_LEAST || sets[1].outcomes[PAIR_USABLE] < PAIRS_LEAST) {
		r->reading = too_few(sets);
		return 0;
	}
	skew = skew_of(&most->pairs[0].mean, sizeof *most->pairs, most->count, room);
	r->skew_ppm = skew * 1e6;
	step_ns = step_of(most, room);
	resolution_ns = step_ns > resolution_ns ? step_ns : resolution_ns;
	for (int i = 0; i < 2; i++) {
		const enum pairs_reading reading = choose(&sets[i], &work[i], skew, resolution_ns);

		r->reading = r->reading == PAIRS_RESOLVED ? reading : r->reading;
	}
	if (r->reading == PAIRS_RESOLVED || r->reading == PAIRS_DISTURBED) {
		const enum pairs_reading reading = compare(r->large, small, r);

		r->reading = reading == PAIRS_COALESCED || r->reading == PAIRS_RESOLVED ? reading : r->reading;
	}
	return 0;
}

int pairs_estimate(struct pairs_set sets[2], uint32_t resolution_ns, struct pairs_result *r)
{
	struct work work[2] = { 0 };
	void *room = calloc(sets[0].count + sets[1].count + 1,
			    sizeof(double) > sizeof(size_t) ? sizeof(double) : sizeof(size_t));
	int rc = room ? 0 : -ENOMEM;

	*r = (struct pairs_result){ .large = &sets[sets[1].bits > sets[0].bits] };
	if (sets[0].bits == sets[1].bits || !sets[0].bits || !sets[1].bits)
		rc = -EINVAL;
	for (int i = 0; i < 2 && rc == 0; i++) {
		sets[i] = (struct pairs_set){ .pairs = sets[i].pairs, .count = sets[i].count, .bits = sets[i].bits };
		work[i].pairs = calloc(sets[i].count ? sets[i].count : 1, sizeof *work[i].pairs);
		rc = work[i].pairs ? 0 : -ENOMEM;
	}
	if (rc == 0)
		rc = estimate(sets, work, room, resolution_ns, r);
	free(work[0].pairs);
	free(work[1].pairs);
	free(room);
	return rc;
}

double pairs_load(const uint32_t ip_bytes[2], uint64_t interval_ns)
{
	return 2 * 8e9 * ((double)ip_bytes[0] + ip_bytes[1]) / (double)interval_ns;
}
