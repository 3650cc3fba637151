/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The Maximum IP-Layer Capacity of RFC 9097 from the sub-intervals of a test: the most bits of IP packets a second that
 * one of them has received, with loss, round trips and delay variation beside it.
 */
#ifndef KTRXER_METHODS_IP_CAPACITY_H
#define KTRXER_METHODS_IP_CAPACITY_H

#include <stdbool.h>
#include <stdint.h>

#define IP_CAPACITY_UNKNOWN UINT64_MAX

/* A sub-interval, as its receiver counted it. Delays are IP_CAPACITY_UNKNOWN where there is none. */
struct ip_capacity_interval {
	uint64_t datagrams, ip_bytes, lasts_ns;
	uint64_t lost, reordered, duplicates;
	uint64_t variation_min_ns, variation_max_ns; /* one-way delay, above the minimum of the test */
	uint64_t rtt_min_ns, rtt_max_ns;             /* round trip, above the minimum of the test */
};

struct ip_capacity_range {
	uint64_t min_ns, max_ns; /* IP_CAPACITY_UNKNOWN: there is none */
};

/* The maximum of a mode: of all sub-intervals, or of the first ones and of the rest. */
struct ip_capacity_mode {
	uint32_t first, count; /* its sub-intervals */
	uint32_t at;           /* the one of the maximum */
	double bit_s, loss;    /* of that one */
	struct ip_capacity_range variation, rtt;
};

struct ip_capacity_result {
	struct ip_capacity_mode whole, modes[2]; /* modes: of a bimodal path; count 0 without */
	double mean_bit_s, loss;                 /* of all sub-intervals; NaN without datagrams */
	uint64_t datagrams, lost, reordered, duplicates;
	uint32_t late; /* sub-intervals that lasted longer than `late_ns` */
	struct ip_capacity_range variation, rtt;
	bool rising;   /* the last sub-interval is far above those before, and the rate at the end is far above it */
	bool unfilled; /* neither losses nor delay variation from `low_ns` on: the load did not fill the path */
};

double ip_capacity_bit_s(const struct ip_capacity_interval *interval);
/*
 * `first_mode`: so many sub-intervals are the first of two modes; 0: one mode. 0, or -EINVAL without a sub-interval
 * that lasted. A receiver that stood still has sub-intervals that last longer than `late_ns`. `end_bit_s`: the rate at
 * the end of the last one; 0: it is not known.
 */
int ip_capacity_of(struct ip_capacity_result *result, const struct ip_capacity_interval *intervals, uint32_t count,
		   uint32_t first_mode, uint64_t low_ns, uint64_t late_ns, double end_bit_s);

#endif
