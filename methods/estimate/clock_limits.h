/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Limits of the offset of two clocks (clock_offset.h), from above or from below, as a convex hull or as cones. */
#ifndef KTRXER_METHODS_CLOCK_LIMITS_H
#define KTRXER_METHODS_CLOCK_LIMITS_H

#include "clock_offset.h"

#define LIMITS_RATE (CLOCK_OFFSET_RATE_PPM * 1e-6)

/* Times are ns relative to the segment's first; doubles are exact up to 2^53, a hundred days. */
struct point {
	double t, v;
};

/* Limits of the offset. `sign` 1: from above, -1: from below. */
struct limits {
	struct point *points;
	int count, most; /* when it is full some go, which only widens the uncertainty */
	int sign;
	double gap; /* between two points and the next but one: grows when there is no room */
};

void limits_hull_add(struct limits *hull, struct point point);
const struct point *limits_hull_touch(const struct limits *hull, double slope);
double limits_hull_slope(const struct limits *hull, double t);
void limits_cones_add(struct limits *cones, struct point point);
double limits_cones_at(const struct limits *cones, double t, double rate);

#endif
