/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "serve_packets.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = CONTROL_BODY_MAX };

bool serve_packets_add(struct serve_packets *p, struct control_link *link, uint32_t flow,
		       const struct flow_packet *packet)
{
	if (p->used + FLOW_PACKET_RECORD_MOST > BLOCK)
		serve_packets_send(p, link);
	if (!p->block)
		p->block = malloc(BLOCK);
	/* A record counts as sent once it stands in a block: so a block is only begun when there is room to send it. */
	if (!p->block || (!p->used && control_link_waiting(link) + BLOCK > KTRXER_CONTROL_SAMPLES_BYTES))
		return false;
	p->used += flow_packet_write(p->block + p->used, flow, packet, &p->before);
	return true;
}

void serve_packets_send(struct serve_packets *p, struct control_link *link)
{
	uint8_t *body = p->used ? control_link_begin(link, p->used) : NULL;

	if (body) {
		memcpy(body, p->block, p->used);
		control_link_send(link, CONTROL_PACKETS, p->used);
	}
	p->used = 0;
	p->before = (struct flow_packets){ 0 };
}
