/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The output of `trace`: a line for each router, a sample for each answer, and the graph at the end. */
#include "trace_command.h"

#include "fields_trace.h"
#include "path_report.h"
#include "reasons.h"
#include "trace_figures.h"
#include "trace_same_flow.h"
#include "units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { NOTES = 320 };
#define IDLE_STAGES (1u << TRACE_SEARCH | 1u << TRACE_REPEAT | 1u << TRACE_SAME_FLOW)

static const char *const end_names[] = { [TRACE_ARRIVED] = "destination",
					 [TRACE_UNREACHABLE] = "unreachable",
					 [TRACE_LOOP] = "loop",
					 [TRACE_SILENCE] = "silence" };
static const char *const protocol_names[] = { "UDP", "TCP", "ICMP" };
static const char *const source_names[] = { "none", "nic", "xdp", "kernel", "user" };
static const char *const stage_names[] = { "search", "repeat", "loaded", "same_flow" };
static const char *const kind_names[] = { "", "time_exceeded", "unreachable", "echo_reply", "tcp" };

void trace_say_what(const struct trace_run *run)
{
	const struct trace_options *o = run->o;
	const struct ktrxer_path *path = trace_path_of(run->trace);
	char to[KTRXER_ADDR_TEXT], from[KTRXER_ADDR_TEXT], port[16] = "", wanted[96];

	if (run->spec.proto != KTRXER_ICMP)
		snprintf(port, sizeof port, " to port %u", run->spec.port);
	snprintf(wanted, sizeof wanted, "all next hops with %" PRIu64 " %% of the flows, confidence %s %%",
		 o->min_share, trace_confidences[o->confidence]);
	out_text(run->cli, "trace %s (%s) from %s on %s: %s%s, at most %" PRIu64 " hops, %s", o->host,
		 ktrxer_addr_format(&path->to, to), ktrxer_addr_format(&path->source, from), path->device.name,
		 protocol_names[o->protocol], port, o->hops, o->one_route ? "the route of one flow" : wanted);
}

static void labels_json(struct json *json, const struct trace_sample *s)
{
	trace_answer_mpls_open(json);
	for (uint32_t i = 0; i < s->label_count; i++) {
		json_object(json, NULL);
		trace_label_label(json, s->labels[i].label);
		trace_label_traffic_class(json, s->labels[i].traffic_class);
		trace_label_bottom(json, s->labels[i].bottom);
		trace_label_ttl(json, s->labels[i].ttl);
		json_object_end(json);
	}
	json_array_end(json);
}

static void changes_json(struct json *json, const struct trace_changes *changes)
{
	trace_answer_changed_open(json);
	trace_changes_address(json, changes->address);
	trace_changes_checksum(json, changes->checksum);
	trace_changes_ip_id(json, changes->ip_id);
	trace_changes_tos(json, changes->tos);
	json_object_end(json);
}

void trace_say_answer(void *context, const struct trace_sample *s)
{
	const struct trace_run *run = context;
	struct json *sample = out_sample(run->cli, "hop_answer");
	char from[KTRXER_ADDR_TEXT];

	if (!sample)
		return;
	trace_answer_number(sample, s->sent.number);
	trace_answer_stage(sample, stage_names[s->stage]);
	trace_answer_repetition(sample, s->repetition);
	trace_answer_hop(sample, s->sent.want.hop);
	trace_answer_flow(sample, s->sent.want.flow);
	trace_answer_from(sample, ktrxer_addr_format(&s->from, from));
	trace_answer_answer(sample, kind_names[s->kind]);
	trace_answer_sent_ns(sample, s->sent_ns);
	trace_answer_received_ns(sample, s->received_ns);
	trace_answer_rtt_ns_or_null(sample, s->rtt_ns >= 0, (uint64_t)s->rtt_ns);
	trace_answer_own_queue_ns_or_null(sample, s->own_queue_ns >= 0, (uint64_t)s->own_queue_ns);
	trace_answer_sent_stamp(sample, sent_source_names[s->sent_source]);
	trace_answer_received_stamp(sample, source_names[s->source]);
	trace_answer_ttl(sample, s->ttl);
	if (s->kind == TRACE_TIME_EXCEEDED || s->kind == TRACE_DESTINATION_UNREACHABLE) {
		trace_answer_icmp_type(sample, s->type);
		trace_answer_icmp_code(sample, s->code);
		trace_answer_quoted_ttl(sample, s->quoted_ttl);
		trace_answer_quoted_tos(sample, s->quoted_tos);
		labels_json(sample, s);
		changes_json(sample, &s->changes);
	}
	out_put(run->cli, sample);
}

