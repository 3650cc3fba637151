/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "ppt_compound.h"

#include "error.h"
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

int ppt_compound(const struct ppt_arrival *arrivals, size_t count, uint32_t *sizes, int64_t *gaps_ns,
		 struct ppt_compound *r)
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
		if (i + 1 == count || arrivals[i + 1].size_bytes == r->heading_bytes ||
		    arrivals[i + 1].flow != arrivals[i].flow) {
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

/* Both sizes of the samples. */
static int two_sizes(const uint32_t *sizes, size_t count, uint32_t *size1, uint32_t *size2, struct ktrxer_error *err)
{
	if (*size1 || *size2) {
		if (*size1 && *size2 && *size1 != *size2)
			return 0;
		return ktrxer_fail(err, -EINVAL,
				   "trailing packets of %u and %u bytes: the slope needs two different sizes", *size1,
				   *size2);
	}
	for (size_t i = 0; i < count; i++) {
		if (!*size1 || sizes[i] == *size1)
			*size1 = sizes[i];
		else if (!*size2 || sizes[i] == *size2)
			*size2 = sizes[i];
		else
			return ktrxer_fail(err, -EINVAL,
					   "trailing packets have three or more sizes (%u, %u, %u bytes): choose two",
					   *size1, *size2, sizes[i]);
	}
	if (!*size2)
		return ktrxer_fail(err, -EINVAL,
				   "all trailing packets have the same size (%u bytes): the slope needs two sizes",
				   *size1);
	return 0;
}

int ppt_trains_split(struct ppt_train trains[2], const uint32_t *sizes, const int64_t *gaps_ns, size_t count,
		     uint32_t size1, uint32_t size2, struct ktrxer_error *err)
{
	int rc;

	trains[0] = trains[1] = (struct ppt_train){ 0 };
	rc = two_sizes(sizes, count, &size1, &size2, err);
	if (rc < 0)
		return rc;
	trains[0].size_bytes = size1;
	trains[1].size_bytes = size2;
	for (int t = 0; t < 2; t++) {
		size_t n = 0;

		for (size_t i = 0; i < count; i++)
			n += sizes[i] == trains[t].size_bytes;
		if (!n)
			return ktrxer_fail(err, -EINVAL, "there is no trailing packet of %u bytes",
					   trains[t].size_bytes);
		trains[t].gaps_ns = calloc(n, sizeof *trains[t].gaps_ns);
		if (!trains[t].gaps_ns)
			return ktrxer_fail(err, -ENOMEM, "no memory for %zu gaps", n);
		for (size_t i = 0; i < count; i++)
			if (sizes[i] == trains[t].size_bytes)
				trains[t].gaps_ns[trains[t].count++] = gaps_ns[i];
	}
	return 0;
}

void ppt_trains_free(struct ppt_train trains[2])
{
	free(trains[0].gaps_ns);
	free(trains[1].gaps_ns);
}
