/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The server of OWAMP-Control in unauthenticated mode (RFC 4656, 3), with both roles of OWAMP-Test. A session is
 * between this host and the host at the other end of the control connection alone, whose address TCP has proven: the
 * server neither sends packets to a third host nor takes them from one. A session has limits of packets, duration and
 * rate, and all together have one of rate. Its records exist until the connection ends. One network cannot hold all
 * places: see place_of().
 */
#ifndef KTRXER_METHODS_OWAMP_SERVER_H
#define KTRXER_METHODS_OWAMP_SERVER_H

#include "loop.h"

enum {
	OWAMP_SERVER_CLIENTS = 64, /* connections at once, at most */
	OWAMP_SERVER_SESSIONS = 4, /* of one connection */
	OWAMP_SERVER_LISTENERS = 16,
	OWAMP_SERVER_PACKETS = 36000, /* of one session */
	OWAMP_SERVER_AHEAD_S = 3600,  /* a session may begin so much later */
};

struct owamp_server_options {
	uint32_t max_clients;
	uint64_t max_ns, max_bps; /* of one session: duration; mean rate of IP packets */
	uint64_t max_all_bps;     /* of all sessions that this host sends; 0: no limit */
	uint64_t dscp_granted;    /* bit n: test packets may carry DSCP n */
	uint64_t random;
};

struct owamp_server_counts {
	uint64_t connections, sessions; /* sessions that began */
	uint64_t refused;               /* connections and requests; connections that gave way to others */
	uint64_t protocol_errors;
	uint64_t packets[2];   /* of sessions that have ended: [0] received, [1] sent */
	uint64_t socket_drops; /* of sessions that have ended: lost in this host */
	uint32_t clients;      /* now */
};

struct owamp_server;
int owamp_server_new(struct owamp_server **server, struct loop *loop, const struct owamp_server_options *options,
		     struct ktrxer_error *err);
int owamp_server_listen(struct owamp_server *server, const struct ktrxer_addr *bind, uint16_t port,
			struct ktrxer_error *err);
void owamp_server_counts(const struct owamp_server *server, struct owamp_server_counts *counts);
void owamp_server_free(struct owamp_server *server);

#endif
