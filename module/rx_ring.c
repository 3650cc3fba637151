// SPDX-License-Identifier: GPL-2.0-only
/* Makes and frees the ring that user space maps. rx_record.c writes it. */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/vmalloc.h>

#include "rx.h"

int krx_ring_make(struct krx_ring *ring, u32 bytes)
{
	struct ktrxer_rx_ring *info;
	unsigned long map_bytes;
	int ret;

	bytes = roundup_pow_of_two(bytes);
	map_bytes = 2 * PAGE_SIZE + PAGE_ALIGN(bytes);
	ret = ktrxer_memory_take(&ring->memory, map_bytes, 0);
	if (ret)
		return ret;
	ring->map = ring->memory.at;
	ring->map_bytes = map_bytes;
	ring->data_bytes = bytes;
	ring->tail_offset = PAGE_SIZE;
	ring->data_offset = 2 * PAGE_SIZE;
	info = ring->map;
	info->magic = KTRXER_MAGIC;
	info->version = KTRXER_UAPI_VERSION;
	info->tail_offset = ring->tail_offset;
	info->data_offset = ring->data_offset;
	info->data_bytes = bytes;
	return 0;
}

void krx_ring_free(struct krx_ring *ring)
{
	ktrxer_memory_free(&ring->memory);
	ring->map = NULL;
}

bool krx_ring_readable(const struct krx_ring *ring)
{
	return READ_ONCE(ring->head) != READ_ONCE(*krx_ring_tail(ring));
}
