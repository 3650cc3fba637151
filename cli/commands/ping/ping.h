/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer ping`: its options, and its parts. */
#ifndef KTRXER_CLI_PING_H
#define KTRXER_CLI_PING_H

#include "echo.h"
#include "prober.h"

struct ping_options {
	struct prober_options p;
	uint64_t payload, timeout_ns, ttl, port;
	uint8_t dscp, ecn;
	bool udp;
};

struct ping_run {
	struct prober p;
	const struct ping_options *o;
	struct echo_book *book;
	uint8_t proto;
	uint64_t secret;    /* in each payload: a reply without it is forged */
	struct ktrxer_hist *rtt, *own_queue;
};

/* ping_plan.c */
int ping_plan(struct ping_run *run, struct ktrxer_error *err);
void ping_release(struct ping_run *run);

/* ping_inlet.c */
int ping_inlet_open(struct ping_run *run, struct ktrxer_error *err);
/* One answer: 1, 0 when none is there, or a negative errno. */
int ping_inlet_next(struct ping_run *run, struct echo_reply *reply, struct echo_arrival *arrival);

/* ping_report.c */
void ping_say_what(struct ping_run *run);
void ping_say_result(struct ping_run *run, enum echo_event event, const struct echo_result *result);
int ping_finish(struct ping_run *run);

#endif
