/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The sender of an OWAMP session: test packets at the times of its schedule. The time in a packet is that just before
 * its system call, so the lateness of a packet is no part of its delay. A packet that the kernel does not take is
 * skipped, and reported as such.
 */
#ifndef KTRXER_METHODS_OWAMP_SENDER_H
#define KTRXER_METHODS_OWAMP_SENDER_H

#include "loop.h"
#include "owamp_schedule.h"

enum { OWAMP_PADDING_MOST = 8972, OWAMP_SKIPS_MOST = 1024 };

struct owamp_sender_options {
	struct loop *loop;
	int fd; /* connected; the sender does not close it */
	uint8_t sid[OWAMP_SID];
	const struct owamp_slot *slots;
	uint32_t slot_count, packets, padding;
	int64_t start_real_ns;
	uint16_t error;   /* of the clock: stamp_error_write() */
	uint64_t late_ns; /* packets with more lateness are counted */
	bool stamps;      /* the packet scheduler's stamps are wanted, too: sched_real_ns */
	/* Once, after the last packet. NULL: no call. */
	void (*ended)(void *context);
	void *context;
};

struct owamp_sender {
	struct loop_source source; /* of stamps */
	struct loop_timer timer;
	struct owamp_sender_options o;
	struct owamp_schedule schedule;
	uint64_t start_ns, due_ns;  /* CLOCK_MONOTONIC */
	uint32_t next;              /* number of the next packet */
	uint32_t sent, late, skips; /* skips: ranges */
	uint32_t stamped;           /* datagrams that the packet scheduler has stamped */
	uint32_t left;              /* datagrams that the driver has stamped */
	int error;                  /* errno of the last packet that the kernel did not take */
	struct owamp_skip skip[OWAMP_SKIPS_MOST];
	struct ktrxer_hist *lateness;
	/* With `stamps`, by number: time in the packet scheduler, CLOCK_REALTIME; 0: not known. */
	int64_t *sched_real_ns;
	uint32_t *number_of; /* a stamp's key is the count of stamped datagrams before it */
	bool watched, over;
	uint8_t packet[OWAMP_TEST_BYTES + OWAMP_PADDING_MOST];
};

/* 0 or a negative errno with a text. owamp_sender_end() in any case. */
int owamp_sender_begin(struct owamp_sender *sender, const struct owamp_sender_options *options,
		       struct ktrxer_error *err);
/* No packet leaves after this. Stamps are still read. */
void owamp_sender_stop(struct owamp_sender *sender);
void owamp_sender_end(struct owamp_sender *sender);

#endif
