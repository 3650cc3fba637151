/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A turn by one of the library's engines, whichever: through the public calls alone, as `ktrxer send` does it. */
#include "bench.h"

#include "error.h"
#include "template.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DRAIN_NS (2 * KTRXER_NS_PER_S)

enum {
	FROM_PORT = 41000,
	SLOTS_MIN = 256,
	SLOTS_MAX = 4096,

	AHEAD_NS = 500 * 1000 * 1000,
	START_AHEAD_NS = 5 * 1000 * 1000, /* between the last preparation and the first deadline */
	START_AHEAD_KERNEL_NS = 150 * 1000 *
		1000, /* the same where the kernel waits, and its side has to be set up first */
};

struct sender {
	struct bench_run *run;
	const struct bench_job *job;
	struct bench_turn *turn;
	struct ktx *tx;
	struct template probe;
	struct ktrxer_schedule *schedule;
	uint64_t next, wanted, end_ns, start_ahead_ns;
	bool has_thread; /* the library's */
};

static void read_reports(struct sender *s)
{
	struct ktx_report reports[64];

	for (int n; (n = ktx_reports(s->tx, reports, 64)) > 0;)
		for (int i = 0; i < n; i++)
			if (reports[i].status == KTX_SENT && reports[i].id < s->run->slots)
				s->turn->sent_ns[reports[i].id] =
					reports[i].departure_ns ? reports[i].departure_ns : reports[i].sent_ns;
}

static void rest(struct sender *s, uint64_t until_ns)
{
	struct pollfd fds[2] = { { .fd = s->run->cli->stop_fd, .events = POLLIN },
				 { .fd = ktx_fd(s->tx), .events = POLLIN } };
	uint64_t now = ktrxer_now_ns(), span = until_ns > now ? until_ns - now : 0;
	struct timespec t;

	if (span > (uint64_t)KTRXER_NS_PER_S)
		span = (uint64_t)KTRXER_NS_PER_S;
	t = (struct timespec){ .tv_sec = (time_t)(span / KTRXER_NS_PER_S), .tv_nsec = (long)(span % KTRXER_NS_PER_S) };
	ppoll(fds, 2, &t, NULL);
}

static int commit(struct sender *s, const struct ktrxer_deadline *due, struct ktrxer_error *err)
{
	struct ktx_probe probe = { .id = s->next, .length = s->probe.length };
	struct ktx_slot slot;
	int rc = ktx_reserve(s->tx, &slot);

	if (rc < 0)
		return rc == -EAGAIN ? rc : ktrxer_fail(err, rc, "no slot: the device went away?");
	if (due) {
		probe.at_ns = due->at_ns;
		probe.flags = due->train_goes_on ? KTX_TRAIN_GOES_ON : 0;
	}
	template_fill(&s->probe, slot.frame, s->next);
	rc = ktx_commit(s->tx, &probe, err);
	if (rc == 0)
		s->next++;
	return rc;
}

/*
 * Waits for the reports of all committed probes, until a time limit. Probes without a report by then are a failure of
 * the engine, and the bench does not wait for them any longer.
 */
static int drain(struct sender *s, struct ktrxer_error *err)
{
	const struct bench_job *job = s->job;
	const uint64_t ahead = job->method == BENCH_OIR ? s->start_ahead_ns + job->count * job->interval_ns : AHEAD_NS;
	const uint64_t end = ktrxer_now_ns() + DRAIN_NS + (job->pattern == BENCH_TIMED ? ahead + job->interval_ns : 0);
	struct ktx_accounts a;

	while (!cli_stopped(s->run->cli)) {
		read_reports(s);
		if (ktx_drain(s->tx, ktrxer_now_ns() + 50 * KTRXER_NS_PER_MS) == 0)
			break;
		if (ktrxer_now_ns() < end)
			continue;
		ktx_accounts(s->tx, &a);
		return ktrxer_fail(err, -ETIMEDOUT,
				   "of %llu probes %llu were still open 2 s after the end (%llu sent, %llu failed)",
				   (unsigned long long)a.requested, (unsigned long long)a.pending,
				   (unsigned long long)a.sent, (unsigned long long)a.failed);
	}
	read_reports(s);
	return 0;
}

static int send_all(struct sender *s, struct ktrxer_error *err)
{
	struct ktrxer_deadline due;
	bool have = false;
	int rc;

	while (s->next < s->wanted && !cli_stopped(s->run->cli)) {
		if (!s->schedule && ktrxer_now_ns() >= s->end_ns)
			break;
		if (s->schedule && !have) {
			if (ktrxer_schedule_next(s->schedule, &due) < 0)
				break;
			have = true;
		}
		if (s->schedule && due.at_ns > ktrxer_now_ns() + AHEAD_NS) {
			read_reports(s);
			rest(s, due.at_ns - AHEAD_NS / 2);
			continue;
		}
		rc = commit(s, s->schedule ? &due : NULL, err);
		if (rc == -EAGAIN) {
			read_reports(s);
			rest(s, KTRXER_NEVER);
			continue;
		}
		if (rc < 0)
			return rc;
		have = false;
	}
	return drain(s, err);
}

