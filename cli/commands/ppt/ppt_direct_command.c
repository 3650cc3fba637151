/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer ppt direct`: packet processing time of this host and of a reflector's host, by the stamps of each layer. */
#include "ppt_direct.h"

#include "busy_threads.h"
#include "error.h"
#include "path_find.h"
#include "shared_options.h"

#include <errno.h>
#include <sys/socket.h>

#define FIELD(name) offsetof(struct ppt_direct_options, name)

static const struct opt ppt_direct_opts[] = {
	OPTION_COUNT(FIELD(count), .fallback = "200", .min = 1, .max = 1000000, .heading = "Probes",
		     .help = "Probes of each phase"),
	OPTION_INTERVAL(FIELD(interval_ns), "two probes, at least; a probe waits for the answer to the one before it",
			.fallback = "10ms", .min = 100000, .max = 60ULL * 1000000000),
	OPTION_TIMEOUT(FIELD(timeout_ns), .fallback = "1s", .max = 60ULL * 1000000000,
		       .help = "Without an answer for so long a probe is lost"),
	OPTION_PAYLOAD(FIELD(payload), OPT_SIZE, .argument = "BYTES", .min = HOST_PAYLOAD_LEAST,
		       .max = HOST_PAYLOAD_MOST, .help = "Bytes of UDP payload; by default the smallest, 64"),
	{ .name = "busy-threads",
	  .type = OPT_INT,
	  .offset = FIELD(busy_threads),
	  .argument = "N",
	  .fallback = "-1",
	  .min = (uint64_t)-1,
	  .max = BUSY_THREADS_MOST,
	  .help = "Computing threads on this host in the second phase; -1: one a processor; 0: no second phase" },

	OPTION_DEVICE_OF_ROUTE(FIELD(device), ", whose NIC stamps are used", "How"),
	OPTION_PORT(FIELD(port), .fallback = SERVER_PORT,
		    .help = "Port of the reflector: `ktrxer serve` has " SERVER_PORT),
	OPTION_FROM(FIELD(from), ""),
	OPTIONS_FAMILY(FIELD(v4), FIELD(v6)),
	{ 0 },
};

static const struct opt_positional ppt_direct_positionals[] = {
	{ .name = "HOST", .offset = FIELD(host), .help = "Address or name of a host where `ktrxer serve` runs" },
	{ 0 },
};

static int plan_probes(struct ppt_direct *run, struct ktrxer_error *err)
{
	const struct ppt_direct_options *o = run->o;
	uint32_t room;
	int rc = cli_resolve(o->host, &o->from, o->v4, o->v6, &run->plan.to, err);

	if (rc < 0 || (rc = path_find(&run->path, o->device, &o->from, &run->plan.to, false, err)) < 0)
		return rc;
	room = run->path.mtu - (run->plan.to.family == AF_INET6 ? 48 : 28);
	if (o->payload > room)
		return ktrxer_fail(err, -EINVAL,
				   "a payload of %llu bytes does not fit the MTU of %u on '%s': give %u at most, "
				   "because the fragments of a packet have one stamp (--payload)",
				   (unsigned long long)o->payload, run->path.mtu, run->path.device.name, room);
	run->plan.from = o->from;
	run->plan.device = run->path.device.name;
	run->plan.device_index = run->path.device.index;
	run->plan.bound = o->device != NULL;
	run->plan.witness = &run->witness;
	run->plan.port = (uint16_t)o->port;
	run->plan.payload = (uint32_t)o->payload;
	run->plan.count = o->count;
	run->plan.interval_ns = o->interval_ns;
	run->plan.timeout_ns = o->timeout_ns;
	run->plan.stop_fd = run->cli->stop_fd;
	return 0;
}

static int measure_phase(struct ppt_direct *run, enum ppt_direct_phase phase, struct ktrxer_error *err)
{
	struct busy_threads *busy = NULL;
	int rc;

	if (phase == DIRECT_LOADED && (rc = busy_threads_start(&busy, run->busy_threads)) < 0)
		return ktrxer_fail(err, rc, "%u busy threads could not be started: give fewer (--busy-threads)",
				   run->busy_threads);
	run->done = phase + 1;
	rc = host_times_run(&run->phases[phase], &run->plan, err);
	busy_threads_stop(busy);
	return rc;
}

static int direct_all(struct ppt_direct *run)
{
	const int64_t busy = run->o->busy_threads;
	struct ktrxer_error err = { 0 };
	uint64_t start_ns;
	int rc = plan_probes(run, &err);

	if (rc < 0)
		return cli_fail(run->cli, &err);
	run->busy_threads = busy < 0 ? busy_threads_processors() : (uint32_t)busy;
	ppt_direct_say_what(run);
	if (cli_wait_start(run->cli, &start_ns) < 0)
		return EXIT_NO_RESULT;
	for (int phase = 0; phase < (run->busy_threads ? DIRECT_PHASES : 1); phase++) {
		if (measure_phase(run, (enum ppt_direct_phase)phase, &err) < 0)
			return cli_fail(run->cli, &err);
		if (run->phases[phase].stopped)
			break;
	}
	return ppt_direct_finish(run);
}

static int run_ppt_direct(struct cli *cli, const void *options)
{
	struct ppt_direct run = { .cli = cli, .o = options };
	const int status = direct_all(&run);

	for (int phase = 0; phase < run.done; phase++)
		host_times_free(&run.phases[phase]);
	return status;
}

const struct command cmd_ppt_direct = {
	.name = "ppt direct",
	.summary = "Packet processing time of this host and of a server, by the stamps of each layer",
	.description = OPT_PROSE(
		"Sends probes of STAMP (RFC 8762), one at a time, to a host where `ktrxer serve` runs, and measures "
		"how long a packet needs between program and wire in both hosts. In this host: from before the send "
		"call to the packet scheduler, to the driver, to the NIC; and from the NIC to the kernel's arrival "
		"stamp, to the return of the receive call. In the far host: from the kernel's arrival stamp to before "
		"the send call of the answer, and to the driver's stamp of the answer, which a later answer carries "
		"(follow-up telemetry, RFC 8972). Each difference is of two stamps of one host, so it needs no "
		"agreement of clocks.\n\n"
		"The first phase measures the host as it is, the second one with computing threads, one for each "
		"processor of this host. For a load of packets, or of the far host, run `ktrxer flow` at the same "
		"time.\n\n"
		"A layer whose stamps the device or the far host does not give is named as not known. Without NIC "
		"stamps the time between driver and wire, and between wire and the kernel's arrival stamp (interrupt, "
		"driver), is in no figure. NIC stamps need CAP_NET_ADMIN, or a NIC where they are already on."),
	.examples = OPT_PROSE("ktrxer ppt direct far\tBoth phases, four seconds.\n"
			      "ktrxer ppt direct far --busy-threads 0 --json\tThe hosts as they are, for a program.\n"
			      "ktrxer ppt direct far --payload 1472 --count 1000\tLarge packets.\n"),
	.options = ppt_direct_opts,
	.positionals = ppt_direct_positionals,
	.options_size = sizeof(struct ppt_direct_options),
	.run = run_ppt_direct,
	.measures = true,
};
