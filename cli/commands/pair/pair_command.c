/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer pair`: capacity of the narrow link, in both directions. */
#include "pair_command.h"

#include "error.h"
#include "flow.h"
#include "shared_options.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#define FIELD(name) offsetof(struct pair_options, name)

enum { PAYLOAD_LEAST = 256, PAYLOAD_USUAL = 1472, MODE_SHARE = 100 /* of a gap: modes are no narrower */ };
#define RESOLUTION_NS 100u /* of kernel stamps: their own step is 1 ns, the way to CLOCK_MONOTONIC adds some tens */

static const char *const directions[] = { "both", "up", "down", NULL };

static const struct opt pair_opts[] = {
	{ .name = "direction",
	  .type = OPT_CHOICE,
	  .offset = FIELD(direction),
	  .argument = "D",
	  .fallback = "both",
	  .choices = directions,
	  .heading = "Pairs",
	  .help = "up: from here to HOST; down: from HOST to here; both" },
	OPTION_COUNT(FIELD(count), .fallback = "200", .min = 2 * PAIRS_LEAST, .max = 1000,
		     .help = "Pairs of each of two sizes, in each direction"),
	OPTION_INTERVAL(FIELD(interval_ns), "two pairs of one size", .fallback = "20ms", .min = 1000000,
			.max = 60ULL * 1000000000),
	OPTION_PAYLOAD(
		FIELD(payload), OPT_SIZE, .argument = "N", .min = PAYLOAD_LEAST, .max = FLOW_PAYLOAD_MAX,
		.help = "Bytes of payload of the large packets, by default as many as the MTU allows and 1472 at most; "
			"the small ones have half of it"),

	OPTION_DEVICE_OF_ROUTE(FIELD(device), " of pairs up", "How"),
	OPTION_ENGINE_OF_STACK(FIELD(engine), " of pairs up"),
	OPTION_PRECISE(FIELD(precise), OPT_FLAG, " of pairs up", "", NULL),
	OPTION_CPU(FIELD(cpu), "waiting thread of --precise"),

	OPTIONS_SERVER(FIELD(token_file), FIELD(port), FIELD(from), FIELD(v4), FIELD(v6)),
	{ 0 },
};

static const struct opt_positional pair_positionals[] = {
	{ .name = "HOST", .offset = FIELD(host), .help = "Address or name of a host where `ktrxer serve` runs" },
	{ 0 },
};

/* --------------------------------------------------------------------------------------------------------- the plan */

static int find_path(struct pair_run *run, struct ktrxer_error *err)
{
	const struct pair_options *o = run->o;
	struct ktrxer_path_options p = KTRXER_PATH_OPTIONS_INIT;
	int rc;

	rc = cli_resolve(o->host, o->v4, o->v6, &run->plan.to, err);
	if (rc < 0)
		return rc;
	if (o->from.family && o->from.family != run->plan.to.family)
		return ktrxer_fail(err, -EAFNOSUPPORT, "--from is not of the same family as %s", o->host);
	p.device = o->device;
	p.from = run->plan.from = o->from;
	p.to = run->plan.to;
	p.no_link_address = true;
	return ktrxer_path_resolve(&run->path, &p, err);
}

static int plan_pairs(struct pair_run *run, struct ktrxer_error *err)
{
	const struct pair_options *o = run->o;
	const uint32_t head = run->plan.to.family == AF_INET6 ? 48 : 28,
		       room = run->path.mtu > head ? run->path.mtu - head : 0;
	const uint32_t large = o->payload ? (uint32_t)o->payload : room < PAYLOAD_USUAL ? room : PAYLOAD_USUAL;
	const uint32_t payloads[2] = { large, large / 2 };

	if (large > room || large < PAYLOAD_LEAST)
		return ktrxer_fail(err, -EMSGSIZE,
				   "the MTU of %u on '%s' leaves room for payloads of %u bytes: pairs need %u to %u of "
				   "them (--payload)",
				   run->path.mtu, run->path.device.name, room, PAYLOAD_LEAST, room);
	for (int way = 0; way < PAIR_DIRECTIONS; way++) {
		run->ways[way].wanted = o->direction != (way == PAIR_UP ? 2 : 1);
		for (int size = 0; size < 2 && run->ways[way].wanted; size++) {
			run->ways[way].ip_bytes[size] = payloads[size] + head;
			/* A quarter of the time between pairs for each flow: no pair meets the other size's on the
			 * path. */
			train_pair_spec(&run->specs[run->plan.flows], way == PAIR_DOWN, (uint16_t)payloads[size],
					o->interval_ns, (uint64_t)(2 * size + way) * (o->interval_ns / 4));
			run->plan.flows++;
		}
	}
	run->probe_bps =
		(uint64_t)(payloads[0] + payloads[1] + 2 * head) * 2 * 8 * (uint64_t)KTRXER_NS_PER_S / o->interval_ns;
	return 0;
}

static int pair_plan(struct pair_run *run, struct ktrxer_error *err)
{
	const struct pair_options *o = run->o;
	int rc;

	run->plan = (struct train_session_options){ .port = (uint16_t)o->port,
						    .token = &run->token,
						    .device = o->device,
						    .engine = o->engine,
						    .precise = o->precise,
						    .cpu = (int)o->cpu,
						    .specs = run->specs,
						    .trains = (uint32_t)o->count,
						    .stop_fd = run->cli->stop_fd,
						    .describe = flow_failure_describe };
	if ((rc = flow_token_read(&run->token, o->token_file, err)) < 0 || (rc = find_path(run, err)) < 0)
		return rc;
	return plan_pairs(run, err);
}

/* -------------------------------------------------------------------------------------------------------------- the
 * estimates */

static int estimate_way(struct pair_run *run, struct pair_way *way, uint32_t first, struct ktrxer_error *err)
{
	int64_t *gaps = calloc((size_t)run->o->count, sizeof *gaps);
	size_t count = 0;
	int rc = gaps ? 0 : -ENOMEM;

	for (int size = 0; size < 2 && rc == 0; size++) {
		const struct train_packets *p = &run->session.packets[first + (uint32_t)size];

		way->times[size] = train_pairs(p);
		way->sets[size] = (struct pairs_set){ .pairs = way->times[size],
						      .count = p->trains,
						      .bits = 8ull * way->ip_bytes[size] };
		rc = way->times[size] ? 0 : -ENOMEM;
	}
	if (rc == 0)
		rc = pairs_estimate(way->sets, RESOLUTION_NS, &way->result);
	for (size_t i = 0; rc == 0 && i < way->sets[0].count; i++) {
		const struct pair_times *p = &way->times[0][i];

		if (p->arrived_ns[0] && p->arrived_ns[1] > p->arrived_ns[0])
			gaps[count++] = (int64_t)(p->arrived_ns[1] - p->arrived_ns[0]);
	}
	if (rc == 0 &&
	    capacity_find_modes(gaps, count, way->sets[0].bits,
				RESOLUTION_NS + (uint32_t)(way->sets[0].gap_ns / MODE_SHARE), &way->modes) == -ENOMEM)
		rc = -ENOMEM;
	free(gaps);
	way->estimated = rc == 0;
	return rc < 0 ? ktrxer_fail(err, rc, "no memory for the estimate of %llu pairs",
				    (unsigned long long)run->o->count)
		      : 0;
}

static int pair_all(struct pair_run *run)
{
	struct ktrxer_error err = { 0 };
	uint32_t first = 0;
	uint64_t start_ns;
	int rc = pair_plan(run, &err);

	if (rc < 0) {
		cli_complain(run->cli, "%s", err.text);
		return rc == -EINVAL || rc == -EMSGSIZE ? EXIT_USAGE : EXIT_BAD;
	}
	pair_say_what(run);
	if (cli_wait_start_ahead(run->cli, 3000, &start_ns) < 0)
		return EXIT_BAD;
	run->plan.start_ns = run->cli->common.start_at_real_ns ? start_ns : 0;
	rc = train_session_run(&run->session, &run->plan, &err);
	for (int way = 0; way < PAIR_DIRECTIONS && rc == 0; way++)
		if (run->ways[way].wanted) {
			rc = estimate_way(run, &run->ways[way], first, &err);
			first += 2;
		}
	if (rc < 0) {
		cli_complain(run->cli, "%s", err.text);
		return EXIT_BAD;
	}
	return pair_finish(run);
}

static int run_pair(struct cli *cli, const void *options)
{
	struct pair_run run = { .cli = cli, .o = options };
	const int status = pair_all(&run);

	for (int way = 0; way < PAIR_DIRECTIONS; way++)
		for (int size = 0; size < 2; size++)
			free(run.ways[way].times[size]);
	train_session_free(&run.session);
	secret_forget(&run.token, sizeof run.token);
	return status;
}

const struct command cmd_pair = {
	.name = "pair",
	.summary = "Capacity of the narrow link, by packet pairs in both directions",
	.description = OPT_PROSE("Sends pairs of packets back to back between this host and one where `ktrxer serve` "
				 "runs. The narrow link, which has the least capacity of the "
				 "path, spreads a pair: the gap between the arrivals is the time that this link needs "
				 "for a packet. The estimate uses the pairs of which both "
				 "packets had the least delay, because cross traffic did not disturb them (CapProbe). "
				 "Capacity is that of IP packets of the large size (RFC 5136).\n\n"
				 "Pairs have two sizes. A link needs more time for the larger one; a receiver whose "
				 "interrupts are coalesced does not. A pair that lost a packet, "
				 "was reordered, was not sent back to back, or arrived with one stamp is counted and "
				 "left out. Without an estimate the result is invalid, with "
				 "the cause.\n\n"
				 "The server asks for its token; the token is never transmitted."),
	.examples = OPT_PROSE(
		"ktrxer pair far --token-file token\tBoth directions: four seconds, 200 pairs of each size.\n"
		"ktrxer pair far --direction up --count 500 --json --token-file token\tMore pairs, for a path with "
		"much cross traffic.\n"
		"ktrxer pair far --interval 200ms --token-file token\tFor links of some Mbit/s: a lower load.\n"),
	.options = pair_opts,
	.positionals = pair_positionals,
	.options_size = sizeof(struct pair_options),
	.run = run_pair,
	.measures = true,
};
