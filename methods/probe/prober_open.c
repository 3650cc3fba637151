/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The preparation of a client that probes one host: path, engine, identifier, schedule. */
#include "base_limits.h"
#include "prober.h"

#include "error.h"
#include "path_find.h"
#include "short_slice.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REALTIME_INTERVAL_NS ((uint64_t)KTRXER_NS_PER_MS)
enum { SLOTS_MAX = 2048, SLOTS_BYTES = 4 << 20 };

int prober_begin(struct prober *p, const struct probe_spec *spec, uint32_t each, struct ktrxer_error *err)
{
	p->spec = *spec;
	p->path.to = spec->to;
	p->each = each;
	p->receiver.fd = -1;
	if (getrandom(p->seed, sizeof p->seed, 0) != sizeof p->seed)
		return ktrxer_fail(err, -EIO, "no random numbers from the kernel");
	p->result.wanted = spec->count ? spec->count : UINT64_MAX;
	p->unhurried = !spec->precise && spec->interval_ns <= 25 * (uint64_t)KTRXER_NS_PER_MS;
	/*
	 * Enough that a waiter of real-time priority does not starve when a busy machine keeps this thread, which has
	 * none, from its processor; little enough that stopping cancels little.
	 */
	p->ahead_ns = (uint64_t)(spec->precise ? 250 : 50) * KTRXER_NS_PER_MS;
	p->result.rtt = ktrxer_hist_new();
	p->result.own_queue = ktrxer_hist_new();
	if (!p->result.rtt || !p->result.own_queue)
		return ktrxer_fail(err, -ENOMEM, "no memory for the results");
	return 0;
}

/*
 * Slots are for the probes that are committed ahead of their time; and, in half of them, for those that wait in this
 * host's own queue (lib/tx/tx_done.c).
 */
static uint32_t slots_for(const struct prober *p, uint32_t slots, uint32_t frame_size)
{
	const uint64_t queued_ns = 2 * KTX_OWN_QUEUE_WAIT_S * (uint64_t)KTRXER_NS_PER_S,
		       interval_ns = p->spec.interval_ns;

	while ((slots < 1024 && slots * interval_ns < p->ahead_ns * p->each) ||
	       (slots < SLOTS_MAX && (uint64_t)slots * frame_size < SLOTS_BYTES &&
		slots * interval_ns < queued_ns * p->each))
		slots *= 2;
	return slots;
}

static int open_engine(struct prober *p, uint32_t slots, uint32_t frame_size, struct ktrxer_error *err)
{
	const struct probe_spec *s = &p->spec;
	struct ktx_options t = KTX_OPTIONS_INIT;
	const bool by_stack = ktx_engine_by_stack(s->engine, p->path.needs_stack);

	t.device = s->device || !by_stack || p->path.to.scope_id ? p->path.device.name : NULL;
	t.engine = s->engine;
	t.wait = s->precise ? KTX_WAIT_SPIN : KTX_WAIT_SLEEP;
	t.flags = s->precise ? 0 : KTX_CALLER_PUMPS | KTX_NO_LOCK;
	t.cpu = s->cpu;
	/* no second try after a drop of this host's full queue: it would be late, and the queue is measured, too */
	t.retry_ns = 1;
	t.late_ns = s->late_ns;
	t.slots = slots_for(p, slots, frame_size);
	t.frame_size = frame_size;
	return ktx_open(&p->tx, &t, err);
}

int prober_open(struct prober *p, uint32_t slots, uint32_t frame_size, struct ktrxer_error *err)
{
	const struct probe_spec *s = &p->spec;
	int rc;

	if ((rc = path_find(&p->path, s->device, &s->from, &s->to, false, err)) < 0 ||
	    (rc = open_engine(p, slots, frame_size, err)) < 0)
		return rc;
	ktx_info(p->tx, &p->info);
	if (!(p->info.features & KTX_CAN_WHOLE_FRAME))
		return 0;
	if (p->path.needs_stack)
		return ktrxer_fail(err, -EOPNOTSUPP,
				   "whole frames from this host to itself are dropped by its kernel as forged: use the "
				   "engine udp");
	return path_find(&p->path, s->device, &s->from, &s->to, true, err);
}

int prober_identify(struct prober *p, int (*make)(void *client, struct ktrxer_error *err), struct ktrxer_error *err)
{
	int rc = -EADDRINUSE;

	/*
	 * The first commit makes the udp engine's socket: its identifier or port may be taken, then another is tried.
	 */
	for (int tries = 0; tries < 16 && rc == -EADDRINUSE; tries++) {
		uint16_t random;

		if (getrandom(&random, sizeof random, 0) != sizeof random)
			return ktrxer_fail(err, -EIO, "no random numbers from the kernel");
		p->id = (uint16_t)(49152u | random);
		template_free(&p->frame);
		rc = make(p->client, err);
		/*
		 * Nothing is sent by this: it makes and binds what the engine needs, and is where a frame is refused.
		 */
		if (rc == 0)
			rc = ktx_check(p->tx, p->frame.frame, p->frame.length, err);
	}
	return rc;
}

int prober_schedule(struct prober *p, struct ktrxer_error *err)
{
	struct ktrxer_schedule_options s = KTRXER_SCHEDULE_OPTIONS_INIT;

	s.kind = p->spec.poisson ? KTRXER_SCHEDULE_POISSON : KTRXER_SCHEDULE_PERIODIC;
	s.start_ns = p->start_ns;
	s.gap_num = p->spec.interval_ns;
	memcpy(s.seed, p->seed, sizeof s.seed);
	ktrxer_schedule_free(p->schedule);
	p->schedule = NULL;
	return ktrxer_schedule_new(&p->schedule, &s, err);
}

/*
 * Requests real-time priority where it is permitted, so that the thread runs when a sleep ends beside flows on a busy
 * processor; the sleep until the start is one. It is not requested at intervals so short that the thread may never
 * sleep, nor if the user has set a priority.
 */
static void hurry(const struct prober *p)
{
	const struct sched_param least = { .sched_priority = 1 };

#ifndef KTRXER_SMALL
	if (getpriority(PRIO_PROCESS, 0) > 0)
		return;
#endif
	/* sched_getscheduler() of musl always fails: use the system call. */
	if (p->spec.interval_ns >= REALTIME_INTERVAL_NS && syscall(SYS_sched_getscheduler, 0) == SCHED_OTHER &&
	    pthread_setschedparam(pthread_self(), SCHED_FIFO, &least) == 0)
		return;
	/*
	 * A short slice needs no privilege: the thread preempts flows when a sleep ends, at the same share of the
	 * processor.
	 */
	short_slice();
}

int prober_listen(struct prober *p, uint8_t proto, uint32_t snap, struct ktrxer_error *err)
{
	const struct reply_receiver_options o = {
		.path = &p->path,
		.tx = p->tx,
		.proto = proto,
		.port = p->id,
		.snap = snap,
		.witness = &p->result.path,
	};
	int rc;

	hurry(p);
	p->start_ns = ktrxer_now_ns();
	rc = prober_schedule(p, err);
	return rc < 0 ? rc : reply_receiver_open(&p->receiver, &o, err);
}

void prober_close(struct prober *p)
{
	loop_free(p->loop);
	reply_receiver_close(&p->receiver);
	ktx_close(p->tx);
	ktrxer_schedule_free(p->schedule);
	template_free(&p->frame);
	ktrxer_hist_free(p->result.rtt);
	ktrxer_hist_free(p->result.own_queue);
	ktrxer_hist_free(p->result.lateness);
}
