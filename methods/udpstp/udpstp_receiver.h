/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The counters of the receiver of load, without I/O. Trials are the intervals of status PDUs; sub-intervals are those
 * of RFC 9097.
 */
#ifndef KTRXER_METHODS_UDPSTP_RECEIVER_H
#define KTRXER_METHODS_UDPSTP_RECEIVER_H

#include "rate_search.h"
#include "udpstp_packet.h"

enum {
	UDPSTP_HISTORY = 32, /* numbers in which copies of datagrams are found */
	UDPSTP_HOLES_MS = 64 /* time in which a datagram may arrive out of order before it counts as lost */
};

struct udpstp_counts {
	uint64_t datagrams, bytes; /* bytes of payload */
	uint64_t lost, reordered, duplicates;
	uint64_t variation_min_ns, variation_max_ns, variation_sum_ns, variation_count;
	uint64_t rtt_min_ns, rtt_max_ns; /* above the minimum; UINT64_MAX: no round trip */
};

struct udpstp_receiver {
	uint32_t highest, history[UDPSTP_HISTORY], history_at;
	/* Numbers that are missing, by the ms in which a later one arrived: `holes_ms` is that of the last arrival. */
	uint64_t holes[UDPSTP_HOLES_MS];
	int64_t holes_ms;
	uint32_t overtaken_ms; /* the longest time by which a datagram arrived out of order */
	bool has_delta, minimum_new;
	bool dense;           /* the last trial had so many datagrams that a gap of some ms is a pause of the sender */
	int64_t delta_min_ns; /* arrival - send time, whose clocks differ */
	uint64_t rtt_min_ns, rtt_sample_ns; /* UINT64_MAX: none; the sample is above the minimum */
	uint32_t echo_s, echo_ns;           /* the status PDU whose round trip is known */
	struct udpstp_counts trial, current, saved;
	uint64_t trial_ns, current_ns, saved_lasts_ns, accumulated_ns;
	uint32_t intervals;
	uint32_t status_number;
	int64_t sent_real_ns, arrived_real_ns; /* of the last datagram in order */
	uint64_t paused_ns, pause_most_ns;     /* in which the sender sent nothing, though it was to */
};

void udpstp_receiver_begin(struct udpstp_receiver *receiver, uint64_t now_ns);
/* `real_ns`: the arrival on CLOCK_REALTIME. */
void udpstp_receiver_load(struct udpstp_receiver *receiver, const struct udpstp_load *load, int64_t real_ns);
/* Ends the sub-interval when it has lasted so long: true, and it is `saved`. */
bool udpstp_receiver_roll(struct udpstp_receiver *receiver, uint64_t now_ns, uint64_t lasts_ns);
/* The feedback of this trial to the search. */
struct rate_search_feedback udpstp_receiver_feedback(const struct udpstp_receiver *receiver, bool one_way);
/* All of a status PDU but its action and rate; a new trial begins. */
void udpstp_receiver_status(struct udpstp_receiver *receiver, struct udpstp_status *status, uint64_t now_ns,
			    int64_t real_ns);

/* The same feedback from the status PDU of another host. */
struct rate_search_feedback udpstp_status_feedback(const struct udpstp_status *status, bool one_way);

#endif
