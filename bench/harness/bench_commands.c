/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer bench rate | schedule | pairs | stamps`: their options. */
#include "bench.h"

#define FIELD(name) offsetof(struct bench_options, name)

#define ROUNDS \
	BENCH_ROUNDS_OPTION(struct bench_options, "Rounds; in each all send once, in an order that rotates")
#define CROSS                                                                                                          \
	{ .name = "cross", .letter = 'x', .type = OPT_STRING, .offset = FIELD(cross), .argument = "R,R...",            \
	  .fallback = "0",                                                                                             \
	  .help = "Cross traffic beside the probes, packets a second: random sizes of 100 to 1400 bytes at random "    \
		  "times, from the sender's host" }
#define BOTH_WAYS                                                                                                      \
	{ .name = "both-ways", .type = OPT_FLAG, .offset = FIELD(both_ways),                                           \
	  .help = "As much cross traffic from the far host, too" }
#define PAYLOAD(value) \
	OPTION_PAYLOAD(FIELD(payload), OPT_RANGE, .argument = "A..B/STEP", .fallback = value, .min = 8, .max = 1472, \
		       .help = "Bytes of UDP payload", .heading = "What is sent")
#define COUNT(value, words) OPTION_COUNT(FIELD(count), .fallback = value, .min = 2, .max = 100000, .help = words)
#define INTERVAL(value, between) \
	OPTION_INTERVAL(FIELD(interval_ns), between, .fallback = value, .min = 1000, .max = 10 * 1000000000ULL)
#define REST                                                                                                           \
	{ .name = "seed", .type = OPT_UINT, .offset = FIELD(seed), .argument = "N", .fallback = "1",                   \
	  .help = "Of the cross traffic" },                                                                            \
	{ .name = "engines", .letter = 'e', .type = OPT_STRING, .offset = FIELD(engines), .argument = "E,E...",        \
	  .heading = "Senders",                                                                                        \
	  .help = "Only these engines; by default all that work here" },                                               \
	{ .name = "no-baselines", .type = OPT_FLAG, .offset = FIELD(no_baselines),                                     \
	  .help = "Leave the frozen baseline programs out" },                                                          \
	{ .name = "no-bpf", .type = OPT_FLAG, .offset = FIELD(no_bpf),                                                 \
	  .help = "Judge by the kernel's receive stamps, not by XDP" },                                                \
	BENCH_PATH_OPTIONS(struct bench_options), BENCH_TABLE_OPTIONS(struct bench_options),                           \
	{ 0 }

static const struct opt rate_opts[] = {
	PAYLOAD("28..1428/700"),
	CROSS,
	OPTION_FOR(FIELD(for_ns), .fallback = "200ms", .min = 1000000, .max = 60 * 1000000000ULL,
		   .help = "How long a flood lasts"),
	OPTION_TRAIN(FIELD(train), .fallback = "100", .min = 2, .max = 4096),
	OPTION_THREADS(FIELD(threads), .max = 64, .help = "Processors that send a template together"),
	ROUNDS,
	REST,
};

/* clang-format off */
static const struct opt schedule_opts[] = {
	PAYLOAD("100"), CROSS, BOTH_WAYS, INTERVAL("10ms", "probes"), COUNT("100", "Probes in a round"), ROUNDS,
	{ .name = "methods", .letter = 'm', .type = OPT_STRING, .offset = FIELD(methods), .argument = "M,M...",
	  .help = "Methods of OMware: oir (engines are given all probes at the start), ofr (each a fixed period "
		  "before its time), osm (each when a sleep ends), rsm (a raw socket when a sleep ends)" },
	{ .name = "predispatch", .type = OPT_STRING, .offset = FIELD(predispatch), .argument = "D,D...",
	  .fallback = "500us",
	  .help = "The periods of ofr" },
	{ .name = "fq", .type = OPT_FLAG, .offset = FIELD(fq),
	  .help = "Give the sending one of the bench's own hosts the fq qdisc: engine txtime and a plain SO_TXTIME "
		  "socket take part" },
	REST,
};
/* clang-format on */

static const struct opt pairs_opts[] = {
	PAYLOAD("12"), CROSS, BOTH_WAYS, INTERVAL("1ms", "pairs"), COUNT("500", "Pairs in a round"), ROUNDS, REST,
};

/* clang-format off */
static const struct opt stamps_opts[] = {
	PAYLOAD("28"), CROSS,
	{ .name = "gaps", .type = OPT_STRING, .offset = FIELD(gaps), .argument = "D,D...",
	  .fallback = "0us,10us,100us,1ms,10ms,100ms",
	  .help = "Gaps between the two probes of a pair; 0us: back to back" },
	COUNT("200", "Pairs in a round, fewer where the gap is long: a round takes 2 s at most"), ROUNDS, REST,
};
/* clang-format on */

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

#define COMMON                                                                                                         \
	"All engines that work here and frozen baseline programs send in turns over the same path: in each round "     \
	"each once, in an order that rotates. Unless --device says otherwise the path is a veth pair between "    \
	"two network namespaces of the bench's own, which are gone with the process, however it ends. The far end "    \
	"decides: an XDP program there stamps and counts each probe by its number, the same for all; where there is "  \
	"no XDP the kernel's receive stamps do it, and the result says so.\n\n"                                        \
	"Rounds during which the machine was away for more than a millisecond, or lost steal time, are counted as "    \
	"stalled and do not enter the figures unless there are no others."

struct again_options {
	const char *compare, *csv;
};

#define AGAIN(name) offsetof(struct again_options, name)

/* clang-format off */
static const struct opt again_opts[] = {
	{ .name = "compare", .type = OPT_STRING, .offset = AGAIN(compare), .argument = "OLD.json",
	  .help = "Run the bench of this file once more, with its settings, and say what has changed" },
	{ .name = "csv", .type = OPT_STRING, .offset = AGAIN(csv), .argument = "FILE",
	  .help = "Write the rows to a CSV file" },
	{ 0 },
};
/* clang-format on */

/* The Python part has the settings of older runs. */
static int run_again(struct cli *cli, const void *options)
{
	const struct again_options *a = options;

	cli_complain(cli, a->compare ? "--compare: the Python part of ktrxer does this, and is not installed"
				     : "no kind of bench: give `ktrxer bench rate`, `schedule`, `pairs` or `stamps`, "
				       "or --compare OLD.json");
	return EXIT_USAGE;
}

const struct command cmd_bench = {
	.name = "bench",
	.summary = "Engines and frozen baselines against each other: rate, schedule, pairs, stamps",
	.description = OPT_PROSE("`ktrxer bench rate`, `bench schedule`, `bench pairs` and `bench stamps` measure; see "
				 "their own pages. Without one of these words, "
				 "--compare OLD.json runs the bench of that file once more, with the same settings, "
				 "and shows what has changed."),
	.examples = "ktrxer bench schedule --json >old.json\tMeasure.\n"
		    "ktrxer bench --compare old.json\tThe same again, and the differences.\n",
	.options = again_opts,
	.options_size = sizeof(struct again_options),
	.run = run_again,
	.measures = true,
	.lines = true,
};

const struct command cmd_bench_rate = {
	.name = "bench rate",
	.summary = "Engines against each other: packets a second, in trains and floods",
	.description = OPT_PROSE(COMMON),
	.examples = "ktrxer bench rate --payload 28..1428/50 --cross 0,12k,24k,36k\tAll payloads, with cross "
		    "traffic and without.\n"
		    "ktrxer bench rate --payload 28 --engines raw,packet --json >old.json\tTwo engines, for later "
		    "comparison.\n",
	.options = rate_opts,
	.options_size = sizeof(struct bench_options),
	.run = run_rate,
	.measures = true,
	.lines = true,
};

const struct command cmd_bench_schedule = {
	.name = "bench schedule",
	.summary = "Engines against each other: how true intervals are at the far end",
	.description = OPT_PROSE(COMMON),
	.examples = "ktrxer bench schedule --cross 0,36k\tWithout and with cross traffic.\n"
		    "ktrxer bench schedule -m oir,ofr,osm,rsm -i 1ms --payload 12..1472/730\tWhich part "
		    "waits, and since when.\n"
		    "ktrxer bench schedule -m ofr --predispatch 0,100us,500us,1ms -i 1ms\tHow long before.\n"
		    "ktrxer bench schedule --compare old.json\tHas it changed?\n",
	.options = schedule_opts,
	.options_size = sizeof(struct bench_options),
	.run = run_schedule,
	.measures = true,
	.lines = true,
};

const struct command cmd_bench_pairs = {
	.name = "bench pairs",
	.summary = "Engines against each other: how close two probes leave back to back",
	.description = OPT_PROSE(COMMON),
	.examples = "ktrxer bench pairs\t40-byte packets, pairs 1 ms apart.\n",
	.options = pairs_opts,
	.options_size = sizeof(struct bench_options),
	.run = run_pairs,
	.measures = true,
	.lines = true,
};

const struct command cmd_bench_stamps = {
	.name = "bench stamps",
	.summary = "Engines against each other: how true their reported send times are",
	.description = OPT_PROSE(COMMON),
	.examples = "ktrxer bench stamps\tGaps of 0 to 100 ms.\n",
	.options = stamps_opts,
	.options_size = sizeof(struct bench_options),
	.run = run_stamps,
	.measures = true,
	.lines = true,
};
