/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "clock_offset.h"

#include "clock_limits.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	VERTICES = 2048,  /* of one set of limits, in bounded memory */
	CONFIRM = 3,      /* round trips that agree with each other and not with those before: a step */
	GRID = 128,       /* parts of a settled segment */
	RATE_POINTS = 16, /* round trips that a rate beyond the model is seen in, at least */
	RATE_PART = 8,    /* in an eighth of the segment, at least */
	WINDOWS = 128,    /* between which the offset is compared */
	SHORTEST = 8,     /* windows that show how near the round trips come to the least possible one */
};
#define RATE LIMITS_RATE
#define RATE_MOST 5e-3
#define RATE_ROOM 100e-6 /* of the rate that was seen: what two oscillators add to it */
#define RATE_TIME 5e8    /* in a shorter time jitter looks like a rate */
#define DRIFT (CLOCK_OFFSET_DRIFT_PPM_PER_S * 1e-15) /* a nanosecond */
#define USUAL_RATE 50e-6   /* of two crystals: the estimate prefers such rates, the uncertainty does not */
#define KNOWN_SKEW_PPM 1e3
#define WINDOW_FIRST 1e6 /* it doubles when the segment outgrows the windows */
#define STAMP_ERROR_NS 1e3 /* clocks without a fine counter tick in microseconds */

/*
 * All limits of a smooth offset: one whose rate changes by at most `drift`. Seen from a time x, the offset at t differs
 * from a straight line by at most drift (t - x)^2 / 2. The part of this that depends on x is linear in t. So the convex
 * hull of limit + sign * drift t^2 / 2 serves each x.
 */
struct corridor {
	struct limits upper, lower;
	double drift, rate;
};

struct span {
	double low, high, middle;
};

/* The shortest round trip of a part of the segment: its time, its limit from above, and its length; 0: none. */
struct window {
	double t, high, rtt;
};

struct segment {
	struct point *room;
	int vertices;
	struct corridor straight, curved;
	struct limits upper,
		lower; /* of an offset whose rate is at most `rate`, in any pattern: no cone of the slope RATE
				contains another one's tip, so none of a larger slope does */
	double rate;   /* RATE, or the larger one that the round trips show (rate_find) */
	bool any_rate; /* the offset changes faster than that, too: a step that contradicts no round trip */
	struct window windows[WINDOWS];
	double width, widen; /* of a window; the largest error of stamps */
	uint64_t base_t, last_t1, last_t4;
	int64_t base_v;
	double sum_t, end;
	uint64_t points;
	bool free_running, drifts;
	bool settled;
	struct span grid[GRID + 1]; /* of the curved corridor */
};

struct clock_offset {
	struct segment segments[2];
	struct segment *open, *longest; /* longest: of those before the open one */
	uint32_t steps;
	struct clock_exchange doubted[CONFIRM];
	int doubted_count;
};

static void segment_clear(struct segment *s)
{
	struct limits *const sets[] = { &s->straight.upper, &s->straight.lower, &s->curved.upper,
					&s->curved.lower,   &s->upper,          &s->lower };
	struct point *const room = s->room;
	const int vertices = s->vertices;

	memset(s, 0, sizeof *s);
	s->room = room;
	s->vertices = vertices;
	for (int i = 0; i < 6; i++) {
		sets[i]->points = room + (ptrdiff_t)i * vertices;
		sets[i]->most = vertices;
		sets[i]->sign = i % 2 ? -1 : 1;
	}
	s->curved.drift = DRIFT;
	s->rate = s->straight.rate = s->curved.rate = RATE;
	s->free_running = true;
	s->width = WINDOW_FIRST;
}

int clock_offset_new(struct clock_offset **out)
{
	return clock_offset_new_of(out, VERTICES);
}

int clock_offset_new_of(struct clock_offset **out, int vertices)
{
	struct clock_offset *est = calloc(1, sizeof *est);

	*out = NULL;
	if (!est)
		return -ENOMEM;
	for (int i = 0; i < 2; i++) {
		est->segments[i].room = calloc(6 * (size_t)vertices, sizeof(struct point));
		est->segments[i].vertices = vertices;
		if (!est->segments[i].room) {
			clock_offset_free(est);
			return -ENOMEM;
		}
		segment_clear(&est->segments[i]);
	}
	est->open = &est->segments[0];
	est->longest = &est->segments[1];
	*out = est;
	return 0;
}

void clock_offset_free(struct clock_offset *est)
{
	if (!est)
		return;
	free(est->segments[0].room);
	free(est->segments[1].room);
	free(est);
}

