/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What is known of a packet that came. */
#ifndef KTRXER_METHODS_REFLECTOR_ARRIVAL_H
#define KTRXER_METHODS_REFLECTOR_ARRIVAL_H

#include "clock_adjust.h"

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

#endif
