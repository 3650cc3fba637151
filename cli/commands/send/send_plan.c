/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The plan of `send`: path, engine, frame and schedule, each checked before the first probe. */
#include "send.h"

#include "bytes.h"
#include "error.h"
#include "schedule_list.h"
#include "units.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Past this rate a call per probe is the limit, and times are met in batches; where the kernel side polls there is no
 * call.
 */
#define RATE_FOR_BATCHES 150000
#define RATE_FOR_BATCHES_POLLED 1500000

enum {
	SLOTS_TIMING = 65536,
	SLOTS_LEAST = 4096, /* where memory is short; half a second at 8 kpps */
	SLOTS_RATE = 8192,  /* engines for a rate pin theirs in memory */
	SLOTS_RATE_POLLED =
		131072,         /* where the kernel side polls: at a million probes a second it runs dry after 130 ms */
	SLOTS_BYTES = 64 << 20, /* of those last ones, with what belongs to them */
	SLOT_BESIDE = 192,
};

static bool is_timed(const struct send_options *o)
{
	return o->interval_ns || o->rate.given || o->schedule_file || o->pcap;
}

static int check_replay_options(const struct send_options *o, struct ktrxer_error *err)
{
	if (!o->device)
		return ktrxer_fail(err, -EINVAL,
				   "--pcap sends frames as they are: name the device to send them on (--device DEV)");
	if (o->host || o->from.family || o->train > 1 || o->schedule_file)
		return ktrxer_fail(err, -EINVAL,
				   "--pcap takes addresses and times from the file: HOST, --from, --train and "
				   "--schedule do not go with it");
	if (o->vary.count || o->threads > 1)
		return ktrxer_fail(
			err, -EINVAL,
			"--pcap sends frames as they are, in their order: --vary and --threads do not go with it");
	if (o->speed.given && (o->interval_ns || o->rate.given))
		return ktrxer_fail(err, -EINVAL,
				   "--speed scales the file's timing, --interval and --rate put another in its place: "
				   "give one of them");
	if (o->speed.given && !o->speed.num)
		return ktrxer_fail(err, -EINVAL, "--speed 0 never sends");
	return 0;
}

static int check_options(const struct send_options *o, struct ktrxer_error *err)
{
	if ((o->interval_ns != 0) + o->rate.given + (o->schedule_file != NULL) > 1)
		return ktrxer_fail(err, -EINVAL,
				   "--interval, --rate and --schedule each say when to send: give one of them");
	if (o->pcap)
		return check_replay_options(o, err);
	if (o->speed.given || o->max_gap_ns || o->repeat > 1)
		return ktrxer_fail(err, -EINVAL, "--speed, --max-gap and --repeat go with --pcap FILE");
	if (!o->host)
		return ktrxer_fail(err, -EINVAL, "HOST is missing: the address or name to send to");
	if (!is_timed(o) && !o->count && !o->for_ns)
		return ktrxer_fail(
			err, -EINVAL,
			"without --interval, --rate or --schedule it sends as fast as it can: say how much by "
			"--count N or --for D");
	if (o->model == MODEL_POISSON && !o->interval_ns && !o->rate.given)
		return ktrxer_fail(err, -EINVAL, "--model poisson needs a mean: --interval D or --rate R");
	if (o->seed && o->model != MODEL_POISSON)
		return ktrxer_fail(err, -EINVAL, "--seed is for the intervals of --model poisson");
	if (o->gap_ns && o->train < 2)
		return ktrxer_fail(err, -EINVAL, "--gap is the distance inside a train: give --train N, two or more");
	if (o->rate.given && !o->rate.num)
		return ktrxer_fail(err, -EINVAL, "--rate 0 never sends");
	if (o->combine && o->vary.count < 2)
		return ktrxer_fail(err, -EINVAL, "--combine is for two fields or more: give --vary for each");
	if (o->threads > 1 && o->late == KTX_LATE_SHIFT && is_timed(o))
		return ktrxer_fail(
			err, -EINVAL,
			"--late shift moves all later probes, but each thread can move only its own: use --threads 1");
	return 0;
}

/* A stream has no times; reports of each probe need a slot each. */
static bool wants_stream(const struct send_run *run)
{
	return !is_timed(run->o) && !run->o->reports && !out_wants_samples(run->cli);
}

