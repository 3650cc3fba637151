/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The bytes of a flow, its rates, and whether it ended as planned: from the samples and ends that both ends reported.
 * Pure; all times are on one clock. The bytes of a flow are those that its receiver read; where the receiver reported
 * nothing, those that the sender reports as acknowledged.
 */
#ifndef KTRXER_METHODS_FLOW_RESULT_H
#define KTRXER_METHODS_FLOW_RESULT_H

#include "flow_spec.h"

/* Report of one end. */
struct flow_side {
	uint64_t samples;
	uint64_t last_ns, last_bytes; /* of the last sample */
	bool ended;
	struct flow_end end;
};

struct flow_record {
	struct flow_side local, remote;
	bool info;                        /* a TCP sender's values were seen, or a UDP receiver's: the last ones */
	uint32_t tcp_samples;             /* of a TCP sender */
	uint32_t window_samples;          /* from the first one on in which the receiver's window is full */
	uint64_t window_ns, window_bytes; /* of that one */
	double window_sum;                /* the whole segments in the window, in bytes, times its nanoseconds since */
	uint32_t full_samples,
		clear_samples; /* the window is full and its round trip is over; of these without a queue */
	/*
	 * All data is sent, and both windows have room: in so many samples, of these through an empty path; the first.
	 */
	uint32_t buffer_samples, empty_samples;
	uint64_t buffer_ns, buffer_bytes;
	uint64_t delivery_bps; /* the largest one */
	uint64_t values[FLOW_VALUES_MAX];
};

/* A sample, or the end, as it comes; `remote`: from the other host. */
void flow_record_sample(struct flow_record *record, const struct flow_spec *spec, bool remote,
			const struct flow_sample *sample);
void flow_record_end(struct flow_record *record, bool remote, const struct flow_end *end);
/* enum flow_value or flow_udp_value; UINT64_MAX: not known. */
uint64_t flow_value(const struct flow_record *record, int which);
/* Bits a second, rounded; 0 for no time. */
uint64_t flow_rate_bps(uint64_t bytes, uint64_t span_ns);

struct flow_result {
	const struct flow_side *sender, *receiver;
	/*
	 * The end that decides whether the flow was complete: the sender, because a receiver cannot see data that was
	 * never sent; the receiver where the sender's end is not known.
	 */
	const struct flow_side *decider;
	bool as_planned;   /* it ended after its time or its bytes */
	uint64_t start_ns; /* by the plan, the same at both ends */
	uint64_t begin_ns,
		end_ns;        /* of what `bytes` counts, at the end that counts: begins a delay of the path later */
	uint64_t duration_ns;  /* from begin_ns to end_ns */
	uint64_t lasted_ns;    /* from its start to its end at the decider */
	uint64_t uncounted_ns; /* between end_ns and the end of the plan: bytes that are in no report may have moved */
	uint32_t coverage;     /* duration_ns, in thousandths of the time of the plan */
	uint64_t bytes;
	uint64_t edge_bytes; /* UDP: so many of the bytes are perhaps of the time before or after */
	uint64_t rate_bps;   /* of these bytes over duration_ns */
	bool received_known, acked_known;
	bool receiver_limited; /* the rate of a TCP flow times the shortest round trip is the receiver's window */
	bool sender_limited;   /* flow_find_buffer_limits() sets it */
	/* A TCP sender had no unacknowledged data for more than a tenth of its time, and samples of it are missing. */
	bool sender_idle;
	uint64_t received_bytes, acked_bytes; /* by the receiver and by the sender alone */
	uint64_t samples,
		missing_samples; /* of both ends; missing: between start and end, by the interval of samples */
};

struct flow_plan {
	uint64_t start_ns; /* of all flows; the flow's own start is spec->start_ns after it */
	uint64_t sample_ns;
	uint64_t for_ns, bytes; /* of each flow; 0: none */
	uint64_t rtt_ns;        /* the shortest round trip that is known; a delay is at most as long */
	bool stopped;           /* a person ended it before its time: the plan is what there was until then */
};

enum { FLOW_COVERAGE_LEAST = 980 /* a rate of a whole direction covers so many thousandths of its time */ };

void flow_result(struct flow_result *result, const struct flow_spec *spec, const struct flow_record *record,
		 const struct flow_plan *plan);

/*
 * Sets sender_limited of the TCP flows of a direction whose sender has all its data sent in a third of the samples,
 * while both windows have room, because its send buffer is too small, and where the path would carry more: it is empty
 * in most of these samples, or all flows of the direction together get less than 8/9 of the largest delivery rate of
 * one flow.
 */
void flow_find_buffer_limits(bool down, uint32_t flows, const struct flow_spec *specs,
			     const struct flow_record *records, struct flow_result *results);

/* The flows of one direction together. */
struct flow_total {
	uint32_t flows;
	uint64_t bytes, edge_bytes;
	uint64_t rate_bps;                 /* bytes over the time from the first begin to the last end */
	uint64_t duration_ns;              /* that time */
	uint32_t coverage;                 /* thousandths of the time of the plan; below FLOW_COVERAGE_LEAST: no rate */
	uint64_t slowest_bps, fastest_bps; /* of one flow */
	uint64_t sent, lost;               /* UDP packets, of the flows whose receiver reported */
	uint64_t retransmits;              /* TCP segments */
};
bool flow_has_rate(const struct flow_total *total);
void flow_total(struct flow_total *total, bool down, uint32_t flows, const struct flow_spec *specs,
		const struct flow_record *records, const struct flow_result *results);

#endif
