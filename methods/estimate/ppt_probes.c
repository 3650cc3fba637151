/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "ppt_probes.h"

#include "error.h"
#include "estimate_sort.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	ROUNDS = 3,          /* all probes; those back to back by the first slope; and by the second */
	TOGETHER_SHARE = 20, /* one probe of so many with one stamp for both arrivals: no chance */
	CLOCK_STEP_MAX = 1000000,
};
#define CHANGE_SIGMA 4.5 /* both parts of a run differ by so many standard deviations: one case in some thousand */
#define CHANGE_SHARE 0.1 /* and their medians by this share of the gap */
/*
 * Of packets that wait for each other, the gaps do not depend on those of the sender, and the correlation of 50 probes
 * is within 0.4. Where the link is faster than the sender, both gaps are the same ones, and it is above 0.9.
 */
#define OWN_GAPS 0.5

/* The usable gaps of one train. */
struct usable {
	int64_t *gaps_ns, *sorted_ns;
	size_t *numbers; /* of the probes */
	double *ranks;
	size_t count;
};

size_t ppt_usable_gaps(const struct ppt_probes *s, double heading_ns, size_t outcomes[PAIR_OUTCOMES], int64_t *gaps_ns,
		       size_t *numbers)
{
	size_t count = 0;

	memset(outcomes, 0, PAIR_OUTCOMES * sizeof *outcomes);
	for (size_t i = 0; i < s->count; i++) {
		const struct pair_times *p = &s->probes[i];
		const enum pair_outcome outcome = pair_outcome_of(p, heading_ns);

		outcomes[outcome]++;
		if (outcome != PAIR_USABLE)
			continue;
		if (numbers)
			numbers[count] = i;
		gaps_ns[count++] = (int64_t)(p->arrived_ns[1] - p->arrived_ns[0]);
	}
	return count;
}

static int64_t send_gap(const struct ppt_probes *s, size_t number)
{
	return (int64_t)(s->probes[number].sent_ns[1] - s->probes[number].sent_ns[0]);
}

int64_t ppt_send_gap(const struct ppt_probes *s, int64_t *room_ns)
{
	size_t n = 0;

	for (size_t i = 0; i < s->count; i++)
		if (s->probes[i].sent_ns[0] && s->probes[i].sent_ns[1])
			room_ns[n++] = send_gap(s, i);
	estimate_sort(room_ns, n);
	return n ? room_ns[n / 2] : 0;
}

/*
 * Of the gaps of usable probes from number `from` to before `to`, at the receiver or at the sender; 0 without a probe.
 */
static int64_t median(const struct ppt_probes *s, const struct usable *u, size_t from, size_t to, bool sent)
{
	size_t n = 0;

	for (size_t i = 0; i < u->count; i++)
		if (u->numbers[i] >= from && u->numbers[i] < to)
			u->sorted_ns[n++] = sent ? send_gap(s, u->numbers[i]) : u->gaps_ns[i];
	estimate_sort(u->sorted_ns, n);
	return n ? u->sorted_ns[(n - 1) / 2] : 0;
}

