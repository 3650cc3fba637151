/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "clockest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	VERTICES = 4096,  /* of one hull; beyond it every second inner one goes, which only widens the corridor */
	RECENT = 8,       /* round trips that a new one is held against */
	CONFIRM = 3,      /* that agree with each other and not with those before: a step */
};
#define SKEW_MAX 2e-3     /* no oscillator is worse by a factor of ten */
#define SLACK_PPM 500     /* between a round trip and the recent ones: what rates may do */
#define SKEW_MAY (SLACK_PPM * 1e-6)
#define SKEW_USUAL 50e-6  /* two crystals; what a time daemon holds is less */

/*
 * In ns relative to the segment's first; doubles are exact up to 2^53, a hundred days.
 */
struct point {
	double t, v;
};

struct hull {
	struct point *points; /* VERTICES */
	int count;
	int sign; /* 1: convex from below (under all points), -1: from above */
};

struct bound_pair {
	uint64_t t;
	int64_t low, high;
};

struct clockest {
	struct hull upper, lower; /* under the T2 - T1, above the T3 - T4 */
	uint64_t base_t, last_t1;
	int64_t base_v;
	double sum_t;
	uint64_t points;
	uint32_t segment;
	struct bound_pair recent[RECENT];
	uint32_t recent_count;
	struct {
		uint64_t t1, t4;
		int64_t t2, t3;
	} doubted[CONFIRM];
	int doubted_count;
	struct clockest_result closed[CLOCKEST_SEGMENTS];
};

int clockest_new(struct clockest **out)
{
	struct clockest *est = calloc(1, sizeof *est);

	*out = NULL;
	if (!est)
		return -ENOMEM;
	est->upper.points = calloc(2 * VERTICES, sizeof(struct point));
	if (!est->upper.points) {
		free(est);
		return -ENOMEM;
	}
	est->lower.points = est->upper.points + VERTICES;
	est->upper.sign = 1;
	est->lower.sign = -1;
	*out = est;
	return 0;
}

void clockest_free(struct clockest *est)
{
	if (!est)
		return;
	free(est->upper.points);
	free(est);
}

/* -------------------------------------------------------------------------------------------------------------- hulls */

/* Andrew's monotone chain: times never decrease. */
static void hull_add(struct hull *h, struct point p)
{
	while (h->count >= 2) {
		const struct point *a = &h->points[h->count - 2], *b = &h->points[h->count - 1];
		const double turn = (b->t - a->t) * (p.v - a->v) - (b->v - a->v) * (p.t - a->t);

		if (turn * h->sign > 0)
			break;
		h->count--;
	}
	if (h->count && h->points[h->count - 1].t == p.t) {
		if ((p.v - h->points[h->count - 1].v) * h->sign >= 0)
			return;
		h->count--;
	}
	if (h->count == VERTICES) {
		int kept = 1;

		for (int i = 2; i < h->count - 1; i += 2)
			h->points[kept++] = h->points[i];
		h->points[kept++] = h->points[h->count - 1];
		h->count = kept;
	}
	h->points[h->count++] = p;
}

