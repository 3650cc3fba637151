/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Load on the path of a trace: TCP flows between this host and one with `ktrxer serve`, in the loop of the trace, while
 * it probes the hops of the first flow's route again.
 */
#ifndef KTRXER_METHODS_TRACE_LOAD_H
#define KTRXER_METHODS_TRACE_LOAD_H

#include "flow_client.h"
#include "flow_result.h"
#include "trace.h"

enum { TRACE_LOAD_FLOWS_MAX = 32 }; /* in each direction */

struct trace_load_options {
	struct ktrxer_addr to, from; /* from.family 0: the route decides */
	uint16_t port;
	const struct hmac_key *token;
	bool up, down;
	uint32_t flows;      /* in each direction */
	uint64_t warm_up_ns; /* from the start of the flows to the first probe */
	uint32_t rounds;
	uint64_t interval_ns;
	int (*describe)(struct ktrxer_error *err, const struct flow_client_options *options,
			const struct flow_failure *failure);
};

struct trace_load {
	struct flow_client_result client;
	struct flow_total totals[2]; /* by direction: up, down */
	/*
	 * The mean of the flows' own round trips while the hops were probed, and the least one before and then; 0: not
	 * known.
	 */
	uint64_t flow_rtt_ns[2], flow_rtt_min_ns[2];
	uint64_t from_ns, to_ns; /* probes that were sent then met the load */
	bool ended_early;        /* a flow ended before the last probe: to_ns is when */
	bool stopped;            /* by stop_fd */
};

/*
 * Call it after trace_search(). Starts the flows, probes the hops, and ends the flows. 0, or a negative errno with a
 * text: there was no load, or no memory.
 */
int trace_load_run(struct trace_load *load, struct trace *trace, const struct trace_load_options *options, int stop_fd,
		   struct ktrxer_error *err);

#endif
