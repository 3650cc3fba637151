/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer ping`: round trips, with the kernel's stamps at both ends of each. */
#include "ping.h"

#include <errno.h>

#define FIELD(name) offsetof(struct ping_options, name)
#define PROBING(name) FIELD(p.name)

static const struct opt ping_opts[] = {
	{ .name = "count", .letter = 'c', .type = OPT_UINT, .offset = PROBING(count), .argument = "N", .min = 1, .max = UINT64_MAX - 1,
	  .heading = "Probes", .help = "Stop after so many probes; without it, on Ctrl-C" },
	{ .name = "for", .type = OPT_DURATION, .offset = PROBING(for_ns), .argument = "D", .min = 1, .max = 365ULL * 86400 * 1000000000,
	  .help = "Stop after so long" },
	{ .name = "interval", .letter = 'i', .type = OPT_DURATION, .offset = PROBING(interval_ns), .argument = "D", .fallback = "1s",
	  .min = 1000, .max = 86400ULL * 1000000000, .help = "Time between probes" },
	PROBE_MODEL_OPTION(PROBING(model)),
	{ .name = "payload", .letter = 's', .type = OPT_SIZE, .offset = FIELD(payload), .argument = "N", .fallback = "56", .max = 65507,
	  .help = "Bytes of payload; with 16 and more an answer is proven to be ours" },
	{ .name = "timeout", .letter = 'W', .type = OPT_DURATION, .offset = FIELD(timeout_ns), .argument = "D", .fallback = "2s", .min = 1000,
	  .max = 3600ULL * 1000000000, .help = "Without an answer for so long a probe is lost; after 1s, if a probe that was sent 1s later has its answer" },
	{ .name = "udp", .letter = 'u', .type = OPT_FLAG, .offset = FIELD(udp), .help = "UDP echo (RFC 862) instead of ICMP" },
	{ .name = "port", .letter = 'p', .type = OPT_UINT, .offset = FIELD(port), .argument = "N", .fallback = "7", .min = 1, .max = 65535,
	  .help = "Port of the UDP echo service" },
	{ .name = "dscp", .type = OPT_DSCP, .offset = FIELD(dscp), .fallback = "BE", .help = "DSCP of the probes" },
	{ .name = "ecn", .type = OPT_ECN, .offset = FIELD(ecn), .fallback = "off", .help = "ECN mark of the probes" },
	{ .name = "ttl", .type = OPT_UINT, .offset = FIELD(ttl), .argument = "N", .fallback = "64", .min = 1, .max = 255, .help = "Time to live" },

	PROBER_HOW_OPTIONS(PROBING),
	{ 0 },
};

static const struct opt_positional ping_positionals[] = {
	{ .name = "HOST", .offset = PROBING(host), .help = "Address or name" },
	{ 0 },
};

static bool commit_one(void *arg, uint64_t at_ns)
{
	struct ping_run *run = arg;
	struct ktx_probe probe = { .id = run->p.next, .length = run->p.frame.length, .at_ns = at_ns };
	struct ktrxer_error err;
	struct ktx_slot slot;

	if (ktx_reserve(run->p.tx, &slot) < 0 || echo_book_commit(run->book, run->p.next) < 0)
		return false;
	template_fill(&run->p.frame, slot.frame, run->p.next);
	if (ktx_commit(run->p.tx, &probe, &err) < 0) {
		prober_fail(&run->p, err.code, err.text);
		return false;
	}
	return true;
}

static void take_reports(struct ping_run *run)
{
	struct ktx_report reports[32];
	struct echo_result result;

	int n;

	do {
		n = ktx_reports(run->p.tx, reports, 32);
		for (int i = 0; i < n; i++)
			ping_say_result(run, echo_book_report(run->book, &reports[i], &result), &result);
	} while (prober_more(&run->p, n, 32));
}

static void take_replies(struct ping_run *run)
{
	struct echo_arrival arrival;
	struct echo_reply reply;
	struct echo_result result;
	int rc = 0;

	for (int i = 0; i < 256 && (rc = ping_inlet_next(run, &reply, &arrival)) > 0; i++)
		ping_say_result(run, echo_book_reply(run->book, &reply, &arrival, &result), &result);
	if (rc < 0)
		prober_fail(&run->p, rc, rc == -ENETDOWN ? "the device went down" : "the device is gone");
}

static void take_losses(struct ping_run *run)
{
	uint64_t number;

	while (echo_book_lost(run->book, ktrxer_now_ns(), &number))
		prober_say_lost(&run->p, number, 0);
}

static void take(void *arg)
{
	take_reports(arg);
	take_replies(arg);
	take_losses(arg);
}

static bool all_ended(void *arg)
{
	const struct ping_run *run = arg;
	struct echo_counts c;

	/* Count the reports that were read. The accounts also count probes whose reports are still unread. */
	echo_book_counts(run->book, &c);
	return c.sent + c.failed == run->p.next && !c.waiting;
}

static uint64_t next_loss(void *arg)
{
	const struct ping_run *run = arg;

	return echo_book_next_loss(run->book);
}

static int ping_all(struct ping_run *run)
{
	struct ktrxer_error err = { 0 };
	int rc = ping_plan(run, &err);

	if (rc < 0) {
		cli_complain(run->p.cli, "%s", err.text);
		return rc == -EINVAL ? EXIT_USAGE : EXIT_BAD;
	}
	ping_say_what(run);
	if (!prober_begin(&run->p))
		return EXIT_BAD;
	prober_loop(&run->p);
	return ping_finish(run);
}

static int run_ping(struct cli *cli, const void *options)
{
	static const struct prober_work work = { .commit = commit_one, .take = take, .ended = all_ended, .next_loss = next_loss };
	const struct ping_options *o = options;
	static const char *const columns[] = { "number", "scheduled_ns", "sent_ns", "rtt_ns", "own_queue_ns", NULL };
	struct ping_run run = { .o = o, .p = { .cli = cli, .o = &o->p, .work = &work, .columns = columns } };
	int status;

	run.p.run = &run;
	status = ping_all(&run);
	ping_release(&run);
	return status;
}

const struct command cmd_ping = {
	.name = "ping",
	.summary = "Round-trip times, stamped by the kernel at both ends",
	.description = OPT_PROSE(
		"Sends ICMP or UDP echo requests on a schedule and measures the round trip from the kernel's stamp at the entry into this host's "
		"packet scheduler to its stamp of the answer's arrival. This program's own delays are not in it, the queue of this host's device is, "
		"and is a figure of its own. Times are never taken out of a packet.\n\n"
		"Loss is by the timeout (RFC 2681); answers that come later are counted apart. Duplicates (RFC 5560) and reordering (RFC 4737) "
		"are counted. The probes' own lateness is reported beside."),
	.examples =
		OPT_PROSE("ktrxer ping 192.0.2.1\tOne probe a second until Ctrl-C.\n"
		"ktrxer ping 192.0.2.1 --interval 10ms --count 1000 --precise\tA thousand probes at exact times.\n"
		"ktrxer ping --udp 2001:db8::1 --jsonl\tUDP echo, a line of JSON for each probe.\n"),
	.options = ping_opts,
	.positionals = ping_positionals,
	.options_size = sizeof(struct ping_options),
	.run = run_ping,
	.measures = true,
};
