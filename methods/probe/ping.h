/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Round trips by ICMP or UDP echo (echo.h) on a schedule. A round trip counts from the send stamp of this host's kernel
 * to the arrival stamp; the queue of this host's device is part of it.
 */
#ifndef KTRXER_METHODS_PING_H
#define KTRXER_METHODS_PING_H

#include "echo.h"
#include "prober.h"

struct ping_spec {
	struct probe_spec
		probe; /* payload: with ECHO_PAYLOAD_FULL bytes and more an answer is proven to belong to this run */
	bool udp;      /* UDP echo (RFC 862), with ECHO_PAYLOAD_NUMBER bytes at least; else ICMP */
	uint8_t tos;   /* DSCP and ECN */
};

struct ping_events {
	struct probe_events probe; /* its context is that of all */
	/* A round trip that counts in the times, a duplicate, or an answer after its probe was given up. */
	void (*answer)(void *context, enum echo_event event, const struct echo_result *result);
};

struct ping;
/*
 * Opens all that is needed, and sends nothing. -EINVAL: the specification is wrong. *ping is to be freed in any case.
 */
int ping_new(struct ping **ping, const struct ping_spec *spec, struct ktrxer_error *err);
/* See prober_run(). Once. */
void ping_run(struct ping *ping, uint64_t start_ns, int stop_fd, const struct ping_events *events);
#ifndef KTRXER_SMALL
/* Instead of ping_run(): it runs beside `leader`, see prober_join(). */
void ping_join(struct ping *ping, struct prober *leader, const struct ping_events *events);
#endif
void ping_counts(const struct ping *ping, struct echo_counts *counts);
/* Path, engine and figures (prober->result); valid until ping_free(). */
const struct prober *ping_prober(const struct ping *ping);
void ping_free(struct ping *ping);

#endif
