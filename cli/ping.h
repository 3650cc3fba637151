/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer ping`: its options, and its parts. */
#ifndef KTRXER_CLI_PING_H
#define KTRXER_CLI_PING_H

#include "cli.h"
#include "echo.h"
#include "inlet.h"
#include "template.h"

struct ping_options {
	const char *host, *device, *engine;
	struct ktrxer_addr from;
	uint64_t count, for_ns, interval_ns, payload, timeout_ns, tos, ttl, port;
	int64_t cpu;
	bool udp, precise, poisson, v4, v6, flood;
};

struct ping_run {
	struct cli *cli;
	const struct ping_options *o;
	struct ktrxer_path path;
	struct ktx *tx;
	struct ktx_info info;
	struct template probe;
	struct echo_book *book;
	struct ktrxer_schedule *schedule;
	struct inlet inlet;
	uint8_t proto;
	uint16_t id;        /* ICMP identifier or UDP source port */
	uint64_t secret;
	uint64_t wanted, next;
	uint64_t start_ns, end_ns;
	struct ktrxer_hist *rtt;
	uint64_t network_errors, contradictions;
	bool talkative;     /* a line for each answer */
	int failure;
	char failure_text[KTRXER_ERROR_TEXT];
};

/* ping_plan.c */
int ping_plan(struct ping_run *run, struct ktrxer_error *err);
/* Once start_ns is known. */
int ping_schedule(struct ping_run *run, struct ktrxer_error *err);
void ping_release(struct ping_run *run);

/* ping_inlet.c */
int ping_inlet_open(struct ping_run *run, struct ktrxer_error *err);
/* One answer: 1, 0 when none is there, or a negative errno. */
int ping_inlet_next(struct ping_run *run, struct echo_reply *reply, struct echo_arrival *arrival);

/* ping_report.c */
void ping_say_what(struct ping_run *run);
void ping_say_result(struct ping_run *run, enum echo_event event, const struct echo_result *result);
void ping_say_lost(struct ping_run *run, uint64_t number);
void ping_say_network_errors(struct ping_run *run);
int ping_finish(struct ping_run *run);

#endif
