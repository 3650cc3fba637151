/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The JSON object of the end of `flow`: each flow, the sums, and the uncertainty of the times. */
#include "dscp.h"

#include "fields_common.h"
#include "fields_flow.h"
#include "flow.h"
#include "marks_report.h"
#include "path_report.h"

static const char *error_of(const struct flow_run *run, uint32_t flow)
{
	return run->results[flow].as_planned || run->interrupted ? NULL : flow_why_ended(run, flow);
}

#ifndef KTRXER_SMALL
static void ecn_json(const struct flow_result *r, struct json *json)
{
	const struct flow_end *end = &r->receiver->end;
	const bool known = r->receiver->ended && end->ecn_seen != FLOW_ECN_UNKNOWN;

	if (known)
		flow_result_ecn_arrived(json, end->ecn_seen == FLOW_ECN_SEEN);
	else
		flow_result_ecn_arrived_null(json);
	flow_result_received_ce_or_null(json, known && end->ce_segments != UINT32_MAX, end->ce_segments);
}
#endif

static void value_json(struct json *json, const char *key, const struct flow_record *r, int which)
{
	json_u64_or_null(json, key, flow_value(r, which) != UINT64_MAX, flow_value(r, which));
}

static void tcp_json(const struct flow_run *run, struct json *json, uint32_t i)
{
	const struct flow_record *r = &run->records[i];
	const uint64_t options = flow_value(r, FLOW_OPTIONS);
	const struct flow_side *sender = run->results[i].sender;

	value_json(json, "retransmits", r, FLOW_RETRANSMITS);
	value_json(json, "delivered_ce", r, FLOW_DELIVERED_CE);
	value_json(json, "min_rtt_us", r, FLOW_MIN_RTT_US);
	flow_result_receiver_limited(json, run->results[i].receiver_limited);
#ifndef KTRXER_SMALL
	flow_result_sender_limited(json, run->results[i].sender_limited || run->results[i].sender_idle);
	flow_result_sender_idle_percent_or_null(json, sender->ended && sender->end.idle != UINT32_MAX,
						sender->end.idle);
#endif
	flow_result_cc(json, run->shown[i].cc[0]   ? run->shown[i].cc
			     : sender->end.cc[0]   ? sender->end.cc
			     : run->specs[i].cc[0] ? run->specs[i].cc
						   : NULL);
#ifndef KTRXER_SMALL
	ecn_json(&run->results[i], json);
#endif
	flow_result_ecn(json, options == UINT64_MAX ? NULL : options & FLOW_ECN_NEGOTIATED ? "on" : "off");
}

static void udp_json(const struct flow_run *run, struct json *json, uint32_t i)
{
	const struct flow_record *r = &run->records[i];
	const struct flow_side *s = run->results[i].sender;
	const struct flow_side *receiver = run->results[i].receiver;
	const struct marks_report marks = { .arrived = &receiver->end.marks, .known = flow_marks_known(receiver) };
	struct ktx_accounts accounts;
	struct ktrxer_hist *lateness = flow_client_lateness(run->client, i, &accounts);

	flow_result_sent_packets_or_null(json, s->ended, s->end.packets);
	flow_result_due_packets_or_null(json, s->ended && s->end.due_packets != UINT64_MAX, s->end.due_packets);
	flow_result_late_packets_or_null(json, s->ended && s->end.late_packets != UINT64_MAX, s->end.late_packets);
	for (int v = 0; v < FLOW_UDP_VALUES; v++)
		value_json(json, v == FLOW_PACKETS ? "received_packets" : flow_udp_names[v], r, v);
	flow_result_ecn(json, ecn_names[run->specs[i].tos & 3]);
	marks_report_json(&marks, "marks", json);
#ifndef KTRXER_SMALL
	flow_result_source_changes_or_null(json, r->remote.ended, r->remote.end.moves);
#endif
	if (lateness)
		flow_result_lateness_us(json, lateness);
	else
		flow_result_lateness_us_null(json);
	ktrxer_hist_free(lateness);
	flow_result_retransmits_null(json);
	flow_result_cc_null(json);
}

