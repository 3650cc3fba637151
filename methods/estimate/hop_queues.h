/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * This finds the queue of a path that fills under load, from round trips to each hop, without the load and with it. A
 * packet to a hop waits in all queues before that hop, so a queue adds its delay to the round trips of all hops behind
 * it. A router that is slow at answering delays its own answers only, and no hop behind it. The delay that is added up
 * to hop h is therefore the least one of the hops from h on. The delay of one queue is the median of differences within
 * a repetition: both probes meet nearly the same queues, so the rise and fall of a queue in front of both hops cancels.
 */
#ifndef KTRXER_METHODS_HOP_QUEUES_H
#define KTRXER_METHODS_HOP_QUEUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	HOP_QUEUES_LEAST = 8,         /* answers of a hop, idle and loaded: fewer have no interval of 99 % */
	HOP_QUEUES_FLOOR_NS = 100000, /* a smaller delay may be that of the answering router */
	/* A smaller share of the largest delay may be the growth of that queue between two probes. */
	HOP_QUEUES_SHARE = 20,
};

/* The uncertainties are those of a median, by order statistics, as if the round trips were independent. */
#define HOP_QUEUES_LEVEL 0.99

/* Round trips by their repetition; negative: no answer. Both NULL: round trips of 0. */
struct hop_times {
	const int64_t *idle_ns, *loaded_ns;
};

struct hop_queue {
	bool known; /* enough answers */
	size_t idle_answers, loaded_answers;
	int64_t idle_ns, loaded_ns; /* medians */
	int64_t added_ns, added_uncertainty_ns;
	/* Of the queues between the hop `after`, the last known one before this, and this one. */
	size_t after;
	bool measured;                          /* where the hop is known; hop 0: where its delays are */
	int64_t queue_ns, queue_uncertainty_ns; /* never negative */
	bool fills;                             /* above the uncertainty, the floor, and a share of the largest delay */
};

/*
 * hops[0] is the host that probes: the delays in its own queue, or both NULL where they are not known. Fills
 * queues[0] to queues[count - 1]. *fullest: the hop in front of which the queue with the largest delay is, 0 for this
 * host's own queue, `count`: no queue fills. 0 or -ENOMEM.
 */
int hop_queues_estimate(const struct hop_times *hops, size_t count, size_t idle_count, size_t loaded_count,
			struct hop_queue *queues, size_t *fullest);

#endif
