/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "trace_same_flow.h"

enum { REPEATS_MAX = 256 }; /* of one router */

/* A router that balances load, by its hop and index. */
struct balancer {
	uint8_t hop;
	uint32_t index;
	double same; /* the probability that two packets have the same next hop, if each has its own choice */
};

/* The next hop of the flow is known, and behind this router. */
static bool passes(const struct trace_graph *g, const struct balancer *b, uint16_t flow, uint32_t *next)
{
	const int here = trace_graph_node_of(g, b->hop, flow), after = trace_graph_node_of(g, b->hop + 1, flow);
	uint32_t count;

	if (here != (int)b->index || after < 0)
		return false;
	*next = (uint32_t)after;
	return trace_graph_nodes(g, b->hop + 1, &count)[after].addr.family;
}

static bool next_balancer(const struct trace_graph *g, struct balancer *b)
{
	for (; b->hop < trace_graph_hops(g); b->hop++, b->index = 0) {
		uint32_t count;
		const struct trace_node *nodes = trace_graph_nodes(g, b->hop, &count);

		for (; b->index < count; b->index++) {
			uint32_t flows[TRACE_NODES_MAX] = { 0 }, all = 0, next;
			double same = 0;

			if (!nodes[b->index].linked || !nodes[b->index].balances)
				continue;
			for (uint32_t f = 0; f < TRACE_FLOWS_MAX; f++)
				if (passes(g, b, (uint16_t)f, &next))
					flows[next]++, all++;
			for (uint32_t i = 0; i < TRACE_NODES_MAX; i++)
				same += all ? (double)flows[i] / all * flows[i] / all : 0;
			b->same = same;
			if (all && same < 1)
				return true;
		}
	}
	return false;
}

int trace_same_flow_want(const struct trace_graph *g, double failure, struct trace_want *wants, int max)
{
	uint32_t balancers = 0, next;
	int n = 0;

	for (struct balancer b = { 0 }; next_balancer(g, &b); b.index++)
		balancers++;
	for (struct balancer b = { 0 }; next_balancer(g, &b); b.index++) {
		double miss = 1;
		int left = REPEATS_MAX;

		while (miss > failure / balancers && left && n < max)
			for (uint32_t f = 0; f < TRACE_FLOWS_MAX && miss > failure / balancers && left && n < max; f++)
				if (passes(g, &b, (uint16_t)f, &next)) {
					wants[n++] = (struct trace_want){ b.hop + 1, (uint16_t)f };
					miss *= b.same;
					left--;
				}
	}
	return n;
}

double trace_same_flow_miss(const struct trace_graph *g, const struct trace_sample *samples, size_t count)
{
	double sum = 0;
	uint32_t next;

	for (struct balancer b = { 0 }; next_balancer(g, &b); b.index++) {
		double miss = 1;

		for (size_t i = 0; i < count; i++)
			if (samples[i].stage != TRACE_SEARCH && samples[i].sent.want.hop == b.hop + 1 &&
			    passes(g, &b, samples[i].sent.want.flow, &next))
				miss *= b.same;
		sum += miss;
	}
	return sum < 1 ? sum : 1;
}
