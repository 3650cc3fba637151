/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Cross traffic as in the papers: packets of 100 to 1400 bytes, uniformly, at random (Poisson) times, from the sender's
 * own host through its stack. Seeded: the same seed gives the same packets. Packets that arrive are counted at the far
 * end. The same traffic in the other direction, uncounted, if requested.
 */
#include "bench.h"

#include "error.h"
#include "thread.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	SIZE_MIN = 100,
	SIZE_MOST = 1400, /* on IP */
	HEADERS = 28,
	SLOTS = 2048,
	FROM_PORT = 40999,
	ENGINES = 16,
	LATE_NS = 10 * 1000 * 1000,
	SETTLE_NS = 100 * 1000 * 1000,
};

struct bench_cross {
	struct ktx *tx;
	struct ktrxer_path path;
	struct ktrxer_schedule *schedule;
	pthread_t thread;
	atomic_bool stop;
	uint64_t random;
};

/* The engine needs no privilege, as for the traffic of any other program. */
static int choose(char *name, size_t size, const char *device, struct ktrxer_error *err)
{
	struct ktx_engine_info engines[ENGINES];
	int n = ktx_engines(engines, ENGINES, device);

	for (int i = 0; i < n && i < ENGINES; i++)
		if (engines[i].available && engines[i].features & KTX_CAN_UNPRIVILEGED) {
			snprintf(name, size, "%s", engines[i].name);
			return 0;
		}
	return ktrxer_fail(err, -ENOENT, "no engine sends by the host's stack, and cross traffic is to");
}

static uint32_t next_size(struct bench_cross *c)
{
	c->random = c->random * 6364136223846793005u + 1442695040888963407u;
	return SIZE_MIN + (uint32_t)((c->random >> 33) % (SIZE_MOST - SIZE_MIN + 1));
}

static int commit_one(struct bench_cross *c, const struct ktrxer_deadline *due)
{
	struct ktrxer_frame_spec spec = KTRXER_FRAME_SPEC_INIT;
	struct ktx_probe probe = { .id = due->index, .at_ns = due->at_ns };
	struct ktrxer_error err;
	struct ktx_slot slot;
	int rc = ktx_reserve(c->tx, &slot);

	if (rc < 0)
		return rc;
	spec.path = &c->path;
	spec.proto = KTRXER_UDP;
	spec.from_port = FROM_PORT;
	spec.to_port = BENCH_CROSS_PORT;
	spec.payload_length = next_size(c) - HEADERS;
	rc = ktrxer_frame_build(slot.frame, slot.capacity, &spec);
	if (rc < 0)
		return rc;
	probe.length = (uint32_t)rc;
	return ktx_commit(c->tx, &probe, &err);
}

static void *send_cross(void *argument)
{
	struct bench_cross *c = argument;
	struct ktrxer_deadline due;

	while (!atomic_load(&c->stop) && ktrxer_schedule_next(c->schedule, &due) == 0) {
		int rc;

		while ((rc = commit_one(c, &due)) == -EAGAIN && !atomic_load(&c->stop)) {
			struct pollfd fd = { .fd = ktx_fd(c->tx), .events = POLLIN };

			poll(&fd, 1, 20);
		}
		if (rc < 0 && rc != -EAGAIN)
			break; /* the far end will count too few, and the row says so */
	}
	ktx_cancel(c->tx);
	return NULL;
}

static int start(struct bench_cross **out, const struct ktrxer_path *path, uint64_t seed, uint64_t pps,
		 struct ktrxer_error *err)
{
	struct ktrxer_schedule_options s = KTRXER_SCHEDULE_OPTIONS_INIT;
	struct ktx_options t = KTX_OPTIONS_INIT;
	struct bench_cross *c;
	struct ktx_info info;
	char engine[BENCH_NAME];
	int rc;

	if ((rc = choose(engine, sizeof engine, path->device.name, err)) < 0)
		return rc;
	c = calloc(1, sizeof *c);
	if (!c)
		return ktrxer_fail(err, -ENOMEM, "no memory for cross traffic");
	c->path = *path;
	c->random = seed * 0x9e3779b97f4a7c15u + 1;
	t.device = path->device.name;
	t.engine = engine;
	t.purpose = KTX_FOR_RATE;
	t.wait = KTX_WAIT_SLEEP;
	/* Skip late probes: a burst after a time without the processor is other traffic than requested. */
	t.late = KTX_LATE_SKIP;
	t.late_ns = LATE_NS;
	t.flags = KTX_NO_REALTIME | KTX_NO_LOCK | KTX_NO_STAMPS;
	t.slots = SLOTS;
	t.frame_size = 14 + SIZE_MOST;
	t.reports = KTX_REPORT_NONE;
	if ((rc = ktx_open(&c->tx, &t, err)) < 0)
		goto free_it;
	ktx_info(c->tx, &info);
	c->path.device.link = info.link;
	memset(c->path.device.mac, 0, sizeof c->path.device.mac); /* the host's stack writes them */
	memset(c->path.next_hop_mac, 0, sizeof c->path.next_hop_mac);
	s.kind = KTRXER_SCHEDULE_POISSON;
	s.start_ns = ktrxer_now_ns() + KTRXER_NS_PER_MS;
	s.gap_num = (uint64_t)KTRXER_NS_PER_S;
	s.gap_den = pps;
	memcpy(s.seed, &seed, sizeof seed);
	if ((rc = ktrxer_schedule_new(&c->schedule, &s, err)) < 0)
		goto close_it;
	if ((rc = cli_thread_start(&c->thread, "bench-cross", send_cross, c)) < 0) {
		ktrxer_fail(err, rc, "no thread for cross traffic");
		goto free_schedule;
	}
	*out = c;
	return 0;

free_schedule:
	ktrxer_schedule_free(c->schedule);
close_it:
	ktx_close(c->tx);
free_it:
	free(c);
	return rc;
}

static int start_back(struct bench_run *run, uint64_t pps, struct ktrxer_error *err)
{
	struct ktrxer_path_options o = KTRXER_PATH_OPTIONS_INIT;
	struct ktrxer_path path;
	int rc = bench_net_far(&run->net);

	if (rc < 0)
		return ktrxer_fail(err, rc, "--both-ways: the far host cannot be entered");
	o.device = run->net.far_device;
	o.to = run->path.source;
	rc = ktrxer_path_resolve(&path, &o, err);
	if (rc == 0)
		rc = start(&run->cross[1], &path, run->o->seed + 1, pps, err);
	if (bench_net_near(&run->net) < 0 && rc == 0)
		rc = ktrxer_fail(err, -EIO, "--both-ways: no route from the far host to this one");
	return rc;
}

int bench_cross_start(struct bench_run *run, uint64_t pps, struct ktrxer_error *err)
{
	struct timespec settle = { .tv_nsec = SETTLE_NS };
	int rc;

	if (!pps)
		return 0;
	rc = start(&run->cross[0], &run->path, run->o->seed, pps, err);
	if (rc == 0 && run->o->both_ways)
		rc = start_back(run, pps, err);
	if (rc == 0)
		nanosleep(&settle, NULL);
	return rc;
}

static void stop(struct bench_cross **cross)
{
	struct bench_cross *c = *cross;

	if (!c)
		return;
	atomic_store(&c->stop, true);
	pthread_join(c->thread, NULL);
	ktx_close(c->tx);
	ktrxer_schedule_free(c->schedule);
	free(c);
	*cross = NULL;
}

void bench_cross_stop(struct bench_run *run)
{
	stop(&run->cross[0]);
	stop(&run->cross[1]);
}
