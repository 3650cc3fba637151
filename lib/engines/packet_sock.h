/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A packet socket that only sends: the common part of the engines that use AF_PACKET. */
#ifndef KTRXER_LIB_PACKET_SOCK_H
#define KTRXER_LIB_PACKET_SOCK_H

#include "sock.h"

#include <linux/if_packet.h>

struct ktx_packet_sock {
	struct ktx_sock sock;
	struct sockaddr_ll to; /* raw IP links: they need the protocol */
	enum ktrxer_link link;
};

/* A descriptor, or a negative errno. Bound to protocol 0 it has no hook in the receive path. */
int ktx_packet_socket(const struct ktrxer_device *device, struct ktrxer_error *err);
void ktx_packet_sock_init(struct ktx_packet_sock *packet, int fd, const struct ktrxer_device *device);
int ktx_packet_sock_check(const struct ktx_packet_sock *packet, const uint8_t *frame, uint32_t length,
			  struct ktrxer_error *err);
/* The messages of `count` requests; returns of how many, since one call has one protocol for all. */
int ktx_packet_sock_fill(struct ktx_packet_sock *packet, struct ktx_request *const *requests, int count);

#endif
