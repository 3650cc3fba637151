/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A build without libxdp, or without XDP programs at all: what others have on a device is left alone. */
#include "xdp_dispatch.h"

#include <errno.h>

bool xdp_dispatch_there(uint32_t device)
{
	(void)device;
	return false;
}

int xdp_dispatch_join(struct xdp_dispatch *dispatch, struct bpf_object *object, const char *name, const struct ktrxer_device *device,
		      struct ktrxer_error *err)
{
	(void)dispatch;
	(void)object;
	(void)name;
	(void)device;
	return ktrxer_fail(err, -EOPNOTSUPP, "this ktrxer was built without libxdp");
}

int xdp_dispatch_beat(struct xdp_dispatch *dispatch, __u64 *alive_ns, struct ktrxer_error *err)
{
	(void)dispatch;
	(void)alive_ns;
	return ktrxer_fail(err, -EOPNOTSUPP, "this ktrxer was built without libxdp");
}

void xdp_dispatch_leave(struct xdp_dispatch *dispatch)
{
	(void)dispatch;
}

int xdp_dispatch_left(const struct ktrxer_device *device, bool clean, struct ktrxer_error *err)
{
	(void)device;
	return clean ? ktrxer_fail(err, -EOPNOTSUPP, "this ktrxer was built without libxdp: it leaves no program behind, and takes none out") : 0;
}
