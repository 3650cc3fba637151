/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer bench rate | schedule | pairs | stamps`: their options. */
#include "bench.h"

#include "bench_read.h"
#include "error.h"
#include "units.h"

#include <errno.h>
#include <string.h>

#define FIELD(name) offsetof(struct bench_options, name)

#define ROUNDS                                                                                                                          \
	{ .name = "rounds", .letter = 'n', .type = OPT_UINT, .offset = FIELD(rounds), .argument = "N", .fallback = "7", .min = 1, .max = 1000, \
	  .help = "Rounds; in each everybody sends once, in an order that rotates" }
#define CROSS                                                                                                                         \
	{ .name = "cross", .letter = 'x', .type = OPT_STRING, .offset = FIELD(cross), .argument = "R,R...", .fallback = "0",              \
	  .help = "Cross traffic beside the probes, packets a second: random sizes of 100 to 1400 bytes at random times, from the sender's host" }
#define BOTH_WAYS                                                                                                                      \
	{ .name = "both-ways", .type = OPT_FLAG, .offset = FIELD(both_ways), .help = "As much cross traffic from the far host, too" }
#define PAYLOAD(value)                                                                                                                \
	{ .name = "payload", .letter = 's', .type = OPT_RANGE, .offset = FIELD(payload), .argument = "A..B/STEP", .fallback = value,          \
	  .min = 8, .max = 1472, .help = "Bytes of UDP payload", .heading = "What is sent" }
#define COUNT(value, words)                                                                                                           \
	{ .name = "count", .letter = 'c', .type = OPT_UINT, .offset = FIELD(count), .argument = "N", .fallback = value, .min = 2,             \
	  .max = 100000, .help = words }
#define INTERVAL(value, words)                                                                                                        \
	{ .name = "interval", .letter = 'i', .type = OPT_DURATION, .offset = FIELD(interval_ns), .argument = "D", .fallback = value,          \
	  .min = 1000, .max = 10 * 1000000000ULL, .help = words }
#define REST                                                                                                                          \
	{ .name = "seed", .type = OPT_UINT, .offset = FIELD(seed), .argument = "N", .fallback = "1", .help = "Of the cross traffic" },        \
	{ .name = "engines", .letter = 'e', .type = OPT_STRING, .offset = FIELD(engines), .argument = "E,E...", .heading = "Who and where",     \
	  .help = "Only these engines; by default all that work here" },                                                                 \
	{ .name = "no-baselines", .type = OPT_FLAG, .offset = FIELD(no_baselines), .help = "Leave the frozen baseline programs out" },       \
	{ .name = "device", .letter = 'd', .type = OPT_STRING, .offset = FIELD(device), .argument = "DEV",                                    \
	  .help = "Send by this device instead of between two hosts in network namespaces of the bench's own" },                          \
	{ .name = "to", .type = OPT_ADDRESS, .offset = FIELD(to), .argument = "IP", .help = "Destination, with --device" },                  \
	{ .name = "far-device", .type = OPT_STRING, .offset = FIELD(far_device), .argument = "DEV",                                           \
	  .help = "Where the probes arrive, with --device: a device of this machine too, so that one clock judges" },                     \
	{ .name = "far-netns", .type = OPT_STRING, .offset = FIELD(far_netns), .argument = "NAME",                                            \
	  .help = "The network namespace of --far-device" },                                                                              \
	{ .name = "no-bpf", .type = OPT_FLAG, .offset = FIELD(no_bpf), .help = "Judge by the kernel's receive stamps, not by XDP" },         \
	{ .name = "csv", .type = OPT_STRING, .offset = FIELD(csv), .argument = "FILE", .heading = "Results", .help = "Write the rows to a CSV file" }, \
	{ .name = "compare", .type = OPT_STRING, .offset = FIELD(compare), .argument = "OLD.json",                                            \
	  .help = "Say what has changed since an older run, whose --json output this file is" },                                         \
	{ 0 }

static const struct opt rate_opts[] = {
	PAYLOAD("28..1428/700"), CROSS,
	{ .name = "for", .type = OPT_DURATION, .offset = FIELD(for_ns), .argument = "D", .fallback = "200ms", .min = 1000000, .max = 60 * 1000000000ULL,
	  .help = "How long a flood lasts" },
	{ .name = "train", .type = OPT_UINT, .offset = FIELD(train), .argument = "N", .fallback = "100", .min = 2, .max = 4096,
	  .help = "Probes in a train" },
	{ .name = "threads", .type = OPT_UINT, .offset = FIELD(threads), .argument = "N", .fallback = "1", .min = 1, .max = 64,
	  .help = "Processors that send a template together" },
	ROUNDS, REST,
};

static const struct opt schedule_opts[] = {
	PAYLOAD("100"), CROSS, BOTH_WAYS, INTERVAL("10ms", "Time between probes"), COUNT("100", "Probes in a round"), ROUNDS,
	{ .name = "methods", .letter = 'm', .type = OPT_STRING, .offset = FIELD(methods), .argument = "M,M...",
	  .help = "Experiments E3 and E4: oir (engines are given all probes at the start), ofr (each a fixed period before its time), osm (each when a "
		  "sleep ends), rsm (a raw socket when a sleep ends)" },
	{ .name = "predispatch", .type = OPT_STRING, .offset = FIELD(predispatch), .argument = "D,D...", .fallback = "500us",
	  .help = "The periods of ofr" },
	{ .name = "fq", .type = OPT_FLAG, .offset = FIELD(fq),
	  .help = "Give the sending one of the bench's own hosts the fq qdisc: engine txtime and a plain SO_TXTIME socket take part" },
	REST,
};

static const struct opt pairs_opts[] = {
	PAYLOAD("12"), CROSS, BOTH_WAYS, INTERVAL("1ms", "Time between pairs"), COUNT("500", "Pairs in a round"), ROUNDS, REST,
};

static const struct opt stamps_opts[] = {
	PAYLOAD("28"), CROSS,
	{ .name = "gaps", .type = OPT_STRING, .offset = FIELD(gaps), .argument = "D,D...", .fallback = "0us,10us,100us,1ms,10ms,100ms",
	  .help = "Gaps between the two probes of a pair; 0us: back to back" },
	COUNT("200", "Pairs in a round, fewer where the gap is long: a round takes 2 s at most"), ROUNDS, REST,
};

static int run_rate(struct cli *cli, const void *options)
{
	return bench_run_kind(cli, &bench_rate, options);
}

static int run_schedule(struct cli *cli, const void *options)
{
	const struct bench_options *o = options;

	return bench_run_kind(cli, o->methods ? &bench_methods : &bench_schedule, options);
}

static int run_pairs(struct cli *cli, const void *options)
{
	return bench_run_kind(cli, &bench_pairs, options);
}

static int run_stamps(struct cli *cli, const void *options)
{
	return bench_run_kind(cli, &bench_stamps, options);
}

#define COMMON                                                                                                                        \
	"All engines that work here and frozen baseline programs send in turns over the same path: in each round everybody once, in an order " \
	"that rotates. Unless --device says otherwise the path is a veth pair between two network namespaces of the bench's own, which are "  \
	"gone with the process, however it ends. The far end decides: an XDP program there stamps and counts each probe by its number, the "   \
	"same for all; where there is no XDP the kernel's receive stamps do it, and the result says so.\n\n"                                   \
	"Rounds during which the machine was away for more than a millisecond, or lost steal time, are counted as stalled and do not enter "   \
	"the figures unless there are no others."

/* ------------------------------------------------------------------------------------------------------ the same once more */

struct again_options {
	const char *compare, *csv;
};

#define AGAIN(name) offsetof(struct again_options, name)

static const struct opt again_opts[] = {
	{ .name = "compare", .type = OPT_STRING, .offset = AGAIN(compare), .argument = "OLD.json",
	  .help = "Run the bench of this file once more, with its settings, and say what has changed" },
	{ .name = "csv", .type = OPT_STRING, .offset = AGAIN(csv), .argument = "FILE", .help = "Write the rows to a CSV file" },
	{ 0 },
};

static const struct bench_kind *const kinds[] = { &bench_pairs, &bench_rate, &bench_schedule, &bench_stamps };

/* The settings of an older run as options; strings stay where they are. */
static int options_of(struct bench_options *o, const struct bench_settings *s, struct ktrxer_error *err)
{
	*o = (struct bench_options){ .cross = s->cross, .gaps = s->gaps, .rounds = s->rounds, .count = s->count,
				     .interval_ns = s->interval_ns, .for_ns = s->for_ns, .train = s->train,
				     .threads = s->threads, .seed = s->seed, .fq = s->fq, .both_ways = s->both_ways,
				     .methods = s->methods[0] ? s->methods : NULL,
				     .predispatch = s->predispatch[0] ? s->predispatch : NULL };
	if (!s->rounds || s->rounds > 1000 || s->count > 100000 || s->train > 4096 || s->threads > 64 || s->interval_ns > 10 * 1000000000ULL ||
	    s->for_ns > 60 * 1000000000ULL || !s->cross[0])
		return ktrxer_fail(err, -EBADMSG, "--compare: the file's settings are missing or out of bounds");
	return ktrxer_parse_range(&o->payload.from, &o->payload.to, &o->payload.step, s->payload, err);
}

static int run_again(struct cli *cli, const void *options)
{
	const struct again_options *a = options;
	const struct bench_kind *kind = NULL;
	struct bench_settings settings;
	struct ktrxer_error err = { 0 };
	struct bench_table table;
	struct bench_options o;
	int rc;

	if (!a->compare) {
		cli_complain(cli, "which one? `ktrxer bench rate`, `schedule`, `pairs` or `stamps`; or --compare OLD.json");
		return EXIT_USAGE;
	}
	bench_table_open(&table, bench_schedule.columns);
	rc = bench_read_file(&table, &settings, a->compare, &err);
	bench_table_close(&table);
	for (size_t i = 0; rc == 0 && i < sizeof kinds / sizeof *kinds; i++)
		if (!strcmp(kinds[i]->name, settings.kind))
			kind = kinds[i];
	if (kind == &bench_schedule && settings.methods[0])
		kind = &bench_methods;
	if (rc == 0 && !kind)
		rc = ktrxer_fail(&err, -EBADMSG, "--compare %s: there is no `bench %s`", a->compare, settings.kind);
	if (rc == 0)
		rc = options_of(&o, &settings, &err);
	if (rc < 0) {
		cli_complain(cli, "%s", err.text);
		return EXIT_BAD;
	}
	o.compare = a->compare;
	o.csv = a->csv;
	return bench_run_kind(cli, kind, &o);
}

const struct command cmd_bench = {
	.name = "bench",
	.summary = "Engines and frozen baselines against each other: rate, schedule, pairs, stamps",
	.description = OPT_PROSE("`ktrxer bench rate`, `bench schedule`, `bench pairs` and `bench stamps` measure; see their own pages. Without one of these words, "
		       "--compare OLD.json runs the bench of that file once more, with the same settings, and says what has changed."),
	.examples = "ktrxer bench schedule --json >old.json\tMeasure.\n"
		    "ktrxer bench --compare old.json\tThe same again, and the differences.\n",
	.options = again_opts,
	.options_size = sizeof(struct again_options),
	.run = run_again,
	.measures = true,
};

const struct command cmd_bench_rate = {
	.name = "bench rate",
	.summary = "Engines against each other: packets a second, in trains and floods",
	.description = OPT_PROSE(COMMON),
	.examples = "ktrxer bench rate --payload 28..1428/50 --cross 0,12k,24k,36k\tExperiment E1 as a whole.\n"
		    "ktrxer bench rate --payload 28 --engines raw,packet --json >old.json\tTwo engines, for later comparison.\n",
	.options = rate_opts,
	.options_size = sizeof(struct bench_options),
	.run = run_rate,
	.measures = true,
};

const struct command cmd_bench_schedule = {
	.name = "bench schedule",
	.summary = "Engines against each other: how true intervals are at the far end",
	.description = OPT_PROSE(COMMON),
	.examples = "ktrxer bench schedule --cross 0,36k\tExperiment E2, without and with cross traffic.\n"
		    "ktrxer bench schedule -m oir,ofr,osm,rsm -i 1ms --payload 12..1472/730\tExperiment E3: who waits, and since when.\n"
		    "ktrxer bench schedule -m ofr --predispatch 0,100us,500us,1ms -i 1ms\tExperiment E4: how long before.\n"
		    "ktrxer bench schedule --compare old.json\tHas it changed?\n",
	.options = schedule_opts,
	.options_size = sizeof(struct bench_options),
	.run = run_schedule,
	.measures = true,
};

const struct command cmd_bench_pairs = {
	.name = "bench pairs",
	.summary = "Engines against each other: how close two probes leave back to back",
	.description = OPT_PROSE(COMMON),
	.examples = "ktrxer bench pairs\tExperiment E5: 40-byte packets, pairs 1 ms apart.\n",
	.options = pairs_opts,
	.options_size = sizeof(struct bench_options),
	.run = run_pairs,
	.measures = true,
};

const struct command cmd_bench_stamps = {
	.name = "bench stamps",
	.summary = "Engines against each other: how true their reported send times are",
	.description = OPT_PROSE(COMMON),
	.examples = "ktrxer bench stamps\tExperiment E6: gaps of 0 to 100 ms.\n",
	.options = stamps_opts,
	.options_size = sizeof(struct bench_options),
	.run = run_stamps,
	.measures = true,
};
