/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer flow`: many flows at once, each counted at both of its ends. */
#include "flow.h"

#include "flow_spec.h"
#include "shared_options.h"

#include <string.h>

#define FIELD(name) offsetof(struct flow_options, name)

static const char *const models[] = {
	[FLOW_CONSTANT] = "constant", [FLOW_POISSON] = "poisson", [FLOW_VOIP] = "voip", NULL
};
static const char *const directions[] = { "up", "down", "both", NULL };

/* clang-format off */
static const struct opt flow_opts[] = {
	{ .name = "flows", .type = OPT_UINT, .offset = FIELD(flows), .argument = "N", .fallback = "1", .min = 1,
	  .max = KTRXER_FLOW_FLOWS_MAX / 2, .heading = "Flows", .help = "Number of flows in each direction" },
	OPTION_FOR(FIELD(for_ns), .min = 1000000, .max = OPTION_DAYS(365),
		.help = "Duration of each flow; 10 s without --for and --bytes"),
	{ .name = "bytes", .type = OPT_SIZE, .offset = FIELD(bytes), .argument = "BYTES", .min = 1, .max = INT64_MAX,
	  .help = "Bytes of each flow; with --for the limit that is reached first" },
	{ .name = "stagger", .type = OPT_DURATION, .offset = FIELD(stagger_ns), .argument = "D",
	  .max = 86400ULL * 1000000000,
	  .help = "Time between the starts of two flows; by default all at once" },
	{ .name = "connect-ahead", .type = OPT_DURATION, .offset = FIELD(ahead_ns), .argument = "D", .fallback = "3s",
	  .max = 50ULL * 1000000000, /* the server waits for a minute */
	  .help = "Connect the flows so long before --start-at: 12 round trips are enough" },
	{ .name = "cc", .type = OPT_STRING, .offset = FIELD(cc), .argument = "A[,B...]",
	  .help = "Congestion control of the senders, assigned in turn; by default that of each host" },
	OPTION_DSCP_LIST(FIELD(dscp), .argument = "X[,Y...]", .help = "Markings, assigned in turn: BE, BK, CS5, EF, "
			"AF41, or 0 to 63"),
	{ .name = "ecn", .type = OPT_STRING, .offset = FIELD(ecn), .argument = "X[,Y...]",
	  .help = "TCP: the expected result of ECN: on, off or any, in turn (sysctl net.ipv4.tcp_ecn of the hosts). "
		  "UDP: the mark, off, ect1, ect0, or its number" },
	{ .name = "bitrate", .letter = 'b', .type = OPT_BITRATE, .offset = FIELD(rate_bps), .argument = "BITRATE",
	  .min = 1000, .max = INT64_MAX,
	  .help = "TCP: pace each flow to at most this; by default no limit. UDP: the bit rate of each flow's "
		  "payload" },

	OPTION_UDP(FIELD(udp), .heading = "UDP", .help = "UDP flows, each packet with its send time, instead of TCP"),
	OPTION_PAYLOAD(FIELD(payload), OPT_RANGE, .argument = "N[..M]", .min = FLOW_PACKET_HEAD,
		       .max = FLOW_PAYLOAD_MAX,
		       .help = "Bytes of payload of each packet, 1200 without it (voip: 172); a range: drawn evenly"),
	OPTION_MODEL(FIELD(model), models, "constant",
		     "When packets leave: constant, poisson (exponential gaps), or voip "
		     "(talk spurts of ITU-T P.59)"),
	OPTION_ENGINE_OF_STACK(FIELD(engine), " of flows up"),
	OPTION_DEVICE_OF_ROUTE(FIELD(device), " of flows up", NULL),
	OPTION_PRECISE(FIELD(precise), OPT_FLAG, " of flows up", "", NULL),
	OPTION_CPU(FIELD(cpu), "waiting threads of --precise"),
	OPTION_FLOOD(FIELD(flood), "packets a second"),

	OPTION_SAMPLE_INTERVAL(FIELD(sample_ns), .fallback = "200ms", .min = 1000000, .max = 3600ULL * 1000000000,
	  .heading = "Samples", .help = "Time between two samples of all flows, at both ends"),

	OPTION_TOLERANCE(FIELD(tolerance))

	OPTIONS_SERVER(FIELD(token_file), FIELD(port), FIELD(from), FIELD(v4), FIELD(v6)),
	{ 0 },
};
/* clang-format on */

static const struct opt_positional flow_positionals[] = {
	{ .name = "DIRECTION",
	  .offset = FIELD(direction),
	  .choices = directions,
	  .help = "up: from here to HOST; down: from HOST to here; both" },
	{ .name = "HOST", .offset = FIELD(host), .help = "Address or name of a host where `ktrxer serve` runs" },
	{ 0 },
};

/* Connecting many flows takes this long: begin so much before --start-at. */
static uint32_t ahead_ms(const struct flow_run *run)
{
	return (uint32_t)(run->o->ahead_ns / 1000000) + run->plan.request.flows;
}

static void on_done(void *context)
{
	struct flow_run *run = context;

	run->done = true;
	loop_stop(run->loop);
}

static int flow_begin(struct flow_run *run, struct ktrxer_error *err)
{
	struct flow_client_options *p = &run->plan;
	int rc = loop_new(&run->loop);

	if (rc < 0)
		return rc;
	run->pending_timer = (struct loop_timer){ .at_ns = KTRXER_NEVER, .due = flow_pending_due };
	loop_timer_add(run->loop, &run->pending_timer);
	p->loop = run->loop;
	p->witness = &run->witness;
	p->sample = flow_on_sample;
	p->connected = flow_on_connected;
	p->started = flow_on_started;
	p->ended = flow_on_ended;
	p->tick = flow_on_tick;
	p->done = on_done;
	p->describe = flow_failure_describe;
	p->context = run;
	return flow_client_new(&run->client, p, err);
}

static int flow_all(struct flow_run *run)
{
	struct ktrxer_error err = { 0 };
	uint64_t start_ns;
	int rc = flow_plan(run, &err);

	if (rc < 0)
		return cli_fail(run->cli, &err);
	flow_say_what(run);
	if (cli_wait_start_ahead(run->cli, ahead_ms(run), &start_ns) < 0)
		return EXIT_NO_RESULT;
	run->plan.start_ns = run->cli->common.start_at_real_ns ? start_ns : 0;
	rc = flow_begin(run, &err);
	if (rc == 0)
		rc = loop_run(run->loop, run->cli->stop_fd);
	if (rc == 0 && !run->done) {
		run->interrupted = true;
		flow_client_stop(run->client);
		if (!run->done)
			rc = loop_run(run->loop, -1);
	}
	if (rc < 0) {
		cli_complain_code(run->cli, rc, "%s", err.code ? err.text : strerror(-rc));
		return EXIT_NO_RESULT;
	}
	return flow_finish_report(run);
}

static int run_flow(struct cli *cli, const void *options)
{
	struct flow_run run = { .cli = cli, .o = options };
	int status = flow_all(&run);

	flow_release(&run);
	return status;
}

const struct command cmd_flow = {
	.name = "flow",
	.summary = "TCP and UDP flows up and down, counted at both ends",
	.description = OPT_PROSE("Moves bytes between this host and one where `ktrxer serve` runs, by many TCP "
				 "connections at once, and samples what each of them has "
				 "moved: at the sender what was acknowledged, with the kernel's figures of the "
				 "connection (TCP_INFO), at the receiver what was "
				 "read. Samples are taken of all flows at the same times, by the clock, at both ends: "
				 "a slow flow has as many as a fast one. Those "
				 "of the far end come over the control connection; their times are of this clock.\n\n"
				 "The rate of a flow is what its receiver read, over the time from its first byte to "
				 "its end. A flow that ends before its time makes the "
				 "result degraded, and is named. A direction of which less than 98 % of the time is "
				 "counted has no rate.\n\n"
				 "With --udp the packets of each flow leave on a schedule, and its receiver counts by "
				 "their numbers what was lost, overtaken or came "
				 "twice, and the ECN marks with which they arrived.\n\n"
				 "The server requires its token; the token is never transmitted."),
	.examples = OPT_PROSE("ktrxer flow down far --token-file token\tOne flow from far to here, for ten seconds.\n"
			      "ktrxer flow both far --flows 4 --dscp BE,BK,CS5,EF --for 60s --token-file token\tThe "
			      "load of an RRUL test.\n"
			      "ktrxer flow up far --flows 2 --cc cubic,bbr --stagger 10s --for 60s --jsonl "
			      "--token-file token\tHow two congestion controls share.\n"
			      "ktrxer flow up far --udp --bitrate 10M --payload 1k --model poisson --ecn ect1 "
			      "--token-file token\tA marked Poisson stream.\n"),
	.options = flow_opts,
	.positionals = flow_positionals,
	.options_size = sizeof(struct flow_options),
	.run = run_flow,
	.measures = true,
};
