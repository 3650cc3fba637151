/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The sender's side of a STAMP session: which answer belongs to which probe, in which direction what is missing was
 * lost, and four stamps for each round trip. It sends nothing and reads no clock.
 *
 * T1 is the send time that was kept here, not what the packet said; T4 the kernel's stamp of arrival. T2 and T3 come
 * with the answer. T3 is the time before the reflector's send call. With follow-up telemetry a later answer carries the
 * driver's stamp of this one: the difference is the wait in the reflector's own queue, so a sample waits for that.
 *
 * Loss by direction needs a reflector that counts (stateful). Its count of answers says how many probes arrived; those
 * whose answers we have were lost in neither direction. Whether it counts shows as soon as something is lost on the way
 * there, or by follow-up telemetry, which a stateless one leaves empty. As long as it has not shown, lost probes are
 * lost, and that is all.
 */
#ifndef KTRXER_METHODS_STAMP_SESSION_H
#define KTRXER_METHODS_STAMP_SESSION_H

#include "clock_adjust.h"
#include "sha256.h"

enum { STAMP_TOS_UNKNOWN = 0xff };

struct stamp_session_options {
	uint32_t window;                   /* probes that may wait at once, a power of two, 2 to 65536 */
	uint64_t timeout_ns, overtaken_ns; /* see struct probe_spec */
	uint16_t ssid;
	uint8_t tos;                     /* DSCP and ECN of our probes */
	bool follow_up;                  /* we ask for it */
	const struct hmac_key *auth_key; /* authenticated mode; copied */
	const struct hmac_key *tlv_key;  /* open mode: TLVs are believed only with their HMAC; copied */
	bool host_delay;                 /* subtract from the delays what both hosts have measured of themselves */
};

struct stamp_sample {
	uint64_t number;
	uint64_t at_ns, t1_ns, t4_ns; /* CLOCK_MONOTONIC; at_ns: when it should have left */
	int64_t t2_real_ns, t3_real_ns;
	int64_t rtt_ns;   /* (T4 - T1) - (T3 - T2) */
	int64_t dwell_ns; /* T3 - T2 */
	int64_t own_queue_ns,
		far_queue_ns;   /* of the round trip: waits in the packet schedulers of the two hosts; -1: not known */
	int64_t up_ns, down_ns; /* T2 - T1 and T4 - T3 across two clocks: worth as much as their offset is known */
	uint32_t bound_ns;      /* of T1 and T4 together: what their conversion may err */
	uint64_t peer_error_ns; /* the reflector's own estimate for T2 and T3; UINT64_MAX: none that counts */
	bool peer_synchronised;
	/*
	 * Adjustments of the clocks: far_ and own_adjusted are those of CLOCK_REALTIME there and CLOCK_MONOTONIC here,
	 * if clocks_known; adjusted_ns is the far one less ours since the first sample (one_way_clocks()).
	 */
	bool clocks_known, clock_moved; /* moved: a clock was stepped near this sample, which has no one-way delays */
	uint32_t far_origin;
	struct clock_adjust far_adjusted, own_adjusted;
	int64_t adjusted_ns;
	uint8_t sent_source; /* enum ktx_sent_source of T1 */
	uint8_t source;      /* enum ktrxer_stamp_source of T4 */
	uint8_t ttl_up, ttl_down;
	uint8_t tos_up, tos_down; /* tos_up: only by a class-of-service TLV, else STAMP_TOS_UNKNOWN */
	uint8_t tos_back;         /* and so is this: the DSCP with which the reflector sent its answer */
	uint32_t reflector_seq;
	bool reordered_up, reordered_down;
	bool too_late;    /* it came after its probe was given up as lost */
	bool impossible;  /* the reflector's stamps: it sent before it received; there is no delay */
	bool uncorrected; /* host_delay: own_queue_ns or far_queue_ns is not known, and nothing was subtracted */
	bool follows;     /* the probe before it was answered, too, and these are the differences (RFC 3393) */
	int64_t ipdv_ns, ipdv_up_ns, ipdv_down_ns;
};

enum stamp_event {
	STAMP_NOTHING = 0,
	STAMP_ANSWER = 1,
	STAMP_DUPLICATE = 2,
	STAMP_TOO_LATE = 3,
	STAMP_FOREIGN = 4, /* no answer to a probe of ours */
	STAMP_WRONG_HMAC = 5,
};

struct stamp_session_counts {
	uint64_t sent, received, waiting;
	uint64_t unsent, failed; /* failed: of the unsent ones, those that this host could not send */
	uint64_t lost;           /* without any answer so far: up + down + unknown */
	uint64_t lost_up, lost_down, lost_unknown;
	uint64_t too_late; /* answered after the time-out */
	uint64_t duplicates_up, duplicates_down;
	uint64_t reordered_up, reordered_down;
	uint64_t foreign, wrong_hmac;
	uint64_t restarts;     /* of the reflector, or of its memory of us */
	uint64_t tlvs_refused; /* answers whose TLVs say that ours failed their HMAC, or whose own fail */
	uint64_t server_refused,
		server_dropped; /* of the reflector, between the first and the last answer: of all its clients */
	/*
	 * Answers with a class-of-service TLV count here if another DSCP came than was sent, or no ECN where there was
	 * some.
	 */
	uint64_t mark_changed_up, mark_changed_down;
	uint64_t server_rate; /* its limit, answers a second; 0: none, or not known */
	bool direction_known; /* the reflector counts, or nothing was lost. From here on no numbers */
	bool stateful;        /* it was seen to count */
	bool follow_up_seen;
	bool marks_known; /* an answer had a class-of-service TLV */
};

struct stamp_session;
int stamp_session_new(struct stamp_session **session, const struct stamp_session_options *options);
void stamp_session_free(struct stamp_session *session);

/* A probe is committed; `time` is what its packet says it left at. -EAGAIN: the one a window before it still waits. */
int stamp_session_commit(struct stamp_session *session, uint64_t number, uint64_t time);
void stamp_session_report(struct stamp_session *session, const struct ktx_report *report);

struct stamp_arrival {
	uint64_t received_ns;
	int64_t real_near_ns; /* CLOCK_REALTIME at about that time: unfolds T2 and T3 */
	uint32_t bound_ns;
	struct clock_adjust adjusted; /* of this host's CLOCK_MONOTONIC */
	uint8_t source, ttl, tos;
};
enum stamp_event stamp_session_reply(struct stamp_session *session, const uint8_t *packet, size_t length,
				     const struct stamp_arrival *arrival);

/* Gives up what has waited too long, oldest first: true and its number for each. */
bool stamp_session_lost(struct stamp_session *session, uint64_t now_ns, uint64_t *number);
/* Samples that are complete, in the order in which they became so; true and one. `flush`: nothing more will come. */
bool stamp_session_sample(struct stamp_session *session, uint64_t now_ns, bool flush, struct stamp_sample *sample);
uint64_t stamp_session_next(
	const struct stamp_session *session); /* when something is to be given up; KTRXER_NEVER: nothing waits */

/*
 * Probes from this number on only settle what became of those before them: they count in nothing else. The last probes
 * measured may be lost, and then nothing but a later answer tells in which direction.
 */
void stamp_session_close(struct stamp_session *session, uint64_t first);
/*
 * True if it is still open after closing in which direction the last probes were lost, or how long the last answers
 * waited in the far queue.
 */
bool stamp_session_unsettled(const struct stamp_session *session);
void stamp_session_counts(const struct stamp_session *session, struct stamp_session_counts *counts);

#endif