/* The highest (of the lower limits: the lowest) offset at t of which the rate there is `rate`. */
static double corridor_end(const struct corridor *c, const struct limits *l, double t, double rate)
{
	const double bend = l->sign * c->drift * t, slope = rate + bend;
	const struct point *p = limits_hull_touch(l, slope);

	return p->v - slope * p->t + rate * t + bend * t / 2;
}

static double room_at(const struct corridor *c, double t, double rate)
{
	return corridor_end(c, &c->upper, t, rate) - corridor_end(c, &c->lower, t, rate);
}

/*
 * The rate that leaves the most room. Room is concave in the rate, and its slope is the distance of the two points that
 * are touched.
 */
static double widest_rate(const struct corridor *c, double t)
{
	double low = -c->rate, high = c->rate;

	for (int i = 0; i < 40; i++) {
		const double rate = (low + high) / 2;

		if (limits_hull_touch(&c->lower, rate - c->drift * t)->t >
		    limits_hull_touch(&c->upper, rate + c->drift * t)->t)
			low = rate;
		else
			high = rate;
	}
	return (low + high) / 2;
}

/* From a rate that fits to the last one that does, in the direction of `limit`. */
static double last_rate(const struct corridor *c, double t, double fits, double limit)
{
	if (room_at(c, t, limit) >= 0)
		return limit;
	for (int i = 0; i < 40; i++) {
		const double middle = (fits + limit) / 2;

		if (room_at(c, t, middle) >= 0)
			fits = middle;
		else
			limit = middle;
	}
	return fits;
}

static double clamp(double x, double low, double high)
{
	return x < low ? low : x > high ? high : x;
}

/* The end of what such rates can reach at t: it lies on the hull, and over its ends on the line of the last rate. */
static double farthest(const struct corridor *c, const struct limits *l, double t, double slowest, double fastest)
{
	double rate;

	if (t <= l->points[0].t)
		rate = l->sign > 0 ? slowest : fastest;
	else if (t >= l->points[l->count - 1].t)
		rate = l->sign > 0 ? fastest : slowest;
	else
		rate = clamp(limits_hull_slope(l, t) - l->sign * c->drift * t, slowest, fastest);
	return corridor_end(c, l, t, rate);
}

static struct span reach(const struct corridor *c, double t, double slowest, double fastest)
{
	struct span s = { .low = farthest(c, &c->lower, t, slowest, fastest),
			  .high = farthest(c, &c->upper, t, slowest, fastest) };

	s.middle = (s.high + s.low) / 2;
	return s;
}

/* False: no offset that is as smooth as that fits. */
static bool corridor_at(const struct corridor *c, double t, struct span *span)
{
	const double widest = widest_rate(c, t);
	double slowest, fastest;

	if (room_at(c, t, widest) < -1)
		return false;
	slowest = last_rate(c, t, widest, -c->rate);
	fastest = last_rate(c, t, widest, c->rate);
	*span = reach(c, t, slowest, fastest);
	/* An idle second before a load leaves many rates possible: the likely ones give the estimate. */
	span->middle = reach(c, t, clamp(-USUAL_RATE, slowest, fastest), clamp(USUAL_RATE, slowest, fastest)).middle;
	return true;
}

/* A far end may send any stamp: 120 years are more than two clocks can differ by on the wire. */
static int64_t whole_ns(double ns)
{
	return (int64_t)clamp(ns, -4e18, 4e18);
}

static double time_in(const struct segment *s, uint64_t at_ns)
{
	return at_ns >= s->base_t ? (double)(at_ns - s->base_t) : -(double)(s->base_t - at_ns);
}

static double above_base(const struct segment *s, int64_t limit)
{
	return (double)(int64_t)((uint64_t)limit - (uint64_t)s->base_v);
}

/*
 * The curved corridor from the settled grid: between two of its points a smooth offset leaves the chord by at most
 * drift h^2 / 8.
 */
static struct span grid_at(const struct segment *s, double t)
{
	const double h = s->end / GRID, x = clamp(t / h, 0, GRID);
	const int i = x >= GRID ? GRID - 1 : (int)x;
	const struct span *a = &s->grid[i], *b = a + 1;
	const double part = x - i, slack = DRIFT * h * h / 8;

	return (struct span){ .low = a->low + (b->low - a->low) * part - slack,
			      .high = a->high + (b->high - a->high) * part + slack,
			      .middle = a->middle + (b->middle - a->middle) * part };
}

static struct span span_at(const struct segment *s, double t)
{
	const double rate = s->any_rate ? 1 : s->rate;
	struct span cones = { .low = limits_cones_at(&s->lower, t, rate), .high = limits_cones_at(&s->upper, t, rate) },
		    smooth;
	bool fits = !s->drifts && !s->any_rate;

