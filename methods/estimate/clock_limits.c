/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "clock_limits.h"

/* The tighter one of two limits within `gap` stays. */
static void limits_put(struct limits *l, struct point p)
{
	struct point *last = l->points + l->count - 1;

	if (l->count < 2 || p.t - last[-1].t >= l->gap)
		l->points[l->count++] = p;
	else if ((p.v - last->v) * l->sign <= 0)
		*last = p;
}

static void limits_push(struct limits *l, struct point p)
{
	if (l->count == l->most) {
		const double span = p.t - l->points[0].t;
		const int count = l->count;

		l->gap = 4 * span / l->most > 2 * l->gap ? 4 * span / l->most : 2 * l->gap;
		l->count = 0;
		for (int i = 0; i < count; i++)
			limits_put(l, l->points[i]);
	}
	limits_put(l, p);
}

/* Andrew's monotone chain: times never decrease. */
void limits_hull_add(struct limits *h, struct point p)
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
	limits_push(h, p);
}

/*
 * The point in which a line of this slope touches the hull. The slopes of the edges grow (from above) or fall (from
 * below).
 */
const struct point *limits_hull_touch(const struct limits *h, double slope)
{
	int low = 0, high = h->count - 1;

	while (low < high) {
		const int middle = (low + high) / 2;
		const struct point *a = &h->points[middle], *b = a + 1;

		if ((b->v - a->v - slope * (b->t - a->t)) * h->sign >= 0)
			high = middle;
		else
			low = middle + 1;
	}
	return &h->points[low];
}

/* The slope of the edge over t. */
double limits_hull_slope(const struct limits *h, double t)
{
	int low = 0, high = h->count - 1;

	if (h->count < 2)
		return 0;
	while (high - low > 1) {
		const int middle = (low + high) / 2;

		if (h->points[middle].t <= t)
			low = middle;
		else
			high = middle;
	}
	return (h->points[high].v - h->points[low].v) / (h->points[high].t - h->points[low].t);
}

/*
 * Of two limits of which the one's cone contains the other's tip, only the other counts: so neighbours suffice in
 * limits_cones_at().
 */
void limits_cones_add(struct limits *c, struct point p)
{
	if (c->count) {
		const struct point *last = &c->points[c->count - 1];

		if ((last->v - p.v) * c->sign + LIMITS_RATE * (p.t - last->t) <= 0)
			return;
	}
	while (c->count) {
		const struct point *last = &c->points[c->count - 1];

		if ((p.v - last->v) * c->sign + LIMITS_RATE * (p.t - last->t) > 0)
			break;
		c->count--;
	}
	limits_push(c, p);
}

double limits_cones_at(const struct limits *c, double t, double rate)
{
	int low = 0, high = c->count;
	double left, right;

	/* The first point behind t. */
	while (low < high) {
		const int middle = (low + high) / 2;

		if (c->points[middle].t <= t)
			low = middle + 1;
		else
			high = middle;
	}
	left = low ? c->points[low - 1].v + c->sign * rate * (t - c->points[low - 1].t) : 0;
	right = low < c->count ? c->points[low].v + c->sign * rate * (c->points[low].t - t) : 0;
	if (!low || low == c->count)
		return low ? left : right;
	return (left - right) * c->sign < 0 ? left : right;
}