struct notes {
	char text[NOTES];
	size_t used;
};

static void note(struct notes *notes, const char *separator, const char *text)
{
	const size_t room = sizeof notes->text - notes->used;
	const int n = snprintf(notes->text + notes->used, room, "%s%s", notes->used ? separator : "", text);

	if (n > 0)
		notes->used += (size_t)n < room ? (size_t)n : room - 1;
}

/* Behind an arrow, where the next hop has several nodes: those that this one leads to, as 4.1-4.16. */
static void note_next(const struct trace_run *run, const struct trace_node *node, struct notes *notes)
{
	uint32_t count, position = 0, first = 0, last = 0, linked = 0;
	const struct trace_node *next = trace_graph_nodes(trace_graph_of(run->trace), node->hop + 1, &count);
	char one[48];

	for (uint32_t i = 0; i < count; i++)
		linked += next[i].linked;
	if (!node->next_count || linked < 2)
		return;
	snprintf(one, sizeof one, "-> ");
	note(notes, ", ", one);
	for (uint32_t i = 0; i <= count; i++) {
		bool leads = false;

		for (uint32_t j = 0; i < count && j < node->next_count; j++)
			leads |= node->next[j] == i;
		position += i < count && next[i].linked;
		if (leads && !first)
			first = position;
		if (leads)
			last = position;
		if (first && (!leads && (i == count || next[i].linked))) {
			if (first == last)
				snprintf(one, sizeof one, "%u.%u", node->hop + 1, first);
			else
				snprintf(one, sizeof one, "%u.%u-%u.%u", node->hop + 1, first, node->hop + 1, last);
			note(notes, notes->text[notes->used - 1] == ' ' ? "" : " ", one);
			first = 0;
		}
	}
}

/* Changes of the packet that a line of the table states already. They hold for all later hops. */
struct noted {
	bool translated;
	uint8_t tos;
};

static void note_answer(const struct trace_run *run, const struct trace_figures *f, struct noted *noted,
			struct notes *notes)
{
	const struct trace_sample *s = f->last;
	char one[96];

	if (!s)
		return;
	for (uint32_t i = 0; i < s->label_count; i++) {
		snprintf(one, sizeof one, "MPLS %" PRIu32 " (class %u, TTL %u)", s->labels[i].label,
			 s->labels[i].traffic_class, s->labels[i].ttl);
		note(notes, ", ", one);
	}
	if ((f->changes.address || f->changes.checksum) && !noted->translated) {
		noted->translated = true;
		note(notes, ", ", "behind an address translator");
	}
	if (f->changes.tos && s->quoted_tos != noted->tos) {
		if (s->quoted_tos >> 2 != noted->tos >> 2)
			snprintf(one, sizeof one, "DSCP %u has become %u", run->spec.tos >> 2, s->quoted_tos >> 2);
		else
			snprintf(one, sizeof one, "ECN %u has become %u", run->spec.tos & 3, s->quoted_tos & 3);
		noted->tos = s->quoted_tos;
		note(notes, ", ", one);
	}
}

static void note_end(const struct trace_node *node, const struct trace_figures *f, struct notes *notes)
{
	if (node->end == TRACE_UNREACHABLE && f->last && trace_unreachable_name(f->last))
		note(notes, ", ", trace_unreachable_name(f->last));
	else if (node->end == TRACE_LOOP)
		note(notes, ", ", "a loop: this router was passed twice before");
	else if (node->end == TRACE_ARRIVED)
		note(notes, ", ", "destination");
	else if (node->unreachable_goes_on)
		note(notes, ", ", "answers an expired TTL with \"unreachable\"");
}