	if (fits && s->settled && t >= 0 && t <= s->end)
		smooth = grid_at(s, t);
	else
		fits = fits && corridor_at(&s->curved, t, &smooth);
	if (fits && s->free_running) {
		cones.low = smooth.low > cones.low ? smooth.low : cones.low;
		cones.high = smooth.high < cones.high ? smooth.high : cones.high;
	}
	/* Limits may contradict each other by the error of stamps: then all between them is possible. */
	if (cones.low > cones.high)
		cones = (struct span){ .low = cones.high, .high = cones.low };
	cones.middle = fits ? clamp(smooth.middle, cones.low, cones.high) : (cones.low + cones.high) / 2;
	return cones;
}

static const struct segment *segment_of(const struct clock_offset *est, enum clock_offset_segment which)
{
	return which == CLOCK_OFFSET_LONGEST && est->longest->points > est->open->points ? est->longest : est->open;
}

static void window_put(struct window *to, const struct window *w)
{
	if (w->rtt && (!to->rtt || w->rtt < to->rtt))
		*to = *w;
}

static void window_add(struct segment *s, const struct window *w)
{
	for (; w->t >= s->width * WINDOWS; s->width *= 2)
		for (int i = 0; i < WINDOWS; i++) {
			const struct window one = s->windows[i];

			s->windows[i].rtt = 0;
			window_put(&s->windows[i / 2], &one);
		}
	window_put(&s->windows[(int)(w->t / s->width)], w);
}

/*
 * The change of the offset between the shortest round trips of two windows, less what queues can have added to them
 * (the part of the round trip above the least one) and `rate`; > 0: the offset changes faster.
 */
static double change_beyond(const struct window *a, const struct window *b, double least, double rate)
{
	if (!a->rtt || !b->rtt)
		return 0;
	return fabs(b->high - a->high) - (a->rtt > b->rtt ? a->rtt : b->rtt) + least - STAMP_ERROR_NS -
	       rate * (b->t - a->t);
}

/*
 * Two clocks that nothing synchronises may differ by more than the model allows (a bad crystal, a virtual machine), and
 * a clock may step. The limits contradict the model only after the room of a round trip is used up: by a rate after
 * minutes, by a short step never. Until then the true offset may be outside of the cones. The
 * shortest round trips show both much earlier: a rate over an eighth of the segment or more, a step between neighbours.
 */
static void rate_find(struct segment *s)
{
	const int used = (int)(s->end / s->width) + 1;
	double shortest[SHORTEST + 1], least;
	int count = 0;

	s->rate = RATE;
	s->any_rate = false;
	for (int i = 0; i < WINDOWS; i++) {
		int at = count;

		if (!s->windows[i].rtt)
			continue;
		for (; at && shortest[at - 1] > s->windows[i].rtt; at--)
			shortest[at] = shortest[at - 1];
		shortest[at] = s->windows[i].rtt;
		count += count < SHORTEST;
	}
	if (s->points < RATE_POINTS || count < SHORTEST)
		return;
	/* The path may be shorter than that. */
	least = 2 * shortest[0] - shortest[SHORTEST - 1] - 4 * s->widen;
	for (int apart = used / RATE_PART + 1; apart < WINDOWS && s->end >= RATE_TIME; apart *= 2)
		for (int i = 0; i + apart < WINDOWS; i++) {
			const struct window *a = &s->windows[i], *b = a + apart;
			const double rate = change_beyond(a, b, least, 0) / (b->t - a->t) + RATE_ROOM;

			if (b->rtt && rate > s->rate && rate > RATE + RATE_ROOM)
				s->rate = rate < RATE_MOST ? rate : RATE_MOST;
		}
	for (int i = 0; i < WINDOWS; i++)
		for (int j = i + 1, near = 0; j < WINDOWS && near < 2; near += s->windows[j++].rtt != 0)
			s->any_rate |= change_beyond(&s->windows[i], &s->windows[j], least, s->rate) > 0;
	s->straight.rate = s->curved.rate = s->rate;
}

static void segment_settle(struct segment *s)
{
	if (!s->points || s->end <= 0)
		return;
	rate_find(s);
	for (int i = 0; i <= GRID && !s->drifts; i++)
		s->drifts = !corridor_at(&s->curved, s->end * i / GRID, &s->grid[i]);
	s->settled = true;
}

void clock_offset_settle(struct clock_offset *est)
{
	segment_settle(est->open);
	segment_settle(est->longest);
}

