/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A token bucket of one direction (shaper.h), from bursts of packets back to back. */
#ifndef KTRXER_METHODS_TRAIN_BURST_H
#define KTRXER_METHODS_TRAIN_BURST_H

#include "shaper.h"
#include "train_session.h"

struct train_burst_options {
	const struct train_session_options *session; /* its flows and its times do not count */
	bool down;
	uint32_t payload, head; /* bytes of a packet: of payload, of headers */
	double load_bit_s;      /* of all packets, at most */
};

struct train_burst {
	struct shaper shaper; /* line_bit_s 0: none was found */
	bool stopped;
};

/*
 * A burst of 64 packets, and a longer one where many are lost; where its rate falls, two more, of which the last one
 * must show the same bucket. 0, or as a session.
 */
int train_burst_find(struct train_burst *burst, const struct train_burst_options *options, struct ktrxer_error *err);

#endif