static const char *known_ns(char text[KTRXER_UNITS_TEXT], int64_t ns)
{
	return ns < 0 ? "?" : ktrxer_format_ns(text, ns);
}

static void node_text(const struct trace_run *run, const struct trace_node *node, uint32_t index,
		      const struct trace_figures *f, struct noted *noted)
{
	const int width = run->spec.to.family == AF_INET6 ? 39 : 15;
	char id[TRACE_NODE_ID], address[KTRXER_ADDR_TEXT] = "*", x[3][KTRXER_UNITS_TEXT];
	struct notes notes = { .used = 0 };

	trace_node_id(run->trace, node->hop, index, id);
	note_next(run, node, &notes);
	if (!node->addr.family) {
		out_text(run->cli, "%-7s %-*s  %42s  %s", id, width, address, "no answer", notes.text);
		return;
	}
	ktrxer_addr_format(&node->addr, address);
	note_answer(run, f, noted, &notes);
	note_end(node, f, &notes);
	out_text(run->cli, "%-7s %-*s %7" PRIu32 " %11s %11s %11s  %s", id, width, address, f->answers,
		 known_ns(x[0], f->min_ns), known_ns(x[1], f->p50_ns), known_ns(x[2], f->max_ns), notes.text);
}

static void node_json(const struct trace_run *run, struct json *json, const struct trace_node *node, uint32_t index,
		      const struct trace_figures *f)
{
	char text[KTRXER_ADDR_TEXT];

	json_object(json, NULL);
	trace_router_id(json, trace_node_id(run->trace, node->hop, index, text));
	trace_router_address(json, node->addr.family ? ktrxer_addr_format(&node->addr, text) : NULL);
	trace_router_flows(json, node->flows);
	trace_router_answers(json, f->answers);
	trace_router_rtt_us_open(json);
	trace_rtt_min_or_null(json, f->min_ns >= 0, f->min_ns);
	trace_rtt_p50_or_null(json, f->p50_ns >= 0, f->p50_ns);
	trace_rtt_max_or_null(json, f->max_ns >= 0, f->max_ns);
	json_object_end(json);
	trace_router_next_open(json);
	for (uint32_t i = 0; i < node->next_count; i++)
		json_string(json, NULL, trace_node_id(run->trace, node->hop + 1, node->next[i], text));
	json_array_end(json);
	trace_router_complete(json, node->complete);
	trace_router_end(json, end_names[node->end]);
	trace_router_unreachable(json,
				 node->end == TRACE_UNREACHABLE && f->last ? trace_unreachable_name(f->last) : NULL);
	if (f->last) {
		trace_router_answer_ttl(json, f->last->ttl);
		labels_json(json, f->last);
		changes_json(json, &f->changes);
		trace_router_translated(json, f->changes.address || f->changes.checksum);
	}
	json_object_end(json);
}