double clock_offset_rate(const struct clock_offset *est, enum clock_offset_segment which)
{
	return segment_of(est, which)->rate;
}

uint32_t clock_offset_steps(const struct clock_offset *est)
{
	return est->steps;
}

/*
 * The mean rate, from both ends of the segment. Where a constant rate fits, the hull edges over the mean time estimate
 * it best (Moon, Skelly, Towsley).
 */
static void skew_find(const struct segment *s, struct clock_offset_result *r)
{
	const struct span first = span_at(s, 0), last = span_at(s, s->end);
	const double widest = widest_rate(&s->straight, 0), mean = s->sum_t / (double)s->points;
	double low, high, skew;

	if (s->end <= 0)
		return;
	low = (last.low - first.high) / s->end;
	high = (last.high - first.low) / s->end;
	skew = (last.middle - first.middle) / s->end;
	if (room_at(&s->straight, 0, widest) >= 0)
		skew = (limits_hull_slope(&s->straight.upper, mean) + limits_hull_slope(&s->straight.lower, mean)) / 2;
	skew = clamp(skew, low, high);
	r->skew_ppm = skew * 1e6;
	r->skew_bound_ppm = (high - skew > skew - low ? high - skew : skew - low) * 1e6;
	r->skew_known = r->skew_bound_ppm < KNOWN_SKEW_PPM;
	if (!r->skew_known)
		r->skew_ppm = 0;
}

void clock_offset_result(const struct clock_offset *est, enum clock_offset_segment which, struct clock_offset_result *r)
{
	const struct segment *s = segment_of(est, which);

	memset(r, 0, sizeof *r);
	if (!s->points)
		return;
	r->points = s->points;
	r->from_ns = s->base_t;
	r->to_ns = s->last_t1;
	r->at_ns = s->base_t + (uint64_t)(s->end / 2);
	r->free_running = s->free_running;
	r->drifts = s->drifts;
	r->offset_ns = clock_offset_at(est, which, r->at_ns, &r->offset_bound_ns);
	skew_find(s, r);
}

int64_t clock_offset_at(const struct clock_offset *est, enum clock_offset_segment which, uint64_t at_ns,
			uint64_t *bound_ns)
{
	return clock_offset_within(est, which, at_ns, INT64_MIN, INT64_MAX, bound_ns);
}

int64_t clock_offset_within(const struct clock_offset *est, enum clock_offset_segment which, uint64_t at_ns,
			    int64_t low_ns, int64_t high_ns, uint64_t *bound_ns)
{
	const struct segment *s = segment_of(est, which);
	struct span span = span_at(s, time_in(s, at_ns));
	const double low = low_ns == INT64_MIN ? span.low : above_base(s, low_ns),
		     high = high_ns == INT64_MAX ? span.high : above_base(s, high_ns);
	double middle;

	/* Neighbours then show nothing. */
	if (s->any_rate && low_ns != INT64_MIN && high_ns != INT64_MAX)
		span = (struct span){ low, high, (low + high) / 2 };
	if (low > span.high + STAMP_ERROR_NS || high < span.low - STAMP_ERROR_NS) {
		*bound_ns = UINT64_MAX;
		return (int64_t)((uint64_t)s->base_v + (uint64_t)whole_ns(span.middle));
	}
	span.low = clamp(low, span.low, span.high);
	span.high = clamp(high, span.low, span.high);
	middle = (double)whole_ns(clamp(span.middle, span.low, span.high));
	/* + 1: rounding to nanoseconds */
	*bound_ns =
		(uint64_t)whole_ns(span.high - middle > middle - span.low ? span.high - middle : middle - span.low) + 1;
	return (int64_t)((uint64_t)s->base_v + (uint64_t)whole_ns(middle));
}

int64_t clock_offset_line(const struct clock_offset_result *r, uint64_t at_ns)
{
	const double d = at_ns >= r->at_ns ? (double)(at_ns - r->at_ns) : -(double)(r->at_ns - at_ns);

	return (int64_t)((uint64_t)r->offset_ns + (uint64_t)whole_ns(r->skew_ppm * 1e-6 * d));
}

uint64_t clock_offset_line_bound(const struct clock_offset *est, enum clock_offset_segment which, uint64_t from_ns,
				 uint64_t to_ns)
{
	const uint64_t part = to_ns > from_ns ? (to_ns - from_ns) / GRID + 1 : 1;
	struct clock_offset_result r;
	uint64_t most = 0;

	clock_offset_result(est, which, &r);
	for (int i = 0; i <= GRID && r.points; i++) {
		const uint64_t at_ns = from_ns + part * (uint64_t)i;
		uint64_t bound_ns;
		const int64_t apart = (int64_t)((uint64_t)clock_offset_at(est, which, at_ns, &bound_ns) -
						(uint64_t)clock_offset_line(&r, at_ns));

		bound_ns += (uint64_t)(apart < 0 ? -apart : apart);
		most = bound_ns > most ? bound_ns : most;
	}
	/* The offset between two of these times leaves their chord by at most this. */
	return most + (uint64_t)(segment_of(est, which)->rate * (double)part / 2);
}

