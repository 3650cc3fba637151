/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "trace_figures.h"

#include "mda.h"

#include <errno.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void add_changes(struct trace_changes *sum, const struct trace_changes *one)
{
	sum->address |= one->address;
	sum->checksum |= one->checksum;
	sum->ip_id |= one->ip_id;
	sum->tos |= one->tos;
}

int trace_figures_of(const struct trace *trace, const struct trace_node *node, uint32_t stages,
		     struct trace_figures *figures)
{
	size_t count;
	const struct trace_sample *samples = trace_samples(trace, &count);
	int64_t *rtts = NULL;
	size_t rtt_count = 0;

	*figures = (struct trace_figures){ .min_ns = -1, .p50_ns = -1, .max_ns = -1 };
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < count; i++) {
			const struct trace_sample *s = &samples[i];

			if (s->sent.want.hop != node->hop || !(stages & 1u << s->stage) ||
			    !ktrxer_addr_equal(&s->from, &node->addr))
				continue;
			if (pass) {
				if (s->rtt_ns >= 0)
					rtts[rtt_count++] = s->rtt_ns;
				continue;
			}
			figures->answers++;
			figures->last = s;
			add_changes(&figures->changes, &s->changes);
		}
		if (!figures->answers)
			return 0;
		if (!pass && !(rtts = malloc(figures->answers * sizeof *rtts)))
			return -ENOMEM;
	}
	if (rtt_count) {
		qsort(rtts, rtt_count, sizeof *rtts, by_value);
		figures->min_ns = rtts[0];
		figures->p50_ns = rtts[(rtt_count - 1) / 2];
		figures->max_ns = rtts[rtt_count - 1];
	}
	free(rtts);
	return 0;
}

uint32_t trace_moved(const struct trace *trace)
{
	size_t count;
	const struct trace_sample *samples = trace_samples(trace, &count);
	uint32_t moved = 0;

	for (size_t i = 0; i < count; i++) {
		const struct trace_sample *s = &samples[i];
		const int index = trace_graph_node_of(trace_graph_of(trace), s->sent.want.hop, s->sent.want.flow);
		uint32_t nodes;

		if (s->stage != TRACE_SEARCH && index >= 0)
			moved += !ktrxer_addr_equal(
				&s->from,
				&trace_graph_nodes(trace_graph_of(trace), s->sent.want.hop, &nodes)[index].addr);
	}
	return moved;
}

static uint32_t flows_of(const struct trace_graph *g, uint8_t hop)
{
	uint32_t flows = 0;

	for (uint32_t f = 0; f < TRACE_FLOWS_MAX; f++)
		flows += trace_graph_node_of(g, hop, (uint16_t)f) >= 0;
	return flows;
}

uint32_t trace_silent_share(const struct trace *trace, double failure, uint32_t least)
{
	const struct trace_graph *g = trace_graph_of(trace);
	const uint8_t hops = trace_graph_hops(g);
	uint32_t percent = least;

	if (!trace_result_of(trace)->in_doubt)
		return percent;
	for (uint8_t hop = 1; hop <= hops; hop++) {
		const uint32_t flows = flows_of(g, hop);

		while (percent <= 50 && mda_share_probes(1, percent / 100.0, failure / hops) > flows)
			percent++;
	}
	return percent <= 50 ? percent : 100;
}
