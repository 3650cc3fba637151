/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The JSON object of the end of `flow`: each flow, the sums, and the uncertainty of the times. */
#include "dscp.h"
#include "flow.h"

static const char *error_of(const struct flow_run *run, uint32_t flow)
{
	return run->results[flow].as_planned || run->interrupted ? NULL : flow_why_ended(run, flow);
}

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
	json_bool(json, "receiver_limited", run->results[i].receiver_limited);
#ifndef KTRXER_SMALL
	json_bool(json, "sender_limited", run->results[i].sender_limited || run->results[i].sender_idle);
	json_fixed_or_null(json, "sender_idle_percent", sender->ended && sender->end.idle != UINT32_MAX,
			   sender->end.idle, 1);
#endif
	json_string(json, "cc",
		    run->shown[i].cc[0]   ? run->shown[i].cc
		    : sender->end.cc[0]   ? sender->end.cc
		    : run->specs[i].cc[0] ? run->specs[i].cc
					  : NULL);
	json_string(json, "ecn", options == UINT64_MAX ? NULL : options & FLOW_ECN_NEGOTIATED ? "on" : "off");
}

static void udp_json(const struct flow_run *run, struct json *json, uint32_t i)
{
	const struct flow_record *r = &run->records[i];
	const struct flow_side *s = run->results[i].sender;
	struct ktx_accounts accounts;
	struct ktrxer_hist *lateness = flow_client_lateness(run->client, i, &accounts);

	json_u64_or_null(json, "sent_packets", s->ended, s->end.packets);
	json_u64_or_null(json, "due_packets", s->ended && s->end.due_packets != UINT64_MAX, s->end.due_packets);
	json_u64_or_null(json, "late_packets", s->ended && s->end.late_packets != UINT64_MAX, s->end.late_packets);
	for (int v = 0; v < FLOW_UDP_VALUES; v++)
		value_json(json, v == FLOW_PACKETS ? "received_packets" : flow_udp_names[v], r, v);
	json_string(json, "ecn", ecn_names[run->specs[i].tos & 3]);
	if (lateness)
		json_hist_us(json, "lateness_us", lateness);
	else
		json_null(json, "lateness_us");
	ktrxer_hist_free(lateness);
	json_null(json, "retransmits");
	json_null(json, "cc");
}

static void flow_json(const struct flow_run *run, struct json *json, uint32_t i)
{
	const struct flow_result *r = &run->results[i];
	const struct flow_spec *s = &run->specs[i];

	json_object(json, NULL);
	json_u64(json, "flow", i);
	json_string(json, "direction", flow_direction_of(run, i));
	json_u64(json, "bytes", r->bytes);
	json_u64(json, "rate_bps", r->rate_bps);
	json_u64_or_null(json, "received_bytes", r->received_known, r->received_bytes);
	/* Of a UDP flow nothing is acknowledged. */
	json_u64_or_null(json, s->udp ? "sent_bytes" : "acked_bytes", r->acked_known, r->acked_bytes);
	json_u64(json, "dscp", s->tos >> 2);
	if (s->udp)
		udp_json(run, json, i);
	else
		tcp_json(run, json, i);
	json_u64(json, "start_ns", r->start_ns);
	json_u64(json, "duration_ns", r->duration_ns);
	json_u64(json, "samples_local", run->records[i].local.samples);
	json_u64(json, "samples_remote", run->records[i].remote.samples);
	json_u64(json, "samples_missing", r->missing_samples);
	json_string(json, "error", error_of(run, i));
	json_object_end(json);
}

static void waits_json(const struct flow_run *run, struct json *end)
{
	json_object(end, "processor_wait_percent");
	for (int here = 0; here < 2; here++) {
		const uint32_t waited = flow_waited_most(run, here);

		json_fixed_or_null(end, here ? "here" : "server", waited != UINT32_MAX, waited, 1);
	}
	json_object_end(end);
}

void flow_end_json(const struct flow_run *run, struct json *end, const struct flow_total totals[2])
{
	const struct clock_offset_result *c = &run->result.clock;
	char address[KTRXER_ADDR_TEXT];

	json_string(end, "server", run->o->host);
	json_string(end, "to", ktrxer_addr_format(&run->plan.to, address));
	json_u64(end, "port", run->o->port);
	json_string(end, "protocol", run->o->udp ? "udp" : "tcp");
	json_string(end, "direction", run->o->direction);
	json_u64(end, "start_ns", run->result.start_ns);
	json_u64(end, "sample_ns", run->plan.request.sample_ns);
	json_array(end, "flows");
	for (uint32_t i = 0; i < run->plan.request.flows; i++)
		flow_json(run, end, i);
	json_array_end(end);
	json_u64(end, "bytes", totals[0].bytes + totals[1].bytes);
	json_u64(end, "rate_bps", totals[0].rate_bps + totals[1].rate_bps);
	json_u64_or_null(end, "up_bps", run->up, totals[0].rate_bps);
	json_u64_or_null(end, "down_bps", run->down, totals[1].rate_bps);
	json_u64(end, "server_began_late_ns", run->result.begun_late_ns);
	json_u64_or_null(end, "server_limit_bps", run->result.pace_bps != 0, run->result.pace_bps);
	json_u64_or_null(end, "control_up_bytes", run->result.control_known, run->result.control_up_bytes);
	json_u64_or_null(end, "control_down_bytes", run->result.control_known, run->result.control_down_bytes);
	waits_json(run, end);
	json_object(end, "clock");
	json_i64(end, "offset_ns", c->offset_ns);
	json_u64(end, "bound_ns", run->result.clock_bound_ns);
	json_u64(end, "at_ns", c->at_ns);
	if (c->skew_known)
		json_rounded(end, "skew_ppm", c->skew_ppm, 6);
	else
		json_null(end, "skew_ppm");
	json_u64(end, "exchanges", c->points);
	json_u64(end, "rtt_ns", run->result.rtt_ns);
	json_object_end(end);
}