static void flow_json(const struct flow_run *run, struct json *json, uint32_t i)
{
	const struct flow_result *r = &run->results[i];
	const struct flow_spec *s = &run->specs[i];

	json_object(json, NULL);
	flow_result_flow(json, i);
	flow_result_direction(json, flow_direction_of(run, i));
	flow_result_bytes(json, r->bytes);
	flow_result_rate_bps(json, r->rate_bps);
	flow_result_received_bytes_or_null(json, r->received_known, r->received_bytes);
	/* UDP acknowledges nothing. */
	json_u64_or_null(json, s->udp ? "sent_bytes" : "acked_bytes", r->acked_known, r->acked_bytes);
	flow_result_dscp(json, s->tos >> 2);
	if (s->udp)
		udp_json(run, json, i);
	else
		tcp_json(run, json, i);
	flow_result_start_ns(json, r->start_ns);
	flow_result_duration_ns(json, r->duration_ns);
	flow_result_coverage_percent(json, r->coverage);
	flow_result_samples_local(json, run->records[i].local.samples);
	flow_result_samples_remote(json, run->records[i].remote.samples);
	flow_result_samples_missing(json, r->missing_samples);
	flow_result_error(json, error_of(run, i));
	json_object_end(json);
}

static void waits_json(const struct flow_run *run, struct json *end)
{
	flow_end_processor_wait_percent_open(end);
	for (int here = 0; here < 2; here++) {
		const uint32_t waited = flow_waited_most(run, here);

		json_fixed_or_null(end, here ? "here" : "server", waited != UINT32_MAX, waited, 1);
	}
	json_object_end(end);
}

void flow_end_json(const struct flow_run *run, struct json *end, const struct flow_total totals[2])
{
	const struct clock_offset_result *c = &run->result.clock;
	const struct path_report path = flow_path_report(run);
	char address[KTRXER_ADDR_TEXT];

	flow_end_server(end, run->o->host);
	flow_end_to(end, ktrxer_addr_format(&run->plan.to, address));
	flow_end_from(end, ktrxer_addr_format(&run->path.source, address));
	flow_end_device(end, run->path.device.name);
	path_report_json(&path, end);
	flow_end_port(end, run->o->port);
	flow_end_protocol(end, run->o->udp ? "udp" : "tcp");
	flow_end_direction(end, run->o->direction);
	flow_end_start_ns(end, run->result.start_ns);
	flow_end_sample_ns(end, run->plan.request.sample_ns);
	flow_end_flows_open(end);
	for (uint32_t i = 0; i < run->plan.request.flows; i++)
		flow_json(run, end, i);
	json_array_end(end);
	flow_findings_json(run, end);
	flow_end_bytes(end, totals[0].bytes + totals[1].bytes);
	flow_end_rate_bps_or_null(end,
				  (!run->up || flow_has_rate(&totals[0])) && (!run->down || flow_has_rate(&totals[1])),
				  totals[0].rate_bps + totals[1].rate_bps);
	flow_end_up_bps_or_null(end, flow_has_rate(&totals[0]), totals[0].rate_bps);
	flow_end_down_bps_or_null(end, flow_has_rate(&totals[1]), totals[1].rate_bps);
	flow_end_up_coverage_percent_or_null(end, run->up, totals[0].coverage);
	flow_end_down_coverage_percent_or_null(end, run->down, totals[1].coverage);
	flow_end_server_began_late_ns(end, run->result.begun_late_ns);
	flow_end_server_limit_bps_or_null(end, run->result.pace_bps != 0, run->result.pace_bps);
	flow_end_control_up_bytes_or_null(end, run->result.control_known, run->result.control_up_bytes);
	flow_end_control_down_bytes_or_null(end, run->result.control_known, run->result.control_down_bytes);
	waits_json(run, end);
	flow_end_clock_open(end);
	flow_clock_offset_ns(end, c->offset_ns);
	flow_clock_bound_ns(end, run->result.clock_bound_ns);
	flow_clock_at_ns(end, c->at_ns);
	if (c->skew_known)
		flow_clock_skew_ppm(end, c->skew_ppm);
	else
		flow_clock_skew_ppm_null(end);
	flow_clock_exchanges(end, c->points);
	flow_clock_rtt_ns(end, run->result.rtt_ns);
	json_object_end(end);
}