static void sleep_to(uint64_t at_ns)
{
	const struct timespec t = { .tv_sec = (time_t)(at_ns / KTRXER_NS_PER_S),
				    .tv_nsec = (long)(at_ns % KTRXER_NS_PER_S) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* OIR, OFR and OSM: this thread is the tool, which sleeps as tools do. */
static int send_by_method(struct sender *s, struct ktrxer_error *err)
{
	const struct bench_job *job = s->job;
	struct ktrxer_deadline due;
	uint64_t next;

	while (s->next < s->wanted && !cli_stopped(s->run->cli) && ktrxer_schedule_next(s->schedule, &due) == 0) {
		int rc;

		if (job->method == BENCH_OFR)
			sleep_to(due.at_ns > job->ahead_ns ? due.at_ns - job->ahead_ns : 0);
		if (job->method == BENCH_OSM) {
			if (s->next)
				usleep((useconds_t)(job->interval_ns / 1000));
			else
				sleep_to(due.at_ns);
			due.at_ns = 0;
		}
		while ((rc = commit(s, &due, err)) == -EAGAIN && !cli_stopped(s->run->cli))
			rest(s, KTRXER_NEVER);
		if (rc < 0)
			return rc;
		if (!s->has_thread)
			ktx_pump(s->tx, &next);
	}
	return drain(s, err);
}

static int open_engine(struct sender *s, const struct bench_who *who, struct ktrxer_error *err)
{
	const struct bench_job *job = s->job;
	const bool for_rate = job->pattern == BENCH_FLOOD || job->trains_matter;
	struct ktx_options t = KTX_OPTIONS_INIT;
	uint64_t slots = job->pattern == BENCH_FLOOD ? 2048 : job->count * job->train;

	t.device = s->run->net.near_device;
	t.engine = who->engine_name;
	t.purpose = for_rate ? KTX_FOR_RATE : KTX_FOR_TIMING;
	t.flags = for_rate ? KTX_NO_STAMPS : 0;
	t.slots = (uint32_t)(slots < SLOTS_MIN                               ? SLOTS_MIN
			     : slots > SLOTS_MAX && job->method != BENCH_OIR ? SLOTS_MAX
									     : slots);
	/*
	 * OSM is this thread's own call into the device, as RSM is; where the kernel waits, a pump must serve
	 * it.
	 */
	s->has_thread = job->method != BENCH_OSM || job->kernel_waits;
	if (!s->has_thread)
		t.flags |= KTX_CALLER_PUMPS;
	t.frame_size = 14 + 40 + 8 + job->payload;
	t.reports = job->reports ? KTX_REPORT_ALL : KTX_REPORT_NONE;
	return ktx_open(&s->tx, &t, err);
}

int bench_frame(struct bench_run *run, struct ktx *tx, struct template *probe, uint16_t port, uint16_t from_port,
		uint32_t payload, struct ktrxer_error *err)
{
	struct ktrxer_frame_spec spec = KTRXER_FRAME_SPEC_INIT;
	struct ktrxer_path path = run->path;
	struct ktx_info info;

	ktx_info(tx, &info);
	path.device.link = info.link;
	if (!(info.features & KTX_CAN_WHOLE_FRAME)) { /* the host's stack writes them */
		memset(path.device.mac, 0, sizeof path.device.mac);
		memset(path.next_hop_mac, 0, sizeof path.next_hop_mac);
	}
	spec.path = &path;
	spec.proto = KTRXER_UDP;
	spec.from_port = from_port;
	spec.to_port = port;
	spec.payload_length = payload;
	return template_make(probe, &spec, err);
}

static int make_frame(struct sender *s, uint16_t port, struct ktrxer_error *err)
{
	struct ktx_info info;

	ktx_info(s->tx, &info);
	s->start_ahead_ns = info.features & KTX_CAN_KERNEL_WAIT || s->job->method == BENCH_OIR ? START_AHEAD_KERNEL_NS
											       : START_AHEAD_NS;
	return bench_frame(s->run, s->tx, &s->probe, port, (uint16_t)(FROM_PORT + s->run->turns % 4096),
			   s->job->payload, err);
}

static int make_schedule(struct sender *s, struct ktrxer_error *err)
{
	const struct bench_job *job = s->job;
	struct ktrxer_schedule_options o = KTRXER_SCHEDULE_OPTIONS_INIT;

	s->wanted = UINT64_MAX;
	s->end_ns = ktrxer_now_ns() + job->for_ns;
	if (job->pattern == BENCH_FLOOD)
		return 0;
	s->wanted = job->count * job->train;
	o.kind = KTRXER_SCHEDULE_PERIODIC;
	o.start_ns = ktrxer_now_ns() + s->start_ahead_ns;
	o.gap_num = job->interval_ns;
	o.train = job->train;
	o.train_gap_ns = job->train_gap_ns;
	return ktrxer_schedule_new(&s->schedule, &o, err);
}

int bench_send_engine(struct bench_run *run, const struct bench_who *who, const struct bench_job *job, uint16_t port,
		      struct bench_turn *turn, struct ktrxer_error *err)
{
	struct sender s = { .run = run, .job = job, .turn = turn };
	struct ktx_accounts a;
	int rc;

	if ((rc = open_engine(&s, who, err)) == 0 && (rc = make_frame(&s, port, err)) == 0 &&
	    (rc = make_schedule(&s, err)) == 0)
		rc = job->method == BENCH_OWN ? send_all(&s, err) : send_by_method(&s, err);
	if (s.tx) {
		ktx_accounts(s.tx, &a);
		turn->sent = a.sent;
		turn->driver = a.driver;
		turn->wire = a.nic;
		turn->queued = a.queued;
		if (rc == 0 && a.requested != a.sent + a.failed + a.skipped + a.cancelled + a.pending)
			rc = ktrxer_fail(err, -EBADMSG, "its accounts do not close");
	}
	ktx_close(s.tx);
	ktrxer_schedule_free(s.schedule);
	template_free(&s.probe);
	return rc;
}