static int plan_path(struct send_run *run, bool with_mac, const char *device, struct ktrxer_error *err)
{
	const struct send_options *o = run->o;
	struct ktrxer_path_options p = KTRXER_PATH_OPTIONS_INIT;
	char name[sizeof run->path.device.name]; /* the path that is being written may hold it */

	if (device)
		snprintf(name, sizeof name, "%s", device);
	p.device = device ? name : NULL;
	p.from = o->from;
	p.to = run->to;
	p.next_hop_mac = o->next_hop_mac.given ? o->next_hop_mac.bytes : NULL;
	p.no_link_address = !with_mac;
	return ktrxer_path_resolve(&run->path, &p, err);
}

static enum ktx_purpose purpose_of(const struct send_options *o)
{
	if (!is_timed(o))
		return KTX_FOR_RATE;
	return o->rate.given && o->rate.num / o->rate.den > RATE_FOR_BATCHES ? KTX_FOR_RATE : KTX_FOR_TIMING;
}

/*
 * Half a second of probes: on a machine whose processors are all taken the thread that commits may not run for tens of
 * milliseconds, and the waiter must not run dry meanwhile. At a rate less.
 */
static uint32_t slots_for(const struct send_options *o, bool polled)
{
	uint32_t most = purpose_of(o) == KTX_FOR_TIMING ? SLOTS_TIMING
			: polled && is_timed(o)         ? SLOTS_RATE_POLLED
							: SLOTS_RATE;
	const uint64_t bytes = SLOT_BESIDE + (o->pcap ? 1500 : o->payload);
	uint64_t a_second = 16384;

	if (most == SLOTS_RATE_POLLED && most > SLOTS_BYTES / bytes)
		most = (uint32_t)(SLOTS_BYTES / bytes);

	if (o->rate.given)
		a_second = o->rate.num / o->rate.den;
	else if (o->interval_ns)
		a_second = (uint64_t)KTRXER_NS_PER_S / o->interval_ns * (o->train ? o->train : 1);
	if (a_second / 2 < o->train * 2)
		a_second = o->train * 4;
	if (o->count && a_second / 2 > o->count)
		a_second = o->count * 2;
	return a_second / 2 < 64 ? 64 : a_second / 2 > most ? most : (uint32_t)(a_second / 2);
}

static int engine_open(struct send_run *run, struct send_worker *worker, struct ktrxer_error *err)
{
	const struct send_options *o = run->o;
	struct ktx_options t = KTX_OPTIONS_INIT;
	struct ktx_info info;
	int rc;

	/* The stack's engines need not be bound to a device unless one was asked for; all others need the route's. */
	t.device = o->device || !ktx_engine_by_stack(o->engine, run->path.needs_stack) ? run->path.device.name : NULL;
	t.engine = worker->number ? run->info.engine : o->engine; /* all of them the same */
	t.queue = worker->number;
	t.purpose = purpose_of(o);
	t.wait = run->precise ? KTX_WAIT_SPIN : KTX_WAIT_SLEEP;
	t.late = (enum ktx_late_policy)o->late;
	t.late_ns = run->late_ns;
	t.retry_ns = o->retry_ns;
	t.cpu = (int)o->cpu;
	/* The work for a second stamp would be a gap between the packets of a train. */
	t.flags = (o->no_realtime ? KTX_NO_REALTIME : 0) | (o->no_stamps ? KTX_NO_STAMPS : 0) |
		  (o->train > 1 ? KTX_NO_SCHED : 0);
	t.slots = slots_for(o, false);
	t.frame_size = o->pcap ? 0 : 14 + 40 + 8 + (uint32_t)o->payload;
	t.reports = o->reports || out_wants_samples(run->cli) ? KTX_REPORT_ALL : KTX_REPORT_FAILURES;
	while ((rc = ktx_open(&worker->tx, &t, err)) == -ENOMEM && t.slots > SLOTS_LEAST)
		t.slots /= 4; /* half a second of them was a wish */
	if (rc < 0)
		return rc;
	ktx_info(worker->tx, &info);
	/*
	 * The engine that needs no privilege sleeps unless it is asked to spin; which engine `auto` takes is known only
	 * now.
	 */
	if (!o->precise && run->precise && info.features & KTX_CAN_UNPRIVILEGED) {
		run->precise = false;
		ktx_close(worker->tx);
		t.wait = KTX_WAIT_SLEEP;
		if ((rc = ktx_open(&worker->tx, &t, err)) < 0)
			return rc;
	}
	if (slots_for(o, true) == t.slots)
		return 0;
	if (!(info.features & KTX_CAN_POLL))
		return 0;
	/* Once more, now that it is known which engine it is. */
	run->polled_rate = true;
	if (o->rate.num / o->rate.den <= RATE_FOR_BATCHES_POLLED)
		t.purpose = KTX_FOR_TIMING;
	if (info.chosen)
		snprintf(run->auto_reason, sizeof run->auto_reason, "%s", info.reason);
	t.engine = info.engine;
	ktx_close(worker->tx);
	for (int more = 1; more >= 0; more--) { /* the kernel may have no memory for so many */
		t.slots = slots_for(o, more);
		rc = ktx_open(&worker->tx, &t, err);
		if (rc == 0)
			break;
	}
	return rc;
}

