/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "ip_capacity.h"

#include <errno.h>
#include <math.h>

#define RISING 1.05 /* times the highest rate before the last sub-interval */

double ip_capacity_bit_s(const struct ip_capacity_interval *i)
{
	return i->lasts_ns ? (double)i->ip_bytes * 8e9 / (double)i->lasts_ns : 0;
}

static double loss_of(uint64_t lost, uint64_t received)
{
	return lost || received ? (double)lost / ((double)lost + (double)received) : (double)NAN;
}

static void range_add(struct ip_capacity_range *range, uint64_t min_ns, uint64_t max_ns)
{
	if (min_ns == IP_CAPACITY_UNKNOWN || max_ns == IP_CAPACITY_UNKNOWN)
		return;
	if (range->min_ns == IP_CAPACITY_UNKNOWN || min_ns < range->min_ns)
		range->min_ns = min_ns;
	if (range->max_ns == IP_CAPACITY_UNKNOWN || max_ns > range->max_ns)
		range->max_ns = max_ns;
}

/*
 * A receiver that stood still ends its sub-interval late, and counts what came meanwhile in the next one: together they
 * have the rate of the path.
 */
static struct ip_capacity_interval with_next(const struct ip_capacity_interval *one, bool late)
{
	struct ip_capacity_interval i = one[0];

	if (!late)
		return i;
	i.datagrams += one[1].datagrams;
	i.ip_bytes += one[1].ip_bytes;
	i.lasts_ns += one[1].lasts_ns;
	i.lost += one[1].lost;
	return i;
}

static struct ip_capacity_mode mode_of(const struct ip_capacity_interval *intervals, uint32_t first, uint32_t count,
				       uint64_t late_ns)
{
	struct ip_capacity_mode m = { .first = first, .count = count, .at = first, .loss = (double)NAN };
	const struct ip_capacity_interval *at;

	for (uint32_t i = first; i < first + count; i++) {
		const bool late = intervals[i].lasts_ns > late_ns && i + 1 < first + count;
		const struct ip_capacity_interval one = with_next(&intervals[i], late);

		if (ip_capacity_bit_s(&one) > m.bit_s) {
			m.bit_s = ip_capacity_bit_s(&one);
			m.loss = loss_of(one.lost, one.datagrams);
			m.at = i;
		}
		i += late;
	}
	if (!count)
		return m;
	at = &intervals[m.at];
	m.variation = (struct ip_capacity_range){ at->variation_min_ns, at->variation_max_ns };
	m.rtt = (struct ip_capacity_range){ at->rtt_min_ns, at->rtt_max_ns };
	return m;
}

int ip_capacity_of(struct ip_capacity_result *r, const struct ip_capacity_interval *intervals, uint32_t count,
		   uint32_t first_mode, uint64_t low_ns, uint64_t late_ns, double end_bit_s)
{
	const struct ip_capacity_range none = { IP_CAPACITY_UNKNOWN, IP_CAPACITY_UNKNOWN };
	uint64_t bytes = 0, lasts_ns = 0;

	*r = (struct ip_capacity_result){ .variation = none, .rtt = none };
	for (uint32_t i = 0; i < count; i++) {
		const struct ip_capacity_interval *one = &intervals[i];

		bytes += one->ip_bytes;
		lasts_ns += one->lasts_ns;
		r->late += one->lasts_ns > late_ns;
		r->datagrams += one->datagrams;
		r->lost += one->lost;
		r->reordered += one->reordered;
		r->duplicates += one->duplicates;
		range_add(&r->variation, one->variation_min_ns, one->variation_max_ns);
		range_add(&r->rtt, one->rtt_min_ns, one->rtt_max_ns);
	}
	if (!lasts_ns)
		return -EINVAL;
	r->mean_bit_s = (double)bytes * 8e9 / (double)lasts_ns;
	r->loss = loss_of(r->lost, r->datagrams);
	r->whole = mode_of(intervals, 0, count, late_ns);
	if (first_mode && first_mode < count) {
		r->modes[0] = mode_of(intervals, 0, first_mode, late_ns);
		r->modes[1] = mode_of(intervals, first_mode, count - first_mode, late_ns);
	}
	r->rising = count > 1 && r->whole.at == count - 1 &&
		    r->whole.bit_s > RISING * mode_of(intervals, 0, count - 1, late_ns).bit_s &&
		    (end_bit_s <= 0 || end_bit_s > RISING * r->whole.bit_s);
	r->unfilled = !r->lost && r->variation.max_ns != IP_CAPACITY_UNKNOWN && r->variation.max_ns < low_ns;
	return 0;
}
