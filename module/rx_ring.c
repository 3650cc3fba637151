// SPDX-License-Identifier: GPL-2.0-only
/* The ring that user space maps, made and taken away. rx_record.c writes it. */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/vmalloc.h>

#include "rx.h"

static int krx_ring_make(struct krx_ring *ring, u32 bytes)
{
	struct ktrxer_rx_ring *info;
	unsigned long map_bytes;

	bytes = roundup_pow_of_two(bytes);
	map_bytes = 2 * PAGE_SIZE + PAGE_ALIGN(bytes);
	/* More would be refused with a page of warnings in the log. */
	if (map_bytes / PAGE_SIZE > totalram_pages() / 4 || map_bytes > VMALLOC_TOTAL / 4)
		return -ENOMEM;
	ring->map = vmalloc_user(map_bytes);
	if (!ring->map)
		return -ENOMEM;
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

static void krx_ring_free(struct krx_ring *ring)
{
	vfree(ring->map);
	ring->map = NULL;
}

static bool krx_ring_readable(const struct krx_ring *ring)
{
	return READ_ONCE(ring->head) != READ_ONCE(*krx_ring_tail(ring));
}