static int worker_new(struct send_run *run, struct ktrxer_error *err)
{
	struct send_worker *worker = &run->workers[run->workers_count];

	*worker = (struct send_worker){ .run = run, .number = run->workers_count++ };
	return engine_open(run, worker, err);
}

static int processors(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : CPU_SETSIZE;
}

/* The first worker chooses the engine; more workers exist only where that engine does not share the work by itself. */
static int plan_engine(struct send_run *run, struct ktrxer_error *err)
{
	const struct send_options *o = run->o;
	int rc;

	run->workers = calloc(o->threads, sizeof *run->workers);
	if (!run->workers)
		return ktrxer_fail(err, -ENOMEM, "no memory for %llu threads", (unsigned long long)o->threads);
	rc = worker_new(run, err);
	if (rc < 0)
		return rc;
	ktx_info(run->workers[0].tx, &run->info);
	run->reason = run->auto_reason[0] ? run->auto_reason : run->info.reason;
	run->timed = is_timed(o);
	run->streams = wants_stream(run) && run->info.features & KTX_CAN_TEMPLATE;
	/* Engines that make frames in the kernel poll there; engines with queues and timers (txtime) do not. */
	if (run->info.features & KTX_CAN_TEMPLATE && !run->streams && o->threads > 1 &&
	    o->threads >= (uint64_t)processors())
		return ktrxer_fail(err, -EINVAL,
				   "--threads %llu: each polls a processor in the %s engine, and one of %d must be "
				   "left to fill its slots",
				   (unsigned long long)o->threads, run->info.engine, processors());
	if (run->streams && o->threads > (uint64_t)processors())
		return ktrxer_fail(
			err, -EINVAL,
			"--threads %llu: each polls a processor in the %s engine, and this process may use %d",
			(unsigned long long)o->threads, run->info.engine, processors());
	while (rc == 0 && !run->streams && run->workers_count < o->threads)
		rc = worker_new(run, err);
	return rc;
}

/* The probe's number, which the payload carries, and what the user wants to vary. */
static int plan_fields(struct send_run *run, struct send_worker *worker, struct ktrxer_error *err)
{
	struct ktx_template_options t = KTX_TEMPLATE_OPTIONS_INIT;
	struct ktx_vary fields[VARY_FIELDS + 1];
	uint32_t count = 0;

	for (int i = 0; i < run->vary.count; i++)
		fields[count++] = run->vary.fields[i];
	t.every_combination = run->o->combine;
	if (worker->probe.number_at)
		fields[count++] = (struct ktx_vary){
			.field = KTX_FIELD_PAYLOAD, .how = KTX_VARY_COUNTER, .width = 8, .every = 1
		};
	t.frame = worker->probe.frame;
	t.length = worker->probe.length;
	t.link = run->info.link;
	t.fields = fields;
	t.field_count = count;
	ktx_template_free(worker->made);
	return ktx_template_new(&worker->made, &t, err);
}

/* An engine that sends by the host's stack may refuse what varies: found now, by the first few. */
static int check_frames(const struct send_run *run, const struct send_worker *worker, struct ktrxer_error *err)
{
	uint8_t *frame = malloc(worker->probe.length);
	int rc = frame ? 0 : ktrxer_fail(err, -ENOMEM, "no memory for a frame");

	for (uint64_t number = 0; rc == 0 && number <= (run->vary.count ? 2 : 0); number++) {
		ktx_template_fill(worker->made, frame, number);
		rc = ktx_check(worker->tx, frame, worker->probe.length, err);
	}
	free(frame);
	return rc;
}

