/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * `ktrxer bench receive`: the program's cost for a packet, packets a second into this process, a TCP flow beside rules.
 */
#include "bench_receive.h"

#include "base_limits.h"
#include "error.h"
#include "fields_bench.h"
#include "reasons.h"

#include <errno.h>

#define FIELD(name) offsetof(struct receive_options, name)

static const struct opt receive_opts[] = {
	{ .name = "rules",
	  .type = OPT_STRING,
	  .offset = FIELD(rules),
	  .argument = "N,N...",
	  .fallback = "1,100,10000",
	  .help = "How many rules for whole 5-tuples",
	  .heading = "What is measured" },
	OPTION_REPEAT(FIELD(repeat), .fallback = "1M", .min = 1000, .max = 100000000,
		      .help = "Runs of the program for one figure of its cost"),
	OPTION_RATE(FIELD(rate), .min = 1000, .max = 20000000,
		    .help = "Packets a second that are sent to be captured and dropped; without it, as fast as the "
			    "live engine sends"),
	OPTION_FOR(FIELD(for_ns), .fallback = "250ms", .min = 10000000, .max = 10000000000ULL,
		   .help = "For so long; also how long a TCP flow lasts, a second at least"),
	OPTION_PAYLOAD(FIELD(payload), OPT_UINT, .argument = "N", .fallback = "28", .min = 8, .max = 1472,
		       .help = "Bytes of UDP payload"),
	OPTION_RING(FIELD(ring), .min = 4096, .max = KRX_RING_MAX,
		    .help = "Room for packets that wait for this "
			    "process"),
	BENCH_ROUNDS_OPTION(struct receive_options, "Rounds, in turns"),
	{ .name = "no-flow", .type = OPT_FLAG, .offset = FIELD(no_flow), .help = "Leave the TCP flow (iperf3) out" },
	BENCH_PATH_OPTIONS(struct receive_options),
	BENCH_TABLE_OPTIONS(struct receive_options),
	{ 0 },
};

static int open_all(struct receive_bench *b, struct ktrxer_error *err)
{
	struct bench_net_options net = {
		.device = b->o->device, .far_device = b->o->far_device, .far_netns = b->o->far_netns, .to = b->o->to
	};
	struct ktrxer_path_options path = KTRXER_PATH_OPTIONS_INIT;
	int rc = bench_list_parse(b->rules, &b->rule_counts, b->o->rules, false, "--rules", err);

	if (rc < 0)
		return rc;
	for (int i = 0; i < b->rule_counts; i++)
		if (!b->rules[i] || b->rules[i] > KRX_RULES_MAX - 256)
			return ktrxer_fail(err, -ERANGE, "--rules: from 1 to %d", KRX_RULES_MAX - 256);
	if (b->o->compare || b->o->csv)
		return ktrxer_fail(err, -EINVAL, "--%s: the Python part of ktrxer does this, and is not installed",
				   b->o->compare ? "compare" : "csv");
	if ((rc = bench_net_open(&b->net, &net, err)) < 0)
		return rc;
	path.device = b->net.near_device;
	path.to = b->net.to;
	if ((rc = ktrxer_path_resolve(&b->path, &path, err)) < 0)
		return rc;
	b->watch = bench_watch_open();
	return b->watch ? 0 : ktrxer_fail(err, -ENOMEM, "no memory for the bench");
}

static int finish(struct receive_bench *b)
{
	struct json *json = out_end(b->cli);

	bench_receive_end_bench(json, "receive");
	bench_receive_end_settings_open(json);
	bench_receive_settings_rules(json, b->o->rules);
	bench_receive_settings_repeat(json, b->o->repeat);
	if (b->o->rate.given)
		bench_receive_settings_rate_pps(json, b->o->rate.num / b->o->rate.den);
	else
		bench_receive_settings_rate_pps_null(json);
	bench_receive_settings_for_ns(json, b->o->for_ns);
	bench_receive_settings_payload(json, b->o->payload);
	bench_receive_settings_ring(json, b->o->ring);
	bench_receive_settings_rounds(json, b->o->rounds);
	bench_receive_settings_no_flow(json, b->o->no_flow);
	json_object_end(json);
	bench_receive_end_stalled_turns(json, b->stalled);
	if (cli_stopped(b->cli))
		reason_stopped_early(b->cli);
	if (!b->measured)
		reason_nothing_measured(b->cli);
	return out_finish(b->cli, json);
}

static int run_receive(struct cli *cli, const void *options)
{
	struct receive_bench b = { .cli = cli, .o = options, .net = { .home_fd = -1, .near_fd = -1, .far_fd = -1 } };
	struct ktrxer_error err = { 0 };
	uint64_t start;
	int status = EXIT_NO_RESULT, rc = open_all(&b, &err);

	if (rc < 0) {
		cli_complain(cli, "%s", err.text);
		status = rc == -EINVAL || rc == -ERANGE ? EXIT_USAGE : EXIT_NO_RESULT;
	} else if (cli_wait_start(cli, &start) == 0) {
		if ((rc = receive_cost(&b, &err)) == 0 && !cli_stopped(cli) && (rc = receive_rate(&b, &err)) == 0 &&
		    !cli_stopped(cli) && !b.o->no_flow)
			rc = receive_flow(&b, &err);
		if (rc < 0)
			reason_failure(cli, VERDICT_INVALID, rc, err.text[0] ? err.text : "no memory");
		status = finish(&b);
	}
	bench_watch_close(b.watch);
	bench_net_close(&b.net);
	return status;
}

const struct command cmd_bench_receive = {
	.name = "bench receive",
	.summary = "Rules by XDP: cost of a packet, packets captured, a flow beside them",
	.description = OPT_PROSE("Three parts, all between two network namespaces of the bench's own.\n\n"
				 "Cost: the rules' program on a packet that no rule matches, with more and more "
				 "rules, by BPF_PROG_RUN. Rate: packets that the live engine "
				 "sends are captured and dropped by AF_XDP and taken by this process; each one is "
				 "accounted for. Flow: iperf3, where it is installed, without "
				 "any rule, and with as many as --rules says last: on veth the XDP program alone, "
				 "whatever its rules, ends the merging of segments."),
	.examples = "ktrxer bench receive\tAll three.\n"
		    "ktrxer bench receive --rate 3M --rounds 20 --no-flow\tHow much can it take?\n",
	.options = receive_opts,
	.options_size = sizeof(struct receive_options),
	.run = run_receive,
	.measures = true,
	.lines = true,
};
