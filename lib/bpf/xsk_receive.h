/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * AF_XDP sockets that only receive: one for each receive queue, its frames' memory, its two rings. Frames stay where
 * the kernel (or the NIC) wrote them until they are given back.
 */
#ifndef KTRXER_LIB_XSK_RECEIVE_H
#define KTRXER_LIB_XSK_RECEIVE_H

#include "error.h"
#include "xsk_ring.h"

enum {
	XSK_RECEIVE_HEADROOM = 256, /* the kernel's own, in each chunk before the frame: XDP_PACKET_HEADROOM */
	XSK_RECEIVE_FRAMES_MIN = 64,
	XSK_RECEIVE_FRAMES_MAX = 1 << 19,
};

struct xsk_receiver {
	int fd;
	bool zero_copy;
	uint8_t *memory;
	size_t memory_size;
	uint32_t chunk, frames; /* frames: a power of two */
	struct xsk_ring rx, fill;
	uint32_t seen; /* the producer of `rx` as last looked at */
	void *maps[2];
	size_t map_sizes[2];
};

/* Returns the longest frame that fits with `metadata` bytes before it into chunks for this MTU. */
uint32_t ktrxer_xsk_receive_chunk(uint32_t mtu, uint32_t metadata);
uint32_t ktrxer_xsk_receive_most(uint32_t chunk, uint32_t metadata);

/*
 * `frames` is rounded up to a power of two. `generic`: the XDP program is attached in generic mode, where all is
 * copied.
 */
int ktrxer_xsk_receive_open(struct xsk_receiver *xsk, uint32_t device, uint32_t queue, uint32_t chunk, uint32_t frames,
			    bool generic, struct ktrxer_error *err);
void ktrxer_xsk_receive_close(struct xsk_receiver *xsk);

/* NULL: none. The frame stays until ktrxer_xsk_receive_take(). */
const uint8_t *ktrxer_xsk_receive_look(struct xsk_receiver *xsk, uint32_t *length);
void ktrxer_xsk_receive_take(struct xsk_receiver *xsk);
/* Frames for which there was no room. */
int ktrxer_xsk_receive_lost(const struct xsk_receiver *xsk, uint64_t *lost);

#endif
