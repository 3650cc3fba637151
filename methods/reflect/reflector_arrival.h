/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The properties of a packet that arrived. */
#ifndef KTRXER_METHODS_REFLECTOR_ARRIVAL_H
#define KTRXER_METHODS_REFLECTOR_ARRIVAL_H

#include "clock_adjust.h"

enum {
	KTRXER_REFLECTOR_IDLE_S = 300, /* a session without packets for so long is forgotten */
	KTRXER_REFLECTOR_TRIAL_S =
		10, /* one of fewer than 16 packets, which forged addresses make, then gives room to others */
};

struct reflector_arrival {
	struct ktrxer_addr from, to;
	uint16_t from_port, to_port;
	bool to_group; /* the kernel says that it was sent to a group or to all */
	bool trusted;  /* a client at this address has proven the token */
	uint8_t ttl, tos;
	bool nic_stamp;               /* T2 is the NIC's */
	int64_t received_real_ns;     /* T2 */
	struct clock_adjust adjusted; /* CLOCK_REALTIME, read after T2 */
	uint64_t now_ns;              /* CLOCK_MONOTONIC */
	uint64_t overflows;           /* of the socket so far: datagrams that it had no room for */
};

/* A session that has ended: one sender of STAMP packets. */
enum reflector_end {
	REFLECTOR_IDLE = 0,  /* no packet for KTRXER_REFLECTOR_IDLE_S, or another session needed the place */
	REFLECTOR_RESTARTED, /* the sender has begun anew */
	REFLECTOR_DISPLACED, /* by a session of a network that has fewer of them */
	REFLECTOR_STOPPED,   /* the reflector stops */
	REFLECTOR_ENDS,
};

struct reflector_client {
	struct ktrxer_addr from;
	uint16_t from_port;
	uint32_t answers;
	uint64_t bytes;             /* of the requests, and as many of the answers */
	uint64_t began_ns, seen_ns; /* its first and its last packet */
	enum reflector_end end;
};

#endif
