/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "host_stack.h"

#include "bytes.h"
#include "error.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

static const uint8_t no_mac[6];

int ktx_stack_check(struct ktrxer_packet_view *view, const uint8_t *frame, uint32_t length, enum ktrxer_link link,
		    const uint8_t device_mac[6], const char *engine, struct ktrxer_error *err)
{
	ktrxer_packet_parse(view, frame, length, link);
	if (!view->version || view->malformed)
		return ktrxer_fail(err, -EBADMSG,
				   "the %s engine sends IP packets, and this frame of %u bytes is no well-formed one",
				   engine, length);
	if (view->vlans)
		return ktrxer_fail(err, -EOPNOTSUPP, "the %s engine cannot write a VLAN tag: use the packet engine",
				   engine);
	if (view->end != length)
		return ktrxer_fail(err, -EOPNOTSUPP,
				   "the %s engine cannot send the %u bytes behind the IP packet: use the packet engine",
				   engine, length - view->end);
	if (link == KTRXER_LINK_ETHERNET && (memcmp(frame, no_mac, 6) != 0 || (memcmp(frame + 6, no_mac, 6) != 0 &&
									       memcmp(frame + 6, device_mac, 6) != 0)))
		return ktrxer_fail(err, -EOPNOTSUPP,
				   "the %s engine cannot choose link addresses, the host does: leave them zero, "
				   "or use the packet engine",
				   engine);
	return 0;
}

void ktx_stack_destination(union ktx_stack_address *to, const uint8_t *packet, uint16_t port, uint32_t scope)
{
	memset(to, 0, sizeof *to);
	if (packet[0] >> 4 == 6) {
		to->v6.sin6_family = AF_INET6;
		to->v6.sin6_port = htons(port);
		memcpy(&to->v6.sin6_addr, packet + 24, 16);
		if (IN6_IS_ADDR_LINKLOCAL(&to->v6.sin6_addr) || IN6_IS_ADDR_MC_LINKLOCAL(&to->v6.sin6_addr))
			to->v6.sin6_scope_id = scope;
	} else {
		to->v4.sin_family = AF_INET;
		to->v4.sin_port = htons(port);
		memcpy(&to->v4.sin_addr, packet + 16, 4);
	}
}
