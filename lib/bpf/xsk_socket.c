/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "xsk_socket.h"

#include "base_limits.h"
#include "send_room.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* The kernel frees the queue of a closed socket by deferred work: some milliseconds, more on a busy machine. */
#define QUEUE_BUSY_TRIES 150
#define QUEUE_BUSY_NAP_NS (4 * 1000 * 1000)
/* One call takes 32 frames, or more from Linux 6.17 on. */
#define BUDGET_DEFAULT 32

uint32_t ktrxer_xsk_chunk_size(uint32_t frame_size)
{
	if (frame_size > XSK_FRAME_MAX)
		return 0;
	return frame_size > XSK_CHUNK_MIN - XSK_HEADROOM ? XSK_CHUNK_MAX : XSK_CHUNK_MIN;
}

uint32_t ktrxer_xsk_chunk_colours(uint32_t chunk, uint32_t frame_size)
{
	return (chunk - XSK_HEADROOM - frame_size) / XSK_LINE + 1;
}

static int fail_plainly(struct ktrxer_error *err, int rc, const struct xsk_setup *setup, const char *what)
{
	return ktrxer_fail(err, rc, "AF_XDP on '%s': %s: %m", setup->device, what);
}

static int socket_make(struct xsk_socket *xsk, struct ktrxer_error *err)
{
	int rc;

	xsk->fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (xsk->fd >= 0)
		return 0;
	rc = -errno;
	if (rc == -EPERM || rc == -EACCES)
		return ktrxer_fail(err, rc, "AF_XDP sockets need CAP_NET_RAW: run as root");
	if (rc == -EAFNOSUPPORT)
		return ktrxer_fail(
			err, rc,
			"this kernel has no AF_XDP (Linux 5.4 with CONFIG_XDP_SOCKETS): use the packet engine");
	return ktrxer_fail(err, rc, "AF_XDP socket: %m");
}

static int memory_register(struct xsk_socket *xsk, bool metadata)
{
	const struct xsk_umem_reg reg = {
		.addr = (uintptr_t)xsk->memory,
		.len = xsk->memory_size,
		.chunk_size = xsk->chunk,
		.flags = metadata ? XDP_UMEM_TX_METADATA_LEN : 0,
		.metadata_length = metadata ? sizeof(struct xsk_metadata) : 0,
	};

	return setsockopt(xsk->fd, SOL_XDP, XDP_UMEM_REG, &reg, sizeof reg) == 0 ? 0 : -errno;
}

static int memory_make(struct xsk_socket *xsk, const struct xsk_setup *setup, struct ktrxer_error *err)
{
	int rc;

	xsk->memory_size = (size_t)xsk->chunk * xsk->chunks;
	xsk->memory = mmap(NULL, xsk->memory_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (xsk->memory == MAP_FAILED) {
		xsk->memory = NULL;
		return ktrxer_fail(err, -ENOMEM, "no memory for %u frames of %u bytes", xsk->chunks, xsk->chunk);
	}
	xsk->metadata = setup->metadata;
	rc = memory_register(xsk, xsk->metadata);
	if (rc == -EINVAL && xsk->metadata) {
		xsk->metadata = false; /* before 6.11 */
		rc = memory_register(xsk, false);
	}
	if (rc == -ENOBUFS || rc == -EPERM)
		return ktrxer_fail(
			err, rc,
			"AF_XDP pins its frames in memory, %zu KiB, more than this user may lock: raise `ulimit -l`, "
			"or CAP_IPC_LOCK, or fewer slots",
			xsk->memory_size / 1024);
	return rc < 0 ? fail_plainly(err, rc, setup, "memory for frames") : 0;
}

int ktrxer_xsk_ring_map(int fd, struct xsk_ring *ring, const struct xsk_ring_offset *offset, uint32_t entries,
			size_t entry, uint64_t page_offset, void **map, size_t *map_size)
{
	const size_t size = offset->entries + entry * entries;
	uint8_t *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, (off_t)page_offset);

	if (at == MAP_FAILED)
		return -errno;
	*map = at;
	*map_size = size;
	*ring = (struct xsk_ring){
		.producer = (_Atomic uint32_t *)(at + offset->producer),
		.consumer = (_Atomic uint32_t *)(at + offset->consumer),
		.flags = (_Atomic uint32_t *)(at + offset->flags),
		.entries = at + offset->entries,
		.mask = entries - 1,
	};
	return 0;
}

