/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ICMP errors about probes, as a tap sees them: for engines whose sockets get none (raw, packet and those beyond). */
#ifndef KTRXER_METHODS_ICMP_ERROR_H
#define KTRXER_METHODS_ICMP_ERROR_H

#include <ktrxer.h>

/* The probes: of UDP from this port, or echo requests with this identifier. */
struct icmp_error_probe {
	struct ktrxer_addr from, to;
	uint8_t proto;
	uint16_t id;
};

/* False: the packet is no ICMP error (RFC 792, RFC 4443), or it quotes no such probe. */
bool icmp_error_read(struct ktx_network_error *error, const struct krx_packet *packet,
		     const struct ktrxer_frame_view *view, const struct icmp_error_probe *probe);

#endif
