/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The sender of an OWAMP session: a transmitter of the library that sends test packets at the times of their schedule.
 * The engine writes the time in a packet just before its system call, so the lateness of a packet is no part of its
 * delay. A packet that the kernel does not take is skipped, and reported as such.
 */
#ifndef KTRXER_METHODS_OWAMP_SENDER_H
#define KTRXER_METHODS_OWAMP_SENDER_H

#include "loop.h"
#include "owamp_schedule.h"

enum { OWAMP_PADDING_MOST = 8972, OWAMP_SKIPS_MOST = 1024 };

struct owamp_sender_options {
	struct loop *loop;
	struct ktrxer_addr from, to;
	uint8_t dscp;
	uint32_t padding;
	uint64_t late_ns;    /* packets with more lateness are counted */
	uint64_t timeout_ns; /* a packet that is so late is not sent (RFC 4656, 4.1.1) */
	bool zeros;          /* the padding; else random bytes */
	bool client; /* a thread of its own, and the packet scheduler's stamps: sched_real_ns; a server has one loop */
	/* Once, when the last packet has left. NULL: no call. */
	void (*ended)(void *context);
	void *context;
};

/* Of the session, when it begins. */
struct owamp_sender_plan {
	uint8_t sid[OWAMP_SID];
	uint16_t to_port;
	const struct owamp_slot *slots;
	uint32_t slot_count, packets;
	int64_t start_real_ns;
	uint16_t error; /* of the clock: stamp_error_write() */
};

struct owamp_sender {
	struct loop_source source; /* of reports */
	struct loop_timer timer;
	struct owamp_sender_options o;
	struct owamp_schedule schedule;
	struct ktrxer_path path;
	struct ktx *tx;
	uint8_t *frame; /* all but the number of a packet and its checksum */
	uint32_t length, packets;
	uint16_t error;
	uint16_t port;            /* of this host */
	int64_t start_ns, due_ns; /* CLOCK_MONOTONIC; a start that has passed moves nothing */
	uint32_t next;            /* number of the next packet to commit; after owamp_sender_stop() to send */
	uint32_t skips;           /* ranges, in order */
	uint32_t skipped;         /* packets that were not sent, also of ranges beyond OWAMP_SKIPS_MOST */
	uint32_t uncommitted;     /* packets that the transmitter did not take, because its device is gone */
	uint32_t expired;         /* packets that did not reach the transmitter within their time-out */
	int error_last;           /* negative errno of the last one */
	struct owamp_skip skip[OWAMP_SKIPS_MOST];
	/* At the client, by number: time in the packet scheduler, CLOCK_REALTIME; 0: not known. */
	int64_t *sched_real_ns;
	bool planned, over; /* planned: due_ns is that of packet `next` */
};

/*
 * The transmitter, and a port that no other program uses. 0 or a negative errno with a text. owamp_sender_end() in any
 * case.
 */
int owamp_sender_open(struct owamp_sender *sender, const struct owamp_sender_options *options,
		      struct ktrxer_error *err);
/* Sends the packets from the start time on. 0 or a negative errno with a text. */
int owamp_sender_begin(struct owamp_sender *sender, const struct owamp_sender_plan *plan, struct ktrxer_error *err);
/* No packet leaves after this; what has left is accounted for. */
void owamp_sender_stop(struct owamp_sender *sender);
/* Fills the accounts of the packets so far. */
void owamp_sender_accounts(const struct owamp_sender *sender, struct ktx_accounts *accounts);
void owamp_sender_end(struct owamp_sender *sender);

#endif
