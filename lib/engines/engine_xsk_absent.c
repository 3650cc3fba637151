/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Stands in for the xsk engine where it was built without linux/if_xdp.h, so that `ktrxer doctor` can say so. */
#include "engine.h"

#include <errno.h>
#include <stdio.h>

static int absent_probe(const struct ktrxer_device *device, struct ktx_engine_info *info)
{
	(void)device;
	snprintf(info->reason, sizeof info->reason,
		 "built without linux/if_xdp.h: build again with the headers of Linux 4.18 or newer");
	return -EOPNOTSUPP;
}

/* An engine whose probe fails is never opened. */
const struct ktx_engine ktx_engine_xsk = {
	.name = "xsk",
	.summary = "AF_XDP: frames in memory shared with the device's queue",
	.probe = absent_probe,
};
