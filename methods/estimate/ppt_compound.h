/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The compound probes among arrivals, in the order of a capture. */
#ifndef KTRXER_METHODS_PPT_COMPOUND_H
#define KTRXER_METHODS_PPT_COMPOUND_H

#include "ppt.h"

struct ppt_arrival {
	int64_t time_ns;
	uint32_t size_bytes; /* on the wire */
	uint16_t flow;       /* both packets of a probe have the same: the source port */
};

struct ppt_compound {
	uint32_t heading_bytes; /* the largest size among the arrivals */
	size_t probes;
	size_t heading_alone;  /* heading packets that no trailing packet follows at once */
	size_t trailing_alone; /* likewise */
	/* probes whose trailing packet has an earlier stamp than the heading packet, or steps of the clock between */
	size_t backwards;
	/* probes with a gap of more than half the usual time between probes: two halves of different probes */
	size_t split;
};

/*
 * Writes the probes' trailing sizes and gaps to `sizes` and `gaps_ns` (room for count / 2 each). -EINVAL: there is no
 * probe. A heading packet has the largest size; all others are trailing packets.
 */
int ppt_compound(const struct ppt_arrival *arrivals, size_t count, uint32_t *sizes, int64_t *gaps_ns,
		 struct ppt_compound *result);

/*
 * Sorts gaps by the trailing size into two trains: of `size1` and `size2`, or, where both are 0, of the two sizes that
 * there are. Other sizes are left out. -EINVAL with a text: equal sizes, no gap of a size, or other than two sizes and
 * none chosen. ppt_trains_free() is right in any case.
 */
int ppt_trains_split(struct ppt_train trains[2], const uint32_t *sizes, const int64_t *gaps_ns, size_t count,
		     uint32_t size1, uint32_t size2, struct ktrxer_error *err);
void ppt_trains_free(struct ppt_train trains[2]);

#endif
