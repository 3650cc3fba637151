// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ring that is shared with the program. A program may write any value at any time: an index or
 * a length is read once into a private variable, checked, and used from there.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include "ktrxer_trace.h"
#include "tx.h"

static int ktx_ring_measure(struct ktx_file *f, struct ktrxer_tx_setup *setup)
{
	size_t slots, reports, frames, size;

	if (setup->slots < 2 || setup->slots > KTRXER_TX_SLOTS_MAX || !is_power_of_2(setup->slots))
		return -EINVAL;
	if (setup->frame_size < 1 || setup->frame_size > KTRXER_TX_FRAME_MAX)
		return -EINVAL;
	f->count = setup->slots;
	f->mask = f->count - 1;
	f->frame_size = setup->frame_size;
	f->stride = ALIGN(f->frame_size, 64);
	slots = PAGE_ALIGN((size_t)f->count * sizeof(*f->slots));
	reports = PAGE_ALIGN((size_t)f->count * sizeof(*f->reports));
	if (check_mul_overflow((size_t)f->count, (size_t)f->stride, &frames) ||
	    frames > KTX_MAP_MAX)
		return -ENOMEM;
	size = PAGE_SIZE + slots + reports + PAGE_ALIGN(frames);
	if (size > KTX_MAP_MAX)
		return -ENOMEM;
	setup->map_size = size;
	setup->slots_offset = PAGE_SIZE;
	setup->reports_offset = PAGE_SIZE + slots;
	setup->frames_offset = PAGE_SIZE + slots + reports;
	setup->frame_stride = f->stride;
	return 0;
}

static u32 ktx_ring_window(const struct ktx_file *f)
{
	const u32 fit = rounddown_pow_of_two(KTX_WINDOW_BYTES / f->stride);

	return min3(f->count, fit, (u32)KTX_WINDOW_MAX);
}

int ktx_ring_make(struct ktx_file *f, struct ktrxer_tx_setup *setup)
{
	int ret = ktx_ring_measure(f, setup);

	if (ret)
		return ret;
	BUILD_BUG_ON(sizeof(struct ktrxer_tx_ring) != 384);
	f->window = ktx_ring_window(f);
	f->window_mask = f->window - 1;
	f->requests = kvcalloc(f->window, sizeof(*f->requests), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!f->requests)
		return -ENOMEM;
	/* The socket buffers of the window count for the limit of the user, too. */
	ret = ktrxer_memory_take(&f->memory, setup->map_size, (size_t)f->window * f->stride);
	if (ret) {
		ktx_ring_free(f);
		return ret;
	}
	setup->map_offset = ktrxer_memory_offset(&f->memory);
	f->ring = f->memory.at;
	f->slots = f->memory.at + setup->slots_offset;
	f->reports = f->memory.at + setup->reports_offset;
	f->frames = f->memory.at + setup->frames_offset;
	f->ring->magic = KTRXER_MAGIC;
	f->ring->version = KTRXER_UAPI_VERSION;
	f->ring->slots = f->count;
	f->ring->frame_stride = f->stride;
	f->ring->slots_offset = setup->slots_offset;
	f->ring->reports_offset = setup->reports_offset;
	f->ring->frames_offset = setup->frames_offset;
	return 0;
}

/* The sender has stopped. */
void ktx_ring_free(struct ktx_file *f)
{
	for (; f->requests && f->sent != f->taken; f->sent++)
		kfree_skb(f->requests[f->sent & f->window_mask].skb);
	kvfree(f->requests);
	f->requests = NULL;
	ktrxer_memory_free(&f->memory);
}

