/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What `ping` is to do, checked before the first probe. */
#include "ping.h"

#include "bytes.h"
#include "error.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

static int make_frame(void *arg, struct ktrxer_error *err)
{
	struct ping_run *run = arg;
	const struct ping_options *o = run->o;
	struct ktrxer_frame_spec spec = KTRXER_FRAME_SPEC_INIT;
	struct ktrxer_path path = run->p.path;
	uint8_t *payload = calloc(1, o->payload + ECHO_PAYLOAD_FULL);
	int rc;

	if (!payload)
		return ktrxer_fail(err, -ENOMEM, "no memory for a payload of %llu bytes", (unsigned long long)o->payload);
	store_be64(payload + 8, run->secret);
	path.device.link = run->p.info.link;
	spec.path = &path;
	spec.proto = run->proto;
	spec.from_port = run->p.id;
	spec.to_port = o->udp ? (uint16_t)o->port : 0;
	spec.tos = (uint8_t)(o->dscp << 2 | o->ecn);
	spec.ttl = (uint8_t)o->ttl;
	spec.payload = payload;
	spec.payload_length = (uint32_t)o->payload;
	rc = template_make(&run->p.frame, &spec, err);
	free(payload);
	return rc;
}

static uint32_t window_for(const struct ping_options *o)
{
	uint64_t waiting = o->timeout_ns / o->p.interval_ns * 2 + 16;
	uint32_t window = 32;

	while (window < waiting && window < 65536)
		window <<= 1;
	return window;
}

static int check_options(const struct ping_options *o, struct ktrxer_error *err)
{
	if (o->udp && o->payload < ECHO_PAYLOAD_NUMBER)
		return ktrxer_fail(err, -EINVAL, "a UDP echo needs its number in the payload: at least --payload %d", ECHO_PAYLOAD_NUMBER);
	if (o->port != 7 && !o->udp)
		return ktrxer_fail(err, -EINVAL, "--port goes with --udp: ICMP has no ports");
	return 0;
}

int ping_plan(struct ping_run *run, struct ktrxer_error *err)
{
	const struct ping_options *o = run->o;
	int rc;

	if ((rc = check_options(o, err)) < 0 || (rc = prober_resolve(&run->p, err)) < 0)
		return rc;
	run->proto = o->udp ? KTRXER_UDP : run->p.path.to.family == AF_INET6 ? KTRXER_ICMPV6 : KTRXER_ICMP;
	run->secret = load_be64(run->p.seed);
	run->rtt = ktrxer_hist_new();
	run->own_queue = ktrxer_hist_new();
	if (!run->rtt || echo_book_new(&run->book, window_for(o), o->timeout_ns, o->payload < ECHO_PAYLOAD_FULL ? 0 : run->secret, !o->udp) < 0)
		return ktrxer_fail(err, -ENOMEM, "no memory for the probes that wait");
	if ((rc = prober_open(&run->p, 64, 14 + 40 + 8 + (uint32_t)o->payload, err)) < 0 ||
	    (rc = prober_identify(&run->p, make_frame, err)) < 0 || (rc = prober_try_schedule(&run->p, err)) < 0)
		return rc;
	return ping_inlet_open(run, err);
}

void ping_release(struct ping_run *run)
{
	prober_close(&run->p);
	echo_book_free(run->book);
	ktrxer_hist_free(run->rtt);
	ktrxer_hist_free(run->own_queue);
}
