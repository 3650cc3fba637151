// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hook. Called in softirq, inside an RCU read section. Packets may be shared with other
 * users, so they are read and never written.
 *
 * The two hooks of a file are first in their chains. Hooks of a file that is opened later come
 * before those of an earlier one.
 *
 * Each packet passes this file and rx_record.c: they are built for speed, the other files for a
 * small size (Kbuild).
 */
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_vlan.h>
#include <linux/poll.h>
#include <linux/rcupdate.h>

#include "rx_types.h"

static void krx_frame_set(struct krx_frame *frame, const struct sk_buff *skb)
{
	const unsigned short type = skb->dev->type;

	*frame = (struct krx_frame){ .skb = skb, .length = skb->len };
	if ((type != ARPHRD_ETHER && type != ARPHRD_LOOPBACK) || !skb_mac_header_was_set(skb) ||
	    skb->data - skb_mac_header(skb) != ETH_HLEN)
		return;
	frame->link = skb_mac_header(skb);
	frame->tagged = skb_vlan_tag_present(skb);
	frame->link_bytes = ETH_HLEN + (frame->tagged ? VLAN_HLEN : 0);
	frame->length += frame->link_bytes;
}

static void krx_packet_keep(struct krx_file *krx, const struct krx_frame *frame, u32 rule,
			    u32 generation)
{
	if (krx_ring_put(krx, frame, rule, generation) && wq_has_sleeper(&krx->readers))
		wake_up_interruptible_poll(&krx->readers, EPOLLIN | EPOLLRDNORM);
}

static void krx_table_count(const struct krx_table *table, u32 rule)
{
	struct krx_counts *counts = this_cpu_ptr(table->counts);

	u64_stats_update_begin(&counts->sync);
	counts->matched[rule]++;
	u64_stats_update_end(&counts->sync);
}

static unsigned int krx_packet_judge(struct krx_file *krx, const struct krx_frame *frame, u32 type)
{
	const struct krx_source source = { .skb = frame->skb, .length = frame->skb->len };
	const struct krx_table *table = rcu_dereference(krx->table);
	struct krx_view view;
	struct krx_walk walk;
	u32 rule;

	if (!table)
		return NF_ACCEPT;
	krx_classify(&view, &walk, &source, type, frame->tagged);
	rule = krx_match_find(&table->match, &view);
	if (rule == KRX_NONE)
		return NF_ACCEPT;
	krx_table_count(table, rule);
	switch (table->match.op[rule]) {
	case KTRXER_RX_CAPTURE:
		krx_packet_keep(krx, frame, rule, table->generation);
		return NF_ACCEPT;
	case KTRXER_RX_CAPTURE_DROP:
		krx_packet_keep(krx, frame, rule, table->generation);
		return NF_DROP;
	case KTRXER_RX_DROP:
		return NF_DROP;
	default:
		return NF_ACCEPT;
	}
}

unsigned int krx_hook_ingress(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct krx_frame frame;

	krx_frame_set(&frame, skb);
	return krx_packet_judge(priv, &frame,
				frame.link ? krx_number(frame.link + 2 * ETH_ALEN) : KRX_TYPE_RAW);
}

/* At PRE_ROUTING skb->data is at the IP header, whatever link header is before it. */
unsigned int krx_hook_prerouting(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct krx_file *krx = priv;
	struct krx_frame frame;

	if (krx->ifindex && krx->ifindex != state->in->ifindex)
		return NF_ACCEPT;
	krx_frame_set(&frame, skb);
	return krx_packet_judge(krx, &frame, KRX_TYPE_RAW);
}
