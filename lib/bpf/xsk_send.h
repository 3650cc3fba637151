/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Copy mode: descriptors go to the kernel within a system call, which may stop at any of them. Before
 * Linux 6.17 its consumer index lags behind when it stops early, so that cannot be read. But the kernel reads the ring
 * only within our calls: the rest is made invalid, the kernel is called until it has stepped over that, and its own
 * count of invalid descriptors says how many had not gone. So nothing is left behind by a refusal, and what is said of
 * each frame is exact.
 */
#ifndef KTRXER_LIB_XSK_SEND_H
#define KTRXER_LIB_XSK_SEND_H

#include "xsk_ring.h"

struct xsk_sender {
	struct xsk_ring *tx;
	int (*kick)(void *context);                     /* 0 or a negative errno */
	int (*invalid)(void *context, uint64_t *count); /* descriptors thrown away so far */
	void *context;
	uint64_t invalid_seen;
	uint32_t batch; /* how many are offered at once: fewer where refusals are frequent */
	uint32_t most;
	int lost; /* negative errno: this socket will never send again */
};

/*
 * Offers the first of `count` descriptors. Returns how many the device took, or a negative errno when none. *dropped:
 * one more was taken and thrown away (it comes back by the completion ring, too): the one after those that went.
 */
int ktrxer_xsk_send(struct xsk_sender *sender, const struct xdp_desc *descs, uint32_t count, bool *dropped);

/* 0, or a negative errno after which nothing is sent. */
int ktrxer_xsk_lost(struct xsk_sender *sender);

#endif
