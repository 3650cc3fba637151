/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "trace_command.h"

#include <stdio.h>
#include <sys/socket.h>

const char *const trace_protocols[] = { "udp", "tcp", "icmp", NULL };
const char *const trace_confidences[] = { "95", "99", "99.9", "99.99", NULL };
const char *const trace_loads[] = {
	[TRACE_NO_LOAD] = "none", [TRACE_LOAD_UP] = "up", [TRACE_LOAD_DOWN] = "down", [TRACE_LOAD_BOTH] = "both", NULL
};

const char *trace_node_id(const struct trace *trace, uint8_t hop, uint32_t index, char text[TRACE_NODE_ID])
{
	uint32_t count, linked = 0, at = 0;
	const struct trace_node *nodes = trace_graph_nodes(trace_graph_of(trace), hop, &count);

	for (uint32_t i = 0; i < count; i++) {
		linked += nodes[i].linked;
		at += nodes[i].linked && i <= index;
	}
	if (linked > 1)
		snprintf(text, TRACE_NODE_ID, "%u.%u", hop, at);
	else
		snprintf(text, TRACE_NODE_ID, "%u", hop);
	return text;
}

/* Names of RFC 792, 1122, 1812 and 4443. */
const char *trace_unreachable_name(const struct trace_sample *s)
{
	static const char *const four[] = { "network unreachable",
					    "host unreachable",
					    "protocol unreachable",
					    "port unreachable",
					    "fragmentation needed",
					    "source route failed",
					    "network unknown",
					    "host unknown",
					    "source host isolated",
					    "network prohibited",
					    "host prohibited",
					    "network unreachable for this DSCP",
					    "host unreachable for this DSCP",
					    "administratively prohibited",
					    "host precedence violation",
					    "precedence cutoff" };
	static const char *const six[] = { "no route",
					   "administratively prohibited",
					   "beyond the scope of the source",
					   "address unreachable",
					   "port unreachable",
					   "source address refused by policy",
					   "route rejected",
					   "error in the source route" };
	const bool is_six = s->from.family == AF_INET6;
	const size_t names = is_six ? sizeof six / sizeof *six : sizeof four / sizeof *four;

	if (s->kind != TRACE_DESTINATION_UNREACHABLE)
		return NULL;
	if (s->code >= names)
		return "unreachable, of an unknown code";
	return is_six ? six[s->code] : four[s->code];
}