static size_t below(const struct usable *u, int64_t limit_ns)
{
	size_t low = 0, high = u->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (u->sorted_ns[middle] < limit_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void set_ranks(struct usable *u)
{
	for (size_t i = 0; i < u->count; i++)
		u->sorted_ns[i] = u->gaps_ns[i];
	estimate_sort(u->sorted_ns, u->count);
	for (size_t i = 0; i < u->count; i++)
		u->ranks[i] = ((double)below(u, u->gaps_ns[i]) + (double)below(u, u->gaps_ns[i] + 1) + 1) / 2;
}

/* Compares ranks: how far the gaps before probe `split` are from the others, in standard deviations of both trains. */
static double distance(const struct usable usable[2], size_t split)
{
	double sum = 0, variance = 0;

	for (int t = 0; t < 2; t++) {
		const double n = (double)usable[t].count;
		double early = 0;

		for (size_t i = 0; i < usable[t].count && usable[t].numbers[i] < split; i++) {
			sum += 2 * usable[t].ranks[i] - (n + 1);
			early++;
		}
		variance += early * (n - early) * (n + 1) / 3;
	}
	return variance > 0 ? fabs(sum) / sqrt(variance) : 0;
}

/*
 * Pettitt's test for a change point (Applied Statistics 28, 1979), both trains together: a change of the link's rate
 * has the same sign in both. Ranks hardly depend on cross traffic that delays some of the probes throughout the run.
 * A change that the sender's gaps have at the same time, too, is not one of the path.
 */
static bool path_changed(const struct ppt_probes sets[2], struct usable usable[2])
{
	const size_t probes = sets[0].count > sets[1].count ? sets[0].count : sets[1].count;
	double most = 0;
	size_t at = 0;

	for (int t = 0; t < 2; t++)
		set_ranks(&usable[t]);
	for (size_t split = probes / 10 + 1; split < probes - probes / 10; split++)
		if (distance(usable, split) > most) {
			most = distance(usable, split);
			at = split;
		}
	if (most < CHANGE_SIGMA)
		return false;
	for (int t = 0; t < 2; t++) {
		int64_t early[2], late[2]; /* at the receiver, at the sender */

		for (int sent = 0; sent < 2; sent++) {
			early[sent] = median(&sets[t], &usable[t], 0, at, sent);
			late[sent] = median(&sets[t], &usable[t], at, probes, sent);
		}
		if (fabs((double)(late[0] - early[0])) - fabs((double)(late[1] - early[1])) >
		    CHANGE_SHARE * (double)early[0])
			return true;
	}
	return false;
}

/* Spearman's rank correlation of the gaps at the sender with those at the receiver; 0 where one of them is constant. */
static double correlation(const struct ppt_probes *s, struct usable *u)
{
	const double middle = ((double)u->count + 1) / 2;
	double both = 0, sent = 0, arrived = 0;

	set_ranks(u);
	for (size_t i = 0; i < u->count; i++)
		u->sorted_ns[i] = send_gap(s, u->numbers[i]);
	estimate_sort(u->sorted_ns, u->count);
	for (size_t i = 0; i < u->count; i++) {
		const int64_t gap = send_gap(s, u->numbers[i]);
		const double x = ((double)below(u, gap) + (double)below(u, gap + 1) + 1) / 2 - middle,
			     y = u->ranks[i] - middle;

		both += x * y;
		sent += x * x;
		arrived += y * y;
	}
	return sent > 0 && arrived > 0 ? both / sqrt(sent * arrived) : 0;
}

/* The step of the receiver's clock, by the smallest difference between two gaps: all gaps are multiples of it. */
static uint32_t step_of(struct usable usable[2], uint32_t resolution_ns)
{
	int64_t step = INT64_MAX;

	for (int t = 0; t < 2; t++) {
		set_ranks(&usable[t]);
		for (size_t i = 1; i < usable[t].count; i++) {
			const int64_t difference = usable[t].sorted_ns[i] - usable[t].sorted_ns[i - 1];

			if (difference && difference < step)
				step = difference;
		}
	}
	return step > (int64_t)resolution_ns && step <= CLOCK_STEP_MAX ? (uint32_t)step : resolution_ns;
}

void ppt_widen(struct ppt_result *r, uint32_t bytes, double step_ns)
{
	const double slope = step_ns / bytes;

	r->delta.low -= step_ns;
	r->delta.high += step_ns;
	r->slope.low -= slope;
	r->slope.high += slope;
	r->capacity.low = 8e9 / r->slope.high;
	r->capacity.high = r->slope.low > 0 ? 8e9 / r->slope.low : INFINITY;
}

static bool taken_together(const struct ppt_probes sets[2])
{
	for (int i = 0; i < 2; i++)
		if (sets[i].outcomes[PAIR_TOGETHER] >= PPT_PROBES_LEAST &&
		    sets[i].outcomes[PAIR_TOGETHER] * TOGETHER_SHARE >= sets[i].count - sets[i].outcomes[PAIR_LOST])
			return true;
	return false;
}

static int set_coalesced(const struct ppt_probes sets[2], struct ppt_result *r, struct ktrxer_error *err)
{
	struct gap_clusters clusters[2];

	for (int i = 0; i < 2; i++)
		if (pairs_clusters(sets[i].probes, sets[i].count, &clusters[i]) < 0)
			return ktrxer_fail(err, -ENOMEM, "no memory for the gaps of %zu probes", sets[i].count);
	*r = (struct ppt_result){ .reading = PPT_COALESCED,
				  .coalescing_ns = gap_clusters_period(clusters),
				  .together = sets[0].outcomes[PAIR_TOGETHER] + sets[1].outcomes[PAIR_TOGETHER] };
	return 0;
}

static enum ppt_reading too_few(const struct ppt_probes sets[2])
{
	const size_t spread = sets[0].outcomes[PAIR_SPREAD] + sets[1].outcomes[PAIR_SPREAD],
		     arrived =
			     sets[0].count + sets[1].count - sets[0].outcomes[PAIR_LOST] - sets[1].outcomes[PAIR_LOST];

	return spread * 2 > arrived ? PPT_SPREAD : PPT_TOO_FEW;
}

static int estimate_usable(const struct ppt_probes sets[2], struct usable usable[2], uint32_t resolution_ns,
			   struct ppt_result *r, struct ktrxer_error *err)
{
	struct ppt_train trains[2];

	for (int i = 0; i < 2; i++) {
		/* ppt_estimate() sorts its gaps. */
		for (size_t k = 0; k < usable[i].count; k++)
			usable[i].sorted_ns[k] = usable[i].gaps_ns[k];
		trains[i] = (struct ppt_train){ .size_bytes = sets[i].size_bytes,
						.gaps_ns = usable[i].sorted_ns,
						.count = usable[i].count };
	}
	return ppt_estimate(trains, resolution_ns, -1, r, err);
}

static int estimate(struct ppt_probes sets[2], struct usable usable[2], uint32_t heading_bytes, uint32_t resolution_ns,
		    struct ppt_result *r, struct ktrxer_error *err)
{
	const uint32_t wanted_ns = resolution_ns;
	double heading_ns = INFINITY;
	bool changed = false;

	for (int round = 0; round < ROUNDS; round++) {
		int rc;

		for (int i = 0; i < 2; i++)
			usable[i].count = ppt_usable_gaps(&sets[i], heading_ns, sets[i].outcomes, usable[i].gaps_ns,
							  usable[i].numbers);
		if (taken_together(sets))
			return set_coalesced(sets, r, err);
		if (usable[0].count < PPT_PROBES_LEAST || usable[1].count < PPT_PROBES_LEAST) {
			*r = (struct ppt_result){ .reading = changed ? PPT_CHANGED : too_few(sets) };
			return 0;
		}
		if (!round) {
			changed = path_changed(sets, usable);
			resolution_ns = step_of(usable, resolution_ns);
		}
		rc = estimate_usable(sets, usable, resolution_ns, r, err);
		if (rc < 0 || r->reading == PPT_COALESCED)
			return rc;
		heading_ns = r->reading == PPT_RESOLVED ? heading_bytes * r->phase1.m_avg : -1;
	}
	if (changed)
		r->reading = PPT_CHANGED;
	else if (too_few(sets) == PPT_SPREAD ||
		 correlation(&sets[0], &usable[0]) + correlation(&sets[1], &usable[1]) > 2 * OWN_GAPS)
		r->reading = PPT_SPREAD;
	if (r->reading == PPT_RESOLVED && resolution_ns > wanted_ns)
		ppt_widen(r, sets[1].size_bytes - sets[0].size_bytes, resolution_ns);
	return 0;
}

int ppt_probes_estimate(struct ppt_probes sets[2], uint32_t heading_bytes, uint32_t resolution_ns, struct ppt_result *r,
			struct ktrxer_error *err)
{
	struct usable usable[2] = { { 0 } };
	int rc = 0;

	if (sets[0].size_bytes > sets[1].size_bytes) {
		const struct ppt_probes larger = sets[0];

		sets[0] = sets[1];
		sets[1] = larger;
	}
	for (int i = 0; i < 2; i++) {
		const size_t room = sets[i].count ? sets[i].count : 1;

		usable[i].gaps_ns = calloc(room, sizeof *usable[i].gaps_ns);
		usable[i].sorted_ns = calloc(room, sizeof *usable[i].sorted_ns);
		usable[i].numbers = calloc(room, sizeof *usable[i].numbers);
		usable[i].ranks = calloc(room, sizeof *usable[i].ranks);
		if (!usable[i].gaps_ns || !usable[i].sorted_ns || !usable[i].numbers || !usable[i].ranks) {
			rc = ktrxer_fail(err, -ENOMEM, "no memory for the gaps of %zu probes", sets[i].count);
			goto end;
		}
		sets[i].send_gap_ns = ppt_send_gap(&sets[i], usable[i].sorted_ns);
	}
	if (sets[0].size_bytes == sets[1].size_bytes)
		rc = ktrxer_fail(err, -EINVAL,
				 "both trains have trailing packets of %u bytes: the slope needs two sizes",
				 sets[0].size_bytes);
	else
		rc = estimate(sets, usable, heading_bytes, resolution_ns, r, err);
end:
	for (int i = 0; i < 2; i++) {
		free(usable[i].gaps_ns);
		free(usable[i].sorted_ns);
		free(usable[i].numbers);
		free(usable[i].ranks);
	}
	return rc;
}

double ppt_probe_bits(uint32_t heading_bytes, uint32_t trailing_bytes)
{
	return 8.0 * ((double)heading_bytes + trailing_bytes) + 2 * PPT_GAMMA_BITS;
}
