/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Echo: round trips of ICMP or UDP echo. This file finds the probe that a reply answers, and the result (RFC 2681
 * round-trip delay, RFC 6673 round-trip loss, RFC 5560 duplicates, RFC 4737 reordering); it sends nothing and reads no
 * clock.
 *
 * A round trip needs two stamps that come by different ways in either order: when the probe left (its report) and when
 * the answer arrived. Times never come out of a packet: the far end could change them.
 */
#ifndef KTRXER_METHODS_ECHO_H
#define KTRXER_METHODS_ECHO_H

#include <ktrxer.h>

/*
 * In the payload of each probe, as far as there is room: number (8 bytes, big-endian), then a secret of this run (8
 * bytes).
 */
#define ECHO_PAYLOAD_NUMBER 8
#define ECHO_PAYLOAD_FULL 16

struct echo_reply {
	uint16_t id, seq; /* ICMP only */
	bool has_number, has_secret;
	uint64_t number, secret;
	uint32_t bytes; /* of payload */
};

/* `packet` begins at the payload for UDP, at the ICMP header for ICMP (version 4 or 6). False: no echo reply. */
bool echo_reply_parse(struct echo_reply *reply, const uint8_t *packet, uint32_t length, uint8_t proto);

enum echo_event {
	ECHO_NOTHING = 0, /* one of the two stamps is still missing */
	ECHO_ROUND_TRIP = 1,
	ECHO_DUPLICATE = 2,
	ECHO_TOO_LATE = 3, /* after its probe was given up as lost; the result has its times */
	ECHO_FOREIGN = 4,  /* no probe of ours */
};

struct echo_result {
	uint64_t number;
	uint64_t at_ns, sent_ns, received_ns;
	int64_t rtt_ns;
	int64_t own_queue_ns; /* of it: the wait in this host's packet scheduler; -1: not known */
	uint8_t sent_source;  /* enum ktx_sent_source of sent_ns */
	uint8_t source;       /* enum ktrxer_stamp_source of received_ns */
	uint8_t ttl;
	bool reordered; /* a later probe's answer came first */
	struct ktrxer_addr from;
};

struct echo_counts {
	uint64_t sent, failed, received, lost, duplicates, reordered, too_late, foreign;
	uint64_t waiting; /* sent, neither answered nor given up */
};

struct echo_table;

/*
 * `window`: probes that can be waiting at once, a power of two, 2 to 65536. `timeout_ns`, `overtaken_ns`: see struct
 * probe_spec. `secret`: an answer without it is not ours; 0: the probes have no room for one.
 */
int echo_table_new(struct echo_table **table, uint32_t window, uint64_t timeout_ns, uint64_t overtaken_ns,
		   uint64_t secret, bool icmp);
void echo_table_free(struct echo_table *table);

/* A probe was committed. -EAGAIN: the one a window before it still waits (give up what is lost first). */
int echo_table_commit(struct echo_table *table, uint64_t number);
/* The event of a probe's report. ECHO_ROUND_TRIP when its answer had come before its report. */
enum echo_event echo_table_report(struct echo_table *table, const struct ktx_report *report,
				  struct echo_result *result);

struct echo_arrival {
	uint64_t received_ns;
	uint8_t source, ttl;
	struct ktrxer_addr from;
};
enum echo_event echo_table_reply(struct echo_table *table, const struct echo_reply *reply,
				 const struct echo_arrival *arrival, struct echo_result *result);
/* Gives up what has waited too long, oldest first: true and its number for each. */
bool echo_table_lost(struct echo_table *table, uint64_t now_ns, uint64_t *number);
/* Returns the time at which the oldest waiting probe is given up; KTRXER_NEVER: none waits. */
uint64_t echo_table_next_loss(const struct echo_table *table);
void echo_table_counts(const struct echo_table *table, struct echo_counts *counts);

#endif
