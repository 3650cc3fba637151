/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The servers of protocols that have a port of their own: UDPSTP (RFC 9946) and OWAMP (RFC 4656). */
#ifndef KTRXER_CLI_SERVE_OTHER_SERVERS_H
#define KTRXER_CLI_SERVE_OTHER_SERVERS_H

#include "cli.h"
#include "owamp_server.h"
#include "udpstp_server.h"

struct other_servers {
	struct udpstp_server *capacity; /* tests of IP-layer capacity; NULL: there are none */
	struct owamp_server *owamp;     /* NULL: there is none */
	uint16_t udpstp_port, owamp_port;
};

struct other_servers_options {
	struct loop *loop;
	const struct ktrxer_addr *addrs;
	int addr_count;
	bool all_addresses;               /* a kernel without IPv6 is no fault */
	uint16_t udpstp_port, owamp_port; /* 0: not wanted */
	const uint8_t *token;
	size_t token_length;
	uint32_t max_clients;
	uint64_t max_ns, max_bps, answer_bps;
	uint64_t dscp_granted, dscp_open; /* of clients with the token, and of others */
};

/* Negative errno with a text. other_servers_close() in any case. */
int other_servers_open(struct other_servers *servers, const struct other_servers_options *options,
		       struct ktrxer_error *err);
void other_servers_say(const struct other_servers *servers, struct cli *cli);
void other_servers_close(struct other_servers *servers);

#endif
