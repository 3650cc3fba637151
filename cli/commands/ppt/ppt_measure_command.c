/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer ppt measure`: end-link capacity and dPPT, by two trains of compound probes to a host with `ktrxer serve`. */
#include "ppt_measure.h"

#include "error.h"
#include "ppt_plan.h"

#include <errno.h>
#include <stdlib.h>

#define FIELD(name) offsetof(struct ppt_measure_options, name)
#define TRAIN_FIELD(name) FIELD(train.name)

enum {
	HEADING_USUAL = 1502,
	TRAILING_USUAL = 232, /* undispersed behind links that are 6.2 times slower */
	WIRE_MORE = 26,       /* Ethernet header and check sequence, preamble: bytes on the wire beside the IP packet */
};

_Static_assert(FLOW_PACKET_HEAD + 28 + WIRE_MORE == PPT_TRAILING_MIN, "ppt plan recommends what this command accepts");

static const struct opt ppt_measure_opts[] = {
	TRAIN_OPTION_DIRECTION(TRAIN_FIELD, .fallback = "up", .heading = "Probes"),
	OPTION_COUNT(FIELD(count), .fallback = "30", .min = 2 * PPT_PROBES_LEAST, .max = 1000,
		     .help = "Probes of each of four kinds, in each direction"),
	OPTION_INTERVAL(FIELD(interval_ns), "two probes, which are of each kind in turn", .fallback = "100ms",
			.min = 1000000, .max = 30ULL * 1000000000),
	OPTION_HEADING(FIELD(heading), .min = PPT_SIZE_MIN, .max = PPT_SIZE_MAX,
		       .help = "Size of the heading packet on the wire, by default 1502 or what the MTU allows"),
	OPTION_SIZE1(FIELD(size1), .min = PPT_SIZE_MIN, .max = PPT_SIZE_MAX,
		     .help = "Size of one kind of trailing packet on the wire, by default the smallest"),
	OPTION_SIZE2(FIELD(size2), .min = PPT_SIZE_MIN, .max = PPT_SIZE_MAX,
		     .help = "Size of the other kind, by default 232; `ktrxer ppt plan` computes sizes for a path"),
	TRAIN_OPTIONS_HOW(TRAIN_FIELD, "probes"),
	{ 0 },
};

static const struct opt_positional ppt_measure_positionals[] = {
	TRAIN_POSITIONAL_HOST(TRAIN_FIELD),
	{ 0 },
};

static int choose_sizes(struct ppt_measure *run, struct ktrxer_error *err)
{
	const struct ppt_measure_options *o = run->o;
	const uint32_t more = train_run_head(&run->train) + WIRE_MORE, least = FLOW_PACKET_HEAD + more,
		       most = train_run_room(&run->train) + more;
	struct ppt_check_sizes checks;

	run->heading = o->heading ? (uint32_t)o->heading : most < HEADING_USUAL ? most : HEADING_USUAL;
	run->sizes[0] = o->size1 ? (uint32_t)o->size1 : least;
	run->sizes[1] = o->size2 ? (uint32_t)o->size2 : TRAILING_USUAL;
	if (run->heading > most)
		return ktrxer_fail(err, -EINVAL,
				   "a heading packet of %u bytes on the wire does not fit the MTU of %u on '%s': give "
				   "%u at most (--heading)",
				   run->heading, run->train.path.mtu, run->train.path.device.name, most);
	for (int i = 0; i < 2; i++)
		if (run->sizes[i] < least || run->sizes[i] >= run->heading)
			return ktrxer_fail(err, -EINVAL,
					   "a trailing packet of %u bytes on the wire: give %u to %u, less than the "
					   "heading packet has (--size%d)",
					   run->sizes[i], least, run->heading - 1, i + 1);
	if (run->sizes[0] > run->sizes[1]) {
		const uint32_t larger = run->sizes[0];

		run->sizes[0] = run->sizes[1];
		run->sizes[1] = larger;
	}
	if (run->sizes[1] - run->sizes[0] < PPT_SIZES_APART)
		return ktrxer_fail(err, -EINVAL,
				   "trailing packets of %u and %u bytes: the slope needs two sizes, %d bytes apart or "
				   "more (--size1, --size2)",
				   run->sizes[0], run->sizes[1], PPT_SIZES_APART);
	checks = ppt_check_sizes(run->heading, run->sizes, least);
	run->sizes[PPT_MIDDLE] = checks.middle;
	run->sizes[PPT_SHORTER] = checks.shorter;
	run->shorter_heading = checks.shorter_heading;
	return 0;
}

static uint32_t heading_of(const struct ppt_measure *run, uint32_t kind)
{
	return kind == PPT_SHORTER ? run->shorter_heading : run->heading;
}

static int plan_probes(struct ppt_measure *run, struct ktrxer_error *err)
{
	const uint32_t more = train_run_head(&run->train) + WIRE_MORE;
	int rc = choose_sizes(run, err);

	if (rc < 0)
		return rc;
	for (int way = 0; way < TRAIN_WAYS; way++) {
		run->ways[way].wanted = train_run_wants(&run->o->train, (enum train_way)way);
		for (uint32_t kind = 0; kind < PPT_KINDS && run->ways[way].wanted; kind++) {
			const uint32_t payloads[2] = { heading_of(run, kind) - more, run->sizes[kind] - more };

			train_run_add(&run->train, (enum train_way)way, kind, PPT_KINDS, payloads,
				      PPT_KINDS * run->o->interval_ns);
		}
	}
	for (uint32_t kind = 0; kind < PPT_KINDS; kind++)
		run->probe_bit_s += ppt_probe_bits(heading_of(run, kind), run->sizes[kind]) * 1e9 /
				    (double)(PPT_KINDS * run->o->interval_ns);
	return 0;
}

static int estimate_way(struct ppt_measure *run, struct ppt_way *way, uint32_t first, struct ktrxer_error *err)
{
	int rc;

	way->checks.heading_bytes = run->heading;
	way->checks.shorter_heading_bytes = run->shorter_heading;
	for (uint32_t kind = 0; kind < PPT_KINDS; kind++) {
		const struct train_packets *p = &run->train.session.packets[first + kind];

		way->times[kind] = train_pairs(p);
		if (!way->times[kind])
			return ktrxer_fail(err, -ENOMEM, "no memory for the times of %u probes", p->trains);
		*ppt_way_set(way, kind) = (struct ppt_probes){
			.probes = way->times[kind],
			.count = run->train.session.stopped ? train_pairs_left(way->times[kind], p->trains) : p->trains,
			.size_bytes = run->sizes[kind],
		};
	}
	rc = ppt_probes_estimate(way->sets, run->heading, TRAIN_RESOLUTION_NS, &way->result, err);
	if (rc == 0)
		rc = ppt_probes_check(way->sets, &way->checks, TRAIN_RESOLUTION_NS, &way->result, err);
	way->estimated = rc == 0;
	return rc;
}

static int measure_all(struct ppt_measure *run)
{
	struct ktrxer_error err = { 0 };
	uint32_t first = 0;
	int rc = train_run_prepare(&run->train, &err);

	if (rc < 0 || (rc = plan_probes(run, &err)) < 0)
		return cli_fail(run->train.cli, &err);
	ppt_measure_say_what(run);
	if (train_run_go(&run->train, run->o->count) != EXIT_VALID)
		return EXIT_NO_RESULT;
	for (int way = 0; way < TRAIN_WAYS && rc == 0; way++)
		if (run->ways[way].wanted) {
			rc = estimate_way(run, &run->ways[way], first, &err);
			first += PPT_KINDS;
		}
	return rc < 0 ? cli_fail(run->train.cli, &err) : ppt_measure_finish(run);
}

static int run_ppt_measure(struct cli *cli, const void *options)
{
	const struct ppt_measure_options *o = options;
	struct ppt_measure run = { .train = { .cli = cli, .o = &o->train }, .o = o };
	const int status = measure_all(&run);

	for (int way = 0; way < TRAIN_WAYS; way++)
		for (int kind = 0; kind < PPT_KINDS; kind++)
			free(run.ways[way].times[kind]);
	train_run_free(&run.train);
	return status;
}

const struct command cmd_ppt_measure = {
	.name = "ppt measure",
	.summary = "End-link capacity and dPPT of a host, by two trains of compound probes",
	.description = OPT_PROSE(
		"Sends compound probes, a large packet followed back to back by a small one, to a host where `ktrxer "
		"serve` runs, or from there. Two trains, whose probes take turns, differ in the size of the small "
		"packet. From the gaps between the kernel's time stamps of both packets at the receiver the command "
		"estimates the capacity of the receiver's link, and dPPT, the difference of the processing times of "
		"both packets in the receiver (Salehin, Rojas-Cessa, Lin, Dong, Kijkanjanarat). Sizes are bytes on "
		"the wire: the IP packet, 18 bytes of Ethernet header and check sequence, 8 of preamble.\n\n"
		"The receiver's link must not be faster than the slowest link of the path by more than the ratio of "
		"the heading packet to the larger trailing packet. `ktrxer ppt plan` computes the sizes for a path. "
		"Probes of two further kinds test this before a figure is printed: with a shorter heading packet the "
		"gaps stay as they are, or the end link is faster and is not measured (an end link above 10 Gbit/s is "
		"not distinguished from none); and the gaps of a third size lie on the line of the two others. "
		"Where they lie above it at the smallest size, the receiver needs a constant time for each packet, "
		"which is printed, "
		"and the larger sizes give the capacity.\n\n"
		"The method gives no processing time of one packet: PPT_t and PPT_h of the paper equal "
		"8 (s2 - s1) / c for every host, and are printed with this remark. A probe that lost a packet, was "
		"reordered, was not sent back to back, or arrived with one stamp is counted and left out. Gaps that do "
		"not depend on the size are reported as the receiver's service time, coalesced interrupts with their "
		"period; then there is no estimate, and the result is invalid. The load on the link and on this host's "
		"processors is printed.\n\n"
		"The server requires its token; the token is never transmitted."),
	.examples = OPT_PROSE(
		"ktrxer ppt measure far --token-file token\tThe link of the far host: 30 probes of each kind, "
		"twelve seconds.\n"
		"ktrxer ppt measure far --direction down --interval 10ms --token-file token\tThe link of this host, "
		"in one second; for links of 100 Mbit/s and more.\n"
		"ktrxer ppt measure far --size1 78 --size2 139 --token-file token\tA receiver's link that is ten times "
		"as fast as the slowest link of the path.\n"),
	.options = ppt_measure_opts,
	.positionals = ppt_measure_positionals,
	.options_size = sizeof(struct ppt_measure_options),
	.run = run_ppt_measure,
	.measures = true,
};
