/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The sender of STAMP (RFC 8762, RFC 8972): round trips, one-way delays, loss by direction. Several classes (DSCP
 * values) may be measured side by side: at each send time one probe of each class leaves. Each class is a session of
 * its own (same addresses and ports, another SSID), so that the reflector counts each class apart.
 */
#ifndef KTRXER_METHODS_STAMP_H
#define KTRXER_METHODS_STAMP_H

#include "marks.h"
#include "one_way.h"
#include "ping.h"
#include "sha256.h"
#include "stamp_session.h"

enum { STAMP_CLASSES = 8, STAMP_TLVS = 16 };

struct stamp_spec {
	struct probe_spec probe;
	uint8_t tos[STAMP_CLASSES]; /* DSCP and ECN of each class */
	uint32_t class_count;
	const struct hmac_key *auth_key; /* authenticated mode; NULL: open mode. Copied */
	const struct hmac_key *tlv_key;  /* open mode: for the HMAC of extensions. Copied */
	uint8_t tlvs[STAMP_TLVS];        /* further extensions: STAMP_TLV_LOCATION, _TIME_INFO, _COS, _DIRECT */
	uint32_t tlv_count;
	uint16_t ssid;   /* of the first class, the others follow; 0: a random one */
	bool ptp;        /* timestamps in the truncated format of PTP instead of NTP's */
	bool follow_up;  /* request the driver's stamp of each answer: the far host's own queue */
	bool clock;      /* request the adjustments of the reflector's clock with each answer */
	bool limits;     /* request the reflector's limit, and what it refused and dropped */
	bool host_delay; /* subtract the times in both hosts' stacks and queues; with follow_up. Not in small builds */
};

struct stamp_events {
	struct probe_events probe; /* its context is that of all */
	void (*sample)(
		void *context, uint32_t which,
		const struct stamp_sample
			*sample); /* a round trip that counts in the times, or one that is too late; which: the class */
	void (*answer)(void *context, enum stamp_event event); /* an answer that counts otherwise */
	void (*clock_step)(void *context); /* the clocks of the two hosts were stepped against each other */
};

/* The TTLs (hop limits) of the answered probes of one direction on arrival. Not in small builds. */
struct stamp_ttl {
	uint8_t low, high, last; /* 0: not known */
	uint32_t changes;        /* from one probe to the next */
};

struct stamp_class_result {
	uint8_t tos;
	uint16_t ssid;
	struct stamp_session_counts counts;
	const struct ktrxer_hist *rtt; /* ns */
	uint64_t untimed;              /* round trips without times */
	struct stamp_ttl ttl_up, ttl_down;
	/*
	 * On arrival, of answers that report the mark of their probe; `down`: of those that the reflector sent with the
	 * DSCP of the class, which have no ECN. Not in small builds.
	 */
	struct marks marks_up, marks_down;
};

struct stamp_result {
	uint32_t payload;                   /* bytes of each probe */
	uint16_t ssid;                      /* of the first class */
	struct stamp_session_counts counts; /* of all classes together */
	const struct ktrxer_hist *far_queue, *ipdv, *ipdv_up,
		*ipdv_down;   /* ns; far_queue: the wait in the reflector's own queue */
	int64_t dwell_max_ns; /* the longest time that the reflector held a probe */
	uint64_t held;        /* probes that the reflector held for longer than stamp_held_ns() */
	uint64_t elsewhere;   /* packets from another address than the reflector's */
	uint64_t uncorrected; /* round trips left out of the times, because a time to subtract is not known */
	uint64_t closing;     /* probes beyond the measured ones, which settle in which direction the last were lost */
	struct one_way_result one_way;
	uint32_t class_count;
	struct stamp_class_result classes[STAMP_CLASSES];
};

/* A reflector that holds a probe for longer had no processor, or was stopped: 10 ms, or a longer interval. */
static inline int64_t stamp_held_ns(const struct prober *p)
{
	const uint64_t least_ns = 10 * (uint64_t)KTRXER_NS_PER_MS;

	return (int64_t)(p->spec.interval_ns > least_ns ? p->spec.interval_ns : least_ns);
}

struct stamp;
/*
 * Opens all that is needed, and sends nothing. -EINVAL: the specification is wrong. *stamp is to be freed in any case.
 */
int stamp_new(struct stamp **stamp, const struct stamp_spec *spec, struct ktrxer_error *err);
/* See prober_run(). Once. */
void stamp_run(struct stamp *stamp, uint64_t start_ns, int stop_fd, const struct stamp_events *events);
#ifndef KTRXER_SMALL
/* Call it before stamp_run(): it runs `ping` as well, at the same send times (prober_join()). */
void stamp_join(struct stamp *stamp, struct ping *ping, const struct ping_events *events);
#endif
/* Payload and ssid are valid at once, the rest after stamp_run(). Until stamp_free(). */
const struct stamp_result *stamp_result(const struct stamp *stamp);
/* Path, engine and figures (prober->result); likewise. */
const struct prober *stamp_prober(const struct stamp *stamp);
void stamp_free(struct stamp *stamp);

#endif
