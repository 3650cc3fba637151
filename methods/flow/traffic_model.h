/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The traffic model of a UDP flow: when its packets leave, and how long they are. Equal seeds give equal flows.
 *
 * The rate is that of payload. `voip`: a speaker talks and pauses, both for exponential times with the means of ITU-T
 * P.59 (talk spurts of 1.004 s, pauses of 1.587 s). Packets leave at the rate in talk spurts, and none leaves in
 * pauses.
 */
#ifndef KTRXER_METHODS_TRAFFIC_MODEL_H
#define KTRXER_METHODS_TRAFFIC_MODEL_H

#include "flow_spec.h"

#define TRAFFIC_TALK_NS 1004000000ull
#define TRAFFIC_PAUSE_NS 1587000000ull

struct traffic_model {
	const struct flow_spec *spec;
	struct ktrxer_schedule *times;  /* poisson: of packets; voip: ends of talk spurts, in time of speech */
	struct ktrxer_schedule *pauses; /* voip: sums of pauses */
	uint64_t random;                /* sizes */
	uint64_t bits;                  /* of all payload so far, eight times its bytes */
	uint64_t paused_ns;             /* so far */
	uint64_t talk_ns;               /* the end of this talk spurt, in time of speech */
	uint64_t at_ns, gap_ns;         /* train: of its last packet, and the gap after it */
	uint32_t of_train;              /* packets of this train so far */
};

/* `spec` stays where it is. 0 or -ENOMEM; traffic_model_end() in both cases. */
int traffic_model_begin(struct traffic_model *model, const struct flow_spec *spec, const uint8_t seed[16]);
void traffic_model_end(struct traffic_model *model);
/* The next packet: its time after the start of the flow, and its payload in bytes. Times never decrease. */
uint64_t traffic_model_next(struct traffic_model *model, uint32_t *payload);

#endif
