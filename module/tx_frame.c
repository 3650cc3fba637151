// SPDX-License-Identifier: GPL-2.0-only
/*
 * Phase one of a frame: makes a socket buffer for the driver. The whole frame is copied: the bytes
 * that were checked are sent, whatever the program writes meanwhile, and a slot is free again as
 * soon as its probe is reported. The copy is made ahead of the send time, so it delays no probe.
 */
#include <linux/etherdevice.h>
#include <linux/if_ether.h>

#include "tx.h"

static __be16 ktx_frame_protocol(const struct ktx_shape *shape, const struct sk_buff *skb)
{
	if (shape->raw_ip)
		return skb->data[0] >> 4 == 6 ? htons(ETH_P_IPV6) : htons(ETH_P_IP);
	return eth_proto_is_802_3(eth_hdr(skb)->h_proto) ? eth_hdr(skb)->h_proto
							 : htons(ETH_P_802_2);
}

static int ktx_frame_check(const struct ktx_shape *shape, const u8 *data, u32 length)
{
	if (!shape->raw_ip)
		return length < shape->header ? -EINVAL : 0;
	return data[0] >> 4 == 4 || data[0] >> 4 == 6 ? 0 : -EINVAL;
}

struct sk_buff *ktx_frame_make(const struct ktx_shape *shape, const void *frame, u32 length)
{
	/* Aligns the network header, not the link header. */
	const u32 before = shape->headroom - shape->header;
	struct sk_buff *skb;
	int ret;

	skb = alloc_skb(before + max_t(u32, length, ETH_ZLEN) + shape->tailroom,
			GFP_KERNEL_ACCOUNT | __GFP_NOWARN | __GFP_NORETRY);
	if (!skb)
		return ERR_PTR(-ENOMEM);
	skb_reserve(skb, before);
	skb_put_data(skb, frame, length);
	ret = ktx_frame_check(shape, skb->data, length);
	if (ret) {
		kfree_skb(skb);
		return ERR_PTR(ret);
	}
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, shape->header);
	skb_set_transport_header(skb, shape->header);
	skb->protocol = ktx_frame_protocol(shape, skb);
	return skb;
}