static void ktx_ring_take_one(struct ktx_file *f, u32 number)
{
	const struct ktrxer_tx_slot *slot = &f->slots[number & f->mask];
	struct ktx_request *request = &f->requests[number & f->window_mask];
	const u32 length = READ_ONCE(slot->length);
	struct sk_buff *skb;

	request->at_ns = min_t(u64, READ_ONCE(slot->at_ns), KTIME_MAX);
	request->user = READ_ONCE(slot->user);
	request->flags = READ_ONCE(slot->flags);
	request->queue = request->flags & KTRXER_TX_QUEUE ? READ_ONCE(slot->queue) : f->queue;
	request->filtered = false;
	request->skb = NULL;
	request->error = 0;
	if (request->flags & ~(KTRXER_TX_TRAIN | KTRXER_TX_QUEUE) ||
	    (request->flags & KTRXER_TX_QUEUE && request->queue == KTRXER_TX_ANY_QUEUE)) {
		request->flags = 0;
		request->error = -EINVAL;
	} else if (length < 1 || length > f->frame_size) {
		request->error = -EMSGSIZE;
	/* otherwise phase two only ends the probe */
	} else if (!READ_ONCE(f->error) && !ktx_cancelled(f, number)) {
		skb = ktx_frame_make(&f->shape, f->frames + (size_t)(number & f->mask) * f->stride,
				     length);
		if (IS_ERR(skb))
			request->error = PTR_ERR(skb);
		else
			request->skb = skb;
	}
	trace_ktx_commit(f->id, number, request->at_ns, length, request->error);
}

/* The index that the program publishes: it may not decrease, nor pass the number of slots. */
static void ktx_ring_accept(struct ktx_file *f)
{
	/* Pairs with the program's release: its slots and frames are written. */
	const u32 head = smp_load_acquire(&f->ring->head);

	if (head - f->head > f->count || head - READ_ONCE(f->sent) > f->count)
		ktx_ring_fail(f, EPROTO);
	else
		WRITE_ONCE(f->head, head);
}

u32 ktx_ring_take(struct ktx_file *f, u32 most)
{
	u32 n = 0;

	lockdep_assert_held(&f->take_lock);
	if (READ_ONCE(f->error) != EPROTO)
		ktx_ring_accept(f);
	/* The acquire: phase one may use a request again when the sender has left it. */
	for (; n < most && f->taken != f->head && f->taken - smp_load_acquire(&f->sent) < f->window;
	     n++) {
		ktx_ring_take_one(f, f->taken);
		/* Pairs with ktx_send_next(): the request is complete. */
		smp_store_release(&f->taken, f->taken + 1);
		/*
		 * A window takes milliseconds. The softirq of the sender may be pending in
		 * ksoftirqd, which must not wait for so long.
		 */
		cond_resched();
	}
	return n;
}

bool ktx_ring_has_more(const struct ktx_file *f)
{
	const u32 taken = READ_ONCE(f->taken);

	if (taken - READ_ONCE(f->sent) >= f->window)
		return false;
	return taken != READ_ONCE(f->head) ||
	       (READ_ONCE(f->error) != EPROTO && taken != READ_ONCE(f->ring->head));
}

void ktx_ring_fail(struct ktx_file *f, int error)
{
	const int before = cmpxchg(&f->error, 0, error);

	/* A device that went down may be removed next: ENODEV replaces ENETDOWN. */
	if (before && !(before == ENETDOWN && error == ENODEV))
		return;
	WRITE_ONCE(f->error, error);
	WRITE_ONCE(f->ring->error, error);
	wake_up_interruptible_poll(&f->readers, EPOLLERR);
}

void ktx_ring_announce(struct ktx_file *f, u64 next_ns)
{
	const u32 sent = f->sent;

	if (sent == f->announced || !wq_has_sleeper(&f->readers))
		return;
	/*
	 * A reader that wakes between two probes with little time between them delays the second
	 * one.
	 */
	if (next_ns != KTX_NEVER && next_ns < ktime_get_ns() + KTX_QUIET_NS &&
	    sent - f->announced < f->count / 2)
		return;
	f->announced = sent;
	wake_up_interruptible_poll(&f->readers, EPOLLIN | EPOLLRDNORM);
}
