/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef KTRXER_CLI_TRACE_COMMAND_H
#define KTRXER_CLI_TRACE_COMMAND_H

#include "cli.h"
#include "trace.h"

struct trace_options {
	const char *host, *device, *engine;
	struct ktrxer_addr from;
	struct opt_rate rate;
	uint64_t port, hops, silent_hops, timeout_ns, tries, repeat, interval_ns;
	int protocol, confidence;
	uint8_t dscp, ecn;
	bool one_route, v4, v6, flood;
};

extern const char *const trace_protocols[];   /* udp, tcp, icmp */
extern const char *const trace_confidences[]; /* in percent */

struct trace_run {
	struct cli *cli;
	const struct trace_options *o;
	struct trace_spec spec;
	struct trace *trace;
};

/* trace_report.c */
void trace_say_what(const struct trace_run *run);
void trace_say_answer(void *context, const struct trace_sample *sample);
/* Text, JSON and verdict. The exit status. */
int trace_finish(const struct trace_run *run);

/* trace_names.c: "3", or "3.2" where the hop has several nodes. */
enum { TRACE_NODE_ID = 16 };
const char *trace_node_id(const struct trace *trace, uint8_t hop, uint32_t index, char text[TRACE_NODE_ID]);
/* "administratively prohibited", or NULL: not an error that ends a route. */
const char *trace_unreachable_name(const struct trace_sample *sample);

#endif
