/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KTRXER_COMPAT_SKBUFF_H
#define KTRXER_COMPAT_SKBUFF_H

#include_next <linux/skbuff.h>

/*
 * A stamp may be the launch time of the packet from 5.18 on: then it is no stamp of arrival. Older
 * kernels do not distinguish the two.
 */
#ifndef KTRXER_HAS_SKB_TSTAMP
static inline ktime_t skb_tstamp(const struct sk_buff *skb)
{
	return skb->tstamp;
}
#endif

#endif
