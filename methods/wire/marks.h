/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The marks of packets, DSCP and ECN: a bounded histogram of those that arrived, compared with the one that was sent.
 * Pure. A mark is the TOS or traffic class byte of the IP header: DSCP times 4, and the two bits of ECN (RFC 3168).
 */
#ifndef KTRXER_METHODS_MARKS_H
#define KTRXER_METHODS_MARKS_H

#include <stdbool.h>
#include <stdint.h>

enum { MARKS_KINDS = 6 }; /* a path has one or two marks, and CE beside each */

struct marks {
	uint8_t tos[MARKS_KINDS];
	uint64_t packets[MARKS_KINDS]; /* 0: this kind and those after it are free */
	uint64_t other;                /* packets with further marks */
};

void marks_count(struct marks *marks, uint8_t tos);
/* Adds the packets of `more`. */
void marks_add(struct marks *marks, const struct marks *more);

struct marks_changed {
	uint64_t received;
	uint64_t dscp, ecn;        /* packets whose DSCP, and whose ECN, was changed; a router may set CE on ECT */
	uint8_t new_dscp, new_ecn; /* the most frequent ones of these packets */
};
void marks_compare(struct marks_changed *changed, const struct marks *marks, uint8_t sent);

#endif
