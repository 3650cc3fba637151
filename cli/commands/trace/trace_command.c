/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer trace`: all routes to a host, and the round trip to each router. */
#include "trace_command.h"

#include "error.h"
#include "shared_options.h"

#include <errno.h>
#include <string.h>

#define FIELD(name) offsetof(struct trace_options, name)

enum { PORT_UDP = 33434, PORT_TCP = 80 };

static const char *const engines[] = { "packet", "raw", "udp", NULL };

/* clang-format off */
static const struct opt trace_opts[] = {
	{ .name = "protocol", .type = OPT_CHOICE, .offset = FIELD(protocol), .argument = "P", .fallback = "udp",
	  .choices = trace_protocols, .heading = "Probes",
	  .help = "UDP datagrams, TCP SYN segments, or ICMP echo requests" },
	OPTION_PORT(FIELD(port), .help = "Destination port; without it, 33434 for UDP and 80 for TCP"),
	OPTION_RATE(FIELD(rate), .fallback = "500", .min = 1, .max = 1000000,
		    .help = "Probes a second at most; many routers answer only some hundred a second"),
	OPTION_TIMEOUT(FIELD(timeout_ns), .fallback = "1s", .max = 60ULL * 1000000000,
		       .help = "Wait so long for an answer to the last try; earlier tries wait four times the longest "
			       "round trip, 200ms at least"),
	{ .name = "tries", .type = OPT_UINT, .offset = FIELD(tries), .argument = "N", .fallback = "3", .min = 1,
	  .max = 10, .help = "Send a probe without an answer so often" },
	OPTION_DSCP(FIELD(dscp)),
	OPTION_ECN(FIELD(ecn)),

	{ .name = "confidence", .type = OPT_CHOICE, .offset = FIELD(confidence), .argument = "PERCENT",
	  .fallback = "95", .choices = trace_confidences, .heading = "Routes",
	  .help = "The probability of finding all next hops of a router that balances load, at least" },
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

	OPTION_DEVICE_OF_ROUTE(FIELD(device), "", "How"),
	OPTION_ENGINE(FIELD(engine), .fallback = "packet", .choices = engines,
		      .help = "Engine: packet or raw; udp (the host's socket, no privilege) follows one flow of UDP"),
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
	int rc;

	if (o->port && protos[o->protocol] == KTRXER_ICMP)
		return ktrxer_fail(err, -EINVAL, "--port goes with --protocol udp or tcp: ICMP has no ports");
	if (!strcmp(o->engine, "udp") && (!o->one_route || protos[o->protocol] != KTRXER_UDP))
		return ktrxer_fail(err, -EINVAL,
				   "--engine udp goes with --one-route and --protocol udp: it has one socket");
	*spec = (struct trace_spec){
		.from = o->from,
		.device = o->device,
		.engine = o->engine,
		.proto = protos[o->protocol],
		.port = (uint16_t)(o->port                             ? o->port
				   : protos[o->protocol] == KTRXER_TCP ? PORT_TCP
								       : PORT_UDP),
		.tos = (uint8_t)(o->dscp << 2 | o->ecn),
		.hops_max = (uint8_t)o->hops,
		.silent_max = (uint8_t)o->silent_hops,
		.failure = o->one_route ? 0 : failures[o->confidence],
		.gap_ns = (uint64_t)KTRXER_NS_PER_S * o->rate.den / o->rate.num,
		.timeout_ns = o->timeout_ns,
		.tries = (uint32_t)o->tries,
	};
	rc = cli_resolve(o->host, o->v4, o->v6, &spec->to, err);
	return rc < 0 ? rc : cli_guard_rate(&spec->to, &o->rate, o->flood, err);
}

static int trace_all(struct trace_run *run)
{
	const struct trace_events events = { .answer = trace_say_answer, .context = run };
	struct ktrxer_error err = { 0 };
	uint64_t start_ns;
	int rc = make_spec(&run->spec, run->o, &err);

	if (rc == 0)
		rc = trace_new(&run->trace, &run->spec, &err);
	if (rc < 0) {
		cli_complain(run->cli, "%s", err.text);
		return rc == -EINVAL ? EXIT_USAGE : EXIT_BAD;
	}
	trace_say_what(run);
	if (cli_wait_start(run->cli, &start_ns) < 0)
		return EXIT_BAD;
	trace_search(run->trace, run->cli->stop_fd, &events);
	trace_repeat(run->trace, TRACE_REPEAT, (uint32_t)run->o->repeat, run->o->interval_ns, run->cli->stop_fd);
	return trace_finish(run);
}

static int run_trace(struct cli *cli, const void *options)
{
	struct trace_run run = { .cli = cli, .o = options };
	const int status = trace_all(&run);

	trace_free(run.trace);
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
		"flows find the other routes: so many for "
		"each router that all its next hops are found with the probability of --confidence (Multipath "
		"Detection Algorithm).\n\n"
		"A hop with several routers lists them as 3.1, 3.2; behind an arrow stand the next hops. MPLS labels "
		"(RFC 4950), translated addresses, and a DSCP that "
		"was changed on the way are printed where the routers' answers show them. Routers make these answers "
		"at low priority: a long round trip to one hop with "
		"shorter ones behind it is that router's own delay, not the network's.\n\n"
		"It needs the capability CAP_NET_RAW until its sockets are open, then drops all privileges. "
		"Without it, --engine udp --one-route follows one flow; the arrival of an answer is then stamped "
		"by this program."),
	.examples = OPT_PROSE(
		"ktrxer trace 192.0.2.1\tAll routes, by UDP.\n"
		"ktrxer trace --protocol tcp --port 443 2001:db8::1\tThrough firewalls that let web traffic pass.\n"
		"ktrxer trace --one-route --repeat 20 192.0.2.1\tOne route, twenty round trips to each hop.\n"
		"ktrxer trace --confidence 99 --rate 2k --json 192.0.2.1\tA graph for a program.\n"),
	.options = trace_opts,
	.positionals = trace_positionals,
	.options_size = sizeof(struct trace_options),
	.run = run_trace,
	.measures = true,
};
