/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The records of a train's packets on their way from the server to the client: a block of LEB128 numbers, each record
 * relative to the one before it, so that a packet takes some five bytes.
 */
#ifndef KTRXER_METHODS_FLOW_PACKETS_H
#define KTRXER_METHODS_FLOW_PACKETS_H

#include "bytes.h"
#include "flow_spec.h"

enum { FLOW_PACKET_RECORD_MOST = 5 + 1 + 10 + 10 }; /* bytes of one */

/* The record before; zeros at the beginning of a block. */
struct flow_packets {
	uint64_t number, time_ns;
};

/* `out` has room for FLOW_PACKET_RECORD_MOST. Returns how many bytes were written. */
uint32_t flow_packet_write(uint8_t *out, uint32_t flow, const struct flow_packet *packet, struct flow_packets *before);
/* 1 and a record; 0 after the last; -EPROTO: a flow not below `flows`, an unknown kind, or a block that ends inside a
 * record. */
int flow_packet_read(struct bytes *block, uint32_t flows, uint32_t *flow, struct flow_packet *packet,
		     struct flow_packets *before);

#endif
