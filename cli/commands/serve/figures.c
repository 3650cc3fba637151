/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "figures.h"

#include "json.h"

static void control_json(struct json *json, const struct serve_control_counts *c)
{
	json_object(json, "flows");
	json_u64(json, "connections", c->connections);
	json_u64(json, "clients", c->sessions);
	json_u64(json, "started", c->flows);
	json_u64(json, "bytes_in", c->bytes[0]);
	json_u64(json, "bytes_out", c->bytes[1]);
	json_u64(json, "packets_in", c->packets[0]);
	json_u64(json, "packets_out", c->packets[1]);
	json_u64(json, "clients_lost", c->lost_clients);
	json_u64(json, "pending_displaced", c->displaced);
	json_u64(json, "pending_slow", c->slow);
	json_u64(json, "protocol_errors", c->protocol_errors);
	json_object(json, "refused");
	for (int i = CONTROL_OK + 1; i < CONTROL_REFUSALS; i++)
		json_u64(json, control_refusal_names[i], c->refused[i]);
	json_object_end(json);
	json_object_end(json);
}

static void stamp_json(struct json *json, const struct reflector_counts *c, const struct serve_udp_counts *sum)
{
	json_object(json, "stamp");
	json_u64(json, "received", c->received);
	for (int v = 0; v < REFLECTOR_VERDICTS; v++)
		json_u64(json, reflector_verdict_names[v], c->verdicts[v]);
	json_u64(json, "sent", sum->sent);
	json_u64(json, "refused_by_kernel", sum->refused);
	json_u64(json, "lost_in_socket", sum->overflows);
	json_u64(json, "without_kernel_stamp", sum->user_stamps);
	json_u64(json, "leaving_stamps", sum->left_stamps);
	json_u64(json, "sessions", c->sessions);
	json_u64(json, "without_session", c->without_session);
	json_u64(json, "tlv_integrity_failed", c->tlv_integrity);
	json_object_end(json);
}

void figures_json(struct json *json, const struct serve_figures *f)
{
	stamp_json(json, &f->stamp, &f->sockets);
	control_json(json, &f->flows);
	if (!KTRXER_SERVER_EXTRAS)
		return;
	json_object(json, "capacity");
	json_u64(json, "requests", f->capacity.requests);
	json_u64(json, "tests", f->capacity.tests);
	json_u64(json, "refused", f->capacity.refused);
	json_u64(json, "bytes_in", f->capacity.bytes[0]);
	json_u64(json, "bytes_out", f->capacity.bytes[1]);
	json_u64(json, "lost_in_socket", f->capacity.socket_drops);
	json_object_end(json);
	json_object(json, "owamp");
	json_u64(json, "connections", f->owamp.connections);
	json_u64(json, "sessions", f->owamp.sessions);
	json_u64(json, "refused", f->owamp.refused);
	json_u64(json, "protocol_errors", f->owamp.protocol_errors);
	json_u64(json, "packets_in", f->owamp.packets[0]);
	json_u64(json, "packets_out", f->owamp.packets[1]);
	json_u64(json, "lost_in_socket", f->owamp.socket_drops);
	json_object_end(json);
	json_u64(json, "log_lines_left_out", f->log_left_out);
}