void ktrxer_xsk_release(void *const maps[2], const size_t map_sizes[2], int fd, void *memory, size_t memory_size)
{
	for (int i = 0; i < 2; i++)
		if (maps[i])
			munmap(maps[i], map_sizes[i]);
	if (fd >= 0)
		close(fd);
	if (memory)
		munmap(memory, memory_size);
}

static int rings_make(struct xsk_socket *xsk, const struct xsk_setup *setup, struct ktrxer_error *err)
{
	/* Spares are out beside the slots. */
	const uint32_t unused = 2, size = xsk->slots, back = 2 * size;
	struct xsk_offsets offsets;
	socklen_t length = sizeof offsets;
	int rc;

	if (setsockopt(xsk->fd, SOL_XDP, XDP_UMEM_FILL_RING, &unused, sizeof unused) != 0 ||
	    setsockopt(xsk->fd, SOL_XDP, XDP_UMEM_COMPLETION_RING, &back, sizeof back) != 0 ||
	    setsockopt(xsk->fd, SOL_XDP, XDP_TX_RING, &size, sizeof size) != 0 ||
	    getsockopt(xsk->fd, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &length) != 0)
		return fail_plainly(err, -errno, setup, "rings");
	if (length < sizeof offsets)
		return ktrxer_fail(err, -EOPNOTSUPP,
				   "the AF_XDP of this kernel is too old (Linux 5.4 is needed): use the packet engine");
	rc = ktrxer_xsk_ring_map(xsk->fd, &xsk->tx, &offsets.tx, size, sizeof(struct xdp_desc), XDP_PGOFF_TX_RING,
				 &xsk->maps[0], &xsk->map_sizes[0]);
	if (rc == 0)
		rc = ktrxer_xsk_ring_map(xsk->fd, &xsk->completion, &offsets.completion, back, sizeof(uint64_t),
					 XDP_UMEM_PGOFF_COMPLETION_RING, &xsk->maps[1], &xsk->map_sizes[1]);
	return rc < 0 ? fail_plainly(err, rc, setup, "mapping the rings") : 0;
}

/* The kernel tries zero copy first, unless XDP_COPY is set. */
static int queue_bind(const struct xsk_socket *xsk, const struct xsk_setup *setup)
{
	const struct sockaddr_xdp to = { .sxdp_family = AF_XDP,
					 .sxdp_ifindex = setup->index,
					 .sxdp_queue_id = setup->queue,
					 .sxdp_flags = (uint16_t)(XDP_USE_NEED_WAKEUP | (setup->copy ? XDP_COPY : 0)) };
	const struct timespec nap = { .tv_nsec = QUEUE_BUSY_NAP_NS };
	int rc = -EBUSY;

	for (int tries = 0; rc == -EBUSY && tries < QUEUE_BUSY_TRIES; tries++) {
		if (tries)
			clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
		rc = bind(xsk->fd, (const struct sockaddr *)&to, sizeof to) == 0 ? 0 : -errno;
	}
	return rc;
}

static int bind_failed(int rc, const struct xsk_setup *setup, struct ktrxer_error *err)
{
	if (rc == -EBUSY)
		return ktrxer_fail(err, rc,
				   "queue %u of '%s' belongs to another AF_XDP socket: end that program (`ss -A xdp "
				   "-p` may name it), "
				   "or use the packet engine",
				   setup->queue, setup->device);
	if (rc == -ENODEV || rc == -ENXIO)
		return ktrxer_fail(err, -ENODEV, "device '%s' is gone", setup->device);
	if (rc == -EINVAL)
		return ktrxer_fail(err, rc, "'%s' has no queue %u that AF_XDP can use: use the packet engine",
				   setup->device, setup->queue);
	if (rc == -EOPNOTSUPP)
		return ktrxer_fail(err, rc, "'%s' and AF_XDP do not go together: use the packet engine", setup->device);
	return fail_plainly(err, rc, setup, "bind");
}

