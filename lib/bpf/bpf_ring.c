/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bpf_ring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RECORD_HEADER 8
#define BUSY 0x80000000u    /* reserved, not written yet */
#define DISCARDED 0x40000000u

int ktrxer_bpf_ring_open(struct bpf_ring *ring, int map_fd, size_t size)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int rc;

	memset(ring, 0, sizeof *ring);
	ring->page = page;
	ring->size = size;
	ring->consumer_page = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	if (ring->consumer_page == MAP_FAILED) {
		ring->consumer_page = NULL;
		return -errno;
	}
	ring->producer_page = mmap(NULL, page + 2 * size, PROT_READ, MAP_SHARED, map_fd, (off_t)page);
	if (ring->producer_page == MAP_FAILED) {
		rc = -errno;
		ring->producer_page = NULL;
		ktrxer_bpf_ring_close(ring);
		return rc;
	}
	ring->data = (const uint8_t *)ring->producer_page + page;
	return 0;
}

void ktrxer_bpf_ring_close(struct bpf_ring *ring)
{
	if (ring->producer_page)
		munmap(ring->producer_page, ring->page + 2 * ring->size);
	if (ring->consumer_page)
		munmap(ring->consumer_page, ring->page);
	memset(ring, 0, sizeof *ring);
}

static uint32_t header_at(const struct bpf_ring *ring, uint64_t position)
{
	const _Atomic uint32_t *header = (const void *)(ring->data + (position & (ring->size - 1)));

	return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)header, memory_order_acquire);
}

/* The positions are the kernel's `unsigned long`. */
static void consumed_set(struct bpf_ring *ring)
{
	atomic_store_explicit((_Atomic unsigned long *)ring->consumer_page, (unsigned long)ring->consumed,
			      memory_order_release);
}

static uint64_t length_of(uint32_t header)
{
	return ((uint64_t)(header & ~(BUSY | DISCARDED)) + RECORD_HEADER + 7) / 8 * 8;
}

const void *ktrxer_bpf_ring_look(struct bpf_ring *ring, uint32_t *length)
{
	for (;;) {
		uint32_t header;

		if ((unsigned long)ring->produced == (unsigned long)ring->consumed) {
			ring->produced = atomic_load_explicit((_Atomic unsigned long *)ring->producer_page,
							      memory_order_acquire);
			if ((unsigned long)ring->produced == (unsigned long)ring->consumed) {
				/*
				 * The kernel wakes us for a record that it submits while it sees all before it
				 * consumed. So our word goes out before we look for the last time, and that look is not
				 * earlier than the word.
				 */
				atomic_thread_fence(memory_order_seq_cst);
				ring->produced = atomic_load_explicit((_Atomic unsigned long *)ring->producer_page,
								      memory_order_acquire);
				if ((unsigned long)ring->produced == (unsigned long)ring->consumed)
					return NULL;
			}
		}
		header = header_at(ring, ring->consumed);
		if (header & BUSY)
			return NULL;
		if (!(header & DISCARDED)) {
			*length = header;
			return ring->data + (ring->consumed & (ring->size - 1)) + RECORD_HEADER;
		}
		ring->consumed += length_of(header);
		consumed_set(ring);
	}
}

void ktrxer_bpf_ring_take(struct bpf_ring *ring)
{
	ring->consumed += length_of(header_at(ring, ring->consumed));
	consumed_set(ring);
}
