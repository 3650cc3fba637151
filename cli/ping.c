/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer ping`: round trips, with the kernel's stamps at both ends of each. */
#include "ping.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define FIELD(name) offsetof(struct ping_options, name)

static const char *const engine_names[] = { "udp", "raw", "packet", "auto", NULL };

static const struct opt ping_opts[] = {
	{ .name = "count", .letter = 'c', .type = OPT_UINT, .offset = FIELD(count), .argument = "N", .min = 1, .max = UINT64_MAX - 1,
	  .heading = "Probes", .help = "Stop after so many probes; without it, on Ctrl-C" },
	{ .name = "for", .type = OPT_DURATION, .offset = FIELD(for_ns), .argument = "D", .min = 1, .max = 365ULL * 86400 * 1000000000,
	  .help = "Stop after so long" },
	{ .name = "interval", .letter = 'i', .type = OPT_DURATION, .offset = FIELD(interval_ns), .argument = "D", .fallback = "1s",
	  .min = 1000, .max = 86400ULL * 1000000000, .help = "Time between probes" },
	{ .name = "poisson", .type = OPT_FLAG, .offset = FIELD(poisson), .help = "Exponential intervals around it (RFC 2330)" },
	{ .name = "payload", .letter = 's', .type = OPT_SIZE, .offset = FIELD(payload), .argument = "N", .fallback = "56", .max = 65507,
	  .help = "Bytes of payload; with 16 and more an answer is proven to be ours" },
	{ .name = "timeout", .letter = 'W', .type = OPT_DURATION, .offset = FIELD(timeout_ns), .argument = "D", .fallback = "2s", .min = 1000,
	  .max = 3600ULL * 1000000000, .help = "Without an answer for so long a probe is lost" },
	{ .name = "udp", .letter = 'u', .type = OPT_FLAG, .offset = FIELD(udp), .help = "UDP echo (RFC 862) instead of ICMP" },
	{ .name = "port", .type = OPT_UINT, .offset = FIELD(port), .argument = "N", .fallback = "7", .min = 1, .max = 65535,
	  .help = "Port of the UDP echo service" },
	{ .name = "tos", .type = OPT_UINT, .offset = FIELD(tos), .argument = "N", .fallback = "0", .max = 255, .help = "DSCP (times 4) and ECN" },
	{ .name = "ttl", .type = OPT_UINT, .offset = FIELD(ttl), .argument = "N", .fallback = "64", .min = 1, .max = 255, .help = "Time to live" },

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

static const struct opt_positional ping_positionals[] = {
	{ .name = "HOST", .offset = FIELD(host), .help = "Address or name" },
	{ 0 },
};

/* Commit so far ahead: enough for the waiter never to starve, little enough that stopping cancels little. */
#define AHEAD_NS (50 * KTRXER_NS_PER_MS)

static void fail(struct ping_run *run, int rc, const char *text)
{
	run->failure = rc;
	snprintf(run->failure_text, sizeof run->failure_text, "%s", text);
}

/* Commits what is due soon. Returns when the next one after that is to be committed; KTRXER_NEVER: that was all. */
static uint64_t commit_soon(struct ping_run *run, struct ktrxer_deadline *due, bool *have)
{
	while (run->next < run->wanted) {
		struct ktx_probe probe = { .id = run->next, .length = run->probe.length };
		struct ktrxer_error err;
		struct ktx_slot slot;

		if (!*have && ktrxer_schedule_next(run->schedule, due) < 0)
			break;
		*have = true;
		if (due->at_ns >= run->end_ns)
			break;
		if (due->at_ns > ktrxer_now_ns() + AHEAD_NS)
			return due->at_ns - AHEAD_NS / 2;
		if (ktx_reserve(run->tx, &slot) < 0)
			return KTRXER_NEVER - 1; /* reports make room, and wake us */
		if (echo_book_commit(run->book, run->next) < 0)
			return echo_book_next_loss(run->book);
		probe.at_ns = due->at_ns;
		template_fill(&run->probe, slot.frame, run->next);
		if (ktx_commit(run->tx, &probe, &err) < 0) {
			fail(run, err.code, err.text);
			break;
		}
		run->next++;
		*have = false;
	}
	return KTRXER_NEVER;
}

static void take_reports(struct ping_run *run)
{
	struct ktx_report reports[32];
	struct echo_result result;

	for (int n; (n = ktx_reports(run->tx, reports, 32)) > 0;)
		for (int i = 0; i < n; i++)
			ping_say_result(run, echo_book_report(run->book, &reports[i], &result), &result);
}

static void take_replies(struct ping_run *run)
{
	struct echo_arrival arrival;
	struct echo_reply reply;
	struct echo_result result;
	int rc = 0;

	for (int i = 0; i < 256 && (rc = ping_inlet_next(run, &reply, &arrival)) > 0; i++)
		ping_say_result(run, echo_book_reply(run->book, &reply, &arrival, &result), &result);
	if (rc < 0 && !run->failure)
		fail(run, rc, rc == -ENETDOWN ? "the device went down" : "the device is gone");
}

static void take_losses(struct ping_run *run)
{
	uint64_t number;

	while (echo_book_lost(run->book, ktrxer_now_ns(), &number))
		ping_say_lost(run, number);
}

static void sleep_until(struct ping_run *run, uint64_t until)
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

static bool all_ended(struct ping_run *run)
{
	struct echo_counts c;

	/* By the reports that were read, not by the accounts: those count a probe whose report nobody has seen yet. */
	echo_book_counts(run->book, &c);
	return c.sent + c.failed == run->next && !c.waiting;
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void ping_loop(struct ping_run *run)
{
	struct ktrxer_deadline due;
	bool have = false;

	while (!cli_stopped(run->cli) && !run->failure) {
		uint64_t commit_at = commit_soon(run, &due, &have), pump_at = KTRXER_NEVER;
		const bool no_more = commit_at == KTRXER_NEVER && (run->next == run->wanted || (have && due.at_ns >= run->end_ns));

		if (!run->o->precise && ktx_pump(run->tx, &pump_at) < 0 && !run->failure)
			fail(run, -ENODEV, "the device went down or is gone");
		take_reports(run);
		take_replies(run);
		ping_say_network_errors(run);
		take_losses(run);
		if (no_more && all_ended(run))
			break;
		sleep_until(run, earliest(earliest(commit_at, pump_at), echo_book_next_loss(run->book)));
	}
	ktx_cancel(run->tx);
	ktx_drain(run->tx, ktrxer_now_ns() + 500 * KTRXER_NS_PER_MS);
	take_reports(run);
	take_replies(run);
	ping_say_network_errors(run);
}

static int ping_all(struct ping_run *run)
{
	struct ktrxer_error err = { 0 };
	int rc = ping_plan(run, &err);

	if (rc < 0) {
		cli_complain(run->cli, "%s", err.text);
		return rc == -EINVAL ? EXIT_USAGE : EXIT_BAD;
	}
	/* By default a process is woken up to 50 us late on purpose. */
	prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
	ping_say_what(run);
	if (cli_wait_start(run->cli, &run->start_ns) < 0) /* stopped while it waited: there are accounts all the same */
		return EXIT_BAD;
	/* Receive stamps are switched on by deferred work: the first milliseconds have none or bad ones. */
	if (!run->cli->common.start_at_real_ns)
		run->start_ns += 10 * KTRXER_NS_PER_MS;
	run->end_ns = run->o->for_ns ? run->start_ns + run->o->for_ns : KTRXER_NEVER;
	if (ping_schedule(run, &err) < 0) {
		cli_complain(run->cli, "%s", err.text);
		return EXIT_BAD;
	}
	ping_loop(run);
	return ping_finish(run);
}

static int run_ping(struct cli *cli, const void *options)
{
	struct ping_run run = { .cli = cli, .o = options };
	int status = ping_all(&run);

	ping_release(&run);
	return status;
}

const struct command cmd_ping = {
	.name = "ping",
	.summary = "Round-trip times, stamped by the kernel at both ends",
	.description =
		"Sends ICMP or UDP echo requests on a schedule and measures the round trip from the stamp of the driver that took the probe to "
		"the kernel's stamp of the answer's arrival, so that neither end includes this program's own delays. Times are never taken out "
		"of a packet.\n\n"
		"Loss is by the timeout (RFC 2681); answers that come later are counted apart. Duplicates (RFC 5560) and reordering (RFC 4737) "
		"are counted. The probes' own lateness is reported beside.",
	.examples =
		"ktrxer ping 192.0.2.1\tOne probe a second until Ctrl-C.\n"
		"ktrxer ping 192.0.2.1 --interval 10ms --count 1000 --precise\tA thousand probes at exact times.\n"
		"ktrxer ping --udp 2001:db8::1 --jsonl\tUDP echo, a line of JSON for each probe.\n",
	.options = ping_opts,
	.positionals = ping_positionals,
	.options_size = sizeof(struct ping_options),
	.run = run_ping,
	.measures = true,
};
