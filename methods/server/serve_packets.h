/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The records of a session's trains, collected until they are a frame. */
#ifndef KTRXER_METHODS_SERVE_PACKETS_H
#define KTRXER_METHODS_SERVE_PACKETS_H

#include "control_link.h"
#include "flow_packets.h"

enum {
	/* of samples that wait for a slow client; more are counted and dropped */
	KTRXER_CONTROL_SAMPLES_BYTES = 256 << 10,
};

struct serve_packets {
	uint8_t *block; /* allocated with the first record */
	uint32_t used;
	struct flow_packets before;
};

/* False: there is no room, because the client does not read, or there is no memory. The record is lost. */
bool serve_packets_add(struct serve_packets *packets, struct control_link *link, uint32_t flow,
		       const struct flow_packet *packet);
/* Sends the collected packets. */
void serve_packets_send(struct serve_packets *packets, struct control_link *link);

#endif
