/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Receives the answers to probes, each with the kernel's arrival stamp: from the socket that sent the probes, or from a
 * receiver (krx) of its own.
 */
#ifndef KTRXER_METHODS_REPLY_RECEIVER_H
#define KTRXER_METHODS_REPLY_RECEIVER_H

#include "icmp_error.h"
#include "path_witness.h"

struct reply_receiver_options {
	const struct ktrxer_path *path;
	struct ktx *tx;
	uint8_t proto;
	uint16_t port; /* of this host, for UDP; ICMP: unused */
	uint32_t snap; /* bytes of each answer that are wanted */
	struct path_witness *witness;
};

/*
 * A packet that comes through stacked devices (bridge, VLAN) is seen at each of them, with one stamp of its arrival. So
 * many packets may be seen in between, at most.
 */
enum { REPLY_COPIES = 8 };
struct reply_seen {
	int64_t raw_ns;
	uint32_t device;
};

struct reply_receiver {
	int fd;         /* to poll */
	int socket;     /* >= 0: the engine's socket */
	bool ip_header; /* raw ICMP over IPv4 includes it */
	uint8_t proto;
	struct krx *krx; /* or this */
	struct reply_seen seen[REPLY_COPIES];
	uint32_t seen_next;
	struct path_witness *witness;
	struct icmp_error_probe probe;
	/*
	 * Set by the owner: an ICMP error about a probe, from a receiver of its own. Those of sockets are in
	 * ktx_network_errors().
	 */
	void (*error)(void *context, const struct ktx_network_error *error);
	void *context;
	struct ktrxer_clock_map *clock;
	uint64_t empty_ns; /* when the socket was last seen empty */
	uint8_t *data;
	uint32_t snap;
	uint32_t drops_seen;
	uint64_t socket_drops; /* answers that the socket had no room for */
};

struct reply {
	const uint8_t
		*data; /* from the payload on for UDP, from the ICMP header on for ICMP; valid until the next call */
	uint32_t length;
	uint64_t received_ns; /* CLOCK_MONOTONIC */
	uint32_t bound_ns;    /* of the conversion to CLOCK_MONOTONIC */
	uint8_t source;       /* enum ktrxer_stamp_source */
	uint8_t ttl, tos;
	struct ktrxer_addr from;
	uint32_t device; /* index of the one by which it arrived; 0: not reported */
};

int reply_receiver_open(struct reply_receiver *receiver, const struct reply_receiver_options *options,
			struct ktrxer_error *err);
void reply_receiver_close(struct reply_receiver *receiver);
/*
 * 1 and one datagram, 0 when the queue is empty, -EAGAIN for a datagram of no use (call again), or a negative errno:
 * the device is gone.
 */
int reply_receiver_next(struct reply_receiver *receiver, struct reply *reply);
/* Answers that the krx receiver of this host dropped; socket_drops has those of the socket. */
uint64_t reply_receiver_drops(const struct reply_receiver *receiver);

#endif
