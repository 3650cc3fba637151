/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * This AF_XDP socket only transmits: it has its memory and two rings. No XDP program and no receive ring is attached to
 * the device; the fill ring exists because the kernel requires one, and is never used.
 */
#ifndef KTRXER_LIB_XSK_SOCKET_H
#define KTRXER_LIB_XSK_SOCKET_H

#include "error.h"
#include "xsk_ring.h"

enum {
	XSK_HEADROOM = 64, /* before each frame: metadata, and a cache line of its own for the frame */
	XSK_LINE = 64,
	XSK_CHUNK_MIN = 2048, /* the kernel's bounds for a chunk: this and a page */
	XSK_CHUNK_MAX = 4096,
	XSK_FRAME_MAX = XSK_CHUNK_MAX - XSK_HEADROOM,
};

struct xsk_setup {
	const char *device; /* for messages */
	uint32_t index;     /* of the device */
	uint32_t queue;
	uint32_t slots;  /* power of two */
	uint32_t spares; /* chunks more than slots, at most as many */
	uint32_t frame_size;
	bool copy;     /* never zero copy */
	bool metadata; /* each frame has room for transmit metadata before it, if this kernel supports it */
};

struct xsk_socket {
	int fd;
	bool zero_copy, metadata;
	uint32_t budget; /* frames that one call takes in copy mode */
	uint8_t *memory;
	size_t memory_size;
	uint32_t chunk, slots;
	uint32_t chunks;  /* slots and spares: chunk n is slot n's at first */
	uint32_t colours; /* frames begin at one of so many cache lines of their chunk */
	struct xsk_ring tx, completion;
	void *maps[2];
	size_t map_sizes[2];
};

/* 0: no chunk holds frames of this size. */
uint32_t ktrxer_xsk_chunk_size(uint32_t frame_size);

int ktrxer_xsk_socket_open(struct xsk_socket *xsk, const struct xsk_setup *setup, struct ktrxer_error *err);
void ktrxer_xsk_socket_close(struct xsk_socket *xsk);

/* Has the kernel look at the ring. 0 or a negative errno. Takes the socket as void *: it is a context. */
int ktrxer_xsk_socket_kick(void *xsk);
int ktrxer_xsk_socket_invalid(void *xsk, uint64_t *count);

uint32_t ktrxer_xsk_chunk_colours(uint32_t chunk, uint32_t frame_size);

/*
 * Offset into the memory, as descriptors have it. Frames that begin 2048 bytes apart would share a few sets of each
 * cache and throw each other out of it (12 % of the rate with full frames): so neighbours begin at different lines.
 */
static inline uint64_t xsk_frame_offset(const struct xsk_socket *xsk, uint32_t slot)
{
	return (uint64_t)slot * xsk->chunk + XSK_HEADROOM + slot % xsk->colours * XSK_LINE;
}

/* The chunk of an address from the completion ring; >= chunks: no address of ours. */
static inline uint64_t xsk_slot_of(const struct xsk_socket *xsk, uint64_t offset)
{
	return offset / xsk->chunk;
}

static inline struct xsk_metadata *xsk_metadata_at(const struct xsk_socket *xsk, uint32_t slot)
{
	return (struct xsk_metadata *)(xsk->memory + xsk_frame_offset(xsk, slot)) - 1;
}

#endif
