/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An XDP program on a device, held by a link: it is there as long as the descriptor is open. */
#ifndef KTRXER_LIB_XDP_ATTACH_H
#define KTRXER_LIB_XDP_ATTACH_H

#include "error.h"

struct xdp_attachment {
	int link; /* -1: none */
	bool generic;
	char note[160]; /* why it is generic, "" where it is not */
};

/*
 * In the driver, else generic (`only_generic`: at once). -EBUSY: another program is there, and err says which and what
 * to do.
 */
int ktrxer_xdp_attach(struct xdp_attachment *attachment, int program, const struct ktrxer_device *device,
		      bool only_generic, struct ktrxer_error *err);
void ktrxer_xdp_detach(struct xdp_attachment *attachment);

#endif
