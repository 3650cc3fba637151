/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "xsk_receive.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CHUNK_SMALL = 2048, CHUNK_LARGE = 4096, LINK_AND_TAGS = 14 + 8 };

uint32_t ktrxer_xsk_receive_most(uint32_t chunk, uint32_t metadata)
{
	return chunk - XSK_RECEIVE_HEADROOM - metadata;
}

uint32_t ktrxer_xsk_receive_chunk(uint32_t mtu, uint32_t metadata)
{
	return mtu + LINK_AND_TAGS <= ktrxer_xsk_receive_most(CHUNK_SMALL, metadata) ? CHUNK_SMALL : CHUNK_LARGE;
}

static int fail_word(struct ktrxer_error *err, int rc, const char *what)
{
	return ktrxer_fail(err, rc, "%s: %m", what);
}

static int memory_make(struct xsk_receiver *xsk, struct ktrxer_error *err)
{
	struct xsk_umem_reg reg;
	int rc;

	xsk->memory_size = (size_t)xsk->chunk * xsk->frames;
	xsk->memory =
		mmap(NULL, xsk->memory_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (xsk->memory == MAP_FAILED) {
		xsk->memory = NULL;
		return fail_word(err, -ENOMEM, "no memory for its frames");
	}
	reg = (struct xsk_umem_reg){ .addr = (uintptr_t)xsk->memory,
				     .len = xsk->memory_size,
				     .chunk_size = xsk->chunk };
	if (!setsockopt(xsk->fd, SOL_XDP, XDP_UMEM_REG, &reg, sizeof reg))
		return 0;
	rc = -errno;
	if (rc == -ENOBUFS || rc == -EPERM)
		return ktrxer_fail(
			err, rc, "its frames want %zu KiB of locked memory, more than this user may have (`ulimit -l`)",
			xsk->memory_size / 1024);
	return fail_word(err, rc, "memory for its frames");
}

static int rings_make(struct xsk_receiver *xsk, struct ktrxer_error *err)
{
	/* A completion ring is required, though this socket never sends. */
	const uint32_t size = xsk->frames, unused = 2;
	struct xsk_offsets offsets;
	socklen_t length = sizeof offsets;
	int rc;

	if (setsockopt(xsk->fd, SOL_XDP, XDP_UMEM_FILL_RING, &size, sizeof size) ||
	    setsockopt(xsk->fd, SOL_XDP, XDP_UMEM_COMPLETION_RING, &unused, sizeof unused) ||
	    setsockopt(xsk->fd, SOL_XDP, XDP_RX_RING, &size, sizeof size) ||
	    getsockopt(xsk->fd, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &length))
		return fail_word(err, -errno, "its rings");
	if (length < sizeof offsets)
		return ktrxer_fail(err, -EOPNOTSUPP, "it needs Linux 5.4");
	rc = ktrxer_xsk_ring_map(xsk->fd, &xsk->rx, &offsets.rx, size, sizeof(struct xdp_desc), XDP_PGOFF_RX_RING,
				 &xsk->maps[0], &xsk->map_sizes[0]);
	if (rc == 0)
		rc = ktrxer_xsk_ring_map(xsk->fd, &xsk->fill, &offsets.fill, size, sizeof(uint64_t),
					 XDP_UMEM_PGOFF_FILL_RING, &xsk->maps[1], &xsk->map_sizes[1]);
	return rc < 0 ? fail_word(err, rc, "mapping its rings") : 0;
}

static void fill_put(struct xsk_receiver *xsk, uint64_t address)
{
	((uint64_t *)xsk->fill.entries)[xsk->fill.mine & xsk->fill.mask] = address;
	xsk_ring_publish(&xsk->fill, 1);
}

/* A driver that ran out of frames sleeps until a call reports new ones. */
static void fill_wake(struct xsk_receiver *xsk)
{
	if (xsk_ring_wants_kick(&xsk->fill))
		(void)!recvfrom(xsk->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
}

static int queue_bind(const struct xsk_receiver *xsk, uint32_t device, uint32_t queue, bool generic)
{
	const struct sockaddr_xdp to = { .sxdp_family = AF_XDP,
					 .sxdp_ifindex = device,
					 .sxdp_queue_id = queue,
					 .sxdp_flags = (uint16_t)(XDP_USE_NEED_WAKEUP | (generic ? XDP_COPY : 0)) };

	return bind(xsk->fd, (const struct sockaddr *)&to, sizeof to) ? -errno : 0;
}

int ktrxer_xsk_receive_open(struct xsk_receiver *xsk, uint32_t device, uint32_t queue, uint32_t chunk, uint32_t frames,
			    bool generic, struct ktrxer_error *err)
{
	struct xdp_options options = { 0 };
	socklen_t length = sizeof options;
	int rc;

	memset(xsk, 0, sizeof *xsk);
	xsk->chunk = chunk;
	xsk->frames = XSK_RECEIVE_FRAMES_MIN;
	while (xsk->frames < frames && xsk->frames < XSK_RECEIVE_FRAMES_MAX)
		xsk->frames *= 2;
	xsk->fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (xsk->fd < 0) {
		rc = -errno;
		xsk->fd = -1;
		return rc == -EAFNOSUPPORT ? ktrxer_fail(err, rc, "this kernel has none (CONFIG_XDP_SOCKETS)")
					   : fail_word(err, rc, "a socket");
	}
	rc = memory_make(xsk, err);
	if (rc == 0)
		rc = rings_make(xsk, err);
	if (rc < 0)
		goto fail;
	for (uint32_t i = 0; i < xsk->frames; i++)
		((uint64_t *)xsk->fill.entries)[i] = (uint64_t)i * xsk->chunk;
	xsk_ring_publish(&xsk->fill, xsk->frames);
	rc = queue_bind(xsk, device, queue, generic);
	if (rc < 0) {
		if (rc == -EBUSY)
			ktrxer_fail(err, rc, "queue %u belongs to another AF_XDP socket", queue);
		else
			ktrxer_fail(err, rc, "queue %u: %m", queue);
		goto fail;
	}
	if (!getsockopt(xsk->fd, SOL_XDP, XDP_OPTIONS, &options, &length))
		xsk->zero_copy = options.flags & XDP_OPTIONS_ZEROCOPY;
	return 0;

fail:
	ktrxer_xsk_receive_close(xsk);
	return rc;
}

void ktrxer_xsk_receive_close(struct xsk_receiver *xsk)
{
	ktrxer_xsk_release(xsk->maps, xsk->map_sizes, xsk->fd, xsk->memory, xsk->memory_size);
	memset(xsk, 0, sizeof *xsk);
	xsk->fd = -1;
}

const uint8_t *ktrxer_xsk_receive_look(struct xsk_receiver *xsk, uint32_t *length)
{
	const struct xdp_desc *desc;

	if (xsk->seen == xsk->rx.mine) {
		xsk->seen = atomic_load_explicit(xsk->rx.producer, memory_order_acquire);
		if (xsk->seen == xsk->rx.mine) {
			fill_wake(xsk);
			return NULL;
		}
	}
	desc = xsk_ring_desc(&xsk->rx, xsk->rx.mine);
	/* The kernel does not do that; but what it says is read from shared memory, and used as an address. */
	if (desc->addr >= xsk->memory_size || desc->len > xsk->memory_size - desc->addr) {
		*length = 0;
		return xsk->memory + XSK_RECEIVE_HEADROOM;
	}
	*length = desc->len;
	return xsk->memory + desc->addr;
}

void ktrxer_xsk_receive_take(struct xsk_receiver *xsk)
{
	const uint64_t chunk_of = xsk_ring_desc(&xsk->rx, xsk->rx.mine)->addr / xsk->chunk;

	xsk->rx.mine++;
	atomic_store_explicit(xsk->rx.consumer, xsk->rx.mine, memory_order_release);
	fill_put(xsk, chunk_of % xsk->frames * xsk->chunk);
}

int ktrxer_xsk_receive_lost(const struct xsk_receiver *xsk, uint64_t *lost)
{
	/* Five words since 5.9; before that the first sums up what the others tell apart. */
	struct {
		uint64_t dropped, invalid, tx_invalid, ring_full, fill_empty, tx_empty;
	} statistics = { 0 };
	socklen_t length = sizeof statistics;

	if (getsockopt(xsk->fd, SOL_XDP, XDP_STATISTICS, &statistics, &length))
		return -errno;
	*lost = statistics.dropped + statistics.ring_full;
	return 0;
}
