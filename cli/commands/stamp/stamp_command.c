/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer stamp`: two-way and one-way delay, loss by direction, against any STAMP reflector. */
#include "stamp_command.h"

#include <errno.h>

#define FIELD(name) offsetof(struct stamp_options, name)
#define PROBING(name) FIELD(p.name)

/* clang-format off */
static const struct opt stamp_opts[] = {
	OPTION_COUNT(PROBING(count), .min = 1, .max = UINT32_MAX, .heading = "Probes",
		.help = "Stop after so many probes; without it, on Ctrl-C"),
	OPTION_FOR_PROBES(PROBING(for_ns)),
	OPTION_INTERVAL(PROBING(interval_ns), "probes", .fallback = "100ms", .min = 1000, .max = 60ULL * 1000000000),
	OPTION_MODEL_OF_PROBES(PROBING(model), "constant"),
	OPTION_PAYLOAD(PROBING(payload), OPT_SIZE, .argument = "BYTES", .max = 65507,
		       .help = "Bytes of UDP payload, filled up with padding; by default the smallest"),
	OPTIONS_TIMEOUT_OF_PROBES(PROBING(timeout_ns), PROBING(overtaken_ns),
				  .fallback = "4s", .max = 600ULL * 1000000000),
	OPTION_PORT(PROBING(port), .fallback = SERVER_PORT,
		    .help = "Port of the reflector: `ktrxer serve` has " SERVER_PORT ", STAMP's own is 862"),
	OPTION_DSCP_LIST(FIELD(dscp), .argument = "DSCP[,DSCP...]", .fallback = "BE",
			 .help = "DSCP of the probes, 0 to 63 or a name; with several, a probe of each leaves at "
				"each send time"),
	OPTION_ECN(FIELD(ecn)),
	OPTION_TTL(PROBING(ttl)),

	OPTION_AUTH_KEY_FILE(FIELD(auth_key_file), .heading = "Protocol",
			     .help = "Authenticated mode (HMAC-SHA-256) with the key in this file, of mode 0600"),
	OPTION_TLV_KEY_FILE(FIELD(tlv_key_file), "extensions"),
	{ .name = "ssid", .type = OPT_UINT, .offset = FIELD(ssid), .argument = "N", .min = 1, .max = 65535,
	  .help = "Session identifier; by default a random one" },
	{ .name = "tlv", .type = OPT_LIST, .offset = FIELD(tlvs), .argument = "NAME",
	  .help = "A further extension: location, time-info, cos or direct" },
	{ .name = "follow-up", .type = OPT_FLAG, .offset = FIELD(follow_up), .fallback = "yes",
	  .help = "Ask for the driver's stamp of each answer (follow-up telemetry): the far host's own queue" },
	{ .name = "clock-state", .type = OPT_FLAG, .offset = FIELD(clock), .fallback = "yes",
	  .help = "Ask for the adjustments of the reflector's clock (`ktrxer serve` answers): its steps and slews "
		  "leave no error" },
	{ .name = "limits", .type = OPT_FLAG, .offset = FIELD(limits), .fallback = "yes",
	  .help = "Ask for the probes that `ktrxer serve` itself refused or dropped" },
	OPTION_PTP(FIELD(ptp)),
#ifndef KTRXER_SMALL
	{ .name = "host-delay", .type = OPT_FLAG, .offset = FIELD(host_delay),
	  .help = "Subtract from each delay the time between the send call and the driver in both hosts; what "
		  "remains of the hosts in the delays is printed" },
#endif

#ifndef KTRXER_SMALL
	OPTION_ECHO(FIELD(echo),
		.help = "Beside the probes, at the same send times, ICMP echo to the same host: `ktrxer ping` without "
			"a process of its own. Its objects have \"of\": \"ping\""),
#endif

	PROBE_HOW_OPTIONS(PROBING),
	{ 0 },
};
/* clang-format on */

static const struct opt_positional stamp_positionals[] = {
	{ .name = "HOST", .offset = PROBING(host), .help = "Address or name of the reflector" },
	{ 0 },
};

static int stamp_open(struct stamp_command *run)
{
	struct stamp_keys keys = { 0 };
	struct stamp_spec spec;
	struct ktrxer_error err = { 0 };
	int rc = stamp_spec_make(&spec, &keys, run->o, &err);

	if (rc == 0)
		rc = stamp_new(&run->stamp, &spec, &err);
	secret_forget(&keys, sizeof keys);
#ifndef KTRXER_SMALL
	if (rc == 0 && run->o->echo)
		rc = stamp_echo_open(run, &spec.probe, &err);
#endif
	if (rc < 0)
		return cli_fail(run->report.cli, &err);
	run->report.prober = stamp_prober(run->stamp);
	run->result = stamp_result(run->stamp);
	run->report.each = run->result->class_count;
	stamp_batch_open(run);
	return 0;
}

static int stamp_all(struct stamp_command *run)
{
	struct stamp_events events = { .probe = probe_report_events,
				       .sample = stamp_say_sample,
				       .answer = stamp_say_answer,
				       .clock_step = stamp_say_step };
	uint64_t start_ns;
	const int status = stamp_open(run);

	if (status)
		return status;
	stamp_say_what(run);
	if (probe_wait_start(&run->report, &start_ns) < 0)
		return EXIT_NO_RESULT;
	events.probe.context = run;
	stamp_run(run->stamp, start_ns, run->report.cli->stop_fd, &events);
	return stamp_finish(run);
}

static int run_stamp(struct cli *cli, const void *options)
{
	const struct stamp_options *o = options;
	struct stamp_command run = { .o = o, .report = { .cli = cli, .o = &o->p } };
	int status = stamp_all(&run);

#ifndef KTRXER_SMALL
	stamp_echo_free(run.echo);
#endif
	stamp_free(run.stamp);
	return status;
}

const struct command cmd_stamp = {
	.name = "stamp",
	.summary = "Delay up and down, and loss by direction, by STAMP",
	.description = OPT_PROSE("Sends test packets of STAMP (RFC 8762, RFC 8972) to a reflector on a schedule: "
				 "`ktrxer serve`, or any other that speaks STAMP "
				 "or TWAMP Light. The round trip is from the entry into this host's packet scheduler "
				 "to the kernel's stamp of the answer, without the "
				 "time that the reflector held it. The queues of both hosts' own devices are part of "
				 "it, and figures of their own.\n\n"
				 "One-way delays need the offset of two clocks. It is bounded by the round trips "
				 "themselves, and each figure is printed with "
				 "its uncertainty; where the clocks of both ends report how well they are "
				 "synchronised, that bounds it further.\n\n"
				 "From a reflector that counts (stateful) follows in which direction each probe was "
				 "lost. Up to ten probes after the last one settle "
				 "that for the end of the run; they are counted apart."),
	.examples = OPT_PROSE(
		"ktrxer stamp 192.0.2.1\tTen probes a second to `ktrxer serve`, until Ctrl-C.\n"
		"ktrxer stamp 192.0.2.1 --for 60s --interval 1ms --precise\tA thousand a second, at exact times.\n"
		"ktrxer stamp 192.0.2.1 --dscp be,cs1,ef --interval 10ms\tBest effort, background and voice side by "
		"side.\n"
		"ktrxer stamp router.example --port 862 --model poisson --count 1000\tAnother make's reflector.\n"),
	.options = stamp_opts,
	.positionals = stamp_positionals,
	.options_size = sizeof(struct stamp_options),
	.run = run_stamp,
	.measures = true,
};
