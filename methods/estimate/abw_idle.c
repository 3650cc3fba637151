/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "abw_idle.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define T_99 2.86 /* Student's t of BATCHES - 1 */
/* Groups of as many values just above the least delays are not apart. */
#define APART 0.5

/* Larger shares just above the least delays are perhaps noise, and the tolerance grows. */
#define NOISE_TAIL 0.04
#define TOLERANCE_STEP 1.5

enum { BATCHES = 20 };

static int by_time(const void *a, const void *b)
{
	const double x = ((const struct timed_delay *)a)->at_ns, y = ((const struct timed_delay *)b)->at_ns;

	return (x > y) - (x < y);
}

/*
 * An edge of the hull may be short, and then noise tilts it: the delays near the line through it give a better one,
 * by least squares.
 */
static double refined(const struct timed_delay *d, size_t count, double skew, double tolerance)
{
	for (int round = 0; round < 4; round++) {
		double least = INFINITY, n = 0, x = 0, y = 0, xx = 0, xy = 0;

		for (size_t i = 0; i < count; i++)
			least = fmin(least, d[i].delay_ns - skew * (d[i].at_ns - d[0].at_ns));
		for (int pass = 0; pass < 2; pass++)
			for (size_t i = 0; i < count; i++) {
				const double at = d[i].at_ns - d[0].at_ns, rest = d[i].delay_ns - skew * at - least;

				if (rest > tolerance * (round < 2 ? 4 : 2))
					continue;
				if (pass == 0) {
					n++;
					x += at;
					y += rest;
				} else {
					xx += (at - x / n) * (at - x / n);
					xy += (at - x / n) * (rest - y / n);
				}
			}
		if (n < 5 || xx <= 0 || fabs(skew + xy / xx) > SKEW_MOST)
			break;
		skew += xy / xx;
	}
	return skew;
}

int abw_skew(struct timed_delay *d, size_t count, double tolerance, double *skew)
{
	size_t *hull = calloc(count ? count : 1, sizeof *hull);

	if (!hull)
		return -ENOMEM;
	qsort(d, count, sizeof *d, by_time);
	*skew = count ? refined(d, count, skew_of(d, sizeof *d, count, hull), tolerance) : 0;
	free(hull);
	return 0;
}

/* Found by halving. */
static double median_above(const struct timed_delay *d, size_t count, double least)
{
	double low = 0, high = 0;

	for (size_t i = 0; i < count; i++)
		high = fmax(high, d[i].delay_ns - least);
	for (int step = 0; step < 20; step++) {
		const double middle = (low + high) / 2;
		size_t below = 0;

		for (size_t i = 0; i < count; i++)
			below += d[i].delay_ns - least <= middle;
		*(below * 2 < count ? &low : &high) = middle;
	}
	return high;
}

int abw_idle(struct timed_delay *d, size_t count, double tolerance, double most, struct abw_idle *r)
{
	size_t idle = 0, above = 0;
	double least = INFINITY, skew, square = 0, sum = 0, weight, error;

	*r = (struct abw_idle){ 0 };
	if (count < ABW_IDLE_LEAST)
		return -EINVAL;
	if (abw_skew(d, count, tolerance, &skew) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		d[i].delay_ns -= skew * d[i].at_ns;
		least = fmin(least, d[i].delay_ns);
	}
	for (double factor = 1;; factor *= TOLERANCE_STEP) {
		idle = above = 0;
		for (size_t i = 0; i < count; i++) {
			idle += d[i].delay_ns <= least + tolerance * factor;
			above += d[i].delay_ns > least + tolerance * factor &&
				 d[i].delay_ns <= least + 2 * tolerance * factor;
		}
		/* Noise beyond the tolerance looks like short waits. */
		if ((double)above > NOISE_TAIL * (double)idle && tolerance * factor * TOLERANCE_STEP <= most)
			continue;
		tolerance *= factor;
		break;
	}
	/*
	 * Short waits are among the least delays; just above them there are as many again, but for those that noise
	 * has moved there.
	 */
	for (size_t i = 0; i < count; i++)
		sum += d[i].delay_ns <= least + tolerance ? d[i].delay_ns - least : 0;
	weight = idle > above ? 1 - (sum - (double)above * tolerance / 2) / (double)(idle - above) / tolerance : 1;
	weight = fmin(fmax(weight, 0), 1);
	r->share = fmax((double)idle - weight * (double)above, 0) / (double)count;
	r->skew_ppm = skew * 1e6;
	r->median_ns = median_above(d, count, least);
	r->resolved = idle >= 5 && (double)above <= APART * (double)idle;
	for (size_t batch = 0; batch < BATCHES; batch++) {
		const size_t first = batch * count / BATCHES, end = (batch + 1) * count / BATCHES;
		double own = 0;

		for (size_t i = first; i < end; i++)
			own += d[i].delay_ns <= least + tolerance       ? 1
			       : d[i].delay_ns <= least + 2 * tolerance ? -weight
									: 0;
		own /= (double)(end - first);
		square += (own - r->share) * (own - r->share);
	}
	error = fmax(T_99 * sqrt(square / BATCHES / (BATCHES - 1)), 3.0 / (double)count);
	r->low = fmax(r->share - error, 0);
	r->high = fmin(r->share + error, 1);
	return 0;
}
