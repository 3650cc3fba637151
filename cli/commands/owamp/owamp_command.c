/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer owamp`: one-way delay and loss by OWAMP (RFC 4656). */
#include "owamp_command.h"

#include "error.h"
#include "server_address.h"

#define FIELD(name) offsetof(struct owamp_command_options, name)
#define MS 1000000ULL

static const struct opt owamp_opts[] = {
	OPTION_DIRECTION(FIELD(direction), owamp_directions, .fallback = "both", .heading = "The sessions",
			 .help = "up: from here to HOST; down: from HOST to here; both at the same time"),
	OPTION_COUNT(FIELD(count), .fallback = "100", .min = 1, .max = 1000000, .help = "Packets of each direction"),
	OPTION_INTERVAL(FIELD(interval_ns), "packets, on average", .fallback = "100ms", .min = 100000,
			.max = 3600000 * MS),
	OPTION_MODEL_OF_PROBES(FIELD(model), "poisson"),
	OPTION_PAYLOAD(FIELD(payload), OPT_SIZE, .argument = "BYTES", .fallback = "14", .min = OWAMP_TEST_BYTES,
		       .max = 8986, .help = "Bytes of UDP payload"),
	OPTION_DSCP(FIELD(dscp)),
	{ .name = "zero-padding",
	  .type = OPT_FLAG,
	  .offset = FIELD(zeros),
	  .help = "Fill packets up with zeros, not with random bytes" },
	OPTION_TIMEOUT(
		FIELD(timeout_ns), .fallback = "2s", .max = 600000 * MS,
		.help = "A packet that arrives later than this is lost; one that cannot leave within it is not sent"),
	OPTION_TOLERANCE(FIELD(tolerance)) OPTION_PORT(FIELD(port), .fallback = "861", .heading = "The server",
						       .help = "TCP port of OWAMP-Control"),
	OPTION_FROM(FIELD(from), ""),
	OPTIONS_FAMILY(FIELD(v4), FIELD(v6)),
	{ 0 },
};

static const struct opt_positional owamp_positionals[] = {
	{ .name = "HOST",
	  .offset = FIELD(host),
	  .help = "Host with `ktrxer serve --owamp-port 861`, or another server of OWAMP" },
	{ 0 },
};

static int plan(struct owamp_run *run, struct ktrxer_error *err)
{
	const struct owamp_command_options *o = run->o;
	struct owamp_client_options *c = &run->client;

	*c = (struct owamp_client_options){
		.from = o->from,
		.port = (uint16_t)o->port,
		.ways = { o->direction != 1 + OWAMP_DOWN, o->direction != 1 + OWAMP_UP },
		.slot = { .type = o->model == MODEL_POISSON ? OWAMP_SLOT_EXPONENTIAL : OWAMP_SLOT_FIXED,
			  .time = owamp_time_of_ns(o->interval_ns) },
		.packets = (uint32_t)o->count,
		.padding = (uint32_t)o->payload - OWAMP_TEST_BYTES,
		.dscp = o->dscp,
		.zeros = o->zeros,
		.timeout_ns = o->timeout_ns,
		.late_ns = verdict_late_ns(o->interval_ns),
		.stop_fd = run->cli->stop_fd,
	};
	return server_address_find(run->cli, o->host, &o->from, o->v4, o->v6, (uint16_t)o->port, &c->to, err);
}

static int measure(struct owamp_run *run)
{
	struct ktrxer_error err = { 0 };
	int rc = plan(run, &err);

	if (rc < 0)
		return cli_fail(run->cli, &err);
	owamp_say_what(run);
	if (cli_wait_start_ahead(run->cli, 1000, &run->client.start_ns) < 0)
		return EXIT_NO_RESULT;
	rc = owamp_client_run(&run->result, &run->client, &err);
	for (int way = 0; way < OWAMP_WAYS && rc == 0; way++) {
		const struct owamp_way *w = &run->result.ways[way];

		if (w->measured)
			rc = owamp_delays_of(&run->delays[way], w->records, w->count, w->next,
					     w->skipped + w->undecided, w->sched_real_ns);
		if (rc < 0)
			ktrxer_fail(&err, rc, "no memory for the delays");
	}
	if (rc < 0) {
		cli_complain_code(run->cli, err.code, "%s port %u: %s", run->o->host, run->client.port, err.text);
		return EXIT_NO_RESULT;
	}
	return owamp_finish(run);
}

static int run_owamp(struct cli *cli, const void *options)
{
	struct owamp_run run = { .cli = cli, .o = options };
	const int status = measure(&run);

	for (int way = 0; way < OWAMP_WAYS; way++)
		owamp_delays_free(&run.delays[way]);
	owamp_client_free(&run.result);
	return status;
}

const struct command cmd_owamp = {
	.name = "owamp",
	.summary = "One-way delay and loss by OWAMP (RFC 4656), also with other servers",
	.description = OPT_PROSE(
		"Sends numbered UDP packets at exponential or constant intervals to a server of the One-way Active "
		"Measurement Protocol, or requests them from the server, and prints loss, copies, order, one-way "
		"delay and its variation for each direction. The server is `ktrxer serve --owamp-port 861` or another "
		"implementation, as perfSONAR's owampd. The mode of the protocol is the unauthenticated one.\n\n"
		"A one-way delay needs synchronised clocks in both hosts, and contains their error. Its uncertainty "
		"is the sum of the errors that both hosts report. If a host reports no synchronised clock, the "
		"variation of the delay is printed without the delay, because a constant offset of two clocks does "
		"not change the variation. `ktrxer stamp` bounds the offset by round trips; use that command where "
		"both ends are yours.\n\n"
		"Delays up begin in the packet scheduler of this host where its kernel has that time stamp, and else "
		"just before the system call. Arrival times are the kernel's time stamps.\n\n"
		"The command ends --timeout after the last packet."),
	.examples =
		OPT_PROSE("ktrxer owamp far\tTen seconds, both directions.\n"
			  "ktrxer owamp far --direction down --count 1000 --interval 10ms --json\tFrom the server.\n"
			  "ktrxer owamp owamp.example.net --model constant --payload 1472\tLarge packets.\n"),
	.options = owamp_opts,
	.positionals = owamp_positionals,
	.options_size = sizeof(struct owamp_command_options),
	.run = run_owamp,
	.measures = true,
};
