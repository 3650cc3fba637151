/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "trace_queues.h"

#include <errno.h>
#include <stdlib.h>

static bool is_of_the_route(const struct trace *trace, const struct trace_sample *s)
{
	const int index = trace_graph_node_of(trace_graph_of(trace), s->sent.want.hop, 0);
	uint32_t count;

	return index >= 0 &&
	       ktrxer_addr_equal(&s->from,
				 &trace_graph_nodes(trace_graph_of(trace), s->sent.want.hop, &count)[index].addr);
}

int trace_queues_estimate(struct trace_queues *q, const struct trace *trace, uint32_t rounds, uint64_t from_ns,
			  uint64_t to_ns)
{
	struct hop_times hops[TRACE_HOPS_MAX + 1] = { 0 };
	size_t sample_count;
	const struct trace_sample *samples = trace_samples(trace, &sample_count);
	int64_t *times;
	int rc;

	*q = (struct trace_queues){ .count = trace_first_route(trace) + 1u };
	times = malloc(2 * q->count * (rounds ? rounds : 1) * sizeof *times);
	if (!times)
		return -ENOMEM;
	for (size_t i = 0; i < 2 * q->count * rounds; i++)
		times[i] = -1;
	/* Of each hop the idle round trips, then the loaded ones. */
	for (size_t i = 0; i < sample_count; i++) {
		const struct trace_sample *s = &samples[i];
		const bool loaded = s->stage == TRACE_LOADED;
		int64_t *own;

		if (s->stage == TRACE_SEARCH || s->stage == TRACE_SAME_FLOW || s->rtt_ns < 0 ||
		    s->repetition >= rounds || s->sent.want.hop >= q->count || !is_of_the_route(trace, s) ||
		    (loaded && (s->sent_ns < from_ns || s->sent_ns > to_ns)))
			continue;
		own = times + loaded * rounds + s->repetition;
		own[(size_t)s->sent.want.hop * 2 * rounds] = s->rtt_ns;
		if (*own < 0)
			*own = s->own_queue_ns;
		q->own_known |= s->own_queue_ns >= 0;
	}
	for (size_t i = q->own_known ? 0 : 1; i < q->count; i++)
		hops[i] = (struct hop_times){ times + 2 * i * rounds, times + (2 * i + 1) * rounds };
	rc = hop_queues_estimate(hops, q->count, rounds, rounds, q->queues, &q->fullest);
	free(times);
	return rc;
}