static int plan_frame(struct send_run *run, struct send_worker *worker, uint16_t from_port, struct ktrxer_error *err)
{
	const struct send_options *o = run->o;
	struct ktrxer_frame_spec spec = KTRXER_FRAME_SPEC_INIT;
	struct ktrxer_path path = run->path;
	int rc;

	path.device.link = run->info.link;
	spec.path = &path;
	spec.proto = KTRXER_UDP;
	spec.from_port = from_port;
	spec.to_port = (uint16_t)o->port;
	spec.tos = (uint8_t)(o->dscp << 2 | o->ecn);
	spec.ttl = (uint8_t)o->ttl;
	spec.may_fragment = o->may_fragment;
	spec.payload_length = (uint32_t)o->payload;
	template_free(&worker->probe);
	rc = template_make(&worker->probe, &spec, err);
	if (rc < 0 || (rc = plan_fields(run, worker, err)) < 0)
		return rc;
	return check_frames(run, worker, err);
}

/*
 * A refusal by the engine comes before the first probe. If another program uses the source port that this command has
 * chosen, it chooses another port.
 */
static int worker_port(struct send_run *run, struct send_worker *worker, struct ktrxer_error *err)
{
	const uint32_t own = (uint32_t)getpid();
	int rc = -EADDRINUSE;

	if (run->o->from_port) {
		rc = plan_frame(run, worker, (uint16_t)run->o->from_port, err);
		if (rc == -EADDRINUSE && worker->number)
			ktrxer_fail(err, rc,
				    "--from-port: each thread of the %s engine needs a port of its own: leave it out",
				    run->info.engine);
		return rc;
	}
	for (uint32_t i = 0; i < 16 + worker->number && rc == -EADDRINUSE; i++)
		rc = plan_frame(run, worker, (uint16_t)(49152u + (own + i * 1021u) % 16384u), err);
	return rc;
}

static int plan_port(struct send_run *run, struct ktrxer_error *err)
{
	int rc = vary_networks(&run->vary, &run->path.source, &run->path.to, err);

	for (uint32_t i = 0; rc == 0 && i < run->workers_count; i++)
		rc = worker_port(run, &run->workers[i], err);
	return rc;
}

static int plan_amount(struct send_run *run, struct ktrxer_error *err)
{
	const struct send_options *o = run->o;

	run->wanted = o->count ? o->count : UINT64_MAX;
	if (o->interval_ns)
		run->interval_ns = o->interval_ns;
	else if (o->rate.given)
		/* for the verdict's scale only; the schedule itself keeps the fraction */
		run->interval_ns = (uint64_t)KTRXER_NS_PER_S * o->rate.den / o->rate.num * (o->train ? o->train : 1);
	/* Without an interval (a list, a file) the threshold is the least that there is. */
	run->late_ns = o->late_after_ns ? o->late_after_ns : verdict_late_ns(run->interval_ns);
	run->precise = o->precise >= 0;
	if (o->pcap || !o->schedule_file)
		return 0;
	run->list = calloc(1, sizeof *run->list);
	if (!run->list)
		return ktrxer_fail(err, -ENOMEM, "no memory for a schedule");
	return schedule_list_load(run->list, o->schedule_file, err);
}

