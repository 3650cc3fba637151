/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "metrics.h"

#include "error.h"
#include "metric_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int metrics_address(struct ktrxer_addr *addr, uint16_t *port, const char *text, struct ktrxer_error *err)
{
	const char *colon = strrchr(text, ':'), *from = text;
	size_t length = colon ? (size_t)(colon - text) : 0;
	char host[KTRXER_ADDR_TEXT] = "", *rest = NULL;
	unsigned long number = 0;

	if (length >= 2 && *text == '[' && text[length - 1] == ']') {
		from++;
		length -= 2;
	} else if (colon && memchr(text, ':', length)) {
		length = 0; /* IPv6 without brackets: no colon is certain to precede a port */
	}
	if (length && length < sizeof host && colon[1] >= '0' && colon[1] <= '9') {
		memcpy(host, from, length);
		host[length] = '\0';
		number = strtoul(colon + 1, &rest, 10);
	}
	if (!rest || *rest || !number || number > 65535 || ktrxer_addr_parse(addr, host) < 0)
		return ktrxer_fail(
			err, -EINVAL,
			"--metrics %s: not ADDR:PORT; give an address of this host and a port, as in 127.0.0.1:9620 or "
			"[::1]:9620",
			text);
	*port = (uint16_t)number;
	return 0;
}

void metrics_write(struct metrics_text *t, const struct serve_figures *f)
{
	metric_clients(t, f->clients);
	metric_pending_connections(t, f->pending);
	metric_connections(t, f->flows.connections);
	metric_clients_granted(t, f->flows.sessions);
	metric_clients_lost(t, f->flows.lost_clients);
	metric_pending_displaced(t, f->flows.displaced);
	metric_pending_slow(t, f->flows.slow);
	metric_protocol_errors(t, f->flows.protocol_errors);
	metric_flows_started(t, f->flows.flows);
	metric_stamp_requests(t, f->stamp.received);
	metric_stamp_answers(t, f->sockets.sent);
	metric_stamp_answers_rejected(t, f->sockets.refused);
	metric_stamp_sessions(t, f->stamp.sessions);
	metric_stamp_without_session(t, f->stamp.without_session);
	metric_socket_drops(t, f->sockets.overflows);
	metric_log_lines_left_out(t, f->log_left_out);
	metric_loop_calls(t, f->loop.calls);
	metric_flow_refusals(t, control_refusal_names, f->flows.refused, CONTROL_REFUSALS);
	metric_stamp_refusals(t, reflector_verdict_names, f->stamp.verdicts, REFLECTOR_VERDICTS);
	metric_flow_bytes(t, f->flows.bytes[0], f->flows.bytes[1]);
	metric_flow_packets(t, f->flows.packets[0], f->flows.packets[1]);
	metric_stamp_bytes(t, f->stamp.bytes_in, f->stamp.bytes_out);
	metric_loop_ready_sources(t, f->loop.ready);
	metric_loop_longest_call_seconds(t, f->loop.longest_ns);
}
