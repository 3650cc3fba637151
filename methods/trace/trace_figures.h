/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Figures of a node of the graph, from the answers. */
#ifndef KTRXER_METHODS_TRACE_FIGURES_H
#define KTRXER_METHODS_TRACE_FIGURES_H

#include "trace.h"

struct trace_figures {
	uint32_t answers;
	int64_t min_ns, p50_ns, max_ns;  /* of the round trips; -1: no answer has a time */
	const struct trace_sample *last; /* NULL: no answer */
	struct trace_changes changes;    /* seen in any answer */
};

/* Of the answers of these stages, each a bit: 1 << TRACE_SEARCH... 0 or -ENOMEM. */
int trace_figures_of(const struct trace *trace, const struct trace_node *node, uint32_t stages,
		     struct trace_figures *figures);
/* Repeated probes that another address answered than in the search: the route changes, or a router balances packet by
 * packet. */
uint32_t trace_moved(const struct trace *trace);
/*
 * The smallest share of all flows, in percent, that a next hop without any answer cannot have unnoticed: the flows with
 * an answer bound it where routers limit their answers. 100: none is excluded.
 */
uint32_t trace_silent_share(const struct trace *trace, double failure, uint32_t least);

#endif
