/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "ppt_compound.h"

#include "estimate_sort.h"

#include <errno.h>
#include <stdlib.h>

/* Half the median time from a heading packet to the next; INT64_MAX with fewer than two. */
static int half_interval(const struct ppt_arrival *arrivals, size_t count, uint32_t heading, int64_t *half)
{
	int64_t *times = calloc(count ? count : 1, sizeof *times), last = 0;
	size_t n = 0;
	bool any = false;

	if (!times)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		if (arrivals[i].size_bytes != heading)
			continue;
		if (any && __builtin_sub_overflow(arrivals[i].time_ns, last, &times[n]) == 0)
			n++;
		last = arrivals[i].time_ns;
		any = true;
	}
	estimate_sort(times, n);
	*half = n && times[n / 2] > 1 ? times[n / 2] / 2 : INT64_MAX;
	free(times);
	return 0;
}

int ppt_compound(const struct ppt_arrival *arrivals, size_t count, uint32_t *sizes, int64_t *gaps_ns, struct ppt_compound *r)
{
	int64_t half;
	int rc;

	*r = (struct ppt_compound){ 0 };
	for (size_t i = 0; i < count; i++)
		if (arrivals[i].size_bytes > r->heading_bytes)
			r->heading_bytes = arrivals[i].size_bytes;
	rc = half_interval(arrivals, count, r->heading_bytes, &half);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < count; i++) {
		int64_t gap;

		if (arrivals[i].size_bytes != r->heading_bytes) {
			r->trailing_alone++;
			continue;
		}
		if (i + 1 == count || arrivals[i + 1].size_bytes == r->heading_bytes) {
			r->heading_alone++;
			continue;
		}
		i++;
		if (__builtin_sub_overflow(arrivals[i].time_ns, arrivals[i - 1].time_ns, &gap) || gap < 0) {
			r->backwards++;
		} else if (gap > half) {
			r->split++;
		} else {
			sizes[r->probes] = arrivals[i].size_bytes;
			gaps_ns[r->probes++] = gap;
		}
	}
	return r->probes ? 0 : -EINVAL;
}
