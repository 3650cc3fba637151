/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The client of a test of IP-layer capacity (RFC 9946): setup, activation, and the test itself, in one call. */
#ifndef KTRXER_METHODS_UDPSTP_CLIENT_H
#define KTRXER_METHODS_UDPSTP_CLIENT_H

#include "rate_trials.h"
#include "udpstp_test.h"

struct udpstp_client_options {
	struct ktrxer_addr to, from; /* from.family 0: the route decides */
	uint16_t port;
	const uint8_t *secret; /* the shared key; NULL: unauthenticated */
	size_t secret_length;
	uint8_t key_id;
	bool down, mtu_1500;
	uint16_t max_mbit_s; /* 0: none is stated */
	/* the requested test; the server may change it. The client sets request, version and rate. */
	struct udpstp_activation activation;
	int stop_fd; /* readable: stop; -1: none */
	/* Is called for each sub-interval of the result. */
	void (*interval)(void *context, uint32_t number, const struct ip_capacity_interval *interval);
	void *context;
};

struct udpstp_client_result {
	struct udpstp_activation agreed;
	uint16_t test_port;
	struct ip_capacity_interval *intervals;
	uint32_t count, wanted;
	struct rate_trials *trials;
	struct udpstp_test_counts counts;
	struct ktrxer_hist *lateness; /* of the datagrams up; NULL: the direction is down */
	enum udpstp_end end;
	bool stopped;
	uint64_t lasted_ns; /* from the setup request to the end */
};

/* 0, or a negative errno with a text: no answer, a refusal. udpstp_client_free() in any case. */
int udpstp_client_run(struct udpstp_client_result *result, const struct udpstp_client_options *options,
		      struct ktrxer_error *err);
void udpstp_client_free(struct udpstp_client_result *result);

#endif
