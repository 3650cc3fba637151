/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * When the packets of a UDP flow leave, and how long they are. Pure: equal seeds give equal flows.
 *
 * The rate is that of payload. `voip` is a speaker: he talks and pauses, both for exponential times with the means of ITU-T
 * P.59 (talk spurts of 1.004 s, pauses of 1.587 s); while he talks packets leave at the rate, in between none.
 */
#ifndef KTRXER_METHODS_FLOW_LAW_H
#define KTRXER_METHODS_FLOW_LAW_H

#include "flow_spec.h"
#include "poisson.h"

#define FLOW_TALK_NS 1004000000ull
#define FLOW_PAUSE_NS 1587000000ull

struct flow_law_state {
	const struct flow_spec *spec;
	struct poisson poisson;
	uint64_t random;         /* sizes */
	uint64_t start_ns;
	uint64_t bits;           /* of all payload so far, eight times its bytes */
	uint64_t moved_ns;       /* pauses, or what the exponential gaps sum up to */
	uint64_t talk_ns;        /* of speech that is left */
	uint64_t mean_gap_ns;    /* whole nanoseconds: only the exponential gaps use it */
};

void flow_law_begin(struct flow_law_state *law, const struct flow_spec *spec, uint64_t start_ns, const uint8_t seed[16]);
/* The next packet: its deadline and payload. Deadlines never decrease. */
uint64_t flow_law_next(struct flow_law_state *law, uint32_t *payload);

#endif