static void hops_report(const struct trace_run *run, struct json *json)
{
	const struct trace_graph *graph = trace_graph_of(run->trace);
	const struct trace_result *result = trace_result_of(run->trace);
	const int width = run->spec.to.family == AF_INET6 ? 39 : 15;
	const uint8_t hops = trace_graph_hops(graph);
	struct noted noted = { .tos = run->spec.tos };

	if (hops)
		out_text(run->cli, "%-7s %-*s %7s %11s %11s %11s  %s", "hop", width, "address", "answers", "min", "p50",
			 "max", "next hops, notes");
	trace_end_hops_open(json);
	for (uint8_t hop = 1; hop <= hops; hop++) {
		uint32_t count;
		const struct trace_node *nodes = trace_graph_nodes(graph, hop, &count);

		json_object(json, NULL);
		trace_hop_hop(json, hop);
		trace_hop_sent(json, result->hops[hop].sent);
		trace_hop_answered(json, result->hops[hop].answered);
		trace_hop_nodes_open(json);
		for (uint32_t i = 0; i < count; i++) {
			struct trace_figures figures;

			if (!nodes[i].linked)
				continue;
			if (trace_figures_of(run->trace, &nodes[i], IDLE_STAGES, &figures) < 0)
				reason_trace_memory(run->cli, hop);
			node_text(run, &nodes[i], i, &figures, &noted);
			node_json(run, json, &nodes[i], i, &figures);
		}
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
}

struct summary {
	uint32_t balancers,
		tested;        /* routers with several next hops; routers that the stopping rule has decided about */
	uint32_t silent_share; /* see trace_silent_share() */
	bool arrived, whole;
	bool meshed;      /* several routers lead to several of the next hop: links between them may be missing */
	uint8_t last_hop; /* with an answer */
};

static void summarize(const struct trace_run *run, struct summary *s)
{
	const struct trace_graph *graph = trace_graph_of(run->trace);
	uint32_t linked = 0, before = 0;

	*s = (struct summary){ .whole = true };
	if (!run->o->one_route)
		s->silent_share = trace_silent_share(run->trace, run->spec.failure, (uint32_t)run->o->min_share);
	for (uint8_t hop = 0; hop <= trace_graph_hops(graph); hop++, before = linked, linked = 0) {
		uint32_t count;
		const struct trace_node *nodes = trace_graph_nodes(graph, hop, &count);

		for (uint32_t i = 0; i < count; i++) {
			if (!nodes[i].linked)
				continue;
			s->meshed |= ++linked > 1 && before > 1;
			s->balancers += nodes[i].balances;
			/* The own kernel has chosen the next hop for all flows. */
			s->tested += nodes[i].complete && (hop || !(trace_result_of(run->trace)->own_next_hops > 1));
			s->arrived |= nodes[i].end == TRACE_ARRIVED;
			if (nodes[i].addr.family)
				s->last_hop = hop;
			s->whole &= nodes[i].complete || nodes[i].end != TRACE_GOES_ON;
		}
	}
}

static struct path_report path_of(const struct trace_run *run)
{
	return (struct path_report){ .cli = run->cli,
				     .witness = &trace_result_of(run->trace)->path,
				     .claim = trace_path_of(run->trace),
				     .host = run->o->host,
				     .from_named = run->spec.from.family };
}

static void judge(const struct trace_run *run, const struct summary *s)
{
	const struct trace_result *r = trace_result_of(run->trace);
	const uint32_t moved = trace_moved(run->trace);
	const int64_t timeout_ns = (int64_t)run->spec.timeout_ns;
	const struct path_report path = path_of(run);
	struct cli *cli = run->cli;
	char word[80];

	if (r->failure.code)
		reason_failure(cli, VERDICT_INVALID, r->failure.code, r->failure.text);
	cli->no_figure = !s->last_hop;
	if (r->stopped)
		reason_trace_stopped(cli);
	if (r->failed)
		reason_trace_unsent(cli, r->failed, verdict_send_error(r->failed_error, word, sizeof word));
	if (run->late_idle)
		reason_trace_too_late(cli, s->last_hop ? VERDICT_DEGRADED : VERDICT_INVALID, run->late_idle,
				      timeout_ns);
	else if (!s->last_hop)
		reason_trace_silent(cli, timeout_ns);
	else if (!s->arrived)
		reason_trace_target_silent(cli, run->o->host, timeout_ns, s->last_hop);
	if (trace_graph_is_cut(trace_graph_of(run->trace)))
		reason_trace_too_many(cli);
	/* A silent next hop may carry most flows. */
	if (r->in_doubt && (s->meshed || s->silent_share == 100))
		reason_trace_in_doubt(cli, r->in_doubt);
	if (moved)
		reason_trace_moved(cli, moved);
	if (r->receiver_drops)
		reason_receive_buffer(cli, r->receiver_drops);
#ifndef KTRXER_SMALL
	if (r->own_next_hops > 1 && !run->o->one_route && s->last_hop)
		reason_trace_own_next_hops(cli, run->o->host, r->own_next_hops);
#endif
	path_report_judge(&path);
	verdict_bypass(cli, trace_info_of(run->trace), &r->qdiscs, "raw");
}

static double by_packet_missed(const struct trace_run *run)
{
	size_t count;
	const struct trace_sample *samples = trace_samples(run->trace, &count);

	return trace_same_flow_miss(trace_graph_of(run->trace), samples, count);
}

static void summary_text(const struct trace_run *run, const struct summary *s)
{
	const struct trace_result *r = trace_result_of(run->trace);
	const uint64_t routes = trace_graph_routes(trace_graph_of(run->trace));
	char spent[KTRXER_UNITS_TEXT];
	const struct path_report path = path_of(run);
	char silent[96] = "";

	if (s->silent_share > run->o->min_share)
		snprintf(silent, sizeof silent, "; of those that never answer: with %" PRIu32 " %%", s->silent_share);
	if (!run->o->one_route && s->last_hop && s->tested)
		out_text(run->cli,
			 "%" PRIu64 " route%s, %" PRIu32 " router%s that balance%s load; with a probability of "
			 "%s %% over the whole search, no next hop with %" PRIu64
			 " %% of the flows or more is missed%s",
			 routes, routes == 1 ? "" : "s", s->balancers, s->balancers == 1 ? "" : "s",
			 s->balancers == 1 ? "s" : "", trace_confidences[run->o->confidence], run->o->min_share,
			 silent);
	if (!run->o->one_route && s->balancers)
		out_text(run->cli,
			 "flows of %s were probed again: a router that balances packet by packet is missed with a "
			 "probability of %.3g %%",
			 s->balancers == 1 ? "this router" : "these routers", 100 * by_packet_missed(run));
	out_text(run->cli,
		 "%" PRIu64 " probes in %s: %" PRIu64 " answered, %" PRIu64 " answered twice, %" PRIu64
		 " answered too late",
		 r->sent, ktrxer_format_ns(spent, (int64_t)(r->end_ns - r->begin_ns)), r->answered, r->duplicates,
		 r->late);
	path_report_text(&path);
	if (r->user_stamped)
		out_text(run->cli,
			 "%" PRIu64
			 " arrivals have no stamp of the kernel: their round trips include this program's delay",
			 r->user_stamped);
}

static void end_json(const struct trace_run *run, struct json *end, const struct summary *s)
{
	const struct ktrxer_path *path = trace_path_of(run->trace);
	const struct trace_result *r = trace_result_of(run->trace);
	const struct path_report report = path_of(run);

	json_target(end, run->o->host, path);
	path_report_json(&report, end);
	trace_end_protocol(end, trace_protocols[run->o->protocol]);
	if (run->spec.proto != KTRXER_ICMP)
		trace_end_port(end, run->spec.port);
	trace_end_one_route(end, run->o->one_route);
#ifndef KTRXER_SMALL
	trace_end_own_next_hops(end, r->own_next_hops);
#endif
	if (!run->o->one_route) {
		trace_end_failure_probability(end, run->spec.failure);
		trace_end_min_share_percent(end, run->o->min_share);
		trace_end_silent_share_percent(end, s->silent_share);
		trace_end_routes(end, trace_graph_routes(trace_graph_of(run->trace)));
		trace_end_balancers(end, s->balancers);
		if (s->balancers)
			trace_end_by_packet_missed(end, by_packet_missed(run));
		trace_end_complete(end, s->whole && !r->stopped && !r->failure.code &&
						!trace_graph_is_cut(trace_graph_of(run->trace)) &&
						r->own_next_hops < 2);
	}
	trace_end_arrived(end, s->arrived);
	trace_end_elapsed_ns(end, r->end_ns - r->begin_ns);
	trace_end_sent(end, r->sent);
	trace_end_failed(end, r->failed);
	trace_end_answered(end, r->answered);
	trace_end_unanswered(end, r->unanswered);
	trace_end_duplicates(end, r->duplicates);
	trace_end_late(end, r->late);
	trace_end_foreign(end, r->foreign);
	trace_end_user_stamped(end, r->user_stamped);
	trace_end_moved(end, trace_moved(run->trace));
	trace_end_privileges_dropped(end, trace_privileges_of(run->trace)->no_capabilities);
}

int trace_finish(const struct trace_run *run)
{
	struct json *end = out_end(run->cli);
	struct summary summary;

	summarize(run, &summary);
	judge(run, &summary);
	trace_load_judge(run);
	end_json(run, end, &summary);
	hops_report(run, end);
	trace_load_report(run, end);
	summary_text(run, &summary);
	return out_finish(run->cli, end);
}
