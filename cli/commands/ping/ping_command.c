/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer ping`: round trips, with the kernel's stamps at both ends of each. */
#include "ping_command.h"

#include "error.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#define FIELD(name) offsetof(struct ping_options, name)
#define PROBING(name) FIELD(p.name)

static const struct opt ping_opts[] = {
	OPTION_COUNT(PROBING(count), .min = 1, .max = UINT64_MAX - 1, .heading = "Probes",
		     .help = "Stop after so many probes; without it, on Ctrl-C"),
	OPTION_FOR_PROBES(PROBING(for_ns)),
	OPTION_INTERVAL(PROBING(interval_ns), "probes", .fallback = "1s", .min = 1000, .max = OPTION_DAYS(1)),
	OPTION_MODEL_OF_PROBES(PROBING(model), "constant"),
	OPTION_PAYLOAD(PROBING(payload), OPT_SIZE, .argument = "BYTES", .fallback = "56", .max = 65507,
		       .help = "Bytes of payload; with 16 and more an answer is proven to be ours"),
	OPTIONS_TIMEOUT_OF_PROBES(PROBING(timeout_ns), PROBING(overtaken_ns), .fallback = "4s",
				  .max = 3600ULL * 1000000000),
	OPTION_UDP(FIELD(udp), .help = "UDP echo (RFC 862) instead of ICMP"),
	OPTION_PORT(PROBING(port), .fallback = "7", .help = "Port of the UDP echo service"),
	OPTION_DSCP(FIELD(dscp)),
	OPTION_ECN(FIELD(ecn)),
	OPTION_TTL(PROBING(ttl)),

	PROBE_HOW_OPTIONS(PROBING),
	{ 0 },
};

static const struct opt_positional ping_positionals[] = {
	{ .name = "HOST", .offset = PROBING(host), .help = "Address or name" },
	{ 0 },
};

static int make_spec(struct ping_spec *spec, const struct ping_options *o, struct ktrxer_error *err)
{
	if (o->udp && o->p.payload < ECHO_PAYLOAD_NUMBER)
		return ktrxer_fail(err, -EINVAL, "a UDP echo needs its number in the payload: at least --payload %d",
				   ECHO_PAYLOAD_NUMBER);
	if (o->p.port != 7 && !o->udp)
		return ktrxer_fail(err, -EINVAL, "--port goes with --udp: ICMP has no ports");
	spec->udp = o->udp;
	spec->tos = (uint8_t)(o->dscp << 2 | o->ecn);
	return probe_spec_make(&spec->probe, &o->p, 1, err);
}

#ifdef KTRXER_SMALL
static int ping_refused(const struct ping_run *run, const struct ktrxer_error *err)
{
	return cli_fail(run->report.cli, err);
}
#else
/* `sudo` has a PATH of its own, which does not contain a build directory. */
static int ping_refused(const struct ping_run *run, const struct ktrxer_error *err)
{
	const char *host = run->o->p.host;
	char program[PATH_MAX], as_root[2 * PATH_MAX] = "";
	ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);

	if (run->o->udp || (err->code != -EACCES && err->code != -EPERM))
		return cli_fail(run->report.cli, err);
	program[length > 0 ? length : 0] = '\0';
	if (geteuid() != 0 && length > 0)
		snprintf(as_root, sizeof as_root, "or run `sudo %s ping %s`; ", program, host);
	return cli_fail_advice(
		run->report.cli, err,
		"%swithout ICMP, `ktrxer stamp %s` measures by UDP where `ktrxer serve` runs on that host", as_root,
		host);
}
#endif

static int ping_all(struct ping_run *run)
{
	struct ping_events events = { .probe = probe_report_events, .answer = ping_say_answer };
	struct ping_spec spec;
	struct ktrxer_error err = { 0 };
	struct json *end;
	uint64_t start_ns;
	int rc = make_spec(&spec, run->o, &err);

	if (rc == 0)
		rc = ping_new(&run->ping, &spec, &err);
	if (rc < 0)
		return ping_refused(run, &err);
	run->report.prober = ping_prober(run->ping);
	ping_say_what(run);
	if (probe_wait_start(&run->report, &start_ns) < 0)
		return EXIT_NO_RESULT;
	events.probe.context = run;
	ping_run(run->ping, start_ns, run->report.cli->stop_fd, &events);
	probe_batch_flush(&run->report);
	end = out_end(run->report.cli);
	ping_report(run, end);
	return out_finish(run->report.cli, end);
}

static int run_ping(struct cli *cli, const void *options)
{
	const struct ping_options *o = options;
	struct ping_run run = { .o = o, .report = { .cli = cli, .o = &o->p, .each = 1 } };
	int status;

	ping_batch_open(&run.report);
	status = ping_all(&run);
	ping_run_free(&run);
	return status;
}

const struct command cmd_ping = {
	.name = "ping",
	.summary = "Round-trip times, stamped by the kernel at both ends",
	.description = OPT_PROSE("Sends ICMP or UDP echo requests on a schedule and measures the round trip from the "
				 "kernel's stamp at the entry into this host's "
				 "packet scheduler to its stamp of the answer's arrival. This program's own delays are "
				 "not in it, the queue of this host's device is, "
				 "and is a figure of its own. Times are never taken out of a packet.\n\n"
				 "Loss is by the timeout (RFC 2681); answers that come later are counted apart. "
				 "Duplicates (RFC 5560) and reordering (RFC 4737) "
				 "are counted. The probes' own lateness is reported beside."),
	.examples = OPT_PROSE(
		"ktrxer ping 192.0.2.1\tOne probe a second until Ctrl-C.\n"
		"ktrxer ping 192.0.2.1 --interval 10ms --count 1000 --precise\tA thousand probes at exact times.\n"
		"ktrxer ping --udp 2001:db8::1 --jsonl\tUDP echo, a line of JSON for each probe.\n"),
	.options = ping_opts,
	.positionals = ping_positionals,
	.options_size = sizeof(struct ping_options),
	.run = run_ping,
	.measures = true,
};
