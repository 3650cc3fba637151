/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KTRXER_COMPAT_SKBUFF_H
#define KTRXER_COMPAT_SKBUFF_H

#include_next <linux/skbuff.h>

/*
 * From 5.18 on a stamp may be the time at which the packet was to leave: then it is none of
 * arrival. Before, nothing tells.
 */
#ifndef KTRXER_HAS_SKB_TSTAMP
static inline ktime_t skb_tstamp(const struct sk_buff *skb)
{
	return skb->tstamp;
}
#endif

#endif
