/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which queue fills under load: what `trace --load` prints. */
#include "trace_command.h"

#include "fields_trace.h"
#include "reasons.h"
#include "units.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>

enum { DOWN_TOO = 2, FLOW_FACTOR = 2, PLACE = 2 * KTRXER_ADDR_TEXT + 64 };
#define FLOW_ROOM_NS (5 * (int64_t)KTRXER_NS_PER_MS)

static const char *const way_names[DOWN_TOO] = { "up", "down" };

static const struct hop_queue *fullest(const struct trace_run *run)
{
	const struct trace_queues *q = &run->queues;

	return q->fullest < q->count ? &q->queues[q->fullest] : NULL;
}

static const char *hop_address(const struct trace_run *run, size_t hop, char text[KTRXER_ADDR_TEXT])
{
	const int index = trace_graph_node_of(trace_graph_of(run->trace), (uint8_t)hop, 0);
	uint32_t count;
	const struct trace_node *nodes = trace_graph_nodes(trace_graph_of(run->trace), (uint8_t)hop, &count);

	return index < 0 || !nodes[index].addr.family ? NULL : ktrxer_addr_format(&nodes[index].addr, text);
}

/* Returns the mean minus the minimum of the flows' own round trips; -1: not known. */
static int64_t flows_added_ns(const struct trace_run *run, int way)
{
	const struct trace_load *load = &run->load;

	return load->flow_rtt_ns[way] && load->flow_rtt_min_ns[way]
		       ? (int64_t)(load->flow_rtt_ns[way] - load->flow_rtt_min_ns[way])
		       : -1;
}

static int64_t hops_added_ns(const struct trace_run *run)
{
	int64_t most = 0;

	for (size_t i = 1; i < run->queues.count; i++)
		if (run->queues.queues[i].known && run->queues.queues[i].added_ns > most)
			most = run->queues.queues[i].added_ns;
	return most;
}

/* The last hop with enough answers: a queue behind it is not measured. 0: none. */
static size_t last_known_hop(const struct trace_run *run)
{
	size_t hop = run->queues.count;

	while (hop-- > 1)
		if (run->queues.queues[hop].known)
			return hop;
	return 0;
}

static void judge_flows(const struct trace_run *run, int way)
{
	const int64_t flows_ns = flows_added_ns(run, way), hops_ns = hops_added_ns(run);
	const size_t unknown = last_known_hop(run) + 1;

	if (flows_ns <= FLOW_FACTOR * hops_ns + FLOW_ROOM_NS)
		return;
	if (unknown < run->queues.count)
		reason_trace_queue_before(run->cli, way_names[way], flows_ns, hops_ns, unknown, HOP_QUEUES_LEAST);
	else
		reason_trace_queue_elsewhere(run->cli, way_names[way], flows_ns, hops_ns);
}

void trace_load_judge(const struct trace_run *run)
{
	const struct trace_load *load = &run->load;
	const uint64_t late = trace_result_of(run->trace)->too_late - run->late_idle;
	size_t known = 0;

	if (!run->loaded)
		return;
	if (load->stopped)
		reason_trace_stopped_before_load(run->cli);
	else if (load->client.error.code)
		reason_trace_load_ended(run->cli, load->client.error.text);
	else if (load->ended_early)
		reason_trace_load_closed(run->cli);
	for (size_t i = 1; i < run->queues.count; i++)
		known += run->queues.queues[i].known;
	if (!known && !load->stopped)
		reason_trace_no_queue(run->cli, HOP_QUEUES_LEAST);
	if (late)
		reason_trace_load_too_late(run->cli, late);
	for (int way = 0; way < DOWN_TOO; way++)
		judge_flows(run, way);
}

static void place(const struct trace_run *run, char text[PLACE])
{
	const struct trace_queues *q = &run->queues;
	const size_t hop = q->fullest, after = q->queues[hop].after;
	char near[KTRXER_ADDR_TEXT], far[KTRXER_ADDR_TEXT];

	if (!hop) {
		snprintf(text, PLACE, "this host's own queue of %s", trace_path_of(run->trace)->device.name);
		return;
	}
	if (after)
		snprintf(text, PLACE, "between hop %zu (%s) and hop %zu (%s)", after, hop_address(run, after, near),
			 hop, hop_address(run, hop, far));
	else
		snprintf(text, PLACE, "between this host and hop %zu (%s)", hop, hop_address(run, hop, far));
}

static void flows_text(const struct trace_run *run)
{
	for (int way = 0; way < DOWN_TOO; way++) {
		const struct flow_total *total = &run->load.totals[way];
		char rate[KTRXER_UNITS_TEXT], text[KTRXER_UNITS_TEXT];

		if (!total->flows)
			continue;
		out_text(run->cli, "load %s: %" PRIu32 " flows of TCP, %s together; their own round trips grew by %s",
			 way_names[way], total->flows, ktrxer_format_bitrate(rate, total->rate_bps),
			 flows_added_ns(run, way) < 0 ? "?" : ktrxer_format_ns(text, flows_added_ns(run, way)));
	}
}

