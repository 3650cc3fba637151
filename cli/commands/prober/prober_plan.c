/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a command that probes one host needs before its first probe: address, path, engine, identifier, schedule. */
#include "prober.h"

#include "error.h"
#include "limits.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

int prober_resolve(struct prober *p, struct ktrxer_error *err)
{
	const struct prober_options *o = p->o;
	struct opt_rate rate = { .num = KTRXER_NS_PER_S, .den = o->interval_ns, .given = true };
	int rc;

	p->each = p->each ? p->each : 1;
	rate.num *= p->each;

	if (o->v4 && o->v6)
		return ktrxer_fail(err, -EINVAL, "-4 and -6 exclude each other");
	/* Once: a name may have other addresses the second time, and the guard must have seen the one that is used. */
	rc = cli_resolve(o->host, o->v4 ? AF_INET : o->v6 ? AF_INET6 : 0, &p->path.to, err);
	if (rc < 0 || (rc = cli_guard_rate(&p->path.to, &rate, o->flood, err)) < 0)
		return rc;
	if (getrandom(p->seed, sizeof p->seed, 0) != sizeof p->seed)
		return ktrxer_fail(err, -EIO, "no random numbers from the kernel");
	p->wanted = o->count ? o->count : UINT64_MAX;
	p->talkative = o->interval_ns >= 200 * (uint64_t)KTRXER_NS_PER_MS;
	p->unhurried = !o->precise && o->interval_ns <= PROBER_LOOK_NS / 2;
	/*
	 * Enough that a waiter of real-time priority does not starve when a busy machine keeps this thread, which has none, from
	 * its processor; little enough that stopping cancels little.
	 */
	p->ahead_ns = (uint64_t)(o->precise ? 250 : 50) * KTRXER_NS_PER_MS;
	return 0;
}

static int resolve_path(struct prober *p, bool with_mac, struct ktrxer_error *err)
{
	struct ktrxer_path_options path = KTRXER_PATH_OPTIONS_INIT;
	struct ktrxer_addr to = p->path.to; /* the path is being written */

	path.device = p->o->device;
	path.from = p->o->from;
	path.to = to;
	path.no_link_address = !with_mac;
	return ktrxer_path_resolve(&p->path, &path, err);
}

/* For the probes that are committed ahead of their time; and, in half of them, for those that wait in this host's own queue (lib/tx/tx_done.c). */
static uint32_t slots_for(const struct prober *p, uint32_t slots, uint32_t frame_size)
{
	const uint64_t queued_ns = 2 * KTX_OWN_QUEUE_WAIT_S * (uint64_t)KTRXER_NS_PER_S;

	while ((slots < 1024 && slots * p->o->interval_ns < p->ahead_ns * p->each) ||
	       (slots < PROBER_SLOTS_MAX && (uint64_t)slots * frame_size < PROBER_SLOTS_BYTES && slots * p->o->interval_ns < queued_ns * p->each))
		slots *= 2;
	return slots;
}

static int open_engine(struct prober *p, uint32_t slots, uint32_t frame_size, struct ktrxer_error *err)
{
	const struct prober_options *o = p->o;
	struct ktx_options t = KTX_OPTIONS_INIT;
	const bool by_stack = ktx_engine_by_stack(o->engine, p->path.needs_stack);

	t.device = o->device || !by_stack || p->path.to.scope_id ? p->path.device.name : NULL;
	t.engine = o->engine;
	t.wait = o->precise ? KTX_WAIT_SPIN : KTX_WAIT_SLEEP;
	t.flags = o->precise ? 0 : KTX_CALLER_PUMPS | KTX_NO_LOCK;
	t.cpu = (int)o->cpu;
	t.retry_ns = 1; /* what this host's full queue drops is not sent again: it would be late, and the queue is what is measured */
	t.late_ns = verdict_late_ns(o->interval_ns);
	t.slots = slots_for(p, slots, frame_size);
	t.frame_size = frame_size;
	return ktx_open(&p->tx, &t, err);
}

int prober_open(struct prober *p, uint32_t slots, uint32_t frame_size, struct ktrxer_error *err)
{
	int rc;

	if ((rc = resolve_path(p, false, err)) < 0 || (rc = open_engine(p, slots, frame_size, err)) < 0)
		return rc;
	ktx_info(p->tx, &p->info);
	if (!(p->info.features & KTX_CAN_WHOLE_FRAME))
		return 0;
	if (p->path.needs_stack)
		return ktrxer_fail(err, -EOPNOTSUPP, "whole frames from this host to itself are dropped by its kernel as forged: use --engine udp");
	return resolve_path(p, true, err);
}

int prober_identify(struct prober *p, int (*make)(void *run, struct ktrxer_error *err), struct ktrxer_error *err)
{
	int rc = -EADDRINUSE;

	/* The first commit makes the udp engine's socket: its identifier or port may be taken, then another is tried. */
	for (int tries = 0; tries < 16 && rc == -EADDRINUSE; tries++) {
		uint16_t random;

		if (getrandom(&random, sizeof random, 0) != sizeof random)
			return ktrxer_fail(err, -EIO, "no random numbers from the kernel");
		p->id = (uint16_t)(49152u | random);
		template_free(&p->frame);
		rc = make(p->run, err);
		/* Nothing is sent by this: it makes and binds what the engine needs, and is where a frame is refused. */
		if (rc == 0)
			rc = ktx_check(p->tx, p->frame.frame, p->frame.length, err);
	}
	return rc;
}

int prober_schedule(struct prober *p, struct ktrxer_error *err)
{
	struct ktrxer_schedule_options s = KTRXER_SCHEDULE_OPTIONS_INIT;

	s.kind = p->o->model == MODEL_POISSON ? KTRXER_SCHEDULE_POISSON : KTRXER_SCHEDULE_PERIODIC;
	s.start_ns = p->start_ns;
	s.gap_num = p->o->interval_ns;
	memcpy(s.seed, p->seed, sizeof s.seed);
	return ktrxer_schedule_new(&p->schedule, &s, err);
}

int prober_try_schedule(struct prober *p, struct ktrxer_error *err)
{
	int rc;

	p->start_ns = ktrxer_now_ns();
	if ((rc = prober_schedule(p, err)) < 0)
		return rc;
	ktrxer_schedule_free(p->schedule);
	p->schedule = NULL;
	return 0;
}

void prober_close(struct prober *p)
{
	reply_receiver_close(&p->receiver);
	ktx_close(p->tx);
	ktrxer_schedule_free(p->schedule);
	template_free(&p->frame);
}
