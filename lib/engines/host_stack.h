/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * For the engines that send by the host's stack (udp, raw): which fields of a frame the stack keeps.
 */
#ifndef KTRXER_LIB_HOST_STACK_H
#define KTRXER_LIB_HOST_STACK_H

#include "packet.h"

#include <netinet/in.h>

union ktx_stack_address {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/*
 * Parses and refuses what no such engine can reproduce: VLAN tags, link addresses that are chosen (zero, or the
 * device's own as the source, are fine: the host's stack fills them in), bytes behind the packet, lengths that lie.
 */
int ktx_stack_check(struct ktrxer_packet_view *view, const uint8_t *frame, uint32_t length, enum ktrxer_link link,
		    const uint8_t device_mac[6], const char *engine, struct ktrxer_error *err);

static inline uint32_t ktx_stack_offset(enum ktrxer_link link)
{
	return link == KTRXER_LINK_ETHERNET ? 14 : 0;
}

/* The packet has passed the check; `port` in host order (0 for raw sockets), `scope` for link-local IPv6. */
void ktx_stack_destination(union ktx_stack_address *to, const uint8_t *packet, uint16_t port, uint32_t scope);

static inline socklen_t ktx_stack_address_length(const union ktx_stack_address *to)
{
	return to->sa.sa_family == AF_INET6 ? sizeof to->v6 : sizeof to->v4;
}

#endif
