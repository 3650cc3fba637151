/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer trace`: all routes to a host, and the round trip to each router. */
#include "trace_command.h"

#include "error.h"
#include "flow.h"
#include "reasons.h"
#include "shared_options.h"

#include <errno.h>
#include <sys/socket.h>

#define FIELD(name) offsetof(struct trace_options, name)

enum { PORT_UDP = 33434, PORT_TCP = 80 };
/* Flows need that long to fill a queue: slow start, and for a deep queue some round trips of its own delay. */
#define WARM_UP_NS (2 * (uint64_t)KTRXER_NS_PER_S)

static const char *const engines[] = { "packet", "raw", "udp", NULL };

/* clang-format off */
static const struct opt trace_opts[] = {
	{ .name = "protocol", .type = OPT_CHOICE, .offset = FIELD(protocol), .argument = "P", .fallback = "udp",
	  .choices = trace_protocols, .heading = "Probes",
	  .help = "UDP datagrams, TCP SYN segments, or ICMP echo requests" },
	OPTION_PORT(FIELD(port), .help = "Destination port; without it, 33434 for UDP and 80 for TCP"),
	OPTION_RATE(FIELD(rate), .fallback = "500", .min = 1, .max = 1000000,
		    .help = "Probes a second at most; many routers answer only some hundred a second"),
	OPTION_TIMEOUT(FIELD(timeout_ns), .fallback = "4s", .max = 60ULL * 1000000000,
		       .help = "The longest wait for an answer. Earlier tries, and all after a silence, wait for the "
			       "longest round trip"),
	{ .name = "tries", .type = OPT_UINT, .offset = FIELD(tries), .argument = "N", .fallback = "3", .min = 1,
	  .max = 10, .help = "Send a probe without an answer so often" },
	OPTION_DSCP(FIELD(dscp)),
	OPTION_ECN(FIELD(ecn)),

	{ .name = "confidence", .type = OPT_CHOICE, .offset = FIELD(confidence), .argument = "PERCENT",
	  .fallback = "95", .choices = trace_confidences, .heading = "Routes",
	  .help = "The probability, over the whole search, of finding all next hops with --min-share, at least" },
	{ .name = "min-share", .type = OPT_UINT, .offset = FIELD(min_share), .argument = "PERCENT", .fallback = "10",
	  .min = 1, .max = 50, .help = "The share of all flows with which no next hop is to be missed" },
	{ .name = "one-route", .type = OPT_FLAG, .offset = FIELD(one_route),
	  .help = "Only the route of one flow: one probe for each hop" },
	{ .name = "hops", .type = OPT_UINT, .offset = FIELD(hops), .argument = "N", .fallback = "30", .min = 1,
	  .max = TRACE_HOPS_MAX, .help = "Hops at most" },
	{ .name = "silent-hops", .type = OPT_UINT, .offset = FIELD(silent_hops), .argument = "N", .fallback = "5",
	  .min = 1, .max = TRACE_HOPS_MAX, .help = "Stop after so many hops in a row without an answer" },
	OPTION_REPEAT(FIELD(repeat), .fallback = "3", .max = 100,
		      .help = "Probe each hop of the first route so often again: round trips, route changes"),
	OPTION_INTERVAL(FIELD(interval_ns), "these repeated probes of a hop", .fallback = "50ms", .min = 1000000,
			.max = 60ULL * 1000000000),

	{ .name = "load", .type = OPT_CHOICE, .offset = FIELD(load), .argument = "D", .fallback = "none",
	  .choices = trace_loads, .heading = "Under load",
	  .help = "Find the queue that fills: TCP flows up (from here to HOST, where `ktrxer serve` runs), down, or "
		  "both, while each hop of the first route is probed again" },
	{ .name = "load-flows", .type = OPT_UINT, .offset = FIELD(load_flows), .argument = "N", .fallback = "4",
	  .min = 1, .max = TRACE_LOAD_FLOWS_MAX, .help = "So many flows in each direction" },
	{ .name = "load-for", .type = OPT_DURATION, .offset = FIELD(load_for_ns), .argument = "D", .fallback = "5s",
	  .min = 1000000, .max = 600ULL * 1000000000,
	  .help = "With --load, repeat the probes for so long without the flows, and for so long with them, instead of "
		  "--repeat" },
	OPTION_TOKEN_FILE(FIELD(token_file),
			  .help = "With --load: the server's token, in a file of mode 0600; without it "
				  "$KTRXER_TOKEN counts"),
	{ .name = "server-port", .type = OPT_UINT, .offset = FIELD(server_port), .argument = "N",
	  .fallback = SERVER_PORT, .min = 1, .max = 65535, .help = "With --load: port of `ktrxer serve`" },

	OPTION_DEVICE_OF_ROUTE(FIELD(device), "", "How"),
	OPTION_ENGINE(FIELD(engine), .choices = engines,
		      .help = "Engine: packet, or raw, which sends through the queue of this host's device and is used "
			      "with --load; udp (the host's socket, no privilege) follows one flow of UDP"),
	OPTION_FROM(FIELD(from), ""),
	OPTIONS_FAMILY(FIELD(v4), FIELD(v6)),
	OPTION_FLOOD(FIELD(flood), "probes a second"),
	{ 0 },
};
/* clang-format on */

static const struct opt_positional trace_positionals[] = {
	{ .name = "HOST", .offset = FIELD(host), .help = "Address or name" },
	{ 0 },
};

static int make_spec(struct trace_spec *spec, const struct trace_options *o, struct ktrxer_error *err)
{
	static const uint8_t protos[] = { KTRXER_UDP, KTRXER_TCP, KTRXER_ICMP };
	static const double failures[] = { 0.05, 0.01, 0.001, 0.0001 };
	const char *engine = o->engine ? o->engine : o->load == TRACE_NO_LOAD ? "packet" : "raw";
	int rc;

	if (o->port && protos[o->protocol] == KTRXER_ICMP)
		return ktrxer_fail(err, -EINVAL, "--port goes with --protocol udp or tcp: ICMP has no ports");
	*spec = (struct trace_spec){
		.from = o->from,
		.device = o->device,
		.engine = engine,
		.proto = protos[o->protocol],
		.port = (uint16_t)(o->port                             ? o->port
				   : protos[o->protocol] == KTRXER_TCP ? PORT_TCP
								       : PORT_UDP),
		.tos = (uint8_t)(o->dscp << 2 | o->ecn),
		.hops_max = (uint8_t)o->hops,
		.silent_max = (uint8_t)o->silent_hops,
		.failure = o->one_route ? 0 : failures[o->confidence],
		.share = (double)o->min_share / 100,
		.gap_ns = (uint64_t)KTRXER_NS_PER_S * o->rate.den / o->rate.num,
		.timeout_ns = o->timeout_ns,
		.tries = (uint32_t)o->tries,
	};
	rc = cli_resolve(o->host, &o->from, o->v4, o->v6, &spec->to, err);
	/* RFC 1812, 4.3.2.7; RFC 4443, 2.4 (e): no ICMP error about such a packet. */
	if (rc == 0 && (spec->to.family == AF_INET6 ? spec->to.bytes[0] == 0xff : spec->to.bytes[0] >> 4 == 14))
		return ktrxer_fail(err, -EINVAL, "routers do not answer probes to a multicast group: give a host");
	return rc < 0 ? rc : cli_guard_rate(&spec->to, &o->rate, o->flood, err);
}

static int make_load(struct trace_run *run, struct ktrxer_error *err)
{
	const struct trace_options *o = run->o;

	run->rounds = (uint32_t)o->repeat;
	if (o->load == TRACE_NO_LOAD)
		return 0;
	run->rounds = (uint32_t)(o->load_for_ns / o->interval_ns);
	if (run->rounds < HOP_QUEUES_LEAST)
		return ktrxer_fail(err, -EINVAL,
				   "--load-for holds %u times --interval: a median needs %d at least; give a longer "
				   "--load-for or a shorter --interval",
				   run->rounds, HOP_QUEUES_LEAST);
	run->load_options = (struct trace_load_options){
		.to = run->spec.to,
		.from = run->spec.from,
		.port = (uint16_t)o->server_port,
		.token = &run->token,
		.up = o->load != TRACE_LOAD_DOWN,
		.down = o->load != TRACE_LOAD_UP,
		.flows = (uint32_t)o->load_flows,
		.warm_up_ns = WARM_UP_NS,
		.rounds = run->rounds,
		.interval_ns = o->interval_ns,
		.describe = flow_failure_describe,
	};
	return flow_token_read(&run->token, o->token_file, err);
}

static void trace_under_load(struct trace_run *run)
{
	struct ktrxer_error err = { 0 };
	int rc;

	if (trace_result_of(run->trace)->stopped || !trace_first_route(run->trace))
		return;
	rc = trace_load_run(&run->load, run->trace, &run->load_options, run->cli->stop_fd, &err);
	if (rc == 0)
		rc = trace_queues_estimate(&run->queues, run->trace, run->rounds, run->load.from_ns, run->load.to_ns);
	if (rc < 0)
		reason_failure(run->cli, VERDICT_INVALID, rc,
			       err.code ? err.text : "there was no memory for the estimate of the queues");
	run->loaded = rc == 0;
}

static int trace_all(struct trace_run *run)
{
	const struct trace_events events = { .answer = trace_say_answer, .context = run };
	struct ktrxer_error err = { 0 };
	uint64_t start_ns;
	int rc = make_spec(&run->spec, run->o, &err);

	if (rc == 0)
		rc = make_load(run, &err);
	if (rc == 0)
		rc = trace_new(&run->trace, &run->spec, &err);
	if (rc < 0)
		return cli_fail(run->cli, &err);
	trace_say_what(run);
	if (cli_wait_start(run->cli, &start_ns) < 0)
		return EXIT_NO_RESULT;
	cli_sleep_until(run->cli, start_ns);
	trace_search(run->trace, run->cli->stop_fd, &events);
	trace_repeat(run->trace, TRACE_REPEAT, run->rounds, run->o->interval_ns, run->cli->stop_fd);
	run->late_idle = trace_result_of(run->trace)->too_late;
	if (run->o->load != TRACE_NO_LOAD)
		trace_under_load(run);
	return trace_finish(run);
}

static int run_trace(struct cli *cli, const void *options)
{
	struct trace_run run = { .cli = cli, .o = options };
	const int status = trace_all(&run);

	trace_free(run.trace);
	secret_forget(&run.token, sizeof run.token);
	return status;
}

const struct command cmd_trace = {
	.name = "trace",
	.summary = "All routes to a host, and the round trip to each router",
	.description = OPT_PROSE(
		"Sends probes with growing hop limits, and prints the routers that answer that the limit was exceeded, "
		"with the round trip from the kernel's "
		"send stamp to its arrival stamp. A router that balances load chooses the next hop by the addresses "
		"and ports of a packet. All probes of one flow "
		"have the same ones, so that a printed route is a route that packets take (Paris traceroute). Further "
		"flows find the other routes: so many at "
		"each hop that, with the probability of --confidence over the whole search, no next hop is missed "
		"that carries --min-share of all flows or more, whatever the weights are; and as many as find all "
		"next hops of equal weights (Multipath Detection Algorithm). Flows of a router that balances load are "
		"probed again, so that a router that does it packet by packet is found.\n\n"
		"A hop with several routers lists them as 3.1, 3.2; behind an arrow stand the next hops. MPLS labels "
		"(RFC 4950), translated addresses, and a DSCP that "
		"was changed on the way are printed where the routers' answers show them. Routers make these answers "
		"at low priority: a long round trip to one hop with "
		"shorter ones behind it is that router's own delay, not the network's.\n\n"
		"With --load, TCP flows to or from `ktrxer serve` on HOST fill the path, and each hop of the first "
		"route is probed without them and with them. "
		"The queue that fills adds its delay to the round trips of all hops behind it: it is named, with this "
		"delay and its uncertainty at a level of 99 %.\n\n"
		"It needs the capability CAP_NET_RAW until its sockets are open, then drops all privileges. "
		"Without it, --engine udp --one-route follows one flow; the arrival of an answer is then stamped "
		"by this program."),
	.examples = OPT_PROSE(
		"ktrxer trace 192.0.2.1\tAll routes, by UDP.\n"
		"ktrxer trace --protocol tcp --port 443 2001:db8::1\tThrough firewalls that let web traffic pass.\n"
		"ktrxer trace --one-route --repeat 20 192.0.2.1\tOne route, twenty round trips to each hop.\n"
		"ktrxer trace --load up --token-file token far\tWhich queue fills when this host sends.\n"
		"ktrxer trace --min-share 40 192.0.2.1\tThe main routes, by few probes.\n"
		"ktrxer trace --confidence 99 --rate 2k --json 192.0.2.1\tA graph for a program.\n"),
	.options = trace_opts,
	.positionals = trace_positionals,
	.options_size = sizeof(struct trace_options),
	.run = run_trace,
	.measures = true,
};
