/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The reader of a BPF ring buffer (Linux 5.8), record by record: libbpf's own calls back and takes what it has shown.
 * The layout is kernel ABI: a page with the consumer's position, a page with the producer's, then the data twice over,
 * so that no record is cut.
 */
#ifndef KTRXER_LIB_BPF_RING_H
#define KTRXER_LIB_BPF_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_ring {
	void *consumer_page, *producer_page;
	size_t page, size; /* of the data: a power of two */
	const uint8_t *data;
	uint64_t consumed, produced; /* free-running positions; `produced` as last seen */
};

int ktrxer_bpf_ring_open(struct bpf_ring *ring, int map_fd, size_t size);
void ktrxer_bpf_ring_close(struct bpf_ring *ring);

/* NULL: none is ready. The record stays until ktrxer_bpf_ring_take(). */
const void *ktrxer_bpf_ring_look(struct bpf_ring *ring, uint32_t *length);
void ktrxer_bpf_ring_take(struct bpf_ring *ring);

#endif
