/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The prober, as its own files use it. */
#ifndef KTRXER_METHODS_TCP_PROBER_STATE_H
#define KTRXER_METHODS_TCP_PROBER_STATE_H

#include "loop.h"
#include "tcp_prober.h"

enum {
	TCP_PORTS = 32, /* of this host, in turn: the server may keep a closed connection for a while */
	TCP_HEADER = 20,
	TCP_RECEIVERS = 8, /* of the route's device, and of other ones */
};

/* A pair from its commit until its result and both reports are here. */
struct tcp_pending {
	struct tcp_sample sample;
	bool used, ended;
	uint8_t reports, sent;
	uint64_t primed_ns; /* arrival of the server's two segments before the pair */
};

struct tcp_place {
	struct tcp_connection connection;
	bool planned; /* connection.number has the pair's number, at_ns its time */
	uint64_t at_ns, open_ns;
	int port; /* index of the one in use */
	struct tcp_pending pending;
};

/* Captures and drops the server's segments that arrive by one device. */
struct tcp_receiver {
	struct loop_source source; /* first */
	struct tcp_prober *prober;
	struct krx *krx;
};

struct tcp_prober {
	struct tcp_prober_spec spec;
	struct ktrxer_path path;
	struct ktx *tx;
	struct tcp_receiver receivers[TCP_RECEIVERS]; /* the first is that of the route's device */
	int receiver_count;
	struct ktx_info info;
	struct privilege_left privileges;
	struct tcp_prober_events events;
	struct tcp_prober_result result;
	char request[TCP_REQUEST_MAX];
	uint32_t request_length;
	int sockets[TCP_PORTS]; /* bound, and never used: other programs do not get the ports */
	uint16_t ports[TCP_PORTS];
	int next_port;
	struct tcp_place places[TCP_CONNECTIONS_MAX];
	struct ktrxer_schedule *schedule;
	struct ktrxer_deadline due;
	bool have_due, started, closing;
	uint64_t start_ns, committed_ns;
	uint32_t fruitless; /* connections in a row that ended without a pair */
	const char *backend;
	struct loop *loop;
	struct loop_timer timer; /* of the next turn, which reads all receivers */
	struct loop_source tx_source;
};

void tcp_prober_on_send(void *context, struct tcp_connection *c, const struct tcp_segment *segment, int which,
			uint64_t at_ns);
void tcp_prober_on_done(void *context, struct tcp_connection *c, const struct tcp_pair_done *done);

#endif
