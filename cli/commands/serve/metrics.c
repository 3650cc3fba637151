/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "metrics.h"

#include "error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Families of one value, a member of struct serve_figures. */
static const struct plain {
	const char *name;
	enum metrics_type type;
	size_t offset;
	const char *help;
} plain[] = {
#define FIGURE(member) offsetof(struct serve_figures, member)
	{ "ktrxer_clients", METRICS_GAUGE, FIGURE(clients), "Clients that have proven the token, at present." },
	{ "ktrxer_pending_connections", METRICS_GAUGE, FIGURE(pending),
	  "Connections that have not stated their purpose, at present." },
	{ "ktrxer_connections", METRICS_COUNTER, FIGURE(flows.connections), "TCP connections of all kinds." },
	{ "ktrxer_clients_granted", METRICS_COUNTER, FIGURE(flows.sessions), "Clients whose request was granted." },
	{ "ktrxer_clients_lost", METRICS_COUNTER, FIGURE(flows.lost_clients),
	  "Clients that were gone before their flows had ended." },
	{ "ktrxer_pending_displaced", METRICS_COUNTER, FIGURE(flows.displaced),
	  "Connections without the token that made room for others." },
	{ "ktrxer_pending_slow", METRICS_COUNTER, FIGURE(flows.slow),
	  "Connections that did not prove the token in time." },
	{ "ktrxer_protocol_errors", METRICS_COUNTER, FIGURE(flows.protocol_errors),
	  "Connections and datagrams of another protocol, or with a wrong cookie." },
	{ "ktrxer_flows_started", METRICS_COUNTER, FIGURE(flows.flows), "Flows that have begun." },
	{ "ktrxer_stamp_requests", METRICS_COUNTER, FIGURE(stamp.received), "Packets that the reflector has judged." },
	{ "ktrxer_stamp_answers", METRICS_COUNTER, FIGURE(sockets.sent), "Answers that the kernel has taken." },
	{ "ktrxer_stamp_answers_rejected", METRICS_COUNTER, FIGURE(sockets.refused),
	  "Answers that the kernel has not taken." },
	{ "ktrxer_stamp_sessions", METRICS_COUNTER, FIGURE(stamp.sessions), "Sessions made." },
	{ "ktrxer_stamp_without_session", METRICS_COUNTER, FIGURE(stamp.without_session),
	  "Answers without a session, because the table had no room." },
	{ "ktrxer_socket_drops", METRICS_COUNTER, FIGURE(sockets.overflows),
	  "Datagrams that the UDP sockets had no room for." },
	{ "ktrxer_capacity_tests", METRICS_COUNTER, FIGURE(capacity.tests),
	  "Tests of IP-layer capacity that have begun." },
	{ "ktrxer_capacity_refusals", METRICS_COUNTER, FIGURE(capacity.refused),
	  "Requests for a test of IP-layer capacity that were refused." },
	{ "ktrxer_owamp_sessions", METRICS_COUNTER, FIGURE(owamp.sessions), "Sessions of OWAMP that have begun." },
	{ "ktrxer_owamp_refusals", METRICS_COUNTER, FIGURE(owamp.refused),
	  "Connections and requests of OWAMP that were refused." },
	{ "ktrxer_log_lines_left_out", METRICS_COUNTER, FIGURE(log_left_out),
	  "Lines about clients above the limit of the log." },
	{ "ktrxer_loop_calls", METRICS_COUNTER, FIGURE(loop.calls), "Calls of sources and timers by the event loop." },
};

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
		length = 0; /* IPv6 without brackets: which colon would be the last? */
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

static void by_direction(struct metrics_text *t, const char *name, uint64_t up, uint64_t down, const char *help)
{
	metrics_family(t, name, METRICS_COUNTER, help);
	metrics_value(t, name, METRICS_COUNTER, "direction", "up", up);
	metrics_value(t, name, METRICS_COUNTER, "direction", "down", down);
}

static void by_reason(struct metrics_text *t, const char *name, const char *const *reasons, const uint64_t *counts,
		      int count, const char *help)
{
	metrics_family(t, name, METRICS_COUNTER, help);
	for (int i = 1; i < count; i++) /* 0: not refused */
		metrics_value(t, name, METRICS_COUNTER, "reason", reasons[i], counts[i]);
}

void metrics_write(struct metrics_text *t, const struct serve_figures *f)
{
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
		const struct plain *p = &plain[i];
		uint64_t value;

		memcpy(&value, (const char *)f + p->offset, sizeof value);
		metrics_family(t, p->name, p->type, p->help);
		metrics_value(t, p->name, p->type, NULL, NULL, value);
	}
	by_reason(t, "ktrxer_flow_refusals", control_refusal_names, f->flows.refused, CONTROL_REFUSALS,
		  "Clients that were refused.");
	by_reason(t, "ktrxer_stamp_refusals", reflector_verdict_names, f->stamp.verdicts, REFLECTOR_VERDICTS,
		  "Packets that were not answered.");
	by_direction(t, "ktrxer_flow_bytes", f->flows.bytes[0], f->flows.bytes[1], "Bytes of flows that have ended.");
	by_direction(t, "ktrxer_flow_packets", f->flows.packets[0], f->flows.packets[1],
		     "Packets of UDP flows that have ended.");
	by_direction(t, "ktrxer_stamp_bytes", f->stamp.bytes_in, f->stamp.bytes_out,
		     "UDP payload of requests, answered or not, and of answers.");
	metrics_family(t, "ktrxer_loop_ready_sources", METRICS_GAUGE,
		       "Queue of the event loop: sources that were ready in its last turn.");
	metrics_value(t, "ktrxer_loop_ready_sources", METRICS_GAUGE, NULL, NULL, f->loop.ready);
	metrics_family(t, "ktrxer_loop_longest_call_seconds", METRICS_GAUGE, "Longest call of a source or timer.");
	metrics_seconds(t, "ktrxer_loop_longest_call_seconds", f->loop.longest_ns);
}
