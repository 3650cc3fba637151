/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stretches of time in which no byte of any flow of a direction arrived although the senders had data on their way,
 * from the counts of both ends. A shorter stretch than the flows have by themselves is no outage: a TCP sender waits a
 * round trip for acknowledgements, and a time-out after a loss; a slow flow has time between its packets; packets of
 * UDP are lost one after the other by chance. Pure; all times are on one clock.
 */
#ifndef KTRXER_METHODS_BYTE_OUTAGES_H
#define KTRXER_METHODS_BYTE_OUTAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BYTE_OUTAGES_MOST = 32 }; /* the longest ones are kept */

struct byte_count {
	int64_t time_ns;
	int64_t bytes; /* so far, in ascending order; both ends begin with 0 at the start */
};

struct byte_sender {
	int64_t time_ns;
	int64_t moved;   /* TCP: segments that any acknowledgement named so far. UDP: bytes that left so far */
	int64_t rtt_ns;  /* TCP: smoothed round trip; 0: not known */
	int64_t again;   /* TCP: segments that were sent again so far */
	int64_t pending; /* TCP: there is data that is not acknowledged, or waits to be sent. UDP: 1 */
};

/* Flows whose ends were sampled at the same times, as one. */
struct byte_flows {
	const struct byte_count *arrived;
	size_t arrived_count;
	const struct byte_sender *sender; /* NULL: its end is not known */
	size_t sender_count;
};

struct byte_plan {
	bool udp;
	int64_t sample_ns;
	int64_t rtt_ns; /* of the idle path; 0: not known */
	int64_t packet_bytes;
	uint32_t of; /* the groups are one of so many flows, which share a full queue; 0: they are all */
};

struct byte_outage {
	int64_t from_ns, to_ns;          /* of the time between them no byte arrived */
	int64_t at_least_ns, at_most_ns; /* the length */
	bool to_end;                     /* nothing arrived after it: it has no upper bound */
};

/*
 * Returns the number of outages of all `count` groups together in the order of their times, at most BYTE_OUTAGES_MOST,
 * or -ENOMEM.
 */
int byte_outages(const struct byte_flows *flows, size_t count, const struct byte_plan *plan, struct byte_outage *found);

#endif