static void hop_text(const struct trace_run *run, size_t hop)
{
	const struct hop_queue *q = &run->queues.queues[hop];
	const int width = run->spec.to.family == AF_INET6 ? 39 : 15;
	char address[KTRXER_ADDR_TEXT], x[6][KTRXER_UNITS_TEXT];

	if (!hop && !run->queues.own_known)
		return;
	if (!q->known) {
		out_text(run->cli, "%-7zu %-*s  too few answers: %zu idle, %zu loaded", hop, width,
			 hop && hop_address(run, hop, address) ? address : "*", q->idle_answers, q->loaded_answers);
		return;
	}
	out_text(run->cli, "%-7zu %-*s %11s %11s %11s %11s %11s %11s%s", hop, width,
		 hop ? hop_address(run, hop, address) : "(own queue)", ktrxer_format_ns(x[0], q->idle_ns),
		 ktrxer_format_ns(x[1], q->loaded_ns), ktrxer_format_ns(x[2], q->added_ns < 0 ? 0 : q->added_ns),
		 ktrxer_format_ns(x[3], q->added_uncertainty_ns),
		 q->measured ? ktrxer_format_ns(x[4], q->queue_ns) : "?",
		 q->measured ? ktrxer_format_ns(x[5], q->queue_uncertainty_ns) : "?", q->fills ? "  fills" : "");
}

static void load_text(const struct trace_run *run)
{
	const struct hop_queue *q = fullest(run);
	char text[PLACE], x[2][KTRXER_UNITS_TEXT];

	flows_text(run);
	out_text(run->cli, "%-7s %-*s %11s %11s %11s %11s %11s %11s", "hop", run->spec.to.family == AF_INET6 ? 39 : 15,
		 "address", "idle", "loaded", "added", "+-", "queue", "+-");
	for (size_t hop = 0; hop < run->queues.count; hop++)
		hop_text(run, hop);
	if (!q) {
		if (last_known_hop(run) + 1 < run->queues.count)
			snprintf(text, PLACE, " before hop %zu", last_known_hop(run) + 1);
		else
			text[0] = '\0';
		out_text(run->cli, "no queue fills%s: none adds more than its uncertainty and 0.1 ms", text);
		return;
	}
	place(run, text);
	out_text(run->cli, "the queue that fills: %s, %s +- %s (99 %%)", text, ktrxer_format_ns(x[0], q->queue_ns),
		 ktrxer_format_ns(x[1], q->queue_uncertainty_ns));
}

static void queue_json(const struct trace_run *run, struct json *json, size_t hop)
{
	const struct hop_queue *q = &run->queues.queues[hop];
	char address[KTRXER_ADDR_TEXT];

	if (!hop && !run->queues.own_known)
		return;
	json_object(json, NULL);
	trace_queue_hop(json, hop);
	trace_queue_address(json, hop ? hop_address(run, hop, address) : NULL);
	trace_queue_idle_answers(json, q->idle_answers);
	trace_queue_loaded_answers(json, q->loaded_answers);
	trace_queue_idle_us_or_null(json, q->known, q->idle_ns);
	trace_queue_loaded_us_or_null(json, q->known, q->loaded_ns);
	trace_queue_added_us_or_null(json, q->known, q->added_ns);
	trace_queue_added_uncertainty_us_or_null(json, q->known, q->added_uncertainty_ns);
	trace_queue_after_hop_or_null(json, q->known && hop, q->after);
	trace_queue_queue_us_or_null(json, q->measured, q->queue_ns);
	trace_queue_queue_uncertainty_us_or_null(json, q->measured, q->queue_uncertainty_ns);
	trace_queue_fills(json, q->fills);
	json_object_end(json);
}

static void load_json(const struct trace_run *run, struct json *end)
{
	trace_end_load_open(end);
	trace_load_direction(end, trace_loads[run->o->load]);
	trace_load_probes_of_a_hop(end, run->rounds);
	trace_load_ended_early(end, run->load.ended_early);
	for (int way = 0; way < DOWN_TOO; way++) {
		const struct flow_total *total = &run->load.totals[way];

		if (!total->flows)
			continue;
		json_object(end, way_names[way]);
		trace_flows_flows(end, total->flows);
		trace_flows_bit_s(end, total->rate_bps);
		trace_flows_bytes(end, total->bytes);
		trace_flows_rtt_us_or_null(end, run->load.flow_rtt_ns[way], (int64_t)run->load.flow_rtt_ns[way]);
		trace_flows_rtt_added_us_or_null(end, flows_added_ns(run, way) >= 0, flows_added_ns(run, way));
		json_object_end(end);
	}
	trace_load_level(end, HOP_QUEUES_LEVEL);
	trace_load_hops_open(end);
	for (size_t hop = 0; hop < run->queues.count; hop++)
		queue_json(run, end, hop);
	json_array_end(end);
	trace_load_queue_before_hop_or_null(end, fullest(run), run->queues.fullest);
	json_object_end(end);
}

void trace_load_report(const struct trace_run *run, struct json *end)
{
	if (!run->loaded)
		return;
	load_text(run);
	load_json(run, end);
}
