/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Counts of a receiver of a UDP flow, from the numbers in its packets. Pure. */
#ifndef KTRXER_METHODS_FLOW_COUNT_H
#define KTRXER_METHODS_FLOW_COUNT_H

#include "flow_spec.h"

enum {
	FLOW_COUNT_WINDOW = 4096,  /* so far back a packet is known to be a second copy */
	FLOW_COUNT_LEAP = 1 << 24, /* no path loses so many in a row: it is no number of this flow */
};

struct flow_count {
	uint64_t next;           /* one more than the highest number so far */
	uint64_t packets, bytes; /* without second copies */
	uint64_t ect0, ect1, ce;
	struct marks marks;
	uint64_t reordered; /* that came after a later one */
	uint64_t duplicates;
	uint64_t protocol_errors;
	uint64_t seen[FLOW_COUNT_WINDOW / 64];
};

/* A packet came. `tos`: of its IP header. */
void flow_count_packet(struct flow_count *count, uint64_t number, uint32_t bytes, uint8_t tos);
/*
 * Counts the lost of the `sent` packets that the sender has reported. 0: it has not reported yet, and packets with a
 * number that did not leave its host count, too.
 */
uint64_t flow_count_lost(const struct flow_count *count, uint64_t sent);

#endif
