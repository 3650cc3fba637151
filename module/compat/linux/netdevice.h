/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KTRXER_COMPAT_NETDEVICE_H
#define KTRXER_COMPAT_NETDEVICE_H

#include_next <linux/netdevice.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 17, 0)
typedef struct {} netdevice_tracker;
#endif

/* 5.17 to 5.19 call these dev_hold_track() and dev_put_track(); without the tracker they do. Debian's 5.10 has neither. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 0, 0)
static inline void netdev_hold(struct net_device *dev, netdevice_tracker *tracker, gfp_t gfp)
{
	dev_hold(dev);
}

static inline void netdev_put(struct net_device *dev, netdevice_tracker *tracker)
{
	dev_put(dev);
}
#endif

#endif
