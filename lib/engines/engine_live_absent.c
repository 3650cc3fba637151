/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Stands in for the live engine where it was built without BPF programs, so that `ktrxer doctor` can say so. */
#include "engine.h"

#include <errno.h>
#include <stdio.h>

static int absent_probe(const struct ktrxer_device *device, struct ktx_engine_info *info)
{
	(void)device;
	snprintf(info->reason, sizeof info->reason,
		 "built without BPF programs: build again with clang and libbpf (meson option `bpf`)");
	return -EOPNOTSUPP;
}

const struct ktx_engine ktx_engine_live = {
	.name = "live",
	.summary = "an XDP program in the kernel sends from mapped slots, at their times; takes a processor",
	.probe = absent_probe,
};
