/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The types of /dev/krx, for the file operations (rx.h) and for the path of each packet
 * (rx_hook.c).
 */
#ifndef KTRXER_MODULE_RX_TYPES_H
#define KTRXER_MODULE_RX_TYPES_H

#include <linux/errno.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/u64_stats_sync.h>
#include <linux/wait.h>

#include "module.h"
#include "rx_source.h"

#include <linux/ktrxer_classify.h>
#include <linux/ktrxer_match.h>

/* One for each processor. Only that processor writes it, in the hook. */
struct krx_counts {
	struct u64_stats_sync sync;
	u64 *matched; /* by rule */
};

struct krx_table {
	struct krx_match match;
	struct krx_counts __percpu *counts;
	u32 generation;
};

struct krx_ring {
	struct ktrxer_memory memory;
	void *map; /* holds struct ktrxer_rx_ring, the reader's page, the records */
	u32 map_bytes, data_bytes, data_offset, tail_offset;
	spinlock_t lock; /* protects head, captured and lost */
	u32 head;
	u64 captured, lost;
};

static inline struct ktrxer_rx_ring *krx_ring_info(const struct krx_ring *ring)
{
	return ring->map;
}

static inline u32 *krx_ring_tail(const struct krx_ring *ring)
{
	return ring->map + ring->tail_offset;
}

/* Events that the reader has seen. */
static inline u32 *krx_ring_seen(const struct krx_ring *ring)
{
	return krx_ring_tail(ring) + 1;
}

struct krx_file {
	struct net *net;
	struct mutex lock; /* one ioctl at a time */
	bool ready;	   /* set up: the ring exists until release. Store-release */
	u32 snap, ifindex; /* 0: all devices */
	struct krx_ring ring;
	struct krx_table __rcu *table; /* written under `lock` */
	wait_queue_head_t readers;
	u32 state; /* enum ktrxer_rx_state */
	u32 events; /* changes of the state */
	u32 generation; /* of the last table; under `lock` */

	/* Under RTNL. */
	struct list_head list;
	struct net_device *dev; /* NULL: none, or gone */
	bool promiscuous, hooked;
	struct nf_hook_ops ops[2];
	u32 ops_count;
};

/* A packet as it was on the link, where its header may have had a VLAN tag. */
struct krx_frame {
	const struct sk_buff *skb; /* from the network header on */
	const u8 *link; /* Ethernet header; NULL: there is none */
	u32 link_bytes; /* with the VLAN tag that is inserted again */
	u32 length;     /* of the whole packet */
	bool tagged;
};

/* False: no room, or the packet could not be read; the packet is counted as lost. */
bool krx_ring_put(struct krx_file *krx, const struct krx_frame *frame, u32 rule, u32 generation);

/* priv: the struct krx_file. */
unsigned int krx_hook_ingress(void *priv, struct sk_buff *skb, const struct nf_hook_state *state);
unsigned int krx_hook_prerouting(void *priv, struct sk_buff *skb,
				 const struct nf_hook_state *state);

#endif
