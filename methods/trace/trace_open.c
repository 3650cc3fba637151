/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Opens and closes a trace: its transmitter, its receiver, and the identity of its probes. */
#include "trace_state.h"

#include "error.h"
#include "next_hops.h"
#include "path_find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

enum { SLOTS = 1024 };

static int open_tx(struct trace *t, struct ktrxer_error *err)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	const struct trace_spec *s = &t->spec;
	int rc = path_find(&t->probe.path, s->device, &s->from, &s->to, false, err);

	if (rc < 0)
		return rc;
	if (t->probe.path.needs_stack)
		return ktrxer_fail(err, -EOPNOTSUPP, "the destination is this host itself: there is no route to trace");
#ifndef KTRXER_SMALL
	t->result.own_next_hops = next_hops_count(&s->to, &s->from, s->device ? t->probe.path.device.index : 0);
#endif
	if (t->spec.device || !ktx_engine_by_stack(t->spec.engine, false))
		options.device = t->probe.path.device.name;
	options.engine = t->spec.engine;
	options.wait = KTX_WAIT_SLEEP;
	options.flags = KTX_CALLER_PUMPS | KTX_NO_LOCK;
	options.slots = SLOTS;
	options.frame_size = TRACE_FRAME_MAX;
	if ((rc = ktx_open(&t->tx, &options, err)) < 0)
		return rc;
	ktx_info(t->tx, &t->info);
	t->probe.link = t->info.link;
	t->by_socket = t->probe.no_ip_id = t->info.features & KTX_CAN_REPLY_FD;
	if (t->by_socket && (t->spec.proto != KTRXER_UDP || t->spec.failure > 0))
		return ktrxer_fail(err, -EINVAL, "the engine %s has one socket: it sends one flow of UDP, on one route",
				   t->info.engine);
	if (!(t->info.features & KTX_CAN_WHOLE_FRAME))
		return 0;
	return path_find(&t->probe.path, s->device, &s->from, &s->to, true, err);
}

static int open_rx(struct trace *t, struct ktrxer_error *err)
{
	struct krx_options options = KRX_OPTIONS_INIT;
	const uint8_t bits = t->spec.to.family == AF_INET6 ? 128 : 32;
	struct krx_rule rules[2] = { { .op = KRX_CAPTURE,
				       .proto = t->spec.to.family == AF_INET6 ? KTRXER_ICMPV6 : KTRXER_ICMP,
				       .to_prefix = bits },
				     { .op = KRX_CAPTURE,
				       .proto = KTRXER_TCP,
				       .from_prefix = bits,
				       .to_prefix = bits,
				       .from_port = t->spec.port } };

	rules[0].to = rules[1].to = t->probe.path.source;
	rules[1].from = t->spec.to;
	/* Packets do not contain a scope. */
	rules[0].to.scope_id = rules[1].to.scope_id = rules[1].from.scope_id = 0;
	/* All devices, because an answer may arrive by another one. */
	return krx_open(&t->rx, &options, rules, t->probe.proto == KTRXER_TCP ? 2 : 1, err);
}

static int make_identity(struct trace *t, struct ktrxer_error *err)
{
	struct {
		uint8_t secret[6];
		uint16_t icmp_id, base;
		uint32_t tcp_base;
	} random;

	if (getrandom(&random, sizeof random, 0) != sizeof random)
		return ktrxer_fail(err, -EIO, "no random numbers from the kernel");
	memcpy(t->probe.secret, random.secret, sizeof random.secret);
	t->probe.icmp_id = random.icmp_id;
	t->probe.tcp_base = random.tcp_base;
	t->probe.flow_base =
		(uint16_t)(TRACE_FLOW_BASE_MIN + random.base % (TRACE_FLOW_BASE_MAX - TRACE_FLOW_BASE_MIN));
	t->probe.proto = t->spec.proto == KTRXER_ICMP && t->spec.to.family == AF_INET6 ? KTRXER_ICMPV6 : t->spec.proto;
	t->probe.port = t->spec.port;
	t->probe.tos = t->spec.tos;
	return 0;
}

static int check_frame(struct trace *t, struct ktrxer_error *err)
{
	const struct trace_sent first = { .want = { .hop = 1 } };
	uint8_t frame[TRACE_FRAME_MAX];
	int rc = trace_probe_build(&t->probe, frame, sizeof frame, &first);

	return rc < 0 ? ktrxer_fail(err, rc, "the probe could not be built: %m")
		      : ktx_check(t->tx, frame, (uint32_t)rc, err);
}

int trace_new(struct trace **out, const struct trace_spec *spec, struct ktrxer_error *err)
{
	const struct trace_graph_options graph = { .hops_max = spec->hops_max,
						   .silent_max = spec->silent_max,
						   .failure = spec->failure,
						   .share = spec->share };
	struct trace *t = calloc(1, sizeof *t);
	int rc;

	*out = t;
	if (!t)
		return ktrxer_fail(err, -ENOMEM, "no memory for a trace");
	t->spec = *spec;
	t->probes = calloc(TRACE_PROBES, sizeof *t->probes);
	t->wants = calloc(TRACE_JOBS_MAX, sizeof *t->wants);
	t->jobs = calloc(TRACE_JOBS_MAX, sizeof *t->jobs);
	t->queue = calloc(TRACE_JOBS_MAX, sizeof *t->queue);
	if (!t->probes || !t->wants || !t->jobs || !t->queue)
		return ktrxer_fail(err, -ENOMEM, "no memory for the probes");
	rc = trace_graph_new(&t->graph, &graph);
	if (rc < 0)
		return ktrxer_fail(err, rc, "the search could not be prepared: %m");
	rc = loop_new(&t->loop);
	if (rc < 0)
		return ktrxer_fail(err, rc, "the event loop could not be opened: %m");
	if ((rc = make_identity(t, err)) < 0 || (rc = open_tx(t, err)) < 0 ||
	    (!t->by_socket && (rc = open_rx(t, err)) < 0) || (rc = check_frame(t, err)) < 0)
		return rc;
	return spec->keep_privileges ? 0 : privilege_drop(&t->privileges, err);
}

void trace_free(struct trace *t)
{
	if (!t)
		return;
	loop_free(t->loop);
	krx_close(t->rx);
	ktx_close(t->tx);
	trace_graph_free(t->graph);
	free(t->probes);
	free(t->samples);
	free(t->wants);
	free(t->jobs);
	free(t->queue);
	free(t);
}
