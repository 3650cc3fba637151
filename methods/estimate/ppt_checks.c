/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "ppt_checks.h"

#include "error.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Two slopes differ if their distance is so many times the root of the sum of their squared half intervals. */
#define DIFFERENT 1.5

struct ppt_check_sizes ppt_check_sizes(uint32_t heading, const uint32_t sizes[2], uint32_t least)
{
	const uint32_t gap = PPT_GAMMA_BITS / 8, large = sizes[1] + gap;
	struct ppt_check_sizes r = { (sizes[0] + sizes[1]) / 2, large / 4 * 3 - gap, 0 };

	if (r.shorter < least)
		r.shorter = least;
	/* Each kind of probe has a trailing packet of its own size. */
	if (r.shorter == sizes[0])
		r.shorter = r.shorter > least ? r.shorter - 1 : r.shorter + 1;
	if (r.middle == r.shorter)
		r.middle++;
	r.shorter_heading = ((heading + gap) * (r.shorter + gap) + large - 1) / large - gap;
	return r;
}

static int64_t *room_of(const struct ppt_probes *s, struct ktrxer_error *err)
{
	int64_t *gaps_ns = calloc(s->count ? s->count : 1, sizeof *gaps_ns);

	if (!gaps_ns)
		ktrxer_fail(err, -ENOMEM, "no memory for the gaps of %zu probes", s->count);
	return gaps_ns;
}

/* Finds the line through the mean gaps of two trains, the smaller trailing packet first. -EAGAIN: too few probes. */
static int line_through(const struct ppt_probes *one, const struct ppt_probes *two, const double heading_ns[2],
			uint32_t resolution_ns, double step_ns, struct ppt_result *line, struct ktrxer_error *err)
{
	const struct ppt_probes *sets[2] = { one, two };
	struct ppt_train trains[2] = { { .gaps_ns = NULL }, { .gaps_ns = NULL } };
	size_t outcomes[PAIR_OUTCOMES];
	int rc = -ENOMEM;

	for (int i = 0; i < 2; i++) {
		trains[i].size_bytes = sets[i]->size_bytes;
		trains[i].gaps_ns = room_of(sets[i], err);
		if (!trains[i].gaps_ns)
			goto end;
		trains[i].count = ppt_usable_gaps(sets[i], heading_ns[i], outcomes, trains[i].gaps_ns, NULL);
	}
	rc = -EAGAIN;
	if (trains[0].count >= PPT_PROBES_LEAST && trains[1].count >= PPT_PROBES_LEAST)
		rc = ppt_estimate(trains, resolution_ns, -1, line, err);
	if (rc == 0 && step_ns > 0)
		ppt_widen(line, two->size_bytes - one->size_bytes, step_ns);
end:
	free(trains[0].gaps_ns);
	free(trains[1].gaps_ns);
	return rc;
}

static double half(const struct ppt_result *line)
{
	return (line->slope.high - line->slope.low) / 2;
}

/* How far `two` is steeper than `one`, where their uncertainty allows to say so; else 0. */
static double steeper(const struct ppt_result *one, const struct ppt_result *two)
{
	const double more = two->phase1.m_avg - one->phase1.m_avg;

	return fabs(more) > DIFFERENT * hypot(half(one), half(two)) ? more : 0;
}

static int count_outcomes(struct ppt_probes *s, double heading_ns, struct ktrxer_error *err)
{
	int64_t *gaps_ns = room_of(s, err);

	if (!gaps_ns)
		return -ENOMEM;
	ppt_usable_gaps(s, heading_ns, s->outcomes, gaps_ns, NULL);
	s->send_gap_ns = ppt_send_gap(s, gaps_ns);
	free(gaps_ns);
	return 0;
}

struct lines {
	struct ppt_result lower,
		upper; /* through the smaller size and the middle one, and through the middle and the larger one */
	struct ppt_result shorter; /* through the probes with the shorter heading packet and the larger size */
	double bend;               /* ns a byte; 0: none is shown */
	uint32_t middle_to_large, shorter_to_large; /* bytes */
};

/*
 * The gaps behind the shorter heading packet are longer than those on the line. With a bend, the line is the upper one
 * if the receiver makes the bend, and the trailing packets of the larger size alone are late if the links do: the
 * nearer one counts.
 */
static bool uncovered(const struct ppt_checks *checks, const struct ppt_result *whole, const struct lines *l)
{
	const double least_ns = 8e9 * (checks->heading_bytes - checks->shorter_heading_bytes) / PPT_END_LINK_MAX_BIT_S;
	const double late_ns = l->bend * l->middle_to_large;

	if (late_ns != 0)
		return (l->upper.phase1.m_avg - l->shorter.phase1.m_avg) * l->shorter_to_large > fabs(late_ns) / 3;
	return steeper(&l->shorter, whole) * l->shorter_to_large > least_ns;
}

/* The receiver's line above the bend. The gaps of the trains, and the paper's figures, stay those of both sizes. */
static void above_the_bend(struct ppt_result *r, const struct ppt_result *upper)
{
	r->service_ns = r->gaps[0].average_ns;
	r->serial = true;
	r->slope = upper->slope;
	r->capacity = upper->capacity;
	r->capacity_bit_s = upper->capacity_bit_s;
	r->delta = upper->delta;
	r->delta_ns = upper->delta_ns;
}

int ppt_probes_check(const struct ppt_probes sets[2], struct ppt_checks *checks, uint32_t resolution_ns,
		     struct ppt_result *r, struct ktrxer_error *err)
{
	const double heading_ns = r->reading == PPT_RESOLVED ? checks->heading_bytes * r->phase1.m_avg : -1;
	const double same[2] = { heading_ns, heading_ns };
	const double other[2] = { heading_ns * checks->shorter_heading_bytes / checks->heading_bytes, heading_ns };
	struct lines l = { .middle_to_large = sets[1].size_bytes - checks->middle.size_bytes,
			   .shorter_to_large = sets[1].size_bytes - checks->shorter.size_bytes };
	double step_ns = 0;
	int rc;

	if ((rc = count_outcomes(&checks->middle, same[1], err)) < 0 ||
	    (rc = count_outcomes(&checks->shorter, other[0], err)) < 0)
		return rc;
	if (r->reading != PPT_RESOLVED)
		return 0;
	if (r->resolution_ns > resolution_ns)
		step_ns = resolution_ns = r->resolution_ns;
	if ((rc = line_through(&sets[0], &checks->middle, same, resolution_ns, step_ns, &l.lower, err)) == 0 &&
	    (rc = line_through(&checks->middle, &sets[1], same, resolution_ns, step_ns, &l.upper, err)) == 0)
		rc = line_through(&checks->shorter, &sets[1], other, resolution_ns, step_ns, &l.shorter, err);
	if (rc == -EAGAIN) {
		r->reading = PPT_TOO_FEW;
		return 0;
	}
	if (rc < 0)
		return rc;
	l.bend = steeper(&l.lower, &l.upper);
	if (uncovered(checks, r, &l))
		r->reading = PPT_UNCOVERED;
	else if (l.bend > 0 && l.lower.slope.low > 0)
		above_the_bend(r, &l.upper);
	else if (l.bend != 0)
		r->reading = PPT_BENT;
	return 0;
}
