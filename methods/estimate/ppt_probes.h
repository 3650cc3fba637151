/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Compound probes whose send times are known. ppt.h estimates from gaps alone; the send times show which trailing
 * packets were not queued right behind their heading packet, so that the gap is the sender's and not the end link's.
 */
#ifndef KTRXER_METHODS_PPT_PROBES_H
#define KTRXER_METHODS_PPT_PROBES_H

#include "pairs.h"
#include "ppt.h"

enum { PPT_PROBES_LEAST = 5 }; /* of one size: fewer give no estimate */

/* The probes of one train, in the order of their send times; the heading packet is the first one. */
struct ppt_probes {
	const struct pair_times *probes;
	size_t count;
	uint32_t size_bytes; /* of the trailing packet, on the wire */
	/* Results. */
	size_t outcomes[PAIR_OUTCOMES];
	int64_t send_gap_ns; /* the median of the gaps between both send times */
};

/*
 * Both trains, in any order of their sizes; sets[0] is the smaller one afterwards. A probe is back to back if the
 * trailing packet was sent before the end link had transmitted the heading packet: the time of this transmission
 * follows from the slope of all probes, which a constant gap of the sender does not change. Where the slope is not
 * resolved, the gap of the send times is at most half of that of the arrivals. The clock's resolution is at least the
 * smallest difference between two gaps; a step beyond `resolution_ns` widens the intervals. 0 with a reading; negative
 * errno with a text as ppt_estimate(). With PPT_TOO_FEW, PPT_SPREAD and PPT_CHANGED the other figures are no results.
 */
int ppt_probes_estimate(struct ppt_probes sets[2], uint32_t heading_bytes, uint32_t resolution_ns,
			struct ppt_result *result, struct ktrxer_error *err);

/*
 * Counts the outcomes of all probes, and writes the gaps at the receiver of the usable ones and their numbers (NULL:
 * not wanted); both have room for each probe. `heading_ns`: see pair_outcome_of(). Returns the number of usable ones.
 */
size_t ppt_usable_gaps(const struct ppt_probes *probes, double heading_ns, size_t outcomes[PAIR_OUTCOMES],
		       int64_t *gaps_ns, size_t *numbers);

/* The median of the gaps of both send times; 0 without a probe that has both. `room_ns` has room for each probe. */
int64_t ppt_send_gap(const struct ppt_probes *probes, int64_t *room_ns);

/*
 * The steps of a coarse clock may have the same phase in all probes: a mean gap is then off by up to a step, and no
 * number of probes shows it. `bytes` is the difference of both sizes.
 */
void ppt_widen(struct ppt_result *result, uint32_t bytes, double step_ns);

/* The bits of a probe on a wire, inter-frame gaps included. */
double ppt_probe_bits(uint32_t heading_bytes, uint32_t trailing_bytes);

#endif
