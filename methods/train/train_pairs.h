/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The pairs of a session's trains, for the estimator (pairs.h). */
#ifndef KTRXER_METHODS_TRAIN_PAIRS_H
#define KTRXER_METHODS_TRAIN_PAIRS_H

#include "pairs.h"
#include "train_session.h"

/* The flow of pairs, one every `period_ns`. The first packet of a pair has as much payload as the second, or more. */
void train_pair_spec(struct flow_spec *spec, bool down, const uint32_t payloads[2], uint64_t period_ns,
		     uint64_t start_ns);
/* One entry for each train, to be freed. NULL: no memory. */
struct pair_times *train_pairs(const struct train_packets *packets);

/* Returns how many of the pairs of a stopped run have left. */
size_t train_pairs_left(const struct pair_times *pairs, size_t count);

#endif