/* The edge over t: its left end. */
static int hull_edge(const struct hull *h, double t)
{
	int low = 0, high = h->count - 1;

	while (high - low > 1) {
		int middle = (low + high) / 2;

		if (h->points[middle].t <= t)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static double hull_slope(const struct hull *h, double t)
{
	const struct point *a = &h->points[hull_edge(h, t)];

	return h->count < 2 || a[1].t == a->t ? 0 : (a[1].v - a->v) / (a[1].t - a->t);
}

/* Beyond its ends a hull says nothing: the value at the end then. */
static double hull_value(const struct hull *h, double t)
{
	const struct point *a = &h->points[hull_edge(h, t)], *last = &h->points[h->count - 1];

	if (t <= h->points[0].t)
		return h->points[0].v;
	return t >= last->t ? last->v : a->v + hull_slope(h, t) * (t - a->t);
}

/* Where the line of this slope that touches the hull cuts t = 0. */
static double hull_touch(const struct hull *h, double slope)
{
	double best = h->points[0].v - slope * h->points[0].t;

	for (int i = 1; i < h->count; i++) {
		double cut = h->points[i].v - slope * h->points[i].t;

		if ((cut - best) * h->sign < 0)
			best = cut;
	}
	return best;
}

/* The room that is left in the corridor for lines of this slope; negative: none fits. Concave in the slope. */
static double room(const struct clockest *est, double slope)
{
	return hull_touch(&est->upper, slope) - hull_touch(&est->lower, slope);
}

static double widest_slope(const struct clockest *est)
{
	double low = -SKEW_MAX, high = SKEW_MAX;

	for (int i = 0; i < 100; i++) {
		double a = low + (high - low) / 3, b = high - (high - low) / 3;

		if (room(est, a) < room(est, b))
			low = a;
		else
			high = b;
	}
	return (low + high) / 2;
}

/* From a slope that fits to the last one that does, in the direction of `limit`. */
static double steepest(const struct clockest *est, double fits, double limit)
{
	if (room(est, limit) >= 0)
		return limit;
	for (int i = 0; i < 60; i++) {
		double middle = (fits + limit) / 2;

		if (room(est, middle) >= 0)
			fits = middle;
		else
			limit = middle;
	}
	return fits;
}

/* ------------------------------------------------------------------------------------------------------------ results */

static double clamp(double x, double low, double high)
{
	return x < low ? low : x > high ? high : x;
}

/* A far end may say what it likes: 120 years are more than two clocks can be apart by what the wire can tell. */
static int64_t whole_ns(double ns)
{
	return (int64_t)clamp(ns, -4e18, 4e18);
}

static void evaluate(const struct clockest *est, struct clockest_result *r)
{
	const double end = est->lower.points[est->lower.count - 1].t, mean = est->sum_t / (double)est->points;
	double low, high, widest, estimate, missing, at, floor, ceiling;

	memset(r, 0, sizeof *r);
	r->points = est->points;
	r->from_ns = est->base_t;
	r->to_ns = est->base_t + (uint64_t)end;
	widest = widest_slope(est);
	missing = room(est, widest);
	r->bent = missing < 0;
	if (r->bent) {
		low = high = widest;
	} else {
		low = steepest(est, widest, -SKEW_MAX);
		high = steepest(est, widest, SKEW_MAX);
	}
	estimate = (hull_slope(&est->upper, mean) + hull_slope(&est->lower, mean)) / 2;
	r->skew_known = !r->bent && high - low < SKEW_MAX;
	estimate = r->skew_known ? clamp(estimate, low, high) : r->bent ? clamp(estimate, -SKEW_MAX, SKEW_MAX) : 0;
	r->slowest = low;
	r->fastest = high;
	r->skew_ppm = estimate * 1e6;
	r->skew_bound_ppm = (high - estimate > estimate - low ? high - estimate : estimate - low) * 1e6;
	at = (est->upper.points[0].t + end) / 2;
	ceiling = hull_value(&est->upper, at);
	floor = hull_value(&est->lower, at);
	r->at_ns = est->base_t + (uint64_t)at;
	r->offset_ns = est->base_v + whole_ns((ceiling + floor) / 2);
	/* Bent: the corridor crosses itself somewhere, by so much no straight line can be right. + 1: rounding to nanoseconds. */
	r->offset_bound_ns = (uint64_t)whole_ns((ceiling > floor ? ceiling - floor : 0) / 2 + (r->bent ? -missing : 0)) + 1;
}

uint32_t clockest_segment(const struct clockest *est)
{
	return est->segment;
}

void clockest_result(const struct clockest *est, uint32_t segment, struct clockest_result *result)
{
	memset(result, 0, sizeof *result);
	if (segment > est->segment || est->segment - segment >= CLOCKEST_SEGMENTS)
		return;
	if (segment < est->segment)
		*result = est->closed[segment % CLOCKEST_SEGMENTS];
	else if (est->points)
		evaluate(est, result);
}

static double distance(const struct clockest_result *r, uint64_t at_ns)
{
	return at_ns >= r->at_ns ? (double)(at_ns - r->at_ns) : -(double)(r->at_ns - at_ns);
}

int64_t clockest_offset_at(const struct clockest_result *r, uint64_t at_ns)
{
	return r->offset_ns + (int64_t)(r->skew_ppm * 1e-6 * distance(r, at_ns));
}

uint64_t clockest_bound_at(const struct clockest_result *r, uint64_t at_ns)
{
	double d = distance(r, at_ns), ppm = r->skew_bound_ppm < 1e3 ? r->skew_bound_ppm : 1e3;

	return r->offset_bound_ns + (uint64_t)(ppm * 1e-6 * (d < 0 ? -d : d));
}

/* How far over t a line gets that this hull alone holds back, with a rate of up to `most` if the corridor allows that. Concave in the rate. */
static double reach(const struct hull *h, const struct clockest_result *r, double t, double most)
{
	double low = clamp(-most, r->slowest, r->fastest), high = clamp(most, r->slowest, r->fastest);

	for (int i = 0; i < 40; i++) {
		double a = low + (high - low) / 3, b = high - (high - low) / 3;

		if ((hull_touch(h, a) + a * t - hull_touch(h, b) - b * t) * h->sign < 0)
			low = a;
		else
			high = b;
	}
	return hull_touch(h, low) + low * t;
}

int64_t clockest_live(const struct clockest *est, const struct clockest_result *r, uint64_t at_ns, uint64_t *bound_ns)
{
	const double t = at_ns >= est->base_t ? (double)(at_ns - est->base_t) : -(double)(est->base_t - at_ns);
	double middle, above, below;

	if (r->bent || !est->points) {
		*bound_ns = clockest_bound_at(r, at_ns);
		return clockest_offset_at(r, at_ns);
	}
	middle = (reach(&est->upper, r, t, SKEW_USUAL) + reach(&est->lower, r, t, SKEW_USUAL)) / 2;
	above = reach(&est->upper, r, t, SKEW_MAY) - middle;
	below = middle - reach(&est->lower, r, t, SKEW_MAY);
	*bound_ns = (uint64_t)whole_ns(above > below ? above : below) + 1;
	return est->base_v + whole_ns(middle);
}

/* ------------------------------------------------------------------------------------------------------------- adding */

static void take(struct clockest *est, uint64_t t1, int64_t t2, int64_t t3, uint64_t t4)
{
	const int64_t high = (int64_t)((uint64_t)t2 - t1), low = (int64_t)((uint64_t)t3 - t4);
	struct bound_pair *recent = &est->recent[est->recent_count++ % RECENT];

	if (!est->points) {
		est->base_t = t1;
		est->base_v = high;
	}
	*recent = (struct bound_pair){ .t = t4, .low = low, .high = high };
	hull_add(&est->upper, (struct point){ (double)(t1 - est->base_t), (double)(high - est->base_v) });
	hull_add(&est->lower, (struct point){ (double)(t4 - est->base_t), (double)(low - est->base_v) });
	est->sum_t += (double)(t1 - est->base_t);
	est->points++;
	est->last_t1 = t1;
}

static bool contradicts(const struct clockest *est, uint64_t t1, int64_t high, int64_t low)
{
	const uint32_t n = est->recent_count < RECENT ? est->recent_count : RECENT;

	for (uint32_t i = 0; i < n; i++) {
		const struct bound_pair *r = &est->recent[i];
		const uint64_t age = t1 > r->t ? t1 - r->t : 0;
		const int64_t slack = (int64_t)(age / 1000000 * SLACK_PPM) + 1000;

		if (low > r->high + slack || high < r->low - slack)
			return true;
	}
	return false;
}

static void segment_begin(struct clockest *est)
{
	if (est->points)
		evaluate(est, &est->closed[est->segment % CLOCKEST_SEGMENTS]);
	est->segment++;
	est->upper.count = est->lower.count = 0;
	est->points = 0;
	est->sum_t = 0;
	est->recent_count = 0;
}

enum clockest_taken clockest_add(struct clockest *est, uint64_t t1, int64_t t2, int64_t t3, uint64_t t4)
{
	const int64_t high = (int64_t)((uint64_t)t2 - t1), low = (int64_t)((uint64_t)t3 - t4);
	int n = est->doubted_count;

	/* Less than nothing on the way there and back: one of the stamps lies. */
	if (t4 < t1 || low > high || (est->points && t1 < est->last_t1))
		return CLOCKEST_IGNORED;
	if (!contradicts(est, t1, high, low)) {
		est->doubted_count = 0;
		take(est, t1, t2, t3, t4);
		return CLOCKEST_TAKEN;
	}
	if (n) {
		const int64_t before_high = (int64_t)((uint64_t)est->doubted[n - 1].t2 - est->doubted[n - 1].t1);
		const int64_t before_low = (int64_t)((uint64_t)est->doubted[n - 1].t3 - est->doubted[n - 1].t4);
		const int64_t slack = (int64_t)((t1 - est->doubted[n - 1].t1) / 1000000 * SLACK_PPM) + 1000;

		if (low > before_high + slack || high < before_low - slack)
			n = 0;
	}
	est->doubted[n].t1 = t1;
	est->doubted[n].t2 = t2;
	est->doubted[n].t3 = t3;
	est->doubted[n].t4 = t4;
	est->doubted_count = n + 1;
	if (est->doubted_count < CONFIRM)
		return CLOCKEST_DOUBTED;
	segment_begin(est);
	for (int i = 0; i < CONFIRM; i++)
		take(est, est->doubted[i].t1, est->doubted[i].t2, est->doubted[i].t3, est->doubted[i].t4);
	est->doubted_count = 0;
	return CLOCKEST_STEPPED;
}
