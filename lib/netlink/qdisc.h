/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The clock by which the queue of a device keeps the time of a frame (SO_TXTIME), or the cause if it does not. A socket
 * gets no error: each queue but fq and etf ignores the time silently. The queues are therefore read by rtnetlink.
 */
#ifndef KTRXER_LIB_QDISC_H
#define KTRXER_LIB_QDISC_H

#include "error.h"
#include "rtnl.h"

#include <time.h>

enum { QDISC_PRIORITIES = 16 }; /* TC_QOPT_BITMASK + 1 */

/* One message of RTM_NEWQDISC, as far as it matters here. */
struct qdisc {
	uint32_t device, handle, parent;
	char kind[16];
	uint32_t drops;      /* 0 in small builds */
	uint32_t flow_limit; /* fq: packets of one flow that may wait; 0: it does not say */
	uint32_t slack_ns;   /* fq: its timer comes up to that late */
	uint64_t horizon_ns; /* fq: a time further away is not kept; 0: it does not say */
	int32_t delta_ns;    /* etf: how early a frame is taken out */
	int32_t clock;       /* etf */
	uint32_t flags;      /* etf */
	bool has_map;        /* mqprio, taprio: which priority goes to which queues */
	uint8_t classes[QDISC_PRIORITIES];
	uint16_t count[QDISC_PRIORITIES], offset[QDISC_PRIORITIES];
};

/* Properties of a queue that keeps times, for senders. */
struct qdisc_launch {
	clockid_t clock;   /* CLOCK_MONOTONIC (fq) or CLOCK_TAI (etf) */
	bool etf, offload; /* the NIC itself keeps the time */
	uint32_t delta_ns; /* etf; without offload frames leave that much before their time */
	uint32_t slack_ns, flow_limit;
	uint64_t horizon_ns;
	int priority; /* SO_PRIORITY that leads there */
};

/* 0, or -EBADMSG. */
int ktrxer_qdisc_parse(struct qdisc *qdisc, struct bytes body);

/*
 * Judges all queues of one device. 0; or -EOPNOTSUPP, and `err` states which queue ignores times and what would help.
 */
int ktrxer_qdisc_judge(struct qdisc_launch *launch, const struct qdisc *all, int count, const char *device,
		       struct ktrxer_error *err);

/* Asks the kernel. */
int ktrxer_qdisc_launch(struct qdisc_launch *launch, uint32_t device, const char *name, struct ktrxer_error *err);

#endif
