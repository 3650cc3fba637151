/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer tcp`: loss and reordering by direction, and round trips, from a web server alone. */
#include "tcp_command.h"

#include "error.h"

#define FIELD(name) offsetof(struct tcp_options, name)

enum { MSS_MIN = 216, MSS_MAX = 1460, START_AHEAD_MS = 3000 };

static const char *const engines[] = { "packet", "raw", NULL };
static const char *const models[] = { "constant", "poisson", NULL };

/* clang-format off */
static const struct opt tcp_opts[] = {
	OPTION_PORT(FIELD(port), .fallback = "80", .help = "Port of the web server", .heading = "The server"),
	{ .name = "path", .type = OPT_STRING, .offset = FIELD(path), .argument = "PATH", .fallback = "/",
	  .help = "The file in each request; the server must answer 2xx" },

	OPTION_COUNT(FIELD(count), .fallback = "100", .min = 1, .max = 1000000000, .heading = "Pairs",
		     .help = "Pairs of probes"),
	OPTION_INTERVAL(FIELD(interval_ns), "pairs", .fallback = "500ms", .min = 10000000, .max = 3600ULL * 1000000000),
	OPTION_MODEL(FIELD(model), models, "constant",
		     "Intervals: constant, or poisson (exponential around the mean; RFC 2330)"),
	OPTION_PAYLOAD(FIELD(payload), OPT_SIZE, .argument = "BYTES", .max = TCP_REQUEST_MAX,
		       .help = "Bytes of payload of a probe, which is one request; by default as few as possible"),
	{ .name = "mss", .type = OPT_UINT, .offset = FIELD(mss), .argument = "N", .fallback = "536", .min = MSS_MIN,
	  .max = MSS_MAX, .help = "Bytes of payload of the server's segments" },
	{ .name = "connections", .type = OPT_UINT, .offset = FIELD(connections), .argument = "N", .fallback = "4",
	  .min = 1, .max = TCP_CONNECTIONS_MAX,
	  .help = "Take turns between so many connections: after a loss, one is busy until the server's timer ends" },
	OPTION_TIMEOUT(FIELD(timeout_ns), .fallback = "5s", .max = 60ULL * 1000000000,
		       .help = "Wait so long for a connection, and for the retransmission that shows a loss"),
	OPTION_DSCP(FIELD(dscp)),

	OPTION_DEVICE_OF_ROUTE(FIELD(device), "", "How"),
	OPTION_ENGINE(FIELD(engine), .fallback = "packet", .choices = engines,
		      .help = "Engine: packet, or raw, which sends through the queue of this host's device"),
	OPTION_PRECISE(FIELD(precise), OPT_FLAG, "", "", NULL),
	OPTION_FROM(FIELD(from), ""),
	OPTIONS_FAMILY(FIELD(v4), FIELD(v6)),
	{ 0 },
};
/* clang-format on */

static const struct opt_positional tcp_positionals[] = {
	{ .name = "HOST", .offset = FIELD(host), .help = "Address or name of a web server; it needs no ktrxer" },
	{ 0 },
};

static int make_spec(struct tcp_prober_spec *spec, const struct tcp_options *o, struct ktrxer_error *err)
{
	*spec = (struct tcp_prober_spec){
		.from = o->from,
		.device = o->device,
		.engine = o->engine,
		.port = (uint16_t)o->port,
		.tos = (uint8_t)(o->dscp << 2),
		.host = o->host,
		.path = o->path,
		.payload = (uint32_t)o->payload,
		.mss = (uint16_t)o->mss,
		.count = o->count,
		.interval_ns = o->interval_ns,
		.poisson = o->model == MODEL_POISSON,
		.connections = (uint32_t)o->connections,
		.timeout_ns = o->timeout_ns,
		.late_ns = verdict_late_ns(o->interval_ns),
		.precise = o->precise,
	};
	return cli_resolve(o->host, &o->from, o->v4, o->v6, &spec->to, err);
}

static int tcp_all(struct tcp_run *run)
{
	const struct tcp_prober_events events = { .pair = tcp_say_pair, .context = run };
	struct ktrxer_error err = { 0 };
	uint64_t start_ns;
	int rc = make_spec(&run->spec, run->o, &err);

	if (rc == 0)
		rc = tcp_prober_new(&run->prober, &run->spec, &err);
	if (rc < 0)
		return cli_fail(run->cli, &err);
	tcp_say_what(run);
	if (cli_wait_start_ahead(run->cli, START_AHEAD_MS, &start_ns) < 0)
		return EXIT_NO_RESULT;
	tcp_prober_run(run->prober, run->cli->common.start_at_real_ns ? start_ns : 0, run->cli->stop_fd, &events);
	return tcp_finish(run);
}

static int run_tcp(struct cli *cli, const void *options)
{
	struct tcp_run run = { .cli = cli, .o = options };
	const int status = tcp_all(&run);

	tcp_prober_free(run.prober);
	return status;
}

const struct command cmd_tcp = {
	.name = "tcp",
	.summary = "Loss and reordering by direction, and round trips, from any web server",
	.description = OPT_PROSE(
		"Sends pairs of TCP segments with HTTP requests to a web server without ktrxer, and finds for each "
		"pair whether a segment was lost or both were reordered, up (to the server) and down (from it), from "
		"the acknowledgements and the sequence numbers of the server's segments (OneProbe: Luo, Chan, Chang, "
		"USENIX ATC 2009).\n\n"
		"Each probe is a complete GET request, and acknowledges one segment of an earlier response. The "
		"receive window lets the server send one segment for each probe. After a loss the server's "
		"retransmission shows which probes have arrived. SACK is not offered, so that the server retransmits "
		"by its timer.\n\n"
		"The server must keep connections open (HTTP/1.1) and answer 2xx without TLS. Choose a --path that the "
		"owner of the server does not mind to be read often: a pair asks for it twice, and more often where "
		"it is smaller than two segments.\n\n"
		"It needs the capabilities CAP_NET_RAW and CAP_NET_ADMIN until its sockets are open: receive rules for "
		"its ports keep the server's segments from this host's own TCP, which would reset the connections. "
		"The rules end with the command."),
	.examples =
		OPT_PROSE("ktrxer tcp 192.0.2.1\t100 pairs in 50 seconds.\n"
			  "ktrxer tcp www.example.net --path /logo.png --count 1000 --interval 100ms\tA tighter "
			  "estimate.\n"
			  "ktrxer tcp 192.0.2.1 --payload 1400 --mss 1400 --model poisson --jsonl\tLarge segments both "
			  "ways; a sample for each pair.\n"),
	.options = tcp_opts,
	.positionals = tcp_positionals,
	.options_size = sizeof(struct tcp_options),
	.run = run_tcp,
	.measures = true,
};
