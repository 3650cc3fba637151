/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* linux/if_xdp.h as of Linux 6.18: what older headers lack. Values are kernel ABI and never change. */
#ifndef KTRXER_LIB_XSK_COMPAT_H
#define KTRXER_LIB_XSK_COMPAT_H

#include <linux/if_xdp.h>
#include <stdint.h>

#ifndef AF_XDP
#define AF_XDP 44
#endif
#ifndef SOL_XDP
#define SOL_XDP 283
#endif
#ifndef XDP_USE_NEED_WAKEUP /* 5.4 */
#define XDP_USE_NEED_WAKEUP (1 << 3)
#define XDP_RING_NEED_WAKEUP (1 << 0)
#endif
#ifndef XDP_OPTIONS /* 5.3 */
#define XDP_OPTIONS 8
#endif
#ifndef XDP_OPTIONS_ZEROCOPY
#define XDP_OPTIONS_ZEROCOPY (1 << 0)
#endif
#ifndef XDP_MAX_TX_SKB_BUDGET /* 6.17 */
#define XDP_MAX_TX_SKB_BUDGET 9
#endif
#ifndef XDP_UMEM_TX_METADATA_LEN /* 6.11; before that no stamp is asked for */
#define XDP_UMEM_TX_METADATA_LEN (1 << 2)
#endif
#ifndef XDP_TXMD_FLAGS_TIMESTAMP /* 6.8 */
#define XDP_TXMD_FLAGS_TIMESTAMP (1 << 0)
#define XDP_TX_METADATA (1 << 1)
#endif

/* The names differ from those of the headers, whose structs have the fields only in newer versions. */
struct xsk_umem_reg {
	uint64_t addr;
	uint64_t len;
	uint32_t chunk_size;
	uint32_t headroom;
	uint32_t flags;
	uint32_t metadata_length; /* 6.8 */
};

struct xsk_metadata { /* lies right before the frame */
	uint64_t flags;
	union {
		struct {
			uint16_t checksum_start, checksum_offset;
			uint64_t launch_ns; /* 6.15 */
		} request;
		uint64_t stamp_ns; /* after completion */
	};
};

/* the fourth word came with 5.4: older kernels answer with a shorter struct, and are refused */
struct xsk_ring_offset {
	uint64_t producer, consumer, entries, flags;
};

struct xsk_offsets {
	struct xsk_ring_offset rx, tx, fill, completion;
};

#endif
