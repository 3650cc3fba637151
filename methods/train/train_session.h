/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Trains of packets between this host and one with `ktrxer serve`: each packet with its send time and its arrival. The
 * trains of one session are flows (flow_client.h) with the traffic model FLOW_TRAIN.
 */
#ifndef KTRXER_METHODS_TRAIN_SESSION_H
#define KTRXER_METHODS_TRAIN_SESSION_H

#include "flow_client.h"

/* Kernel stamps have a step of 1 ns; the conversion to CLOCK_MONOTONIC adds some tens. */
enum { TRAIN_RESOLUTION_NS = 100 };

/* The packets of one flow, by their numbers. Send times are on the sender's clock, arrivals on the receiver's; 0: not
 * known. */
struct train_packets {
	struct flow_spec spec;
	uint32_t trains; /* packet n is packet n % spec.train of train n / spec.train */
	uint64_t *sent_ns, *arrived_ns;
	bool *committed; /* the send time is the one before the system call: there was no stamp of a driver or NIC */
	uint64_t sent, arrived;  /* how many are known */
	uint64_t twice;          /* arrivals of a number that had arrived */
	uint64_t unplanned;      /* records of packets that the plan does not have */
	struct flow_end ends[2]; /* as this host and the server reported them; reason FLOW_RUNNING: not */
};

struct train_session_options {
	struct ktrxer_addr to, from; /* from.family 0: the route decides */
	uint16_t port;
	const struct hmac_key *token;
	const char *device, *engine; /* of flows up; NULL: the route's, udp */
	bool precise;
	int cpu;
	const struct flow_spec *specs; /* each FLOW_TRAIN, and passes flow_train_fits() */
	uint32_t flows;
	uint32_t trains;              /* of each flow */
	uint64_t start_ns;            /* 0: at once */
	struct path_witness *witness; /* as of flow_client.h; sessions add to it */
	int stop_fd;                  /* readable: stop; -1: none */
	int (*describe)(struct ktrxer_error *err, const struct flow_client_options *options,
			const struct flow_failure *failure);
};

struct train_session {
	uint32_t flows;
	struct train_packets *packets; /* one for each flow */
	struct flow_client_result result;
	uint64_t late_packets;       /* of this host's flows, later than flow_udp.h allows */
	struct ktx_info info;        /* of the flows up; no features: there are none */
	struct ktrxer_qdiscs qdiscs; /* of their device */
	bool stopped;                /* by stop_fd */
	uint64_t lasted_ns;          /* from the request to the last record */
	double cpu_share;            /* of a processor, that this process kept busy meanwhile */
};

/* Runs from the request to the last record. 0, or a negative errno with a text. train_session_free() in any case. */
int train_session_run(struct train_session *session, const struct train_session_options *options,
		      struct ktrxer_error *err);
void train_session_free(struct train_session *session);

#endif
