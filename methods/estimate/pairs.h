/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Capacity of the narrow link (RFC 5136) from packet pairs of two sizes. The pairs with the least delay were not
 * disturbed by cross traffic (Kapoor et al., CapProbe, SIGCOMM 2004): the error of such a pair's gap is at most its
 * excess, the sum of both delays above the least ones. The second size separates a link from a receiver: a link's gap
 * grows with the packet, the gap of coalesced interrupts does not.
 */
#ifndef KTRXER_METHODS_PAIRS_H
#define KTRXER_METHODS_PAIRS_H

#include "gap_clusters.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PAIRS_LEAST = 5 }; /* of one size: fewer give no estimate */

/* Times of both packets; send times and arrivals may be of different clocks. 0: not known, or it never happened. */
struct pair_times {
	uint64_t sent_ns[2], arrived_ns[2];
};

/* The use of a pair: the first reason that applies. */
enum pair_outcome {
	PAIR_LOST,      /* one packet or both did not arrive */
	PAIR_UNSENT,    /* no send time of a packet */
	PAIR_REORDERED, /* the second packet arrived before the first */
	PAIR_TOGETHER,  /* both arrivals have one stamp */
	PAIR_SPREAD,    /* not back to back */
	PAIR_USABLE,
	PAIR_OUTCOMES,
};

/* `gap_max_ns`: between the send times, of packets back to back; below 0: half of the gap between the arrivals. */
enum pair_outcome pair_outcome_of(const struct pair_times *pair, double gap_max_ns);

/* The pairs of one size. */
struct pairs_set {
	const struct pair_times *pairs;
	size_t count;
	uint64_t bits; /* of one packet, at the layer of which the capacity is wanted */
	/* Results. */
	size_t outcomes[PAIR_OUTCOMES];
	size_t undisturbed;             /* of the usable ones, those that the estimate uses */
	double gap_ns, low_ns, high_ns; /* the mean gap of the undisturbed pairs, and its interval of 95 % */
	double excess_ns;               /* the largest excess of an undisturbed pair */
	double capacity_bit_s, low_bit_s, high_bit_s; /* bits / gap */
};

/*
 * The groups of the gaps of all pairs of which both packets arrived in order, pairs with one stamp included. The number
 * of these gaps, or -ENOMEM.
 */
int64_t pairs_clusters(const struct pair_times *pairs, size_t count, struct gap_clusters *clusters);

enum pairs_reading {
	PAIRS_RESOLVED,
	PAIRS_TOO_FEW,   /* fewer than PAIRS_LEAST usable pairs of a size */
	PAIRS_SPREAD,    /* most pairs were not back to back: the sender is as slow as the link */
	PAIRS_COALESCED, /* the gaps are those of the receiver's interrupts: period_ns */
	PAIRS_DISTURBED, /* no pair whose packets both had the least delay */
	PAIRS_CHANGED,   /* the path was another one in the first half than in the second */
	PAIRS_SHAPED,    /* set by the caller: a token bucket lets pairs pass at the rate of the line */
	PAIRS_READINGS,
};
extern const char *const pairs_reading_names[PAIRS_READINGS]; /* as in the JSON object of the command */

struct pairs_result {
	enum pairs_reading reading;
	struct pairs_set *large;
	double skew_ppm;       /* the receiver's clock against the sender's, taken out of the delays */
	double link_bit_s;     /* from the slope over both sizes: the link's own rate, without the bytes that it adds to
			      each packet */
	double overhead_bytes; /* and these bytes; may be negative by the uncertainty of the gaps */
	double period_ns;      /* PAIRS_COALESCED; 0: not known */
};

/*
 * sets[0] and sets[1] in any order of their sizes. `resolution_ns`: of the receiver's stamps. 0 with a reading;
 * -EINVAL: equal sizes, or no bits; -ENOMEM. The capacity is that of result->large.
 */
int pairs_estimate(struct pairs_set sets[2], uint32_t resolution_ns, struct pairs_result *result);

/* The bits a second of IP packets in one direction: a pair of each size every `interval_ns`. */
double pairs_load(const uint32_t ip_bytes[2], uint64_t interval_ns);

#endif
