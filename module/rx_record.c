// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes a packet as a record into the ring. The program that has mapped the ring may write any
 * value anywhere in it, at any time. The module reads one word of the mapping, the tail, once for
 * each record, and checks its range.
 */
#include <linux/if_ether.h>
#include <linux/if_vlan.h>
#include <linux/timekeeping.h>
#include <linux/unaligned.h>

#include "rx_types.h"

enum { KRX_ALIGN = 8 };

/*
 * Contiguous room for `bytes`, from `head` on; NULL: no room. If the record does not fit before
 * the end of the ring, it begins at the start of the ring, and `head` moves there.
 */
static struct ktrxer_rx_record *krx_ring_room(const struct krx_ring *ring, u32 bytes, u32 *head)
{
	u8 *data = ring->map + ring->data_offset;
	/* Pairs with the reader's release: the reader has read all records before the tail. */
	u32 used = *head - smp_load_acquire(krx_ring_tail(ring));
	u32 at = *head & (ring->data_bytes - 1), pad = 0;

	if (bytes > ring->data_bytes - at)
		pad = ring->data_bytes - at;
	/* The sum is below 2^32: each of the two is at most 2^30 and some. */
	if (used > ring->data_bytes || pad + bytes > ring->data_bytes - used)
		return NULL;
	if (pad) {
		struct ktrxer_rx_record *r = (void *)(data + at);

		/* The first 8 bytes of the record fit: each position is a multiple of 8. */
		WRITE_ONCE(r->size, pad);
		WRITE_ONCE(r->flags, KTRXER_RX_PAD);
		*head += pad;
		at = 0;
	}
	return (void *)(data + at);
}

static bool krx_frame_copy(const struct krx_frame *frame, u8 *to, u32 n)
{
	u8 head[VLAN_ETH_HLEN];
	u32 part = min(n, frame->link_bytes);

	if (frame->tagged) {
		memcpy(head, frame->link, 2 * ETH_ALEN);
		put_unaligned(frame->skb->vlan_proto, (__be16 *)(head + 2 * ETH_ALEN));
		put_unaligned_be16(skb_vlan_tag_get(frame->skb), head + 2 * ETH_ALEN + 2);
		memcpy(head + 2 * ETH_ALEN + VLAN_HLEN, frame->link + 2 * ETH_ALEN, 2);
		memcpy(to, head, part);
	} else if (frame->link) {
		memcpy(to, frame->link, part);
	}
	return !skb_copy_bits(frame->skb, 0, to + part, n - part);
}

/*
 * Packets have an arrival stamp while a user of stamps is registered (krx_file_setup() does that).
 * A stamp older than a second is no arrival stamp: old kernels leave the launch time of a packet of
 * this host in this field when the packet passes a veth pair.
 */
static u32 krx_stamp_take(const struct sk_buff *skb, s64 *real_ns, u64 *mono_ns)
{
	ktime_t now = ktime_get_real(), stamp = skb_tstamp(skb);
	u32 flags = 0;

	if (!stamp || ktime_after(stamp, now) ||
	    ktime_after(now, ktime_add_ns(stamp, NSEC_PER_SEC))) {
		stamp = now;
		flags = KTRXER_RX_LATE;
	}
	*real_ns = ktime_to_ns(stamp);
	*mono_ns = ktime_to_ns(ktime_sub(stamp, ktime_mono_to_real(0)));
	return flags;
}

/* `at` becomes the end of the record, where the next record begins. */
static bool krx_ring_write(const struct krx_file *krx, const struct krx_frame *frame, u32 rule,
			   u32 generation, u32 *at)
{
	const struct sk_buff *skb = frame->skb;
	const u32 kept = min(frame->length, krx->snap);
	const u32 size = ALIGN(offsetof(struct ktrxer_rx_record, data) + kept, KRX_ALIGN);
	struct ktrxer_rx_record head = {
		.size = size,
		.rule = rule,
		.ifindex = skb->dev->ifindex,
		.length = frame->length,
		.kept = kept,
		.generation = generation,
	};
	struct ktrxer_rx_record *r;

	head.flags = krx_stamp_take(skb, &head.real_ns, &head.mono_ns);
	if (!frame->link)
		head.flags |= KTRXER_RX_RAW_IP;
	if (frame->tagged) {
		head.flags |= KTRXER_RX_TAGGED;
		head.tci = skb_vlan_tag_get(skb);
	}
	if (skb->pkt_type <= PACKET_OTHERHOST)
		head.direction = skb->pkt_type;
	r = krx_ring_room(&krx->ring, size, at);
	if (!r || !krx_frame_copy(frame, r->data, kept))
		return false;
	memcpy(r, &head, offsetof(struct ktrxer_rx_record, data));
	*at += size;
	return true;
}

bool krx_ring_put(struct krx_file *krx, const struct krx_frame *frame, u32 rule, u32 generation)
{
	struct krx_ring *ring = &krx->ring;
	struct ktrxer_rx_ring *info = krx_ring_info(ring);
	u32 head;
	bool done;

	spin_lock(&ring->lock);
	head = ring->head;
	done = krx_ring_write(krx, frame, rule, generation, &head);
	if (done) {
		ring->captured++;
		WRITE_ONCE(ring->head, head);
	} else {
		ring->lost++;
		WRITE_ONCE(info->lost, (u32)ring->lost);
	}
	/*
	 * Pairs with the reader's acquire: the record is whole. The head is stored without a
	 * record, too, so that a reader which overwrote it finds the position again.
	 */
	smp_store_release(&info->head, ring->head);
	spin_unlock(&ring->lock);
	return done;
}
