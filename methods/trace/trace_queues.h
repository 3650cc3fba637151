/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The repeated round trips of a trace, idle and loaded, for the estimator (hop_queues.h). */
#ifndef KTRXER_METHODS_TRACE_QUEUES_H
#define KTRXER_METHODS_TRACE_QUEUES_H

#include "hop_queues.h"
#include "trace.h"

struct trace_queues {
	size_t count;   /* hops of the first flow's route, and hop 0: this host */
	size_t fullest; /* as hop_queues_estimate() sets it */
	bool own_known; /* the delay in this host's own queue is known */
	struct hop_queue queues[TRACE_HOPS_MAX + 1];
};

/* `rounds`: repetitions of each stage. Loaded probes count that were sent from from_ns to to_ns. 0 or -ENOMEM. */
int trace_queues_estimate(struct trace_queues *queues, const struct trace *trace, uint32_t rounds, uint64_t from_ns,
			  uint64_t to_ns);

#endif
