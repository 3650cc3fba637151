/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The server of tests of IP-layer capacity (RFC 9946). A client must prove the token in each control PDU, and a request
 * that was seen before is not accepted again: a recorded one cannot direct traffic at another host.
 */
#ifndef KTRXER_METHODS_UDPSTP_SERVER_H
#define KTRXER_METHODS_UDPSTP_SERVER_H

#include "limiter.h"
#include "udpstp_test.h"

enum {
	UDPSTP_SERVER_TESTS = 64,  /* at once */
	UDPSTP_SERVER_SEEN = 1024, /* digests of requests within the time that they are valid */
	UDPSTP_SERVER_LISTENERS = 16,
};

struct udpstp_server_options {
	const uint8_t *secret; /* the token, copied */
	size_t secret_length;
	uint32_t max_clients;
	uint64_t max_ns, max_bps; /* of one test; max_bps 0: no limit */
	uint64_t dscp_granted;    /* bit n: tests may carry DSCP n */
	uint64_t random;
};

struct udpstp_server_counts {
	uint64_t requests, tests; /* tests that began */
	uint64_t refused;         /* of all reasons */
	uint64_t bytes[2];        /* of load of tests that have ended: [0] received, [1] sent */
	uint64_t socket_drops;    /* of load of tests that have ended: lost in this host */
	uint32_t running;
};

struct udpstp_server;
int udpstp_server_new(struct udpstp_server **server, struct loop *loop, const struct udpstp_server_options *options,
		      struct ktrxer_error *err);
int udpstp_server_listen(struct udpstp_server *server, const struct ktrxer_addr *bind, uint16_t port,
			 struct ktrxer_error *err);
/* The token of new tests. */
void udpstp_server_set_secret(struct udpstp_server *server, const uint8_t *secret, size_t length);
void udpstp_server_counts(const struct udpstp_server *server, struct udpstp_server_counts *counts);
void udpstp_server_free(struct udpstp_server *server);

#endif
