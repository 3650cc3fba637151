/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /dev/krx inside. A packet goes: rx_hook.c (the hook) -> rx_classify.h (what it says) -> rx_table.c (which rule) -> rx_ring.c (a record).
 * rx_device.c binds a file to its device, rx_file.c is what user space calls.
 */
#ifndef KTRXER_MODULE_RX_H
#define KTRXER_MODULE_RX_H

#include <linux/errno.h>
#include <linux/jhash.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/u64_stats_sync.h>
#include <linux/wait.h>

#include "module.h"

/* Offset 0 is the network header. */
struct krx_source {
	const struct sk_buff *skb;
	u32 length;
};

static inline const __u8 *krx_take(const struct krx_source *s, __u32 at, __u32 n, void *room)
{
	return skb_header_pointer(s->skb, at, n, room);
}

static inline __u32 krx_hash(const void *words, __u32 count, __u32 seed)
{
	return jhash2(words, count, seed);
}

#include "rx_match.h"

/* ------------------------------------------------------------------------------------------------------------------ rules */

/* One row a processor, which alone writes it, in the hook. */
struct krx_counts {
	struct u64_stats_sync sync;
	u64 *matched; /* by rule */
};

struct krx_table {
	struct krx_match match;
	struct krx_counts __percpu *counts;
};

/* Of rules in user memory. An error pointer: -EFAULT, -EINVAL, -E2BIG, -ENOMEM. */
static struct krx_table *krx_table_make(const struct ktrxer_rx_rule __user *rules, u32 count);
/* May be NULL. Nobody looks at it any more. */
static void krx_table_free(struct krx_table *table);
static bool krx_table_drops(const struct krx_table *table);
/* In the hook. */
static void krx_table_count(const struct krx_table *table, u32 rule);
static void krx_table_sums(const struct krx_table *table, u64 *matched, u32 count);

/* ------------------------------------------------------------------------------------------------------------------- ring */

struct krx_ring {
	void *map; /* what user space maps: struct ktrxer_rx_ring, the reader's page, the records */
	u32 map_bytes, data_bytes, data_offset, tail_offset;
	spinlock_t lock; /* of what follows */
	u32 head;
	u64 captured, lost;
};

/* A packet as it was on the link: its header may have had a tag. */
struct krx_frame {
	const struct sk_buff *skb; /* from the network header on */
	const u8 *link;	     /* Ethernet header; NULL: there is none */
	u32 link_bytes;	     /* with the tag that goes back */
	u32 length;	     /* of all */
	bool tagged;
};

/* -ENOMEM: more than is reasonable here, or there is none. */
static int krx_ring_make(struct krx_ring *ring, u32 bytes);
static void krx_ring_free(struct krx_ring *ring);
static struct ktrxer_rx_ring *krx_ring_info(const struct krx_ring *ring);
static bool krx_ring_readable(const struct krx_ring *ring);
/* In the hook. False: there was no room, or the packet could not be read; it is counted as lost. */
static bool krx_ring_put(struct krx_ring *ring, const struct krx_frame *frame, u32 rule, u32 snap);

/* ------------------------------------------------------------------------------------------------------------------- file */

struct krx_file {
	struct net *net;
	struct mutex lock; /* one ioctl at a time */
	bool ready;	   /* set up: the ring is there, and stays. Store-release */
	u32 snap, ifindex; /* 0: all devices */
	struct krx_ring ring;
	struct krx_table __rcu *table; /* written under `lock` */
	wait_queue_head_t readers;
	u32 state; /* enum ktrxer_rx_state */

	/* Under RTNL. */
	struct list_head list;
	struct net_device *dev; /* NULL: none, or gone */
	bool promiscuous, hooked;
	struct nf_hook_ops ops[2];
	u32 ops_count;
};

/* `flags` and `hook` are known ones. -ENODEV. */
static int krx_device_bind(struct krx_file *krx, u32 hook, u32 flags);
/* From now on packets are asked. */
static int krx_device_hook(struct krx_file *krx);
/* Takes the file off its device; when it returns no packet is with it. */
static void krx_device_leave(struct krx_file *krx);
static int krx_device_init(void);
static void krx_device_exit(void);

/* priv: the struct krx_file. */
static unsigned int krx_hook_ingress(void *priv, struct sk_buff *skb, const struct nf_hook_state *state);
static unsigned int krx_hook_prerouting(void *priv, struct sk_buff *skb, const struct nf_hook_state *state);

#endif
