/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer stamp`: two-way and one-way delay, loss by direction, against any STAMP reflector. */
#include "stamp.h"

#include "network_error.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define FIELD(name) offsetof(struct stamp_options, name)

static const char *const engine_names[] = { "udp", "raw", "packet", "auto", NULL };

static const struct opt stamp_opts[] = {
	{ .name = "count", .letter = 'c', .type = OPT_UINT, .offset = FIELD(count), .argument = "N", .min = 1, .max = UINT32_MAX,
	  .heading = "Probes", .help = "Stop after so many probes; without it, on Ctrl-C" },
	{ .name = "for", .type = OPT_DURATION, .offset = FIELD(for_ns), .argument = "D", .min = 1, .max = 365ULL * 86400 * 1000000000,
	  .help = "Stop after so long" },
	{ .name = "interval", .letter = 'i', .type = OPT_DURATION, .offset = FIELD(interval_ns), .argument = "D", .fallback = "100ms",
	  .min = 1000, .max = 60ULL * 1000000000, .help = "Time between probes" },
	{ .name = "poisson", .type = OPT_FLAG, .offset = FIELD(poisson), .help = "Exponential intervals around it (RFC 2330)" },
	{ .name = "payload", .letter = 's', .type = OPT_SIZE, .offset = FIELD(payload), .argument = "N", .max = 65507,
	  .help = "Bytes of UDP payload, filled up with padding; by default the smallest" },
	{ .name = "timeout", .letter = 'W', .type = OPT_DURATION, .offset = FIELD(timeout_ns), .argument = "D", .fallback = "1s", .min = 1000,
	  .max = 600ULL * 1000000000, .help = "Without an answer for so long a probe is lost" },
	{ .name = "port", .type = OPT_UINT, .offset = FIELD(port), .argument = "N", .fallback = "8620", .min = 1, .max = 65535,
	  .help = "Port of the reflector: `ktrxer serve` has 8620, STAMP's own is 862" },
	{ .name = "tos", .type = OPT_UINT, .offset = FIELD(tos), .argument = "N", .fallback = "0", .max = 255, .help = "DSCP (times 4) and ECN" },
	{ .name = "ttl", .type = OPT_UINT, .offset = FIELD(ttl), .argument = "N", .fallback = "64", .min = 1, .max = 255, .help = "Time to live" },

	{ .name = "auth-key-file", .type = OPT_STRING, .offset = FIELD(auth_key_file), .argument = "FILE", .heading = "Protocol",
	  .help = "Authenticated mode (HMAC-SHA-256) with the key in this file, of mode 0600" },
	{ .name = "tlv-key-file", .type = OPT_STRING, .offset = FIELD(tlv_key_file), .argument = "FILE",
	  .help = "Open mode, with this key for the HMAC of extensions" },
	{ .name = "ssid", .type = OPT_UINT, .offset = FIELD(ssid), .argument = "N", .min = 1, .max = 65535,
	  .help = "Session identifier; by default a random one" },
	{ .name = "tlv", .type = OPT_LIST, .offset = FIELD(tlvs), .argument = "NAME",
	  .help = "A further extension: location, time-info, cos or direct; may be given several times" },
	{ .name = "follow-up", .type = OPT_FLAG, .offset = FIELD(follow_up), .fallback = "yes",
	  .help = "Ask when each answer really left (follow-up telemetry)" },
	{ .name = "ptp", .type = OPT_FLAG, .offset = FIELD(ptp), .help = "Timestamps in PTP's truncated format instead of NTP's" },

	{ .name = "precise", .letter = 'p', .type = OPT_FLAG, .offset = FIELD(precise), .heading = "How",
	  .help = "Spin before each send time: microseconds late at most, for a share of a processor" },
	{ .name = "ipv4", .letter = '4', .type = OPT_FLAG, .offset = FIELD(v4), .help = "IPv4 only" },
	{ .name = "ipv6", .letter = '6', .type = OPT_FLAG, .offset = FIELD(v6), .help = "IPv6 only" },
	{ .name = "from", .type = OPT_ADDRESS, .offset = FIELD(from), .argument = "IP", .help = "Source address; by default the route's" },
	{ .name = "device", .letter = 'd', .type = OPT_STRING, .offset = FIELD(device), .argument = "DEV",
	  .help = "Network device; by default the route's" },
	{ .name = "engine", .letter = 'e', .type = OPT_STRING, .offset = FIELD(engine), .argument = "E", .fallback = "udp",
	  .choices = engine_names, .help = "Engine: udp (the host's sockets, no privilege), raw, packet, or auto" },
	{ .name = "cpu", .type = OPT_INT, .offset = FIELD(cpu), .argument = "N", .fallback = "-1", .min = (uint64_t)-1, .max = 4095,
	  .help = "Processor of the waiting thread of --precise; -1: any" },
	{ .name = "flood", .type = OPT_FLAG, .offset = FIELD(flood),
	  .help = "Allow more than 10,000 probes a second to an address that is not private, link-local or loopback" },
	{ 0 },
};

static const struct opt_positional stamp_positionals[] = {
	{ .name = "HOST", .offset = FIELD(host), .help = "Address or name of the reflector" },
	{ 0 },
};

/* Beyond the measured probes, to learn which way the last of them were lost. */
enum { CLOSING_MAX = 10 };
#define CLOSING_GAP_NS (20 * (uint64_t)KTRXER_NS_PER_MS)

static void fail(struct stamp_run *run, int rc, const char *text)
{
	if (run->failure)
		return;
	run->failure = rc;
	snprintf(run->failure_text, sizeof run->failure_text, "%s", text);
}

/* `at_ns` 0: at once. False: not now. */
static bool commit_one(struct stamp_run *run, uint64_t at_ns)
{
	struct ktx_probe probe = { .id = run->next, .length = run->frame.length, .at_ns = at_ns };
	struct ktrxer_error err;
	struct ktx_slot slot;

	if (ktx_reserve(run->tx, &slot) < 0)
		return false;
	if (stamp_session_commit(run->session, run->next, stamp_fill(run, slot.frame, run->next, at_ns ? at_ns : ktrxer_now_ns())) < 0)
		return false;
	if (ktx_commit(run->tx, &probe, &err) < 0) {
		const struct ktx_report refused = { .id = run->next, .status = KTX_CANCELLED };

		stamp_session_report(run->session, &refused);
		fail(run, err.code, err.text);
		return false;
	}
	run->next++;
	return true;
}

/* Commits what is due soon. Returns when the next one after that is to be committed; KTRXER_NEVER: that was all. */
static uint64_t commit_soon(struct stamp_run *run, struct ktrxer_deadline *due, bool *have)
{
	while (run->next < run->wanted) {
		if (!*have && ktrxer_schedule_next(run->schedule, due) < 0)
			break;
		*have = true;
		if (due->at_ns >= run->end_ns)
			break;
		if (due->at_ns > ktrxer_now_ns() + run->ahead_ns)
			return due->at_ns - run->ahead_ns / 2;
		if (!commit_one(run, due->at_ns)) {
			uint64_t next = stamp_session_next(run->session);

			return next == KTRXER_NEVER ? KTRXER_NEVER - 1 : next; /* reports make room, and wake us */
		}
		*have = false;
	}
	return KTRXER_NEVER;
}

static void take_reports(struct stamp_run *run)
{
	struct ktx_report reports[32];

	for (int n; (n = ktx_reports(run->tx, reports, 32)) > 0;)
		for (int i = 0; i < n; i++)
			stamp_session_report(run->session, &reports[i]);
}

static void take_answers(struct stamp_run *run)
{
	int rc = 0;

	for (int i = 0; i < 256; i++) {
		struct stamp_arrival arrival;
		struct inlet_arrival in;
		const uint8_t *data;
		uint32_t length;

		rc = inlet_next(&run->inlet, &data, &length, &in);
		if (rc == -EAGAIN)
			continue;
		if (rc <= 0)
			break;
		if (!ktrxer_addr_equal(&in.from, &run->path.to)) {
			stamp_say_event(run, STAMP_FOREIGN);
			continue;
		}
		arrival = (struct stamp_arrival){ .received_ns = in.received_ns, .bound_ns = in.bound_ns, .source = in.source, .ttl = in.ttl,
						  .tos = in.tos, .real_near_ns = (int64_t)in.received_ns + run->real_minus_mono };
		stamp_say_event(run, stamp_session_reply(run->session, data, length, &arrival));
	}
	if (rc < 0)
		fail(run, rc, rc == -ENETDOWN ? "the device went down" : "the device is gone");
}

static void take_samples(struct stamp_run *run, bool flush)
{
	struct stamp_sample sample;

	while (stamp_session_sample(run->session, ktrxer_now_ns(), flush, &sample))
		stamp_say_sample(run, &sample);
}

static void take_losses(struct stamp_run *run)
{
	uint64_t number;

	while (stamp_session_lost(run->session, ktrxer_now_ns(), &number))
		stamp_say_lost(run, number);
}

static uint64_t take_all(struct stamp_run *run)
{
	uint64_t pump_at = KTRXER_NEVER;

	if (!run->o->precise && ktx_pump(run->tx, &pump_at) < 0)
		fail(run, -ENODEV, "the device went down or is gone");
	take_reports(run);
	take_answers(run);
	take_losses(run);
	take_samples(run, false);
	network_errors_say(run->cli, run->tx, run->talkative, &run->network_errors);
	return pump_at;
}

static void sleep_until(struct stamp_run *run, uint64_t until)
{
	struct pollfd fds[3] = { { .fd = run->cli->stop_fd, .events = POLLIN },
				 { .fd = ktx_fd(run->tx), .events = POLLIN },
				 { .fd = run->inlet.fd, .events = POLLIN } };
	uint64_t now = ktrxer_now_ns(), span = until > now ? until - now : 0;
	struct timespec t;

	if (span > (uint64_t)KTRXER_NS_PER_S)
		span = KTRXER_NS_PER_S; /* come up for air: nothing else ends a wait that a bug made endless */
	t = (struct timespec){ .tv_sec = (time_t)(span / KTRXER_NS_PER_S), .tv_nsec = (long)(span % KTRXER_NS_PER_S) };
	ppoll(fds, 3, &t, NULL);
}

static bool all_ended(struct stamp_run *run)
{
	struct stamp_session_counts c;

	/* By the reports that were read, not by the accounts: those count a probe whose report nobody has seen yet. */
	stamp_session_counts(run->session, &c);
	return c.sent + c.failed == run->next && !c.waiting;
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void measure(struct stamp_run *run)
{
	struct ktrxer_deadline due;
	bool have = false;

	while (!cli_stopped(run->cli) && !run->failure) {
		uint64_t commit_at = commit_soon(run, &due, &have), pump_at = take_all(run);
		const bool no_more = commit_at == KTRXER_NEVER && (run->next == run->wanted || (have && due.at_ns >= run->end_ns));

		if (no_more && all_ended(run))
			return;
		sleep_until(run, earliest(earliest(commit_at, pump_at), stamp_session_next(run->session)));
	}
	run->interrupted = cli_stopped(run->cli) != 0;
	ktx_cancel(run->tx);
	ktx_drain(run->tx, ktrxer_now_ns() + 500 * KTRXER_NS_PER_MS);
	take_all(run);
}

/* A few probes more, until one is answered: then the reflector's count tells. */
static void settle(struct stamp_run *run)
{
	uint64_t next = 0, give_up;

	run->lateness = ktx_lateness(run->tx);
	ktx_accounts(run->tx, &run->accounts);
	if (run->wanted != UINT64_MAX) {
		run->accounts.requested += run->wanted - run->next;
		run->accounts.cancelled += run->wanted - run->next;
	}
	stamp_session_close(run->session, run->next);
	give_up = ktrxer_now_ns() + CLOSING_MAX * CLOSING_GAP_NS + earliest(run->o->timeout_ns, KTRXER_NS_PER_S);
	while (!run->failure && !cli_stopped(run->cli) && stamp_session_unsettled(run->session) && ktrxer_now_ns() < give_up) {
		if (run->closing < CLOSING_MAX && ktrxer_now_ns() >= next && commit_one(run, 0)) {
			run->closing++;
			next = ktrxer_now_ns() + CLOSING_GAP_NS;
		}
		sleep_until(run, earliest(take_all(run), run->closing < CLOSING_MAX ? next : give_up));
	}
	take_samples(run, true);
}

static int stamp_all(struct stamp_run *run)
{
	struct ktrxer_error err = { 0 };
	int rc = stamp_plan(run, &err);

	if (rc < 0) {
		cli_complain(run->cli, "%s", err.text);
		return rc == -EINVAL ? EXIT_USAGE : EXIT_BAD;
	}
	/* By default a process is woken up to 50 us late on purpose. */
	prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
	stamp_say_what(run);
	if (cli_wait_start(run->cli, &run->start_ns) < 0) /* stopped while it waited: there are accounts all the same */
		return EXIT_BAD;
	/* Receive stamps are switched on by deferred work: the first milliseconds have none or bad ones. */
	if (!run->cli->common.start_at_real_ns)
		run->start_ns += 10 * KTRXER_NS_PER_MS;
	run->end_ns = run->o->for_ns ? run->start_ns + run->o->for_ns : KTRXER_NEVER;
	if (stamp_schedule(run, &err) < 0) {
		cli_complain(run->cli, "%s", err.text);
		return EXIT_BAD;
	}
	measure(run);
	settle(run);
	return stamp_finish(run);
}

static int run_stamp(struct cli *cli, const void *options)
{
	struct stamp_run run = { .cli = cli, .o = options };
	int status = stamp_all(&run);

	stamp_release(&run);
	return status;
}

const struct command cmd_stamp = {
	.name = "stamp",
	.summary = "Delay there and back, and loss by direction, by STAMP",
	.description =
		"Sends test packets of STAMP (RFC 8762, RFC 8972) to a reflector on a schedule: `ktrxer serve`, or any other that speaks STAMP "
		"or TWAMP Light. The round trip is from the transmit stamp of the probe to the kernel's stamp of the answer, without the time "
		"that the reflector held it.\n\n"
		"One-way delays need the offset of two clocks. It is bounded by the round trips themselves, and each figure is printed with "
		"what it is true to; where the clocks of both ends say how well they are synchronised, that counts too.\n\n"
		"A reflector that counts (stateful) tells in which direction each probe was lost. Up to ten probes after the last one settle "
		"that for the end of the run; they are counted apart.",
	.examples =
		"ktrxer stamp 192.0.2.1\tTen probes a second to `ktrxer serve`, until Ctrl-C.\n"
		"ktrxer stamp 192.0.2.1 --for 60s --interval 1ms --precise\tA thousand a second, at exact times.\n"
		"ktrxer stamp router.example --port 862 --poisson --count 1000\tAnother make's reflector.\n",
	.options = stamp_opts,
	.positionals = stamp_positionals,
	.options_size = sizeof(struct stamp_options),
	.run = run_stamp,
	.measures = true,
};