static int socket_open_once(struct xsk_socket *xsk, const struct xsk_setup *setup, struct ktrxer_error *err)
{
	struct xdp_options options = { 0 };
	socklen_t length = sizeof options;
	const int budget = KTX_BATCH_MAX;
	int rc;

	memset(xsk, 0, sizeof *xsk);
	xsk->fd = -1;
	xsk->slots = setup->slots;
	xsk->chunks = setup->slots + setup->spares;
	xsk->chunk = ktrxer_xsk_chunk_size(setup->frame_size);
	if (!xsk->chunk)
		return ktrxer_fail(err, -EMSGSIZE,
				   "frames of %u bytes: AF_XDP takes up to %d; the packet engine sends them",
				   setup->frame_size, XSK_FRAME_MAX);
	xsk->colours = ktrxer_xsk_chunk_colours(xsk->chunk, setup->frame_size);
	if ((rc = socket_make(xsk, err)) < 0 || (rc = memory_make(xsk, setup, err)) < 0 ||
	    (rc = rings_make(xsk, setup, err)) < 0)
		goto fail;
	/* The copies that the device has not sent yet are charged to the socket. */
	ktx_sock_send_room(xsk->fd, 4 << 20);
	xsk->budget = setsockopt(xsk->fd, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &budget, sizeof budget) == 0 ? KTX_BATCH_MAX
												       : BUDGET_DEFAULT;
	rc = queue_bind(xsk, setup);
	if (rc < 0) {
		bind_failed(rc, setup, err);
		goto fail;
	}
	if (getsockopt(xsk->fd, SOL_XDP, XDP_OPTIONS, &options, &length) == 0)
		xsk->zero_copy = options.flags & XDP_OPTIONS_ZEROCOPY;
	return 0;

fail:
	ktrxer_xsk_socket_close(xsk);
	return rc;
}

int ktrxer_xsk_socket_open(struct xsk_socket *xsk, const struct xsk_setup *setup, struct ktrxer_error *err)
{
	struct xsk_setup copy = *setup;
	int rc = socket_open_once(xsk, setup, err);

	if (rc < 0 || !xsk->zero_copy)
		return rc;
	/*
	 * Some drivers bind, but transmit only while an XDP program is attached, which is not ours to do: then their
	 * queue says no.
	 */
	rc = ktrxer_xsk_socket_kick(xsk);
	if (rc == 0 || rc == -EAGAIN || rc == -EBUSY || rc == -ENOBUFS)
		return 0;
	ktrxer_xsk_socket_close(xsk);
	copy.copy = true;
	return socket_open_once(xsk, &copy, err);
}

void ktrxer_xsk_socket_close(struct xsk_socket *xsk)
{
	ktrxer_xsk_release(xsk->maps, xsk->map_sizes, xsk->fd, xsk->memory, xsk->memory_size);
	memset(xsk, 0, sizeof *xsk);
	xsk->fd = -1;
}

int ktrxer_xsk_socket_kick(void *context)
{
	const struct xsk_socket *xsk = context;

	return sendto(xsk->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 ? -errno : 0;
}

int ktrxer_xsk_socket_invalid(void *context, uint64_t *count)
{
	const struct xsk_socket *xsk = context;
	struct {
		uint64_t rx_dropped, rx_invalid, tx_invalid; /* the first version; newer kernels accept its length */
	} statistics;
	socklen_t length = sizeof statistics;

	if (getsockopt(xsk->fd, SOL_XDP, XDP_STATISTICS, &statistics, &length) != 0)
		return -errno;
	*count = statistics.tx_invalid;
	return 0;
}
