/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * AF_XDP transmits by two rings: descriptors to the kernel, and addresses of completed frames back. One producer, one
 * consumer; free-running 32-bit indices; an entry is index & mask. Each value of the kernel is read once.
 */
#ifndef KTRXER_LIB_XSK_RING_H
#define KTRXER_LIB_XSK_RING_H

#include "xsk_compat.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct xsk_ring {
	_Atomic uint32_t *producer, *consumer, *flags;
	void *entries;
	uint32_t mask;
	uint32_t mine; /* our side's index: of the next one to write, or to read */
};

/* xsk_socket.c: maps a ring, and says so in *map; 0 or a negative errno. */
int ktrxer_xsk_ring_map(int fd, struct xsk_ring *ring, const struct xsk_ring_offset *offset, uint32_t entries,
			size_t entry, uint64_t page_offset, void **map, size_t *map_size);
/* Ends a socket: two maps, its descriptor, its frames; what there is of them. */
void ktrxer_xsk_release(void *const maps[2], const size_t map_sizes[2], int fd, void *memory, size_t memory_size);

static inline uint32_t xsk_ring_left(const struct xsk_ring *tx)
{
	return tx->mine - atomic_load_explicit(tx->consumer, memory_order_acquire);
}

static inline struct xdp_desc *xsk_ring_desc(const struct xsk_ring *tx, uint32_t index)
{
	return (struct xdp_desc *)tx->entries + (index & tx->mask);
}

/* The caller has written `count` descriptors from `mine` on. */
static inline void xsk_ring_publish(struct xsk_ring *tx, uint32_t count)
{
	tx->mine += count;
	atomic_store_explicit(tx->producer, tx->mine, memory_order_release);
}

static inline bool xsk_ring_wants_kick(const struct xsk_ring *tx)
{
	/* The kernel sets the flag after it looked at the producer: our store of that must come before this load. */
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(tx->flags, memory_order_relaxed) & XDP_RING_NEED_WAKEUP;
}

static inline uint32_t xsk_ring_ready(const struct xsk_ring *completion)
{
	return atomic_load_explicit(completion->producer, memory_order_acquire) - completion->mine;
}

static inline uint64_t xsk_ring_take(struct xsk_ring *completion)
{
	return ((const uint64_t *)completion->entries)[completion->mine++ & completion->mask];
}

/* The kernel may write over the entries that were taken. */
static inline void xsk_ring_give_back(struct xsk_ring *completion)
{
	atomic_store_explicit(completion->consumer, completion->mine, memory_order_release);
}

#endif
