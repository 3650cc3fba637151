/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer stamp`: two-way and one-way delay, loss by direction, against any STAMP reflector. */
#include "stamp.h"

#include <errno.h>

#define FIELD(name) offsetof(struct stamp_options, name)
#define PROBING(name) FIELD(p.name)

static const struct opt stamp_opts[] = {
	{ .name = "count", .letter = 'c', .type = OPT_UINT, .offset = PROBING(count), .argument = "N", .min = 1, .max = UINT32_MAX,
	  .heading = "Probes", .help = "Stop after so many probes; without it, on Ctrl-C" },
	{ .name = "for", .type = OPT_DURATION, .offset = PROBING(for_ns), .argument = "D", .min = 1, .max = 365ULL * 86400 * 1000000000,
	  .help = "Stop after so long" },
	{ .name = "interval", .letter = 'i', .type = OPT_DURATION, .offset = PROBING(interval_ns), .argument = "D", .fallback = "100ms",
	  .min = 1000, .max = 60ULL * 1000000000, .help = "Time between probes" },
	PROBE_MODEL_OPTION(PROBING(model)),
	{ .name = "payload", .letter = 's', .type = OPT_SIZE, .offset = FIELD(payload), .argument = "N", .max = 65507,
	  .help = "Bytes of UDP payload, filled up with padding; by default the smallest" },
	{ .name = "timeout", .letter = 'W', .type = OPT_DURATION, .offset = FIELD(timeout_ns), .argument = "D", .fallback = "1s", .min = 1000,
	  .max = 600ULL * 1000000000, .help = "Without an answer for so long a probe is lost; after 1s, if a probe that was sent 1s later has its answer" },
	{ .name = "port", .letter = 'p', .type = OPT_UINT, .offset = FIELD(port), .argument = "N", .fallback = "8620", .min = 1, .max = 65535,
	  .help = "Port of the reflector: `ktrxer serve` has 8620, STAMP's own is 862" },
	{ .name = "dscp", .type = OPT_STRING, .offset = FIELD(dscp), .argument = "DSCP[,DSCP...]", .fallback = "BE",
	  .help = "DSCP of the probes, 0 to 63 or a name; with several, a probe of each leaves at each send time" },
	{ .name = "ecn", .type = OPT_ECN, .offset = FIELD(ecn), .fallback = "off", .help = "ECN mark of the probes" },
	{ .name = "ttl", .type = OPT_UINT, .offset = FIELD(ttl), .argument = "N", .fallback = "64", .min = 1, .max = 255, .help = "Time to live" },

	{ .name = "auth-key-file", .type = OPT_STRING, .offset = FIELD(auth_key_file), .argument = "FILE", .heading = "Protocol",
	  .help = "Authenticated mode (HMAC-SHA-256) with the key in this file, of mode 0600" },
	{ .name = "tlv-key-file", .type = OPT_STRING, .offset = FIELD(tlv_key_file), .argument = "FILE",
	  .help = "Open mode, with this key for the HMAC of extensions" },
	{ .name = "ssid", .type = OPT_UINT, .offset = FIELD(ssid), .argument = "N", .min = 1, .max = 65535,
	  .help = "Session identifier; by default a random one" },
	{ .name = "tlv", .type = OPT_LIST, .offset = FIELD(tlvs), .argument = "NAME",
	  .help = "A further extension: location, time-info, cos, direct or limits (what `ktrxer serve` itself refused); may be given several times" },
	{ .name = "follow-up", .type = OPT_FLAG, .offset = FIELD(follow_up), .fallback = "yes",
	  .help = "Ask for the driver's stamp of each answer (follow-up telemetry): the far host's own queue" },
	{ .name = "ptp", .type = OPT_FLAG, .offset = FIELD(ptp), .help = "Timestamps in PTP's truncated format instead of NTP's" },

	PROBER_HOW_OPTIONS(PROBING),
	{ 0 },
};

static const struct opt_positional stamp_positionals[] = {
	{ .name = "HOST", .offset = PROBING(host), .help = "Address or name of the reflector" },
	{ 0 },
};

/* Beyond the measured probes, to learn which way the last of them were lost. */
enum { CLOSING_MAX = 10 };
#define CLOSING_GAP_NS (20 * (uint64_t)KTRXER_NS_PER_MS)

/* `at_ns` 0: at once. False: not now. */
static bool commit_one(struct stamp_run *run, uint32_t which, bool last, uint64_t at_ns)
{
	struct stamp_session *session = run->classes[which].session;
	const uint64_t number = run->p.next;
	struct ktx_probe probe = { .id = number * run->class_count + which, .length = run->classes[which].frame.length, .at_ns = at_ns,
				   .flags = last ? 0 : KTX_TRAIN_GOES_ON };
	struct ktrxer_error err;
	struct ktx_slot slot;

	if (ktx_reserve(run->p.tx, &slot) < 0)
		return false;
	if (stamp_session_commit(session, number, stamp_fill(run, which, slot.frame, number, at_ns ? at_ns : ktrxer_now_ns())) < 0)
		return false;
	if (ktx_commit(run->p.tx, &probe, &err) < 0) {
		const struct ktx_report refused = { .id = number, .status = KTX_CANCELLED };

		stamp_session_report(session, &refused);
		prober_fail(&run->p, err.code, err.text);
		return false;
	}
	return true;
}

/*
 * One of each class, as a train: one system call, one walk to the device. Each time another one is the first: on an idle path it is slower
 * by some microseconds than those behind it, for which the caches of hosts and routers are warm.
 */
static bool commit_all(void *arg, uint64_t at_ns)
{
	struct stamp_run *run = arg;
	const uint32_t n = run->class_count, first = (uint32_t)(run->p.next % n);

	for (; run->p.part < n; run->p.part++)
		if (!commit_one(run, (first + run->p.part) % n, run->p.part + 1 == n, at_ns))
			return false;
	run->p.part = 0;
	return true;
}

static void take_reports(struct stamp_run *run)
{
	struct ktx_report reports[32];

	int n;

	do {
		n = ktx_reports(run->p.tx, reports, 32);
		for (int i = 0; i < n; i++) {
			struct stamp_session *session = run->classes[reports[i].id % run->class_count].session;

			reports[i].id /= run->class_count;
			stamp_session_report(session, &reports[i]);
		}
	} while (prober_more(&run->p, n, 32));
}

static void take_answers(struct stamp_run *run)
{
	int rc = 0;

	for (int i = 0; i < 256; i++) {
		struct stamp_arrival arrival;
		struct stamp_class *class;
		struct reply in;

		rc = reply_receiver_next(&run->p.receiver, &in);
		if (rc == -EAGAIN)
			continue;
		if (rc <= 0)
			break;
		if (!ktrxer_addr_equal(&in.from, &run->p.path.to)) {
			run->elsewhere++;
			continue;
		}
		arrival = (struct stamp_arrival){ .received_ns = in.received_ns, .bound_ns = in.bound_ns, .source = in.source, .ttl = in.ttl,
						  .tos = in.tos, .real_near_ns = (int64_t)in.received_ns + run->real_minus_mono };
		class = stamp_class_of(run, in.data, in.length);
		if (class)
			stamp_say_event(run, stamp_session_reply(class->session, in.data, in.length, &arrival));
	}
	if (rc < 0)
		prober_fail(&run->p, rc, rc == -ENETDOWN ? "the device went down" : "the device is gone");
}

static void take_samples(struct stamp_run *run, bool flush)
{
	struct stamp_sample sample;

	for (uint32_t i = 0; i < run->class_count; i++)
		while (stamp_session_sample(run->classes[i].session, ktrxer_now_ns(), flush, &sample))
			stamp_say_sample(run, &run->classes[i], &sample);
}

static void take_losses(struct stamp_run *run)
{
	uint64_t number;

	for (uint32_t i = 0; i < run->class_count; i++)
		while (stamp_session_lost(run->classes[i].session, ktrxer_now_ns(), &number))
			prober_say_lost(&run->p, number, i);
}

static void take(void *arg)
{
	take_reports(arg);
	take_answers(arg);
	take_losses(arg);
	take_samples(arg, false);
}

static bool all_ended(void *arg)
{
	const struct stamp_run *run = arg;
	struct stamp_session_counts c;

	/* Count the reports that were read. The accounts also count probes whose reports are still unread. */
	stamp_counts(run, &c);
	return c.sent + c.failed == run->p.next * run->class_count + run->p.part && !c.waiting;
}

static uint64_t next_loss(void *arg)
{
	const struct stamp_run *run = arg;
	uint64_t first = KTRXER_NEVER;

	for (uint32_t i = 0; i < run->class_count; i++) {
		const uint64_t next = stamp_session_next(run->classes[i].session);

		first = next < first ? next : first;
	}
	return first;
}

static bool unsettled(const struct stamp_run *run)
{
	for (uint32_t i = 0; i < run->class_count; i++)
		if (stamp_session_unsettled(run->classes[i].session))
			return true;
	return false;
}

/* A few probes more, until one is answered: then the reflector's count tells. */
static void settle(struct stamp_run *run)
{
	uint64_t next = 0, give_up;

	run->p.unhurried = false;
	run->lateness = ktx_lateness(run->p.tx);
	prober_accounts(&run->p, &run->accounts);
	for (uint32_t i = 0; i < run->class_count; i++)
		stamp_session_close(run->classes[i].session, run->p.next);
	give_up = ktrxer_now_ns() + CLOSING_MAX * CLOSING_GAP_NS;
	give_up += run->o->timeout_ns < (uint64_t)KTRXER_NS_PER_S ? run->o->timeout_ns : (uint64_t)KTRXER_NS_PER_S;
	while (!run->p.failure && !cli_stopped(run->p.cli) && unsettled(run) && ktrxer_now_ns() < give_up) {
		uint64_t again, wake;

		if (run->closing < CLOSING_MAX && ktrxer_now_ns() >= next && commit_all(run, 0)) {
			run->p.next++;
			run->closing++;
			next = ktrxer_now_ns() + CLOSING_GAP_NS;
		}
		again = prober_take(&run->p);
		wake = run->closing < CLOSING_MAX ? next : give_up;
		prober_sleep(&run->p, again < wake ? again : wake);
	}
	take_samples(run, true);
}

static const char *const columns_of_one[] = { "number", "scheduled_ns", "sent_ns", "rtt_ns", "reflector_received_real_ns", "reflector_sequence",
					      "own_queue_ns", "far_queue_ns", NULL };
static const char *const columns_of_several[] = { "number", "scheduled_ns", "sent_ns", "rtt_ns", "reflector_received_real_ns",
						  "reflector_sequence", "own_queue_ns", "far_queue_ns", "class", NULL };

static int stamp_all(struct stamp_run *run)
{
	struct ktrxer_error err = { 0 };
	int rc = stamp_plan(run, &err);

	if (rc < 0) {
		cli_complain(run->p.cli, "%s", err.text);
		return rc == -EINVAL ? EXIT_USAGE : EXIT_BAD;
	}
	run->p.columns = run->class_count > 1 ? columns_of_several : columns_of_one;
	stamp_say_what(run);
	if (!prober_begin(&run->p))
		return EXIT_BAD;
	run->interrupted = prober_loop(&run->p);
	settle(run);
	return stamp_finish(run);
}

static int run_stamp(struct cli *cli, const void *options)
{
	static const struct prober_work work = { .commit = commit_all, .take = take, .ended = all_ended, .next_loss = next_loss };
	const struct stamp_options *o = options;
	struct stamp_run run = { .o = o, .p = { .cli = cli, .o = &o->p, .work = &work } };
	int status;

	run.p.run = &run;
	status = stamp_all(&run);
	stamp_release(&run);
	return status;
}

const struct command cmd_stamp = {
	.name = "stamp",
	.summary = "Delay up and down, and loss by direction, by STAMP",
	.description = OPT_PROSE(
		"Sends test packets of STAMP (RFC 8762, RFC 8972) to a reflector on a schedule: `ktrxer serve`, or any other that speaks STAMP "
		"or TWAMP Light. The round trip is from the entry into this host's packet scheduler to the kernel's stamp of the answer, without the "
		"time that the reflector held it. The queues of both hosts' own devices are part of it, and figures of their own.\n\n"
		"One-way delays need the offset of two clocks. It is bounded by the round trips themselves, and each figure is printed with "
		"its uncertainty; where the clocks of both ends report how well they are synchronised, that bounds it further.\n\n"
		"From a reflector that counts (stateful) follows in which direction each probe was lost. Up to ten probes after the last one settle "
		"that for the end of the run; they are counted apart."),
	.examples =
		OPT_PROSE("ktrxer stamp 192.0.2.1\tTen probes a second to `ktrxer serve`, until Ctrl-C.\n"
		"ktrxer stamp 192.0.2.1 --for 60s --interval 1ms --precise\tA thousand a second, at exact times.\n"
		"ktrxer stamp 192.0.2.1 --dscp be,cs1,ef --interval 10ms\tBest effort, background and voice side by side.\n"
		"ktrxer stamp router.example --port 862 --model poisson --count 1000\tAnother make's reflector.\n"),
	.options = stamp_opts,
	.positionals = stamp_positionals,
	.options_size = sizeof(struct stamp_options),
	.run = run_stamp,
	.measures = true,
};
