/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KTRXER_COMPAT_NETDEVICE_H
#define KTRXER_COMPAT_NETDEVICE_H

#include_next <linux/netdevice.h>

#ifndef KTRXER_HAS_NETDEVICE_TRACKER
typedef struct {} netdevice_tracker;
#endif

/*
 * 5.17 to 5.19 call these dev_hold_track() and dev_put_track(); without the tracker they do.
 * Debian's 5.10 has neither.
 */
#ifndef KTRXER_HAS_NETDEV_HOLD
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
