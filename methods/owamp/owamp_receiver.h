/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The receiver of an OWAMP session: a record of each test packet, with the kernel's time of its arrival. */
#ifndef KTRXER_METHODS_OWAMP_RECEIVER_H
#define KTRXER_METHODS_OWAMP_RECEIVER_H

#include "loop.h"
#include "owamp_packet.h"
#include "path_witness.h"

struct owamp_receiver {
	struct loop_source source; /* first */
	struct loop *loop;
	uint32_t packets; /* of the session: numbers are below */
	uint16_t error;   /* of this host's clock */
	struct owamp_record *records;
	uint32_t count, room, most; /* of records */
	uint32_t dropped;           /* records that owamp_judge_some() has removed */
	uint32_t after;             /* the highest number that has arrived, and one */
	uint32_t different;         /* numbers that have arrived */
	uint8_t *seen;              /* a bit for each number */
	uint32_t drops_seen;
	/* ignored: no packet of this session, too many copies, or no error estimate (a multiplier of 0, 4.1.2) */
	uint64_t socket_drops, user_stamped, ignored;
	struct path_witness *witness; /* of a client; NULL: none */
	/* Each number has arrived. NULL: no call. */
	void (*complete)(void *context);
	void *context;
};

/* `fd` is a UDP socket, which owamp_socket_prepare() has prepared, and is not closed. 0, -ENOMEM, or of the loop. */
int owamp_receiver_begin(struct owamp_receiver *receiver, struct loop *loop, int fd, uint32_t packets, uint16_t error);
/* No packet is recorded after this. */
void owamp_receiver_stop(struct owamp_receiver *receiver);
/* Takes what is in the socket. */
void owamp_receiver_drain(struct owamp_receiver *receiver);
void owamp_receiver_end(struct owamp_receiver *receiver);

/* Arrival stamps, TTL and counts of drops. */
void owamp_socket_prepare(int fd, uint8_t family);

#endif
