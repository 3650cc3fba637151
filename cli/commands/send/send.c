/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer send`: probes at their times, and the account of them. */
#include "send.h"

#include "send_engines.h"
#include "units.h"

#include <inttypes.h>

#define FIELD(name) offsetof(struct send_options, name)

static const char *const late_names[] = { "catch-up", "skip", "shift", NULL };
static const char *const engine_names[] = { "auto", ENGINE_NAMES, NULL };

/* clang-format off */
static const struct opt send_opts[] = {
	OPTION_PORT(FIELD(port), .fallback = "9", .heading = "What is sent", .help = "Destination port"),
	OPTIONS_FAMILY(FIELD(v4), FIELD(v6)),
	OPTION_FROM(FIELD(from), ". Any address with engines that write whole frames or raw packets"),
	{ .name = "from-port", .type = OPT_UINT, .offset = FIELD(from_port), .argument = "N", .min = 1, .max = 65535,
	  .help = "Source port; by default one from the ephemeral range" },
	OPTION_PAYLOAD(FIELD(payload), OPT_SIZE, .argument = "BYTES", .fallback = "28", .max = 65507,
		       .help = "Bytes of UDP payload; the first 8 carry the probe's number, big-endian, the rest are "
			"zero"),
	OPTION_DSCP(FIELD(dscp)),
	OPTION_ECN(FIELD(ecn)),
	OPTION_TTL(FIELD(ttl)),
	{ .name = "may-fragment", .type = OPT_FLAG, .offset = FIELD(may_fragment),
	  .help = "Clear IPv4's don't-fragment bit" },

	{ .name = "vary", .type = OPT_LIST, .offset = FIELD(vary), .argument = "FIELD=HOW", .heading = "What varies",
	  .help = "A field that differs from probe to probe: FIELD=counter:FROM-TO[/STEP], "
		  "random:FROM-TO[/STEP][@SEED] (each value once before any comes again) or table:V,V... (or "
		  "table:@FILE), and *N behind it to change it after N probes; FIELD is src, dst, src-port, dst-port, "
		  "ip-id, flow-label, tos, ttl, payload+OFFSET.WIDTH or frame+OFFSET.WIDTH" },
	{ .name = "combine", .type = OPT_FLAG, .offset = FIELD(combine),
	  .help = "Send every combination of the values, the first field changing fastest" },

	{ .name = "pcap", .type = OPT_STRING, .offset = FIELD(pcap), .argument = "FILE", .heading = "Replay",
	  .help = "Send the frames of a pcap or pcapng file (- for standard input) with the file's own timing; needs "
		  "--device" },
	{ .name = "speed", .type = OPT_RATE, .offset = FIELD(speed), .argument = "X",
	  .help = "So many times as fast as the file: 2, 0.5; --rate or --interval put another timing in the place of "
		  "the file's" },
	{ .name = "max-gap", .type = OPT_DURATION, .offset = FIELD(max_gap_ns), .argument = "D",
	  .max = 86400ULL * 366 * 1000000000,
	  .help = "Cut longer silences of the file to D; 0 keeps them" },
	OPTION_REPEAT(FIELD(repeat), .fallback = "1", .min = 1, .max = 1000000000,
		.help = "Play the file so many times"),

	OPTION_COUNT(FIELD(count), .min = 1, .max = UINT64_MAX - 1, .heading = "When",
		.help = "Stop after so many probes"),
	OPTION_FOR_PROBES(FIELD(for_ns)),
	OPTION_INTERVAL(FIELD(interval_ns), "probes, or between the beginnings of trains", .min = 1,
		.max = OPTION_DAYS(1)),
	OPTION_RATE(FIELD(rate), .help = "Probes a second, kept as an exact fraction: no drift, however long"),
	{ .name = "schedule", .type = OPT_STRING, .offset = FIELD(schedule_file), .argument = "FILE",
	  .help = "Send at the offsets in FILE, one a line: nanoseconds, or with a unit (10ms)" },
	OPTION_MODEL_OF_PROBES(FIELD(model), "constant"),
	{ .name = "seed", .type = OPT_STRING, .offset = FIELD(seed), .argument = "HEX",
	  .help = "Seed (SID) of --model poisson: up to 16 bytes" },
	OPTION_TRAIN(FIELD(train), .fallback = "1", .min = 1, .max = 1 << 20),
	{ .name = "gap", .type = OPT_DURATION, .offset = FIELD(gap_ns), .argument = "D", .max = 3600ULL * 1000000000,
	  .help = "Time between the probes of a train; 0: back to back" },
	{ .name = "late", .type = OPT_CHOICE, .offset = FIELD(late), .argument = "WHAT", .fallback = "catch-up",
	  .choices = late_names,
	  .help = "A probe whose time has passed is sent at once (catch-up), not sent (skip), or moves all that follow "
		  "(shift)" },
	{ .name = "late-after", .type = OPT_DURATION, .offset = FIELD(late_after_ns), .argument = "D", .min = 1,
	  .max = 3600ULL * 1000000000,
	  .help = "A probe is late from this lateness on; by default a tenth of the interval, and at least 100us" },
	{ .name = "retry", .type = OPT_DURATION, .offset = FIELD(retry_ns), .argument = "D", .fallback = "10ms",
	  .min = 1,
	  .max = 60ULL * 1000000000, .help = "How long a probe that the device rejects is retried" },

	OPTION_DEVICE_OF_ROUTE(FIELD(device), "", "How"),
	OPTION_ENGINE(FIELD(engine), .fallback = "auto", .choices = engine_names,
		      .help = "Engine; auto takes the best that works here and says why (see `ktrxer doctor`)"),
	{ .name = "next-hop-mac", .type = OPT_MAC, .offset = FIELD(next_hop_mac), .argument = "MAC",
	  .help = "Link address to send to, instead of asking by ARP or ND" },
	OPTION_CPU(FIELD(cpu), "waiting thread"),
	OPTION_THREADS(FIELD(threads), .max = 256,
		       .help = "So many processors send; together they keep one schedule, or share the numbers "
			"without overlap or gap"),
	OPTION_PRECISE(FIELD(precise), OPT_SWITCH, "", ". All engines but udp do so; with --no-precise the process "
			"sleeps, and probes are tens of microseconds late", NULL),
	{ .name = "no-realtime", .type = OPT_FLAG, .offset = FIELD(no_realtime),
	  .help = "Use no real-time priority" },
	{ .name = "no-stamps", .type = OPT_FLAG, .offset = FIELD(no_stamps),
		.help = "Request no transmit stamps; the source of each departure is `queued`" },
	OPTION_FLOOD(FIELD(flood), "probes a second, or no rate at all,"),
	{ .name = "reports", .type = OPT_STRING, .offset = FIELD(reports), .argument = "FILE.csv", .heading = "Results",
	  .help = "Write one line for each probe" },
	{ 0 },
};
/* clang-format on */

static void say_replay(struct send_run *run)
{
	const struct replay_scan *scan = &run->replay.scan;
	char span[KTRXER_UNITS_TEXT];

	if (!run->replay.scanned)
		out_text(run->cli, "replay of %s by %s on %s: %s", run->o->pcap, run->info.engine,
			 run->path.device.name, run->reason);
	else
		out_text(run->cli, "replay of %s by %s on %s: %" PRIu64 " packets, %s%s", run->o->pcap,
			 run->info.engine, run->path.device.name, scan->packets,
			 ktrxer_format_ns(span, (int64_t)send_replay_scale(&run->replay, scan->span_ns)),
			 run->o->repeat > 1 ? " a round" : "");
	if (scan->longest_gap_ns > 10 * (uint64_t)KTRXER_NS_PER_S)
		out_text(run->cli, "note: the longest silence is %s; --max-gap D cuts it",
			 ktrxer_format_ns(span, (int64_t)send_replay_scale(&run->replay, scan->longest_gap_ns)));
	if (scan->backwards)
		out_text(run->cli,
			 "note: %" PRIu64 " packets have times before their predecessor's: they leave right after it",
			 scan->backwards);
}

static void say_what(struct send_run *run)
{
	char to[KTRXER_ADDR_TEXT], from[KTRXER_ADDR_TEXT];

	if (run->timed && run->precise && !run->o->precise)
		out_text(run->cli, "note: the %s engine spins before each send time; --no-precise makes it sleep",
			 run->info.engine);
	if (run->o->pcap) {
		say_replay(run);
		return;
	}
	out_text(run->cli, "%u bytes on the link, %s to %s by %s on %s: %s", run->workers[0].probe.length,
		 ktrxer_addr_format(&run->path.source, from), ktrxer_addr_format(&run->path.to, to), run->info.engine,
		 run->path.device.name, run->reason);
	if (vary_has(&run->vary, KTX_FIELD_DESTINATION) && run->info.link == KTRXER_LINK_ETHERNET)
		out_text(run->cli, "note: all frames go to the link address of %s, whatever their destination",
			 ktrxer_addr_format(&run->path.next_hop, to));
}

/*
 * The waiter needs the margin before the first probe; a kernel side that polls must have begun
 * (docs/explanation/live.md).
 */
static uint64_t lead_of(const struct send_run *run)
{
	return (run->timed && run->info.features & KTX_CAN_POLL ? 150 : 5) * KTRXER_NS_PER_MS;
}

static int send_run_all(struct send_run *run)
{
	struct ktrxer_error err = { 0 };
	int rc = send_plan(run, &err);

	if (rc < 0)
		return cli_fail(run->cli, &err);
	say_what(run);
	if (cli_wait_start(run->cli, &run->start_ns) < 0) /* stopped while it waited: there are accounts all the same */
		return EXIT_NO_RESULT;
	if (!run->cli->common.start_at_real_ns)
		run->start_ns += lead_of(run);
	if (send_schedule(run, &err) < 0) {
		cli_fail(run->cli, &err);
		return EXIT_NO_RESULT;
	}
	send_work(run);
	return send_finish(run);
}

static int run_send(struct cli *cli, const void *options)
{
	struct send_run run = { .cli = cli, .o = options, .lock = PTHREAD_MUTEX_INITIALIZER };
	int status = send_run_all(&run);

	send_release(&run);
	return status;
}

static const struct opt_positional send_positionals[] = {
	{ .name = "HOST",
	  .offset = FIELD(host),
	  .optional = true,
	  .help = "Address or name to send to; required without --pcap" },
	{ 0 },
};

const struct command cmd_send = {
	.name = "send",
	.summary = "Send UDP probes at exact times and account for each of them",
	.description = OPT_PROSE("Sends UDP probes on a schedule, at a rate, from a list, or as fast as the device "
				 "takes them, and says of each whether it was "
				 "sent, which stamp shows it (of the NIC, of the driver, or none: the kernel accepted "
				 "it), its lateness, and how "
				 "often it was tried.\n\n"
				 "Every probe ends in exactly one state: sent, failed, skipped or cancelled. Their sum "
				 "is what was requested.\n\n"
				 "Lateness is signed: the submission begins early by its own median cost, so that half "
				 "of the probes leave a little before "
				 "their time."),
	.examples = OPT_PROSE(
		"ktrxer send 192.0.2.1 --port 7 --interval 10ms --count 1000\tA thousand probes, 10 ms apart.\n"
		"ktrxer send 192.0.2.1 --rate 36k --for 10s\tExactly 36,000 a second.\n"
		"ktrxer send 192.0.2.1 --flood --count 100M --vary src-port=random:1024-65535\tAs fast as it goes, "
		"from all those ports.\n"
		"ktrxer send --pcap trace.pcapng --device eth0 --speed 2\tA capture once more, twice as fast.\n"
		"ktrxer send 192.0.2.1 --train 2 --interval 1ms --count 2000 --reports pairs.csv\tPairs, back to back, "
		"each probe in a file.\n"),
	.options = send_opts,
	.positionals = send_positionals,
	.options_size = sizeof(struct send_options),
	.run = run_send,
	.measures = true,
};
