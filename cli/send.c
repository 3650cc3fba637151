/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer send`: probes at their times, and the account of them. */
#include "send.h"

#include "network_error.h"
#include "units.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#define FIELD(name) offsetof(struct send_options, name)

static const char *const late_names[] = { "catch-up", "skip", "shift", NULL };
static const char *const engine_names[] = { "auto", "packet", "raw", "udp", NULL };

static const struct opt send_opts[] = {
	{ .name = "to", .type = OPT_ENDPOINT, .offset = FIELD(to), .argument = "IP[:PORT]", .heading = "What is sent",
	  .help = "Destination; the port is 9 (discard) unless given" },
	{ .name = "from", .type = OPT_ADDRESS, .offset = FIELD(from), .argument = "IP",
	  .help = "Source address; by default the route's. Any address with engines that write whole frames or raw packets" },
	{ .name = "from-port", .type = OPT_UINT, .offset = FIELD(from_port), .argument = "N", .min = 1, .max = 65535,
	  .help = "Source port; by default one from the ephemeral range" },
	{ .name = "payload", .type = OPT_SIZE, .offset = FIELD(payload), .argument = "N", .fallback = "28", .min = 0, .max = 65507,
	  .help = "Bytes of UDP payload; the first 8 carry the probe's number, big-endian, the rest are zero" },
	{ .name = "tos", .type = OPT_UINT, .offset = FIELD(tos), .argument = "N", .fallback = "0", .max = 255,
	  .help = "DSCP (times 4) and ECN" },
	{ .name = "ttl", .type = OPT_UINT, .offset = FIELD(ttl), .argument = "N", .fallback = "64", .min = 1, .max = 255, .help = "Time to live" },
	{ .name = "may-fragment", .type = OPT_FLAG, .offset = FIELD(may_fragment), .help = "Clear IPv4's don't-fragment bit" },

	{ .name = "pcap", .type = OPT_STRING, .offset = FIELD(pcap), .argument = "FILE", .heading = "Replay",
	  .help = "Send the frames of a pcap or pcapng file (- for standard input) with the file's own timing; needs --device" },
	{ .name = "speed", .type = OPT_RATE, .offset = FIELD(speed), .argument = "X",
	  .help = "So many times as fast as the file: 2, 0.5; --rate or --interval put another timing in the place of the file's" },
	{ .name = "max-gap", .type = OPT_DURATION, .offset = FIELD(max_gap_ns), .argument = "D", .max = 86400ULL * 366 * 1000000000,
	  .help = "Cut longer silences of the file to D; 0 keeps them" },
	{ .name = "repeat", .type = OPT_UINT, .offset = FIELD(repeat), .argument = "N", .fallback = "1", .min = 1, .max = 1000000000,
	  .help = "Play the file so many times" },

	{ .name = "count", .letter = 'c', .type = OPT_UINT, .offset = FIELD(count), .argument = "N", .min = 1, .max = UINT64_MAX - 1,
	  .heading = "When", .help = "Stop after so many probes" },
	{ .name = "for", .type = OPT_DURATION, .offset = FIELD(for_ns), .argument = "D", .min = 1, .max = 365ULL * 86400 * 1000000000,
	  .help = "Stop after so long" },
	{ .name = "interval", .letter = 'i', .type = OPT_DURATION, .offset = FIELD(interval_ns), .argument = "D", .min = 1,
	  .max = 86400ULL * 1000000000, .help = "Time between probes, or between the beginnings of trains" },
	{ .name = "rate", .letter = 'r', .type = OPT_RATE, .offset = FIELD(rate), .argument = "R",
	  .help = "Probes a second, kept as an exact fraction: no drift, however long" },
	{ .name = "schedule", .type = OPT_STRING, .offset = FIELD(schedule_file), .argument = "FILE",
	  .help = "Send at the offsets in FILE, one a line: nanoseconds, or with a unit (10ms)" },
	{ .name = "poisson", .type = OPT_FLAG, .offset = FIELD(poisson),
	  .help = "Exponential intervals around the mean, by the generator of RFC 4656" },
	{ .name = "seed", .type = OPT_STRING, .offset = FIELD(seed), .argument = "HEX", .help = "Seed (SID) of --poisson: up to 16 bytes" },
	{ .name = "train", .type = OPT_UINT, .offset = FIELD(train), .argument = "N", .fallback = "1", .min = 1, .max = 1 << 20,
	  .help = "Probes in a train" },
	{ .name = "gap", .type = OPT_DURATION, .offset = FIELD(gap_ns), .argument = "D", .max = 3600ULL * 1000000000,
	  .help = "Time between the probes of a train; 0: back to back" },
	{ .name = "late", .type = OPT_CHOICE, .offset = FIELD(late), .argument = "WHAT", .fallback = "catch-up", .choices = late_names,
	  .help = "A probe whose time has passed is sent at once (catch-up), dropped (skip), or moves all that follow (shift); it is counted in any case" },
	{ .name = "late-after", .type = OPT_DURATION, .offset = FIELD(late_after_ns), .argument = "D", .fallback = "100us", .min = 1,
	  .max = 3600ULL * 1000000000, .help = "How late counts as late" },
	{ .name = "retry", .type = OPT_DURATION, .offset = FIELD(retry_ns), .argument = "D", .fallback = "10ms", .min = 1,
	  .max = 60ULL * 1000000000, .help = "How long a probe that the device refuses is tried again" },

	{ .name = "device", .letter = 'd', .type = OPT_STRING, .offset = FIELD(device), .argument = "DEV", .heading = "How",
	  .help = "Network device; by default the route's" },
	{ .name = "engine", .letter = 'e', .type = OPT_STRING, .offset = FIELD(engine), .argument = "E", .fallback = "auto",
	  .choices = engine_names, .help = "Engine; auto takes the best that works here and says why (see `ktrxer doctor`)" },
	{ .name = "next-hop-mac", .type = OPT_MAC, .offset = FIELD(next_hop_mac), .argument = "MAC",
	  .help = "Link address to send to, instead of asking by ARP or ND" },
	{ .name = "cpu", .type = OPT_INT, .offset = FIELD(cpu), .argument = "N", .fallback = "-1", .min = (uint64_t)-1, .max = 4095,
	  .help = "Processor of the waiting thread; -1: any" },
	{ .name = "sleep", .type = OPT_FLAG, .offset = FIELD(sleep),
	  .help = "Sleep to the send time instead of spinning before it: little CPU, tens of microseconds later" },
	{ .name = "no-realtime", .type = OPT_FLAG, .offset = FIELD(no_realtime), .help = "Do not ask for real-time priority" },
	{ .name = "no-stamps", .type = OPT_FLAG, .offset = FIELD(no_stamps), .help = "Do not ask for transmit stamps; every proof is `queued`" },
	{ .name = "flood", .type = OPT_FLAG, .offset = FIELD(flood),
	  .help = "Allow more than 10,000 probes a second, or no rate at all, to an address that is not private, link-local or loopback" },
	{ .name = "reports", .type = OPT_STRING, .offset = FIELD(reports), .argument = "FILE.csv", .heading = "Results",
	  .help = "Write one line for each probe" },
	{ 0 },
};

/* Commit no further ahead than this: what is stopped early should not have promised hours of probes. */
#define AHEAD_NS (500 * KTRXER_NS_PER_MS)

static void read_reports(struct send_run *run)
{
	struct ktx_report reports[64];

	for (int n; (n = ktx_reports(run->tx, reports, 64)) > 0;)
		for (int i = 0; i < n; i++)
			send_report(run, &reports[i]);
	network_errors_say(run->cli, run->tx, false, &run->network_errors);
}

/* Until the transmitter, or a wish to stop, or `until_ns`. */
static void rest(struct send_run *run, uint64_t until_ns)
{
	struct pollfd fds[2] = { { .fd = run->cli->stop_fd, .events = POLLIN }, { .fd = ktx_fd(run->tx), .events = POLLIN } };
	uint64_t now = ktrxer_now_ns(), span;
	struct timespec t;

	if (until_ns <= now)
		return;
	span = until_ns - now > (uint64_t)KTRXER_NS_PER_S ? (uint64_t)KTRXER_NS_PER_S : until_ns - now;
	t = (struct timespec){ .tv_sec = (time_t)(span / KTRXER_NS_PER_S), .tv_nsec = (long)(span % KTRXER_NS_PER_S) };
	ppoll(fds, 2, &t, NULL);
}

static void fail(struct send_run *run, const struct ktrxer_error *err)
{
	run->failure = err->code;
	memcpy(run->failure_text, err->text, sizeof run->failure_text);
}

/* What goes out next, and when. */
struct item {
	struct ktrxer_deadline due;
	bool timed;
};

/* 0, or -ENODATA when there is no more, or what ended it (and was noted). */
static int item_next(struct send_run *run, struct item *item)
{
	struct ktrxer_error err = { 0 };
	uint64_t offset;
	int rc;

	*item = (struct item){ .timed = run->schedule != NULL };
	if (run->o->pcap) {
		rc = send_replay_next(run, &offset, &err);
		if (rc < 0 && rc != -ENODATA && !cli_stopped(run->cli)) /* a pipe that we stopped listening to is no damaged file */
			fail(run, &err);
		if (rc < 0)
			return rc;
		if (!run->schedule) {
			item->timed = true;
			item->due.at_ns = offset > UINT64_MAX - run->start_ns ? UINT64_MAX - 1 : run->start_ns + offset;
		}
	}
	return run->schedule ? ktrxer_schedule_next(run->schedule, &item->due) : 0;
}

/* 0: committed. -EAGAIN: no room. Else: what ended it. */
static int commit_next(struct send_run *run, const struct item *item)
{
	struct ktx_probe probe = { .id = run->next, .length = run->probe.length };
	struct ktrxer_error err;
	struct ktx_slot slot;
	int rc = ktx_reserve(run->tx, &slot);

	if (rc < 0)
		return rc;
	if (item->timed) {
		probe.at_ns = item->due.at_ns;
		probe.flags = item->due.train_goes_on && run->next + 1 < run->wanted ? KTX_TRAIN_GOES_ON : 0;
	}
	if (run->o->pcap) {
		probe.length = run->replay.packet.length;
		memcpy(slot.frame, run->replay.packet.data, probe.length);
	} else {
		template_fill(&run->probe, slot.frame, run->next);
	}
	rc = ktx_commit(run->tx, &probe, &err);
	if (rc < 0) {
		fail(run, &err);
		return rc;
	}
	run->next++;
	return 0;
}

static void send_loop(struct send_run *run)
{
	struct item item;
	bool have = false;

	while (run->next < run->wanted && !cli_stopped(run->cli)) {
		int rc;

		if (!have && item_next(run, &item) < 0)
			break;
		have = true;
		if (item.timed ? item.due.at_ns >= run->end_ns : ktrxer_now_ns() >= run->end_ns)
			break;
		if (item.timed && item.due.at_ns > ktrxer_now_ns() + AHEAD_NS) {
			read_reports(run);
			rest(run, item.due.at_ns - AHEAD_NS / 2);
			if (item.due.at_ns > ktrxer_now_ns() + AHEAD_NS)
				continue;
		}
		rc = commit_next(run, &item);
		if (rc == -EAGAIN) {
			read_reports(run);
			rest(run, KTRXER_NEVER);
			continue;
		}
		if (rc < 0)
			break;
		have = false;
	}
}

/* Waits for what was committed, with an open ear for a wish to stop and for a device that went away. */
static void send_drain(struct send_run *run)
{
	while (!cli_stopped(run->cli)) {
		struct ktx_accounts a;

		read_reports(run);
		if (ktx_drain(run->tx, ktrxer_now_ns() + 50 * KTRXER_NS_PER_MS) == 0)
			break;
		ktx_accounts(run->tx, &a);
		if (!a.pending)
			break;
	}
	ktx_cancel(run->tx);
	/* What was handed over waits for its stamp 100 ms at most. */
	ktx_drain(run->tx, ktrxer_now_ns() + 500 * KTRXER_NS_PER_MS);
	read_reports(run);
	if (run->wanted != UINT64_MAX && !run->o->pcap && (run->failure || cli_stopped(run->cli)))
		run->never_committed = run->wanted - run->next;
}

static void say_replay(struct send_run *run)
{
	const struct replay_scan *scan = &run->replay.scan;
	char span[KTRXER_UNITS_TEXT];

	if (!run->replay.scanned)
		out_text(run->cli, "replay of %s by %s on %s: %s", run->o->pcap, run->info.engine, run->path.device.name, run->reason);
	else
		out_text(run->cli, "replay of %s by %s on %s: %" PRIu64 " packets, %s%s", run->o->pcap, run->info.engine,
			 run->path.device.name, scan->packets, ktrxer_format_ns(span, (int64_t)send_replay_scale(&run->replay, scan->span_ns)),
			 run->o->repeat > 1 ? " a round" : "");
	if (scan->longest_gap_ns > 10 * (uint64_t)KTRXER_NS_PER_S)
		out_text(run->cli, "note: the longest silence is %s; --max-gap D cuts it",
			 ktrxer_format_ns(span, (int64_t)send_replay_scale(&run->replay, scan->longest_gap_ns)));
	if (scan->backwards)
		out_text(run->cli, "note: %" PRIu64 " packets have times before their predecessor's: they leave right after it", scan->backwards);
}

static void say_what(struct send_run *run)
{
	char to[KTRXER_ADDR_TEXT], from[KTRXER_ADDR_TEXT];

	if (run->o->pcap) {
		say_replay(run);
		return;
	}
	out_text(run->cli, "%u bytes on the link, %s to %s by %s on %s: %s", run->probe.length,
		 ktrxer_addr_format(&run->path.source, from), ktrxer_addr_format(&run->path.to, to), run->info.engine,
		 run->path.device.name, run->reason);
}

static int send_run_all(struct send_run *run)
{
	struct ktrxer_error err = { 0 };
	int rc = send_plan(run, &err);

	if (rc < 0) {
		cli_complain(run->cli, "%s", err.text);
		return rc == -EINVAL ? EXIT_USAGE : EXIT_BAD;
	}
	say_what(run);
	if (cli_wait_start(run->cli, &run->start_ns) < 0) /* stopped while it waited: there are accounts all the same */
		return EXIT_BAD;
	/* The waiter wants its lead before the first one. */
	if (!run->cli->common.start_at_real_ns)
		run->start_ns += 5 * KTRXER_NS_PER_MS;
	if (!run->o->interval_ns && !run->o->rate.given && !run->o->pcap)
		host_watch_expect_busy(run->cli);
	if (send_schedule(run, &err) < 0) {
		cli_complain(run->cli, "%s", err.text);
		return EXIT_BAD;
	}
	send_loop(run);
	send_drain(run);
	return send_finish(run);
}

static int run_send(struct cli *cli, const void *options)
{
	struct send_run run = { .cli = cli, .o = options };
	int status = send_run_all(&run);

	send_release(&run);
	return status;
}

const struct command cmd_send = {
	.name = "send",
	.summary = "Send UDP probes at exact times and account for each of them",
	.description =
		"Sends UDP probes on a schedule, at a rate, from a list, or as fast as the device takes them, and says of each whether it was "
		"sent, by whose word (the NIC's stamp, the driver's, or the kernel's mere acceptance), how far it missed its time, and how "
		"often it was tried.\n\n"
		"Every probe ends in exactly one state: sent, failed, skipped or cancelled. Their sum is what was requested.\n\n"
		"Lateness is signed: the hand-over begins early by its own median cost, so that half of the probes leave a little before "
		"their time.",
	.examples =
		"ktrxer send --to 192.0.2.1:7 --interval 10ms --count 1000\tA thousand probes, 10 ms apart.\n"
		"ktrxer send --to 192.0.2.1 --rate 36k --for 10s\tExactly 36,000 a second.\n"
		"ktrxer send --pcap trace.pcapng --device eth0 --speed 2\tA capture once more, twice as fast.\n"
		"ktrxer send --to 192.0.2.1 --train 2 --interval 1ms --count 2000 --reports pairs.csv\tPairs, back to back, each probe in a file.\n",
	.options = send_opts,
	.options_size = sizeof(struct send_options),
	.run = run_send,
	.measures = true,
};
