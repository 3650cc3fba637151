/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "flow_packets.h"

#include "leb128.h"

#include <errno.h>

/* Small numbers of either sign become small numbers. */
static uint64_t fold(uint64_t difference)
{
	return difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0);
}

static uint64_t unfold(uint64_t folded)
{
	return folded >> 1 ^ (folded & 1 ? UINT64_MAX : 0);
}

uint32_t flow_packet_write(uint8_t *out, uint32_t flow, const struct flow_packet *p, struct flow_packets *before)
{
	uint8_t *at = leb128_write(out, flow);

	*at++ = p->kind;
	at = leb128_write(at, fold(p->number - before->number));
	at = leb128_write(at, fold(p->time_ns - before->time_ns));
	*before = (struct flow_packets){ p->number, p->time_ns };
	return (uint32_t)(at - out);
}

int flow_packet_read(struct bytes *block, uint32_t flows, uint32_t *flow, struct flow_packet *p,
		     struct flow_packets *before)
{
	uint64_t which;

	if (block->ok && !bytes_left(block))
		return 0;
	which = leb128_read(block);
	p->kind = bytes_u8(block);
	p->number = before->number + unfold(leb128_read(block));
	p->time_ns = before->time_ns + unfold(leb128_read(block));
	if (!block->ok || which >= flows || p->kind >= FLOW_PACKET_KINDS)
		return -EPROTO;
	*flow = (uint32_t)which;
	*before = (struct flow_packets){ p->number, p->time_ns };
	return 1;
}
