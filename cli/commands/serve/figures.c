/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "figures.h"

#include "fields_serve.h"
#include "json.h"

static void control_json(struct json *json, const struct serve_control_counts *c)
{
	serve_end_flows_open(json);
	serve_flows_connections(json, c->connections);
	serve_flows_clients(json, c->sessions);
	serve_flows_started(json, c->flows);
	serve_flows_bytes_in(json, c->bytes[0]);
	serve_flows_bytes_out(json, c->bytes[1]);
	serve_flows_packets_in(json, c->packets[0]);
	serve_flows_packets_out(json, c->packets[1]);
	serve_flows_clients_lost(json, c->lost_clients);
	serve_flows_pending_displaced(json, c->displaced);
	serve_flows_pending_slow(json, c->slow);
	serve_flows_protocol_errors(json, c->protocol_errors);
	serve_flows_refused_open(json);
	for (int i = CONTROL_OK + 1; i < CONTROL_REFUSALS; i++)
		json_u64(json, control_refusal_names[i], c->refused[i]);
	json_object_end(json);
	json_object_end(json);
}

static void stamp_json(struct json *json, const struct reflector_counts *c, const struct serve_udp_counts *sum)
{
	serve_end_stamp_open(json);
	serve_stamp_received(json, c->received);
	for (int v = 0; v < REFLECTOR_VERDICTS; v++)
		json_u64(json, reflector_verdict_names[v], c->verdicts[v]);
	serve_stamp_sent(json, sum->sent);
	serve_stamp_refused_by_kernel(json, sum->refused);
	serve_stamp_lost_in_socket(json, sum->overflows);
	serve_stamp_without_kernel_stamp(json, sum->user_stamps);
	serve_stamp_leaving_stamps(json, sum->left_stamps);
	serve_stamp_sessions(json, c->sessions);
	serve_stamp_without_session(json, c->without_session);
	serve_stamp_tlv_integrity_failed(json, c->tlv_integrity);
	json_object_end(json);
}

void figures_json(struct json *json, const struct serve_figures *f)
{
	stamp_json(json, &f->stamp, &f->sockets);
	control_json(json, &f->flows);
}
