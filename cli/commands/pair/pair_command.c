/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer pair`: capacity of the narrow link, in both directions. */
#include "pair_command.h"

#include "error.h"

#include <errno.h>
#include <stdlib.h>

#define FIELD(name) offsetof(struct pair_options, name)
#define TRAIN_FIELD(name) FIELD(train.name)

enum { PAYLOAD_LEAST = 256, PAYLOAD_USUAL = 1472, MODE_SHARE = 100 /* of a gap: modes are no narrower */ };

#define ECHO_TIMEOUT_NS ((uint64_t)KTRXER_NS_PER_S)

static const struct opt pair_opts[] = {
	TRAIN_OPTION_DIRECTION(TRAIN_FIELD, .fallback = "both", .heading = "Pairs"),
	OPTION_ECHO(FIELD(echo),
		    .help = "ICMP echo requests to any host, without `ktrxer serve`: one capacity for both directions "
			    "together"),
	OPTION_COUNT(FIELD(count), .fallback = "200", .min = 2 * PAIRS_LEAST, .max = 1000,
		     .help = "Pairs of each of two sizes, in each direction"),
	OPTION_INTERVAL(FIELD(interval_ns), "two pairs of one size", .fallback = "20ms", .min = 1000000,
			.max = 60ULL * 1000000000),
	OPTION_PAYLOAD(
		FIELD(payload), OPT_SIZE, .argument = "BYTES", .min = PAYLOAD_LEAST, .max = FLOW_PAYLOAD_MAX,
		.help = "Bytes of payload of the large packets, by default as many as the MTU allows and 1472 at most; "
			"the small ones have half of it"),

	TRAIN_OPTIONS_HOW(TRAIN_FIELD, "pairs"),
	{ 0 },
};

static const struct opt_positional pair_positionals[] = {
	TRAIN_POSITIONAL_HOST(TRAIN_FIELD),
	{ 0 },
};

static int plan_pairs(struct pair_run *run, struct ktrxer_error *err)
{
	const struct pair_options *o = run->o;
	const uint32_t head = train_run_head(&run->train), room = train_run_room(&run->train);
	const uint32_t large = o->payload ? (uint32_t)o->payload : room < PAYLOAD_USUAL ? room : PAYLOAD_USUAL;
	const uint32_t payloads[2] = { large, large / 2 };

	if (large > room || large < PAYLOAD_LEAST)
		return ktrxer_fail(err, -EINVAL,
				   "the MTU of %u on '%s' leaves room for payloads of %u bytes: pairs need %u to %u of "
				   "them (--payload)",
				   run->train.path.mtu, run->train.path.device.name, room, PAYLOAD_LEAST, room);
	run->probe_bit_s = pairs_load((const uint32_t[2]){ payloads[0] + head, payloads[1] + head }, o->interval_ns);
	for (int way = 0; way < TRAIN_WAYS; way++) {
		run->ways[way] = (struct pair_way){ .key = train_ways[way],
						    .name = train_ways[way],
						    .sender = train_hosts[way],
						    .receiver = train_hosts[!way] };
		if (o->echo)
			continue;
		run->ways[way].wanted = train_run_wants(&o->train, (enum train_way)way);
		for (uint32_t size = 0; size < 2 && run->ways[way].wanted; size++) {
			const uint32_t both[2] = { payloads[size], payloads[size] };

			run->ways[way].ip_bytes[size] = payloads[size] + head;
			train_run_add(&run->train, (enum train_way)way, size, 2, both, o->interval_ns);
		}
	}
	if (o->echo)
		run->ways[0] = (struct pair_way){ .wanted = true,
						  .key = "round_trip",
						  .name = "round trip",
						  .sender = "this host",
						  .receiver = "this host or the far host",
						  .ip_bytes = { payloads[0] + head, payloads[1] + head } };
	return 0;
}

static int take_flows(struct pair_run *run, struct pair_way *way, uint32_t first)
{
	for (uint32_t size = 0; size < 2; size++) {
		way->times[size] = train_pairs(&run->train.session.packets[first + size]);
		if (!way->times[size])
			return -ENOMEM;
	}
	return 0;
}

static int estimate_way(struct pair_run *run, struct pair_way *way, struct ktrxer_error *err)
{
	int64_t *gaps = calloc((size_t)run->o->count, sizeof *gaps);
	size_t count = 0;
	int rc = gaps ? 0 : -ENOMEM;

	for (int size = 0; size < 2; size++) {
		way->sets[size] = (struct pairs_set){ .pairs = way->times[size],
						      .count = (size_t)run->o->count,
						      .bits = 8ull * way->ip_bytes[size] };
		if (run->train.session.stopped)
			way->sets[size].count = train_pairs_left(way->times[size], way->sets[size].count);
	}
	if (rc == 0)
		rc = pairs_estimate(way->sets, TRAIN_RESOLUTION_NS, &way->result);
	for (size_t i = 0; rc == 0 && i < way->sets[0].count; i++) {
		const struct pair_times *p = &way->times[0][i];

		if (p->arrived_ns[0] && p->arrived_ns[1] > p->arrived_ns[0])
			gaps[count++] = (int64_t)(p->arrived_ns[1] - p->arrived_ns[0]);
	}
	if (rc == 0 && capacity_find_modes(gaps, count, way->sets[0].bits,
					   TRAIN_RESOLUTION_NS + (uint32_t)(way->sets[0].gap_ns / MODE_SHARE),
					   &way->modes) == -ENOMEM)
		rc = -ENOMEM;
	free(gaps);
	way->estimated = rc == 0;
	return rc < 0 ? ktrxer_fail(err, rc, "no memory for the estimate of %llu pairs",
				    (unsigned long long)run->o->count)
		      : 0;
}

/* Pairs pass a bucket at the rate of the line: a burst shows the sustained rate. */
static int find_bucket(struct pair_run *run, struct pair_way *way, bool down, struct ktrxer_error *err)
{
	const uint32_t head = train_run_head(&run->train);
	const struct train_burst_options o = { .session = &run->train.plan,
					       .down = down,
					       .payload = way->ip_bytes[0] - head,
					       .head = head,
					       .load_bit_s = run->probe_bit_s };
	struct train_burst burst;
	const int rc = train_burst_find(&burst, &o, err);

	run->train.session.stopped |= burst.stopped;
	if (burst.shaper.line_bit_s > 0) {
		way->shaper = burst.shaper;
		way->result.reading = PAIRS_SHAPED;
	}
	return rc;
}

static int send_flows(struct pair_run *run, struct ktrxer_error *err)
{
	uint32_t first = 0;

	if (train_run_go(&run->train, run->o->count) != EXIT_VALID)
		return EXIT_NO_RESULT;
	for (int way = 0; way < TRAIN_WAYS; way++)
		if (run->ways[way].wanted) {
			if (take_flows(run, &run->ways[way], first) < 0) {
				ktrxer_fail(err, -ENOMEM, "no memory for the times of the pairs");
				return cli_fail(run->train.cli, err);
			}
			first += 2;
		}
	return EXIT_VALID;
}

static int send_echo(struct pair_run *run, struct ktrxer_error *err)
{
	const struct train_options *t = &run->o->train;
	const uint32_t head = train_run_head(&run->train);
	struct pair_way *way = &run->ways[0];
	struct train_echo_options e = { .probe = { .to = run->train.plan.to,
						   .from = t->from,
						   .device = t->device,
						   .engine = t->engine,
						   .count = run->o->count,
						   .interval_ns = run->o->interval_ns / 2,
						   .timeout_ns = ECHO_TIMEOUT_NS,
						   .late_ns = verdict_late_ns(run->o->interval_ns / 2),
						   .precise = t->precise,
						   .cpu = (int)t->cpu },
					.payloads = { way->ip_bytes[0] - head, way->ip_bytes[1] - head },
					.stop_fd = run->train.cli->stop_fd };

	if (cli_wait_start(run->train.cli, &e.start_ns) < 0)
		return EXIT_NO_RESULT;
	if (!run->train.cli->common.start_at_real_ns)
		e.start_ns = 0;
	if (train_echo_run(&run->echo, &e, err) < 0)
		return cli_fail(run->train.cli, err);
	for (int size = 0; size < 2; size++) {
		way->times[size] = run->echo.times[size];
		run->echo.times[size] = NULL;
	}
	run->train.session.stopped = run->echo.stopped;
	run->train.session.info = run->echo.info;
	run->train.session.qdiscs = run->echo.qdiscs;
	run->train.witness = run->echo.path;
	return EXIT_VALID;
}

static int pair_all(struct pair_run *run)
{
	struct ktrxer_error err = { 0 };
	int rc = 0;

	if (run->o->echo && run->o->train.direction) {
		cli_complain(run->train.cli, "--echo has no --direction: a reply passes both");
		return EXIT_USAGE;
	}
	rc = run->o->echo ? train_run_find_path(&run->train, &err) : train_run_prepare(&run->train, &err);
	if (rc < 0 || (rc = plan_pairs(run, &err)) < 0)
		return cli_fail(run->train.cli, &err);
	pair_say_what(run);
	rc = run->o->echo ? send_echo(run, &err) : send_flows(run, &err);
	if (rc != EXIT_VALID)
		return rc;
	for (int way = 0; way < TRAIN_WAYS && rc == 0; way++)
		if (run->ways[way].wanted) {
			rc = estimate_way(run, &run->ways[way], &err);
			if (rc == 0 && !run->o->echo && run->ways[way].result.reading == PAIRS_RESOLVED &&
			    !run->train.session.stopped)
				rc = find_bucket(run, &run->ways[way], way == TRAIN_DOWN, &err);
		}
	return rc < 0 ? cli_fail(run->train.cli, &err) : pair_finish(run);
}

static int run_pair(struct cli *cli, const void *options)
{
	const struct pair_options *o = options;
	struct pair_run run = { .train = { .cli = cli, .o = &o->train }, .o = o };
	const int status = pair_all(&run);

	for (int way = 0; way < TRAIN_WAYS; way++)
		for (int size = 0; size < 2; size++)
			free(run.ways[way].times[size]);
	train_echo_free(&run.echo);
	train_run_free(&run.train);
	return status;
}

const struct command cmd_pair = {
	.name = "pair",
	.summary = "Capacity of the narrow link, by packet pairs in both directions",
	.description = OPT_PROSE(
		"Sends pairs of packets back to back between this host and one where `ktrxer serve` "
		"runs. The narrow link, which has the least capacity of the "
		"path, spreads a pair: the gap between the arrivals is the time that this link needs "
		"for a packet. The estimate uses the pairs of which both "
		"packets had the least delay, because cross traffic did not disturb them (CapProbe). "
		"Capacity is that of IP packets of the large size (RFC 5136).\n\n"
		"Pairs have two sizes. A link needs more time for the larger one; a receiver whose "
		"interrupts are coalesced does not. A pair that lost a packet, "
		"was reordered, was not sent back to back, or arrived with one stamp is counted and "
		"left out. Without an estimate the result is invalid, with "
		"the cause. A burst of 64 packets after the pairs shows a shaper whose bucket is smaller, and "
		"which pairs pass at the rate of the line.\n\n"
		"With --echo the far host needs no server: pairs of ICMP echo requests are sent, and the "
		"gaps are those of the replies. This is weaker: the one capacity is that of the narrower "
		"direction, cross traffic of both directions and the far host's processing disturb a "
		"pair, and hosts may limit or drop ICMP.\n\n"
		"The server requires its token; the token is never transmitted."),
	.examples = OPT_PROSE(
		"ktrxer pair far --token-file token\tBoth directions: four seconds, 200 pairs of each size.\n"
		"ktrxer pair far --direction up --count 500 --json --token-file token\tMore pairs, for a path with "
		"much cross traffic.\n"
		"ktrxer pair 192.0.2.1 --echo\tA host without a server: the capacity of the narrower direction.\n"
		"ktrxer pair far --interval 200ms --token-file token\tFor links of some Mbit/s: a lower load.\n"),
	.options = pair_opts,
	.positionals = pair_positionals,
	.options_size = sizeof(struct pair_options),
	.run = run_pair,
	.measures = true,
};
