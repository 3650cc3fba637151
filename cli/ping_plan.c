/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What `ping` is to do, checked before the first probe. */
#include "ping.h"

#include "bytes.h"
#include "error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

static int plan_path(struct ping_run *run, bool with_mac, struct ktrxer_error *err)
{
	const struct ping_options *o = run->o;
	struct ktrxer_path_options p = KTRXER_PATH_OPTIONS_INIT;
	struct ktrxer_addr to = run->path.to; /* the path is being written */

	p.device = o->device;
	p.from = o->from;
	p.to = to;
	p.no_link_address = !with_mac;
	return ktrxer_path_resolve(&run->path, &p, err);
}

static int plan_engine(struct ping_run *run, struct ktrxer_error *err)
{
	const struct ping_options *o = run->o;
	struct ktx_options t = KTX_OPTIONS_INIT;
	const bool by_stack = strcmp(o->engine, "udp") == 0 || strcmp(o->engine, "raw") == 0 ||
			      (strcmp(o->engine, "auto") == 0 && run->path.needs_stack);

	t.device = o->device || !by_stack || run->path.to.scope_id ? run->path.device.name : NULL;
	t.engine = o->engine;
	t.wait = o->precise ? KTX_WAIT_SPIN : KTX_WAIT_SLEEP;
	t.flags = o->precise ? 0 : KTX_CALLER_PUMPS | KTX_NO_LOCK;
	t.cpu = (int)o->cpu;
	t.slots = 64;
	t.frame_size = 14 + 40 + 8 + (uint32_t)o->payload;
	return ktx_open(&run->tx, &t, err);
}

/* The first commit makes the udp engine's socket: its identifier or port may be taken, then another is tried. */
static int plan_frame(struct ping_run *run, struct ktrxer_error *err)
{
	const struct ping_options *o = run->o;
	struct ktrxer_frame_spec spec = KTRXER_FRAME_SPEC_INIT;
	struct ktrxer_path path = run->path;
	uint8_t *payload = calloc(1, o->payload + ECHO_PAYLOAD_FULL);
	int rc;

	if (!payload)
		return ktrxer_fail(err, -ENOMEM, "no memory for a payload of %llu bytes", (unsigned long long)o->payload);
	store_be64(payload + 8, run->secret);
	path.device.link = run->info.link;
	spec.path = &path;
	spec.proto = run->proto;
	spec.from_port = run->id;
	spec.to_port = o->udp ? (uint16_t)o->port : 0;
	spec.tos = (uint8_t)o->tos;
	spec.ttl = (uint8_t)o->ttl;
	spec.payload = payload;
	spec.payload_length = (uint32_t)o->payload;
	template_free(&run->probe);
	rc = template_make(&run->probe, &spec, err);
	free(payload);
	return rc;
}

static uint32_t window_for(const struct ping_options *o)
{
	uint64_t waiting = o->timeout_ns / o->interval_ns * 2 + 16;
	uint32_t window = 32;

	while (window < waiting && window < 65536)
		window <<= 1;
	return window;
}

int ping_schedule(struct ping_run *run, struct ktrxer_error *err)
{
	const struct ping_options *o = run->o;
	struct ktrxer_schedule_options s = KTRXER_SCHEDULE_OPTIONS_INIT;

	s.kind = o->poisson ? KTRXER_SCHEDULE_POISSON : KTRXER_SCHEDULE_PERIODIC;
	s.start_ns = run->start_ns;
	s.gap_num = o->interval_ns;
	memcpy(s.seed, &run->secret, sizeof run->secret);
	return ktrxer_schedule_new(&run->schedule, &s, err);
}

static int check_options(const struct ping_options *o, struct ktrxer_addr *to, struct ktrxer_error *err)
{
	const struct opt_rate rate = { .num = KTRXER_NS_PER_S, .den = o->interval_ns, .given = true };
	int rc;

	if (o->v4 && o->v6)
		return ktrxer_fail(err, -EINVAL, "-4 and -6 exclude each other");
	if (o->udp && o->payload < ECHO_PAYLOAD_NUMBER)
		return ktrxer_fail(err, -EINVAL, "a UDP echo needs its number in the payload: at least --payload %d", ECHO_PAYLOAD_NUMBER);
	if (o->port != 7 && !o->udp)
		return ktrxer_fail(err, -EINVAL, "--port goes with --udp: ICMP has no ports");
	rc = cli_resolve(o->host, o->v4 ? AF_INET : o->v6 ? AF_INET6 : 0, to, err);
	return rc < 0 ? rc : cli_guard_rate(to, &rate, o->flood, err);
}

int ping_plan(struct ping_run *run, struct ktrxer_error *err)
{
	const struct ping_options *o = run->o;
	/* Resolved once: a name may have other addresses the second time, and the guard must have seen the one that is used. */
	int rc = check_options(o, &run->path.to, err);

	if (rc < 0)
		return rc;
	run->proto = o->udp ? KTRXER_UDP : run->path.to.family == AF_INET6 ? KTRXER_ICMPV6 : KTRXER_ICMP;
	run->wanted = o->count ? o->count : UINT64_MAX;
	run->talkative = o->interval_ns >= 200 * (uint64_t)KTRXER_NS_PER_MS;
	if (getrandom(&run->secret, sizeof run->secret, 0) != sizeof run->secret)
		return ktrxer_fail(err, -EIO, "no random numbers from the kernel");
	run->rtt = ktrxer_hist_new();
	if (!run->rtt || echo_book_new(&run->book, window_for(o), o->timeout_ns, o->payload < ECHO_PAYLOAD_FULL ? 0 : run->secret, !o->udp) < 0)
		return ktrxer_fail(err, -ENOMEM, "no memory for the probes that wait");
	if ((rc = plan_path(run, false, err)) < 0 || (rc = plan_engine(run, err)) < 0)
		return rc;
	ktx_info(run->tx, &run->info);
	if (run->info.features & KTX_CAN_WHOLE_FRAME && run->path.needs_stack)
		return ktrxer_fail(err, -EOPNOTSUPP, "whole frames from this host to itself are dropped by its kernel as forged: use --engine udp");
	if (run->info.features & KTX_CAN_WHOLE_FRAME && (rc = plan_path(run, true, err)) < 0)
		return rc;
	for (int tries = 0; tries < 16; tries++) {
		uint16_t random;

		if (getrandom(&random, sizeof random, 0) != sizeof random)
			return ktrxer_fail(err, -EIO, "no random numbers from the kernel");
		run->id = (uint16_t)(49152u | random);
		if ((rc = plan_frame(run, err)) < 0)
			return rc;
		/* Nothing is sent by this: it makes and binds what the engine needs, and is where a frame is refused. */
		rc = ktx_check(run->tx, run->probe.frame, run->probe.length, err);
		if (rc != -EADDRINUSE)
			break;
	}
	if (rc < 0)
		return rc;
	run->start_ns = ktrxer_now_ns();
	if ((rc = ping_schedule(run, err)) < 0)
		return rc;
	ktrxer_schedule_free(run->schedule);
	run->schedule = NULL;
	return ping_inlet_open(run, err);
}

void ping_release(struct ping_run *run)
{
	inlet_close(&run->inlet);
	ktx_close(run->tx);
	ktrxer_schedule_free(run->schedule);
	echo_book_free(run->book);
	template_free(&run->probe);
	ktrxer_hist_free(run->rtt);
}
