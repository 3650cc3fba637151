/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Whether a router that balances load chooses the next hop by flow, or packet by packet: flows that have passed it are
 * probed at its next hop again. A choice by packet repeats the former one with a probability that follows from the
 * shares of the next hops.
 */
#ifndef KTRXER_METHODS_TRACE_SAME_FLOW_H
#define KTRXER_METHODS_TRACE_SAME_FLOW_H

#include "trace.h"

/* The repeated probes, `max` at most: a choice by packet is missed with a probability of at most `failure`. */
int trace_same_flow_want(const struct trace_graph *graph, double failure, struct trace_want *wants, int max);
/* The probability of missing one, from the answers to these probes; 1: some router could not be tested. */
double trace_same_flow_miss(const struct trace_graph *graph, const struct trace_sample *samples, size_t count);

#endif
