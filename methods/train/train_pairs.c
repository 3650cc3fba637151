/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "train_pairs.h"

#include <stdlib.h>

void train_pair_spec(struct flow_spec *spec, bool down, const uint32_t payloads[2], uint64_t period_ns,
		     uint64_t start_ns)
{
	*spec = (struct flow_spec){ .down = down,
				    .udp = true,
				    .model = FLOW_TRAIN,
				    .start_ns = start_ns,
				    .payload_min = (uint16_t)payloads[1],
				    .payload_max = (uint16_t)payloads[0],
				    .train = 2 };
	spec->rate_bps = flow_train_bits(spec) * (uint64_t)KTRXER_NS_PER_S / period_ns;
}

struct pair_times *train_pairs(const struct train_packets *p)
{
	struct pair_times *pairs = calloc(p->trains ? p->trains : 1, sizeof *pairs);

	for (uint32_t i = 0; pairs && i < p->trains; i++)
		for (uint32_t half = 0; half < 2; half++) {
			pairs[i].sent_ns[half] = p->sent_ns[(size_t)i * p->spec.train + half];
			pairs[i].arrived_ns[half] = p->arrived_ns[(size_t)i * p->spec.train + half];
		}
	return pairs;
}

size_t train_pairs_left(const struct pair_times *pairs, size_t count)
{
	while (count && !pairs[count - 1].sent_ns[0] && !pairs[count - 1].arrived_ns[0])
		count--;
	return count;
}
