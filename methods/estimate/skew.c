/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "skew.h"

#include <math.h>

double skew_of(const struct timed_delay *first, size_t size, size_t count, size_t *hull)
{
	const char *const base = (const char *)first;
	double mean = 0;
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		const struct timed_delay *const d = (const void *)(base + i * size);

		mean += d->at_ns / (double)count;
		while (n >= 2) {
			const struct timed_delay *a = (const void *)(base + hull[n - 2] * size),
						 *b = (const void *)(base + hull[n - 1] * size);

			if ((b->delay_ns - a->delay_ns) * (d->at_ns - a->at_ns) <
			    (d->delay_ns - a->delay_ns) * (b->at_ns - a->at_ns))
				break;
			n--;
		}
		hull[n++] = i;
	}
	for (size_t i = 1; i < n; i++) {
		const struct timed_delay *a = (const void *)(base + hull[i - 1] * size),
					 *b = (const void *)(base + hull[i] * size);

		if (b->at_ns >= mean && b->at_ns > a->at_ns) {
			const double slope = (b->delay_ns - a->delay_ns) / (b->at_ns - a->at_ns);

			return fabs(slope) <= SKEW_MOST ? slope : 0;
		}
	}
	return 0;
}
