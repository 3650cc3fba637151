/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Pairs of TCP data probes to a web server, on a schedule, over a few connections whose turn comes one after the other.
 * The connections are this program's: a receive rule for each of their ports captures the server's segments and drops
 * them before this host's TCP, which would answer with RST.
 */
#ifndef KTRXER_METHODS_TCP_PROBER_H
#define KTRXER_METHODS_TCP_PROBER_H

#include "path_witness.h"
#include "privilege.h"
#include "tcp_connection.h"

enum { TCP_CONNECTIONS_MAX = 16, TCP_FRUITLESS = 3 /* connections in a row without a result end the run */ };

struct tcp_prober_spec {
	struct ktrxer_addr to, from; /* from.family 0: the address of the route */
	const char *device, *engine; /* device NULL: the device of the route */
	uint16_t port;
	uint8_t tos;
	const char *host, *path; /* of the requests */
	uint32_t payload;        /* of a probe; 0: as short as the request allows */
	uint16_t mss;
	uint64_t count; /* pairs; 0: until stop_fd */
	uint64_t interval_ns;
	bool poisson;
	uint32_t connections;
	uint64_t timeout_ns, late_ns;
	bool precise; /* spin before each send time, in a thread of its own */
};

struct tcp_sample {
	uint64_t number, at_ns, sent_ns[2], arrived_ns[2]; /* sent_ns 0: not sent */
	int64_t rtt_ns[2];                                 /* -1: unknown */
	struct tcp_pair_result result;
	uint32_t answers;
	uint32_t sequence, elicited; /* as of struct tcp_pair_done */
	uint8_t doubt;               /* enum tcp_doubt */
	uint8_t sent_source[2];      /* enum ktx_sent_source */
	uint16_t from_port;
};

struct tcp_prober_result {
	uint64_t planned, paired; /* scheduled; both probes sent */
	uint64_t busy, unprimed;  /* not sent: no connection was ready; the two segments before did not come in time */
	uint64_t known, doubts[TCP_CONNECTION_ENDED + 1];
	uint64_t up[TCP_PAIR_EVENTS], down[TCP_PAIR_EVENTS];
	struct tcp_pair_totals totals[2]; /* up, down */
	uint64_t opened, ends[TCP_ENDS];  /* connections */
	struct ktx_accounts accounts;     /* of the probes alone */
	struct ktrxer_hist *rtt, *lateness;
	struct ktrxer_qdiscs qdiscs; /* of the device, when the run began */
	struct path_witness path;    /* after the end; the arrivals are those of the server's segments */
	uint64_t receiver_drops, user_stamped, begin_ns, end_ns;
	bool stopped;
	struct ktrxer_error failure; /* of this host; code 0: none */
	/* Why the server is of no use, by the last connection. */
	enum tcp_end end;
	struct tcp_response_head response;
	uint16_t peer_window, peer_mss;
};

struct tcp_prober_events {
	void (*pair)(void *context, const struct tcp_sample *sample);
	void *context;
};

struct tcp_prober;
/* Opens all that is needed, and drops the privileges. *prober is to be freed in any case. */
int tcp_prober_new(struct tcp_prober **prober, const struct tcp_prober_spec *spec, struct ktrxer_error *err);
void tcp_prober_free(struct tcp_prober *prober);
/* Call it once. `start_ns` 0: as soon as the connections are ready. */
void tcp_prober_run(struct tcp_prober *prober, uint64_t start_ns, int stop_fd, const struct tcp_prober_events *events);

const struct tcp_prober_result *tcp_prober_result_of(const struct tcp_prober *prober);
const struct ktrxer_path *tcp_prober_path_of(const struct tcp_prober *prober);
const struct privilege_left *tcp_prober_privileges_of(const struct tcp_prober *prober);
const struct ktx_info *tcp_prober_info_of(const struct tcp_prober *prober);
const char *tcp_prober_backend_of(const struct tcp_prober *prober);
uint32_t tcp_prober_payload_of(const struct tcp_prober *prober);

#endif