static void corridor_add(struct corridor *c, struct point high, struct point low)
{
	high.v += c->drift * high.t * high.t / 2;
	low.v -= c->drift * low.t * low.t / 2;
	limits_hull_add(&c->upper, high);
	limits_hull_add(&c->lower, low);
}

struct pair {
	int64_t high, low;
};

static struct pair limits_of(const struct clock_exchange *x)
{
	return (struct pair){ (int64_t)((uint64_t)x->t2_ns - x->t1_ns), (int64_t)((uint64_t)x->t3_ns - x->t4_ns) };
}

static void take(struct segment *s, const struct clock_exchange *x)
{
	const struct pair limits = limits_of(x);
	struct point high, low;

	if (!s->points) {
		s->base_t = x->t1_ns;
		s->base_v = limits.high;
	}
	high = (struct point){ time_in(s, x->t1_ns), above_base(s, limits.high) + (double)x->widen_ns };
	low = (struct point){ time_in(s, x->t4_ns), above_base(s, limits.low) - (double)x->widen_ns };
	corridor_add(&s->straight, high, low);
	corridor_add(&s->curved, high, low);
	limits_cones_add(&s->upper, high);
	limits_cones_add(&s->lower, low);
	s->widen = (double)x->widen_ns > s->widen ? (double)x->widen_ns : s->widen;
	window_add(s, &(struct window){ low.t, high.v, high.v - low.v });
	s->sum_t += high.t;
	s->end = low.t;
	s->points++;
	s->last_t1 = x->t1_ns;
	s->last_t4 = x->t4_ns;
	s->free_running &= x->free_running;
	s->settled = false;
	if (!(s->points & (s->points - 1)))
		rate_find(s);
}

static bool contradicts(const struct segment *s, const struct clock_exchange *x)
{
	const struct pair limits = limits_of(x);
	const double slack = (double)x->widen_ns + STAMP_ERROR_NS;

	if (!s->points)
		return false;
	return above_base(s, limits.low) - slack > limits_cones_at(&s->upper, time_in(s, x->t4_ns), s->rate) ||
	       above_base(s, limits.high) + slack < limits_cones_at(&s->lower, time_in(s, x->t1_ns), s->rate);
}

static bool disagree(const struct clock_exchange *a, const struct clock_exchange *b)
{
	const struct pair x = limits_of(a), y = limits_of(b);
	const double slack =
		RATE * (double)(b->t4_ns - a->t1_ns) + (double)a->widen_ns + (double)b->widen_ns + STAMP_ERROR_NS;

	return (double)y.low - (double)x.high > slack || (double)x.low - (double)y.high > slack;
}

static void segment_begin(struct clock_offset *est)
{
	if (est->open->points > est->longest->points) {
		struct segment *closed = est->open;

		est->open = est->longest;
		est->longest = closed;
	}
	segment_clear(est->open);
	est->steps++;
}

enum clock_offset_taken clock_offset_add(struct clock_offset *est, const struct clock_exchange *x)
{
	const struct pair limits = limits_of(x);
	const int n = est->doubted_count;
	struct segment *s = est->open;

	/* Less than no time on the path: one of the stamps is wrong. */
	if (x->t4_ns < x->t1_ns || limits.low > limits.high ||
	    (s->points && (x->t1_ns < s->last_t1 || x->t4_ns < s->last_t4)))
		return CLOCK_OFFSET_IGNORED;
	if (!contradicts(s, x)) {
		est->doubted_count = 0;
		take(s, x);
		return CLOCK_OFFSET_TAKEN;
	}
	if (n && (x->t1_ns < est->doubted[n - 1].t1_ns || x->t4_ns < est->doubted[n - 1].t4_ns ||
		  disagree(&est->doubted[n - 1], x)))
		est->doubted_count = 0;
	est->doubted[est->doubted_count++] = *x;
	if (est->doubted_count < CONFIRM)
		return CLOCK_OFFSET_DOUBTED;
	segment_begin(est);
	for (int i = 0; i < CONFIRM; i++)
		take(est->open, &est->doubted[i]);
	est->doubted_count = 0;
	return CLOCK_OFFSET_STEPPED;
}