static int seed_parse(uint8_t seed[16], const char *text, struct ktrxer_error *err)
{
	size_t n = strlen(text);

	memset(seed, 0, 16);
	if (n == 0 || n > 32 || n % 2 || strspn(text, "0123456789abcdefABCDEF") != n)
		return ktrxer_fail(err, -EINVAL, "--seed '%.40s': up to 32 hexadecimal digits, an even number of them",
				   text);
	for (size_t i = 0; i < n / 2; i++) {
		const char digits[3] = { text[2 * i], text[2 * i + 1], '\0' };

		seed[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return 0;
}

/* The file of --pcap has the times, unless timing is requested. */
static bool schedule_needed(const struct send_options *o)
{
	return is_timed(o) && (!o->pcap || o->interval_ns || o->rate.given);
}

int send_schedule(struct send_run *run, struct ktrxer_error *err)
{
	const struct send_options *o = run->o;
	struct ktrxer_schedule_options s = KTRXER_SCHEDULE_OPTIONS_INIT;
	int rc;

	run->end_ns = o->for_ns ? run->start_ns + o->for_ns : KTRXER_NEVER;
	if (!schedule_needed(o))
		return 0;
	s.kind = o->model == MODEL_POISSON ? KTRXER_SCHEDULE_POISSON
		 : run->list               ? KTRXER_SCHEDULE_LIST
					   : KTRXER_SCHEDULE_PERIODIC;
	s.start_ns = run->start_ns;
	s.train = (uint32_t)(o->train ? o->train : 1);
	s.train_gap_ns = o->gap_ns;
	if (o->interval_ns) {
		s.gap_num = o->interval_ns;
	} else if (o->rate.given) {
		/* R probes a second in trains of N: a train each N / R seconds */
		if (ktrxer_rate_gap(o->rate.num, o->rate.den, &s.gap_num, &s.gap_den) < 0 ||
		    __builtin_mul_overflow(s.gap_num, (uint64_t)s.train, &s.gap_num))
			return ktrxer_fail(err, -ERANGE,
					   "--rate: a train of %u in centuries is more than a schedule can hold",
					   s.train);
	}
	if (run->list) {
		s.offsets_ns = run->list->offsets_ns;
		s.offsets = run->list->count;
	}
	if (o->seed && (rc = seed_parse(s.seed, o->seed, err)) < 0)
		return rc;
	for (uint32_t i = 0; i < run->workers_count; i++)
		if ((rc = ktrxer_schedule_new(&run->workers[i].schedule, &s, err)) < 0)
			return rc;
	return 0;
}

static int plan_replay(struct send_run *run, struct ktrxer_error *err)
{
	int rc = ktrxer_device_get(&run->path.device, run->o->device, err);

	if (rc < 0 || (rc = plan_engine(run, err)) < 0)
		return rc;
	if (!(run->info.features & KTX_CAN_WHOLE_FRAME))
		return ktrxer_fail(err, -EOPNOTSUPP,
				   "the %s engine cannot send whole frames as they are in a file: use packet",
				   run->info.engine);
	return send_replay_open(run, err);
}

static int plan_probe(struct send_run *run, struct ktrxer_error *err)
{
	const struct send_options *o = run->o;
	int rc = plan_path(run, false, o->device, err);

	if (rc < 0 || (rc = plan_engine(run, err)) < 0)
		return rc;
	run->reason = run->path.needs_stack && !(run->info.features & KTX_CAN_WHOLE_FRAME) && run->info.chosen
			      ? "whole frames from this host to itself are dropped by its kernel as forged"
			      : run->reason;
	if (run->path.needs_stack && run->info.features & KTX_CAN_WHOLE_FRAME)
		cli_complain(run->cli, "whole frames from this host to itself are dropped on arrival as forged: the "
				       "raw and udp engines get through");
	if (run->info.features & KTX_CAN_WHOLE_FRAME && (rc = plan_path(run, true, run->path.device.name, err)) < 0)
		return rc;
	return plan_port(run, err);
}

static void schedules_free(struct send_run *run)
{
	for (uint32_t i = 0; i < run->workers_count; i++) {
		ktrxer_schedule_free(run->workers[i].schedule);
		run->workers[i].schedule = NULL;
	}
}

int send_plan(struct send_run *run, struct ktrxer_error *err)
{
	const struct send_options *o = run->o;
	struct opt_rate rate = o->rate;
	uint8_t seed[16];
	int rc;

	if (o->interval_ns)
		rate = (struct opt_rate){ .num = (uint64_t)KTRXER_NS_PER_S * (o->train ? o->train : 1),
					  .den = o->interval_ns,
					  .given = true };
	if ((rc = check_options(o, err)) < 0 ||
	    (o->host && (rc = cli_resolve(o->host, &o->from, o->v4, o->v6, &run->to, err)) < 0) ||
	    (rc = vary_add_all(&run->vary, &o->vary, run->to.family, err)) < 0 ||
	    (o->seed && (rc = seed_parse(seed, o->seed, err)) < 0) ||
	    (!o->pcap && (rc = cli_guard_rate(&run->to, &rate, o->flood, err)) < 0) ||
	    (rc = vary_guard(&run->vary, &rate, o->flood, err)) < 0 || (rc = plan_amount(run, err)) < 0)
		return rc;
	if ((rc = o->pcap ? plan_replay(run, err) : plan_probe(run, err)) < 0)
		return rc;
	/* A bad list or an impossible train is found now, not when the time has come. */
	run->start_ns = ktrxer_now_ns();
	if ((rc = send_schedule(run, err)) < 0)
		return rc;
	schedules_free(run);
	return o->reports ? send_csv_open(run, err) : 0;
}

void send_release(struct send_run *run)
{
	schedules_free(run);
	for (uint32_t i = 0; i < run->workers_count; i++) {
		ktx_close(run->workers[i].tx);
		ktx_template_free(run->workers[i].made);
		template_free(&run->workers[i].probe);
	}
	free(run->workers);
	vary_free(&run->vary);
	send_replay_close(run);
	if (run->list)
		schedule_list_free(run->list);
	free(run->list);
	if (run->csv)
		fclose(run->csv);
}
