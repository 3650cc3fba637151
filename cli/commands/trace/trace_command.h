/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef KTRXER_CLI_TRACE_COMMAND_H
#define KTRXER_CLI_TRACE_COMMAND_H

#include "cli.h"
#include "trace_load.h"
#include "trace_queues.h"

enum trace_load_direction { TRACE_NO_LOAD = 0, TRACE_LOAD_UP, TRACE_LOAD_DOWN, TRACE_LOAD_BOTH };

struct trace_options {
	const char *host, *device, *engine, *token_file;
	struct ktrxer_addr from;
	struct opt_rate rate;
	uint64_t port, hops, silent_hops, timeout_ns, tries, repeat, min_share, interval_ns, load_flows, load_for_ns,
		server_port;
	int protocol, confidence, load;
	uint8_t dscp, ecn;
	bool one_route, v4, v6, flood;
};

extern const char *const trace_protocols[];   /* udp, tcp, icmp */
extern const char *const trace_confidences[]; /* in percent */
extern const char *const trace_loads[];       /* by enum trace_load_direction */

struct trace_run {
	struct cli *cli;
	const struct trace_options *o;
	struct trace_spec spec;
	struct trace *trace;
	uint32_t rounds; /* of each hop of the first route, idle, and loaded */
	struct hmac_key token;
	struct trace_load_options load_options;
	struct trace_load load;
	struct trace_queues queues;
	uint64_t late_idle; /* answers after the time-out, before the load */
	bool loaded;        /* load and queues are filled */
};

void trace_say_what(const struct trace_run *run);
void trace_say_answer(void *context, const struct trace_sample *sample);
int trace_finish(const struct trace_run *run);

/* trace_load_report.c: the same of the queues; nothing without --load */
void trace_load_judge(const struct trace_run *run);
void trace_load_report(const struct trace_run *run, struct json *end);

/* trace_names.c: "3", or "3.2" where the hop has several nodes. */
enum { TRACE_NODE_ID = 16 };
const char *trace_node_id(const struct trace *trace, uint8_t hop, uint32_t index, char text[TRACE_NODE_ID]);
/* "administratively prohibited", or NULL: not an error that ends a route. */
const char *trace_unreachable_name(const struct trace_sample *sample);

#endif
