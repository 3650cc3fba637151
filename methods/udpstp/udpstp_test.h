/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One test of UDPSTP after its activation, on a connected socket: the sender of load or its receiver, at the client or
 * at the server. The search for the rate is the server's in both directions (RFC 9946).
 */
#ifndef KTRXER_METHODS_UDPSTP_TEST_H
#define KTRXER_METHODS_UDPSTP_TEST_H

#include "ip_capacity.h"
#include "loop.h"
#include "rate_search.h"
#include "udpstp_packet.h"

#include <ktrxer.h>

/* A datagram with more lateness is late: a tenth of the interval of the slower of the two transmitters. */
#define UDPSTP_LATE_NS (100 * (uint64_t)1000)

enum udpstp_end {
	UDPSTP_RUNNING,
	UDPSTP_FINISHED, /* both ends agree that it is over */
	UDPSTP_TIME_OUT, /* the peer did not confirm the end */
	UDPSTP_SILENT,   /* no PDU came for five seconds */
};

struct udpstp_test_options {
	struct loop *loop;
	int fd; /* connected; the test closes it */
	bool v6, server, sender;
	struct udpstp_activation activation;
	bool mtu_1500;
	uint32_t last_row; /* of the search, at the server */
	uint64_t seed;
	/* The server's answer to the activation, which a repeated request gets again. */
	uint8_t answer[UDPSTP_ACTIVATION_BYTES];
	/* Each sub-interval, as the receiver of load counted it. */
	void (*interval)(void *context, const struct ip_capacity_interval *interval);
	/* At the client, each trial, as the receiver counted it; `ip_bytes` UINT64_MAX: its status PDU was lost. */
	void (*trial)(void *context, uint64_t lasts_ns, uint64_t ip_bytes);
	/* Is called once. The test is freed by its owner, not within this call. */
	void (*ended)(void *context, enum udpstp_end end);
	void *context;
};

struct udpstp_test_counts {
	uint64_t datagrams, bytes;    /* of load, sent or received; bytes of payload */
	struct ktx_accounts accounts; /* of the sender: each datagram is a probe */
	uint64_t refused;             /* of the failed ones: a queue of this host was full */
	uint64_t socket_drops,
		user_stamped; /* of the receiver: datagrams lost in this host, without a stamp of the kernel */
	uint64_t paused_ns, pause_most_ns; /* in which the sender of load stood still, by its own stamps */
	uint64_t held_ns;                  /* longest time in which this end did not run */
	uint64_t ignored;                  /* datagrams that are no PDU of this test */
	uint64_t status_lost;
	uint64_t impairments;  /* of the search */
	uint32_t row, row_max; /* of the search */
};

struct udpstp_test;
int udpstp_test_new(struct udpstp_test **test, const struct udpstp_test_options *options, struct ktrxer_error *err);
void udpstp_test_free(struct udpstp_test *test);
/* Ends it, and informs the peer by one PDU. */
void udpstp_test_stop(struct udpstp_test *test);
void udpstp_test_counts(const struct udpstp_test *test, struct udpstp_test_counts *counts);
/* Lateness of the datagrams of the sender, which the caller frees; NULL: this end does not send. Once. */
struct ktrxer_hist *udpstp_test_lateness(struct udpstp_test *test);

/* Buffers, arrival stamps and counts of drops of the socket of a test: the client's is open before there is a test. */
void udpstp_socket_prepare(int fd, uint8_t family);
/*
 * IP_RECVERR: a socket that is not connected gets the errors of ICMP messages, and a sender the drops of this host's
 * own queue, by this option alone.
 */
void udpstp_errors_of_socket(int fd, bool v6, bool on);

#endif
