/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sends load PDUs by one row of the sending rate table: two transmitters, each a burst of datagrams at its interval. A
 * late burst is sent at once, and the schedule goes on from its own times, so that the rate is the row's; bursts that
 * are late by more than UDPSTP_BEHIND_NS are skipped. The accounts are those of a transmitter of the library, of which
 * each datagram is a probe.
 */
#ifndef KTRXER_METHODS_UDPSTP_SENDER_H
#define KTRXER_METHODS_UDPSTP_SENDER_H

#include "loop.h"
#include "udpstp_rates.h"

#include <ktrxer.h>
#include <sys/socket.h>

enum { UDPSTP_BURST = 101, /* 100 datagrams and the additional one */ UDPSTP_POOL = 2 * UDPSTP_PAYLOAD_MAX };

#define UDPSTP_BEHIND_NS (10 * (uint64_t)KTRXER_NS_PER_MS)

struct udpstp_sender;

struct udpstp_transmitter {
	struct loop_timer timer; /* first */
	struct udpstp_sender *sender;
	uint64_t next_ns; /* of its burst; KTRXER_NEVER: it is off */
	int which;
};

struct udpstp_sender {
	struct loop *loop;
	int fd;
	bool v6, random_payload;
	struct udpstp_rate rate;
	struct udpstp_load head;        /* of the next datagrams: action, and what the last status PDU said */
	int64_t status_arrived_real_ns; /* 0: none has arrived */
	bool slow;                      /* no status PDU for a second: one datagram each 50 ms */
	struct udpstp_transmitter transmitters[2];
	struct ktx_accounts accounts;
	struct ktrxer_hist *lateness; /* of the datagrams with a scheduled time; NULL: no memory for it */
	uint64_t bytes;               /* of payload, sent */
	uint64_t refused;             /* of the failed ones: a queue of this host was full */
	uint64_t seed;
	struct mmsghdr messages[UDPSTP_BURST];
	struct iovec parts[UDPSTP_BURST][2];
	uint8_t heads[UDPSTP_BURST][UDPSTP_LOAD_HEAD];
	uint8_t pool[UDPSTP_POOL]; /* of the bytes after the head */
};

void udpstp_sender_begin(struct udpstp_sender *sender, struct loop *loop, int fd, bool v6, bool random_payload,
			 uint64_t seed);
void udpstp_sender_end(struct udpstp_sender *sender);
/* Takes effect at once. A transmitter that both rows have keeps its times. */
void udpstp_sender_rate(struct udpstp_sender *sender, const struct udpstp_rate *rate);
/* One datagram now, as short as possible. */
void udpstp_sender_one(struct udpstp_sender *sender);
/* Fills the accounts of the datagrams so far. */
void udpstp_sender_accounts(const struct udpstp_sender *sender, struct ktx_accounts *accounts);

#endif
