/* SPDX-License-Identifier: GPL-2.0-only */
/* The bytes of a socket buffer and a hash, for ktrxer_classify.h and ktrxer_match.h. */
#ifndef KTRXER_MODULE_RX_SOURCE_H
#define KTRXER_MODULE_RX_SOURCE_H

#include <linux/jhash.h>
#include <linux/skbuff.h>
#include <linux/string.h>

/* Offset 0 is the network header. */
struct krx_source {
	const struct sk_buff *skb;
	u32 length;
};

static inline const __u8 *krx_take(const struct krx_source *s, unsigned long at, unsigned int n,
				   void *room)
{
	return skb_header_pointer(s->skb, at, n, room);
}

static inline __u32 krx_hash(const void *words, __u32 count, __u32 seed)
{
	return jhash2(words, count, seed);
}

#endif
